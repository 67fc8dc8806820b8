"""Sparse prefill over rows of bf16: lists with indices of no row, lengths, sinks."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Dict, List, Optional

import torch

import attnjit

import flash_mla_reference
from flash_mla_reference import Tokens
from grid_inputs import Source, ints, spoil_freed_memory, spread
from tensor_comparison import Comparison, Tolerance, compare

HEAD_DIM_V = 512
OUT_TOLERANCE = Tolerance(8e-4, 3.01 / 128, 7e-6)
SCORE_TOLERANCE = Tolerance(1e-6, 2.01 / 65536)
_SCALE = 0.5
_SHAPES = [(128, 128), (256, 256), (512, 512), (592, 128), (1840, 256), (1592, 384), (1521, 512),
           (95, 128), (153, 256), (114, 384)]  # (s_kv, topk)


@dataclasses.dataclass(frozen=True)
class SparsePrefillCase:
    d: int
    h_q: int
    s_q: int
    s_kv: int
    topk: int
    has_sinks: bool = False
    has_counts: bool = False
    some_see_nothing: bool = False
    checks_values: bool = True


def _of_heads(d: int, h_q: int) -> List[SparsePrefillCase]:
    def make(*shape: int, **options: bool) -> SparsePrefillCase:
        return SparsePrefillCase(d, h_q, *shape, **options)

    regular = [make(s_q, *shape) for shape, s_q in itertools.product(_SHAPES, (1, 62, 213))]
    features = [make(s_q, *shape, has_sinks=has_sinks, has_counts=has_counts)
                for shape, s_q, has_sinks, has_counts in itertools.product(
                    _SHAPES[3:], (62, 213), (False, True), (False, True))]
    unseen = [make(*shape, has_sinks=True, has_counts=True, some_see_nothing=True)
              for shape in ((1, 128, 128), (1, 256, 256), (1234, 4321, 4096), (4096, 2048, 2048))]
    few = [make(s_q, *shape) for shape, s_q in itertools.product(((32, 2048), (64, 8192)),
                                                                 (1, 1024))]
    return regular + features + unseen + few + [make(70000, 256, 256, checks_values=False)]


def cases() -> List[SparsePrefillCase]:
    return [case for d, h_q in itertools.product((512, 576), (128, 64))
            for case in _of_heads(d, h_q)]


def descriptors(chosen: List[SparsePrefillCase], dtype: str) -> List[Dict[str, Any]]:
    """Of the kernels that the cases need. Tensors are bf16 whatever `dtype` is."""
    shapes = sorted({(case.h_q, case.d, case.has_sinks) for case in chosen})
    return [attnjit.descriptors.sparse_mla_prefill_descriptor(
        num_q_heads=h_q, head_dim_qk=d, has_sinks=has_sinks) for h_q, d, has_sinks in shapes]


def _numbers(source: Source, *shape: int) -> torch.Tensor:
    offsets = source.uniform(*shape).sub_(0.5).div_(10)
    return source.normal(*shape).div_(10).add_(offsets).clamp_(-10, 10).bfloat16()


def _indices(source: Source, case: SparsePrefillCase) -> torch.Tensor:
    """int32 [s_q, topk]: rows of kv in random order, and where there are no more, numbers that
    are none of them. With some_see_nothing a few lists have only such."""
    lengths = torch.full((case.s_q,), case.s_kv, device=source.device)
    rows, is_any = source.subsets(case.s_q, lengths, case.topk)
    no_rows = ints([-2 ** 31, -123456, -1, case.s_kv, 114514, 1919810, 2147480000, 2 ** 31 - 1],
                   source.device)
    others = no_rows[source.integers(len(no_rows), case.s_q, case.topk).long()]
    if case.some_see_nothing:
        is_any = is_any & (source.normal(case.s_q, 1) >= -2)
    return torch.where(is_any, rows.int(), others)


def run(flash_mla: Any, case: SparsePrefillCase, seed: int, device: torch.device,
        precision: torch.dtype) -> List[Comparison]:
    """One call, held against the reference."""
    source = Source(seed, device)
    q = _numbers(source, case.s_q, case.h_q, case.d)
    kv = _numbers(source, case.s_kv, 1, case.d)
    indices = _indices(source, case)
    counts: Optional[torch.Tensor] = None
    if case.has_counts:
        counts = source.integers(max(case.topk + 1, 64), case.s_q).clamp_(max=case.topk)
    sinks = source.sinks(case.h_q) if case.has_sinks else None
    tensors = [spread(tensor) for tensor in (q, kv, indices.unsqueeze(1))]
    rows = (case.s_q, case.h_q)
    spoil_freed_memory([((*rows, HEAD_DIM_V), torch.bfloat16), (rows, torch.float32),
                        (rows, torch.float32)], device)
    out, max_logits, lse = flash_mla.flash_mla_sparse_fwd(*tensors, _SCALE, HEAD_DIM_V, sinks,
                                                          counts)
    if not case.checks_values:
        is_finite = out.isfinite().all().float()
        return [compare("is finite", is_finite, torch.ones_like(is_finite), OUT_TOLERANCE)]
    expected = flash_mla_reference.sparse(q, [Tokens(kv, indices, counts)], HEAD_DIM_V, _SCALE,
                                          sinks, precision)
    expected_out, expected_lse, expected_largest = (tensor.float() for tensor in expected)
    return [compare("out", out.float(), expected_out, OUT_TOLERANCE),
            compare("max_logits", max_logits, expected_largest, SCORE_TOLERANCE),
            compare("lse", lse, expected_lse, SCORE_TOLERANCE)]
