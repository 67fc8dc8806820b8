"""The struct of a call, written as bytes: one buffer per thread and kind of call, so that a call
costs the tensors that it has and no allocation."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any, Mapping, Optional, Sequence, Tuple, Type

from . import _structs
from ._arguments import refuse_float, tensors as tensors_of
from .errors import TensorError
from .tensors import (find_reader, memory_of, readers, readonly_error, refuse,
                      torch_types)

_TENSOR_BYTES = ctypes.sizeof(_structs.Tensor)


def _tensor_format(rank: int) -> str:
    """attnjit_tensor with `rank` extents and strides, the others 0."""
    padding = f"{8 * (_structs.MAX_RANK - rank)}x"
    return f"@Qii{rank}q{padding}{rank}q{padding}"


_packers = tuple(struct.Struct(_tensor_format(rank)).pack_into
                 for rank in range(_structs.MAX_RANK + 1))
_pack_float = struct.Struct("@f").pack_into
_pack_partials = struct.Struct("@QQ").pack_into
# The library takes 0 for the default. This is 0 to every product that matters, and no denormal.
_LEAST_SCALE = 1e-37


class _Slot:
    """The place of one tensor, and what stands there."""

    __slots__ = ("offset", "word", "is_written", "shape", "strides", "code", "dtype", "turn")

    def __init__(self, offset: int, is_written: bool) -> None:
        self.offset = offset
        self.is_written = is_written  # by the call
        self.word = offset // 8
        self.shape: Optional[Sequence[int]] = None  # None: the place is blank
        self.strides: Optional[Sequence[int]] = None
        self.code = -1
        self.dtype: Any = None  # torch's, of a torch tensor that was contiguous
        self.turn = -1  # of the last fill that wrote it

    def holds(self, tensor: Any, device: int) -> bool:
        """Whether all but the address of this torch tensor stands here. Of one that is contiguous
        torch answers in half the time that its strides take."""
        return (tensor.dtype is self.dtype and tensor.is_contiguous()
                and tensor.get_device() == device and tensor.shape == self.shape)


class _TensorPlaces:
    """Tensors at fixed places of some memory. Shapes seldom change from call to call, so a tensor
    whose shape stands there already costs the writing of its address."""

    __slots__ = ("memory", "address", "_pin", "_words", "_slots", "_turn", "_count")

    def __init__(self, content: bytes, offsets: Mapping[str, int],
                 written: Sequence[str] = ()) -> None:
        self.memory = bytearray(content)
        self._pin = (ctypes.c_char * len(content)).from_buffer(self.memory)
        self.address = ctypes.addressof(self._pin)
        self._words = memoryview(self.memory).cast("Q")
        self._slots = {name: _Slot(offset, name in written) for name, offset in offsets.items()}
        self._turn = 0
        self._count = 0  # places filled by the last turn; -1: it failed

    def fill(self, tensors: Mapping[str, Any], device: int) -> bool:
        """Writes the tensors that are not None; all others become "not given". Returns whether
        torch's are among them. Raises TensorError, also for a name without a place."""
        slots, words = self._slots, self._words
        last = self._turn
        turn = self._turn = last + 1
        before, self._count = self._count, -1
        count = fresh = 0
        of_torch = False
        name = ""
        try:
            for name, tensor in tensors.items():
                if tensor is None:
                    continue
                slot = slots[name]
                is_torch = type(tensor) in torch_types
                if is_torch and slot.dtype is not None and slot.holds(tensor, device):
                    words[slot.word] = tensor.data_ptr()
                else:
                    self._write(slot, tensor, device)
                    is_torch = type(tensor) in torch_types  # known since it was read
                if slot.turn != last:
                    fresh += 1
                slot.turn = turn
                count += 1
                if is_torch:
                    of_torch = True
        except Exception as error:  # of a foreign tensor's own interface too
            if name not in slots:
                raise TensorError(f"{name} is no tensor of this call; its tensors are "
                                  f"{', '.join(slots)}") from None
            refuse(name, error)
        if fresh or count != before:
            self._clear(turn)
        self._count = count
        return of_torch

    def _write(self, slot: _Slot, tensor: Any, device: int) -> None:
        kind = type(tensor)
        read = readers.get(kind) or find_reader(tensor)
        pointer, code, shape, strides, place, is_readonly = read(tensor)
        if place is not None and place != device:
            raise TensorError(f"on device {place}: must be on the kernel's, {device}")
        if is_readonly and slot.is_written:
            raise readonly_error()
        if shape == slot.shape and strides == slot.strides and code == slot.code:
            self._words[slot.word] = pointer
        else:
            rank = len(shape)
            if rank > _structs.MAX_RANK:
                raise TensorError(f"of {rank} dimensions: must have at most {_structs.MAX_RANK} "
                                  "dimensions; merge some of them")
            # A packer that refuses a number has written those before it: until it is through, what
            # stands here is not blank, and no tensor's.
            slot.shape, slot.strides, slot.code, slot.dtype = shape, strides, -1, None
            _packers[rank](self.memory, slot.offset, pointer, code, rank, *shape, *strides)
            slot.code = code
        slot.dtype = tensor.dtype if kind in torch_types and tensor.is_contiguous() else None

    def _clear(self, turn: int) -> None:
        """Blanks what was filled before `turn`, and not by it."""
        for slot in self._slots.values():
            if slot.turn != turn and slot.shape is not None:
                self.memory[slot.offset:slot.offset + _TENSOR_BYTES] = bytes(_TENSOR_BYTES)
                slot.shape = slot.dtype = None


