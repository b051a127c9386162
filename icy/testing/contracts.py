"""Run the contract of one plug-in, registered or not: a function for each kind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from icy.core.errors import InvalidSettingError
from icy.core.registry import (
    CORE,
    LISTENER,
    PERCEPTION,
    PLAYERS,
    SIDES,
    SPEAKER,
    STUDY_PLAYER,
    TEXT_MODEL,
    WORLD,
    Entry,
    registry,
)
from icy.languages.meanings import MeaningSpace
from icy.models.base import Receiver, Sender
from icy.training.probe_job import Task

from .cases import Check, GrammarCase, ModelCase, first_representation
from .cells import CELL_CHECKS, CellCase
from .cores import CORE_CHECKS, CoreCase
from .grammars import GRAMMAR_CHECKS
from .metrics import METRIC_CHECKS, MetricCase
from .models import MODEL_CHECKS
from .perceptions import PERCEPTION_CHECKS, PerceptionCase
from .players import PLAYER_CHECKS, PlayerCase
from .runner import Case, CheckResult, bind, run_all
from .study_players import STUDY_PLAYER_CHECKS, StudyPlayerCase
from .text_models import TEXT_MODEL_CHECKS, TextModelCase
from .worlds import WORLD_CHECKS, WorldCase

Given = str | Entry | Callable[..., Any]
Report = Callable[[CheckResult], None]
CHECKS: dict[str, dict[str, Check]] = {
    **dict.fromkeys(SIDES, MODEL_CHECKS),
    "cell": CELL_CHECKS,
    "grammar": GRAMMAR_CHECKS,
    "metric": METRIC_CHECKS,
    **dict.fromkeys(PLAYERS, PLAYER_CHECKS),
    TEXT_MODEL: TEXT_MODEL_CHECKS,
    CORE: CORE_CHECKS,
    WORLD: WORLD_CHECKS,
    PERCEPTION: PERCEPTION_CHECKS,
    STUDY_PLAYER: STUDY_PLAYER_CHECKS,
}


def check_model(
    model: str | Entry | Callable[..., nn.Module],
    side: str | None = None,
    *,
    space: MeaningSpace | str | tuple[int, int] = "3x4",
    vocab_size: int = 4,
    word_length: int = 2,
    hidden_size: int = 16,
    representation: str | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of senders and receivers on one model.

    Args:
        model: a registered name such as "sender/FC2L" or "HierZero:GRU"; or a factory, registered or not, that takes
            `(space, message_length, vocab_size, hidden_size, **options)`.
        side: "sender" or "receiver", if the model does not say it.
        space: the meanings.
        vocab_size: V.
        word_length: w; messages have A * w tokens.
        hidden_size: E.
        representation: "soft", "gumb" or "discr"; by default the first that the model works with.
        seed: seed of weights and examples.
        options: further arguments of the factory.
        expected_failures: names of checks that the model cannot pass, each with the reason.
        raise_on_failure: whether to raise if a check failed, once all have run.
        report: called with each result as it comes.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such model, or no such check in `expected_failures`.
        InvalidSettingError: a factory that does not say whether it makes a sender or a receiver.

    Example:
        >>> from icy.testing import check_model
        >>> [result.passed for result in check_model("sender/FC2L") if result.name == "stacked_equals_separate"]
        [True]
    """
    entry, registered = _model_entry(model, side, options)
    task = Task(
        entry,
        MeaningSpace.of(space),
        vocab_size,
        word_length,
        hidden_size,
        representation or first_representation(entry),
        dict(options or {}) if registered else {},
    )
    return run_case(entry, ModelCase(task, seed, registered), expected_failures, raise_on_failure, report)


