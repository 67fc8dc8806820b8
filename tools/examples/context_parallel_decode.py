#!/usr/bin/env python3
"""Context-parallel decode: the keys of every request are spread over GPUs page by page, each rank
decodes over its own, one all-gather brings outputs and LSEs together, and a merge makes them
attention over all keys. Started by torchrun, with any number of ranks:

    torchrun --nproc-per-node 2 tools/examples/context_parallel_decode.py --check
    torchrun --nproc-per-node 2 tools/examples/context_parallel_decode.py --bench
    torchrun --nproc-per-node 2 tools/examples/context_parallel_decode.py --check --backend gloo

With gloo the ranks may share a GPU: the exchange goes through the host, and nothing is captured.
One query token per request: the positions of a slice's keys are not those of the request's, so
causal masks over several query tokens would need them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
os.environ["NCCL_NVLS_ENABLE"] = "0"  # NVLink multicast, which some virtual machines do not have

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import attnjit  # noqa: E402

PAGE = 64
_MOST_PARTS = 32  # of one merge
_SEED = 7


@dataclasses.dataclass(frozen=True)
class Heads:
    """Heads of one attention layer. Latent: v is the first columns of k."""

    name: str
    num_q_heads: int
    num_kv_heads: int
    head_dim_qk: int
    head_dim_v: int
    is_latent: bool


SETUPS = [Heads("mla-16", 16, 1, 576, 512, True), Heads("mla-128", 128, 1, 576, 512, True),
          Heads("gqa-32-8", 32, 8, 128, 128, False), Heads("gqa-16-1", 16, 1, 128, 128, False)]


@dataclasses.dataclass
class KvSlice:
    """The keys that a rank holds: caches [layers, pages, PAGE, kv heads, columns] (v None if
    latent), table int32 [batch, columns], and how many keys of each request, int32 [batch]."""

    k: torch.Tensor
    v: Optional[torch.Tensor]
    table: torch.Tensor
    lengths: torch.Tensor

    def tensors(self, layer: int) -> Dict[str, Any]:
        at = layer % self.k.shape[0]
        return {"k_cache": self.k[at], "v_cache": None if self.v is None else self.v[at],
                "block_table": self.table, "seq_lens": self.lengths}


class SlicedDecode:
    """Decode of a batch over a slice per rank. Outputs and LSEs of all ranks lie in one buffer, so
    that one all-gather brings them."""

    def __init__(self, heads: Heads, batch: int, device: torch.device) -> None:
        runtime = attnjit.default_runtime(device.index or 0)
        self._plan = runtime.prepare(attnjit.descriptors.decode_descriptor(
            num_q_heads=heads.num_q_heads, num_kv_heads=heads.num_kv_heads,
            head_dim_qk=heads.head_dim_qk, head_dim_v=heads.head_dim_v, page_size=PAGE,
            v_is_prefix_of_k=heads.is_latent)).plan_decode(batch)
        self._merge = runtime.prepare(
            attnjit.descriptors.merge_states_descriptor(head_dim=heads.head_dim_v))
        self._workspace = torch.empty(max(self._plan.workspace_bytes, 1), dtype=torch.uint8,
                                      device=device)
        rows = batch * heads.num_q_heads
        out_bytes = rows * heads.head_dim_v * 2
        part_bytes = (out_bytes + rows * 4 + 15) // 16 * 16
        self.rank, ranks = dist.get_rank(), dist.get_world_size()
        self._gathered = torch.empty((ranks, part_bytes), dtype=torch.uint8, device=device)
        shape = (batch, heads.num_q_heads, heads.head_dim_v)
        self._parts = [(part[:out_bytes].view(torch.bfloat16).view(shape),
                        part[out_bytes:out_bytes + rows * 4].view(torch.float32).view(shape[:2]))
                       for part in self._gathered]
        self.out = torch.empty(shape, dtype=torch.bfloat16, device=device)
        self.lse = torch.empty(shape[:2], dtype=torch.float32, device=device)

    def update(self, kv: KvSlice) -> None:
        """Once a step: splits the batch over this GPU."""
        self._plan.update(kv.lengths)

    def decode(self, q: torch.Tensor, kv: KvSlice, layer: int = 0) -> None:
        """q [batch, 1, heads, columns] over this rank's keys, into its part of the buffer."""
        out, lse = self._parts[self.rank]
        self._plan.run(q=q, out=out.unsqueeze(1), lse=lse.unsqueeze(2), workspace=self._workspace,
                       **kv.tensors(layer))

    def exchange(self) -> None:
        """Every rank's part to all ranks."""
        own = self._gathered[self.rank]
        if dist.get_backend() == "nccl":
            dist.all_gather_into_tensor(self._gathered.view(-1), own)
            return
        parts = [torch.empty_like(own, device="cpu") for _ in self._parts]
        dist.all_gather(parts, own.cpu())
        self._gathered.copy_(torch.stack(parts))

    def merge(self) -> None:
        """Attention over all keys from the parts, into `out` and `lse`."""
        parts = self._parts[:_MOST_PARTS]
        rest = self._parts[_MOST_PARTS:]
        self._merge.run_merge_states(partials=parts, out=self.out, lse=self.lse)
        while rest:
            parts, rest = rest[:_MOST_PARTS - 1], rest[_MOST_PARTS - 1:]
            self._merge.run_merge_states(partials=[(self.out, self.lse), *parts], out=self.out,
                                         lse=self.lse)

    def run(self, q: torch.Tensor, kv: KvSlice, layer: int = 0) -> None:
        """One layer."""
        self.decode(q, kv, layer)
        self.exchange()
        self.merge()


