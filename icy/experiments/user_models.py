"""Models that users pass in place of names: classes, functions and modules, registered while the program runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from icy.config.protocols import SCRATCH
from icy.config.requests import RunRequest
from icy.core.checks import hidden_list
from icy.core.entry import Entry
from icy.core.errors import DuplicateNameError, IcyError, IncompatibleError, InvalidSettingError
from icy.core.registry import SIDES, registry
from icy.grammars import grammar_version
from icy.languages.meanings import MeaningSpace
from icy.languages.names import content_name
from icy.records.kinds import kind_of
from icy.records.record import Record, checked_accuracy, model_file, record_key
from icy.records.saved_models import choices
from icy.training.job import Replicate
from icy.training.language_job import PairJob, SavedSide
from icy.training.weights import require_version

from .results import ProbeResult

if TYPE_CHECKING:
    from torch import nn


Model: TypeAlias = str | Callable[..., Any]  # a name or wildcard; a class or function that makes a module; a module
Models: TypeAlias = Model | Iterable[Model]
Sizes: TypeAlias = tuple[MeaningSpace, int, int, int]  # meanings, message length, vocabulary, hidden size
SMALL: Sizes = (MeaningSpace(3, 4), 6, 4, 8)
S = TypeVar("S", bound=RunRequest)


def with_model_names(request: S, *fields: str) -> S:
    """Register the models of a request that are not names, and return the request with their names.

    Args:
        request: request of a probe, a sweep or an end-to-end run; modules must have its sizes.
        *fields: "model"; or "sender" and "receiver".

    Raises:
        IncompatibleError, DuplicateNameError: as for `model_names`.
    """
    named: dict[str, Any] = {
        name: model_names(getattr(request, name), *([name] if name in SIDES else SIDES), sizes=_sizes_of(request))
        for name in fields
        if not isinstance(getattr(request, name), str)
    }
    return replace(request, **named).with_given(request.given) if named else request


def _sizes_of(request: RunRequest) -> Sizes:
    """Return the sizes of a run. If the run has several, or if a language determines the sizes, return small sizes."""
    fields: Any = request  # each field may have several values
    try:
        space, hidden = MeaningSpace.of(fields.meanings), hidden_list(fields.hidden)
        longest, vocab_size = getattr(fields, "max_length", None), int(fields.vocab_size)
        length = int(longest) if longest else space.attributes * int(fields.word_length)
    except (IcyError, TypeError, ValueError):
        return SMALL
    return space, length, vocab_size, hidden[0]


def model_names(models: Models, *sides: str, sizes: Sizes = SMALL) -> str | list[str]:
    """Return names of models. Classes, functions and modules are registered under their names.

    Args:
        models: names, classes, functions or modules, one or several.
        *sides: "sender" or "receiver"; if both, a trial call determines the side of a model.
        sizes: sizes in the trial call.

    Raises:
        IncompatibleError: a class or function makes neither a sender nor a receiver.
        DuplicateNameError: another model has the name already.

    Example:
        >>> from icy.models.senders.fc import FC1L
        >>> model_names(["FC2L", FC1L])
        ['FC2L', 'sender/FC1L']
    """
    if isinstance(models, str):
        return models
    if callable(models):  # modules are, too
        return _name(models, sides or SIDES, sizes)
    named: dict[str, Any] = {}
    for one in models:
        name = _name(one, sides or SIDES, sizes) if callable(one) else one
        if named.setdefault(name, one) is not one:
            raise DuplicateNameError(f"Two models are called '{name}'; each needs a name of its own.")
    return list(named)


def _name(model: Any, sides: tuple[str, ...], sizes: Sizes) -> str:
    """Return the name of a model; register the model if it is new."""
    from torch import nn

    known = registry.entries_of_factory(model, *sides)
    if len(known) > 1:
        raise IncompatibleError(
            f"{known[0].name.partition(':')[0]} takes a cell: name the cell, as in '{known[0].qualified}'."
        )
    if known:
        return known[0].qualified
    factory = FreshCopies(model) if isinstance(model, nn.Module) else model
    name = getattr(model, "__name__", type(model).__name__)
    description = (model.__doc__ or "").strip().partition("\n")[0]
    entry = Entry(sides[0], name, factory, description, source="", origin="__main__")
    before = entry.parts
    entry = replace(entry, kind=_side(entry, sides, sizes))
    entry.note_changes(before)  # of the trial calls
    registry.add(entry)
    return entry.qualified


class FreshCopies:
    """A factory that copies a module. The copies have the module's sizes and new initial weights.

    Args:
        module: the module. Its layers with parameters must have the method `reset_parameters`, as PyTorch's have.
    """

    makes_new_weights = True  # for `icy.core.code`

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __call__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> nn.Module:
        """Return a copy.

        Raises:
            IncompatibleError: a layer cannot be given initial weights.
        """
        made = copy.deepcopy(self.module)
        for name, layer in made.named_modules():
            reset = getattr(layer, "reset_parameters", getattr(layer, "_reset_parameters", None))
            if reset is not None:
                reset()
            elif list(layer.parameters(recurse=False)):
                raise IncompatibleError(
                    f"{type(made).__name__} cannot get new initial weights: its layer '{name or type(layer).__name__}' "
                    "has no method reset_parameters; give the class in place of a module."
                )
        return made


def _side(entry: Entry, sides: tuple[str, ...], sizes: Sizes) -> str:
    """Return whether a model is a sender or a receiver, by the shape of its output for meanings and for messages.

    Raises:
        IncompatibleError: the model is neither.
    """
    import torch

    from icy.training.task_models import fixed_randomness

    causes = []
    for side in sides:
        with fixed_randomness(), torch.no_grad():
            try:
                shape, expected = _shapes(entry.create(*sizes), side, sizes)
            except IncompatibleError:
                raise
            except Exception as error:
                causes.append(f"as a {side}, {type(error).__name__}: {str(error).partition(chr(10))[0].rstrip('.')}")
                continue
        if shape == expected:
            return side
        causes.append(f"as a {side}, it outputs {shape} and must output {expected}")
    cause = "; ".join(causes)
    raise IncompatibleError(
        f"'{entry.name}' is not a {' or a '.join(sides)} ({cause}). Give a class or function that icy can call with "
        "(space, message_length, vocab_size, hidden_size), or a module of the sizes of the run; a sender maps meanings "
        "[batch, attributes] to scores [batch, length, vocabulary + 1], and a receiver maps messages to scores "
        "[batch, attributes, values]."
    )


def _shapes(model: nn.Module, side: str, sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of a model's scores for two inputs, and the shape that its side requires."""
    import torch

    space, length, vocab_size, _ = sizes
    inputs, scores = space.attributes, (length, vocab_size + 1)
    if side == "receiver":
        inputs, scores = length, (space.attributes, space.values)
    return tuple(model(torch.zeros(2, inputs, dtype=torch.int64, device="cpu")).shape), (2, *scores)