class CallBuffer(_TensorPlaces):
    """One struct with its tensors. Of one thread, and filled anew for each call."""

    __slots__ = ("_scalars", "_workspace")

    def __init__(self, kind: Type[ctypes.Structure],
                 written: Sequence[str] = ("out", "lse", "max_logits")) -> None:
        size = ctypes.sizeof(kind)
        fields = [(field[0], field[1]) for field in kind._fields_]  # type: ignore[attr-defined]
        super().__init__(
            struct.pack("@Q", size) + bytes(size - 8),
            {name: getattr(kind, name).offset for name, of in fields if of is _structs.Tensor},
            written)
        self._scalars = {
            name: getattr(kind, name).offset for name, of in fields if of is ctypes.c_float}
        self._workspace: Tuple[Any, Any, int] = (None, None, 0)  # shape, dtype, bytes: torch's

    def set_scalar(self, name: str, value: float) -> None:
        """Writes a number, which stays until it is written again. Raises InvalidArgumentError."""
        try:
            _pack_float(self.memory, self._scalars[name], value)
        except Exception:  # of a foreign number's own __float__ too
            refuse_float(name, value)

    def set_scale(self, softmax_scale: Optional[float]) -> None:
        """Writes the softmax scale; None is 1 / sqrt(head_dim_qk). Raises InvalidArgumentError."""
        if softmax_scale is None:
            softmax_scale = 0.0
        else:
            try:
                if abs(softmax_scale) < _LEAST_SCALE:
                    softmax_scale = _LEAST_SCALE
            except Exception:
                refuse_float("softmax_scale", softmax_scale)
        self.set_scalar("softmax_scale", softmax_scale)

    def workspace(self, tensor: Any) -> Tuple[int, int]:
        """Address and bytes of a contiguous tensor; (0, 0) of None. Raises TensorError."""
        if tensor is None:
            return 0, 0
        if type(tensor) not in torch_types:
            return memory_of("workspace", tensor)
        shape, dtype, size = self._workspace
        if not (tensor.dtype is dtype and tensor.shape == shape and tensor.is_contiguous()):
            size = memory_of("workspace", tensor)[1]
            self._workspace = (tensor.shape, tensor.dtype, size)
        return tensor.data_ptr(), size


class MergeBuffer(CallBuffer):
    """The call of a merge with its list of partial results."""

    __slots__ = ("_partials",)

    def __init__(self) -> None:
        super().__init__(_structs.MergeStatesCall)
        kind = _structs.PartialAttention
        size = ctypes.sizeof(kind)
        self._partials = _TensorPlaces(bytes(size * _structs.MAX_PARTIALS), {
            f"partials[{index}].{field}": index * size + getattr(kind, field).offset
            for index in range(_structs.MAX_PARTIALS) for field in ("out", "lse")})

    def fill_partials(self, partials: Sequence[Tuple[Any, Any]], device: int) -> bool:
        """Writes (out, lse) of each part, after fill. Returns and raises as fill does."""
        count = len(tensors_of("partials", partials))
        if count > _structs.MAX_PARTIALS:
            raise TensorError(f"{count} partials: must be at most {_structs.MAX_PARTIALS}; merge "
                              "some of them first")
        tensors = {}
        for index, part in enumerate(partials):
            if len(tensors_of(f"partials[{index}]", part)) != 2:
                raise TensorError(f"partials[{index}] has {len(part)} tensors: must be a pair of "
                                  "out and lse; give both")
            out, lse = part
            tensors[f"partials[{index}].out"] = out
            tensors[f"partials[{index}].lse"] = lse
        of_torch = self._partials.fill(tensors, device)
        _pack_partials(self.memory, _structs.MergeStatesCall.partials.offset,
                       self._partials.address, count)
        return of_torch


class _Buffers(threading.local):
    """The buffers of one thread."""

    def __init__(self) -> None:
        self.decode = CallBuffer(_structs.DecodeCall)
        self.prefill = CallBuffer(_structs.PrefillCall)
        self.sparse_mla = CallBuffer(_structs.SparseMlaCall)
        self.append = CallBuffer(_structs.AppendKvCacheCall, ("k_cache", "v_cache"))
        self.merge = MergeBuffer()


buffers = _Buffers()
