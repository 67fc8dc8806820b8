#!/usr/bin/env python3
"""A backend for latent attention as serving engines have it: metadata built once a step, `forward`
called by every layer. Decodes run over the latent cache as it stands. Prefills run over projected
keys: the new tokens among themselves, then, where a prompt comes in pieces, the part of it that is
in the cache already, chunk by chunk in a workspace of bounded size, merged by LSE.

Run as a program it serves a few requests and holds every step against torch in fp32.
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import sys
from typing import Any, Dict, List, Sequence, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import torch  # noqa: E402

import attnjit  # noqa: E402

PAGE = 64
HEADS, NOPE, ROPE, VALUE, LORA = 16, 128, 64, 128, 512
SCALE = (NOPE + ROPE) ** -0.5


def on_device(numbers: Sequence[int], dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype).to("cuda", non_blocking=True)


def offsets_of(counts: Sequence[int]) -> torch.Tensor:
    """int32 [n + 1]: where each of consecutive pieces begins, and the end."""
    return on_device([sum(counts[:end]) for end in range(len(counts) + 1)])


@dataclasses.dataclass
class Request:
    """A request of a step, as a scheduler hands it out."""

    pages: List[int]  # of its cache, for all its tokens
    num_cached: int  # tokens before those of this step
    num_new: int

    def slots(self, begin: int, end: int) -> List[int]:
        return [self.pages[at // PAGE] * PAGE + at % PAGE for at in range(begin, end)]


@dataclasses.dataclass
class ContextChunk:
    """Cached tokens that prefills of a step attend to at once."""

    slots: torch.Tensor  # int64 [tokens]: page * PAGE + row
    kv_offsets: torch.Tensor  # int32 [prefills + 1]


@dataclasses.dataclass
class StepMetadata:
    """What all layers of a step share. Decodes stand before prefills."""

    num_decodes: int
    slot_mapping: torch.Tensor  # int64 [tokens]: where new tokens are written
    seq_lens: torch.Tensor  # int32 [decodes], those being decoded included
    block_table: torch.Tensor  # int32 [decodes, columns]
    q_offsets: torch.Tensor  # int32 [prefills + 1]
    chunks: List[ContextChunk]


class MetadataBuilder:
    """Builds the metadata of a step, and splits its decodes over the device, once for all layers.

    max_decodes: requests of one token at a time. workspace_tokens: of a chunk of context, all
    prefills together.
    """

    def __init__(self, max_decodes: int, workspace_tokens: int) -> None:
        runtime = attnjit.default_runtime(torch.cuda.current_device())
        self.decode_plan = runtime.prepare(attnjit.descriptors.mla_decode_descriptor(
            num_q_heads=HEADS, page_size=PAGE, kv_lora_rank=LORA,
            qk_rope_head_dim=ROPE)).plan_decode(max_decodes)
        self._workspace_tokens = workspace_tokens

    def build(self, requests: Sequence[Request]) -> StepMetadata:
        """Decodes are the requests, before all others, of one new token behind cached ones."""
        decodes = list(itertools.takewhile(
            lambda request: request.num_new == 1 and request.num_cached > 0, requests))
        prefills = requests[len(decodes):]
        columns = max((len(request.pages) for request in decodes), default=1)
        table = [number for request in decodes
                 for number in request.pages + [0] * (columns - len(request.pages))]
        metadata = StepMetadata(
            num_decodes=len(decodes),
            slot_mapping=on_device([slot for request in requests for slot in request.slots(
                request.num_cached, request.num_cached + request.num_new)], torch.int64),
            seq_lens=on_device([request.num_cached + 1 for request in decodes]),
            block_table=on_device(table).view(len(decodes), columns),
            q_offsets=offsets_of([request.num_new for request in prefills]),
            chunks=self._chunks(prefills))
        if decodes:
            self.decode_plan.update(metadata.seq_lens)
        return metadata

    def _chunks(self, prefills: Sequence[Request]) -> List[ContextChunk]:
        longest = max((request.num_cached for request in prefills), default=0)
        step = max(1, self._workspace_tokens // max(1, len(prefills)))
        chunks = []
        for begin in range(0, longest, step):
            parts = [request.slots(begin, max(begin, min(begin + step, request.num_cached)))
                     for request in prefills]
            chunks.append(ContextChunk(on_device(sum(parts, []), torch.int64),
                                       offsets_of([len(part) for part in parts])))
        return chunks


@dataclasses.dataclass
class LatentLayer:
    """Weights that bring latents to heads: k [HEADS, LORA, NOPE], v [HEADS, LORA, VALUE]; and the
    layer's cache [pages, PAGE, 1, LORA + ROPE]."""

    up_k: torch.Tensor
    up_v: torch.Tensor
    cache: torch.Tensor

    def project(self, latents: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """k [n, HEADS, NOPE + ROPE] and v [n, HEADS, VALUE] of latents [n, LORA + ROPE]."""
        compressed, rope = latents[:, :LORA], latents[:, LORA:]
        k_nope = torch.einsum("nl,hld->nhd", compressed, self.up_k)
        rope = rope.unsqueeze(1).expand(-1, HEADS, -1)
        return (torch.cat([k_nope, rope], -1),
                torch.einsum("nl,hld->nhd", compressed, self.up_v).contiguous())


class LatentBackend:
    """What a layer calls."""

    def __init__(self, builder: MetadataBuilder) -> None:
        self._plan = builder.decode_plan

    def forward(self, layer: LatentLayer, q: torch.Tensor, latents: torch.Tensor,
                metadata: StepMetadata) -> torch.Tensor:
        """q [tokens, HEADS, NOPE + ROPE] and latents [tokens, LORA + ROPE] of the step's new
        tokens. Writes these to the cache; returns [tokens, HEADS, VALUE]."""
        attnjit.append_kv_cache(latents.unsqueeze(1), None, layer.cache, None,
                                slot_mapping=metadata.slot_mapping)
        out = q.new_empty((len(q), HEADS, VALUE))
        decodes = metadata.num_decodes
        if decodes:
            out[:decodes] = self._decode(layer, q[:decodes], metadata)
        if len(q) > decodes:
            out[decodes:] = self._prefill(layer, q[decodes:], latents[decodes:], metadata)
        return out

    def _decode(self, layer: LatentLayer, q: torch.Tensor,
                metadata: StepMetadata) -> torch.Tensor:
        """k's weights go into q, and v's come after attention over latents."""
        latent_q = torch.einsum("nhd,hld->nhl", q[..., :NOPE], layer.up_k)
        latent_out, _ = attnjit.mla_decode(
            torch.cat([latent_q, q[..., NOPE:]], -1).unsqueeze(1), layer.cache,
            metadata.block_table, metadata.seq_lens, softmax_scale=SCALE, plan=self._plan)
        return torch.einsum("nhl,hld->nhd", latent_out.squeeze(1), layer.up_v)

    def _prefill(self, layer: LatentLayer, q: torch.Tensor, latents: torch.Tensor,
                 metadata: StepMetadata) -> torch.Tensor:
        q = q.contiguous()
        k, v = layer.project(latents)
        out, lse = attnjit.prefill(q, k, v, q_offsets=metadata.q_offsets,
                                   kv_offsets=metadata.q_offsets, softmax_scale=SCALE)
        rows = layer.cache.view(-1, LORA + ROPE)
        for chunk in metadata.chunks:
            k, v = layer.project(rows[chunk.slots])
            context_out, context_lse = attnjit.prefill(
                q, k, v, q_offsets=metadata.q_offsets, kv_offsets=chunk.kv_offsets, causal=False,
                softmax_scale=SCALE)
            # LSEs are [heads, tokens]; a request without context in the chunk has -inf.
            attnjit.merge_attention_states([out, context_out], [lse.T, context_lse.T], out=out,
                                           lse=lse.T)
        return out


class Simulation:
    """Requests that grow step by step, and attention over all they ever were in fp32."""

    def __init__(self) -> None:
        torch.manual_seed(5)
        num_pages, self.free = 64, list(torch.randperm(64).tolist())
        cache = torch.full((num_pages, PAGE, 1, LORA + ROPE), float("nan"), device="cuda",
                           dtype=torch.bfloat16)
        self.layer = LatentLayer(self._weights(NOPE), self._weights(VALUE), cache)
        self.pages: Dict[str, List[int]] = {}
        self.latents: Dict[str, torch.Tensor] = {}
        builder = MetadataBuilder(max_decodes=8, workspace_tokens=128)
        self.builder, self.backend = builder, LatentBackend(builder)

    @staticmethod
    def _weights(width: int) -> torch.Tensor:
        weights = torch.randn(HEADS, LORA, width, device="cuda") * LORA ** -0.5
        return weights.bfloat16()

    def _request(self, name: str, num_new: int) -> Request:
        latents = self.latents.get(name, torch.empty(0, LORA + ROPE, device="cuda",
                                                     dtype=torch.bfloat16))
        pages = self.pages.setdefault(name, [])
        while len(pages) * PAGE < len(latents) + num_new:
            pages.append(self.free.pop())
        new = torch.randn(num_new, LORA + ROPE, device="cuda").bfloat16()
        self.latents[name] = torch.cat([latents, new])
        return Request(pages, len(latents), num_new)

    def _expected(self, name: str, q: torch.Tensor) -> torch.Tensor:
        """fp32 [n, HEADS, VALUE] of q, the last n tokens of a request."""
        wide = LatentLayer(self.layer.up_k.float(), self.layer.up_v.float(), self.layer.cache)
        k, v = wide.project(self.latents[name].float())
        scores = torch.einsum("qhd,nhd->hqn", q.float(), k) * SCALE
        hidden = torch.ones(scores.shape[1:], dtype=torch.bool, device="cuda")
        scores.masked_fill_(hidden.triu(len(k) - len(q) + 1), float("-inf"))
        return torch.einsum("hqn,nhd->qhd", scores.softmax(-1), v)

    def step(self, new_tokens: Dict[str, int]) -> float:
        """The worst error of a step's output, as a share of its row's largest element."""
        requests = [self._request(name, count) for name, count in new_tokens.items()]
        counts = list(new_tokens.values())
        q = torch.randn(sum(counts), HEADS, NOPE + ROPE, device="cuda").bfloat16()
        latents = torch.cat([self.latents[name][-count:] for name, count in new_tokens.items()])
        out = self.backend.forward(self.layer, q, latents, self.builder.build(requests))
        expected = torch.cat([self._expected(name, rows)
                              for name, rows in zip(new_tokens, q.split(counts))])
        scale = expected.abs().amax(-1, keepdim=True)
        return float(((out.float() - expected).abs() / scale).amax())


def main() -> int:
    torch.backends.cuda.matmul.allow_tf32 = False
    simulation = Simulation()
    steps: List[Tuple[str, Dict[str, Any]]] = [
        ("two prompts", {"a": 100, "b": 300}),
        ("decodes beside a prompt's first piece", {"a": 1, "b": 1, "c": 200}),
        ("decodes beside its next piece and a new prompt", {"b": 1, "a": 1, "c": 150, "d": 70}),
        ("three pieces over contexts of several chunks", {"c": 129, "d": 64, "a": 40}),
        ("decodes alone", {"a": 1, "b": 1, "c": 1, "d": 1})]
    failed = 0
    for name, new_tokens in steps:
        error = simulation.step(new_tokens)
        is_ok = error <= 0.03  # bf16 of projected keys, weights and outputs; a NaN is not
        failed += not is_ok
        print(f"{'ok' if is_ok else 'FAILED':6} {name}: error {error:.4f} of the largest element")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
