"""libattnjit.so: where it is, its functions with their types, and its statuses as errors."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import pathlib
from typing import List, Union

from . import _structs
from ._callbacks import message, take_failure
from .errors import AttnjitError, LibraryError, OutOfMemoryError, error_of

_STATUS = ctypes.c_int32
_HANDLE = ctypes.c_uint64
_POINTER = ctypes.c_void_p
_TEXT = ctypes.c_char_p
_COUNT = ctypes.POINTER(ctypes.c_int32)

# Arguments that are pointers to structs are addresses here: those of calls are known beforehand.
_SIGNATURES = {
    "attnjit_status_name": (_TEXT, [_STATUS]),
    "attnjit_last_message": (_TEXT, []),
    "attnjit_last_violations": (_TEXT, []),
    "attnjit_abi_version": (ctypes.c_uint32, []),
    "attnjit_version": (_TEXT, []),
    "attnjit_runtime_create": (_STATUS, [_POINTER, ctypes.POINTER(_HANDLE)]),
    "attnjit_runtime_destroy": (_STATUS, [_HANDLE]),
    "attnjit_validate": (_STATUS, [_TEXT]),
    "attnjit_warm": (_STATUS, [_HANDLE, _TEXT, _TEXT, _COUNT]),
    "attnjit_source": (_STATUS, [_HANDLE, _TEXT, _TEXT, _POINTER, ctypes.c_size_t,
                                 ctypes.POINTER(ctypes.c_size_t)]),
    "attnjit_prepare": (_STATUS, [_HANDLE, _TEXT, _POINTER, ctypes.POINTER(_HANDLE)]),
    "attnjit_is_cold": (_STATUS, [_HANDLE, _TEXT, _COUNT]),
    "attnjit_kernel_release": (_STATUS, [_HANDLE]),
    "attnjit_plan_create": (_STATUS, [_HANDLE, _POINTER, ctypes.POINTER(_HANDLE)]),
    "attnjit_plan_workspace_bytes": (_STATUS, [_HANDLE, ctypes.POINTER(ctypes.c_int64)]),
    "attnjit_plan_update": (_STATUS, [_HANDLE, _POINTER, ctypes.c_int32, _POINTER]),
    "attnjit_plan_update_from_host": (_STATUS, [_HANDLE, _POINTER, ctypes.c_int32, _POINTER]),
    "attnjit_plan_destroy": (_STATUS, [_HANDLE]),
    "attnjit_decode": (_STATUS, [_HANDLE, _POINTER, _POINTER, ctypes.c_int64, _POINTER]),
    "attnjit_prefill_plan": (_STATUS, [_HANDLE, _POINTER, _POINTER]),
    "attnjit_prefill": (_STATUS, [_HANDLE, _POINTER, _POINTER, _POINTER, ctypes.c_int64,
                                  _POINTER]),
    "attnjit_sparse_mla": (_STATUS, [_HANDLE, _POINTER, _POINTER]),
    "attnjit_append_kv_cache": (_STATUS, [_HANDLE, _POINTER, _POINTER]),
    "attnjit_merge_states": (_STATUS, [_HANDLE, _POINTER, _POINTER]),
}


def _candidates() -> List[Union[str, pathlib.Path]]:
    """Where the library is looked for; the environment variable decides alone."""
    named = os.environ.get("ATTNJIT_LIBRARY")
    if named:
        return [named]
    return [pathlib.Path(__file__).with_name("libattnjit.so"), "libattnjit.so"]


def _open() -> ctypes.CDLL:
    problems = []
    for candidate in _candidates():
        if isinstance(candidate, pathlib.Path) and not candidate.exists():
            problems.append(f"{candidate}: no such file")
            continue
        try:
            return ctypes.CDLL(os.fspath(candidate))
        except OSError as error:
            problems.append(f"{candidate}: {error}")
    listed = "\n  ".join(problems)
    raise LibraryError(f"libattnjit.so cannot be opened:\n  {listed}\n"
                       "install the wheel of attnjit, or set ATTNJIT_LIBRARY to the file")


def _declare(opened: ctypes.CDLL) -> None:
    """Gives every function its types, after it is known to be of this version."""
    try:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(opened, name)
            function.restype = result
            function.argtypes = arguments
    except AttributeError as error:
        raise LibraryError(f"{opened._name} is no libattnjit.so that this package knows: {error}; "
                           "use the library of the same release") from None
    version = opened.attnjit_abi_version()
    if version != _structs.ABI_VERSION:
        raise LibraryError(
            f"{opened._name} has ABI version {version}; this package needs "
            f"{_structs.ABI_VERSION}: use the library of the same release")


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library, opened at the first call.

    Raises LibraryError if it is not found, listing where it was looked for, or is of another
    version.
    """
    opened = _open()
    _declare(opened)
    return opened


def last_error(status: int) -> AttnjitError:
    """The error of this thread's last call, which gave `status`."""
    opened = library()
    text = message(opened.attnjit_last_message() or opened.attnjit_status_name(status))
    violations = json.loads(message(opened.attnjit_last_violations()) or "[]")
    error = error_of(status, text, violations)
    if status == OutOfMemoryError.status:
        error.__cause__ = take_failure()
    return error


def check(status: int) -> None:
    """Raises the error of `status`, of this thread's last call, unless it is 0."""
    if status:
        raise last_error(status)
