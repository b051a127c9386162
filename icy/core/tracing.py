"""Functions that a tracer sees as one operation.

A model's forward pass can be traced: run once with tensors that write down what is done with them. Functions that are
marked `traceable` are written down as a whole, and not as the operations inside.
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
    """Let tensors that trace see a call of this function, by PyTorch's protocol for functions of one's own.

    Tensors are looked for among the positional arguments, and in lists and tuples of them.
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
    """Return whether a model is being traced, for those that have several ways to compute the same."""
    return _tracing.get()


@contextmanager
def while_tracing() -> Iterator[None]:
    """Let `tracing` say so within the block."""
    token = _tracing.set(True)
    try:
        yield
    finally:
        _tracing.reset(token)
