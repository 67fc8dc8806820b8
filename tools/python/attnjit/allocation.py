"""Outputs and workspaces that a caller leaves out: torch makes them, on its current stream."""

from __future__ import annotations

import sys
from typing import Any, Sequence

from .errors import TensorError
from .streams import Stream, current_torch_stream, stream_handle
from .tensors import TORCH_NAMES, torch_types


def allocate(name: str, shape: Sequence[int], dtype: str, *, like: Any, stream: Stream) -> Any:
    """A torch tensor of `shape` and `dtype`, on the device of `like`. Raises TensorError where
    torch would not know who uses it: `like` is not torch's, or `stream` not its current one."""
    if type(like) not in torch_types:
        raise TensorError(f"{name}: must be given where the other tensors are not torch's; "
                          f"{dtype} {list(shape)}")
    device = like.device
    if stream is not None and (stream_handle(stream, device.index, of_torch=True)
                               != current_torch_stream(device.index)):
        raise TensorError(f"{name}: must be given where stream is not torch's current one, for "
                          "torch hands memory out in the order of that; or leave stream out and "
                          "call under torch.cuda.stream(…)")
    torch = sys.modules["torch"]
    return torch.empty(tuple(shape), dtype=getattr(torch, TORCH_NAMES[dtype]), device=device)


def workspace_for(size: int, workspace: Any, *, like: Any, stream: Stream) -> Any:
    """`workspace`, or one of `size` bytes where it is None; None where none is needed."""
    if workspace is not None or size == 0:
        return workspace
    return allocate("workspace", (size,), "uint8", like=like, stream=stream)