# -- pairs that start from saved models of probes instead of pre-training ----------------------------------------------


DIGITS = 12  # length of the hash of a row in the configuration of a pair


def with_saved_models(jobs: Sequence[PairJob], path: str | Path) -> list[PairJob]:
    """Return jobs in which the pairs start from the saved models of a probe.

    Args:
        jobs: jobs of pairs with pre-training.
        path: results folder or pack of the probe.

    Raises:
        StoreError: the folder has no results, or the version of a model or a grammar has changed.
        InvalidSettingError: a pair is from scratch, a model was not saved, or several saved models fit.
    """
    if any(r.condition == SCRATCH for job in jobs for r in job.replicates):
        raise InvalidSettingError(
            "Pairs from scratch do not start from saved models: name the grammars of the models with `pretrain`."
        )
    found = ProbeResult.load(path)
    probes = [r for r in found.records if kind_of(r).name == "probe" and not r["failed"]]
    # In the game, the words depend on the seed; models with a separate seed of words have other words.
    kept = [r for r in probes if model_file(r) is not None and "word_seed" not in r["config"]]
    return [_with_models(job, replace(found, records=kept)) for job in jobs]


def _with_models(job: PairJob, probes: ProbeResult) -> PairJob:
    records = {(side, r): _record(job, side, r, probes) for side in SIDES for r in job.replicates}
    of_sides = [[record for (of, _), record in records.items() if of == side] for side in SIDES]
    rows = [set(map(_row, of_side)) for of_side in of_sides]
    for of_side, row in zip(of_sides, rows, strict=True):
        if len(row) > 1:
            raise _ambiguous(of_side, probes)
    sides = {place: _saved_side(record, str(probes.folder)) for place, record in records.items()}
    target = min(record["target"] for record in records.values())  # replaces that of the request
    settings = replace(job.settings, target=target, pretrained="+".join(min(row) for row in rows))
    return replace(job, settings=settings, saved_sides=sides)


