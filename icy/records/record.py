"""The record of one replicate: its fields, its key and its value."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, Required, TypedDict, runtime_checkable

from icy.config.settings import TrainingSettings
from icy.core.errors import StoreError
from icy.core.machine import SOFTWARE
from icy.core.text import in_a_line
from icy.core.types import Options
from icy.languages.names import content_name


class Record(TypedDict, total=False):
    """The record of one replicate: one model trained on one grammar with one seed.

    A record is a dictionary, stored as JSON. Fields exist since version 0.1 unless another version is given. Records of
    older versions lack newer fields, and failures lack the fields of a result. Fields of the configuration (`model` to
    `report_every`) repeat entries of `config`, for tables. A kind of job may add its own fields (`JobKind.measures`).

    Attributes:
        key: name of the file: a hash of `config` and `versions`.
        config: all settings that can change the numbers: the fields of the configuration, `options` (arguments of the
            model) and `settings` (of the training).
        kind: name of the kind of job, such as "probe" (since 0.2; before, "e2e" for pairs and "probe" otherwise).
        side: "sender", "receiver", "pair", or another type of model of a kind of job.
        model: qualified name, as in "sender/HierZero:GRU"; for a pair both names, joined by "+".
        grammar: the grammar of the training; for a pair the grammar of pre-training, or "none" for training from
            scratch. For a language from a file it is NAME@DIGEST, with the hash of its content (since 0.2).
        seed: seed of the words of the language, the initial weights and all draws.
        meanings: the meaning space, as in "5x10".
        vocab_size: number of tokens, V.
        word_length: tokens per word, w; of words of different lengths, the longest.
        hidden_size: hidden size, E.
        representation: "soft", "gumb" or "discr"; for a pair, between its sides.
        protocol: name of the protocol.
        target: accuracy at which the baseline counts as learned.
        cap: the longest training, as a multiple of the baseline's updates.
        max_updates: number of updates for every grammar, without a cap (since 0.2).
        held_out: share of the meanings that are held out from training.
        split: how held-out meanings are chosen.
        pretrain_representation: representation in pre-training of both sides of a pair.
        most: limit of a game after pre-training, in updates.
        report_every: updates between evaluations of a game.
        preset: name of the preset of the settings.
        parameters: number of parameters: "true" (trained) and "published" (as the papers count).
        measure: measure of `value` in tables: "ratio" (updates / updates of the baseline), "held_out", or "accuracy" at
            the end.
        value: the value, if it is not computed from the fields below (since 0.2).
        failed: whether the replicate has no result.
        reason: why training ended: "target", "cap", "budget", "steps"; for a failure "max_steps", "not_learnt",
            "no_baseline", "diverged", "error", or "interrupted" if memory was exhausted or a worker was killed. The
            next run trains interrupted replicates again.
        error: one sentence about a failure, otherwise None.
        traceback: traceback of an exception.
        steps: number of updates.
        baseline_steps: number of updates of the baseline with the same seed.
        crossing: number of updates at which the target was reached, interpolated between the checks around it;
            missing if the target was not reached or the number is not interpolated (since 0.2).
        baseline_crossing: `crossing` of the baseline with the same seed (since 0.2).
        accuracy: accuracy at the end, 0 to 1: on the held-out meanings, if any; for a pre-trained pair, of its sender
            on the language. None if it diverged.
        train_accuracy: accuracy at the end on the meanings of training, if others are held out.
        unweighted_accuracy: accuracy at the end over meanings drawn equally often, if training draws them otherwise
            (since 0.2).
        sender_accuracy: for a pair, accuracy of its sender on the language of pre-training.
        receiver_accuracy: for a pair, accuracy of its receiver on the language of pre-training.
        end_to_end_accuracy: for a pair, share of attribute values that the receiver decodes correctly.
        end_to_end_loss: for a pair, cross-entropy of the receiver's answers to the sender's messages, in nats.
        topsim: for a pair, topographic similarity of the emerged language.
        senders: number of senders of a population; missing for a pair (since 0.2).
        receivers: number of receivers of a population; missing for a pair (since 0.2).
        replace_every: updates between two replacements of agents, if there are any (since 0.2).
        replacement: agents that new agents replace (since 0.2); see icy.training.populations.Population.
        pairings: accuracy of each pairing of a population, a list per sender (since 0.2). In records of populations
            end_to_end_accuracy and end_to_end_loss are means over all pairings, and topsim is a mean over all senders.
        worst_accuracy: the smallest accuracy in `pairings` (since 0.2).
        sender_agreement: mean share of equal tokens (not words), over all pairs of senders, the meanings of the last
            evaluation and the places of a message; None for a single sender (since 0.2).
        sender_topsims: topographic similarity of the language of each sender (since 0.2).
        population_curve: points of updates, worst_accuracy and sender_agreement, one per evaluation (since 0.2).
        max_length: largest length of messages that the sender may end early; missing for messages of a fixed length
            (since 0.2).
        length_cost: cost of a token of these messages (since 0.2); see icy.training.populations.Lengths.
        mean_length: mean number of tokens before the end token, over all meanings by their frequencies (since 0.2).
        length_by_rank: Spearman's correlation of the length of a message with the rank of its meaning by frequency, if
            frequencies differ; None if all messages have the same length (since 0.2).
        length_curve: points of updates and mean length in the evaluation, one per evaluation (since 0.2).
        sender_steps: updates of the sender's pre-training.
        receiver_steps: updates of the receiver's pre-training.
        language: file of the emerged language, relative to the results folder.
        files: files that belong to the record, relative to the results folder (since 0.2).
        rebuilt: for a record that was reconstructed: its source, and which of its facts are unknown (since 0.2).
        curve: one point per evaluation, with the numbers of `JobKind.curve`.
        engine: engine that trained the stack.
        seconds: this replicate's share of the time of its stack.
        measures: names of numbers that only this kind of job has (since 0.2).
        points: column names of the curve, if not steps and accuracy (since 0.2).
        versions: versions of the parts that determine the numbers (model, grammar, protocol), and of the software.
        made_by: the code of users that made the record, by qualified name: "code", with the digest of every part
            (`icy.core.code`), and "behavior" for fixed inputs (`icy.training.task_models`); missing if all code is
            icy's (since 0.2).
        git: revision of the source, if run from a checkout.
        device: "cpu", "cuda", ...
        device_name: name of the device in the system.
        finished: end of training, ISO 8601 in UTC with microseconds (before 0.1.0, seconds).
        filed: order of the record in its folder. It is the time of saving in microseconds since 1970, or one more than
            the largest number in the folder, if a clock was set back (since 0.2).
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
    unweighted_accuracy: float
    sender_accuracy: float | None
    receiver_accuracy: float | None
    end_to_end_accuracy: float | None
    end_to_end_loss: float | None
    topsim: float | None
    senders: int
    receivers: int
    replace_every: int
    replacement: str
    pairings: list[list[float]]
    worst_accuracy: float
    sender_agreement: float | None
    sender_topsims: list[float | None]
    population_curve: list[list[float | None]]
    max_length: int
    length_cost: float | str
    mean_length: float
    length_by_rank: float | None
    length_curve: list[list[float]]
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
    made_by: dict[str, dict[str, Any]]
    git: str | None
    device: str
    device_name: str
    filed: int


