"""The long table: one row per replicate."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from icy.config.protocols import SCRATCH
from icy.config.settings import PRESETS, PRETRAINING_SETTINGS, settings_for
from icy.core.choices import typed_text
from icy.core.conventions import conventions_json
from icy.core.escapes import csv_table
from icy.core.files import write_atomically
from icy.core.types import Options

from .kinds import job_kind, kind_of, points_of, row_of
from .record import CROSSINGS, Record, value_of
from .resolution import baselines_of, resolution_of, run_of_seed
from .store import Store
from .versions import code_of

if TYPE_CHECKING:
    import pandas as pd


# Columns that distinguish the rows of a bias table; the other columns of the long table vary within a row.
ROW = (
    *("model", "representation", "meanings", "vocab_size", "word_length"),
    *("hidden_size", "protocol", "target", "cap", "max_updates", "held_out", "split", "preset", "settings", "options"),
    *("pretrain_representation", "game_steps", "most", "report_every"),
)
# Measures of some protocols in addition to the value.
EXTRA = (
    "train_accuracy",
    "unweighted_accuracy",
    "sender_accuracy",
    "receiver_accuracy",
    "end_to_end_accuracy",
    "end_to_end_loss",
    "topsim",
)
WHOLE = (
    *("max_updates", "game_steps", "most", "report_every", "steps", "baseline_steps"),
    *("parameters", "parameters_published", "seed"),
)
SIZES = ("vocab_size", "word_length", "hidden_size")
NUMBERS = ("target", "cap", "held_out", "value", "resolution", *CROSSINGS, "accuracy", *EXTRA, "seconds")
LONG = (
    *ROW,
    *("role", "parameters", "parameters_published", "grammar", "seed", "measure", "value", "censored", "accuracy"),
    *EXTRA,
    *("steps", "baseline_steps", "reason", "failed", "error", "engine", "device", "seconds"),
    *("finished", "key", "job_kind", "resolution", *CROSSINGS, "conventions"),
)
TEXTS = tuple(name for name in LONG if name not in {*WHOLE, *SIZES, *NUMBERS, "censored", "failed"})

SYNONYMS = {
    "channel": "representation",
    "word_size": "vocab_size",
    "distractor_kind": "grammar",
    "agents": "model",
    "player": "model",
}
"""Columns by their names in the options and tables of some kinds of jobs."""
OLD_COLUMNS = {"side": "role", "kind": "job_kind", "cut": "censored"}
"""Columns by their names in tables of icy 0.1; records keep the fields `side` and `kind`."""


def column_of(name: str, long: pd.DataFrame) -> str:
    """Return the column of a long table for a name, which may be one of SYNONYMS or OLD_COLUMNS."""
    return name if name in long else (SYNONYMS | OLD_COLUMNS).get(name, name)


# Names of the configuration that are not shown in the column `options`.
COLUMNS = {*LONG, *OLD_COLUMNS, "steps", "settings", "options"}


def changed_settings(settings: Options, preset: str, kind: str) -> str:
    """Return the training settings that differ from the preset, as text that distinguishes the rows of a table."""
    usual = usual_settings(preset, kind)
    return _listed({name: value for name, value in settings.items() if usual.get(name, value) != value})


@cache
def usual_settings(preset: str, kind: str) -> dict[str, object]:
    """Return the settings of a preset; empty if this version does not know the preset."""
    return asdict(settings_for(preset, kind)) if preset in PRESETS else {}


def _listed(values: Options) -> str:
    return ", ".join(f"{name}={typed_text(value)}" for name, value in sorted(values.items()))


def options_of(text: object) -> dict[str, str]:
    """Parse the options in a cell of a long table; values may be lists and dicts, with commas.

    Example:
        >>> options_of("a.b=1, c=[1, 2]")
        {'a.b': '1', 'c': '[1, 2]'}
    """
    return dict(part.split("=", 1) for part in re.split(r", (?=[\w.]+=)", str(text)) if "=" in part)


def to_long(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per replicate (model, grammar, seed), with the columns of LONG and the measures of other kinds."""
    import pandas as pd

    records = list(records)
    measures = tuple(dict.fromkeys(name for record in records for name in kind_of(record).measures if name not in LONG))
    if any(kind_of(record).name == "e2e" for record in records):
        measures += ("topsim_before",)
    baselines = baselines_of(records)
    rows = [_row(record, measures, baselines) for record in records]
    table = pd.DataFrame(rows, columns=[*LONG, *measures])
    gaps = [name for name in SIZES if table[name].isna().any()]  # missing in some kinds of jobs
    for name in (*WHOLE, *gaps):
        table[name] = table[name].astype("Int64")
    for name in (*NUMBERS, *measures):
        table[name] = table[name].astype(float)
    return _apart(_with_code(table, records), records)


