"""Decode over a paged cache as one call: kernel and plan are found or made, outputs allocated."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from ._arguments import MOST_INT32, Fields, integer
from .allocation import allocate, workspace_for
from .compiled_calls import traceable
from .decode_plan import DecodePlan
from .descriptors import decode_descriptor
from .prepared import (kernel_of, mask_fields, plan_of, plan_or_none, runtime_of, value_columns,
                       with_fields)
from .runtime import Runtime
from .streams import Stream, stream_handle
from .tensors import dtype_and_shape, torch_types


def _plan_for(q: Any, k_cache: Any, v_cache: Any, block_table: Any, *, head_dim_v: int,
              kv_layout_tag: str, batch_invariant: bool, max_seqlen_kv: int, fields: Fields,
              stream: Stream, runtime: Optional[Runtime], **arguments: Any) -> DecodePlan:
    """The plan that this thread has for such calls."""
    dtype, (batch, seqlen_q, num_q_heads, head_dim_qk) = dtype_and_shape("q", q, 4)
    _, cache = dtype_and_shape("k_cache", k_cache, 4, 5)
    page_size, num_kv_heads = cache[-3:-1] if kv_layout_tag == "nhd" else cache[-2:-4:-1]
    used = runtime_of(q, runtime)
    handle = stream_handle(stream, used.device, of_torch=type(q) in torch_types)
    kernel = kernel_of(
        used, decode_descriptor, handle, fields=fields, num_q_heads=num_q_heads,
        num_kv_heads=num_kv_heads, head_dim_qk=head_dim_qk, head_dim_v=head_dim_v, dtype=dtype,
        page_size=page_size, max_seqlen_q=seqlen_q, kv_layout_tag=kv_layout_tag,
        v_is_prefix_of_k=v_cache is None, batch_invariant=batch_invariant, **arguments)
    most_keys = integer("max_seqlen_kv", max_seqlen_kv, 0, MOST_INT32, "give the keys of the "
                        "longest request, or 0")
    if batch_invariant and most_keys == 0:
        _, (_, max_pages) = dtype_and_shape("block_table", block_table, 2)
        most_keys = max(1, max_pages * page_size)
    return plan_of(kernel, batch, seqlen_q, most_keys, handle)


@traceable
def paged_decode(q: Any, k_cache: Any, v_cache: Any, block_table: Any, seq_lens: Any, *,
                 softmax_scale: Optional[float] = None, causal: bool = True,
                 window_left: int = -1, mask: Any = None, sinks: Any = None,
                 head_dim_v: int = 0, kv_layout_tag: str = "nhd", batch_invariant: bool = False,
                 max_seqlen_kv: int = 0, descriptor: Fields = None, out: Any = None,
                 lse: Any = None, workspace: Any = None, plan: Optional[DecodePlan] = None,
                 stream: Stream = None, runtime: Optional[Runtime] = None) -> Tuple[Any, Any]:
    """Attention of few query tokens per request over a paged cache: GQA, MQA, MHA, and MLA where
    v_cache is None.

    q: [batch, seqlen_q, num_q_heads, head_dim_qk], bf16 or fp16.
    k_cache, v_cache: nhd [num_pages, page_size, num_kv_heads, head_dim]; hnd: dimensions 1 and 2
    swapped; rank 5: a pool per request. v_cache None: v is the first head_dim_v columns of k.
    block_table: int32 [batch, max_pages]. seq_lens: int32 [batch], the keys being decoded
    included.
    window_left: keys before its own that a query sees, -1 = all.
    mask: uint8 or bool (non-zero = visible), or fp16, bf16, fp32 (added),
    [batch|1, num_q_heads|1, seqlen_q|1, keys], in place of causal and window_left.
    sinks: fp32 [num_q_heads], natural logarithm, joins the softmax's denominator only.
    batch_invariant: a result is the same to the bit in any batch; max_seqlen_kv are then the keys
    of the longest request, by default what block_table has room for. It is rounded up to a power
    of two, and decides how large a workspace is, not what the results are.
    descriptor: further fields of the descriptor.
    plan: of Kernel.plan_decode, updated by the caller, for calls that share lengths (the layers of
    a step): the descriptor's arguments are then not looked at. Without it each call splits its
    batch itself, by a plan that only this thread and stream use; graphs that replay side by side
    need plans of their own.
    out, lse, workspace: by default allocated by torch.

    Returns out [batch, seqlen_q, num_q_heads, head_dim_v], and lse, fp32
    [batch, num_q_heads, seqlen_q], natural logarithm, without the sink. Raises AttnjitError.
    """
    dtype, (batch, seqlen_q, num_q_heads, _) = dtype_and_shape("q", q, 4)
    name, values = ("k_cache", k_cache) if v_cache is None else ("v_cache", v_cache)
    width = value_columns(head_dim_v, name, values, 4, 5)
    plan = plan_or_none(plan)
    if plan is None:
        fields = descriptor if mask is None else with_fields(mask_fields(mask), descriptor)
        plan = _plan_for(
            q, k_cache, v_cache, block_table, head_dim_v=width, kv_layout_tag=kv_layout_tag,
            causal=causal, window_left=window_left, has_sinks=sinks is not None,
            batch_invariant=batch_invariant, max_seqlen_kv=max_seqlen_kv, fields=fields,
            stream=stream, runtime=runtime)
        plan.update(seq_lens, stream=stream)
    if out is None:
        out = allocate("out", (batch, seqlen_q, num_q_heads, width), dtype, like=q, stream=stream)
    if lse is None:
        lse = allocate("lse", (batch, num_q_heads, seqlen_q), "fp32", like=q, stream=stream)
    plan.run(q=q, k_cache=k_cache, v_cache=v_cache, block_table=block_table, seq_lens=seq_lens,
             mask=mask, sinks=sinks, out=out, lse=lse, softmax_scale=softmax_scale, stream=stream,
             workspace=workspace_for(plan.workspace_bytes, workspace, like=q, stream=stream))
    return out, lse


@traceable
def mla_decode(q: Any, kv_cache: Any, block_table: Any, seq_lens: Any, *, head_dim_v: int = 512,
               softmax_scale: Optional[float] = None, causal: bool = True, window_left: int = -1,
               sinks: Any = None, batch_invariant: bool = False, max_seqlen_kv: int = 0,
               descriptor: Fields = None, out: Any = None, lse: Any = None, workspace: Any = None,
               plan: Optional[DecodePlan] = None, stream: Stream = None,
               runtime: Optional[Runtime] = None) -> Tuple[Any, Any]:
    """Decode over DeepSeek's latent cache, whose rows hold K, and V in their first head_dim_v
    columns.

    q: [batch, seqlen_q, num_q_heads, head_dim_qk], such as 576 columns.
    kv_cache: [num_pages, page_size, 1, head_dim_qk].
    All else, and what is returned and raised, as of paged_decode.
    """
    return paged_decode(
        q, kv_cache, None, block_table, seq_lens, head_dim_v=head_dim_v,
        softmax_scale=softmax_scale, causal=causal, window_left=window_left, sinks=sinks,
        batch_invariant=batch_invariant, max_seqlen_kv=max_seqlen_kv, descriptor=descriptor,
        out=out, lse=lse, workspace=workspace, plan=plan, stream=stream, runtime=runtime)
