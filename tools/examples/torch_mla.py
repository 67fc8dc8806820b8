#!/usr/bin/env python3
"""MLA decode and prefill from torch: called as functions, replayed by a CUDA graph while lengths
change, and traced by torch.compile. Each result is held against torch in fp32.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Callable, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import torch  # noqa: E402

import attnjit  # noqa: E402

HEADS, PAGE, BATCH = 16, 64, 8
LORA, ROPE, NOPE, VALUE = 512, 64, 128, 128
# Of an output row's largest element, for bf16: 8 bits, and as many of the weights.
TOLERANCE = 4 * 2.0 ** -8
Result = Tuple[torch.Tensor, torch.Tensor]


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> Result:
    """out and LSE in fp32 of q [n, heads, d] over k [m, heads or 1, d], v likewise."""
    q, k, v = (tensor.float().transpose(0, 1) for tensor in (q, k, v))
    scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5
    if causal:
        rows, keys = scores.shape[1:]
        hidden = torch.ones(rows, keys, dtype=torch.bool, device=q.device).triu(keys - rows + 1)
        scores.masked_fill_(hidden, float("-inf"))
    return (torch.softmax(scores, -1) @ v).transpose(0, 1), torch.logsumexp(scores, -1)


def reference_decode(q: torch.Tensor, cache: torch.Tensor, table: torch.Tensor,
                     lengths: torch.Tensor) -> Result:
    results = []
    for request, length in enumerate(lengths.tolist()):
        pages = table[request, :-(-length // PAGE)]
        keys = cache[pages].flatten(0, 1)[:length]
        results.append(attend(q[request], keys, keys[..., :LORA], causal=False))
    return (torch.stack([out for out, _ in results]), torch.stack([lse for _, lse in results]))


def reference_prefill(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                      offsets: torch.Tensor) -> Result:
    bounds = offsets.tolist()
    results = [attend(q[begin:end], k[begin:end], v[begin:end], causal=True)
               for begin, end in zip(bounds, bounds[1:])]
    return torch.cat([out for out, _ in results]), torch.cat([lse for _, lse in results], 1)


class Report:
    def __init__(self) -> None:
        self.failed = 0

    def hold(self, name: str, result: Result, expected: Result) -> None:
        (out, lse), (expected_out, expected_lse) = result, expected
        scale = expected_out.abs().amax(-1, keepdim=True)
        worst = torch.maximum(((out.float() - expected_out).abs() / (TOLERANCE * scale)).amax(),
                              (lse - expected_lse).abs().amax() / 1e-3)
        is_ok = bool(worst <= 1)  # a NaN is not
        self.failed += not is_ok
        print(f"{'ok' if is_ok else 'FAILED':6} {name}: {worst:.2f} of the tolerance")


def decode_inputs() -> Tuple[torch.Tensor, ...]:
    columns = 64
    cache = torch.randn(BATCH * columns, PAGE, 1, LORA + ROPE, device="cuda",
                        dtype=torch.bfloat16)
    table = torch.randperm(BATCH * columns, device="cuda").int().view(BATCH, columns)
    q = torch.randn(BATCH, 1, HEADS, LORA + ROPE, device="cuda", dtype=torch.bfloat16)
    lengths = torch.randint(1, columns * PAGE, (BATCH,), device="cuda", dtype=torch.int32)
    return q, cache, table, lengths


def prefill_inputs() -> Tuple[torch.Tensor, ...]:
    offsets = torch.tensor([0, 1, 130, 1000], device="cuda", dtype=torch.int32)
    q, k, v = (torch.randn(1000, HEADS, width, device="cuda", dtype=torch.bfloat16)
               for width in (NOPE + ROPE, NOPE + ROPE, VALUE))
    return q, k, v, offsets


def prefill(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, offsets: torch.Tensor) -> Result:
    return attnjit.prefill(q, k, v, q_offsets=offsets, kv_offsets=offsets)


def replayed(calls: Callable[[], Result]) -> Tuple[torch.cuda.CUDAGraph, Result]:
    """A graph of `calls`, and where its results lie. The warm-up makes kernels and plans ready, on
    the stream that is captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        calls()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        result = calls()
    return graph, result


def check_decode(report: Report, backend: str) -> None:
    q, cache, table, lengths = inputs = decode_inputs()
    report.hold("MLA decode", attnjit.mla_decode(*inputs), reference_decode(*inputs))
    graph, result = replayed(lambda: attnjit.mla_decode(*inputs))
    for name, new in (("as captured", lengths.clone()), ("of one key", torch.ones_like(lengths)),
                      ("of all keys", torch.full_like(lengths, table.shape[1] * PAGE))):
        lengths.copy_(new)
        graph.replay()
        report.hold(f"MLA decode, graph, lengths {name}", result, reference_decode(*inputs))

    @torch.compile(backend=backend, fullgraph=True)
    def step(q: torch.Tensor) -> Result:
        return attnjit.mla_decode(q * 0.5, cache, table, lengths)

    report.hold("MLA decode, torch.compile", step(q),
                reference_decode(q * 0.5, cache, table, lengths))


def check_prefill(report: Report, backend: str) -> None:
    q, k, v, offsets = inputs = prefill_inputs()
    expected = reference_prefill(*inputs)
    report.hold("MLA prefill", prefill(*inputs), expected)
    graph, result = replayed(lambda: prefill(*inputs))
    result[0].fill_(float("nan"))
    graph.replay()
    report.hold("MLA prefill, graph", result, expected)
    compiled = torch.compile(prefill, backend=backend, fullgraph=True)
    report.hold("MLA prefill, torch.compile", compiled(*inputs), expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="aot_eager",
                        help="of torch.compile; inductor needs a C compiler")
    backend = parser.parse_args().backend
    torch.manual_seed(3)
    torch.backends.cuda.matmul.allow_tf32 = False
    report = Report()
    check_decode(report, backend)
    check_prefill(report, backend)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
