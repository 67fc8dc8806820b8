"""DecodePlan: how a batch of decodes is split over the device, and the decode itself."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any, Iterable, Optional

from . import _structs
from ._arguments import MOST_INT32, integer, integers
from ._call_buffer import buffers
from ._library import check, last_error, library
from .errors import TensorError
from .streams import Stream, stream_handle
from .tensors import DTYPE_NAMES, read_as, torch_types

if TYPE_CHECKING:
    from .kernels import Kernel


class DecodePlan:
    """The split of a batch over the device, with its schedule in device memory. Made by
    Kernel.plan_decode; keep it as long as work or a graph uses it. Update it once a step, run it
    once a layer; runs on one plan may go on side by side, in the order of their streams.

    kernel: whose plan it is.
    workspace_bytes: device memory that run needs, 16-byte aligned, the same for all lengths.
    """

    def __init__(self, kernel: Kernel, max_batch: int, seqlen_q: int, max_seqlen_kv: int) -> None:
        self.kernel = kernel
        self.max_batch = integer("max_batch", max_batch, 0, MOST_INT32, "give the most requests")
        self.seqlen_q = integer("seqlen_q", seqlen_q, 1, MOST_INT32, "give the query tokens of a "
                                "request")
        keys = integer("max_seqlen_kv", max_seqlen_kv, 0, MOST_INT32, "give the keys of the "
                       "longest request, or 0")
        self._device = kernel.device
        opened = library()
        options = _structs.PlanOptions(
            struct_size=ctypes.sizeof(_structs.PlanOptions), max_batch=self.max_batch,
            seqlen_q=self.seqlen_q, max_seqlen_kv=keys)
        handle = ctypes.c_uint64()
        check(opened.attnjit_plan_create(kernel.handle, ctypes.addressof(options),
                                         ctypes.byref(handle)))
        self.handle = handle.value
        finalizer = weakref.finalize(self, opened.attnjit_plan_destroy, self.handle)
        finalizer.atexit = False
        size = ctypes.c_int64()
        check(opened.attnjit_plan_workspace_bytes(self.handle, ctypes.byref(size)))
        self.workspace_bytes = size.value
        self._update = opened.attnjit_plan_update
        self._decode = opened.attnjit_decode

    def update(self, seq_lens: Any, batch: Optional[int] = None, stream: Stream = None) -> None:
        """Splits the batch by `seq_lens`, int32 [batch] in device memory, in stream order and
        without a copy to the host. `batch`: how many of them, by default all. May be captured:
        replays follow the lengths. Lengths that change later still give right results. Raises
        TensorError, InvalidArgumentError, InvalidCallError, CudaError."""
        pointer, code, shape, strides, place, _ = read_as("seq_lens", seq_lens)
        if DTYPE_NAMES[code] != "int32" or len(shape) != 1 or (shape[0] > 1 and strides[0] != 1):
            raise TensorError(
                f"seq_lens is {DTYPE_NAMES[code]} {list(shape)}, strides {list(strides)}: must be "
                "int32 [batch], contiguous")
        if place is not None and place != self._device:
            raise TensorError(f"seq_lens is on device {place}: must be on the kernel's, "
                              f"{self._device}; move it there")
        if pointer % 4:
            raise TensorError(f"seq_lens is at {pointer:#x}: must be 4-byte aligned; copy it")
        batch = integer("batch", shape[0] if batch is None else batch, 0,
                        min(shape[0], MOST_INT32), f"seq_lens has {shape[0]}")
        handle = stream_handle(stream, self._device, of_torch=type(seq_lens) in torch_types)
        status = self._update(self.handle, pointer, batch, handle)
        if status:
            raise last_error(status)

    def update_from_host(self, seq_lens: Iterable[int], stream: Stream = None) -> None:
        """The same from lengths on the host: numbers, or a host tensor. Not while `stream` is
        being captured. With `stream` None, that is the legacy default stream. Raises
        InvalidArgumentError, InvalidCallError, CudaError."""
        listed = integers("seq_lens", seq_lens, 0, MOST_INT32, "give the keys of each request")
        lengths = (ctypes.c_int32 * len(listed))(*listed)
        handle = stream_handle(stream, self._device, of_torch=type(seq_lens) in torch_types)
        check(library().attnjit_plan_update_from_host(self.handle, ctypes.addressof(lengths),
                                                      len(lengths), handle))

    def run(self, *, softmax_scale: Optional[float] = None, workspace: Any = None,
            stream: Stream = None, **tensors: Any) -> None:
        """Queues the decode of the batch that the plan was updated for. May be captured.

        q: [batch, seqlen_q, num_q_heads, head_dim_qk].
        k_cache, v_cache: nhd [num_pages, page_size, num_kv_heads, head_dim]; hnd: dimensions 1
        and 2 swapped; rank 5: one such pool per request. v_cache only if v is separate.
        block_table: int32 [batch, max_pages]. seq_lens: int32 [batch], the keys being decoded
        included.
        mask: [batch|1, num_q_heads|1, seqlen_q|1, keys], of a materialized mask.
        sinks: fp32 [num_q_heads].
        out: [batch, seqlen_q, num_q_heads, head_dim_v].
        lse: fp32 [batch, num_q_heads, seqlen_q]; optional.
        workspace: contiguous device memory of at least workspace_bytes, 16-byte aligned.
        Raises TensorError, InvalidArgumentError, InvalidCallError, CudaError.
        """
        buffer = buffers.decode
        of_torch = buffer.fill(tensors, self._device)
        buffer.set_scale(softmax_scale)
        memory, size = buffer.workspace(workspace)
        status = self._decode(self.handle, buffer.address, memory, size,
                              stream_handle(stream, self._device, of_torch=of_torch))
        if status:
            raise last_error(status)
