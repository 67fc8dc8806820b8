"""Kernels and plans that the operations keep, so that a call finds those of an earlier one."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._arguments import (MOST_INT32, Fields, descriptor_json, further_fields, instance, integer,
                         shown)
from .decode_plan import DecodePlan
from .errors import ColdKernelError, InvalidArgumentError
from .kernels import Kernel
from .runtime import Runtime, default_runtime
from .streams import Stream, current_stream_is_captured
from .tensors import dtype_and_shape, dtype_of, read

_kernels: Dict[Tuple[Any, ...], Kernel] = {}


def runtime_of(tensor: object, runtime: Optional[Runtime]) -> Runtime:
    """`runtime`, or the default one of the device that `tensor` is on. Raises
    InvalidArgumentError."""
    if runtime is None:
        return default_runtime(read(tensor)[4] or 0)
    return instance("runtime", runtime, Runtime, "give an attnjit.Runtime, or leave it out")


def plan_or_none(plan: Optional[DecodePlan]) -> Optional[DecodePlan]:
    """A caller's plan. Raises InvalidArgumentError."""
    if plan is None:
        return None
    return instance("plan", plan, DecodePlan, "give what Kernel.plan_decode returns")


def value_columns(head_dim_v: int, name: str, values: Any, *ranks: int) -> int:
    """`head_dim_v`, or where it is 0 the columns of the argument `name`. Raises TensorError,
    InvalidArgumentError."""
    _, shape = dtype_and_shape(name, values, *ranks)
    return integer("head_dim_v", head_dim_v, 0, MOST_INT32, "give the columns of v, or 0 for "
                   f"those of {name}") or shape[-1]


def with_fields(inferred: Dict[str, Any], fields: Fields) -> Dict[str, Any]:
    """`inferred` with the fields that the caller sets. Raises InvalidDescriptorError."""
    given = further_fields(fields)
    return {**inferred, **given} if given else inferred


def mask_fields(mask: Any) -> Dict[str, Any]:
    """The fields of a materialized mask: of bytes, or of numbers that are added to the scores.
    Raises TensorError."""
    dtype = dtype_of("mask", mask)
    kind = "materialized_bool" if dtype == "uint8" else "materialized_additive"
    return {"mask": kind, "dtype_mask": dtype, "window_left": -1, "window_right": -1}


def _refuse_unhashable(arguments: Dict[str, Any]) -> None:
    for name, value in arguments.items():
        try:
            hash(value)
        except TypeError:
            raise InvalidArgumentError(f"{name} = {shown(value)}: must be a string, an integer or "
                                       "a bool; give one") from None


def kernel_of(runtime: Runtime, make: Callable[..., Dict[str, Any]], stream: Stream = None, *,
              fields: Fields = None, **arguments: Any) -> Kernel:
    """The kernels of the descriptor make(**arguments) with `fields` set in it. Kept until the
    process ends. Raises what Runtime.prepare raises."""
    extra = further_fields(fields)
    # As JSON, for 1 is True to a dictionary and not to a descriptor.
    key = (runtime.handle, make, *arguments.items(), descriptor_json(extra) if extra else b"")
    try:
        kernel = _kernels.get(key)
    except TypeError:
        _refuse_unhashable(arguments)
        raise
    if kernel is None:
        kernel = runtime.prepare({**make(**arguments), **extra}, stream)
        _kernels[key] = kernel
    return kernel


class _ThreadPlans(threading.local):
    """Plans of one thread, each for one stream: calls that share a plan are then in order."""

    def __init__(self) -> None:
        self.plans: Dict[Tuple[int, ...], DecodePlan] = {}


_of_thread = _ThreadPlans()
_lock = threading.Lock()
# A plan cannot be made while a graph is captured, so there is a spare for the next capture.
_spares: Dict[Tuple[int, ...], DecodePlan] = {}
_captured: List[DecodePlan] = []  # graphs use them, and do not own them


def _add_spare(kernel: Kernel, shape: Tuple[int, int, int]) -> None:
    spare = kernel.plan_decode(*shape)
    with _lock:
        _spares.setdefault((kernel.handle, *shape), spare)


def _take_spare(kernel: Kernel, shape: Tuple[int, int, int]) -> DecodePlan:
    with _lock:
        plan = _spares.pop((kernel.handle, *shape), None)
        if plan is None:
            raise ColdKernelError(
                "no plan is left for a graph: a plan allocates, which a capture forbids; call the "
                "operation once before the capture, or give it a plan")
        _captured.append(plan)
    return plan


def _rounded(number: int) -> int:
    """The next power of two, cut to what a plan may be asked for."""
    return min(1 << max(number - 1, 0).bit_length(), MOST_INT32)


def plan_of(kernel: Kernel, batch: int, seqlen_q: int, max_seqlen_kv: int,
            stream: int) -> DecodePlan:
    """A plan for at least `batch` requests of at least `max_seqlen_kv` keys that only this thread
    uses, and only on `stream`; in a capture one that only this thread's captures on the stream
    use. Plans are kept, for graphs and work on the GPU may use them, so numbers that change from
    call to call are rounded up: at most 32 of each. No result depends on them, only how much
    memory a plan and its workspace have. Raises InvalidCallError, CudaError, ColdKernelError."""
    shape = (_rounded(batch), seqlen_q, _rounded(max_seqlen_kv) if max_seqlen_kv else 0)
    key = (kernel.handle, *shape)
    own = (stream, *key)
    plan = _of_thread.plans.get(own)
    if plan is not None and key in _spares:
        return plan
    is_captured = current_stream_is_captured(kernel.device)
    if not is_captured and key not in _spares:
        _add_spare(kernel, shape)
    if plan is None:
        plan = _take_spare(kernel, shape) if is_captured else kernel.plan_decode(*shape)
        _of_thread.plans[own] = plan
    return plan
