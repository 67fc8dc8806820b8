"""What a caller may call a stream, as the number that the driver knows."""

from __future__ import annotations

import functools
import operator
import sys
from typing import Callable, Protocol, Union

from ._arguments import MOST_UINT64, integer, shown
from .errors import InvalidArgumentError


class CudaStreamProtocol(Protocol):
    """The protocol of cuda.core: (version, handle)."""

    def __cuda_stream__(self) -> tuple: ...


# torch's streams have `cuda_stream`, CuPy's `ptr`.
Stream = Union[None, int, CudaStreamProtocol, object]


@functools.lru_cache(maxsize=None)
def _torch_current_stream() -> Callable[[int], int]:
    torch = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # a tenth of the public call's time
    return raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)


def current_torch_stream(device: int) -> int:
    """torch's current stream of `device`; torch must have been imported."""
    return _torch_current_stream()(device)


def _checked(handle: int) -> int:
    return integer("stream", handle, 0, MOST_UINT64, "give a CUstream")


def _handle_of(stream: object) -> int:
    for name in ("cuda_stream", "ptr"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return _checked(handle)
    protocol = getattr(stream, "__cuda_stream__", None)
    try:
        if protocol is not None:
            return _checked((protocol() if callable(protocol) else protocol)[1])
        return _checked(operator.index(stream))  # type: ignore[arg-type]  NumPy's numbers
    except (TypeError, IndexError):
        raise InvalidArgumentError(
            f"stream = {shown(stream)}: must be None, a number, or have cuda_stream, ptr or "
            "__cuda_stream__; give the CUstream as an int") from None


def stream_handle(stream: Stream, device: int, *, of_torch: bool) -> int:
    """The CUstream of `stream` as a number. None is torch's current stream of `device` for a call
    on torch's tensors (`of_torch`), else the legacy default stream. Raises
    InvalidArgumentError."""
    if stream is None:
        return current_torch_stream(device) if of_torch else 0
    if isinstance(stream, int) and 0 <= stream <= MOST_UINT64:
        return stream
    return _handle_of(stream)


def current_stream_is_captured(device: int) -> bool:
    """Whether torch is capturing a graph on its current stream of `device`."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return False
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()
