"""What goes wrong, by the status that the library gives: one class each, all AttnjitError.

The message of each is the library's: everything that is wrong, a line each, with the value, the
rule and the fix.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Type


class AttnjitError(RuntimeError):
    """Base of all.

    status: the library's number (ATTNJIT_INVALID_CALL is 3); None if it was not asked.
    message: as str() of the error.
    violations: of InvalidDescriptorError and InvalidCallError, a list of dictionaries with the
    keys field, value, rule and fix; otherwise empty.
    """

    status: Optional[int] = None

    def __init__(self, message: str, violations: Optional[List[Dict[str, str]]] = None) -> None:
        super().__init__(message)
        self.message = message
        self.violations = violations or []


class LibraryError(AttnjitError, ImportError):
    """libattnjit.so is not there, cannot be opened, or speaks another version of the interface."""


class TensorError(AttnjitError, TypeError):
    """An argument that is no tensor, is not on the device, or has a type that no kernel reads."""


class InvalidArgumentError(AttnjitError, ValueError):
    """An option or number that the interface refuses."""

    status = 1


class InvalidDescriptorError(AttnjitError, ValueError):
    """A descriptor that is malformed, contradicts itself, or is served by no kernel."""

    status = 2


class InvalidCallError(AttnjitError, ValueError):
    """Tensors that contradict the descriptor or each other."""

    status = 3


class ColdKernelError(AttnjitError):
    """A kernel is not ready and the stream is being captured. The capture stays valid."""

    status = 4


class MissingKernelError(AttnjitError):
    """The cache lacks a kernel, and compiling is forbidden."""

    status = 5


class CompileError(AttnjitError):
    """The compiler refused a kernel, or an expression of the descriptor."""

    status = 6


class ToolchainError(AttnjitError):
    """No usable NVRTC, or none for the architecture."""

    status = 7


class DriverError(AttnjitError):
    """No usable CUDA driver or device."""

    status = 8


class CudaError(AttnjitError):
    """One call of the driver failed."""

    status = 9


class TemplateError(AttnjitError):
    """The directory of templates is incomplete or wrong."""

    status = 10


class OutOfMemoryError(AttnjitError, MemoryError):
    """No memory on the host, or the caller's allocate gave none."""

    status = 11


class InternalError(AttnjitError):
    """A fault of attnjit itself, or of a callback that threw in C++."""

    status = 12


class NotStoredError(AttnjitError):
    """Kernels were warmed, but the cache could not keep them."""

    status = 13


_BY_STATUS: Dict[int, Type[AttnjitError]] = {
    error.status: error
    for error in (InvalidArgumentError, InvalidDescriptorError, InvalidCallError, ColdKernelError,
                  MissingKernelError, CompileError, ToolchainError, DriverError, CudaError,
                  TemplateError, OutOfMemoryError, InternalError, NotStoredError)
    if error.status is not None
}


def error_of(status: int, message: str, violations: List[Dict[str, str]]) -> AttnjitError:
    """The error of a status that is not 0, to be raised."""
    error = _BY_STATUS.get(status, AttnjitError)(message, violations)
    error.status = status
    return error
