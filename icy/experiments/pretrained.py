"""Pairs that start from saved models of probes instead of pre-training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

from icy.config.protocols import SCRATCH
from icy.core.errors import InvalidSettingError
from icy.core.registry import SIDES
from icy.grammars import grammar_version
from icy.languages.names import content_name
from icy.records.kinds import kind_of
from icy.records.record import Record, checked_accuracy, model_file, record_key
from icy.records.saved_models import choices
from icy.training.job import Replicate
from icy.training.pairs.pair_job import PairJob, SavedSide
from icy.training.weights import require_version

from .results import ProbeResult

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
    target = min(record["target"] for record in records.values())
    protocol = replace(job.protocol, target=target)  # the target of the probe replaces that of the request
    return replace(job, protocol=protocol, pretrained="+".join(min(row) for row in rows), saved_sides=sides)


def _saved_side(record: Record, source: str) -> SavedSide:
    accuracy = checked_accuracy(record)
    reached = record["reason"] == "target" or accuracy >= record["target"]
    return SavedSide(source, str(model_file(record)), record["steps"], accuracy, reached)


def _record(job: PairJob, side: str, replicate: Replicate, probes: ProbeResult) -> Record:
    """Return the record of the probe that trained one side of a pair: same model, grammar, seed and sizes."""
    task = job.task.alone(side, job.task.pretrain_representation)
    fields = {
        "model": task.entry.qualified, "grammar": content_name(replicate.condition), "seed": replicate.seed,
        "meanings": str(task.space), "vocab_size": task.vocab_size, "word_length": task.word_length,
        "hidden_size": task.hidden_size, "representation": task.representation, "options": dict(task.options),
    }  # fmt: skip
    own = job.task_config(replicate)
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
