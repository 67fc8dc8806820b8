"""Dense decode: 2,304 cases of all small shapes, and 32 of large ragged batches with empty
requests."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, Dict, List, Tuple

import torch

import attnjit

import flash_mla_reference
from grid_inputs import (NO_PAGE, Source, ints, spoil_freed_memory, table_of_pages, unseen_tokens)
from tensor_comparison import Comparison, Tolerance, compare

HEAD_DIM, HEAD_DIM_V, PAGE = 576, 512, 64
OUT_TOLERANCE = Tolerance(8e-4, 2.01 / 128, 5e-6)
LSE_TOLERANCE = Tolerance(1e-6, 8.01 / 65536)
_SEED = 0
_HEADS = [(h_q, h_kv) for h_kv in (1, 2, 3, 8) for h_q in (1, 3, 9, 63, 64, 126, 128)
          if h_q % h_kv == 0]


@dataclasses.dataclass(frozen=True)
class DenseCase:
    b: int
    s_q: int
    s_k: int
    h_kv: int
    varlen: bool
    h_q: int
    causal: bool
    zero_lengths: bool = False


def cases() -> List[DenseCase]:
    """Those that share a cache stand together."""
    small = [DenseCase(b, s_q, s_k, h_kv, varlen, h_q, causal)
             for b, s_q, s_k, varlen in itertools.product((1, 2, 6, 64), (1, 2, 4),
                                                          (20, 140, 4096), (False, True))
             for (h_q, h_kv), causal in itertools.product(_HEADS, (False, True))]
    corner = [DenseCase(128, 2, 4096, h_kv, True, h_q, causal, zero_lengths=True)
              for (h_q, h_kv), causal in itertools.product(_HEADS, (False, True))]
    return small + corner


def descriptors(chosen: List[DenseCase], dtype: str) -> List[Dict[str, Any]]:
    """Of the kernels that the cases need."""
    shapes = sorted({(case.h_q, case.h_kv, case.s_q, case.causal and case.s_q > 1)
                     for case in chosen})
    return [attnjit.descriptors.decode_descriptor(
        num_q_heads=h_q, num_kv_heads=h_kv, head_dim_qk=HEAD_DIM, head_dim_v=HEAD_DIM_V,
        dtype=dtype, page_size=PAGE, max_seqlen_q=s_q, v_is_prefix_of_k=True, causal=causal)
        for h_q, h_kv, s_q, causal in shapes]


@functools.lru_cache(maxsize=1)
def _cache(b: int, s_q: int, s_k: int, h_kv: int, varlen: bool, zero_lengths: bool,
           dtype: torch.dtype, device: torch.device) -> Tuple[Any, Any, List[int]]:
    """Pages, table and lengths. All that no query may see is NaN, and pages that it has no use for
    are named as none."""
    source = Source(_SEED, device)
    lengths = source.lengths(b, s_k, s_q, varies=varlen, may_be_zero=zero_lengths)
    columns = -(-max(*lengths, 1) // 256) * 256 // PAGE
    table = table_of_pages(source, b, columns)
    pages = source.normal(b * columns, PAGE, h_kv, HEAD_DIM, dtype=dtype)
    pages.div_(10).clamp_(-1, 1)
    on_device = ints(lengths, device)
    pages.masked_fill_(unseen_tokens(table, on_device, PAGE)[:, :, None, None], float("nan"))
    place = torch.arange(columns, device=device)
    table.masked_fill_(place * PAGE >= on_device.unsqueeze(1), NO_PAGE)
    return pages, table, lengths


def run(flash_mla: Any, case: DenseCase, dtype: torch.dtype, device: torch.device,
        precision: torch.dtype) -> List[Comparison]:
    """One call, held against the reference."""
    pages, table, lengths = _cache(case.b, case.s_q, case.s_k, case.h_kv, case.varlen,
                                   case.zero_lengths, dtype, device)
    q = Source(_SEED + 1, device).normal(case.b, case.s_q, case.h_q, HEAD_DIM, dtype=dtype)
    q.div_(10).clamp_(-1, 1)
    metadata, _ = flash_mla.get_mla_metadata()
    on_device = ints(lengths, device)
    spoil_freed_memory([((case.b, case.s_q, case.h_q, HEAD_DIM_V), dtype),
                        ((case.b, case.h_q, case.s_q), torch.float32)], device)
    out, lse = flash_mla.flash_mla_with_kvcache(q, pages, table, on_device, HEAD_DIM_V, metadata,
                                                None, causal=case.causal)
    expected_out, expected_lse = flash_mla_reference.dense_decode(
        q, pages, table, lengths, HEAD_DIM_V, HEAD_DIM ** -0.5, case.causal, precision)
    return [compare("out", out, expected_out, OUT_TOLERANCE),
            compare("lse", lse, expected_lse, LSE_TOLERANCE)]
