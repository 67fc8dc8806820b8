"""Kernel: what Runtime.prepare gives, and the calls that it runs. None of them compiles or
allocates device memory, so all of them may be captured into a CUDA graph.

Tensors are keywords with the names of the structs' fields in attnjit/attnjit.h, where shapes are;
one that is None, or left out, is "not given". What they point to must live until the stream has
done the work. `stream` is None (torch's current stream of the kernel's device for torch's tensors,
else the legacy default stream), a number, or a stream object of torch, CuPy or cuda.core.

A softmax_scale of None is 1 / sqrt(head_dim_qk). LSEs are natural logarithms in fp32, -inf where
nothing is seen.
"""

from __future__ import annotations

import ctypes
import json
import weakref
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple

from . import _structs
from ._arguments import instance
from ._call_buffer import buffers
from ._library import check, last_error, library
from .decode_plan import DecodePlan
from .streams import Stream, stream_handle

if TYPE_CHECKING:
    from .runtime import Runtime


class PrefillSplit:
    """How the keys of a prefill are shared out. It follows from shapes alone: one serves all
    calls of the shapes, and graph replays.

    workspace_bytes: of device memory that run_prefill needs, 16-byte aligned.
    num_splits: parts, 1 where row tiles fill the GPU.
    """

    def __init__(self) -> None:
        self._struct = _structs.PrefillSplit(struct_size=ctypes.sizeof(_structs.PrefillSplit))
        self.address = ctypes.addressof(self._struct)

    workspace_bytes = property(lambda self: self._struct.workspace_bytes)
    num_splits = property(lambda self: self._struct.num_splits)


