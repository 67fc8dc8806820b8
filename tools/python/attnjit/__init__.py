"""attnjit: attention kernels made at run time, from Python.

    out, lse = attnjit.paged_decode(q, k_cache, v_cache, block_table, seq_lens)

or, with what is done once apart from what is done once a step and once a layer:

    kernel = attnjit.default_runtime().prepare({"num_q_heads": 32, "num_kv_heads": 8})
    plan = kernel.plan_decode(max_batch=64)
    plan.update(seq_lens)                                        # once a step
    plan.run(q=q, k_cache=k, v_cache=v, block_table=table, seq_lens=seq_lens, out=out,
             workspace=workspace)                                # once a layer

Tensors are torch's, CuPy's, or any other's with `__cuda_array_interface__` or `__dlpack__`. torch
is not needed, and not imported by this module.
"""

import sys

from ._library import library
from .decode_plan import DecodePlan
from .errors import (AttnjitError, ColdKernelError, CompileError, CudaError, DriverError,
                     InternalError, InvalidArgumentError, InvalidCallError,
                     InvalidDescriptorError, LibraryError, MissingKernelError, NotStoredError,
                     OutOfMemoryError, TemplateError, TensorError, ToolchainError)
from . import descriptors
from .kernels import Kernel, PrefillSplit
from .operations import (append_kv_cache, merge_attention_states, mla_decode,
                         mla_prefill_rope, paged_decode, prefill, prefill_kvcache,
                         sparse_mla_decode, sparse_mla_prefill)
from .runtime import Miss, Runtime, default_runtime
from .tensors import TensorView

__all__ = [
    "AttnjitError", "ColdKernelError", "CompileError", "CudaError", "DecodePlan", "DriverError",
    "InternalError", "InvalidArgumentError", "InvalidCallError", "InvalidDescriptorError", "Kernel",
    "LibraryError", "Miss", "MissingKernelError", "NotStoredError", "OutOfMemoryError",
    "PrefillSplit", "Runtime", "TemplateError", "TensorError", "TensorView", "ToolchainError",
    "append_kv_cache", "default_runtime", "descriptors", "library_version",
    "merge_attention_states", "mla_decode",
    "mla_prefill_rope", "paged_decode", "prefill", "prefill_kvcache", "sparse_mla_decode",
    "sparse_mla_prefill",
]


def library_version() -> str:
    """The version of libattnjit.so, "0.1.0". Raises LibraryError."""
    return library().attnjit_version().decode()


if hasattr(getattr(sys.modules.get("torch"), "library", None), "register_fake"):
    from . import torch_ops  # noqa: F401  torch.compile must find the ops before the first call
