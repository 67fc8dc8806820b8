"""Attention in fp32, and problems for it, by torch."""

import torch


def attend(q, k, v, scale, visible):
    """One request. q: [rows, heads, columns]; k, v: [keys, kv_heads, columns]; visible: bool
    [rows, keys]. Returns out [rows, heads, columns of v] and lse [heads, rows]."""
    q_per_kv = q.shape[1] // k.shape[1]
    k = k.float().repeat_interleave(q_per_kv, dim=1)
    v = v.float().repeat_interleave(q_per_kv, dim=1)
    scores = torch.einsum("rhd,khd->hrk", q.float(), k) * scale
    scores = scores.masked_fill(~visible, float("-inf"))
    lse = scores.logsumexp(dim=-1)
    weights = torch.exp(scores - lse.unsqueeze(-1)).nan_to_num()
    return torch.einsum("hrk,khd->rhd", weights, v), lse


def causal(rows, keys, device):
    """Bottom-right aligned: bool [rows, keys]."""
    last = torch.arange(rows, device=device).unsqueeze(1) + keys - rows
    return torch.arange(keys, device=device).unsqueeze(0) <= last


def decode(q, k_cache, v_cache, block_table, seq_lens, scale):
    """As attnjit.paged_decode, causal; v_cache as wide as v is."""
    outs, lses = [], []
    for request, length in enumerate(seq_lens.tolist()):
        k, v = (cache[block_table[request].long()].flatten(0, 1)[:length]
                for cache in (k_cache, v_cache))
        out, lse = attend(q[request], k, v, scale, causal(q.shape[1], length, q.device))
        outs.append(out)
        lses.append(lse)
    return torch.stack(outs), torch.stack(lses)


class PagedProblem:
    """A decode whose pages lie in no order. v_cache is the first columns of k_cache if kv_heads is
    1, as of latents."""

    def __init__(self, seq_lens, *, heads, kv_heads, columns, columns_v, seqlen_q=1, page_size=64,
                 dtype=torch.bfloat16):
        torch.manual_seed(len(seq_lens) + heads + columns)
        batch, pages = len(seq_lens), -(-max(seq_lens) // page_size)
        self.q = torch.randn(batch, seqlen_q, heads, columns, device="cuda").to(dtype)
        self.k_cache = torch.randn(batch * pages + 3, page_size, kv_heads, columns,
                                   device="cuda").to(dtype)
        self.v_cache = (self.k_cache[..., :columns_v] if kv_heads == 1
                        else torch.randn_like(self.k_cache[..., :columns_v]).contiguous())
        self.block_table = torch.randperm(batch * pages + 3, device="cuda")[
            :batch * pages].int().reshape(batch, pages)
        self.seq_lens = torch.tensor(seq_lens, dtype=torch.int32, device="cuda")
        self.scale = columns ** -0.5

    def expected(self):
        return decode(self.q, self.k_cache, self.v_cache, self.block_table, self.seq_lens,
                      self.scale)
