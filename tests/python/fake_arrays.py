"""Tensors of no library, at addresses that the mock of the driver takes for device memory."""

import ctypes

DEVICE_MEMORY = 1 << 60  # MockDriver::device_memory
_TYPES = {"fp16": ("<f2", 2), "fp32": ("<f4", 4), "uint8": ("|u1", 1), "bool": ("|b1", 1),
          "int32": ("<i4", 4), "int64": ("<i8", 8)}


class CudaArray:
    """What CuPy's arrays look like. strides in elements; None is C-contiguous."""

    def __init__(self, dtype, shape, strides=None, address=DEVICE_MEMORY, is_readonly=False):
        typestr, width = _TYPES[dtype]
        self.__cuda_array_interface__ = {
            "typestr": typestr, "shape": shape, "data": (address, is_readonly), "version": 3,
            "strides": strides and tuple(stride * width for stride in strides)}


class _DlManagedTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                                 ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))


class DlpackArray:
    """What JAX's arrays look like: (code, bits) is a DLPack type. strides None: C-contiguous."""

    def __init__(self, code, bits, shape, strides=None, address=DEVICE_MEMORY, byte_offset=0,
                 device=(2, 0)):
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        self._device = device
        self._tensor = _DlManagedTensor(
            data=address, device_type=device[0], device_id=device[1], ndim=len(shape), code=code,
            bits=bits, lanes=1, shape=self._shape,
            strides=self._strides or ctypes.POINTER(ctypes.c_int64)(), byte_offset=byte_offset)
        self.asked_streams = []

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, stream=None):
        self.asked_streams.append(stream)
        return _new_capsule(ctypes.addressof(self._tensor), b"dltensor", None)
