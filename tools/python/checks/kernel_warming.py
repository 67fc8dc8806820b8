"""Compiles kernels into attnjit's cache in as many processes as there are cores, before a program
needs them one after the other. As a program it is one of these processes: a JSON object of targets
and descriptors on standard input, the number of kernels that it compiled on standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Sequence


def warm(descriptors: Sequence[Dict[str, Any]], targets: Sequence[str]) -> int:
    """How many kernels were compiled: those of `descriptors` for the first of `targets`, cards or
    architectures, that attnjit knows. Raises RuntimeError with what a process said."""
    count = max(1, min(os.cpu_count() or 1, len(descriptors)))
    import attnjit
    package = os.path.dirname(os.path.dirname(os.path.abspath(attnjit.__file__)))
    environment = {**os.environ, "PYTHONPATH": package}
    processes = [subprocess.Popen([sys.executable, __file__], env=environment, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) for _ in range(count)]
    for index, process in enumerate(processes):
        process.stdin.write(json.dumps({"targets": list(targets),
                                        "descriptors": list(descriptors[index::count])}))
        process.stdin.close()
    compiled, problems = 0, []
    for process in processes:
        text, errors = process.stdout.read(), process.stderr.read()
        if process.wait() == 0:
            compiled += int(text)
        else:
            problems.append(errors)
    if problems:
        raise RuntimeError(f"{len(problems)} of {count} processes failed:\n{problems[0]}")
    return compiled


def _work() -> int:
    import attnjit
    runtime = attnjit.Runtime()
    given = json.load(sys.stdin)
    targets: List[str] = given["targets"]
    compiled = 0
    for descriptor in given["descriptors"]:
        while True:
            try:
                compiled += runtime.warm(descriptor, targets[0])
                break
            except (attnjit.InvalidArgumentError, attnjit.ToolchainError):
                targets = targets[1:]
                if not targets:
                    raise
    return compiled


if __name__ == "__main__":
    print(_work())
