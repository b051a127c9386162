"""Check the arguments that a factory of each kind must take, and describe wrong ones."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import NamedTuple

from .types import AnyFunction


class Call(NamedTuple):
    """How icy calls a factory.

    Attributes:
        text: the arguments, as in the documentation.
        positional: number of arguments that are passed by position.
        named: names of arguments that are passed by name.
    """

    text: str
    positional: int
    named: tuple[str, ...] = ()


MODEL = Call("(space, message_length, vocab_size, hidden_size, **options)", 4)
FAMILY = Call("(space, message_length, vocab_size, hidden_size, cell, **options)", 4, ("cell",))
NOTHING = Call("no arguments", 0)
CALLS: Mapping[str, Call] = {
    "sender": MODEL,
    "receiver": MODEL,
    "cell": Call("(input_size, hidden_size, fed=True)", 2, ("fed",)),
    "grammar": Call("(space, vocab_size, word_length, seed)", 4),
    "metric": Call("(meanings, messages=None, **conventions)", 2),
    "speaker": NOTHING,
    "listener": NOTHING,
    "text-model": Call("(name, settings)", 2),
    "core": Call("(width, **options)", 1),
    "world": Call("options only, each with a default", 0),
    "perception": Call("(shape, size, **options)", 2),
    "study-player": Call("(**options)", 0),
    "reader": Call("(file)", 1),
}


def misfit(kind: str, factory: AnyFunction, takes_cell: bool = False, given: Collection[str] = ()) -> str:
    """Describe wrong parameters of a factory, as part of a sentence; "" if icy can call it.

    Args:
        kind: kind of the entry.
        factory: the class or function.
        takes_cell: whether the factory makes models of a family that takes a cell.
        given: names of further keyword arguments that icy passes.

    Example:
        >>> misfit("grammar", lambda space, seed: None)
        '<lambda> takes (space, seed), and a grammar must take (space, vocab_size, word_length, seed)'
    """
    call = FAMILY if takes_cell else CALLS.get(kind)
    if kind == "grammar" and isinstance(factory, type) and hasattr(factory, "apply"):  # a corruption
        call = NOTHING
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # compiled, or not a function: only a call can show it
        return ""
    if call is None:
        return ""
    by_name = {*call.named, *(name for name in given if name in signature.parameters)}
    try:
        signature.bind(*[None] * call.positional, **dict.fromkeys(by_name))
    except TypeError:
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        actual = signature.replace(parameters=plain, return_annotation=signature.empty)
        name = getattr(factory, "__name__", type(factory).__name__)
        return f"{name} takes {actual}, and a {kind} must take {call.text}"
    return ""
