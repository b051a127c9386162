"""The record of one replicate: its fields, its key, and its row."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, Required, TypedDict, runtime_checkable

from icy.config.settings import TrainingSettings
from icy.core.errors import StoreError
from icy.core.escapes import in_a_line
from icy.core.provenance import SOFTWARE
from icy.core.types import Options
from icy.languages.names import content_name


class Record(TypedDict, total=False):
    """What is on file of one replicate: one model trained on one grammar with one seed.

    A record is a dictionary, stored as JSON. Fields came with version 0.1 unless another is given; files of older
    versions lack the later ones, and a failure those of a result. Fields of the configuration (`model` to
    `report_every`) repeat what `config` holds, for tables. A kind of job may add its own fields (`JobKind.measures`).

    Attributes:
        key: name of the file: a hash of `config` and `versions`.
        config: all choices that can change the numbers: those below, `options` (arguments of the model) and `settings`
            (of the training).
        kind: name of the kind of job, such as "probe" (since 0.2; before, pairs were "e2e" and all others "probe").
        side: "sender", "receiver", "pair", or what else a kind of job trains.
        model: qualified name, as in "sender/HierZero:GRU"; of a pair both names, joined by "+".
        grammar: the grammar of the training; of a pair, that of pre-training, or "none" from scratch. A language that
            was given is NAME@DIGEST, with the hash of its content (since 0.2).
        seed: of the words of the language, the initial weights and all draws.
        meanings: the space, as in "5x10".
        vocab_size: V, tokens.
        word_length: w, tokens per word.
        hidden_size: E.
        representation: "soft", "gumb" or "discr"; of a pair, that of the link.
        protocol: its name.
        target: accuracy at which the baseline counts as learnt.
        cap: the longest training, as a multiple of the baseline's steps.
        max_updates: in place of the cap, the updates that every grammar was trained for (since 0.2).
        held_out: share of the meanings that were kept out of training.
        split: how these were chosen.
        pretrain_representation: that in which both sides of a pair learnt their language.
        most: limit of a game after pre-training, in updates.
        report_every: updates between two readings of a game.
        preset: name that the settings started from.
        parameters: number of parameters: "true" (trained) and "published" (as the papers count).
        measure: what `value` in tables is: "ratio" (steps over the baseline's), "held_out", or "accuracy" at the end.
        value: the number itself, where it is not derived from the fields below (since 0.2).
        failed: whether there is no result.
        reason: why training ended: "target", "cap", "budget", "steps"; of a failure "max_steps", "not_learnt",
            "no_baseline", "diverged", "error", or "interrupted" where memory was exhausted or a worker was killed. The
            next run trains interrupted replicates again.
        error: one sentence on a failure, else None.
        traceback: of an exception.
        steps: updates made.
        baseline_steps: updates that the baseline took at the same seed.
        crossing: the step at which the target was reached, interpolated between the checks around it; absent where it
            was not reached, or is not interpolated (since 0.2).
        baseline_crossing: the same of the baseline at the same seed (since 0.2).
        accuracy: at the end, 0 to 1; on the held-out meanings where there are any; of a pair that was pre-trained, its
            sender's on the language. None if it diverged.
        train_accuracy: at the end on the meanings that were trained on, where others are held out.
        sender_accuracy: of a pair, its sender's on the language of pre-training.
        receiver_accuracy: the same of its receiver.
        end_to_end_accuracy: of a pair, share of attribute values that the receiver reads correctly from the sender.
        end_to_end_loss: of a pair, cross-entropy of the same, in nats.
        topsim: of a pair, topographic similarity of the emerged language.
        sender_steps: updates of the sender's pre-training.
        receiver_steps: updates of the receiver's pre-training.
        language: file of the emerged language, relative to the results folder.
        files: files that belong to the record, relative to the results folder (since 0.2).
        rebuilt: from what the record was made again, and what is not known of it, where the original was not kept
            (since 0.2).
        curve: one point per evaluation, in the order of `JobKind.curve`.
        engine: how the stack was trained.
        seconds: this replicate's share of the time of its stack.
        measures: names of the numbers that only its kind of job has (since 0.2).
        points: names of the numbers of a point of the curve, where these are not steps and accuracy (since 0.2).
        versions: of the parts that determine the numbers (model, grammar, protocol), and of the software.
        git: revision of the source, if it was run from a checkout.
        device: "cpu", "cuda", ...
        device_name: as the system calls it.
        finished: end of training, ISO 8601 in UTC with microseconds (before 0.1.0, seconds).
        filed: its place among the records of its folder: larger than that of any that was there before. It is the time
            in microseconds since 1970, or one more than the largest there, if a clock was set back (since 0.2).
    """

    key: Required[str]
    config: Required[dict[str, Any]]
    failed: Required[bool]
    finished: Required[str]
    kind: str
    side: Required[str]
    model: Required[str]
    grammar: Required[str]
    seed: Required[int]
    meanings: str
    vocab_size: int
    word_length: int
    hidden_size: int
    representation: str
    protocol: str
    target: float
    cap: float
    max_updates: int
    held_out: float
    split: str
    pretrain_representation: str
    most: int | None
    report_every: int
    preset: Required[str]
    parameters: Required[dict[str, int]]
    measure: Required[str]
    value: float | None
    reason: Required[str]
    error: str | None
    traceback: str
    steps: int
    baseline_steps: int | None
    crossing: float
    baseline_crossing: float
    accuracy: float | None
    train_accuracy: float
    sender_accuracy: float | None
    receiver_accuracy: float | None
    end_to_end_accuracy: float | None
    end_to_end_loss: float | None
    topsim: float | None
    sender_steps: int
    receiver_steps: int
    language: str
    files: list[str]
    rebuilt: str
    curve: list[list[float | None]]
    engine: str
    seconds: float
    measures: list[str]
    points: list[str]
    versions: Required[dict[str, str]]
    git: str | None
    device: str
    device_name: str
    filed: int


CROSSINGS = ("crossing", "baseline_crossing")
MODELS = "models"  # folder of kept models, in a results folder
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_BASELINE = "no_baseline"
FAILURES = ("max_steps", "not_learnt", NO_BASELINE, "diverged")
INTERRUPTED = "interrupted"  # exhausted memory or a killed worker ended training; the next run trains it again
NOT_LEARNT = "not_learnt"  # the reason of a pair whose pre-training did not reach its target


@runtime_checkable
class HasRecords(Protocol):
    """Results that hold the records they were made of, such as a ProbeResult."""

    @property
    def records(self) -> Sequence[Record]:
        """One per replicate."""


def model_file(record: Record) -> str | None:
    """Return the path of the kept model of a record, relative to the results folder; None if none was kept."""
    return next((name for name in record.get("files", ()) if name.startswith(f"{MODELS}/")), None)


def rank(record: Record) -> tuple[bool, bool, int]:
    """Return what orders records of one key: results after failures, those with a kept model, then the newest."""
    return not record["failed"], model_file(record) is not None, filing_of(record)


def filing_of(record: Record) -> int:
    """Return what orders records of several keys: their number; of older versions of icy, the time."""
    if (number := record.get("filed")) is not None:
        return number
    try:
        moment = datetime.fromisoformat(str(record.get("finished")))
    except ValueError:
        return 0
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def by_filing(record: Record) -> tuple[int, str]:
    """Return the sort key that puts records in the order in which they were filed."""
    return filing_of(record), str(record.get("key"))


def is_better(record: Record, other: Record | None) -> bool:
    """Whether a record brings what another of its key has not: a result, or a kept model. None is no record."""
    return other is None or rank(record)[:2] > rank(other)[:2]


def value_of(record: Record) -> float:
    """Return the measure of a record: an accuracy, or the ratio of its steps to concat's; NaN where it failed."""
    if record["failed"]:
        return math.nan
    if (value := record.get("value")) is not None:
        return float(value)
    if record["measure"] != "ratio":
        accuracy = record["accuracy"]
        return math.nan if accuracy is None else float(accuracy)
    baseline = record.get("baseline_crossing", record["baseline_steps"])
    if not baseline:
        return math.nan  # concat was learnt before the first step was counted
    if record["reason"] == "cap" and "baseline_crossing" in record:
        # The last check may be some per cent beyond the cap; a common budget ends with it.
        return float(record["cap"] if "max_updates" not in record else record["steps"] / baseline)
    ratio = record.get("crossing", record["steps"]) / baseline
    return float(round(ratio, 1) if record["config"]["settings"]["round_ratio"] else ratio)


def checked_accuracy(record: Record) -> float:
    """Return the accuracy on meanings like those of evaluations: trained on, where others are held out."""
    trained = record.get("train_accuracy")
    accuracy = record["accuracy"] if trained is None else trained
    return math.nan if accuracy is None else float(accuracy)


def record_key(config: Options, versions: Mapping[str, str]) -> str:
    """Return the key of a result: a hash of its configuration and of the versions that determine its numbers.

    Of a language that is used as a grammar its content counts, not its name.
    """
    if isinstance(grammar := config.get("grammar"), str):
        config = {**config, "grammar": content_name(grammar)}
    text = config_text({"config": config, "versions": versions})
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def own_key(record: Record) -> str:
    """Return the key that the configuration and the versions of a record give."""
    own = {name: version for name, version in record["versions"].items() if name not in SOFTWARE}
    return record_key(record["config"], own)


def plain_key(key: str) -> str:
    """Return a key that can be part of the name of a file, or of a search.

    Raises:
        StoreError: it cannot.
    """
    if not (key.isascii() and key.isalnum()):
        raise StoreError(f"A result has a key of letters and digits, not '{in_a_line(key)[:40]}'.")
    return key


def _canonical(value: object) -> object:
    """Return a value with whole numbers as int, so that 20 and 20.0 are one configuration."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, str | int | None):  # most values, and soon told
        return value
    if isinstance(value, Mapping):
        return {name: _canonical(inner) for name, inner in value.items()}
    return [_canonical(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def as_json(value: Any) -> Any:
    """Return a value as JSON has it: NumPy's numbers as Python's, tuples as lists, and None for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(inner) for inner in value]
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def checks_of(record: Record) -> TrainingSettings | None:
    """Return settings with the checks of a training; None of a kind of job with checks of its own."""
    known, names = record["config"].get("settings", {}), ("check_every", "check_growth", "max_steps")
    checks = {name: known[name] for name in (*names, "batch_size", "evaluation_size") if name in known}
    if "max_updates" in record["config"]:
        checks["max_steps"] = record["config"]["max_updates"]
    return TrainingSettings(**checks) if checks.get("check_every") or checks.get("check_growth") else None


def config_text(config: Options) -> str:
    """Return a configuration as text, independent of the order of its parts."""
    return json.dumps(_canonical(config), sort_keys=True)
