"""Register senders, receivers, cells, grammars, metrics, players, worlds and readers: one function per kind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from .code import is_user_module
from .docs import described, spell_out_arguments
from .entry import CORE, PERCEPTION, READER, STUDY_PLAYER, TEXT_MODEL, WORLD, Entry, EntryFields
from .registry import registry
from .types import AnyFunction

SAME = "Arguments and errors as for"

F = TypeVar("F")


def _register(kind: str, name: str, target: str | None, fields: EntryFields) -> Callable[[F], F]:
    caller = str(sys._getframe(2).f_globals.get("__name__", "?"))  # the module that calls the public function

    def record(factory: object, module: str) -> None:
        origin = module if is_user_module(module) else caller  # a user may register a factory of another package
        doc = (getattr(factory, "__doc__", None) or "").strip().partition("\n")[0]
        values: dict[str, Any] = {"description": "" if isinstance(factory, str) else doc, "source": "", **fields}
        for several in ("aliases", "representations"):
            values[several] = tuple(values.get(several, ()))
        values["choices"] = {option: tuple(every) for option, every in values.get("choices", {}).items()}
        registry.add(Entry(kind, name, factory, origin=origin, **values))

    def decorate(factory: F) -> F:
        record(factory, getattr(factory, "__module__", "?"))
        return factory

    if target is not None:
        record(target, target.partition(":")[0])
    return decorate


def register_sender(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a sender: a factory `(space, message_length, vocab_size, hidden_size, **options) -> nn.Module`.

    Use it as a decorator of a class or function, or pass `target="module:object"` for a factory that is imported when
    it is first called. The description defaults to the first line of the docstring.

    Args:
        name: the name that users type, without ':', '/' or '+'.
        target: address of the factory, if it is not decorated.
        **fields: fields of Entry, by name.

    Returns:
        A decorator, which returns the factory unchanged.

    Raises:
        DuplicateNameError: another module has registered the name.
    """
    return _register("sender", name, target, fields)


def register_receiver(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a receiver: a factory `(space, message_length, vocab_size, hidden_size, **options) -> nn.Module`.

    Arguments and errors as for `register_sender`.
    """
    return _register("receiver", name, target, fields)


def register_cell(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a recurrent cell: a factory `(input_size, hidden_size) -> icy.models.cells.Cell`.

    Every family that takes a cell lists it at once. Arguments and errors as for `register_sender`.
    """
    return _register("cell", name, target, fields)


def register_grammar(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a grammar; `icy.grammars.grammar` describes its factory.

    Arguments and errors as for `register_sender`.
    """
    return _register("grammar", name, target, fields)


def register_metric(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a metric: a function `(meanings, messages=None, **conventions) -> icy.metrics.Score`.

    `icy.metrics.Table.of(meanings, messages)` reads every form of these arguments. A metric with `weighted=True` uses
    `Table.weights`, the number of repetitions of each row; for other metrics, `icy.metrics.evaluate` repeats the rows.
    Use `lower_is_better=True` for errors. Arguments and errors as for `register_sender`.
    """
    return _register("metric", name, target, fields)


def register_speaker(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a speaker of S2B: a class or function without arguments that makes an `icy.s2b.Player`.

    Arguments and errors as for `register_sender`.
    """
    return _register("speaker", name, target, fields)


def register_listener(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a listener of S2B: a class or function without arguments that makes an `icy.s2b.Player`.

    Arguments and errors as for `register_sender`.
    """
    return _register("listener", name, target, fields)


def register_text_model(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a text model for the text players of S2B: a factory `(name, settings) -> icy.s2b.TextModel`.

    Its arguments are the text after `#` in the name that users type, as in `--model transformers#FOLDER`, and the
    `icy.s2b.TextSettings`. It may also return a function from a TextRequest to a TextReply. Arguments and errors as for
    `register_sender`.
    """
    return _register(TEXT_MODEL, name, target, fields)


def register_core(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a core of agents that learn S2B: a factory `(width, **options) -> icy.s2b.agents.cores.Core`.

    Its arguments are the width of an input, and `capacity` and `parts` by name, if it takes them; see
    `icy.s2b.agents.cores.make_core`. Arguments and errors as for `register_sender`.
    """
    return _register(CORE, name, target, fields)


def register_world(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a world of the multi-target games: a factory `(**options) -> icy.games.World`.

    It must work without options; see `icy.games.make_world`. Arguments and errors as for `register_sender`.
    """
    return _register(WORLD, name, target, fields)


def register_perception(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a perception of the games: a factory `(shape, size, **options) -> nn.Module`.

    Its arguments are the shape of an object and the size of the output. The module maps [batch, *shape] to [batch,
    size]; see `icy.games.perception`. Arguments and errors as for `register_sender`.
    """
    return _register(PERCEPTION, name, target, fields)


def register_study_player(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a simulated player of the study: a factory `(**options) -> icy.study.players.StudyPlayer`.

    Arguments and errors as for `register_sender`.
    """
    return _register(STUDY_PLAYER, name, target, fields)


def register_reader(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a reader of files: a function `(file) -> icy.languages.readers.Found | None`.

    Its argument is an `icy.languages.readers.File`. It returns the columns of the file, or None if the file has another
    format. Readers of plug-ins are tried before icy's own. Arguments and errors as for `register_sender`.
    """
    return _register(READER, name, target, fields)


def _describe_arguments(*others: AnyFunction) -> None:
    """Copy the description of the common arguments to the docstring of each register function."""
    descriptions = described(Entry)
    spell_out_arguments(register_sender, {name: descriptions[name] for name in EntryFields.__annotations__})
    _, args, whole = (register_sender.__doc__ or "").partition("Args:")
    for function in others:
        before, same, _ = (function.__doc__ or "").rpartition(SAME)
        if same:
            function.__doc__ = f"{before.rstrip()}\n\n    {args}{whole}"


_describe_arguments(
    register_receiver, register_cell, register_grammar, register_metric, register_speaker, register_listener,
    register_text_model, register_core, register_world, register_perception, register_study_player, register_reader,
)  # fmt: skip
