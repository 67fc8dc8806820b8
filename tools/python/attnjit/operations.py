"""The operations as one call each."""

from .cache_operations import append_kv_cache, merge_attention_states
from .decode_operations import mla_decode, paged_decode
from .prefill_operations import mla_prefill_rope, prefill, prefill_kvcache
from .sparse_mla_operations import sparse_mla_decode, sparse_mla_prefill

__all__ = ["append_kv_cache", "merge_attention_states", "mla_decode", "mla_prefill_rope",
           "paged_decode", "prefill", "prefill_kvcache", "sparse_mla_decode",
           "sparse_mla_prefill"]
