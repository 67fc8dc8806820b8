"""As much of torch as attnjit asks for: tensors are shapes at addresses that the mock of the driver
takes for device memory, and functions of values only say that they were called. A test puts this
module into sys.modules as torch."""

import types

import fake_arrays

_DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1,
                "uint8": 1, "int8": 1, "bool": 1, "int32": 4, "int64": 8}


class Dtype:
    def __init__(self, name):
        self.name, self.itemsize = name, _DTYPE_BYTES[name]

    def __str__(self):
        return f"torch.{self.name}"


for _name in _DTYPE_BYTES:
    globals()[_name] = Dtype(_name)


class Device:
    def __init__(self, index):
        self.index = index

    def __str__(self):
        return "cpu" if self.index < 0 else f"cuda:{self.index}"


class Tensor:
    """strides None: contiguous; address None: memory of its own; device -1: on the host."""

    _next_address = fake_arrays.DEVICE_MEMORY

    def __init__(self, dtype, shape, strides=None, address=None, device=0):
        if address is None:
            address = Tensor._next_address
            Tensor._next_address += 1 << 40
        self.dtype, self.shape, self._strides, self._address = dtype, tuple(shape), strides, address
        self.device, self.requires_grad = Device(device), False
        self.is_cuda = device >= 0

    def stride(self):
        if self._strides is None:
            self._strides, step = (), 1
            for extent in reversed(self.shape):
                self._strides, step = (step, *self._strides), step * max(extent, 1)
        return self._strides

    def is_contiguous(self):
        step = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.stride())):
            if extent != 1 and stride != step:
                return 0 in self.shape
            step *= extent
        return True

    def data_ptr(self):
        return self._address

    def get_device(self):
        return self.device.index

    def element_size(self):
        return self.dtype.itemsize

    def dim(self):
        return len(self.shape)

    def _seen(self, shape, strides, dtype=None, address=None):
        return Tensor(dtype or self.dtype, shape, strides, address or self._address,
                      self.device.index)

    def view(self, dtype):
        return self._seen(self.shape, self.stride(), dtype)

    def transpose(self, first, second):
        order = list(range(len(self.shape)))
        order[first], order[second] = second, first
        return self._seen([self.shape[i] for i in order], tuple(self.stride()[i] for i in order))

    T = property(lambda self: self.transpose(0, 1))

    def __getitem__(self, index):
        """Slices, of which all but the last are whole."""
        start, stop, _ = index[-1].indices(self.shape[-1])
        return self._seen((*self.shape[:-1], stop - start), self.stride(),
                          address=self._address + start * self.element_size())


class _DeviceScope:
    def __init__(self, device):
        self.device = device

    def __enter__(self):
        self.before, cuda.current = cuda.current, self.device

    def __exit__(self, *_):
        cuda.current = self.before


def empty(shape, dtype, device):
    index = device.index if isinstance(device, Device) else int(device.split(":")[1])
    made = Tensor(dtype, shape, device=index)
    allocated.append(made)
    return made


def nan_to_num_(tensor, nan, posinf, neginf):
    replaced.append((tensor, posinf, neginf))
    return tensor


allocated, replaced = [], []
library = types.SimpleNamespace()
cuda = types.SimpleNamespace(
    current=0, is_capturing=False, current_device=lambda: cuda.current, device=_DeviceScope,
    is_current_stream_capturing=lambda: cuda.is_capturing, is_initialized=lambda: True)
# The stream's number is told apart by device; 0 would be the default stream.
_C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 16 * (device + 1))


def is_grad_enabled():
    return True
