"""attnjit: attention kernels made at run time, from Python.

    kernel = attnjit.default_runtime().prepare({"num_q_heads": 32, "num_kv_heads": 8})
    plan = kernel.plan_decode(max_batch=64)
    plan.update(seq_lens)                                        # once a step
    plan.run(q=q, k_cache=k, v_cache=v, block_table=table, seq_lens=seq_lens, out=out,
             workspace=workspace)                                # once a layer

Tensors are torch's, CuPy's, or any other's with `__cuda_array_interface__` or `__dlpack__`. torch
is not needed, and not imported by this module.
"""

from ._library import library
from .decode_plan import DecodePlan
from .errors import (AttnjitError, ColdKernelError, CompileError, CudaError, DriverError,
                     InternalError, InvalidArgumentError, InvalidCallError,
                     InvalidDescriptorError, LibraryError, MissingKernelError, OutOfMemoryError,
                     TemplateError, TensorError, ToolchainError)
from .kernels import Kernel, PrefillSplit
from .runtime import Miss, Runtime, default_runtime
from .tensors import TensorView

__all__ = [
    "AttnjitError", "ColdKernelError", "CompileError", "CudaError", "DecodePlan", "DriverError",
    "InternalError", "InvalidArgumentError", "InvalidCallError", "InvalidDescriptorError",
    "Kernel", "LibraryError", "Miss", "MissingKernelError", "OutOfMemoryError", "PrefillSplit",
    "Runtime", "TemplateError", "TensorError", "TensorView", "ToolchainError", "default_runtime",
    "library_version",
]


def library_version() -> str:
    """The version of libattnjit.so, "0.1.0". Raises LibraryError."""
    return library().attnjit_version().decode()
