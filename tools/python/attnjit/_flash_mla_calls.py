"""What the functions of flash_mla run on: kernels of a runtime whose plans live in torch's memory,
outputs from torch, and LSEs as FlashMLA has them."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from typing import Any, Callable, Dict, Optional, Tuple, TypeVar

from ._arguments import integer
from ._flash_mla_names import Names
from .allocation import allocate, workspace_for
from .descriptors import (decode_descriptor, sparse_mla_decode_descriptor,
                          sparse_mla_prefill_descriptor)
from .decode_plan import DecodePlan
from .errors import AttnjitError, InvalidCallError, TensorError
from .prepared import kernel_of
from .prefill_operations import prefill, prefill_kvcache
from .runtime import Runtime
from .streams import current_torch_stream
from .tensors import dtype_and_shape

Function = TypeVar("Function", bound=Callable[..., Any])

# More query tokens are no decode to attnjit.
_MOST_DECODE_TOKENS = 128
# By the bytes of a token.
_ENCODINGS = {656: "fp8_656", 584: "fp8_584"}
_HEAD_DIMS = {"fp8_656": 576, "fp8_584": 512}


class _TorchMemory:
    """Device memory of plans from torch, so that it may be had in a graph capture, and goes back
    in the order of streams."""

    def __init__(self) -> None:
        self._blocks: Dict[int, Any] = {}

    def allocate(self, device: int, size: int) -> int:
        torch = sys.modules["torch"]
        block = torch.empty((max(size, 1),), dtype=torch.uint8, device=f"cuda:{device}")
        self._blocks[block.data_ptr()] = block
        return block.data_ptr()

    def release(self, device: int, address: int, size: int) -> None:
        self._blocks.pop(address, None)


@functools.lru_cache(maxsize=None)
def _runtime(device: int) -> Runtime:
    """The runtime of flash_mla's calls on `device`. Torch vouches for its tensors' addresses."""
    memory = _TorchMemory()
    return Runtime(device=device, trusts_pointers=True, allocate=memory.allocate,
                   release=memory.release)


def _device_of(name: str, tensor: Any) -> int:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor):
        raise TensorError(f"{name} is a {type(tensor).__name__}: must be a torch tensor")
    if not tensor.is_cuda:
        raise TensorError(f"{name} is on {tensor.device}: must be on a CUDA device; move it with "
                          ".cuda()")
    return tensor.get_device()


def entry(names: Names) -> Callable[[Function], Function]:
    """Makes a function one of flash_mla's: with the device of its first tensor as torch's current
    one, for the default stream is that of the current device, and with errors in its `names`."""

    def decorate(function: Function) -> Function:
        first = next(iter(inspect.signature(function).parameters))

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            device = _device_of(first, arguments[0] if arguments else keywords.get(first))
            cuda = sys.modules["torch"].cuda
            try:
                if device == cuda.current_device():
                    return function(*arguments, **keywords)
                with cuda.device(device):
                    return function(*arguments, **keywords)
            except AttnjitError as error:
                names.tell(error)
                raise

        return call  # type: ignore[return-value]

    return decorate


def batch_shape(q: Any, k_cache: Any) -> Tuple[int, int, int, int, int]:
    """(b, s_q, h_q, page size, h_kv) of a call over a cache. Raises TensorError."""
    try:
        batch, seqlen_q, num_q_heads, _ = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
    except (ValueError, AttributeError):
        dtype_and_shape("q", q, 4)
        dtype_and_shape("k_cache", k_cache, 4)
        raise
    return batch, seqlen_q, num_q_heads, page_size, num_kv_heads


def check_tensors(**tensors: Any) -> None:
    """That each is torch's, or None. Raises TensorError."""
    torch = sys.modules["torch"]
    for name, tensor in tensors.items():
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise TensorError(f"{name} is a {type(tensor).__name__}: must be a torch tensor")


