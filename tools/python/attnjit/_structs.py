"""The structs of attnjit/attnjit.h as ctypes sees them. tests/python compares every size and
offset with the C compiler's."""

from __future__ import annotations

import ctypes
from typing import Sequence, Tuple, Type

ABI_VERSION = 1
MAX_RANK = 5
MAX_PARTIALS = 32

LogFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)
AllocateFunction = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32,
                                    ctypes.c_size_t)
ReleaseFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p,
                                   ctypes.c_size_t)


class Miss(ctypes.Structure):
    """attnjit_miss"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("arch", ctypes.c_char_p),
        ("key", ctypes.c_char_p),
        ("reason", ctypes.c_char_p),
        ("detail", ctypes.c_char_p),
    ]


MissFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Miss))


class RuntimeOptions(ctypes.Structure):
    """attnjit_runtime_options"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("device", ctypes.c_int32),
        ("forbid_jit", ctypes.c_int32),
        ("templates", ctypes.c_char_p),
        ("cache_directory", ctypes.c_char_p),
        ("cache_layers", ctypes.POINTER(ctypes.c_char_p)),
        ("num_cache_layers", ctypes.c_size_t),
        ("cache_sharing", ctypes.c_int32),
        ("trusts_pointers", ctypes.c_int32),
        ("cache_max_bytes", ctypes.c_uint64),
        ("nvrtc", ctypes.c_char_p),
        ("miss_trace", ctypes.c_char_p),
        ("user", ctypes.c_void_p),
        ("log", LogFunction),
        ("on_miss", MissFunction),
        ("allocate", AllocateFunction),
        ("release", ReleaseFunction),
    ]


class Tensor(ctypes.Structure):
    """attnjit_tensor"""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
    ]


class PlanOptions(ctypes.Structure):
    """attnjit_plan_options"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("max_batch", ctypes.c_int32),
        ("seqlen_q", ctypes.c_int32),
        ("max_seqlen_kv", ctypes.c_int32),
    ]


class PrefillSplit(ctypes.Structure):
    """attnjit_prefill_split"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("workspace_bytes", ctypes.c_int64),
        ("num_splits", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


def _call_struct(name: str, tensors: Sequence[str], others: Sequence[Tuple[str, type]] = (),
                 before: Sequence[Tuple[str, type]] = ()) -> Type[ctypes.Structure]:
    """A call: its size, what is `before` the tensors, these in order, and the others."""
    fields = [("struct_size", ctypes.c_size_t), *before]
    fields += [(tensor, Tensor) for tensor in tensors]
    fields += others
    return type(name, (ctypes.Structure,), {"_fields_": fields, "__doc__": f"attnjit_{name}"})


_SCALE = [("softmax_scale", ctypes.c_float), ("reserved", ctypes.c_int32)]

DecodeCall = _call_struct(
    "decode_call",
    ["q", "k_cache", "v_cache", "block_table", "seq_lens", "mask", "sinks", "out", "lse"], _SCALE)

PrefillCall = _call_struct(
    "prefill_call",
    ["q", "k", "v", "k_rope", "q_rope", "q_scales", "k_scales", "v_scales", "rope_scales",
     "out_scale", "q_offsets", "q_lens", "kv_offsets", "seq_lens", "block_table",
     "query_positions", "key_positions", "mask", "prefix_lens", "q_segments", "kv_segments",
     "alibi_slopes", "bias", "block_mask", "block_rows", "block_columns", "sinks", "out", "lse"],
    [("softmax_scale", ctypes.c_float), ("softcap", ctypes.c_float)])

SparseMlaCall = _call_struct(
    "sparse_mla_call",
    ["q", "kv", "indices", "topk_length", "extra_kv", "extra_indices", "extra_topk_length",
     "sinks", "out", "lse", "max_logits"], _SCALE)

AppendKvCacheCall = _call_struct(
    "append_kv_cache_call",
    ["k_new", "v_new", "k_cache", "v_cache", "new_offsets", "block_table", "seq_lens",
     "slot_mapping", "k_scale", "v_scale"])


class PartialAttention(ctypes.Structure):
    """attnjit_partial_attention"""

    _fields_ = [("out", Tensor), ("lse", Tensor)]


MergeStatesCall = _call_struct(
    "merge_states_call", ["out", "lse"],
    before=[("partials", ctypes.c_void_p), ("num_partials", ctypes.c_size_t)])
