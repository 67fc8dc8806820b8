"""The write of new tokens into a paged cache, and the merge of attention over parts of the keys,
each as one call."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from ._arguments import tensors
from .allocation import allocate
from .compiled_calls import traceable
from .descriptors import append_kv_cache_descriptor, merge_states_descriptor
from .errors import TensorError
from .prepared import kernel_of, runtime_of
from .runtime import Runtime
from .streams import Stream, stream_handle
from .tensors import dtype_and_shape, torch_types


def _scale_grain(k_scale: Any) -> str:
    if k_scale is None:
        return "none"
    _, shape = dtype_and_shape("k_scale", k_scale, 0, 1, 2)
    return "per_tensor" if shape in ((), (1,)) else "per_head"


@traceable
def append_kv_cache(k_new: Any, v_new: Any, k_cache: Any, v_cache: Any, *,
                    new_offsets: Any = None, block_table: Any = None, seq_lens: Any = None,
                    slot_mapping: Any = None, k_scale: Any = None, v_scale: Any = None,
                    kv_layout_tag: str = "nhd", stream: Stream = None,
                    runtime: Optional[Runtime] = None) -> None:
    """Writes the K and V of new tokens into a paged cache, as they are or in fp8.

    k_new, v_new: [total_new, num_kv_heads, head_dim] with new_offsets, int32 [batch + 1]; or
    [batch, seqlen_new, num_kv_heads, head_dim]. v_new and v_cache None: v is a prefix of k.
    k_cache, v_cache: [num_pages, page_size, num_kv_heads, head_dim]; hnd: dimensions 1 and 2
    swapped; of k_new's type or fp8.
    block_table, int32 [batch, max_pages], and seq_lens, int32 [batch], the new tokens included:
    they take the last positions. Or slot_mapping, int32 or int64 [tokens]: page * page_size +
    row, negative = not written.
    k_scale, v_scale: fp32, [1] or [num_kv_heads] or [batch, num_kv_heads]: what values are
    divided by before they become fp8; 1 where not given. Of one head, [1] is one for all.

    Raises AttnjitError.
    """
    dtype, new = dtype_and_shape("k_new", k_new, 3, 4)
    dtype_kv, cache = dtype_and_shape("k_cache", k_cache, 4, 5)
    width = new[-1] if v_new is None else dtype_and_shape("v_new", v_new, 3, 4)[1][-1]
    used = runtime_of(k_new, runtime)
    kernel = kernel_of(
        used, append_kv_cache_descriptor,
        stream_handle(stream, used.device, of_torch=type(k_new) in torch_types),
        num_kv_heads=new[-2], head_dim_qk=new[-1], head_dim_v=width, dtype=dtype,
        dtype_kv=dtype_kv, page_size=cache[-3 if kv_layout_tag == "nhd" else -2],
        kv_layout_tag=kv_layout_tag, v_is_prefix_of_k=v_new is None,
        scales_kv=_scale_grain(k_scale))
    kernel.run_append_kv_cache(
        k_new=k_new, v_new=v_new, k_cache=k_cache, v_cache=v_cache, new_offsets=new_offsets,
        block_table=block_table, seq_lens=seq_lens, slot_mapping=slot_mapping, k_scale=k_scale,
        v_scale=v_scale, stream=stream)


@traceable
def merge_attention_states(outs: Sequence[Any], lses: Sequence[Any], *, out: Any = None,
                           lse: Any = None, stream: Stream = None,
                           runtime: Optional[Runtime] = None) -> Tuple[Any, Any]:
    """Attention over all keys from attention over parts of them: chunks of a prefill, a shared
    prefix and the rest, the ranks of context-parallel decode.

    outs: 1 to 32 tensors [tokens, num_heads, head_dim]. lses: as many, fp32 [tokens, num_heads],
    natural logarithms without sinks, of any strides; -inf or +inf where a part has no key.
    out, lse: by default allocated by torch; may be a part's.

    Returns out [tokens, num_heads, head_dim] and lse [tokens, num_heads]; 0 and -inf where no
    part has a key. Raises AttnjitError.
    """
    if len(tensors("outs", outs)) != len(tensors("lses", lses)) or not outs:
        raise TensorError(f"{len(outs)} outs and {len(lses)} lses: must be as many, at least one")
    dtype, shape = dtype_and_shape("outs[0]", outs[0], 3)
    used = runtime_of(outs[0], runtime)
    kernel = kernel_of(
        used, merge_states_descriptor,
        stream_handle(stream, used.device, of_torch=type(outs[0]) in torch_types),
        head_dim=shape[-1], dtype=dtype)
    if out is None:
        out = allocate("out", shape, dtype, like=outs[0], stream=stream)
    if lse is None:
        lse = allocate("lse", shape[:2], "fp32", like=outs[0], stream=stream)
    kernel.run_merge_states(partials=list(zip(outs, lses)), out=out, lse=lse, stream=stream)
    return out, lse
