"""Sparse decode over the two fp8 formats: token lists, their lengths, sinks, a second pool."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

import attnjit

import flash_mla_reference
from flash_mla_reference import Tokens
from fp8_tokens import encode_584, encode_656
from grid_inputs import Source, spoil_freed_memory, spread, table_of_pages
from tensor_comparison import Comparison, Tolerance, compare

HEAD_DIM_V = 512
OUT_TOLERANCE = Tolerance(1e-3, 2.01 / 128, 5e-6)
LSE_TOLERANCE = Tolerance(1e-6, 8.01 / 65536)

# (keys, topk, page size)
PoolShape = Tuple[int, int, int]
_POOLS: List[PoolShape] = [(512, 64, 2), (512, 64, 64), (512, 64, 69), (1024, 576, 2),
                           (1024, 576, 61), (2046, 2048, 2), (2046, 2048, 64),
                           (2046, 2048, 576)]
_CORNER_POOLS: List[PoolShape] = [(512, 64, 61), (650, 576, 53)]


@dataclasses.dataclass(frozen=True)
class SparseDecodeCase:
    d: int
    h_q: int
    b: int
    s_q: int
    pool: PoolShape
    extra_pool: Optional[PoolShape]
    has_counts: bool
    has_extra_counts: bool
    varlen: bool
    has_sinks: bool = True
    none_named: bool = False
    zero_lengths: bool = False


def _variants() -> Iterator[Tuple[int, int, bool, bool, bool]]:
    """(d, h_q, whether there is a second pool, whether lists of either have lengths)."""
    for h_q in (64, 128):
        yield 576, h_q, False, False, False
        for has_extra, has_extra_counts, has_counts in itertools.product((False, True), repeat=3):
            if has_extra or not has_extra_counts:
                yield 512, h_q, has_extra, has_extra_counts, has_counts


def cases() -> List[SparseDecodeCase]:
    made = []
    for d, h_q, has_extra, has_extra_counts, has_counts in _variants():
        has_lengths = has_counts or has_extra_counts
        for pool, extra, b, s_q in itertools.product(
                _POOLS, _POOLS if has_extra else [None], (4, 74, 321), (1, 3)):
            for varlen in (True, False) if b == 74 and not has_lengths else (True,):
                made.append(SparseDecodeCase(d, h_q, b, s_q, pool, extra, has_counts,
                                             has_extra_counts, varlen))
        for pool, extra, b in itertools.product(
                _CORNER_POOLS, _CORNER_POOLS if has_extra else [None], (4, 74, 321)):
            for none_named, zero_lengths, has_sinks in itertools.product((True, False), repeat=3):
                if none_named or zero_lengths or has_sinks:
                    made.append(SparseDecodeCase(
                        d, h_q, b, 3, pool, extra, has_counts, has_extra_counts, True, has_sinks,
                        none_named, zero_lengths))
    return made


def descriptors(chosen: List[SparseDecodeCase], dtype: str) -> List[Dict[str, Any]]:
    """Of the kernels that the cases need. q is bf16 whatever `dtype` is."""
    shapes = sorted({(case.h_q, case.d, case.has_sinks, case.pool[2]) for case in chosen})
    return [attnjit.descriptors.sparse_mla_decode_descriptor(
        num_q_heads=h_q, head_dim_qk=d, has_sinks=has_sinks, page_size=page_size,
        kv_encoding="fp8_656" if d == 576 else "fp8_584")
        for h_q, d, has_sinks, page_size in shapes]


def _tokens(source: Source, case: SparseDecodeCase, shape: PoolShape, has_counts: bool,
            encodes: bool = True) -> Tokens:
    """A pool, each query token's list, and how much of it counts. What no list names is NaN."""
    mean, topk, page_size = shape
    rows = case.b * case.s_q
    lengths = torch.tensor(
        source.lengths(case.b, mean, case.s_q, varies=case.varlen, may_be_zero=case.zero_lengths),
        device=source.device)
    columns = -(-max(int(lengths.max()), 1) // (4 * page_size)) * 4
    table = table_of_pages(source, case.b, columns)
    place, is_any = source.subsets(rows, lengths.repeat_interleave(case.s_q), topk)
    place = torch.where(is_any, place, 0)
    request = torch.arange(case.b, device=source.device).repeat_interleave(case.s_q).unsqueeze(1)
    indices = table[request, place // page_size] * page_size + place % page_size
    indices = torch.where(is_any & (not case.none_named), indices, -1).int()
    counts = None
    named = indices >= 0
    if has_counts:
        counts = source.integers(topk + 1, case.b).repeat_interleave(case.s_q)
        named &= torch.arange(topk, device=source.device) < counts.unsqueeze(1)
    pool = source.normal(case.b * columns * page_size, case.d, dtype=torch.bfloat16)
    pool.div_(10).clamp_(-1, 1)
    is_named = torch.zeros(pool.shape[0], dtype=torch.bool, device=source.device)
    is_named[indices[named].long()] = True
    pool.masked_fill_(~is_named.unsqueeze(1), float("nan"))
    encode = encode_656 if case.d == 576 else encode_584
    return Tokens(encode(pool.view(-1, page_size, case.d)), indices, counts)


def _arguments(case: SparseDecodeCase, q: torch.Tensor,
               pools: List[Tokens]) -> Dict[str, Optional[torch.Tensor]]:
    """The tensors of a call: q [b, s_q, h_q, d]; the second of `pools` is the extra one."""
    names = [("k_cache", "indices", "topk_length"),
             ("extra_k_cache", "extra_indices_in_kvcache", "extra_topk_length")]
    arguments: Dict[str, Optional[torch.Tensor]] = {"q": spread(q)}
    for tokens, (cache, indices, length) in zip(pools, names):
        arguments[cache] = tokens.pool.view(torch.float8_e4m3fn)
        arguments[indices] = spread(tokens.indices.view(case.b, case.s_q, -1))
        if tokens.counts is not None:
            arguments[length] = tokens.counts.view(case.b, case.s_q)[:, 0].contiguous()
    return arguments


def run(flash_mla: Any, case: SparseDecodeCase, seed: int, device: torch.device,
        precision: torch.dtype) -> List[Comparison]:
    """One call, held against the reference."""
    source = Source(seed, device)
    q = source.normal(case.b, case.s_q, case.h_q, case.d, dtype=torch.bfloat16).clamp_(-1, 1)
    pools = [_tokens(source, case, case.pool, case.has_counts)]
    if case.extra_pool is not None:
        pools.append(_tokens(source, case, case.extra_pool, case.has_extra_counts))
    sinks = source.sinks(case.h_q) if case.has_sinks else None
    scale = case.d ** -0.55
    arguments = _arguments(case, q, pools)
    metadata, _ = flash_mla.get_mla_metadata()
    spoil_freed_memory([((case.b, case.s_q, case.h_q, HEAD_DIM_V), torch.bfloat16),
                        ((case.b, case.s_q, case.h_q), torch.float32)], device)
    out, lse = flash_mla.flash_mla_with_kvcache(
        block_table=None, cache_seqlens=None, head_dim_v=HEAD_DIM_V,
        tile_scheduler_metadata=metadata, softmax_scale=scale, is_fp8_kvcache=True,
        attn_sink=sinks, **arguments)
    expected_out, expected_lse, _ = flash_mla_reference.sparse(
        q.flatten(0, 1), pools, HEAD_DIM_V, scale, sinks, precision)
    expected_out = expected_out.to(out.dtype).view(case.b, case.s_q, case.h_q, HEAD_DIM_V)
    expected_lse = expected_lse.float().view(case.b, case.s_q, case.h_q).transpose(1, 2)
    return [compare("out", out, expected_out, OUT_TOLERANCE),
            compare("lse", lse, expected_lse, LSE_TOLERANCE)]