CROSSINGS = ("crossing", "baseline_crossing")
MODELS = "models"  # folder of saved models in a results folder
LANGUAGES = "languages"  # folder of emergent languages and messages in a results folder
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_BASELINE = "no_baseline"
FAILURES = ("max_steps", "not_learnt", NO_BASELINE, "diverged")
INTERRUPTED = "interrupted"  # memory was exhausted or a worker was killed; the next run trains the replicate again
NOT_LEARNED = "not_learnt"  # reason if the pre-training of a pair did not reach its target


@runtime_checkable
class HasRecords(Protocol):
    """Results with records, such as a ProbeResult."""

    @property
    def records(self) -> Sequence[Record]:
        """The records, one per replicate."""


def model_file(record: Record) -> str | None:
    """Return the path of the saved model of a record, relative to the results folder; None without a model."""
    return next((name for name in record.get("files", ()) if name.startswith(f"{MODELS}/")), None)


def spoken_file(key: str, number: int = 0) -> str:
    """Return the path of the language of a sender, relative to the results folder.

    Args:
        key: key of the record of a pair or a population.
        number: number of the sender in a population, from 0.
    """
    return f"{LANGUAGES}/{key}{f'.{number:02d}' if number else ''}.npz"


def rank(record: Record) -> tuple[bool, bool, int]:
    """Return the sort key of records with the same key: failures before results, then models, then the newest last."""
    return not record["failed"], model_file(record) is not None, filing_of(record)