class Kernel:
    """The kernels of one descriptor, ready on one device. Made by Runtime.prepare; thread-safe.
    Which of the calls it runs follows from the descriptor's operation."""

    def __init__(self, runtime: Runtime, descriptor: str, handle: int) -> None:
        self.runtime = runtime
        self.device = runtime.device
        self._descriptor = descriptor
        self.handle = handle
        opened = library()
        self._prefill = opened.attnjit_prefill
        self._sparse_mla = opened.attnjit_sparse_mla
        self._append = opened.attnjit_append_kv_cache
        self._merge = opened.attnjit_merge_states
        finalizer = weakref.finalize(self, opened.attnjit_kernel_release, handle)
        finalizer.atexit = False

    @property
    def descriptor(self) -> Dict[str, Any]:
        """The fields that were given to prepare."""
        return json.loads(self._descriptor)

    def plan_decode(self, max_batch: int, seqlen_q: int = 1,
                    max_seqlen_kv: int = 0) -> DecodePlan:
        """A plan for batches of up to `max_batch` requests with `seqlen_q` query tokens each. A
        batch-invariant descriptor also needs `max_seqlen_kv`, the keys of the longest request.
        Allocates device memory: make it outside of graph captures. Raises InvalidArgumentError,
        InvalidCallError, CudaError, OutOfMemoryError."""
        return DecodePlan(self, max_batch, seqlen_q, max_seqlen_kv)

    def plan_prefill(self, *, softmax_scale: Optional[float] = None, softcap: float = 0.0,
                     **tensors: Any) -> PrefillSplit:
        """How a prefill of these shapes is shared out, for run_prefill. Reads no device memory.
        Raises TensorError, InvalidArgumentError, and InvalidCallError, which lists everything that
        is wrong with the call."""
        buffer = buffers.prefill
        buffer.fill(tensors, self.device)
        buffer.set_scale(softmax_scale)
        buffer.set_scalar("softcap", softcap)
        split = PrefillSplit()
        check(library().attnjit_prefill_plan(self.handle, buffer.address, split.address))
        return split

    def run_prefill(self, *, softmax_scale: Optional[float] = None, softcap: float = 0.0,
                    split: Optional[PrefillSplit] = None, workspace: Any = None,
                    stream: Stream = None, **tensors: Any) -> None:
        """Queues a prefill: operations prefill, prefill_kvcache and mla_prefill_rope.

        q: [total_q, num_q_heads, head_dim_qk] with q_offsets int32 [batch + 1], or
        [batch, seqlen_q, num_q_heads, head_dim_qk].
        k, v: thd [total_kv, num_kv_heads, head_dim] with kv_offsets; bshd; bhsd; or paged, with
        block_table int32 [batch, max_pages] and seq_lens int32 [batch].
        out: as q with head_dim_v; lse: fp32 [num_q_heads, total_q] or
        [batch, num_q_heads, seqlen_q], optional.
        Others: k_rope, q_rope, q_scales, k_scales, v_scales, rope_scales, out_scale, q_lens,
        query_positions, key_positions, mask, prefix_lens, q_segments, kv_segments, alibi_slopes,
        bias, block_mask, block_rows, block_columns, sinks (attnjit/prefill.hpp).
        split, workspace: of plan_prefill, and device memory of at least its workspace_bytes;
        without them the call runs in one part.
        Raises TensorError, InvalidArgumentError, InvalidCallError, CudaError.
        """
        buffer = buffers.prefill
        of_torch = buffer.fill(tensors, self.device)
        buffer.set_scale(softmax_scale)
        buffer.set_scalar("softcap", softcap)
        memory, size = buffer.workspace(workspace)
        if split is not None:
            instance("split", split, PrefillSplit, "give what plan_prefill returns")
        status = self._prefill(self.handle, buffer.address, split.address if split else None,
                               memory, size,
                               stream_handle(stream, self.device, of_torch=of_torch))
        if status:
            raise last_error(status)

    def run_sparse_mla(self, *, softmax_scale: Optional[float] = None, stream: Stream = None,
                       **tensors: Any) -> None:
        """Queues token-sparse MLA: operations sparse_mla_decode and sparse_mla_prefill.

        q: decode [batch, seqlen_q, num_q_heads, head_dim_qk]; prefill
        [s_q, num_q_heads, head_dim_qk].
        kv: decode [num_pages, page_size, 1, width]; prefill [s_kv, 1, head_dim_qk].
        indices: int32; decode [batch, seqlen_q, topk]; prefill [s_q, 1, topk]. What names no
        token, such as -1, is skipped.
        topk_length: int32 [batch], of a prefill [s_q]; optional.
        extra_kv, extra_indices, extra_topk_length: a second pool of a decode; optional.
        sinks: fp32 [num_q_heads].
        out: as q with head_dim_v.
        lse, max_logits: fp32, decode [batch, num_q_heads, seqlen_q], prefill [s_q, num_q_heads];
        optional.
        Raises TensorError, InvalidArgumentError, InvalidCallError, CudaError.
        """
        buffer = buffers.sparse_mla
        of_torch = buffer.fill(tensors, self.device)
        buffer.set_scale(softmax_scale)
        status = self._sparse_mla(self.handle, buffer.address,
                                  stream_handle(stream, self.device, of_torch=of_torch))
        if status:
            raise last_error(status)

    def run_append_kv_cache(self, *, stream: Stream = None, **tensors: Any) -> None:
        """Queues the write of new tokens into a paged cache.

        k_new, v_new: [total_new, num_kv_heads, head_dim] with new_offsets int32 [batch + 1], or
        [batch, seqlen_new, num_kv_heads, head_dim]; v_new and v_cache only if v is separate.
        k_cache, v_cache: [num_pages, page_size, num_kv_heads, head_dim], or as the layout says.
        block_table int32 [batch, max_pages] and seq_lens int32 [batch], the new tokens included;
        or slot_mapping, int32 or int64 [tokens], negative = not written.
        k_scale, v_scale: fp32, of an fp8 cache.
        Raises TensorError, InvalidArgumentError, InvalidCallError, CudaError.
        """
        buffer = buffers.append
        of_torch = buffer.fill(tensors, self.device)
        status = self._append(self.handle, buffer.address,
                              stream_handle(stream, self.device, of_torch=of_torch))
        if status:
            raise last_error(status)

    def run_merge_states(self, *, partials: Sequence[Tuple[Any, Any]], out: Any, lse: Any = None,
                         stream: Stream = None) -> None:
        """Queues the merge of attention over parts of the keys, by their LSEs.

        partials: 1 to 32 pairs of out [tokens, num_heads, head_dim] and lse fp32
        [tokens, num_heads], of any strides.
        out, lse: as a part's, and may be a part's; lse is optional.
        Raises TensorError, InvalidArgumentError, InvalidCallError, CudaError.
        """
        buffer = buffers.merge
        of_torch = buffer.fill({"out": out, "lse": lse}, self.device)
        buffer.fill_partials(partials, self.device)
        status = self._merge(self.handle, buffer.address,
                             stream_handle(stream, self.device, of_torch=of_torch))
        if status:
            raise last_error(status)
