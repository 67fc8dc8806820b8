"""What a step of context-parallel decode costs, for context_parallel_decode.py. exchange_us is the
all-gather by itself, one after the other; added_us what it adds to a layer, where each also waits
for the slower rank.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import torch
import torch.distributed as dist

from context_parallel_decode import (PAGE, Heads, KvSlice, SlicedDecode, captured, random_cache,
                                     random_queries)

BATCHES = (1, 8)
TOKENS = (131072, 524288, 1048576)
_LAYERS = 16  # of a graph
_REPLAYS = 20
# Caches that take turns hold at least so much: several times the L2 cache.
_LEAST_BYTES = 512 << 20


def _local_cache(heads: Heads, batch: int, tokens: int, device: torch.device) -> KvSlice:
    """`tokens` keys of each request, in as many layers as it takes to be read from memory."""
    columns = heads.head_dim_qk + (0 if heads.is_latent else heads.head_dim_v)
    layer_bytes = batch * tokens * heads.num_kv_heads * columns * 2
    layers = min(_LAYERS, max(1, -(-_LEAST_BYTES // layer_bytes)))
    return random_cache(heads, [tokens] * batch, layers, device)


def _microseconds(calls: Callable[[int], None], all_ranks: bool) -> float:
    """Of one layer, from replays of a graph of several; the slowest rank's with `all_ranks`."""

    def layers() -> None:
        for layer in range(_LAYERS):
            calls(layer)

    if dist.get_backend() == "nccl":
        graph = captured(layers)
        run = graph.replay
    else:
        run = layers
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    if all_ranks:
        dist.barrier()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(_REPLAYS):
        run()
    end.record()
    torch.cuda.synchronize()
    time = torch.tensor([begin.elapsed_time(end) * 1000 / _REPLAYS / _LAYERS], dtype=torch.float64)
    if all_ranks:
        time = time.cuda() if dist.get_backend() == "nccl" else time
        dist.all_reduce(time, dist.ReduceOp.MAX)
    return float(time)


def _one_gpu(heads: Heads, batch: int, tokens: int, device: torch.device) -> float:
    """The same decode over all keys, on rank 0, while the others wait; NaN on those."""
    time = float("nan")
    if dist.get_rank() == 0:
        kv = _local_cache(heads, batch, tokens, device)
        q = random_queries(heads, batch, device)
        decode = SlicedDecode(heads, batch, device)
        decode.update(kv)
        time = _microseconds(lambda layer: decode.decode(q, kv, layer), all_ranks=False)
        del kv
        torch.cuda.empty_cache()
    dist.barrier()
    return time


def _measure(heads: Heads, batch: int, tokens: int, device: torch.device) -> Dict[str, Any]:
    ranks = dist.get_world_size()
    one_gpu = _one_gpu(heads, batch, tokens, device)
    kv = _local_cache(heads, batch, tokens // (PAGE * ranks) * PAGE, device)
    q = random_queries(heads, batch, device)
    decode = SlicedDecode(heads, batch, device)
    decode.update(kv)

    def without_exchange(layer: int) -> None:
        decode.decode(q, kv, layer)
        decode.merge()

    alone = _microseconds(lambda layer: decode.decode(q, kv, layer), all_ranks=True)
    no_exchange = _microseconds(without_exchange, all_ranks=True)
    exchange = _microseconds(lambda layer: decode.exchange(), all_ranks=True)
    step = _microseconds(lambda layer: decode.run(q, kv, layer), all_ranks=True)
    del kv
    torch.cuda.empty_cache()
    return {"setup": heads.name, "batch": batch, "tokens": tokens, "ranks": ranks,
            "one_gpu_us": round(one_gpu, 2), "step_us": round(step, 2),
            "speedup": round(one_gpu / step, 3), "decode_us": round(alone, 2),
            "merge_us": round(no_exchange - alone, 2), "exchange_us": round(exchange, 2),
            "exchange_share": round(exchange / step, 4),
            "added_us": round(step - no_exchange, 2)}


def bench(setups: List[Heads], device: torch.device) -> List[Dict[str, Any]]:
    """One row for each setup, batch and length; rank 0 prints them as they come."""
    rows: List[Dict[str, Any]] = []
    for heads in setups:
        for batch in BATCHES:
            for tokens in TOKENS:
                row = _measure(heads, batch, tokens, device)
                if dist.get_rank() == 0:
                    if not rows:
                        print(f"{torch.cuda.get_device_name()}, {dist.get_backend()}; times are of "
                              "one layer, in microseconds")
                        print("  ".join(f"{name:>14}" for name in row))
                    print("  ".join(f"{value!s:>14}" for value in row.values()), flush=True)
                rows.append(row)
    return rows
