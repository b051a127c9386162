"""Records as a table in long form: one row per replicate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.config.settings import PRESETS, settings_for
from icy.core.files import write_atomically

from .record import Record, value_of
from .store import Store

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
    `icy.records.record.CURVE`. Results of one side alone are left out."""
    import pandas as pd

    from .record import CURVE

    names = [*ROW, "grammar", "seed"]
    played = [r for r in records if r["side"] == "pair" and not r["failed"]]
    about = to_long(played)[names]
    curves = pd.DataFrame([reading for r in played for reading in r["curve"]], columns=list(CURVE))
    readings = [len(r["curve"]) for r in played]
    of_each = about.loc[about.index.repeat(readings)].reset_index(drop=True)
    return of_each.join(curves.astype(dict.fromkeys(CURVE[1:], float)))


def write_tables(store: Store) -> list[Path]:
    """Rebuild results.csv and results.parquet from a store's records, a row each; returns their paths.

    Raises:
        StoreError: they cannot be written.
    """
    table = to_long(store.records())
    csv, parquet = store.folder / "results.csv", store.folder / "results.parquet"
    write_atomically(csv, table.to_csv(index=False).encode())
    write_atomically(parquet, table.to_parquet(index=False))
    return [csv, parquet]