def owners(policy: str, pages: int, ranks: int) -> torch.Tensor:
    """The rank of each page of a request. Interleaved, ranks have as many pages up to one, whatever
    the length; the others are for --check."""
    page = torch.arange(pages)
    if policy == "uneven":  # the last rank has every page that two would have
        return (page % (ranks + 1)).clamp_max(ranks - 1)
    if policy == "last-empty":
        return page % max(ranks - 1, 1)
    return page % ranks


def slice_of(whole: KvSlice, rank: int, ranks: int, policy: str) -> KvSlice:
    """A rank's pages of a cache that holds all keys, copied."""
    tables, lengths = [], []
    for row, length in zip(whole.table.cpu(), whole.lengths.tolist()):
        pages = -(-length // PAGE)
        owned = (owners(policy, pages, ranks) == rank).nonzero().flatten()
        has_last = len(owned) > 0 and int(owned[-1]) == pages - 1
        lengths.append(len(owned) * PAGE - (pages * PAGE - length if has_last else 0))
        tables.append(row[owned])
    used = torch.cat(tables)
    columns = max(1, *map(len, tables))
    table = torch.full((len(tables), columns), -1, dtype=torch.int32)
    first = 0
    for row, pages_of_request in zip(table, tables):
        row[:len(pages_of_request)] = torch.arange(first, first + len(pages_of_request))
        first += len(pages_of_request)
    if len(used) == 0:
        used = torch.zeros(1, dtype=torch.int32)  # a cache has at least a page
    device = whole.k.device
    used = used.long().to(device)
    return KvSlice(whole.k[:, used], None if whole.v is None else whole.v[:, used],
                   table.to(device), torch.tensor(lengths, dtype=torch.int32, device=device))


def random_cache(heads: Heads, lengths: List[int], layers: int, device: torch.device) -> KvSlice:
    """All keys of a batch, the same on every rank, in pages of random order."""
    generator = torch.Generator(device)
    generator.manual_seed(_SEED)
    columns = max(-(-length // PAGE) for length in lengths)
    pages = len(lengths) * columns
    table = torch.randperm(pages, device=device, generator=generator).view(-1, columns).int()

    def pool(width: int) -> torch.Tensor:
        return torch.randn((layers, pages, PAGE, heads.num_kv_heads, width), device=device,
                           dtype=torch.bfloat16, generator=generator)

    return KvSlice(pool(heads.head_dim_qk), None if heads.is_latent else pool(heads.head_dim_v),
                   table, torch.tensor(lengths, dtype=torch.int32, device=device))


def random_queries(heads: Heads, batch: int, device: torch.device) -> torch.Tensor:
    generator = torch.Generator(device)
    generator.manual_seed(_SEED + 1)
    return torch.randn((batch, 1, heads.num_q_heads, heads.head_dim_qk), device=device,
                       dtype=torch.bfloat16, generator=generator)


def one_gpu_decode(heads: Heads, q: torch.Tensor,
                   kv: KvSlice) -> Tuple[torch.Tensor, torch.Tensor]:
    """out [batch, heads, columns] and LSE [batch, heads] over all keys on this GPU."""
    tensors = kv.tensors(0)
    out, lse = attnjit.paged_decode(
        q, tensors["k_cache"], tensors["v_cache"], kv.table, kv.lengths,
        head_dim_v=heads.head_dim_v)
    return out.squeeze(1), lse.squeeze(2)


def captured(calls: Callable[[], None]) -> Any:
    """A graph of `calls`, which have run before it is captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            calls()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # NCCL's watchdog thread asks for events meanwhile, which a global capture forbids.
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        calls()
    return graph


def start(backend: Optional[str]) -> torch.device:
    """Joins the other ranks; this rank's device."""
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    if backend == "nccl":
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")
    return device


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true", help="compare with one GPU")
    mode.add_argument("--bench", action="store_true", help="time steps, prints a table and JSON")
    parser.add_argument("--backend", choices=["nccl", "gloo"], default="nccl")
    parser.add_argument("--setup", choices=[heads.name for heads in SETUPS], action="append",
                        help="default: all for --check, MLA for --bench")
    arguments = parser.parse_args()
    device = start(arguments.backend)
    chosen = [heads for heads in SETUPS if heads.name in (arguments.setup or [])]
    if arguments.check:
        from context_parallel_check import check
        failed = check(chosen or SETUPS, device)
    else:
        from context_parallel_bench import bench
        results = bench(chosen or [heads for heads in SETUPS if heads.is_latent], device)
        if dist.get_rank() == 0:
            print(json.dumps(results))
        failed = 0
    dist.destroy_process_group()
    return 1 if failed else 0


if __name__ == "__main__":
    # Check and bench import this file by its name.
    sys.modules["context_parallel_decode"] = sys.modules["__main__"]
    sys.exit(main())
