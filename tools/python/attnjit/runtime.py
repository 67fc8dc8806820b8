"""Runtime: descriptors to kernels that are ready on a device, and what needs no device."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Callable, Dict, Optional, Sequence, Union

from . import _structs
from ._arguments import (MOST_INT32, MOST_UINT64, Descriptor, descriptor_json, flag, integer,
                         optional_path, paths, shown, text)
from ._callbacks import Miss, log_function, memory_functions, miss_function
from ._library import check, library
from .errors import InvalidArgumentError
from .kernels import Kernel
from .streams import Stream, stream_handle

# As open() takes them.
AnyPath = Union[str, bytes, os.PathLike]

_SHARING = {None: 0, "owner": 1, "group": 2}


def _ordinal(device: int) -> int:
    return integer("device", device, 0, MOST_INT32, "give the ordinal of a CUDA device")


class Runtime:
    """Makes kernels ready: finds them in memory or in the cache, or compiles them. Opening one
    touches no GPU. Thread-safe.

    Paths are str, bytes or os.PathLike.

    device: CUDA ordinal of what prepare makes ready.
    forbid_jit: never compile; a kernel that the cache lacks is a MissingKernelError.
    templates: directory in place of the built-in templates.
    cache_directory: of compiled kernels; default: $ATTNJIT_CACHE_DIR, else the user's cache.
    cache_layers: read-only directories and bundles below it.
    cache_sharing: "owner" or "group"; None: $ATTNJIT_CACHE_SHARED decides.
    cache_max_bytes: 0: $ATTNJIT_CACHE_MAX_BYTES decides.
    trusts_pointers: run calls do not ask the driver whether tensors are its memory.
    nvrtc: libnvrtc or its directory; default: $ATTNJIT_NVRTC, else it is searched.
    miss_trace: file to which each miss is appended.
    log(level, message): level is "notice" or "warning"; default: a line on stderr.
    on_miss(miss): before each compile, with a Miss.
    allocate(device, bytes) -> address, release(device, address, bytes): device memory of plans,
    256-byte aligned; both or neither.

    None of these functions may call back into attnjit. What log, on_miss or release raises, even a
    KeyboardInterrupt, goes to sys.unraisablehook, which prints it, and the call goes on: a miss is
    compiled, memory counts as released. An allocate that raises, or returns 0 or what is no
    address, makes the call an OutOfMemoryError, whose cause is what was raised.

    Raises LibraryError, InvalidArgumentError, TemplateError.
    """

    def __init__(self, *, device: int = 0, forbid_jit: bool = False,
                 templates: Optional[AnyPath] = None,
                 cache_directory: Optional[AnyPath] = None,
                 cache_layers: Sequence[AnyPath] = (),
                 cache_sharing: Optional[str] = None, cache_max_bytes: int = 0,
                 trusts_pointers: bool = False,
                 nvrtc: Optional[AnyPath] = None,
                 miss_trace: Optional[AnyPath] = None,
                 log: Optional[Callable[[str, str], None]] = None,
                 on_miss: Optional[Callable[[Miss], None]] = None,
                 allocate: Optional[Callable[[int, int], int]] = None,
                 release: Optional[Callable[[int, int, int], None]] = None) -> None:
        if cache_sharing is not None and cache_sharing not in ("owner", "group"):
            raise InvalidArgumentError(f"cache_sharing = {shown(cache_sharing)}: must be None, "
                                       "'owner' or 'group'; give one of these")
        self.device = _ordinal(device)
        self._library = library()
        allocate_function, release_function = memory_functions(allocate, release)
        listed = paths("cache_layers", cache_layers)
        layers = (ctypes.c_char_p * len(listed))(*listed)
        options = _structs.RuntimeOptions(
            struct_size=ctypes.sizeof(_structs.RuntimeOptions), device=self.device,
            forbid_jit=flag("forbid_jit", forbid_jit),
            templates=optional_path("templates", templates),
            cache_directory=optional_path("cache_directory", cache_directory),
            cache_layers=layers, num_cache_layers=len(layers),
            cache_sharing=_SHARING[cache_sharing],
            trusts_pointers=flag("trusts_pointers", trusts_pointers),
            cache_max_bytes=integer("cache_max_bytes", cache_max_bytes, 0, MOST_UINT64,
                                    "give the bytes, or 0 for the environment's"),
            nvrtc=optional_path("nvrtc", nvrtc),
            miss_trace=optional_path("miss_trace", miss_trace), log=log_function(log),
            on_miss=miss_function(on_miss), allocate=allocate_function,
            release=release_function)
        self._options = options  # holds the functions, which the library may call from now on
        handle = ctypes.c_uint64()
        check(self._library.attnjit_runtime_create(ctypes.addressof(options),
                                                   ctypes.byref(handle)))
        self.handle = handle.value
        finalizer = weakref.finalize(self, self._library.attnjit_runtime_destroy, self.handle)
        finalizer.atexit = False

    def validate(self, descriptor: Descriptor) -> None:
        """Does nothing if some kernel serves `descriptor`. Needs no GPU. Raises
        InvalidDescriptorError, whose violations are all that is wrong."""
        check(self._library.attnjit_validate(descriptor_json(descriptor)))

    def warm(self, descriptor: Descriptor, arch: str) -> int:
        """Puts the kernels of `descriptor` for `arch` ("sm_90a") into the cache, without a GPU,
        and returns how many were not there. Raises InvalidDescriptorError, ToolchainError,
        CompileError, MissingKernelError."""
        compiled = ctypes.c_int32()
        check(self._library.attnjit_warm(self.handle, descriptor_json(descriptor),
                                         text("arch", arch), ctypes.byref(compiled)))
        return compiled.value

    def source(self, descriptor: Descriptor, arch: str) -> str:
        """The CUDA source of those kernels, one after the other, without a GPU. Raises
        InvalidDescriptorError."""
        given, target = descriptor_json(descriptor), text("arch", arch)
        needed = ctypes.c_size_t()
        check(self._library.attnjit_source(self.handle, given, target, None, 0,
                                           ctypes.byref(needed)))
        buffer = ctypes.create_string_buffer(needed.value)
        check(self._library.attnjit_source(self.handle, given, target, buffer, len(buffer),
                                           ctypes.byref(needed)))
        # A directory of templates may hold any bytes; they come back on encoding.
        return buffer.value.decode("utf-8", "surrogateescape")

    def prepare(self, descriptor: Descriptor, stream: Stream = None) -> Kernel:
        """The kernels of `descriptor`, ready on the runtime's device: from memory, the cache, or
        compiled now. `stream` is where they will run (None: the legacy default stream): while it
        is being captured into a graph, what is not ready is a ColdKernelError, and the capture
        stays valid. Raises also InvalidDescriptorError, MissingKernelError, CompileError,
        ToolchainError, DriverError, CudaError."""
        given = descriptor_json(descriptor)
        handle = ctypes.c_uint64()
        check(self._library.attnjit_prepare(
            self.handle, given, stream_handle(stream, self.device, of_torch=False),
            ctypes.byref(handle)))
        return Kernel(self, given.decode("utf-8"), handle.value)

    def is_cold(self, descriptor: Descriptor) -> bool:
        """Whether prepare would have to load or compile. Raises InvalidDescriptorError."""
        cold = ctypes.c_int32()
        check(self._library.attnjit_is_cold(self.handle, descriptor_json(descriptor),
                                            ctypes.byref(cold)))
        return bool(cold.value)


_default_runtimes: Dict[int, Runtime] = {}
_lock = threading.Lock()


def default_runtime(device: int = 0) -> Runtime:
    """The process's runtime for `device`, with default options; opened at the first call. Raises
    what Runtime raises."""
    ordinal = _ordinal(device)
    with _lock:
        if ordinal not in _default_runtimes:
            _default_runtimes[ordinal] = Runtime(device=ordinal)
        return _default_runtimes[ordinal]
