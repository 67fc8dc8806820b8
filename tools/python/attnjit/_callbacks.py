"""A caller's functions as the library calls them. ctypes prints what they raise and goes on; of an
allocate that raises it would leave the address unset, so that becomes "no memory"."""

from __future__ import annotations

import threading
from typing import Any, Callable, NamedTuple, Optional

from . import _structs
from ._arguments import MOST_UINT64, function, integer
from .errors import InvalidArgumentError

_LOG_LEVELS = {0: "notice", 1: "warning"}


class Miss(NamedTuple):
    """A kernel that is to be compiled, for it is not in the cache."""

    kernel: str  # its name, "paged_decode_sm80"
    arch: str  # "sm_90a"
    key: str  # digest of the cache key
    reason: str  # "absent", …
    detail: str  # path and cause, for people


class _Failure(threading.local):
    """What a caller's allocate raised last in this thread."""

    error: Optional[BaseException] = None


_failure = _Failure()


def take_failure() -> Optional[BaseException]:
    """What an allocate raised in this thread's last call, once."""
    error, _failure.error = _failure.error, None
    return error


def message(text: bytes) -> str:
    """Text of the library for people; paths in it may be of any bytes."""
    return text.decode("utf-8", "replace")


def log_function(log: Optional[Callable[[str, str], None]]) -> Any:
    """`log` for the library; None is its own. Raises InvalidArgumentError."""
    checked = function("log", log)
    if checked is None:
        return _structs.LogFunction()
    return _structs.LogFunction(
        lambda _, level, text: checked(_LOG_LEVELS.get(level, str(level)), message(text)))


def miss_function(on_miss: Optional[Callable[[Miss], None]]) -> Any:
    """`on_miss` for the library; None is none. Raises InvalidArgumentError."""
    checked = function("on_miss", on_miss)
    if checked is None:
        return _structs.MissFunction()

    def call(_: Any, miss: Any) -> None:
        given = miss.contents
        checked(Miss(*(message(getattr(given, field)) for field in Miss._fields)))

    return _structs.MissFunction(call)


def memory_functions(allocate: Optional[Callable[[int, int], int]],
                     release: Optional[Callable[[int, int, int], None]]) -> Any:
    """Both for the library; None and None are its own. Raises InvalidArgumentError."""
    take, give = function("allocate", allocate), function("release", release)
    if take is None or give is None:
        if take is not give:
            raise InvalidArgumentError("allocate and release: must be given both, or neither")
        return _structs.AllocateFunction(), _structs.ReleaseFunction()

    def call(_: Any, device: int, size: int) -> int:
        try:
            return integer("allocate(…)", take(device, size), 0, MOST_UINT64,
                           "return the address of the memory, 0 if there is none")
        except BaseException as error:  # the call that asked raises it as the cause
            _failure.error = error
            return 0

    return (_structs.AllocateFunction(call),
            _structs.ReleaseFunction(lambda _, device, memory, size: give(device, memory, size)))