def _saved_side(record: Record, source: str) -> SavedSide:
    accuracy = checked_accuracy(record)
    reached = record["reason"] == "target" or accuracy >= record["target"]
    return SavedSide(source, str(model_file(record)), record["steps"], accuracy, reached)


def _record(job: PairJob, side: str, replicate: Replicate, probes: ProbeResult) -> Record:
    """Return the record of the probe that trained one side of a pair: same model, grammar, seed and sizes."""
    task = job.settings.alone(side, job.settings.pretrain_representation)
    fields = {
        "model": task.model, "grammar": content_name(replicate.condition), "seed": replicate.seed,
        "meanings": str(task.space), "vocab_size": task.vocab_size, "word_length": task.word_length,
        "hidden_size": task.hidden, "representation": task.representation, "options": dict(task.options),
    }  # fmt: skip
    own = job.config(replicate)
    drawn = {name: content_name(own.get(name, "")) for name in ("existing", "frequencies", "word_lengths", "draws")}
    fields |= drawn
    configs = [{**dict.fromkeys(drawn, ""), **r["config"], "grammar": r["grammar"]} for r in probes.records]
    fits = [all(_content(config[name]) == value for name, value in fields.items()) for config in configs]
    found = list(compress(probes.records, fits))
    # Models of users with other code may have the same name.
    found = [r for r in found if r["versions"]["model"] == task.entry.full_version] or found
    if len(found) > 1:
        raise _ambiguous(found, probes)
    if not found:
        sizes = ", ".join(
            f"{name} {value}"
            for name, value in fields.items()
            if name not in ("model", "grammar", "seed") and value != ""
        )
        raise InvalidSettingError(
            f"{probes.folder} has no saved model of {fields['model']} on {replicate.condition} with seed "
            f"{replicate.seed} ({sizes}): probe it with keep_models (--keep-models), or leave out pretrained."
        )
    require_version(found[0], "model", task.entry.full_version)
    require_version(found[0], "grammar", grammar_version(replicate.condition))
    return found[0]


def _content(value: object) -> object:
    """Return a setting; for the name of a language or a table of meanings, its hash."""
    return content_name(value) if isinstance(value, str) else value


def _row(record: Record) -> str:
    """Return a short hash that identifies the row of a record."""
    config = {name: value for name, value in record["config"].items() if name not in ("grammar", "seed")}
    own = {name: record["versions"][name] for name in ("model", "protocol")}
    return record_key(config, own)[:DIGITS]


def _ambiguous(records: Sequence[Record], probes: ProbeResult) -> InvalidSettingError:
    return InvalidSettingError(
        f"{probes.folder} has models of {records[0]['model']} that were trained in several ways, which differ in "
        f"{choices(records, ['grammar', 'seed'])[1]}: give a folder or a pack with only one of these."
    )
