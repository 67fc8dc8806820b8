"""Attention of many query tokens per request as one call: the kernel is found or made, outputs
allocated, and few query rows spread over the GPU."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from ._arguments import Fields, refuse_descriptor, shown
from .allocation import allocate, workspace_for
from .compiled_calls import traceable
from .descriptors import mla_prefill_rope_descriptor, prefill_descriptor
from .kernels import Kernel
from .prepared import kernel_of, mask_fields, runtime_of, value_columns, with_fields
from .runtime import Runtime
from .streams import Stream, stream_handle
from .tensors import DTYPES, dtype_and_shape, dtype_of, torch_types


def output_dtype(q_dtype: str, fields: Fields) -> str:
    """The dtype of out: what `fields` say, else q's, else bf16 where that is fp8. Raises
    InvalidDescriptorError."""
    of_q = "bf16" if q_dtype.startswith("fp8") else q_dtype
    dtype = with_fields({"dtype_out": of_q}, fields)["dtype_out"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        refuse_descriptor("dtype_out", shown(dtype), f"must be one of {', '.join(DTYPES)}",
                          "use one of these names")
    return dtype


def _inferred_fields(q_dtype: str, kv_dtype: str, softcap: float,
                     tensors: Dict[str, Any]) -> Dict[str, Any]:
    """The fields that follow from which tensors a call has, and from their types."""
    fields: Dict[str, Any] = {"has_sinks": tensors.get("sinks") is not None,
                              "dtype_kv": kv_dtype,
                              "dtype_out": output_dtype(q_dtype, None)}
    if softcap:
        fields["score_modifier"] = "softcap"
    elif tensors.get("alibi_slopes") is not None:
        fields["score_modifier"] = "alibi"
    elif tensors.get("bias") is not None:
        fields["score_modifier"] = "additive_bias"
        fields["dtype_bias"] = dtype_of("bias", tensors["bias"])
    if tensors.get("mask") is not None:
        fields.update(mask_fields(tensors["mask"]))
    return fields


def _run(kernel: Kernel, q: Any, width: int, fields: Dict[str, Any], *, out: Any, lse: Any,
         softmax_scale: Optional[float], softcap: float, workspace: Any, stream: Stream,
         **tensors: Any) -> Tuple[Any, Any]:
    """Allocates what is left out, and runs in the parts that the shapes ask for."""
    _, shape = dtype_and_shape("q", q, 3, 4)
    if out is None:
        out = allocate("out", (*shape[:-1], width), fields["dtype_out"], like=q,
                       stream=stream)
    if lse is None:
        rows = shape[1::-1] if len(shape) == 3 else (shape[0], shape[2], shape[1])
        lse = allocate("lse", rows, "fp32", like=q, stream=stream)
    tensors.update(q=q, out=out, lse=lse)
    split = kernel.plan_prefill(softmax_scale=softmax_scale, softcap=softcap, **tensors)
    memory = workspace_for(split.workspace_bytes, workspace, like=q, stream=stream)
    kernel.run_prefill(softmax_scale=softmax_scale, softcap=softcap, split=split,
                       workspace=memory, stream=stream, **tensors)
    return out, lse


def _prefill(layout: str, tag: str, q: Any, k: Any, v: Any, *, softmax_scale: Optional[float],
             softcap: float, causal: bool, window_left: int, window_right: int, head_dim_v: int,
             descriptor: Fields, out: Any, lse: Any, workspace: Any, stream: Stream,
             runtime: Optional[Runtime], **tensors: Any) -> Tuple[Any, Any]:
    dtype, shape = dtype_and_shape("q", q, 3, 4)
    suffix, ranks = ("_cache", (4, 5)) if layout == "paged" else ("", (3, 4))
    kv_dtype, keys = dtype_and_shape(f"k{suffix}", k, *ranks)
    heads_first = tag in ("hnd", "bhsd")
    name, values = ("k", k) if v is None else ("v", v)
    width = value_columns(head_dim_v, name + suffix, values, *ranks)
    fields = with_fields(_inferred_fields(dtype, kv_dtype, softcap, tensors), descriptor)
    used = runtime_of(q, runtime)
    kernel = kernel_of(
        used, prefill_descriptor, stream_handle(stream, used.device,
                                                of_torch=type(q) in torch_types),
        fields=fields, num_q_heads=shape[-2], num_kv_heads=keys[-3 if heads_first else -2],
        head_dim_qk=shape[-1], head_dim_v=width, dtype=dtype, kv_layout=layout, kv_layout_tag=tag,
        page_size=keys[-2 if heads_first else -3] if layout == "paged" else 0,
        v_is_prefix_of_k=v is None, causal=causal, window_left=window_left,
        window_right=window_right)
    return _run(kernel, q, width, fields, out=out, lse=lse, softmax_scale=softmax_scale,
                softcap=softcap, workspace=workspace, stream=stream, k=k, v=v, **tensors)


@traceable
def prefill(q: Any, k: Any, v: Any = None, *, kv_layout_tag: Optional[str] = None,
            softmax_scale: Optional[float] = None, softcap: float = 0.0, causal: bool = True,
            window_left: int = -1, window_right: int = -1, head_dim_v: int = 0,
            descriptor: Fields = None, out: Any = None, lse: Any = None, workspace: Any = None,
            stream: Stream = None, runtime: Optional[Runtime] = None,
            **tensors: Any) -> Tuple[Any, Any]:
    """Attention over ragged or dense keys.

    q: ragged [total_q, num_q_heads, head_dim_qk] with q_offsets, int32 [batch + 1]; or dense
    [batch, seqlen_q, num_q_heads, head_dim_qk].
    k, v: ragged ("thd") [total_kv, num_kv_heads, head_dim] with kv_offsets, int32 [batch + 1];
    or dense, "bshd" [batch, seqlen_kv, num_kv_heads, head_dim] or "bhsd", dimensions 1 and 2
    swapped. kv_layout_tag: by default thd of three and bshd of four dimensions. v None: v is the
    first head_dim_v columns of k.
    causal: bottom-right aligned. window_left, window_right: keys before and after a query's own
    that it sees, -1 = all.
    softcap: c of c * tanh(score / c); 0 = none.
    descriptor: further fields of the descriptor, such as {"mask": "document"}, or the grains of
    scales.
    tensors: the others of Kernel.run_prefill, by name: q_offsets, kv_offsets, seq_lens, q_lens,
    mask (a materialized one, in place of causal and windows), sinks, alibi_slopes, bias, …
    out, lse, workspace: by default allocated by torch.

    Returns out, as q with head_dim_v columns, and lse, fp32 [num_q_heads, total_q] or
    [batch, num_q_heads, seqlen_q], natural logarithm, -inf where nothing is seen. Raises
    AttnjitError.
    """
    _, keys = dtype_and_shape("k", k, 3, 4)
    tag = kv_layout_tag or ("thd" if len(keys) == 3 else "bshd")
    return _prefill("ragged" if tag == "thd" else "dense", tag, q, k, v,
                    softmax_scale=softmax_scale, softcap=softcap, causal=causal,
                    window_left=window_left, window_right=window_right, head_dim_v=head_dim_v,
                    descriptor=descriptor, out=out, lse=lse, workspace=workspace, stream=stream,
                    runtime=runtime, **tensors)


@traceable
def prefill_kvcache(q: Any, k_cache: Any, v_cache: Any, block_table: Any, seq_lens: Any, *,
                    kv_layout_tag: str = "nhd", softmax_scale: Optional[float] = None,
                    softcap: float = 0.0, causal: bool = True, window_left: int = -1,
                    window_right: int = -1, head_dim_v: int = 0, descriptor: Fields = None,
                    out: Any = None, lse: Any = None, workspace: Any = None,
                    stream: Stream = None, runtime: Optional[Runtime] = None,
                    **tensors: Any) -> Tuple[Any, Any]:
    """Attention over a paged cache that holds the keys of the query tokens already.

    k_cache, v_cache: nhd [num_pages, page_size, num_kv_heads, head_dim]; hnd: dimensions 1 and 2
    swapped; fp8 too. v_cache None: v is the first head_dim_v columns of k.
    block_table: int32 [batch, max_pages]. seq_lens: int32 [batch], the query tokens included.
    q and all else, and what is returned and raised, as of prefill.
    """
    return _prefill("paged", kv_layout_tag, q, k_cache, v_cache, block_table=block_table,
                    seq_lens=seq_lens, softmax_scale=softmax_scale, softcap=softcap,
                    causal=causal, window_left=window_left, window_right=window_right,
                    head_dim_v=head_dim_v, descriptor=descriptor, out=out, lse=lse,
                    workspace=workspace, stream=stream, runtime=runtime, **tensors)


@traceable
def mla_prefill_rope(q: Any, k: Any, v: Any, k_rope: Any, *, q_offsets: Any, kv_offsets: Any,
                     query_positions: Any = None, block_table: Any = None, causal: bool = True,
                     softmax_scale: Optional[float] = None, descriptor: Fields = None,
                     out: Any = None, lse: Any = None, workspace: Any = None,
                     stream: Stream = None, runtime: Optional[Runtime] = None,
                     **tensors: Any) -> Tuple[Any, Any]:
    """Prefill of latent attention whose k and v are projected up, while the rope columns of k, one
    head for all, stay in the cache.

    q: [total_q, num_heads, q_depth]. k, v: [total_rows, num_heads, depth].
    k_rope: paged [num_pages, page_size, 1, width] with block_table and query_positions, int32
    [batch], the tokens cached before those of q; or dense [batch, num_keys, 1, width]. Its last
    q_depth - depth columns are read.
    q_offsets, kv_offsets: int32 [batch + 1].
    All else, and what is returned and raised, as of prefill.
    """
    dtype, (_, num_heads, q_depth) = dtype_and_shape("q", q, 3)
    _, (_, _, depth) = dtype_and_shape("k", k, 3)
    rope_dtype, rope = dtype_and_shape("k_rope", k_rope, 4)
    fields = with_fields({"dtype_out": output_dtype(dtype, None)}, descriptor)
    used = runtime_of(q, runtime)
    kernel = kernel_of(
        used, mla_prefill_rope_descriptor, stream_handle(stream, used.device,
                                                         of_torch=type(q) in torch_types),
        fields=fields, num_heads=num_heads, q_depth=q_depth, depth=depth, dtype=dtype,
        dtype_rope=rope_dtype, page_size=rope[1] if block_table is not None else 0, causal=causal)
    return _run(kernel, q, depth, fields, out=out, lse=lse, softmax_scale=softmax_scale,
                softcap=0.0, workspace=workspace, stream=stream, k=k, v=v, k_rope=k_rope,
                q_offsets=q_offsets, kv_offsets=kv_offsets, query_positions=query_positions,
                block_table=block_table, **tensors)
