"""The operations as custom ops of torch, torch.ops.attnjit.*, with what torch.compile needs to
trace through them. Registered at import: `import attnjit` does it where torch was imported before,
else the first call on one of torch's tensors does.

The ops take what the operations of the same name take but out, lse, workspace, plan, stream and
runtime; a descriptor's further fields are JSON. They have no gradient.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import torch

from . import compiled_calls, operations
from .errors import TensorError
from .prefill_operations import output_dtype
from .tensors import TORCH_NAMES, dtype_of_torch

_DECODE_OPTIONS = (
    "float? softmax_scale=None, bool causal=True, int window_left=-1, Tensor? sinks=None, "
    "bool batch_invariant=False, SymInt max_seqlen_kv=0, str? descriptor=None")
_PREFILL_OPTIONS = (
    "float? softmax_scale=None, float softcap=0.0, bool causal=True, int window_left=-1, "
    "int window_right=-1, int head_dim_v=0, str? descriptor=None")
# What Kernel.run_prefill takes besides; in each schema those that are no arguments already.
_PREFILL_TENSORS = (
    "q_offsets", "q_lens", "kv_offsets", "seq_lens", "block_table", "query_positions",
    "key_positions", "mask", "prefix_lens", "q_segments", "kv_segments", "alibi_slopes", "bias",
    "block_mask", "block_rows", "block_columns", "sinks", "q_scales", "k_scales", "v_scales",
    "rope_scales", "out_scale", "q_rope")
_SPARSE_OPTIONS = ("Tensor? sinks=None, int head_dim_v=512, float? softmax_scale=None, "
                   "str? descriptor=None")


def _other_tensors(*arguments: str) -> str:
    return ", ".join(f"Tensor? {name}=None" for name in _PREFILL_TENSORS if name not in arguments)


_SCHEMAS = {
    "paged_decode":
        "(Tensor q, Tensor k_cache, Tensor? v_cache, Tensor block_table, Tensor seq_lens, *, "
        f"{_DECODE_OPTIONS}, Tensor? mask=None, int head_dim_v=0, str kv_layout_tag='nhd') "
        "-> (Tensor, Tensor)",
    "mla_decode":
        "(Tensor q, Tensor kv_cache, Tensor block_table, Tensor seq_lens, *, "
        f"int head_dim_v=512, {_DECODE_OPTIONS}) -> (Tensor, Tensor)",
    "prefill":
        f"(Tensor q, Tensor k, Tensor? v=None, *, str? kv_layout_tag=None, {_PREFILL_OPTIONS}, "
        f"{_other_tensors()}) -> (Tensor, Tensor)",
    "prefill_kvcache":
        "(Tensor q, Tensor k_cache, Tensor? v_cache, Tensor block_table, Tensor seq_lens, *, "
        f"str kv_layout_tag='nhd', {_PREFILL_OPTIONS}, "
        f"{_other_tensors('block_table', 'seq_lens')}) -> (Tensor, Tensor)",
    "mla_prefill_rope":
        "(Tensor q, Tensor k, Tensor v, Tensor k_rope, *, Tensor q_offsets, Tensor kv_offsets, "
        "bool causal=True, float? softmax_scale=None, str? descriptor=None, "
        f"{_other_tensors('q_offsets', 'kv_offsets')}) -> (Tensor, Tensor)",
    "sparse_mla_decode":
        "(Tensor q, Tensor kv, Tensor indices, *, Tensor? topk_length=None, "
        "Tensor? extra_kv=None, Tensor? extra_indices=None, Tensor? extra_topk_length=None, "
        f"{_SPARSE_OPTIONS}) -> (Tensor, Tensor, Tensor)",
    "sparse_mla_prefill":
        "(Tensor q, Tensor kv, Tensor indices, *, Tensor? topk_length=None, "
        f"{_SPARSE_OPTIONS}) -> (Tensor, Tensor, Tensor)",
    "append_kv_cache":
        "(Tensor k_new, Tensor? v_new, Tensor(a!) k_cache, Tensor(b!)? v_cache, *, "
        "Tensor? new_offsets=None, Tensor? block_table=None, Tensor? seq_lens=None, "
        "Tensor? slot_mapping=None, Tensor? k_scale=None, Tensor? v_scale=None, "
        "str kv_layout_tag='nhd') -> ()",
    "merge_attention_states": "(Tensor[] outs, Tensor[] lses) -> (Tensor, Tensor)",
}


def _check_q(q: torch.Tensor, *ranks: int) -> None:
    """A trace refuses what the run would. Raises TensorError."""
    dtype_of_torch(q.dtype)
    if q.dim() not in ranks:
        raise TensorError(f"q has shape {list(q.shape)}: must have "
                          f"{' or '.join(map(str, ranks))} dimensions")


def _outputs(q: torch.Tensor, width: Any, *ranks: int,
             dtype: Optional[torch.dtype] = None) -> Tuple[torch.Tensor, torch.Tensor]:
    """Out and lse of q [batch, seqlen_q, heads, columns] or [total_q, heads, columns]."""
    _check_q(q, *ranks)
    if q.dim() == 3:
        rows: Tuple[Any, ...] = (q.shape[1], q.shape[0])
    else:
        rows = (q.shape[0], q.shape[2], q.shape[1])
    return (q.new_empty((*q.shape[:-1], width), dtype=dtype or q.dtype),
            q.new_empty(rows, dtype=torch.float32))


def _paged_decode(q: torch.Tensor, k_cache: torch.Tensor, v_cache: Optional[torch.Tensor],
                  *_: Any, head_dim_v: int = 0, **__: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    return _outputs(q, head_dim_v or (k_cache if v_cache is None else v_cache).shape[-1], 4)


def _mla_decode(q: torch.Tensor, *_: Any, head_dim_v: int = 512,
                **__: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    return _outputs(q, head_dim_v, 4)


def _prefill(q: torch.Tensor, k: torch.Tensor, v: Optional[torch.Tensor] = None, *_: Any,
             head_dim_v: int = 0, descriptor: Optional[str] = None,
             **__: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    width = head_dim_v or (k if v is None else v).shape[-1]
    dtype = output_dtype(dtype_of_torch(q.dtype), descriptor)
    return _outputs(q, width, 3, 4, dtype=getattr(torch, TORCH_NAMES[dtype]))


def _sparse_mla_decode(q: torch.Tensor, *_: Any, head_dim_v: int = 512,
                       **__: Any) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    out, lse = _outputs(q, head_dim_v, 4)
    return out, lse, torch.empty_like(lse)


def _sparse_mla_prefill(q: torch.Tensor, *_: Any, head_dim_v: int = 512,
                        **__: Any) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    _check_q(q, 3)
    rows = q.new_empty(q.shape[:2], dtype=torch.float32)
    return q.new_empty((*q.shape[:2], head_dim_v)), rows, torch.empty_like(rows)


def _append_kv_cache(*_: Any, **__: Any) -> None:
    return None


def _merge_attention_states(outs: List[torch.Tensor],
                            lses: List[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
    return outs[0].new_empty(outs[0].shape), lses[0].new_empty(lses[0].shape)


# What each op gives, of tensors without memory.
_FAKES = {
    "paged_decode": _paged_decode, "mla_decode": _mla_decode, "prefill": _prefill,
    "prefill_kvcache": _prefill, "mla_prefill_rope": _prefill,
    "sparse_mla_decode": _sparse_mla_decode, "sparse_mla_prefill": _sparse_mla_prefill,
    "append_kv_cache": _append_kv_cache, "merge_attention_states": _merge_attention_states,
}


def _implementation(name: str) -> Callable[..., Any]:
    operation = getattr(operations, name).__wrapped__

    def call(*tensors: Any, **keywords: Any) -> Any:
        return operation(*tensors, **{key: value for key, value in keywords.items()
                                      if value is not None})

    return call


_library = torch.library.Library("attnjit", "DEF")


def _register() -> None:
    # Kernels check strides, so those of an eager run must be kept.
    tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)
    for name, schema in _SCHEMAS.items():
        _library.define(name + schema, tags=tags)
        _library.impl(name, _implementation(name), "CUDA")
        torch.library.register_fake(f"attnjit::{name}", _FAKES[name], lib=_library)
    compiled_calls.custom_ops = torch.ops.attnjit
    compiled_calls.to_json = torch.compiler.assume_constant_result(compiled_calls.to_json)
    compiled_calls.is_compiling = torch.compiler.is_compiling


_register()