def _with_code(table: pd.DataFrame, records: Sequence[Record]) -> pd.DataFrame:
    """Add the digest of its code to the column `options` of models that share their name, or a name of its behavior."""
    codes = [code_of(record) for record in records]
    if not any(code for code, _ in codes):
        return table
    about = table[["model"]].assign(row=[*map(row_of, records)])
    about["code"], about["behavior"] = zip(*codes, strict=True)
    several_codes = about.groupby("model")["code"].transform("nunique") > 1
    several_behaviors = about.groupby(["model", "row", "code"])["behavior"].transform("nunique") > 1
    options = [
        ", ".join(filter(None, [old, f"code={code}" * (code > "" and c), f"behavior={behavior}" * (code > "" and b)]))
        for old, (code, behavior), c, b in zip(table["options"], codes, several_codes, several_behaviors, strict=True)
    ]
    return table.assign(options=options)


def _apart(table: pd.DataFrame, records: Sequence[Record]) -> pd.DataFrame:
    """Add to the column `options` the settings in which replicates of a row differ, such as the length of a game."""
    if not table.duplicated([*ROW, "grammar", "seed"]).any():
        return table
    options = table["options"].tolist()
    for places in table.groupby([*ROW], dropna=False).indices.values():
        leaves = {int(place): dict(_leaves(records[place]["config"])) for place in places}
        runs: dict[tuple[str, int], list[dict[str, object]]] = {}
        for place, values in leaves.items():
            runs.setdefault((records[place]["grammar"], records[place]["seed"]), []).append(values)
        names = dict.fromkeys(name for some in runs.values() for name in set().union(*some))
        differ = [
            name for name in names if any(len({typed_text(f.get(name)) for f in some}) > 1 for some in runs.values())
        ]
        for place, values in leaves.items():
            text = ", ".join(
                f"{name.rpartition('.')[2]}={typed_text(values[name])}" for name in sorted(differ) if name in values
            )
            options[place] = ", ".join(filter(None, [options[place], text]))
    return table.assign(options=options)


def _leaves(config: Options, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values of a nested configuration, each with its path."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _row(record: Record, measures: Sequence[str], baselines: Mapping[str, Record]) -> dict[str, object]:
    """Return the row of a record. The column `options` has the configuration that has no column of its own."""
    config, fields, kind = record["config"], dict(record), kind_of(record).name
    settings = config.get("settings", {})
    if kind == "e2e" and record["grammar"] == SCRATCH:
        settings = {name: value for name, value in settings.items() if name not in PRETRAINING_SETTINGS}
    options = {n: v for n, v in config.items() if n not in COLUMNS} | config.get("options", {})
    return {
        **{name: fields.get(name) for name in (*LONG, *measures)},
        "value": value_of(record),
        "resolution": resolution_of(record, baselines.get(run_of_seed(record)) if baselines else None),
        "topsim_before": _first_topsim(record),
        "conventions": conventions_json(kind_of(record).conventions_of(config)),
        "role": fields.get("side"),
        "job_kind": kind,
        "settings": changed_settings(settings, record["preset"], kind),
        "options": _listed(options),
        "game_steps": config.get("steps"),
        "censored": record["reason"] == "cap",
        "parameters": record["parameters"].get("true"),
        "parameters_published": record["parameters"].get("published"),
    }


def game_curves(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per pair and evaluation of its game: the columns of ROW, grammar, seed, and the curve.

    The column `conventions` describes the metrics, as JSON. Results of other kinds are left out. If messages may end
    early, the column `mean_length` is added.
    """
    import pandas as pd

    names, points = [*ROW, "grammar", "seed", "conventions"], job_kind("e2e").curve
    games = [r for r in records if kind_of(r).name == "e2e" and not r["failed"]]
    about = to_long(games)[names]
    curves = pd.DataFrame(
        [reading[: len(points)] for r in games for reading in r.get("curve", ())], columns=list(points)
    )
    if any("length_curve" in r for r in games):
        means = [[p[1] for p in r.get("length_curve", ())] or [math.nan] * len(r.get("curve", ())) for r in games]
        curves["mean_length"] = [mean for of_one in means for mean in of_one]
    readings = [len(r.get("curve", ())) for r in games]
    of_each = about.loc[about.index.repeat(readings)].reset_index(drop=True)
    return of_each.join(curves.astype(dict.fromkeys(points[1:], float)))


def _first_topsim(record: Record) -> float | None:
    """Return the topsim of a pair before the first update of its game; None if its curve has no such point."""
    first = dict(zip(points_of(record), next(iter(record.get("curve") or ()), ()), strict=False))
    return first.get("topsim") if first.get("steps") == 0 else None


def write_tables(store: Store) -> list[Path]:
    """Rebuild results.csv and results.parquet from a store, with a row per record; return their paths.

    Raises:
        StoreError: the files cannot be written.
    """
    table = to_long(store.records())
    csv, parquet = tables_of(store)
    write_atomically(csv, csv_table(table).to_csv(index=False).encode())
    write_atomically(parquet, table.to_parquet(index=False))
    return [csv, parquet]


def tables_of(store: Store) -> list[Path]:
    """Return the paths of the tables of a results folder."""
    return [store.folder / "results.csv", store.folder / "results.parquet"]


def tables_show(store: Store, records: Iterable[Record]) -> bool:
    """Return whether the tables of a results folder exist and contain all of these records."""
    csv, parquet = tables_of(store)
    if not (csv.exists() and parquet.exists()):
        return False
    keys = set(re.findall(rb"[0-9a-f]{20}", csv.read_bytes()))
    return all(record["key"].encode() in keys for record in records)