def filing_of(record: Record) -> int:
    """Return the number that orders records: `filed`, or for records of older versions, the time."""
    if (number := record.get("filed")) is not None:
        return number
    try:
        moment = datetime.fromisoformat(str(record.get("finished")))
    except ValueError:
        return 0
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def by_filing(record: Record) -> tuple[int, str]:
    """Return the sort key that orders records by the time of saving."""
    return filing_of(record), str(record.get("key"))


def is_better(record: Record, other: Record | None) -> bool:
    """Return whether a record has a result or a saved model that another record with its key (or None) lacks."""
    return other is None or rank(record)[:2] > rank(other)[:2]


def value_of(record: Record) -> float:
    """Return the value of a record: an accuracy, or its updates / updates of concat; NaN for a failure."""
    if record["failed"]:
        return math.nan
    if (value := record.get("value")) is not None:
        return float(value)
    if record["measure"] != "ratio":
        accuracy = record["accuracy"]
        return math.nan if accuracy is None else float(accuracy)
    baseline = record.get("baseline_crossing", record["baseline_steps"])
    if not baseline:
        return math.nan  # concat was learned before the first update was counted
    if record["reason"] == "cap" and "baseline_crossing" in record:
        # The last check may be a few percent after the cap. A common budget ends with the last check.
        return float(record["cap"] if "max_updates" not in record else record["steps"] / baseline)
    ratio = record.get("crossing", record["steps"]) / baseline
    return float(round(ratio, 1) if record["config"]["settings"]["round_ratio"] else ratio)


def checked_accuracy(record: Record) -> float:
    """Return the accuracy on the meanings of evaluations: the meanings of training, if others are held out."""
    trained = record.get("train_accuracy")
    accuracy = record["accuracy"] if trained is None else trained
    return math.nan if accuracy is None else float(accuracy)


def record_key(config: Options, versions: Mapping[str, str]) -> str:
    """Return the key of a result: a hash of its configuration and of the versions that determine its numbers.

    For a language from a file, the hash depends on its content, not on its name.

    Returns:
        20 hexadecimal digits. Results with the same key are the same measurement, so icy does not train them again.
    """
    named = {name: value for name in ("grammar", "existing") if isinstance(value := config.get(name), str)}
    config = {**config, **{name: content_name(value) for name, value in named.items()}}
    text = config_text({"config": config, "versions": versions})
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def own_key(record: Record) -> str:
    """Compute the key of a record from its configuration and versions."""
    own = {name: version for name, version in record["versions"].items() if name not in SOFTWARE}
    return record_key(record["config"], own)


def plain_key(key: str) -> str:
    """Return a key if it is safe in names of files and in search patterns.

    Raises:
        StoreError: the key has characters other than ASCII letters and digits.
    """
    if not (key.isascii() and key.isalnum()):
        raise StoreError(f"The key of a result consists of letters and digits; not '{in_a_line(key)[:40]}'.")
    return key


def _canonical(value: object) -> object:
    """Return a value with whole numbers as int, so that 20 and 20.0 are one configuration."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, str | int | None):  # most values: a fast path
        return value
    if isinstance(value, Mapping):
        return {name: _canonical(inner) for name, inner in value.items()}
    return [_canonical(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def as_json(value: Any) -> Any:
    """Convert a value for JSON: NumPy numbers to Python numbers, tuples to lists, NaN and infinity to None."""
    if isinstance(value, Mapping):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(inner) for inner in value]
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def checks_of(record: Record) -> TrainingSettings | None:
    """Return the settings that determine the evaluations of a training; None if the record does not have them."""
    known, names = record["config"].get("settings", {}), ("check_every", "check_growth", "max_steps")
    checks = {name: known[name] for name in (*names, "batch_size", "evaluation_size", "clock") if name in known}
    if "max_updates" in record["config"]:
        checks["max_steps"] = record["config"]["max_updates"]
    return TrainingSettings(**checks) if checks.get("check_every") or checks.get("check_growth") else None


def config_text(config: Options) -> str:
    """Return a configuration as text, independent of the order of its parts."""
    return json.dumps(_canonical(config), sort_keys=True)
