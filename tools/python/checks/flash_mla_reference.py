"""Attention in plain torch, as FlashMLA defines it: what results are held against. From the same
tensors that a call gets, fp8 bytes included. Everything is computed in `precision`."""

from __future__ import annotations

import dataclasses
import math
from typing import List, Optional, Sequence, Tuple

import torch

from fp8_tokens import gather_tokens

# Bytes of keys that are gathered at once.
_CHUNK_BYTES = 1 << 31


def _rows_that_see(lse: torch.Tensor, out: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """LSE +inf and out 0 of rows that see nothing."""
    unseen = torch.isneginf(lse)
    out = torch.where(unseen.unsqueeze(-1), 0.0, out)
    return torch.where(unseen, math.inf, lse), out


def _attend(q: torch.Tensor, keys: torch.Tensor, head_dim_v: int, scale: float,
            causal: bool) -> Tuple[torch.Tensor, torch.Tensor]:
    """LSE [s_q, h_q] and out of one request: q [s_q, h_q, d] over keys [n, h_kv, d]."""
    seqlen_q, num_q_heads, _ = q.shape
    count, num_kv_heads, _ = keys.shape
    group = num_q_heads // num_kv_heads
    rows = q.unflatten(1, (num_kv_heads, group)).transpose(0, 1).flatten(1, 2)
    scores = rows @ keys.permute(1, 2, 0) * scale  # [h_kv, s_q * group, n]
    if causal and seqlen_q > 1:
        token = torch.arange(seqlen_q, device=q.device).repeat_interleave(group)
        last = token.unsqueeze(1) + (count - seqlen_q)
        scores = scores.masked_fill(torch.arange(count, device=q.device) > last, -math.inf)
    lse = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - lse.unsqueeze(-1)).nan_to_num_(0.0)
    out = weights @ keys[..., :head_dim_v].transpose(0, 1)

    def by_token(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.unflatten(1, (seqlen_q, group)).transpose(0, 1).flatten(1, 2)

    return by_token(lse), by_token(out)


def dense_decode(q: torch.Tensor, k_cache: torch.Tensor, block_table: torch.Tensor,
                 lengths: Sequence[int], head_dim_v: int, scale: float, causal: bool,
                 precision: torch.dtype) -> Tuple[torch.Tensor, torch.Tensor]:
    """out [b, s_q, h_q, head_dim_v] in q's type, and LSE fp32 [b, h_q, s_q]. `lengths` are those
    of cache_seqlens."""
    batch, seqlen_q, num_q_heads, _ = q.shape
    page_size = k_cache.shape[1]
    lse = q.new_full((batch, seqlen_q, num_q_heads), -math.inf, dtype=precision)
    out = q.new_zeros((batch, seqlen_q, num_q_heads, head_dim_v), dtype=precision)
    for request, length in enumerate(lengths):
        if length > 0:
            pages = block_table[request, :-(-length // page_size)]
            keys = k_cache[pages].flatten(0, 1)[:length].to(precision)
            lse[request], out[request] = _attend(q[request].to(precision), keys, head_dim_v,
                                                 scale, causal)
    lse, out = _rows_that_see(lse, out)
    return out.to(q.dtype), lse.float().transpose(1, 2)


@dataclasses.dataclass
class Tokens:
    """Tokens that queries name: a pool [pages, page_size, 1, width], encoded or plain, or rows
    [s_kv, 1, d]; indices int32 [rows, topk]; and how many of each list count, int32 [rows]."""

    pool: torch.Tensor
    indices: torch.Tensor
    counts: Optional[torch.Tensor] = None

    def gather(self, rows: slice, precision: torch.dtype) -> Tuple[torch.Tensor, torch.Tensor]:
        """Keys [rows, topk, d], 0 where none is named, and where one is."""
        indices = self.indices[rows]
        pool = self.pool if self.pool.dim() == 4 else self.pool.unsqueeze(1)
        named = (indices >= 0) & (indices < pool.shape[0] * pool.shape[1])
        if self.counts is not None:
            place = torch.arange(indices.shape[1], device=indices.device)
            named &= place < self.counts[rows].unsqueeze(1)
        keys = gather_tokens(pool, torch.where(named, indices, 0).long())
        return torch.where(named.unsqueeze(-1), keys, 0).to(precision), named


def _attend_tokens(q: torch.Tensor, keys: torch.Tensor, named: torch.Tensor, head_dim_v: int,
                   scale: float, sinks: Optional[torch.Tensor]) -> List[torch.Tensor]:
    """out, LSE and largest scores of q [rows, h_q, d] over keys [rows, topk, d]."""
    scores = q @ keys.transpose(1, 2) * scale
    scores.masked_fill_(~named.unsqueeze(1), -math.inf)
    lse = torch.logsumexp(scores, -1)
    total = lse if sinks is None else torch.logaddexp(lse, sinks.to(lse.dtype))
    weights = torch.exp(scores - total.unsqueeze(-1)).nan_to_num_(0.0)
    largest = scores.amax(-1)
    lse, out = _rows_that_see(lse, weights @ keys[..., :head_dim_v])
    return [out, lse, largest]


def sparse(q: torch.Tensor, pools: Sequence[Tokens], head_dim_v: int, scale: float,
           sinks: Optional[torch.Tensor],
           precision: torch.dtype) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """out [rows, h_q, head_dim_v], LSE and largest scores [rows, h_q] of q [rows, h_q, d], all in
    `precision`."""
    rows, _, columns = q.shape
    entries = sum(tokens.indices.shape[1] for tokens in pools)
    step = max(1, _CHUNK_BYTES // (entries * columns * precision.itemsize))
    parts = []
    for start in range(0, rows, step):
        chunk = slice(start, start + step)
        gathered = [tokens.gather(chunk, precision) for tokens in pools]
        parts.append(_attend_tokens(
            q[chunk].to(precision), torch.cat([keys for keys, _ in gathered], 1),
            torch.cat([named for _, named in gathered], 1), head_dim_v, scale, sinks))
    out, lse, largest = (torch.cat(tensors) for tensors in zip(*parts))
    return out, lse, largest
