"""Tensors of other libraries as attnjit sees them: address, type, shape, strides. Nothing is
copied, kept or synchronised.

A tensor may be torch's, anything with `__cuda_array_interface__` (CuPy, Numba) or `__dlpack__`
(JAX, CuPy), or a TensorView. bool counts as uint8. Types that a library does not have are given
by a view: `TensorView.of(cupy_uint16_array, dtype="bf16")`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import sys
from typing import Any, Callable, Dict, NoReturn, Optional, Sequence, Set, Tuple

from ._arguments import MOST_INT32, MOST_INT64, MOST_UINT64, integer, integers, shown
from .errors import TensorError

DTYPES = {"bf16": 0, "fp16": 1, "fp32": 2, "fp8_e4m3": 3, "fp8_e5m2": 4, "uint8": 5, "int32": 6,
          "int64": 7}
DTYPE_NAMES = {code: name for name, code in DTYPES.items()}
_ITEM_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8_e4m3": 1, "fp8_e5m2": 1, "uint8": 1,
               "int32": 4, "int64": 8}

# (address, code of the dtype, shape, strides in elements, CUDA ordinal or None if not known,
# whether it is marked read-only).
Reading = Tuple[int, int, Sequence[int], Sequence[int], Optional[int], bool]
Reader = Callable[[Any], Reading]

_TORCH_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32",
                 "float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "uint8": "uint8",
                 "bool": "uint8", "int32": "int32", "int64": "int64"}
_ARRAY_TYPES = {"<f2": "fp16", "<f4": "fp32", "|u1": "uint8", "|b1": "uint8", "<i4": "int32",
                "<i8": "int64"}
# torch's name of each dtype.
TORCH_NAMES = {dtype: name for name, dtype in _TORCH_DTYPES.items() if name != "bool"}
# (type code, bits) of DLPack.
_DLPACK_TYPES = {(4, 16): "bf16", (2, 16): "fp16", (2, 32): "fp32", (10, 8): "fp8_e4m3",
                 (12, 8): "fp8_e5m2", (1, 8): "uint8", (6, 8): "uint8", (0, 32): "int32",
                 (0, 64): "int64"}
_DLPACK_CUDA, _DLPACK_CUDA_MANAGED = 2, 13


def _row_major(shape: Sequence[int]) -> Tuple[int, ...]:
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def item_bytes(dtype: str) -> int:
    """Bytes of one element. Raises TensorError for a name that is none of DTYPES."""
    try:
        return _ITEM_BYTES[dtype]
    except (KeyError, TypeError):
        raise TensorError(f"dtype {shown(dtype)}: must be one of {', '.join(DTYPES)}") from None


class TensorView:
    """Device memory by its address.

    pointer: address of the first element.
    dtype: one of DTYPES ("bf16", "fp16", "fp32", "fp8_e4m3", "fp8_e5m2", "uint8", "int32",
    "int64").
    shape, strides: at most 5 extents, and as many strides in elements; None is row-major.
    device: CUDA ordinal, checked against the kernel's; None is not checked.
    owner: kept alive with the view.

    A view that is kept is the fastest tensor to give to a call. Raises TensorError,
    InvalidArgumentError.
    """

    __slots__ = ("reading", "owner")

    def __init__(self, pointer: int, dtype: str, shape: Sequence[int],
                 strides: Optional[Sequence[int]] = None, *, device: Optional[int] = None,
                 owner: object = None) -> None:
        item_bytes(dtype)
        address = integer("pointer", pointer, 0, MOST_UINT64, "give the address of device memory")
        extents = tuple(integers("shape", shape, 0, MOST_INT64, "give the extents"))
        steps = _row_major(extents) if strides is None else tuple(
            integers("strides", strides, 0, MOST_INT64, "give them in elements"))
        if len(steps) != len(extents):
            raise TensorError(f"strides {steps}: must be as many as extents, {len(extents)}")
        if device is not None:
            device = integer("device", device, 0, MOST_INT32, "give a CUDA ordinal, or None")
        self.reading: Reading = (address, DTYPES[dtype], extents, steps, device, False)
        self.owner = owner

    @classmethod
    def of(cls, tensor: object, dtype: Optional[str] = None) -> TensorView:
        """A view of `tensor`, which it keeps alive; with `dtype`, its elements taken as that
        type, which must be as wide. Raises TensorError."""
        pointer, code, shape, strides, device, is_readonly = read(tensor)
        own = DTYPE_NAMES[code]
        if dtype is not None and item_bytes(dtype) != item_bytes(own):
            raise TensorError(f"dtype {dtype}: must be as wide as the tensor's, {own}")
        view = cls(pointer, dtype or own, shape, strides, device=device, owner=tensor)
        view.reading = (*view.reading[:5], is_readonly)
        return view

    pointer = property(lambda self: self.reading[0])
    dtype = property(lambda self: DTYPE_NAMES[self.reading[1]])
    shape = property(lambda self: self.reading[2])
    strides = property(lambda self: self.reading[3])
    device = property(lambda self: self.reading[4])

    def __repr__(self) -> str:
        return f"TensorView({self.dtype} {list(self.shape)}, strides {list(self.strides)})"


def dtype_of_torch(dtype: Any) -> str:
    """The name of one of torch's dtypes. Raises TensorError for one that no kernel reads."""
    name = str(dtype).rpartition(".")[2]
    if name not in _TORCH_DTYPES:
        raise TensorError(f"a torch tensor of {dtype}: must be of {', '.join(_TORCH_DTYPES)}; "
                          "cast it")
    return _TORCH_DTYPES[name]


