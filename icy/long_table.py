"""Records as a table in long form: one row per replicate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from icy.store import Record
from icy.training.settings import PRESETS, settings_for

if TYPE_CHECKING:
    import pandas as pd

# What distinguishes one row of a table from another; the rest of the long table varies within a row.
ROW = (
    *("model", "representation", "meanings", "vocab_size", "word_length"),
    *("hidden_size", "protocol", "target", "cap", "held_out", "split", "preset", "settings", "options"),
    *("pretrain_representation", "game_steps", "most", "report_every"),
)
# What some protocols measure beside the value.
EXTRA = ("train_accuracy", "sender_accuracy", "receiver_accuracy", "end_to_end_accuracy", "end_to_end_loss", "topsim")
WHOLE = (
    *("game_steps", "most", "report_every", "steps", "baseline_steps"),
    *("parameters", "parameters_published", "seed"),
)
NUMBERS = ("target", "cap", "held_out", "value", "accuracy", *EXTRA, "seconds")
LONG = (
    *ROW,
    *("side", "parameters", "parameters_published", "grammar", "seed", "measure", "value", "cut", "accuracy"),
    *EXTRA,
    *("steps", "baseline_steps", "reason", "failed", "error", "engine", "device", "seconds"),
    *("finished", "key"),
)


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


def _changes(settings: Mapping[str, Any], preset: str, kind: str) -> str:
    """The training settings that were changed from the preset's, as text; so that results under others stay apart."""
    usual = asdict(settings_for(preset, kind)) if preset in PRESETS else {}
    return _listed({name: value for name, value in settings.items() if usual.get(name, value) != value})


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))


def to_long(records: Iterable[Record]) -> pd.DataFrame:
    """One row per replicate (model, grammar, seed), with the columns of LONG."""
    import pandas as pd

    rows = []
    for record in records:
        row = {name: record.get(name) for name in LONG}
        row["value"] = value_of(record)
        kind = "e2e" if record["side"] == "pair" else "probe"
        row["settings"] = _changes(record["config"]["settings"], record["preset"], kind)
        row["options"] = _listed(record["config"]["options"])
        row["game_steps"] = record["config"].get("steps")
        row["cut"] = record["reason"] == "cap"
        row["parameters"] = record["parameters"].get("true")
        row["parameters_published"] = record["parameters"].get("published")
        rows.append(row)
    table = pd.DataFrame(rows, columns=list(LONG))
    for name in WHOLE:
        table[name] = table[name].astype("Int64")
    for name in NUMBERS:
        table[name] = table[name].astype(float)
    return table


def game_curves(records: Iterable[Record]) -> pd.DataFrame:
    """One row per pair and reading of its game: the columns of ROW, grammar, seed, and those of
    `icy.training.pair_job.CURVE`. Results of one side alone are left out."""
    import pandas as pd

    from icy.training.pair_job import CURVE

    names = [*ROW, "grammar", "seed"]
    played = [r for r in records if r["side"] == "pair" and not r["failed"]]
    about = to_long(played)[names]
    curves = pd.DataFrame([reading for r in played for reading in r["curve"]], columns=list(CURVE))
    readings = [len(r["curve"]) for r in played]
    of_each = about.loc[about.index.repeat(readings)].reset_index(drop=True)
    return of_each.join(curves.astype(dict.fromkeys(CURVE[1:], float)))
