"""Kernels and plans that the operations keep, so that a call finds those of an earlier one."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from .decode_plan import DecodePlan
from .errors import ColdKernelError
from .kernels import Kernel
from .runtime import Runtime, default_runtime
from .streams import Stream, current_stream_is_captured
from .tensors import DTYPE_NAMES, read

# Further fields of a descriptor, or their JSON.
Fields = Union[None, str, Mapping[str, Any]]

_kernels: Dict[Tuple[Any, ...], Kernel] = {}


def runtime_of(tensor: object, runtime: Optional[Runtime]) -> Runtime:
    """`runtime`, or the default one of the device that `tensor` is on."""
    return runtime or default_runtime(read(tensor)[4] or 0)


def with_fields(inferred: Dict[str, Any], fields: Fields) -> Dict[str, Any]:
    """`inferred` with the fields that the caller sets."""
    given = json.loads(fields) if isinstance(fields, str) else fields
    return {**inferred, **given} if given else inferred


def mask_fields(mask: Any) -> Dict[str, Any]:
    """The fields of a materialized mask: of bytes, or of numbers that are added to the scores."""
    dtype = DTYPE_NAMES[read(mask)[1]]
    kind = "materialized_bool" if dtype == "uint8" else "materialized_additive"
    return {"mask": kind, "dtype_mask": dtype, "window_left": -1, "window_right": -1}


def kernel_of(runtime: Runtime, make: Callable[..., Dict[str, Any]], stream: Stream = None, *,
              fields: Fields = None, **arguments: Any) -> Kernel:
    """The kernels of the descriptor make(**arguments) with `fields` set in it. Kept until the
    process ends. Raises what Runtime.prepare raises."""
    extra = with_fields({}, fields)
    key = (runtime.handle, make, *arguments.items(), *sorted(extra.items()))
    kernel = _kernels.get(key)
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


def plan_of(kernel: Kernel, batch: int, seqlen_q: int, max_seqlen_kv: int,
            stream: int) -> DecodePlan:
    """A plan for at least `batch` requests that only this thread uses, and only on `stream`; in a
    capture one that only this thread's captures on the stream use. Raises InvalidCallError,
    CudaError, ColdKernelError."""
    shape = (1 << max(batch - 1, 0).bit_length(), seqlen_q, max_seqlen_kv)
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