def check_grammar(
    grammar: Given,
    *,
    space: MeaningSpace | str | tuple[int, int] = "3x4",
    vocab_size: int = 4,
    word_length: int = 2,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of grammars on one of them.

    Args:
        grammar: a registered name; or a Corruption class or a function, registered or not (see icy.grammars.base).
        space: the meanings.
        vocab_size: V.
        word_length: w.
        seed: seed of the language.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such grammar, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_grammar
        >>> [result.message for result in check_grammar("shuf") if result.name == "sides"]
        ['for receivers']
    """
    entry, registered = _entry_of(grammar, "grammar")
    case = GrammarCase(entry.name, MeaningSpace.of(space), vocab_size, word_length, seed)
    with contextlib.nullcontext() if registered else registry.holding(entry):
        return run_case(entry, case, expected_failures, raise_on_failure, report)


def check_cell(
    cell: Given,
    *,
    size: int = 8,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of recurrent cells on one of them.

    Args:
        cell: a registered name such as "GRU"; or a factory, registered or not, that takes
            `(input_size, hidden_size, fed=True)`.
        size: size of the input and of the state, E.
        seed: seed of weights and inputs.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such cell, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_cell
        >>> [result.message for result in check_cell("GRU") if result.name == "stacked_equals_separate"]
        ['trains as: broadcast']
    """
    entry, registered = _entry_of(cell, "cell")
    return run_case(entry, CellCase(entry, size, seed, registered), expected_failures, raise_on_failure, report)


def check_metric(
    metric: Given,
    *,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of metrics on one of them, with its default conventions.

    Args:
        metric: a registered name such as "topsim"; or a function, registered or not, that takes
            `(meanings, messages=None, **conventions)`.
        seed: seed of the tables that it measures.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such metric, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_metric
        >>> [result.message for result in check_metric("topsim") if result.name == "documented_range"]
        ['from -1 to 1']
    """
    entry, registered = _entry_of(metric, "metric")
    return run_case(entry, MetricCase(entry, seed, registered), expected_failures, raise_on_failure, report)


def check_speaker(
    speaker: Given,
    *,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of players on one speaker of S2B.

    Args:
        speaker: a registered name such as "posdis"; or a class or function, registered or not, that makes an
            `icy.s2b.Player` without arguments.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such speaker, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_speaker
        >>> [result.message for result in check_speaker("digital") if result.name == "plays_every_game"]
        ['refuses several rounds, one-hot stimuli']
    """
    return _check_player(speaker, SPEAKER, expected_failures, raise_on_failure, report)


def check_listener(
    listener: Given,
    *,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of players on one listener of S2B.

    Args:
        listener: a registered name such as "binding"; or a class or function, registered or not, that makes an
            `icy.s2b.Player` without arguments.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such listener, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_listener
        >>> [result.message for result in check_listener("nearest") if result.name == "plays_every_game"]
        ['refuses no feedback']
    """
    return _check_player(listener, LISTENER, expected_failures, raise_on_failure, report)


def check_text_model(
    model: Given,
    *,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of text models on one of them.

    Args:
        model: a registered name such as "scripted-yes"; or a factory, registered or not, that takes `(name, settings)`
            and makes an `icy.s2b.TextModel`, or a function from a TextRequest to a TextReply.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such text model, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_text_model
        >>> [result.passed for result in check_text_model("scripted-yes") if result.name == "keeps_nothing"]
        [True]
    """
    entry, registered = _entry_of(model, TEXT_MODEL)
    return run_case(entry, TextModelCase(entry, registered), expected_failures, raise_on_failure, report)


def check_core(
    core: Given,
    *,
    width: int = 10,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of cores of agents that learn S2B on one of them.

    Args:
        core: a registered name such as "DNC"; or a factory, registered or not, that takes `(width, **options)` and
            makes an `icy.s2b.agents.cores.Core`.
        width: width of an input.
        seed: seed of weights and inputs.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such core, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_core
        >>> [result.passed for result in check_core("LSTM") if result.name == "unroll_equals_steps"]
        [True]
    """
    entry, registered = _entry_of(core, CORE)
    return run_case(entry, CoreCase(entry, width, seed, registered), expected_failures, raise_on_failure, report)


def check_world(
    world: Given,
    *,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of worlds of the multi-target games on one of them.

    Args:
        world: a registered name such as "shape"; or a class or function, registered or not, that makes an
            `icy.games.World` without arguments.
        seed: seed of the objects that are looked at.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such world, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_world
        >>> [result.message for result in check_world("thing") if result.name == "looks_vary"]
        ['objects have one look each']
    """
    entry, registered = _entry_of(world, WORLD)
    return run_case(entry, WorldCase(entry, seed, registered), expected_failures, raise_on_failure, report)


def check_perception(
    perception: Given,
    *,
    size: int = 10,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of perceptions of the multi-target games on one of them.

    Args:
        perception: a registered name such as "conv4"; or a class or function, registered or not, that takes
            `(shape, size, **options)` and makes a torch.nn.Module.
        size: size of the vectors.
        seed: seed of weights and objects.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such perception, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_perception
        >>> [result.message for result in check_perception("mlp") if result.name == "stacked_equals_separate"]
        ['trains as: broadcast']
    """
    entry, registered = _entry_of(perception, PERCEPTION)
    return run_case(entry, PerceptionCase(entry, size, seed, registered), expected_failures, raise_on_failure, report)


def check_study_player(
    player: Given,
    *,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
) -> list[CheckResult]:
    """Run the whole contract of simulated players of the study on one of them.

    Args:
        player: a registered name such as "composer"; or a class or function, registered or not, that makes an
            `icy.study.players.base.StudyPlayer` without arguments.
        seed: of the games.
        expected_failures, raise_on_failure, report: see `check_model`.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such player, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_study_player
        >>> [result.passed for result in check_study_player("composer") if result.name == "answers"]
        [True]
    """
    entry, registered = _entry_of(player, STUDY_PLAYER)
    return run_case(entry, StudyPlayerCase(entry, seed, registered), expected_failures, raise_on_failure, report)


def _check_player(
    player: Given, role: str, expected: Mapping[str, str] | None, raise_on_failure: bool, report: Report | None
) -> list[CheckResult]:
    entry, registered = _entry_of(player, role)
    return run_case(entry, PlayerCase(entry, registered), expected, raise_on_failure, report)


def run_case(
    entry: Entry,
    case: Case,
    expected: Mapping[str, str] | None,
    raise_on_failure: bool,
    report: Report | None,
    begin: Callable[[str, int, int], None] | None = None,
    seconds: float | None = None,
) -> list[CheckResult]:
    """Run all checks of the kind of a plug-in on a case of it; `begin` and `seconds` as in `run_all`."""
    checks = bind(entry, case, CHECKS[entry.kind], expected)
    return run_all(checks, entry.qualified, raise_on_failure, report, begin, seconds)


def _model_entry(
    model: str | Entry | Callable[..., nn.Module], side: str | None, options: Mapping[str, Any] | None
) -> tuple[Entry, bool]:
    if side is not None and side not in SIDES:
        raise InvalidSettingError(f"'{side}' is not a side; it is {' or '.join(SIDES)}.")
    kinds = SIDES if side is None else (side,)
    if side is None and isinstance(model, type):
        side = next(
            (kind for kind, base in zip(SIDES, (Sender, Receiver), strict=True) if issubclass(model, base)), None
        )
    return _entry_of(model, side, kinds, options)


def _entry_of(
    given: Given, kind: str | None, kinds: tuple[str, ...] = (), options: Mapping[str, Any] | None = None
) -> tuple[Entry, bool]:
    """Return an entry, and whether the registry knows it; of an unregistered factory, one made for the occasion.

    Args:
        given: a name, an entry or a factory.
        kind: the kind of an unregistered factory.
        kinds: those to look a name up in; by default `kind`.
        options: arguments of an unregistered factory.
    """
    kinds = kinds or (str(kind),)
    if isinstance(given, str):
        return registry.get(given, *kinds), True
    if isinstance(given, Entry):
        return given, True
    place = f"{getattr(given, '__module__', '?')}:{getattr(given, '__qualname__', '?')}"
    known = [entry for entry in registry.entries(*kinds) if entry.factory is given or entry.factory == place]
    if len(known) == 1:
        return known[0], True
    if known and "cell" not in (options or {}):
        raise InvalidSettingError(
            f"{known[0].qualified.partition(':')[0]} takes a cell; name one, as in '{known[0].qualified}'."
        )
    name = getattr(given, "__name__", type(given).__name__)
    if kind is None:
        raise InvalidSettingError(f"{name} does not say its side; give side='sender' or side='receiver'.")
    origin = getattr(given, "__module__", "?")
    return Entry(kind, name, given, description="", source="", defaults=dict(options or {}), origin=origin), False
