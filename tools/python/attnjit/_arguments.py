"""What a caller gives, checked before it goes to the library: ctypes cuts text at a NUL and numbers
to their width, without a word. Errors name the argument, its value, what is allowed and the fix.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Mapping as AnyMapping
from typing import (Any, Callable, Dict, List, Mapping, NoReturn, Optional, Tuple, Type, TypeVar,
                    Union)

from .errors import InvalidArgumentError, InvalidDescriptorError, TensorError

MOST_INT32 = 2**31 - 1
MOST_INT64 = 2**63 - 1
MOST_UINT64 = 2**64 - 1
_MOST_SHOWN = 80

# The fields that generator/README.md lists, those left out at their defaults; or their JSON.
Descriptor = Union[str, Mapping[str, Any]]
# Further fields of a descriptor, or their JSON.
Fields = Union[None, str, Mapping[str, Any]]

Instance = TypeVar("Instance")
Function = TypeVar("Function", bound=Callable[..., Any])


def shown(value: object) -> str:
    """`value` as an error shows it."""
    try:
        text = repr(value)
    except Exception:  # of the caller's class; the error is about the value, not about this
        text = f"a {type(value).__qualname__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN - 1]}…"


def _whole(value: Any) -> int:
    """`value` as an integer. Raises TypeError. NumPy's bool has no __index__."""
    try:
        return operator.index(value)
    except TypeError:
        item = getattr(value, "item", None)
        made = item() if callable(item) and not getattr(value, "shape", ()) else None
        if isinstance(made, bool):
            return made
        raise


def integer(name: str, value: Any, least: int, most: int, fix: str) -> int:
    """`value`, from `least` to `most`: of int, bool, NumPy, or whatever has __index__. Raises
    InvalidArgumentError."""
    try:
        number = _whole(value)
    except (TypeError, ValueError):
        number = None
    if number is None or not least <= number <= most:
        raise InvalidArgumentError(f"{name} = {shown(value)}: must be an integer from {least} to "
                                   f"{most}; {fix}")
    return number


def flag(name: str, value: Any) -> bool:
    """`value`, True or False. Raises InvalidArgumentError."""
    return bool(integer(name, value, 0, 1, "give True or False"))


def integers(name: str, values: Any, least: int, most: int, fix: str) -> List[int]:
    """A copy of numbers on the host: of a list, an array, or a tensor with tolist(). Raises
    InvalidArgumentError."""
    tolist = getattr(values, "tolist", None)
    try:
        listed = list(tolist() if callable(tolist) else values)
    except TypeError:
        raise InvalidArgumentError(f"{name} = {shown(values)}: must be a sequence of integers from "
                                   f"{least} to {most}; {fix}") from None
    if set(map(type, listed)) == {int} and least <= min(listed) and max(listed) <= most:
        return listed
    return [integer(f"{name}[{index}]", value, least, most, fix)
            for index, value in enumerate(listed)]


def refuse_float(name: str, value: Any) -> NoReturn:
    """Raises InvalidArgumentError for a number that could not be written as an fp32."""
    raise InvalidArgumentError(f"{name} = {shown(value)}: must be a number that fp32 holds; give a "
                               "float")


def instance(name: str, value: Any, kind: Type[Instance], fix: str) -> Instance:
    """`value`, which must be a `kind`. Raises InvalidArgumentError."""
    if not isinstance(value, kind):
        raise InvalidArgumentError(f"{name} = {shown(value)}: must be a {kind.__name__}; {fix}")
    return value


def function(name: str, value: Optional[Function]) -> Optional[Function]:
    """`value`, which must be callable or None. Raises InvalidArgumentError."""
    if value is not None and not callable(value):
        raise InvalidArgumentError(f"{name} = {shown(value)}: must be callable; give a function, "
                                   "or leave it out")
    return value


def tensors(name: str, values: Any) -> Tuple[Any, ...]:
    """A list or tuple of tensors. Raises TensorError: one tensor would be cut into its rows."""
    if not isinstance(values, (list, tuple)):
        raise TensorError(f"{name} is a {type(values).__qualname__}: must be a list or tuple of "
                          "tensors; put them into a list")
    return tuple(values)


def _refuse_nul(name: str, value: object, encoded: bytes) -> bytes:
    if b"\0" in encoded:
        raise InvalidArgumentError(f"{name} = {shown(value)}: must have no NUL, which would end "
                                   "it; remove the NUL")
    return encoded


