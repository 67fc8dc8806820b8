#!/usr/bin/env python3
"""How much faster two worker processes warm DeepSeek-V3 than one.

    tools/bench/parallel_warm.py build/release/tools/attnjit/attnjit [--pairs 40]
                                         [--arch sm_90a[,…]]

Runs `attnjit warm deepseek-v3 --tp 8` into an empty cache by one and by two workers, in pairs and
in turn, so that a machine whose speed changes changes both. Prints the medians in seconds, and the
median and the quartiles of the pairs' ratios. Needs two free cores.
"""

import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time


def warm_seconds(attnjit: str, arch: str, workers: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        cache = pathlib.Path(folder) / "cache"
        begin = time.perf_counter()
        subprocess.run([attnjit, "warm", "deepseek-v3", "--tp", "8", "--arch", arch, "--cache-dir",
                        str(cache), "-j", str(workers), "--progress", "none", "--json"],
                       check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attnjit")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--arch", default="sm_90a")
    given = parser.parse_args()
    seconds = {1: [], 2: []}
    for pair in range(given.pairs):
        for workers in (1, 2) if pair % 2 == 0 else (2, 1):
            seconds[workers].append(warm_seconds(given.attnjit, given.arch, workers))
    ratios = [one / two for one, two in zip(seconds[1], seconds[2])]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{given.arch}, {given.pairs} pairs: -j 1 {statistics.median(seconds[1]):.2f} s, "
          f"-j 2 {statistics.median(seconds[2]):.2f} s, ratio {middle:.2f} "
          f"(quartiles {low:.2f} and {high:.2f}; of the medians "
          f"{statistics.median(seconds[1]) / statistics.median(seconds[2]):.2f}, "
          f"of the shortest {min(seconds[1]) / min(seconds[2]):.2f})")


if __name__ == "__main__":
    main()
