"""Runtime: descriptors to kernels that are ready on a device, and what needs no device."""

from __future__ import annotations

import ctypes
import json
import os
import threading
import weakref
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Union

from . import _structs
from ._library import check, encoded, library
from .errors import InvalidArgumentError
from .kernels import Kernel
from .streams import Stream, stream_handle

# The fields that generator/README.md lists, those left out at their defaults; or their JSON.
Descriptor = Union[str, Mapping[str, Any]]

_SHARING = {None: 0, "owner": 1, "group": 2}
_LOG_LEVELS = {0: "notice", 1: "warning"}


class Miss(NamedTuple):
    """A kernel that is to be compiled, for it is not in the cache."""

    kernel: str  # its name, "paged_decode_sm80"
    arch: str  # "sm_90a"
    key: str  # digest of the cache key
    reason: str  # "absent", …
    detail: str  # path and cause, for people


def descriptor_json(descriptor: Descriptor) -> bytes:
    """The descriptor as the library takes it."""
    text = descriptor if isinstance(descriptor, str) else json.dumps(dict(descriptor))
    return text.encode("utf-8")


def _log_function(log: Optional[Callable[[str, str], None]]) -> Any:
    if log is None:
        return _structs.LogFunction()
    return _structs.LogFunction(
        lambda _, level, text: log(_LOG_LEVELS.get(level, str(level)), text.decode("utf-8")))


def _miss_function(on_miss: Optional[Callable[[Miss], None]]) -> Any:
    if on_miss is None:
        return _structs.MissFunction()

    def call(_: Any, miss: Any) -> None:
        given = miss.contents
        on_miss(Miss(*(getattr(given, field).decode("utf-8") for field in Miss._fields)))

    return _structs.MissFunction(call)


def _memory_functions(allocate: Optional[Callable[[int, int], int]],
                      release: Optional[Callable[[int, int, int], None]]) -> Any:
    if allocate is None or release is None:
        if allocate is not release:
            raise InvalidArgumentError("allocate and release: must be given both, or neither")
        return _structs.AllocateFunction(), _structs.ReleaseFunction()
    return (_structs.AllocateFunction(lambda _, device, size: allocate(device, size)),
            _structs.ReleaseFunction(
                lambda _, device, memory, size: release(device, memory, size)))