def text(name: str, value: Any) -> bytes:
    """`value`, a str, in UTF-8. Raises InvalidArgumentError."""
    try:
        return _refuse_nul(name, value, value.encode("utf-8"))
    except (AttributeError, UnicodeEncodeError):
        raise InvalidArgumentError(f"{name} = {shown(value)}: must be a str of Unicode text; give "
                                   "such a str") from None


def path(name: str, value: Any) -> bytes:
    """A path as the file system has it: of a str, bytes or os.PathLike, as open() takes it.
    Raises InvalidArgumentError."""
    try:
        return _refuse_nul(name, value, os.fsencode(value))
    except (TypeError, UnicodeEncodeError):
        raise InvalidArgumentError(f"{name} = {shown(value)}: must be a path: a str, bytes or "
                                   "os.PathLike; give one of these") from None


def optional_path(name: str, value: Any) -> Optional[bytes]:
    """The same; None, which is "not given", stays None."""
    return None if value is None else path(name, value)


def paths(name: str, values: Any) -> List[bytes]:
    """A sequence of paths. Raises InvalidArgumentError, also for one path, which as a sequence
    would be its characters."""
    is_one = isinstance(values, (str, bytes, os.PathLike))
    try:
        listed = [] if is_one else list(values)
    except TypeError:
        is_one = True
    if is_one:
        raise InvalidArgumentError(f"{name} = {shown(values)}: must be a sequence of paths; write "
                                   f"{name}=[…], also around a single one")
    return [path(f"{name}[{index}]", value) for index, value in enumerate(listed)]


def refuse_descriptor(field: str, value: str, rule: str, fix: str) -> NoReturn:
    """Raises InvalidDescriptorError, as the library refuses a field."""
    raise InvalidDescriptorError(f"{field} = {value}: {rule}; fix: {fix}", [
        {"field": field, "value": value, "rule": rule, "fix": fix}])


def _plain(value: Any) -> Any:
    """What json does not know as what it knows. Raises TypeError."""
    if isinstance(value, AnyMapping):
        return dict(value)
    return _whole(value)


def _refuse_values(fields: Mapping[Any, Any], error: Exception) -> NoReturn:
    """Raises for the first of `fields` that has no JSON; `error` is what all together raised."""
    fix = "give strings, integers and booleans, by the names of generator/README.md"
    for name, value in fields.items():
        try:
            json.dumps({name: value}, default=_plain)
        except (TypeError, ValueError, RecursionError):
            refuse_descriptor(str(name), shown(value), "has no JSON", fix)
    refuse_descriptor("descriptor", shown(fields), f"has no JSON: {error}", fix)


def _refuse_kind(descriptor: object) -> NoReturn:
    refuse_descriptor("descriptor", shown(descriptor), "must be a mapping of fields, or a str of "
                      "their JSON", "give a dictionary; bytes and files are to be read into a str")


def descriptor_json(descriptor: Any) -> bytes:
    """A descriptor as the library takes it: of a mapping, whose numbers may be NumPy's; or of
    JSON, which goes as it is, for the library to judge. Raises InvalidDescriptorError."""
    if isinstance(descriptor, str):
        if "\0" in descriptor:
            refuse_descriptor("descriptor", shown(descriptor), "must have no NUL, which would end "
                              "it", "remove the NUL")
        try:
            return descriptor.encode("utf-8")
        except UnicodeEncodeError:
            refuse_descriptor("descriptor", shown(descriptor), "must be Unicode text, without a "
                              "surrogate of its own", "decode it as UTF-8")
    if not isinstance(descriptor, AnyMapping):
        _refuse_kind(descriptor)
    try:
        return json.dumps(dict(descriptor), default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        _refuse_values(descriptor, error)


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """The fields of an object. json would take the last of two; the library refuses both."""
    fields: Dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            refuse_descriptor(name, shown(value), "is given more than once",
                              "give each field once")
        fields[name] = value
    return fields


def further_fields(fields: Fields) -> Dict[str, Any]:
    """Fields that are to be set in a descriptor: a mapping, or the JSON of an object; none of
    None. Raises InvalidDescriptorError."""
    if fields is None:
        return {}
    if isinstance(fields, str):
        fix = 'give one JSON object, e.g. {"operation": "decode"}'
        try:
            parsed = json.loads(fields, object_pairs_hook=_once)
        except InvalidDescriptorError:
            raise
        except (ValueError, RecursionError) as error:
            refuse_descriptor("descriptor", shown(fields), f"is not JSON: {error}", fix)
        if not isinstance(parsed, dict):
            refuse_descriptor("descriptor", shown(fields), "must be a JSON object", fix)
        return parsed
    if not isinstance(fields, AnyMapping):
        _refuse_kind(fields)
    return dict(fields)
