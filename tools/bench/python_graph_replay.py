#!/usr/bin/env python3
"""What a decode costs the GPU when it is replayed from a CUDA graph and when it is launched from
Python one call after the other, and whether both give the same bits. Needs a GPU, torch and
libattnjit.so, which ATTNJIT_LIBRARY names unless a wheel is installed.
"""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import torch  # noqa: E402

import attnjit  # noqa: E402  from there

HEADS, PAGE, KEYS, CALLS, LAYERS, ROUNDS = 16, 64, 4096, 20, 4, 20


class Decode:
    """A decode of `batch` requests of KEYS keys, over caches that take turns."""

    def __init__(self, batch):
        kernel = attnjit.default_runtime(0).prepare(
            attnjit.descriptors.mla_decode_descriptor(num_q_heads=HEADS))
        self.plan = kernel.plan_decode(batch)
        pages = batch * KEYS // PAGE

        def normal(*shape):
            return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

        self.caches = [normal(pages, PAGE, 1, 576) for _ in range(LAYERS)]
        self.out = torch.empty(batch, 1, HEADS, 512, device="cuda", dtype=torch.bfloat16)
        self.tensors = {
            "q": normal(batch, 1, HEADS, 576), "out": self.out,
            "lse": torch.empty(batch, HEADS, 1, device="cuda"),
            "block_table": torch.randperm(pages, device="cuda").int().view(batch, -1),
            "seq_lens": torch.full((batch,), KEYS, device="cuda", dtype=torch.int32),
            "workspace": torch.empty(self.plan.workspace_bytes, device="cuda", dtype=torch.uint8)}
        self.plan.update(self.tensors["seq_lens"])

    def run(self):
        for call in range(CALLS):
            self.plan.run(k_cache=self.caches[call % LAYERS], softmax_scale=0.1, **self.tensors)


def microseconds(run):
    """Of one call on the GPU, the median of rounds. The device sleeps while the queue fills."""
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(2_000_000)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / CALLS)
    return statistics.median(times)


def main():
    print(f"{torch.cuda.get_device_name()}: MLA decode, {HEADS} heads, {KEYS} keys, us a call")
    for batch in (1, 16, 64):
        decode = Decode(batch)
        decode.run()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            decode.run()
        graph.replay()
        replayed = decode.out.clone()
        decode.out.zero_()
        decode.run()
        same = torch.equal(replayed, decode.out)
        print(f"batch {batch:3}: graph {microseconds(graph.replay):7.2f}, launches "
              f"{microseconds(decode.run):7.2f}, same bits: {same}", flush=True)


main()
