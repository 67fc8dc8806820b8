"""Descriptors of the usual calls, as dictionaries that Runtime.prepare takes. All counts are those
of one GPU. Any field of generator/README.md may be set in what they return. Arguments that are
computed with are InvalidArgumentErrors where they are no integers; Runtime.prepare judges the
rest."""

from __future__ import annotations

from typing import Any, Dict

from ._arguments import MOST_INT32, integer

Fields = Dict[str, Any]


def _masked(fields: Fields, causal: bool, window_left: int, window_right: int) -> Fields:
    """Adds the mask: a window where one is bounded, which a causal mask ends at the diagonal."""
    left, right = (integer(name, value, -1, MOST_INT32, "give a number of keys, or -1 for all")
                   for name, value in (("window_left", window_left),
                                       ("window_right", window_right)))
    if left >= 0 or right >= 0:
        fields["mask"] = "sliding_window"
        fields["window_left"] = left
        fields["window_right"] = 0 if causal else right
    else:
        fields["mask"] = "causal" if causal else "none"
    return fields


def decode_descriptor(*, num_q_heads: int, num_kv_heads: int, head_dim_qk: int, head_dim_v: int,
                      dtype: str = "bf16", page_size: int = 64, max_seqlen_q: int = 1,
                      kv_layout_tag: str = "nhd", v_is_prefix_of_k: bool = False,
                      causal: bool = True, window_left: int = -1, has_sinks: bool = False,
                      batch_invariant: bool = False) -> Fields:
    """Decode over a paged cache. window_left: keys before a query's own that it sees, -1 = all."""
    fields = {
        "operation": "decode", "dtype_q": dtype, "dtype_kv": dtype, "dtype_out": dtype,
        "head_dim_qk": head_dim_qk, "head_dim_v": head_dim_v, "num_q_heads": num_q_heads,
        "num_kv_heads": num_kv_heads, "max_seqlen_q": max_seqlen_q, "page_size": page_size,
        "kv_layout_tag": kv_layout_tag, "has_sinks": has_sinks,
        "value_source": "prefix_of_k" if v_is_prefix_of_k else "separate",
        "batch_invariant": batch_invariant,
    }
    return _masked(fields, causal, window_left, -1)


def mla_decode_descriptor(*, num_q_heads: int, page_size: int = 64, max_seqlen_q: int = 1,
                          kv_lora_rank: int = 512, qk_rope_head_dim: int = 64,
                          dtype: str = "bf16", causal: bool = True, window_left: int = -1,
                          has_sinks: bool = False, batch_invariant: bool = False) -> Fields:
    """Decode over DeepSeek's latent cache, whose rows hold K, and V in their first columns."""
    rank, rope = (integer(name, value, 0, MOST_INT32, "give a number of columns")
                  for name, value in (("kv_lora_rank", kv_lora_rank),
                                      ("qk_rope_head_dim", qk_rope_head_dim)))
    return decode_descriptor(
        num_q_heads=num_q_heads, num_kv_heads=1, head_dim_qk=rank + rope, head_dim_v=rank,
        dtype=dtype, page_size=page_size, max_seqlen_q=max_seqlen_q, v_is_prefix_of_k=True,
        causal=causal, window_left=window_left, has_sinks=has_sinks,
        batch_invariant=batch_invariant)


def prefill_descriptor(*, num_q_heads: int, num_kv_heads: int, head_dim_qk: int, head_dim_v: int,
                       dtype: str = "bf16", kv_layout: str = "ragged", kv_layout_tag: str = "thd",
                       page_size: int = 0, v_is_prefix_of_k: bool = False, causal: bool = True,
                       window_left: int = -1, window_right: int = -1) -> Fields:
    """Attention of any number of query tokens over ragged, dense or paged keys."""
    fields = {
        "operation": "prefill_kvcache" if kv_layout == "paged" else "prefill",
        "dtype_q": dtype, "dtype_kv": dtype, "dtype_out": dtype, "head_dim_qk": head_dim_qk,
        "head_dim_v": head_dim_v, "num_q_heads": num_q_heads, "num_kv_heads": num_kv_heads,
        "max_seqlen_q": 0, "kv_layout": kv_layout, "kv_layout_tag": kv_layout_tag,
        "page_size": page_size,
        "value_source": "prefix_of_k" if v_is_prefix_of_k else "separate",
    }
    return _masked(fields, causal, window_left, window_right)


