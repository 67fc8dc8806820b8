"""A stand-in for flash_mla that answers with the reference: for runs without a GPU, which show
that inputs, reference and comparison agree with themselves."""

from __future__ import annotations

from typing import Any, List, Optional

import torch

import flash_mla_reference
from flash_mla_reference import Tokens


class ReferenceModule:
    """The functions that the grid calls."""

    def __init__(self, precision: torch.dtype) -> None:
        self._precision = precision

    def get_mla_metadata(self) -> tuple:
        return None, None

    def flash_mla_with_kvcache(
            self, q: Any, k_cache: Any, block_table: Any, cache_seqlens: Any, head_dim_v: int,
            tile_scheduler_metadata: Any, num_splits: None = None,
            softmax_scale: Optional[float] = None, causal: bool = False,
            is_fp8_kvcache: bool = False, indices: Any = None, attn_sink: Any = None,
            extra_k_cache: Any = None, extra_indices_in_kvcache: Any = None,
            topk_length: Any = None, extra_topk_length: Any = None) -> tuple:
        scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
        if indices is None:
            return flash_mla_reference.dense_decode(
                q, k_cache, block_table, cache_seqlens.tolist(), head_dim_v, scale, causal,
                self._precision)
        batch, seqlen_q, num_q_heads, _ = q.shape
        pools: List[Tokens] = []
        for pool, lists, counts in ((k_cache, indices, topk_length),
                                    (extra_k_cache, extra_indices_in_kvcache, extra_topk_length)):
            if pool is not None:
                counts = None if counts is None else counts.repeat_interleave(seqlen_q)
                pools.append(Tokens(pool, lists.flatten(0, 1), counts))
        out, lse, _ = flash_mla_reference.sparse(q.flatten(0, 1), pools, head_dim_v, scale,
                                                 attn_sink, self._precision)
        lse = lse.float().view(batch, seqlen_q, num_q_heads).transpose(1, 2)
        return out.to(q.dtype).view(batch, seqlen_q, num_q_heads, head_dim_v), lse

    def flash_mla_sparse_fwd(self, q: Any, kv: Any, indices: Any, sm_scale: float,
                             d_v: int = 512, attn_sink: Any = None,
                             topk_length: Any = None) -> tuple:
        out, lse, largest = flash_mla_reference.sparse(
            q, [Tokens(kv, indices.squeeze(1), topk_length)], d_v, sm_scale, attn_sink,
            self._precision)
        return out.to(q.dtype), largest.float(), lse.float()