def _make_torch_reader() -> Reader:
    codes: Dict[Any, int] = {}

    def read_torch(tensor: Any) -> Reading:
        device = tensor.get_device()
        if device < 0:
            raise TensorError(f"a torch tensor on {tensor.device}: must be on a CUDA device; "
                              "move it with .cuda()")
        code = codes.get(tensor.dtype)
        if code is None:
            code = codes[tensor.dtype] = DTYPES[dtype_of_torch(tensor.dtype)]
        return tensor.data_ptr(), code, tensor.shape, tensor.stride(), device, False

    return read_torch


def _read_cuda_array(tensor: Any) -> Reading:
    face = tensor.__cuda_array_interface__
    pointer, is_readonly = face["data"]
    dtype = _ARRAY_TYPES.get(face["typestr"])
    if dtype is None:
        if hasattr(tensor, "__dlpack__"):
            return (*_read_dlpack(tensor)[:5], bool(is_readonly))
        raise TensorError(f"an array of type {face['typestr']}: must be of "
                          f"{', '.join(_ARRAY_TYPES)}; give another type of the same width by "
                          'TensorView.of(array, dtype="bf16")')
    shape = face["shape"]
    strides = face.get("strides")
    if strides is None:
        strides = _row_major(shape)
    else:
        width = _ITEM_BYTES[dtype]
        if any(stride % width for stride in strides):
            raise TensorError(f"an array of {dtype} with strides of {strides} bytes: must be whole "
                              "elements apart; copy it")
        strides = tuple(stride // width for stride in strides)
    return pointer or 0, DTYPES[dtype], shape, strides, None, bool(is_readonly)


class _DlTensor(ctypes.Structure):
    """DLTensor, with which a DLManagedTensor begins."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


def _read_dlpack(tensor: Any) -> Reading:
    kind, _ = tensor.__dlpack_device__()
    if kind not in (_DLPACK_CUDA, _DLPACK_CUDA_MANAGED):
        raise TensorError(f"a DLPack tensor on a device of type {int(kind)}: must be CUDA (2) or "
                          "CUDA managed (13); move it to the device")
    # The capsule is only looked into: its deleter runs when it goes. -1: the call is in the order
    # of the stream that it names, as with all other tensors.
    capsule = tensor.__dlpack__(stream=-1)
    face = _DlTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    dtype = _DLPACK_TYPES.get((face.type_code, face.bits)) if face.lanes == 1 else None
    if dtype is None:
        raise TensorError(f"a DLPack tensor of type code {face.type_code} with {face.bits} bits "
                          f"in {face.lanes} lane(s): must be one of {', '.join(DTYPES)}; cast it")
    shape = tuple(face.shape[:face.ndim])
    strides = tuple(face.strides[:face.ndim]) if face.strides else _row_major(shape)
    # An array that must not be written gives no capsule of this kind: it has no mark for it.
    return ((face.data or 0) + face.byte_offset, DTYPES[dtype], shape, strides, face.device_id,
            False)


def _read_view(view: TensorView) -> Reading:
    return view.reading


# One reader per type that has been seen, and which of these types are torch's; by find_reader.
readers: Dict[type, Reader] = {TensorView: _read_view}
torch_types: Set[type] = set()


@functools.lru_cache(maxsize=None)
def _torch_reader() -> Reader:
    if hasattr(sys.modules["torch"].library, "register_fake"):  # torch 2.4 and later
        importlib.import_module(".torch_ops", __package__)
    return _make_torch_reader()


def find_reader(tensor: object) -> Reader:
    """The reader of tensors of this one's type, which `readers` then holds. Raises TensorError if
    it is none."""
    kind = type(tensor)
    torch_tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if torch_tensor is not None and isinstance(tensor, torch_tensor):
        torch_types.add(kind)
        reader = _torch_reader()
    elif isinstance(tensor, TensorView):
        reader = _read_view
    elif hasattr(tensor, "__cuda_array_interface__"):
        reader = _read_cuda_array
    elif hasattr(tensor, "__dlpack__"):
        reader = _read_dlpack
    else:
        named = "None" if tensor is None else f"a {kind.__module__}.{kind.__qualname__}"
        raise TensorError(
            f"{named}: must be a torch tensor, a TensorView, or "
            "have __cuda_array_interface__ or __dlpack__")
    readers[kind] = reader
    return reader


def read(tensor: object) -> Reading:
    """Address, dtype, shape, strides, device and mark of any tensor. Raises TensorError."""
    return (readers.get(type(tensor)) or find_reader(tensor))(tensor)


def readonly_error() -> TensorError:
    """Of a tensor that is marked read-only and that a call would write."""
    return TensorError("marked read-only by its __cuda_array_interface__: must be writable, for "
                       "the call writes it; give a writable array")


def refuse(name: str, error: Exception) -> NoReturn:
    """Raises the TensorError of the argument `name`, reading which raised `error`."""
    if isinstance(error, TensorError):
        raise TensorError(f"{name} is {error.message}") from None
    raise TensorError(f"{name} has a shape, strides or address that no tensor has: "
                       f"{type(error).__name__}: {error}; must be extents and strides of 64 bits "
                       "that are not negative, and an address; give such a tensor") from error


def read_as(name: str, tensor: object) -> Reading:
    """The same of the argument `name`, which the TensorError says."""
    try:
        return read(tensor)
    except Exception as error:  # of a foreign tensor's own interface too
        refuse(name, error)


def dtype_of(name: str, tensor: object) -> str:
    """The dtype of the argument `name`. Raises TensorError."""
    return DTYPE_NAMES[read_as(name, tensor)[1]]


def memory_of(name: str, tensor: object) -> Tuple[int, int]:
    """Address and bytes of a contiguous tensor to be written, such as a workspace; (0, 0) of None.
    Raises TensorError."""
    if tensor is None:
        return 0, 0
    pointer, code, shape, strides, _, is_readonly = read_as(name, tensor)
    if is_readonly:
        refuse(name, readonly_error())
    if tuple(strides) != _row_major(shape):
        raise TensorError(f"{name} has strides {tuple(strides)} of shape {tuple(shape)}: must be "
                          "contiguous; copy it")
    return pointer, math.prod(shape) * _ITEM_BYTES[DTYPE_NAMES[code]]


def dtype_and_shape(name: str, tensor: object, *ranks: int) -> Tuple[str, Tuple[int, ...]]:
    """The dtype and shape of a tensor that must have one of `ranks`. Raises TensorError."""
    _, code, shape, *_ = read_as(name, tensor)
    if len(shape) not in ranks:
        raise TensorError(f"{name} has shape {list(shape)}: must have "
                          f"{' or '.join(map(str, ranks))} dimensions")
    return DTYPE_NAMES[code], tuple(shape)
