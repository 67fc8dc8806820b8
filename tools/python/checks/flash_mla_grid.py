#!/usr/bin/env python3
"""Holds attnjit.flash_mla against plain torch over the grid of FlashMLA's own tests: all dense
decode cases, for both types, and a sample of the sparse ones. Needs a GPU, torch and libattnjit.so:

    ATTNJIT_LIBRARY=build/release/runtime/libattnjit.so tools/python/checks/flash_mla_grid.py

Exit status 0 if every case passed, 1 if one did not. Without a GPU, `--device cpu --module
reference --limit 20` runs all but the calls.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import pathlib
import random
import sys
import time
from typing import Any, Callable, Dict, List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch  # noqa: E402

import dense_decode_cases  # noqa: E402
import kernel_warming  # noqa: E402
import sparse_decode_cases  # noqa: E402
import sparse_prefill_cases  # noqa: E402
from reference_module import ReferenceModule  # noqa: E402
from tensor_comparison import Comparison, worst_of  # noqa: E402

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_PRECISIONS = {"fp32": torch.float32, "fp64": torch.float64}
_SAMPLE_SEED = 20
_SHOWN_FAILURES = 20


@dataclasses.dataclass
class Group:
    """Cases of one kind; `run` makes the call of one and compares."""

    name: str
    chosen: List[Any]
    num_cases: int
    descriptors: List[Dict[str, Any]]
    run: Callable[[Any], List[Comparison]]


@dataclasses.dataclass
class Outcome:
    passed: int
    failed: int
    seconds: float
    comparisons: List[Comparison]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["dense", "sparse-decode", "sparse-prefill"])
    parser.add_argument("--dtype", choices=[*_DTYPES, "both"], default="both",
                        help="of dense decode")
    parser.add_argument("--sample", type=int, default=200,
                        help="cases of sparse decode, and as many of sparse prefill; 0 = all")
    parser.add_argument("--limit", type=int, default=0, help="at most so many cases of a group")
    parser.add_argument("--precision", choices=[*_PRECISIONS], default="fp32",
                        help="of the reference")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--module", choices=["attnjit", "installed", "reference"],
                        default="attnjit", help="what `import flash_mla` gives")
    return parser.parse_args()


def flash_mla_module(arguments: argparse.Namespace) -> Any:
    """What the cases call, imported as programs import it."""
    if arguments.module == "reference":
        return ReferenceModule(torch.float32)
    if arguments.module == "attnjit":
        sys.modules["flash_mla"] = importlib.import_module("attnjit.flash_mla")
    return importlib.import_module("flash_mla")


def choose(cases: List[Any], sample: int, limit: int) -> List[int]:
    """Indices of the cases that are run, ascending."""
    indices = list(range(len(cases)))
    if 0 < sample < len(indices):
        indices = sorted(random.Random(_SAMPLE_SEED).sample(indices, sample))
    return indices[:limit] if limit else indices


def dense_group(arguments: argparse.Namespace, module: Any, dtype: str) -> Group:
    device = torch.device(arguments.device)
    cases = dense_decode_cases.cases()
    chosen = [cases[index] for index in choose(cases, 0, arguments.limit)]
    return Group(
        f"dense decode {dtype}", chosen, len(cases),
        dense_decode_cases.descriptors(chosen, dtype),
        lambda case: dense_decode_cases.run(module, case, _DTYPES[dtype], device,
                                            _PRECISIONS[arguments.precision]))


def sparse_group(arguments: argparse.Namespace, module: Any, name: str, of: Any) -> Group:
    """`of`: the module of the cases. A case's seed is its place among all."""
    device = torch.device(arguments.device)
    cases = of.cases()
    chosen = choose(cases, arguments.sample, arguments.limit)
    return Group(
        name, chosen, len(cases), of.descriptors([cases[index] for index in chosen], "bf16"),
        lambda index: of.run(module, cases[index], index, device,
                             _PRECISIONS[arguments.precision]))


def make_groups(arguments: argparse.Namespace, module: Any) -> List[Group]:
    groups = []
    if arguments.only in (None, "dense"):
        dtypes = [*_DTYPES] if arguments.dtype == "both" else [arguments.dtype]
        groups += [dense_group(arguments, module, dtype) for dtype in dtypes]
    if arguments.only in (None, "sparse-decode"):
        groups.append(sparse_group(arguments, module, "sparse decode", sparse_decode_cases))
    if arguments.only in (None, "sparse-prefill"):
        groups.append(sparse_group(arguments, module, "sparse prefill", sparse_prefill_cases))
    return groups


def warm_kernels(groups: List[Group]) -> None:
    """Compiles what the groups need, many kernels at once."""
    started = time.monotonic()
    major, minor = torch.cuda.get_device_capability()
    targets = [torch.cuda.get_device_name().split()[-1].lower(), f"sm_{major}{minor}a",
               f"sm_{major}{minor}"]
    compiled = kernel_warming.warm([descriptor for group in groups
                                    for descriptor in group.descriptors], targets)
    print(f"kernels: {compiled} compiled in {time.monotonic() - started:.1f} s", flush=True)


def run_case(group: Group, case: Any) -> List[Comparison]:
    """The case's comparisons; an exception is one with a problem. A device that no longer answers
    ends the program."""
    try:
        return group.run(case)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    try:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
    except RuntimeError:
        print(f"FAILED {group.name} {case}: {problem}\nthe device no longer answers")
        sys.exit(1)
    return [Comparison("call", [problem])]


def run_group(group: Group) -> Outcome:
    started = time.monotonic()
    outcome = Outcome(0, 0, 0.0, [])
    for case in group.chosen:
        comparisons = run_case(group, case)
        problems = [problem for one in comparisons for problem in one.problems]
        outcome.comparisons += comparisons
        if not problems:
            outcome.passed += 1
            continue
        outcome.failed += 1
        if outcome.failed <= _SHOWN_FAILURES:
            print(f"FAILED {group.name} {case}: {'; '.join(problems)}", flush=True)
    outcome.seconds = time.monotonic() - started
    return outcome


def print_outcome(group: Group, outcome: Outcome) -> None:
    print(f"{group.name}: {outcome.passed} passed, {outcome.failed} failed of "
          f"{len(group.chosen)} run ({group.num_cases} in the grid), {outcome.seconds:.1f} s")
    for name, worst in worst_of(outcome.comparisons).items():
        print(f"  {name}: worst absolute {worst['absolute']:.3g}, relative (where the absolute "
              f"one is too large) {worst['relative']:.3g}, cosine {worst['cosine']:.3g}")
    sys.stdout.flush()


def main() -> int:
    arguments = parse_arguments()
    torch.backends.cuda.matmul.allow_tf32 = False
    started = time.monotonic()
    module = flash_mla_module(arguments)
    groups = make_groups(arguments, module)
    if arguments.module == "attnjit":
        warm_kernels(groups)
    failed = 0
    for group in groups:
        outcome = run_group(group)
        print_outcome(group, outcome)
        failed += outcome.failed
    print(f"{'FAILED' if failed else 'passed'}, {time.monotonic() - started:.1f} s in all")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
