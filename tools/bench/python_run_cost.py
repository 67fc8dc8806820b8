#!/usr/bin/env python3
"""What a call from Python costs the CPU: microseconds per call of one plan or kernel, the library's
own part included, the best of several rounds. ATTNJIT_LIBRARY names the library, unless a wheel is
installed.

    tools/bench/python_run_cost.py            with a GPU and torch
    tools/bench/python_run_cost.py --views    with tensors as attnjit.TensorView, torch not needed

Where ATTNJIT_LIBCUDA names the mock driver of the tests, --views runs without a GPU.
"""

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import attnjit  # noqa: E402  from there

BATCH, HEADS, PAGES = 64, 16, 1024


def make_views():
    """A function (dtype, shape) -> tensor at one address, which no kernel may really use."""
    return lambda dtype, *shape: attnjit.TensorView(1 << 60, dtype, shape)


def make_torch():
    """The same of torch's tensors, zero."""
    import torch
    names = attnjit.tensors.TORCH_NAMES
    return lambda dtype, *shape: torch.zeros(shape, dtype=getattr(torch, names[dtype]),
                                             device="cuda")


def synchronizer(uses_torch):
    """Waits for the device; a queue that is full would be measured otherwise."""
    if not uses_torch:
        return lambda: None
    import torch
    return torch.cuda.synchronize


def microseconds(call, synchronize, calls=200, rounds=25):
    """Of one call: the best round of few enough calls that the device's queue takes them all."""
    best = float("inf")
    for _ in range(rounds):
        synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    synchronize()
    return best * 1e6


def decode_calls(runtime, tensor):
    """Update and run of an MLA decode, and the operation that does both and allocates."""
    kernel = runtime.prepare(attnjit.descriptors.mla_decode_descriptor(num_q_heads=HEADS))
    plan = kernel.plan_decode(BATCH)
    seq_lens = tensor("int32", BATCH)
    tensors = {"q": tensor("bf16", BATCH, 1, HEADS, 576),
               "k_cache": tensor("bf16", PAGES, 64, 1, 576),
               "block_table": tensor("int32", BATCH, PAGES // BATCH), "seq_lens": seq_lens,
               "out": tensor("bf16", BATCH, 1, HEADS, 512), "lse": tensor("fp32", BATCH, HEADS, 1)}
    workspace = tensor("uint8", plan.workspace_bytes)
    plan.update(seq_lens)
    yield "plan.update", lambda: plan.update(seq_lens)
    yield "plan.run, 6 tensors", lambda: plan.run(**tensors, workspace=workspace,
                                                  softmax_scale=0.1)
    yield "mla_decode, all given", lambda: attnjit.mla_decode(
        tensors["q"], tensors["k_cache"], tensors["block_table"], seq_lens, out=tensors["out"],
        lse=tensors["lse"], workspace=workspace, runtime=runtime, softmax_scale=0.1)


def prefill_calls(runtime, tensor):
    """A ragged prefill in one part."""
    kernel = runtime.prepare(attnjit.descriptors.prefill_descriptor(
        num_q_heads=HEADS, num_kv_heads=HEADS, head_dim_qk=128, head_dim_v=128))
    rows = tensor("bf16", 64, HEADS, 128)
    offsets = tensor("int32", 2)
    tensors = {"q": rows, "k": rows, "v": rows, "q_offsets": offsets, "kv_offsets": offsets,
               "out": tensor("bf16", 64, HEADS, 128), "lse": tensor("fp32", HEADS, 64)}
    yield "run_prefill, 7 tensors", lambda: kernel.run_prefill(**tensors)


def merge_calls(runtime, tensor):
    """The merge of two parts."""
    kernel = runtime.prepare(attnjit.descriptors.merge_states_descriptor(head_dim=512))
    out, lse = tensor("bf16", BATCH, HEADS, 512), tensor("fp32", BATCH, HEADS)
    yield "run_merge_states, 2 parts", lambda: kernel.run_merge_states(
        partials=[(out, lse), (out, lse)], out=out, lse=lse)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", action="store_true", help="TensorViews in place of torch")
    arguments = parser.parse_args()
    tensor = make_views() if arguments.views else make_torch()
    synchronize = synchronizer(not arguments.views)
    print(f"{'call':<28} {'us':>6}  {'us, pointers trusted':>20}")
    asking, trusting = (attnjit.Runtime(trusts_pointers=trusts) for trusts in (False, True))
    for make in (decode_calls, prefill_calls, merge_calls):
        for (name, call), (_, trusting_call) in zip(make(asking, tensor), make(trusting, tensor)):
            print(f"{name:<28} {microseconds(call, synchronize):6.2f}  "
                  f"{microseconds(trusting_call, synchronize):20.2f}", flush=True)


main()
