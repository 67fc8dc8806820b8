"""Whether a result is close enough to a reference: as FlashMLA's own tests judge it."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List

import torch

_LSE_COS = 1e-7


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """An element passes if its error is below `absolute`, or below `relative` of the reference;
    the whole if all of them do and 1 - cosine similarity is at most `cosine`."""

    absolute: float
    relative: float
    cosine: float = _LSE_COS


@dataclasses.dataclass
class Comparison:
    """One tensor held against its reference. What is wrong is in `problems`, else empty."""

    name: str
    problems: List[str]
    worst_absolute: float = 0.0
    worst_relative: float = 0.0
    cosine: float = 0.0


def _measure(result: torch.Tensor, reference: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
    """[wrong specials, wrong elements, worst absolute and relative error of those that are not
    below `absolute`, cosine difference], in one tensor, so that the host waits once."""
    misplaced = sum(((test(result) != test(reference)).sum()
                     for test in (torch.isposinf, torch.isneginf, torch.isnan)),
                    torch.zeros((), dtype=torch.int64, device=result.device))
    usual = torch.isfinite(result) & torch.isfinite(reference)
    result, reference = (torch.where(usual, tensor.double(), 0.0)
                         for tensor in (result, reference))
    error = (result - reference).abs()
    relative = error / (reference.abs() + 1e-6)
    wrong = ~((error < tolerance.absolute) | (relative < tolerance.relative))
    squares = (result * result + reference * reference).sum()
    cosine = 1 - 2 * (result * reference).sum() / squares
    cosine = torch.where((reference * reference).sum() < 1e-12, 0.0, cosine)
    relative = torch.where(error < tolerance.absolute, 0.0, relative)
    return torch.stack([misplaced.double(), wrong.sum().double(), error.max(), relative.max(),
                        cosine])


def compare(name: str, result: torch.Tensor, reference: torch.Tensor,
            tolerance: Tolerance) -> Comparison:
    """Holds `result` against `reference`, which must have its shape and type."""
    if result.shape != reference.shape or result.dtype != reference.dtype:
        return Comparison(name, [f"{name} is {result.dtype} {list(result.shape)}: must be "
                                 f"{reference.dtype} {list(reference.shape)}"])
    if result.numel() == 0:
        return Comparison(name, [])
    misplaced, wrong, worst_absolute, worst_relative, cosine = _measure(
        result, reference, tolerance).tolist()
    problems = []
    if misplaced:
        problems.append(f"{name}: {misplaced:.0f} infinities or NaNs in one of both only")
    if wrong:
        problems.append(f"{name}: {wrong:.0f} of {result.numel()} elements beyond "
                        f"{tolerance.absolute:g} and {tolerance.relative:g} of the reference; "
                        f"worst {worst_absolute:.3g} and {worst_relative:.3g}")
    if not cosine <= tolerance.cosine:
        problems.append(f"{name}: cosine difference {cosine:.3g}, at most {tolerance.cosine:g}")
    return Comparison(name, problems, worst_absolute, worst_relative, cosine)


def worst_of(comparisons: List[Comparison]) -> Dict[str, Any]:
    """Per tensor the largest errors of several comparisons."""
    worst: Dict[str, Any] = {}
    for one in comparisons:
        kept = worst.setdefault(one.name, {"absolute": 0.0, "relative": 0.0, "cosine": 0.0})
        kept["absolute"] = max(kept["absolute"], one.worst_absolute)
        kept["relative"] = max(kept["relative"], one.worst_relative)
        kept["cosine"] = max(kept["cosine"], one.cosine)
    return worst
