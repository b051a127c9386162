"""Autograd functions with hand-written passes, each with the same function in plain PyTorch operations.

Hand-written passes are faster, but compute only first derivatives of tensors of one type. `apply` runs the plain
operations instead within autocast, `torch.func` transforms, forward-mode differentiation, `torch.compile`,
`torch.export` and `torch.jit.trace`. If a backward pass is itself differentiated (`create_graph=True`), plain
operations compute the gradients, so that second derivatives are correct.

A model's forward pass can be traced: it runs once with tensors that record their operations. A function with the
decorator `traceable` is recorded as one operation, without the operations inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active, _functorch, _is_any_autocast_enabled
from torch.autograd import Function, forward_ad
from torch.jit import is_tracing  # type: ignore[attr-defined]
from torch.overrides import handle_torch_function, has_torch_function

from .errors import IncompatibleError
from .types import AnyFunction

Gradients: TypeAlias = Tensor | tuple[Tensor | None, ...] | None  # gradients of the inputs of a function

if TYPE_CHECKING:

    class Context(torch.autograd.function.FunctionCtx):
        """The object that passes values from `forward` to `backward`. Functions may add attributes."""

        saved_tensors: tuple[Any, ...]
        needs_input_grad: tuple[bool, ...]

        def save_for_backward(self, *tensors: Tensor | None) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: object) -> None: ...
else:
    Context = object

_only_hand_written: ContextVar[bool] = ContextVar("icy_only_hand_written", default=False)


@contextmanager
def hand_written_only() -> Iterator[None]:
    """Within the block, raise an error where plain operations would run: plain operations round differently."""
    token = _only_hand_written.set(True)
    try:
        yield
    finally:
        _only_hand_written.reset(token)


class Fused(Function):
    """Base class of autograd functions with a plain form.

    A subclass supports second derivatives in one of two ways. It saves its inputs, and `inputs` returns the saved
    inputs; or its backward pass calls `differentiated` and then uses operations that PyTorch can differentiate. A
    subclass with `generate_vmap_rule` also runs within vmap.
    """

    @staticmethod
    def plain(*args: Any) -> Any:
        """Compute the same as `forward`, up to rounding, with operations that PyTorch can differentiate."""
        raise NotImplementedError

    inputs: Callable[[Context], Sequence[object]] | None = None
    """Return the arguments of `forward` from its context."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.backward = staticmethod(_guarded(cls, cls.backward))  # type: ignore[method-assign]


def _guarded(function: type[Fused], backward: AnyFunction) -> AnyFunction:
    """Wrap a backward pass: run it outside autocast, and with plain operations for second derivatives."""

    @wraps(backward)
    def guarded(ctx: Context, *grads: Tensor | None) -> Gradients:
        if _is_any_autocast_enabled():
            device = next(grad.device.type for grad in grads if grad is not None)
            with torch.autocast(device, enabled=False):
                return guarded(ctx, *grads)
        if function.inputs is not None and differentiated():
            return gradients(function.plain, function.inputs(ctx), grads, ctx.needs_input_grad)
        found: Gradients = backward(ctx, *grads)
        return found

    return guarded


def apply(function: type[Fused], *args: object) -> Any:
    """Return `function.apply(*args)`, or `function.plain(*args)` where hand-written passes are not usable."""
    if usable(function):
        return function.apply(*args)  # type: ignore[no-untyped-call]
    return function.plain(*of_one_type(args))


def usable(function: type[Fused]) -> bool:
    """Return whether the hand-written passes of a function are usable here.

    Raises:
        IncompatibleError: the passes are not usable, and `hand_written_only` is active.
    """
    if torch.compiler.is_compiling() or is_tracing() or _is_any_autocast_enabled():  # type: ignore[no-untyped-call]
        return False
    if _are_functorch_transforms_active():
        levels = _functorch.get_interpreter_stack() or []
        fits = function.generate_vmap_rule and all(one.key() == _functorch.TransformType.Vmap for one in levels)
        if not fits and _only_hand_written.get():
            raise IncompatibleError(f"{function.__name__} has a backward pass that vmap cannot batch")
        return fits
    return forward_ad._current_level < 0


def differentiated() -> bool:
    """Return whether PyTorch differentiates or vmaps the current backward pass."""
    return torch.is_grad_enabled() or _are_functorch_transforms_active()


def of_one_type(args: Sequence[object]) -> list[Any]:
    """Convert all floating-point tensors to the widest type among them, because autocast mixes types."""
    types = {x.dtype for x in args if isinstance(x, Tensor) and x.is_floating_point()}
    if len(types) < 2:
        return list(args)
    widest = reduce(torch.promote_types, types)
    return [x.to(widest) if isinstance(x, Tensor) and x.is_floating_point() else x for x in args]


def gradients(
    plain: AnyFunction, inputs: Sequence[Any], grads: Sequence[Tensor | None], needed: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Compute the gradients of the inputs of a function by running it again.

    Args:
        plain: the function.
        inputs: its arguments, as saved by `save_for_backward`.
        grads: gradients of its outputs; None for zero.
        needed: whether each input needs a gradient.
    """
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views, so that the gradient of an input does not flow through another input that was computed from it.
        own = [x.view_as(x) if wanted else x for x, wanted in zip(inputs, needed, strict=True)]
        found = plain(*own)
        outputs = found if isinstance(found, tuple) else (found,)
        given = [(y, grad) for y, grad in zip(outputs, grads, strict=False) if grad is not None and y.requires_grad]
        wanted = [x for x, is_wanted in zip(own, needed, strict=True) if is_wanted]
        of_wanted = iter(
            torch.autograd.grad(
                [y for y, _ in given], wanted, [grad for _, grad in given], create_graph=again, allow_unused=True
            )
        )
    return tuple(next(of_wanted) if is_wanted else None for is_wanted in needed)


# -- functions that a tracer records as one operation ------------------------------------------------------------------

P = ParamSpec("P")
T = TypeVar("T")


def traceable(function: Callable[P, T]) -> Callable[P, T]:
    """Record calls of this function as one operation, with PyTorch's protocol for custom functions.

    Tensors are found in the positional arguments, and in lists and tuples among these.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if has_torch_function(args) or any(isinstance(a, (list, tuple)) and has_torch_function(a) for a in args):
            flat = [one for a in args for one in (a if isinstance(a, (list, tuple)) else (a,))]
            found: T = handle_torch_function(call, flat, *args, **kwargs)
            return found
        return function(*args, **kwargs)

    return call


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
