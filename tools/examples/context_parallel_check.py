"""Whether context-parallel decode gives what one GPU gives, for context_parallel_decode.py."""

from __future__ import annotations

from typing import List

import torch
import torch.distributed as dist

from context_parallel_decode import (Heads, KvSlice, SlicedDecode, captured, one_gpu_decode,
                                     random_cache, random_queries, slice_of)

LENGTHS = [1, 63, 64, 65, 4096, 131072, 1000003]
POLICIES = ["interleaved", "uneven", "last-empty"]
# Two steps of bf16 at the largest element of a row: results are rounded to it, and parts before.
_RELATIVE, _ABSOLUTE, _LSE = 4 * 2.0 ** -8, 1e-6, 1e-4


def _difference(result: torch.Tensor, reference: torch.Tensor, relative: float,
                absolute: float) -> float:
    """The largest error as a share of what is allowed; above 1 is too much, so is a NaN."""
    error = (result.float() - reference.float()).abs()
    scale = reference.float().abs().amax(-1, keepdim=True)
    share = (error / (absolute + relative * scale)).amax()
    return float("inf") if share.isnan() else float(share)


def _share(heads: Heads, whole: KvSlice, policy: str, device: torch.device) -> float:
    """The largest share of the tolerance that a case uses, of all ranks; eagerly, and where NCCL
    can be captured, by a graph too."""
    batch = len(whole.lengths)
    q = random_queries(heads, batch, device)
    expected_out, expected_lse = one_gpu_decode(heads, q, whole)
    kv = slice_of(whole, dist.get_rank(), dist.get_world_size(), policy)
    decode = SlicedDecode(heads, batch, device)

    def step() -> None:
        decode.update(kv)
        decode.run(q, kv)

    def share() -> float:
        torch.cuda.synchronize()
        return max(_difference(decode.out, expected_out, _RELATIVE, _ABSOLUTE),
                   _difference(decode.lse.unsqueeze(-1), expected_lse.unsqueeze(-1), 0.0, _LSE))

    step()
    worst = share()
    if dist.get_backend() == "nccl":
        graph = captured(step)
        decode.out.fill_(float("nan"))
        graph.replay()
        worst = max(worst, share())
    worst_of_ranks = torch.tensor([worst], device=device if dist.get_backend() == "nccl" else "cpu")
    dist.all_reduce(worst_of_ranks, dist.ReduceOp.MAX)
    return float(worst_of_ranks)


def check(setups: List[Heads], device: torch.device) -> int:
    """How many cases failed. Each length alone, and all in one batch."""
    failed = cases = 0
    for heads in setups:
        for lengths in [*([length] for length in LENGTHS), LENGTHS]:
            whole = random_cache(heads, lengths, 1, device)
            for policy in POLICIES:
                share = _share(heads, whole, policy, device)
                cases += 1
                failed += not share <= 1
                if dist.get_rank() == 0:
                    print(f"{'ok' if share <= 1 else 'FAILED':6} {heads.name:9} {policy:11} "
                          f"lengths {lengths}: {share:.2f} of the tolerance", flush=True)
            del whole
            torch.cuda.empty_cache()
    if dist.get_rank() == 0:
        print(f"{cases - failed} passed, {failed} failed on {dist.get_world_size()} rank(s), "
              f"{dist.get_backend()}")
    return failed