def check_columns(name: str, packed: Any, head_dim_qk: int, times: int) -> None:
    """That a packed tensor has head_dim_qk columns so many times, and v's. Raises TensorError,
    InvalidArgumentError."""
    check_tensors(**{name: packed})
    _, (_, _, columns) = dtype_and_shape(name, packed, 3)
    integer("head_dim_qk", head_dim_qk, 1, max((columns - 1) // times, 1),
            f"{name} has {columns} columns, v's among them")


def _with_unseen_rows(lse: Any) -> Any:
    """`lse`, with +inf in place of the -inf of rows that see nothing."""
    return sys.modules["torch"].nan_to_num_(lse, nan=math.nan, posinf=math.inf, neginf=math.inf)


def _check_batch(batch: int, seqlen_q: int, cache_seqlens: Any) -> None:
    """That a split can be made. Raises InvalidCallError, TensorError."""
    for name, extent in (("b", batch), ("s_q", seqlen_q)):
        if extent == 0:
            rule, fix = "must be at least 1", "leave the call out where there is nothing to decode"
            raise InvalidCallError(f"{name} = 0: {rule}; fix: {fix}", [
                {"field": name, "value": "0", "rule": rule, "fix": fix}])
    if tuple(cache_seqlens.shape) != (batch,):
        raise TensorError(f"cache_seqlens has shape {list(cache_seqlens.shape)}: must be "
                          f"[{batch}], the b of q; give one length for each request")


class _DenseSplit:
    """The kernel of one metadata object's dense calls, and its plan. One of a graph capture has
    the graph's memory, and is computed by its replays: eager calls have another."""

    def __init__(self, kind: Tuple[Any, ...], q: Any, k_cache: Any, head_dim_v: int,
                 causal: bool, has_sinks: bool) -> None:
        self.kind = kind
        dtype, (batch, seqlen_q, num_q_heads, head_dim_qk) = dtype_and_shape("q", q, 4)
        device = q.get_device()
        kernel = kernel_of(
            _runtime(device), decode_descriptor, current_torch_stream(device), dtype=dtype,
            num_q_heads=num_q_heads, num_kv_heads=k_cache.shape[2], head_dim_qk=head_dim_qk,
            head_dim_v=head_dim_v, page_size=k_cache.shape[1], max_seqlen_q=seqlen_q,
            v_is_prefix_of_k=True, causal=causal and seqlen_q > 1, has_sinks=has_sinks)
        self.plan: DecodePlan = kernel.plan_decode(batch, seqlen_q)
        self._lengths: Optional[int] = None

    def update(self, cache_seqlens: Any) -> None:
        """Computes the split, unless it was from the lengths at this address."""
        lengths = cache_seqlens.data_ptr()
        if lengths != self._lengths:
            self.plan.update(cache_seqlens)
            self._lengths = lengths


def decode_dense(metadata: Any, q: Any, k_cache: Any, block_table: Any, cache_seqlens: Any,
                 head_dim_v: int, softmax_scale: Optional[float], causal: bool,
                 sinks: Any) -> Tuple[Any, Any]:
    """out and LSE of a dense call. Raises AttnjitError."""
    batch, seqlen_q, num_q_heads, head_dim_qk = q.shape
    if seqlen_q > _MOST_DECODE_TOKENS:
        out, lse = prefill_kvcache(
            q, k_cache, None, block_table, cache_seqlens, head_dim_v=head_dim_v, causal=causal,
            softmax_scale=softmax_scale, sinks=sinks, runtime=_runtime(q.get_device()))
        return out, _with_unseen_rows(lse)
    _check_batch(batch, seqlen_q, cache_seqlens)
    torch, device = sys.modules["torch"], q.device
    kind = (q.dtype, device.index, head_dim_qk, head_dim_v, sinks is None,
            torch.cuda.is_current_stream_capturing())
    split = metadata._prepared
    if split is None or split.kind != kind:
        split = _DenseSplit(kind, q, k_cache, head_dim_v, causal, sinks is not None)
        metadata._prepared = split
    split.update(cache_seqlens)
    out = torch.empty((batch, seqlen_q, num_q_heads, head_dim_v), dtype=q.dtype, device=device)
    lse = torch.empty((batch, num_q_heads, seqlen_q), dtype=torch.float32, device=device)
    split.plan.run(
        q=q, k_cache=k_cache, block_table=block_table, seq_lens=cache_seqlens, sinks=sinks,
        out=out, lse=lse, softmax_scale=softmax_scale,
        workspace=workspace_for(split.plan.workspace_bytes, None, like=out, stream=None))
    return out, _with_unseen_rows(lse)


def _as_bytes(cache: Any) -> Any:
    """A cache of int8 as uint8; others as they are."""
    torch = sys.modules["torch"]
    is_signed = cache is not None and cache.dtype == torch.int8
    return cache.view(torch.uint8) if is_signed else cache


def _encoding(q: Any, k_cache: Any) -> str:
    """How the cache's tokens are encoded. Raises InvalidCallError."""
    if k_cache.element_size() > 1:
        return "plain"
    encoding = _ENCODINGS.get(k_cache.shape[-1])
    if encoding is None or q.shape[-1] != _HEAD_DIMS[encoding]:
        raise InvalidCallError(
            f"k_cache has tokens of {k_cache.shape[-1]} bytes under a q of {q.shape[-1]} columns: "
            "must be 656 under 576 columns, or 584 under 512")
    return encoding


def _sparse_kernel(q: Any, make: Callable[..., Dict[str, Any]], head_dim_v: int, sinks: Any,
                   **arguments: Any) -> Any:
    dtype, shape = dtype_and_shape("q", q, 3, 4)
    device = q.get_device()
    return kernel_of(_runtime(device), make, current_torch_stream(device), num_q_heads=shape[-2],
                     head_dim_qk=shape[-1], head_dim_v=head_dim_v, dtype=dtype,
                     has_sinks=sinks is not None, **arguments)


def decode_sparse(metadata: Any, q: Any, k_cache: Any, indices: Any, head_dim_v: int,
                  softmax_scale: Optional[float], *, sinks: Any, extra_kv: Any,
                  **tensors: Any) -> Tuple[Any, Any]:
    """out and LSE of a sparse call over a cache. Raises AttnjitError."""
    batch, seqlen_q, num_q_heads, head_dim_qk = q.shape
    kind = (q.dtype, q.get_device(), head_dim_qk, head_dim_v, sinks is None, k_cache.shape[-1],
            k_cache.element_size())
    prepared = metadata._prepared
    if prepared is None or prepared[0] != kind:
        prepared = (kind, _sparse_kernel(q, sparse_mla_decode_descriptor, head_dim_v, sinks,
                                         page_size=k_cache.shape[1],
                                         kv_encoding=_encoding(q, k_cache)))
        metadata._prepared = prepared
    torch, device = sys.modules["torch"], q.device
    out = torch.empty((batch, seqlen_q, num_q_heads, head_dim_v), dtype=q.dtype, device=device)
    lse = torch.empty((batch, seqlen_q, num_q_heads), dtype=torch.float32, device=device)
    prepared[1].run_sparse_mla(
        q=q, kv=_as_bytes(k_cache), indices=indices, sinks=sinks, extra_kv=_as_bytes(extra_kv),
        out=out, lse=lse.transpose(1, 2), softmax_scale=softmax_scale, **tensors)
    return out, _with_unseen_rows(lse).transpose(1, 2)


def prefill_sparse(q: Any, kv: Any, indices: Any, softmax_scale: float, head_dim_v: int,
                   topk_length: Any, sinks: Any) -> Tuple[Any, Any, Any]:
    """out, LSE and largest scores of a sparse call over rows. Raises AttnjitError."""
    kernel = _sparse_kernel(q, sparse_mla_prefill_descriptor, head_dim_v, sinks)
    dtype, (seqlen_q, num_q_heads, _) = dtype_and_shape("q", q, 3)
    out = allocate("out", (seqlen_q, num_q_heads, head_dim_v), dtype, like=q, stream=None)
    lse, max_logits = (allocate(name, (seqlen_q, num_q_heads), "fp32", like=q, stream=None)
                       for name in ("lse", "max_logits"))
    kernel.run_sparse_mla(q=q, kv=kv, indices=indices, topk_length=topk_length, sinks=sinks,
                          out=out, lse=lse, max_logits=max_logits,
                          softmax_scale=softmax_scale)
    return out, _with_unseen_rows(lse), max_logits


def prefill_dense(q: Any, k: Any, v: Any, q_offsets: Any, kv_offsets: Any,
                  softmax_scale: Optional[float], causal: bool) -> Tuple[Any, Any]:
    """out and LSE [total_q, h_q] over ragged keys. Raises AttnjitError."""
    for name, tensor, rank in (("q", q, 3), ("k", k, 3), ("v", v, 3)):
        dtype_and_shape(name, tensor, rank)
    check_tensors(k=k, v=v)
    if sys.modules["torch"].is_grad_enabled() and any(
            tensor.requires_grad for tensor in (q, k, v)):
        raise InvalidCallError("q, k or v requires a gradient: must not, for only the forward is "
                               "served; call under torch.no_grad()")
    out, lse = prefill(q, k, v, q_offsets=q_offsets, kv_offsets=kv_offsets, causal=causal,
                       softmax_scale=softmax_scale, runtime=_runtime(q.get_device()))
    return out, _with_unseen_rows(lse).T
