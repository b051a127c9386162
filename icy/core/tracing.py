"""Functions that a tracer records as one operation.

A model's forward pass can be traced: it runs once with tensors that record their operations. A function with the
decorator `traceable` is recorded as one operation, without the operations inside.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

from torch.overrides import handle_torch_function, has_torch_function

P = ParamSpec("P")
T = TypeVar("T")


def traceable(function: Callable[P, T]) -> Callable[P, T]:
    """Record calls of this function as one operation, with PyTorch's protocol for custom functions.

    Tensors are found in the positional arguments, and in lists and tuples among these.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if has_torch_function(args) or any(isinstance(a, (list, tuple)) and has_torch_function(a) for a in args):
            found: T = handle_torch_function(call, _flat(args), *args, **kwargs)
            return found
        return function(*args, **kwargs)

    return call


def _flat(args: tuple[object, ...]) -> list[object]:
    return [one for a in args for one in (a if isinstance(a, (list, tuple)) else (a,))]


_tracing: ContextVar[bool] = ContextVar("icy_tracing", default=False)


def tracing() -> bool:
    """Return whether a model is being traced. A model with several implementations chooses by this."""
    return _tracing.get()


@contextmanager
def while_tracing() -> Iterator[None]:
    """Within the block, `tracing` returns True."""
    token = _tracing.set(True)
    try:
        yield
    finally:
        _tracing.reset(token)