def mla_prefill_rope_descriptor(*, num_heads: int, q_depth: int = 192, depth: int = 128,
                                dtype: str = "bf16", dtype_rope: str = "bf16",
                                page_size: int = 0, causal: bool = True) -> Fields:
    """Prefill of latent attention with k and v projected up, and k's rope columns in a cache of
    pages of `page_size` tokens, 0 = dense."""
    return {
        "operation": "mla_prefill_rope", "dtype_q": dtype, "dtype_kv": dtype,
        "dtype_out": "bf16" if str(dtype).startswith("fp8") else dtype, "dtype_rope": dtype_rope,
        "head_dim_qk": q_depth, "head_dim_v": depth, "num_q_heads": num_heads,
        "num_kv_heads": num_heads, "max_seqlen_q": 0,
        "kv_layout": "paged" if page_size else "dense",
        "kv_layout_tag": "nhd" if page_size else "bshd", "page_size": page_size,
        "mask": "causal" if causal else "none",
    }


def _sparse_mla_fields(num_q_heads: int, head_dim_qk: int, head_dim_v: int, dtype: str,
                       has_sinks: bool) -> Fields:
    return {
        "dtype_q": dtype, "dtype_kv": dtype, "dtype_out": dtype, "head_dim_qk": head_dim_qk,
        "head_dim_v": head_dim_v, "num_q_heads": num_q_heads, "num_kv_heads": 1,
        "max_seqlen_q": 0, "value_source": "prefix_of_k", "mask": "none",
        "has_sinks": has_sinks, "sparsity": "token",
    }


def sparse_mla_decode_descriptor(*, num_q_heads: int, page_size: int = 64,
                                 head_dim_qk: int = 576, head_dim_v: int = 512,
                                 kv_encoding: str = "plain", dtype: str = "bf16",
                                 has_sinks: bool = False) -> Fields:
    """Token-sparse MLA over a paged cache; kv_encoding: "plain", "fp8_656" or "fp8_584"."""
    fields = _sparse_mla_fields(num_q_heads, head_dim_qk, head_dim_v, dtype, has_sinks)
    if kv_encoding != "plain":
        fields["dtype_kv"] = "fp8_e4m3"
    return {"operation": "sparse_mla_decode", **fields, "page_size": page_size,
            "kv_encoding": kv_encoding}


def sparse_mla_prefill_descriptor(*, num_q_heads: int, head_dim_qk: int = 576,
                                  head_dim_v: int = 512, dtype: str = "bf16",
                                  has_sinks: bool = False) -> Fields:
    """Token-sparse MLA over rows of tokens."""
    return {"operation": "sparse_mla_prefill",
            **_sparse_mla_fields(num_q_heads, head_dim_qk, head_dim_v, dtype, has_sinks),
            "kv_layout": "ragged", "kv_layout_tag": "thd", "page_size": 0}


def append_kv_cache_descriptor(*, num_kv_heads: int, head_dim_qk: int, head_dim_v: int,
                               dtype: str = "bf16", dtype_kv: str = "bf16", page_size: int = 64,
                               kv_layout_tag: str = "nhd", v_is_prefix_of_k: bool = False,
                               scales_kv: str = "none") -> Fields:
    """The write of new K and V of `dtype` into a paged cache of `dtype_kv`."""
    return {
        "operation": "append_kv_cache", "dtype_q": dtype, "dtype_kv": dtype_kv,
        "dtype_out": dtype, "head_dim_qk": head_dim_qk, "head_dim_v": head_dim_v,
        "num_q_heads": num_kv_heads, "num_kv_heads": num_kv_heads, "max_seqlen_q": 0,
        "kv_layout_tag": kv_layout_tag, "page_size": page_size,
        "value_source": "prefix_of_k" if v_is_prefix_of_k else "separate",
        "scales_kv": scales_kv,
    }


def merge_states_descriptor(*, head_dim: int, dtype: str = "bf16") -> Fields:
    """The merge of attention over parts of the keys by their LSEs."""
    return {
        "operation": "merge_states", "dtype_q": dtype, "dtype_kv": dtype, "dtype_out": dtype,
        "head_dim_qk": head_dim, "head_dim_v": head_dim, "value_source": "prefix_of_k",
        "num_q_heads": 1, "num_kv_heads": 1, "max_seqlen_q": 0,
    }