class Runtime:
    """Makes kernels ready: finds them in memory or in the cache, or compiles them. Opening one
    touches no GPU. Thread-safe.

    device: CUDA ordinal of what prepare makes ready.
    forbid_jit: never compile; a kernel that the cache lacks is a MissingKernelError.
    templates: directory in place of the built-in templates.
    cache_directory: of compiled kernels; default: $ATTNJIT_CACHE_DIR, else the user's cache.
    cache_layers: read-only directories and bundles below it.
    cache_sharing: "owner" or "group"; None: $ATTNJIT_CACHE_SHARED decides.
    cache_max_bytes: 0: $ATTNJIT_CACHE_MAX_BYTES decides.
    trusts_pointers: run calls do not ask the driver whether tensors are its memory.
    nvrtc: libnvrtc or its directory; default: $ATTNJIT_NVRTC, else it is searched.
    miss_trace: file to which each miss is appended.
    log(level, message): level is "notice" or "warning"; default: a line on stderr.
    on_miss(miss): before each compile, with a Miss. Neither may call back into attnjit.
    allocate(device, bytes) -> address, release(device, address, bytes): device memory of plans,
    256-byte aligned; both or neither.

    Raises LibraryError, InvalidArgumentError, TemplateError.
    """

    def __init__(self, *, device: int = 0, forbid_jit: bool = False,
                 templates: Optional[Union[str, os.PathLike]] = None,
                 cache_directory: Optional[Union[str, os.PathLike]] = None,
                 cache_layers: Sequence[Union[str, os.PathLike]] = (),
                 cache_sharing: Optional[str] = None, cache_max_bytes: int = 0,
                 trusts_pointers: bool = False,
                 nvrtc: Optional[Union[str, os.PathLike]] = None,
                 miss_trace: Optional[Union[str, os.PathLike]] = None,
                 log: Optional[Callable[[str, str], None]] = None,
                 on_miss: Optional[Callable[[Miss], None]] = None,
                 allocate: Optional[Callable[[int, int], int]] = None,
                 release: Optional[Callable[[int, int, int], None]] = None) -> None:
        if cache_sharing not in _SHARING:
            raise InvalidArgumentError(f"cache_sharing = {cache_sharing!r}: must be None, "
                                       "'owner' or 'group'")
        self.device = device
        self._library = library()
        allocate_function, release_function = _memory_functions(allocate, release)
        layers = (ctypes.c_char_p * len(cache_layers))(*map(encoded, cache_layers))
        options = _structs.RuntimeOptions(
            struct_size=ctypes.sizeof(_structs.RuntimeOptions), device=device,
            forbid_jit=forbid_jit, templates=encoded(templates),
            cache_directory=encoded(cache_directory), cache_layers=layers,
            num_cache_layers=len(layers), cache_sharing=_SHARING[cache_sharing],
            trusts_pointers=trusts_pointers, cache_max_bytes=cache_max_bytes,
            nvrtc=encoded(nvrtc),
            miss_trace=encoded(miss_trace), log=_log_function(log),
            on_miss=_miss_function(on_miss), allocate=allocate_function,
            release=release_function)
        self._options = options  # holds the functions, which the library may call from now on
        handle = ctypes.c_uint64()
        check(self._library.attnjit_runtime_create(ctypes.addressof(options),
                                                   ctypes.byref(handle)))
        self.handle = handle.value
        finalizer = weakref.finalize(self, self._library.attnjit_runtime_destroy, self.handle)
        finalizer.atexit = False

    def validate(self, descriptor: Descriptor) -> None:
        """Does nothing if some kernel serves `descriptor`. Needs no GPU. Raises
        InvalidDescriptorError, whose violations are all that is wrong."""
        check(self._library.attnjit_validate(descriptor_json(descriptor)))

    def warm(self, descriptor: Descriptor, arch: str) -> int:
        """Puts the kernels of `descriptor` for `arch` ("sm_90a") into the cache, without a GPU,
        and returns how many were not there. Raises InvalidDescriptorError, ToolchainError,
        CompileError, MissingKernelError."""
        compiled = ctypes.c_int32()
        check(self._library.attnjit_warm(self.handle, descriptor_json(descriptor),
                                         encoded(arch), ctypes.byref(compiled)))
        return compiled.value

    def source(self, descriptor: Descriptor, arch: str) -> str:
        """The CUDA source of those kernels, one after the other, without a GPU. Raises
        InvalidDescriptorError."""
        text = descriptor_json(descriptor)
        needed = ctypes.c_size_t()
        check(self._library.attnjit_source(self.handle, text, encoded(arch), None, 0,
                                           ctypes.byref(needed)))
        buffer = ctypes.create_string_buffer(needed.value)
        check(self._library.attnjit_source(self.handle, text, encoded(arch), buffer, len(buffer),
                                           ctypes.byref(needed)))
        return buffer.value.decode("utf-8")

    def prepare(self, descriptor: Descriptor, stream: Stream = None) -> Kernel:
        """The kernels of `descriptor`, ready on the runtime's device: from memory, the cache, or
        compiled now. `stream` is where they will run (None: the legacy default stream): while it
        is being captured into a graph, what is not ready is a ColdKernelError, and the capture
        stays valid. Raises also InvalidDescriptorError, MissingKernelError, CompileError,
        ToolchainError, DriverError, CudaError."""
        text = descriptor_json(descriptor)
        handle = ctypes.c_uint64()
        check(self._library.attnjit_prepare(
            self.handle, text, stream_handle(stream, self.device, of_torch=False),
            ctypes.byref(handle)))
        return Kernel(self, text.decode("utf-8"), handle.value)

    def is_cold(self, descriptor: Descriptor) -> bool:
        """Whether prepare would have to load or compile. Raises InvalidDescriptorError."""
        cold = ctypes.c_int32()
        check(self._library.attnjit_is_cold(self.handle, descriptor_json(descriptor),
                                            ctypes.byref(cold)))
        return bool(cold.value)


_default_runtimes: Dict[int, Runtime] = {}
_lock = threading.Lock()


def default_runtime(device: int = 0) -> Runtime:
    """The process's runtime for `device`, with default options; opened at the first call."""
    with _lock:
        if device not in _default_runtimes:
            _default_runtimes[device] = Runtime(device=device)
        return _default_runtimes[device]
