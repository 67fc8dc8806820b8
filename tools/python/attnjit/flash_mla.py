"""FlashMLA's Python interface on attnjit, for programs that say `import flash_mla`:

    import sys, attnjit.flash_mla
    sys.modules["flash_mla"] = attnjit.flash_mla

Names, arguments, defaults and what is returned are FlashMLA's: `out` of q's type, natural-log LSE
in fp32 that leaves sinks out, and where nothing is visible `out` 0 and LSE +inf. Tensors are
torch's. More is served than there: any head count, pages of 1 to 256 tokens (sparse: any), sinks
of dense calls, any topk, lengths and a second pool for both fp8 formats, sparse caches of q's type.
What is not served raises, with the reason: AssertionError where an argument contradicts another
one or the metadata, otherwise attnjit's errors, all of which are RuntimeErrors.

Kernels are found or made by the first call of a configuration, so make that one outside of graph
captures: a cold kernel in a capture is a ColdKernelError, and the capture stays valid.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Tuple

from . import _flash_mla_calls as _calls, _flash_mla_names as _names
from ._arguments import integer

__all__ = ["FlashMLASchedMeta", "flash_attn_varlen_func", "flash_attn_varlen_kvpacked_func",
           "flash_attn_varlen_qkvpacked_func", "flash_mla_sparse_fwd", "flash_mla_with_kvcache",
           "get_mla_metadata"]


@dataclasses.dataclass
class FlashMLASchedMeta:
    """How a batch is split over the device; of one step, and of one thread at a time. The first
    flash_mla_with_kvcache fills it, the calls of the step's other layers find it.

    have_initialized, config: whether a call has filled it, and for what. Later calls must be of
    the same config.
    tile_scheduler_metadata, num_splits: always None; the split itself is private.

    A dense call computes the split on the device, in stream order and without a copy to the host,
    unless an earlier call with this object did so from the same cache_seqlens, by address. So new
    lengths in the same tensor want a new object, as they do with FlashMLA; results are right
    without one, only the work may be badly balanced. A graph capture never uses a split of before
    it, nor an eager call one of a capture: a graph that is captured with any object holds the
    split's memory and computation itself, and its replays follow the lengths. Of several graphs
    that share an object only the first to be captured does, and must be replayed first.
    """

    @dataclasses.dataclass
    class Config:
        """What calls with one object have in common."""

        b: int
        s_q: int
        h_q: int
        page_block_size: int
        h_k: int
        causal: bool
        is_fp8_kvcache: bool
        topk: Optional[int]
        extra_page_block_size: Optional[int]
        extra_topk: Optional[int]

    have_initialized: bool = False
    config: Optional[Config] = None
    tile_scheduler_metadata: None = None
    num_splits: None = None
    _prepared: Any = dataclasses.field(default=None, init=False, repr=False, compare=False)


def get_mla_metadata(*args: Any, **kwargs: Any) -> Tuple[FlashMLASchedMeta, None]:
    """An object for the calls of one step, empty as yet, and None. Arguments are ignored: older
    programs pass lengths and head counts."""
    return FlashMLASchedMeta(), None


def _check_config(given: FlashMLASchedMeta.Config, metadata: FlashMLASchedMeta) -> None:
    kept = metadata.config
    if kept is None or given == kept:
        return
    different = [f"{field.name} = {getattr(given, field.name)}, was {getattr(kept, field.name)}"
                 for field in dataclasses.fields(kept)
                 if getattr(given, field.name) != getattr(kept, field.name)]
    raise AssertionError(
        f"the call differs from the earlier ones with this tile_scheduler_metadata: "
        f"{'; '.join(different)}: must be the same; get another object by get_mla_metadata()")


def _check_dense(block_table: Any, cache_seqlens: Any, **sparse: Any) -> None:
    for name, tensor in sparse.items():
        if tensor is not None:
            raise AssertionError(f"{name} is given without indices: must be None for dense "
                                 "attention; give indices, or leave it out")
    for name, tensor in (("block_table", block_table), ("cache_seqlens", cache_seqlens)):
        if tensor is None:
            raise AssertionError(f"{name} is None: must be given for dense attention; only with "
                                 "indices it may be left out")


def _check_sparse(k_cache: Any, causal: bool, is_fp8_kvcache: bool) -> None:
    if causal:
        raise AssertionError("causal = True with indices: must be False; leave what a query must "
                             "not see out of its indices")
    _check_fp8(k_cache, is_fp8_kvcache)


def _check_fp8(k_cache: Any, is_fp8_kvcache: bool) -> None:
    if (k_cache.element_size() == 1) != bool(is_fp8_kvcache):
        raise AssertionError(f"is_fp8_kvcache = {is_fp8_kvcache} and k_cache is {k_cache.dtype}: "
                             "must be True for a cache of one-byte elements, else False")


@_calls.entry(_names.WITH_KVCACHE)
def flash_mla_with_kvcache(
        q: Any, k_cache: Any, block_table: Any, cache_seqlens: Any, head_dim_v: int,
        tile_scheduler_metadata: FlashMLASchedMeta, num_splits: None = None,
        softmax_scale: Optional[float] = None, causal: bool = False,
        is_fp8_kvcache: bool = False, indices: Any = None, attn_sink: Any = None,
        extra_k_cache: Any = None, extra_indices_in_kvcache: Any = None, topk_length: Any = None,
        extra_topk_length: Any = None) -> Tuple[Any, Any]:
    """Attention of few query tokens per request over a paged cache of latents.

    q: [b, s_q, h_q, d]; h_q a multiple of h_kv.
    k_cache: [num_blocks, page, h_kv, d] of q's type; with indices also fp8_e4m3fn, int8 or uint8,
    h_kv 1, a token of 656 bytes (d 576) or, planar within a page, 584 (d 512). v is the first
    head_dim_v columns.
    block_table: int32 [b, max_blocks]; cache_seqlens: int32 [b]. Dense calls only.
    tile_scheduler_metadata: of get_mla_metadata; num_splits: must be None.
    softmax_scale: None is d ** -0.5.
    causal: bottom-right aligned, dense calls only; off where s_q is 1, which hides nothing.
    is_fp8_kvcache: True with indices over a cache of fp8.
    indices: int32 [b, s_q, topk], page * page_size + row; what names no token, such as -1, is
    skipped. Makes the call sparse.
    attn_sink: fp32 [h_q]: out *= exp(lse) / (exp(lse) + exp(attn_sink)).
    extra_k_cache, extra_indices_in_kvcache: a second pool with its own page size.
    topk_length, extra_topk_length: int32 [b]: indices that are read.

    Returns out [b, s_q, h_q, head_dim_v] and softmax_lse, fp32 [b, h_q, s_q].
    """
    metadata = tile_scheduler_metadata
    if not isinstance(metadata, FlashMLASchedMeta):
        raise AssertionError(f"tile_scheduler_metadata is a {type(metadata).__name__}: must be "
                             "the FlashMLASchedMeta that get_mla_metadata returns first")
    if num_splits is not None:
        raise AssertionError("num_splits is given: must be None, which get_mla_metadata returns "
                             "second")
    _calls.check_tensors(k_cache=k_cache, block_table=block_table, cache_seqlens=cache_seqlens,
                         indices=indices, attn_sink=attn_sink, extra_k_cache=extra_k_cache,
                         extra_indices_in_kvcache=extra_indices_in_kvcache,
                         topk_length=topk_length, extra_topk_length=extra_topk_length)
    config = FlashMLASchedMeta.Config(
        *_calls.batch_shape(q, k_cache), causal, is_fp8_kvcache,
        None if indices is None else indices.shape[-1],
        None if extra_k_cache is None else extra_k_cache.shape[1],
        None if extra_indices_in_kvcache is None else extra_indices_in_kvcache.shape[-1])
    _check_config(config, metadata)
    if not metadata.have_initialized:
        metadata._prepared = None  # what a call left that failed may be of another config
    if indices is not None:
        _check_sparse(k_cache, causal, is_fp8_kvcache)
        returned = _calls.decode_sparse(
            metadata, q, k_cache, indices, head_dim_v, softmax_scale, topk_length=topk_length,
            sinks=attn_sink, extra_kv=extra_k_cache, extra_indices=extra_indices_in_kvcache,
            extra_topk_length=extra_topk_length)
    else:
        _check_fp8(k_cache, is_fp8_kvcache)
        _check_dense(block_table, cache_seqlens, extra_k_cache=extra_k_cache,
                     extra_indices_in_kvcache=extra_indices_in_kvcache, topk_length=topk_length,
                     extra_topk_length=extra_topk_length)
        returned = _calls.decode_dense(metadata, q, k_cache, block_table, cache_seqlens,
                                       head_dim_v, softmax_scale, causal, attn_sink)
    metadata.have_initialized, metadata.config = True, config
    return returned


@_calls.entry(_names.SPARSE_FWD)
def flash_mla_sparse_fwd(q: Any, kv: Any, indices: Any, sm_scale: float, d_v: int = 512,
                         attn_sink: Any = None, topk_length: Any = None,
                         indexer_topk: int = 0) -> Tuple[Any, ...]:
    """Each query token attends to the rows of kv that its indices name. There is no batch:
    requests lie end to end, and their indices count from the first row of all.

    q: [s_q, h_q, d]; kv: [s_kv, 1, d], of q's type.
    indices: int32 [s_q, 1, topk]; what is no row of kv is skipped.
    attn_sink: fp32 [h_q], as of flash_mla_with_kvcache. topk_length: int32 [s_q].
    indexer_topk: also the LSE over each token's first so many indices; 0 = none.

    Returns out [s_q, h_q, d_v], max_logits and lse, fp32 [s_q, h_q], and with indexer_topk the
    LSE of these. max_logits are the largest scaled scores, -inf where nothing is named.
    """
    _calls.check_tensors(kv=kv, indices=indices, attn_sink=attn_sink, topk_length=topk_length)
    _, (_, _, given) = _calls.dtype_and_shape("indices", indices, 3)
    topk = integer("indexer_topk", indexer_topk, 0, given,
                   "give how many of the indices, 0 for none")
    out, lse, max_logits = _calls.prefill_sparse(q, kv, indices, sm_scale, d_v, topk_length,
                                                 attn_sink)
    if not topk:
        return out, max_logits, lse
    _, lse_indexer, _ = _calls.prefill_sparse(q, kv, indices[..., :topk], sm_scale, d_v,
                                              topk_length, None)
    return out, max_logits, lse, lse_indexer


def _attend_varlen(q: Any, k: Any, v: Any, cu_seqlens_qo: Any, cu_seqlens_kv: Any,
                   dropout_p: float, softmax_scale: Optional[float],
                   causal: bool) -> Tuple[Any, Any]:
    if dropout_p != 0.0:
        raise AssertionError(f"dropout_p = {dropout_p}: must be 0; dropout is not served")
    return _calls.prefill_dense(q, k, v, cu_seqlens_qo, cu_seqlens_kv, softmax_scale, causal)


@_calls.entry(_names.VARLEN)
def flash_attn_varlen_func(
        q: Any, k: Any, v: Any, cu_seqlens_qo: Any, cu_seqlens_kv: Any, max_seqlen_qo: int,
        max_seqlen_kv: int, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
        causal: bool = False, deterministic: bool = False,
        is_varlen: bool = True) -> Tuple[Any, Any]:
    """Attention of ragged batches: MHA, GQA and MQA. Forward only; the same to the bit each time,
    whatever `deterministic` says. max_seqlen_qo, max_seqlen_kv and is_varlen are not needed.

    q: [total_q, h_q, d]; k: [total_kv, h_kv, d]; v: [total_kv, h_kv, d_v].
    cu_seqlens_qo, cu_seqlens_kv: int32 [b + 1]. causal: bottom-right aligned.

    Returns out [total_q, h_q, d_v] and lse, fp32 [total_q, h_q], a view of [h_q, total_q].
    """
    return _attend_varlen(q, k, v, cu_seqlens_qo, cu_seqlens_kv, dropout_p, softmax_scale, causal)


@_calls.entry(_names.VARLEN_QKVPACKED)
def flash_attn_varlen_qkvpacked_func(
        qkv: Any, cu_seqlens: Any, max_seqlen: int, head_dim_qk: int, dropout_p: float = 0.0,
        softmax_scale: Optional[float] = None, causal: bool = False,
        deterministic: bool = False, is_varlen: bool = True) -> Tuple[Any, Any]:
    """flash_attn_varlen_func of qkv [total, h, 2 * head_dim_qk + d_v], the columns of q, k and v
    one after the other."""
    _calls.check_columns("qkv", qkv, head_dim_qk, 2)
    return _attend_varlen(
        qkv[:, :, :head_dim_qk], qkv[:, :, head_dim_qk:2 * head_dim_qk],
        qkv[:, :, 2 * head_dim_qk:], cu_seqlens, cu_seqlens, dropout_p, softmax_scale, causal)


@_calls.entry(_names.VARLEN_KVPACKED)
def flash_attn_varlen_kvpacked_func(
        q: Any, kv: Any, cu_seqlens_qo: Any, cu_seqlens_kv: Any, max_seqlen_qo: int,
        max_seqlen_kv: int, head_dim_qk: int, dropout_p: float = 0.0,
        softmax_scale: Optional[float] = None, causal: bool = False,
        deterministic: bool = False, is_varlen: bool = True) -> Tuple[Any, Any]:
    """flash_attn_varlen_func of kv [total_kv, h_kv, head_dim_qk + d_v], k's columns before v's."""
    _calls.check_columns("kv", kv, head_dim_qk, 1)
    return _attend_varlen(q, kv[:, :, :head_dim_qk], kv[:, :, head_dim_qk:], cu_seqlens_qo,
                          cu_seqlens_kv, dropout_p, softmax_scale, causal)
