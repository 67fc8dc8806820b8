"""Errors of flash_mla's functions in the names of their own arguments and shapes: what they run on
has attnjit's. Each function has one table, of attnjit's names and its own."""

from __future__ import annotations

import re
from typing import Match

from .errors import AttnjitError

# Up to this length a name is also a word of other sentences ("a kv head").
_LONGEST_WORD = 2


class Names:
    """One function's table. A name of one or two letters is told where a line begins with it, as
    the field that is wrong; all others wherever they stand."""

    def __init__(self, **names: str) -> None:
        self._names = names
        long = [name for name in names if len(name) > _LONGEST_WORD]
        self._pattern = re.compile(rf"(?m)^(?:{'|'.join(names)})\b|\b(?:{'|'.join(long)})\b")

    def _told(self, text: str) -> str:
        def own(match: Match[str]) -> str:
            return self._names[match[0]]

        return self._pattern.sub(own, text)

    def tell(self, error: AttnjitError) -> None:
        """Puts `error`, its message and violations, into these names."""
        error.message = self._told(error.message)
        error.args = (error.message,)
        error.violations = [{key: text if key == "value" else self._told(text)
                             for key, text in violation.items()}
                            for violation in error.violations]


_SHAPES = {"num_q_heads": "h_q", "num_kv_heads": "h_kv", "dtype_q": "q.dtype",
           "dtype_out": "out.dtype", "sinks": "attn_sink"}
_VARLEN = {**_SHAPES, "head_dim_v": "d_v", "q_offsets": "cu_seqlens_qo",
           "kv_offsets": "cu_seqlens_kv"}

WITH_KVCACHE = Names(
    **_SHAPES, head_dim_qk="d", page_size="k_cache.shape[1]", max_seqlen_q="s_q", max_batch="b",
    dtype_kv="k_cache.dtype", kv="k_cache", seq_lens="cache_seqlens", extra_kv="extra_k_cache",
    extra_indices="extra_indices_in_kvcache")
SPARSE_FWD = Names(**_SHAPES, head_dim_qk="d", head_dim_v="d_v", dtype_kv="kv.dtype",
                   softmax_scale="sm_scale")
VARLEN = Names(**_VARLEN, head_dim_qk="d", dtype_kv="k.dtype")
# The columns of a packed tensor are looked at one by one.
VARLEN_KVPACKED = Names(**_VARLEN, dtype_kv="kv.dtype", k="kv (its k)", v="kv (its v)")
VARLEN_QKVPACKED = Names(
    **{**_VARLEN, "q_offsets": "cu_seqlens", "kv_offsets": "cu_seqlens", "dtype_q": "qkv.dtype"},
    dtype_kv="qkv.dtype", q="qkv (its q)", k="qkv (its k)", v="qkv (its v)")
