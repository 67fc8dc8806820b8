"""Token-sparse MLA as one call: the kernel is found or made, outputs allocated."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from ._arguments import Fields
from .allocation import allocate
from .compiled_calls import traceable
from .descriptors import sparse_mla_decode_descriptor, sparse_mla_prefill_descriptor
from .prepared import kernel_of, runtime_of
from .runtime import Runtime
from .streams import Stream, stream_handle
from .tensors import dtype_and_shape, torch_types

# By the bytes of a token.
_ENCODINGS = {656: "fp8_656", 584: "fp8_584"}


def _run(make: Callable[..., Dict[str, Any]], arguments: Dict[str, Any], q: Any,
         softmax_rows: Sequence[int], *, head_dim_v: int, softmax_scale: Optional[float],
         descriptor: Fields, out: Any, lse: Any, max_logits: Any, stream: Stream,
         runtime: Optional[Runtime], **tensors: Any) -> Tuple[Any, Any, Any]:
    dtype, shape = dtype_and_shape("q", q, 3, 4)
    used = runtime_of(q, runtime)
    handle = stream_handle(stream, used.device, of_torch=type(q) in torch_types)
    kernel = kernel_of(used, make, handle, fields=descriptor, num_q_heads=shape[-2],
                       head_dim_qk=shape[-1], head_dim_v=head_dim_v, dtype=dtype,
                       has_sinks=tensors.get("sinks") is not None, **arguments)
    if out is None:
        out = allocate("out", (*shape[:-1], head_dim_v), dtype, like=q, stream=stream)
    if lse is None:
        lse = allocate("lse", softmax_rows, "fp32", like=q, stream=stream)
    if max_logits is None:
        max_logits = allocate("max_logits", softmax_rows, "fp32", like=q, stream=stream)
    kernel.run_sparse_mla(q=q, out=out, lse=lse, max_logits=max_logits,
                          softmax_scale=softmax_scale, stream=stream, **tensors)
    return out, lse, max_logits


@traceable
def sparse_mla_decode(q: Any, kv: Any, indices: Any, *, topk_length: Any = None,
                      extra_kv: Any = None, extra_indices: Any = None,
                      extra_topk_length: Any = None, sinks: Any = None, head_dim_v: int = 512,
                      softmax_scale: Optional[float] = None, descriptor: Fields = None,
                      out: Any = None, lse: Any = None, max_logits: Any = None,
                      stream: Stream = None,
                      runtime: Optional[Runtime] = None) -> Tuple[Any, Any, Any]:
    """Each query token attends to the tokens of a paged cache that its indices name.

    q: [batch, seqlen_q, num_q_heads, head_dim_qk].
    kv: [num_pages, page_size, 1, width]: head_dim_qk columns of q's type; or, of fp8_e4m3 or
    uint8, the 656 bytes of DeepSeek-V3.2's tokens, or the 584 of MODEL1's.
    indices: int32 [batch, seqlen_q, topk]: page * page_size + row; what names no token, such as
    -1, is skipped. topk_length: int32 [batch], ends the lists.
    extra_kv, extra_indices, extra_topk_length: a second pool, which may have other pages.
    sinks: fp32 [num_q_heads], natural logarithm.
    descriptor: further fields of the descriptor.

    Returns out [batch, seqlen_q, num_q_heads, head_dim_v], and lse and the largest scaled scores,
    fp32 [batch, num_q_heads, seqlen_q]; 0, -inf and -inf where nothing is named. Raises
    AttnjitError.
    """
    _, (batch, seqlen_q, num_q_heads, head_dim_qk) = dtype_and_shape("q", q, 4)
    kv_dtype, cache = dtype_and_shape("kv", kv, 4)
    is_encoded = kv_dtype in ("uint8", "fp8_e4m3") and cache[-1] != head_dim_qk
    arguments = {"page_size": cache[1],
                 "kv_encoding": _ENCODINGS.get(cache[-1], "plain") if is_encoded else "plain"}
    return _run(sparse_mla_decode_descriptor, arguments, q, (batch, num_q_heads, seqlen_q), kv=kv,
                indices=indices, topk_length=topk_length, extra_kv=extra_kv,
                extra_indices=extra_indices, extra_topk_length=extra_topk_length, sinks=sinks,
                head_dim_v=head_dim_v, softmax_scale=softmax_scale, descriptor=descriptor, out=out,
                lse=lse, max_logits=max_logits, stream=stream, runtime=runtime)


@traceable
def sparse_mla_prefill(q: Any, kv: Any, indices: Any, *, topk_length: Any = None,
                       sinks: Any = None, head_dim_v: int = 512,
                       softmax_scale: Optional[float] = None, descriptor: Fields = None,
                       out: Any = None, lse: Any = None, max_logits: Any = None,
                       stream: Stream = None,
                       runtime: Optional[Runtime] = None) -> Tuple[Any, Any, Any]:
    """The same over rows of tokens, without a batch: requests lie end to end, and indices count
    from the first row of all.

    q: [s_q, num_q_heads, head_dim_qk]. kv: [s_kv, 1, head_dim_qk].
    indices: int32 [s_q, 1, topk]. topk_length: int32 [s_q].

    Returns out [s_q, num_q_heads, head_dim_v], and lse and the largest scaled scores, fp32
    [s_q, num_q_heads]. All else as of sparse_mla_decode.
    """
    _, (s_q, num_q_heads, _) = dtype_and_shape("q", q, 3)
    return _run(sparse_mla_prefill_descriptor, {}, q, (s_q, num_q_heads), kv=kv, indices=indices,
                topk_length=topk_length, sinks=sinks, head_dim_v=head_dim_v,
                softmax_scale=softmax_scale, descriptor=descriptor, out=out, lse=lse,
                max_logits=max_logits, stream=stream, runtime=runtime)
