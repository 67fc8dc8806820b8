"""What an operation does while torch.compile traces it: it becomes the custom op of its name, which
torch_ops registers."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, TypeVar

from ._arguments import descriptor_json

Function = TypeVar("Function", bound=Callable[..., Any])


def _never() -> bool:
    return False


def _to_json(fields: Any) -> str:
    return descriptor_json(fields).decode()


# Set by torch_ops: torch's own question, which it answers while it traces, the custom ops, and a
# to_json that it calls rather than traces.
is_compiling: Callable[[], bool] = _never
custom_ops: Any = None
to_json: Callable[[Any], str] = _to_json


def traceable(function: Function) -> Function:
    """`function`, which torch.compile sees as the custom op attnjit::<its name>. The op takes no
    out, lse, workspace, plan, stream and runtime."""
    name = function.__name__
    # The op's schema asks for these, though they be None.
    required = {parameter.name for parameter in inspect.signature(function).parameters.values()
                if parameter.default is parameter.empty}

    @functools.wraps(function)
    def call(*tensors: Any, **keywords: Any) -> Any:
        if is_compiling():
            given = {key: to_json(value) if isinstance(value, dict) else value
                     for key, value in keywords.items() if value is not None or key in required}
            return getattr(custom_ops, name)(*tensors, **given)
        return function(*tensors, **keywords)

    return call  # type: ignore[return-value]
