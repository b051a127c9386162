"""The record of one replicate: its fields, its key, and its row."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from icy.config.protocols import BASELINE

REQUIRED = {"key", "config", "failed", "finished"}
Record = dict[str, Any]
RowKey = str  # a configuration without grammar and seed
OF_PAIRS = (
    *("model", "options", "meanings", "vocab_size", "word_length", "hidden_size"),
    *("representation", "protocol"),
)

FAILURES = ("max_steps", "not_learnt", "no_baseline", "diverged")
NOT_LEARNT = "not_learnt"  # the reason of a pair whose pre-training did not reach its target
CURVE = ("steps", "accuracy", "loss", "topsim", "sender_accuracy", "receiver_accuracy")


@runtime_checkable
class HasRecords(Protocol):
    """Results that hold the records they were made of, such as a ProbeResult."""

    @property
    def records(self) -> Sequence[Record]:
        """One per replicate."""


def value_of(record: Record) -> float:
    """What the record measures: an accuracy, or the ratio of its steps to concat's; NaN where it failed."""
    if record["failed"]:
        return math.nan
    if record["measure"] != "ratio":
        return float(record["accuracy"])
    if not record["baseline_steps"]:
        return math.nan  # concat was learnt before the first step was counted
    ratio = record["steps"] / record["baseline_steps"]
    return float(round(ratio, 1) if record["config"]["settings"]["round_ratio"] else ratio)


def record_key(config: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """The name a result is filed under: a hash of its configuration and of the versions that determine its numbers."""
    text = config_text({"config": config, "versions": versions})
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _canonical(value: Any) -> Any:
    """The same with whole numbers as int, so that 20 and 20.0 are one configuration."""
    if isinstance(value, Mapping):
        return {name: _canonical(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def newest(records: Sequence[Record]) -> list[Record]:
    """Of each configuration the last in order; of models, grammars and protocols the newest version with a result.

    Results of different versions are not comparable. The others stay on file.
    """
    version: dict[tuple[str, ...], Any] = {}
    for record in sorted(records, key=lambda r: (not r["failed"], *_order(r))):
        version.update(_versions(record))
    current = [r for r in records if all(version[what] == found for what, found in _versions(r).items())]
    return list({config_text(record["config"]): record for record in current}.values())


def _versions(record: Record) -> dict[tuple[str, ...], Any]:
    """The versions that it was measured with: of its model, its grammar and its protocol."""
    names = {"model": ("side", "model"), "grammar": ("grammar",), "protocol": ("protocol",)}
    found = record.get("versions", {})
    return {(what, *(str(record.get(name)) for name in parts)): found.get(what) for what, parts in names.items()}


def _order(record: Record) -> tuple[str, str]:
    return str(record.get("finished")), str(record.get("key"))


def config_text(config: Mapping[str, Any]) -> str:
    """A configuration as text, the same however its parts are ordered."""
    return json.dumps(_canonical(config), sort_keys=True)


def row_of(record: Record) -> RowKey:
    """The row of a plan that a record belongs to, as `Job.row` names it."""
    return _row_key(record["config"], paired=record["side"] == "pair")


def _row_key(config: Mapping[str, Any], paired: bool) -> RowKey:
    # A pair's further configuration hangs on whether it was pre-trained, which varies within its row.
    names = OF_PAIRS if paired else [name for name in config if name not in ("grammar", "seed")]
    return config_text({name: config[name] for name in names})


def baselines_of(records: Iterable[Record]) -> dict[int, int | str]:
    """Concat's steps by seed, as far as they are among records; for one that failed, the reason."""
    # A pair may fail in the game, after its pre-training gave the steps.
    return {
        r["seed"]: r["reason"] if r.get("baseline_steps") is None else r["baseline_steps"]
        for r in records
        if r["grammar"] == BASELINE
    }
