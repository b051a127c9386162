"""The long table: one row per replicate."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.config.protocols import BASELINE, SCRATCH
from icy.config.settings import PRESETS, PRETRAINING_SETTINGS, TrainingSettings, settings_for
from icy.core.choices import typed_text
from icy.core.conventions import conventions_json
from icy.core.files import write_atomically
from icy.core.text import csv_table
from icy.core.types import Options
from icy.languages.meanings import MeaningSpace
from icy.languages.names import bounds_of

from .kinds import job_kind, kind_of, points_of, row_of
from .record import CROSSINGS, Record, checks_of, config_text, value_of
from .store import Store
from .versions import code_of

if TYPE_CHECKING:
    import pandas as pd


# -- resolution: the uncertainty of a ratio from the noise and the spacing of evaluations ------------------------------


MOST_STEPS = 10**10  # largest number of steps with a resolution; for more, it is NaN
BELOW = 5.0  # the line through the readings begins at this number of standard deviations below the target
RECENT = 8  # readings that show whether a curve flattens: on a geometric grid, the last half of the updates
LEAST_EARLIER = 4  # readings before the RECENT readings, for comparison
LEAST_SLOPE = 0.02  # of a flattening curve, per unit of log(updates)
# Correlation of the readings of concat and perm at the same evaluation, on the same meanings: 0.2 to 0.8 in six models,
# 0.5 on average (results/resolution). Other grammars rarely reach the target at the same evaluations as concat.
SHARED = 0.5


@dataclass(frozen=True)
class Uncertainty:
    """Relative standard uncertainty of the step at which a run reached its target.

    Attributes:
        readings: uncertainty from each reading around the step, by the step of its evaluation.
        spacing: uncertainty from the spacing of evaluations on a grid.
    """

    readings: dict[int, float]
    spacing: float = 0.0

    def __float__(self) -> float:
        return math.hypot(self.spacing, *self.readings.values())


def resolution_of(record: Record, baseline: Record | None = None) -> float:
    """Return the relative standard uncertainty of a ratio from the noise of readings: 0.05 is 5 %.

    It combines the uncertainties of the grammar's run and of the baseline's run (`crossing_uncertainty`) in quadrature.
    If both runs reach the target at the same evaluations, these use the same meanings, and their errors are correlated.

    Args:
        record: record of a run of a grammar.
        baseline: record of concat at the same seed, if known.

    Returns:
        0 for the baseline, because its ratio is 1; NaN for measures that are not ratios, for runs that failed or were
        cut, for readings of training batches, and for more than MOST_STEPS steps.
    """
    concat = record.get("baseline_crossing") or record.get("baseline_steps")
    if record["measure"] != "ratio" or record["failed"] or record["reason"] == "cap" or not concat:
        return math.nan
    if record["grammar"] == BASELINE:
        return 0.0
    settings = None if record["config"].get("settings", {}).get("training_readings") else checks_of(record)
    crossing = record.get("crossing") or record["steps"]
    if settings is None or max(crossing, concat) > MOST_STEPS:
        return math.nan
    own = crossing_uncertainty(record, crossing, settings)
    other = crossing_uncertainty(baseline, concat, settings)
    shared = sum(own.readings[check] * other.readings[check] for check in own.readings.keys() & other.readings.keys())
    return math.sqrt(float(own) ** 2 + float(other) ** 2 - 2 * SHARED * shared)


def crossing_uncertainty(record: Record | None, crossing: float, settings: TrainingSettings) -> Uncertainty:
    """Return the relative standard uncertainty of the step at which a run reached its target.

    A reading is the fraction of right answers over the meanings of an evaluation. Its standard deviation assumes
    independent answers, one per attribute of a receiver and one per token of a sender. Divided by the slope of the
    curve at the target, it is an uncertainty in updates. The slope is the slope of a line through the readings from
    BELOW standard deviations below the target up to the crossing. If the curve flattens, the slope is at most the slope
    of its last RECENT readings, because a reading that is too high by chance ends the training. If steps are
    interpolated, the two readings around the crossing have the weights of the interpolation. On a fixed grid of
    evaluations, the spacing of the grid is added in quadrature.

    Args:
        record: record of the run, with its curve; None if unknown.
        crossing: step at which the run reached its target.
        settings: settings of its evaluations.

    Returns:
        The uncertainty as a fraction of `crossing`; if the curve is unknown, only the uncertainty from the spacing.
    """
    parts = None if record is None else _around(record, crossing, settings)
    if parts is None:
        return Uncertainty({}, _spacing(settings, crossing))
    if settings.interpolates:
        return Uncertainty(parts)
    last = max(parts)
    return Uncertainty({last: parts[last]}, _spacing(settings, crossing))


def _around(record: Record, crossing: float, settings: TrainingSettings) -> dict[int, float] | None:
    """Return the uncertainty from the reading before the crossing and from the reading after it, by their steps.

    None if the curve lacks one of the two readings.
    """
    target = float(record["target"])
    points = [(float(p[0]), float(p[1])) for p in record.get("curve", ()) if p[0] is not None and p[1] is not None]
    last = next((place for place, (_, accuracy) in enumerate(points) if accuracy >= target), None)
    if not last or target >= 1 or crossing <= 0:
        return None
    spread = math.sqrt(target * (1 - target) / answers_of(record))
    noise = [spread / math.sqrt(settings.check_size(int(steps))) for steps, _ in points[: last + 1]]
    first = last - 1
    while first > 0 and points[first][1] > target - BELOW * noise[first]:
        first -= 1
    (before, low), (after, high) = points[last - 1], points[last]
    slope = _slope(points[first : last + 1])
    if slope <= 0:
        slope = (high - low) / (after - before)
    if (flat := _flattened(points[: last + 1])) is not None:
        slope = min(slope, flat / crossing)
    weight = min(1.0, max(0.0, (crossing - before) / (after - before)))
    parts = ((before, (1 - weight) * noise[last - 1]), (after, weight * noise[last]))
    return {int(check): part / slope / crossing for check, part in parts}


def answers_of(record: Record) -> float:
    """Return how many answers an accuracy averages per meaning: attributes of a receiver, tokens of a sender.

    The sampling noise of an accuracy decreases with this number, so the uncertainty of a ratio depends on it.
    For words of different lengths the number of tokens is a mean over the lengths.
    """
    attributes = MeaningSpace.parse(str(record["meanings"])).attributes
    lengths = bounds_of(record["config"].get("word_lengths") or record["word_length"])
    return attributes if record["side"] == "receiver" else attributes * sum(lengths) / 2


def _slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the least-squares line through points."""
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return float(sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points))


def _flattened(points: list[tuple[float, float]]) -> float | None:
    """Return the slope of the last RECENT readings over log(updates), if the curve was steeper before.

    Return None for other curves, and for curves with few readings.
    """
    on_log = [(math.log(steps), accuracy) for steps, accuracy in points if steps > 0]
    recent, earlier = on_log[-RECENT:], on_log[-2 * RECENT : 1 - RECENT]
    if len(earlier) < LEAST_EARLIER or (slope := _slope(recent)) >= _slope(earlier):
        return None
    return max(slope, LEAST_SLOPE)


def _spacing(settings: TrainingSettings, steps: float) -> float:
    """Return the relative standard uncertainty of a step that is uniformly distributed between two evaluations.

    It is half the gap divided by sqrt(3) (JCGM 100:2008, section 4.3.7), as a fraction of the midpoint.
    """
    before, after = settings.checks_around(steps)
    return (after - before) / (after + before) / math.sqrt(3)


def baselines_of(records: Iterable[Record]) -> dict[str, Record]:
    """Return the records of baselines by `run_of_seed`."""
    return {run_of_seed(r): r for r in records if r["grammar"] == BASELINE and r["measure"] == "ratio"}


def run_of_seed(record: Record) -> str:
    """Return the configuration of a run without its grammar, as text."""
    return config_text({**record["config"], "grammar": ""}) + str(code_of(record))


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
    return option_cell({name: typed_text(value) for name, value in settings.items() if usual.get(name, value) != value})


@cache
def usual_settings(preset: str, kind: str) -> dict[str, object]:
    """Return the settings of a preset; empty if this version does not know the preset."""
    return asdict(settings_for(preset, kind)) if preset in PRESETS else {}


def option_cell(options: Mapping[Any, Any]) -> str:
    """Return the text of options, or of settings, as in a cell of a long table; None is a missing option."""
    return ", ".join(f"{name}={value}" for name, value in sorted(options.items()) if value is not None)


def option_rows(options: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a frame as dicts, also of a frame without columns, as older versions of pandas do not."""
    return [dict(zip(options, row, strict=True)) for row in options.to_numpy(dtype=object)]


def option_columns(long: pd.DataFrame, column: str = "options") -> pd.DataFrame:
    """Return a column per option (or per setting, for the column "settings") of a long table.

    Values are texts; None for rows without the option. Values may be lists and dicts, with commas.

    Example:
        >>> import pandas as pd
        >>> option_columns(pd.DataFrame({"options": ["a.b=1, c=[1, 2]", "c=2"]})).values.tolist()
        [['1', '[1, 2]'], [None, '2']]
    """
    import pandas as pd

    cells = [re.split(r", (?=[\w.]+=)", str(text)) for text in long.get(column, ())]
    found = [dict(part.split("=", 1) for part in parts if "=" in part) for parts in cells]
    names = dict.fromkeys(name for one in found for name in one)
    return pd.DataFrame({name: [one.get(name) for one in found] for name in names}, long.index, dtype=object)


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
    _add_codes(table, records)
    _add_differences(table, records)
    return table.assign(options=table["options"].map(option_cell))


def _add_codes(table: pd.DataFrame, records: Sequence[Record]) -> None:
    """Add the digest of its code to the options of models that share their name, or a name of its behavior."""
    codes = [code_of(record) for record in records]
    if not any(code for code, _ in codes):
        return
    about = table[["model"]].assign(row=[*map(row_of, records)])
    about["code"], about["behavior"] = zip(*codes, strict=True)
    differ = {
        "code": about.groupby("model")["code"].transform("nunique") > 1,
        "behavior": about.groupby(["model", "row", "code"])["behavior"].transform("nunique") > 1,
    }
    for name, several in differ.items():
        for place in several.index[several & about["code"].gt("")]:
            table["options"][place][name] = about[name][place]


def _add_differences(table: pd.DataFrame, records: Sequence[Record]) -> None:
    """Add to the options the settings in which replicates of a row differ, such as the length of a game."""
    import pandas as pd

    shown = table.assign(options=table["options"].map(option_cell))
    if not shown.duplicated([*ROW, "grammar", "seed"]).any():
        return
    for places in shown.groupby([*ROW], dropna=False).indices.values():
        runs = table.loc[places, ["grammar", "seed"]]
        leaves = [dict(_leaves(records[place]["config"])) for place in places]
        by_run = pd.DataFrame(leaves, places).fillna("None").groupby([runs["grammar"], runs["seed"]])
        differ = by_run.nunique().gt(1).any()
        names = {name: name.rpartition(".")[2] for name in differ.index[differ]}
        if len(set(names.values())) < len(names):
            names = dict(zip(names, names, strict=True))
        for place, own in zip(places, leaves, strict=True):
            table["options"][place].update({short: own[name] for name, short in names.items() if name in own})


def _leaves(config: Options, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of a nested configuration as texts, each with its path."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", typed_text(value)


def _row(record: Record, measures: Sequence[str], baselines: Mapping[str, Record]) -> dict[str, object]:
    """Return the row of a record; its options are the configuration that has no column of its own, as texts by name."""
    config, fields, kind = record["config"], dict(record), kind_of(record).name
    settings = config.get("settings", {})
    if kind == "e2e" and record["grammar"] == SCRATCH:
        settings = {name: value for name, value in settings.items() if name not in PRETRAINING_SETTINGS}
    options = {n: v for n, v in config.items() if n not in COLUMNS} | config.get("options", {})
    first = dict(zip(points_of(record), next(iter(record.get("curve") or ()), ()), strict=False))
    return {
        **{name: fields.get(name) for name in (*LONG, *measures)},
        "value": value_of(record),
        "resolution": resolution_of(record, baselines.get(run_of_seed(record)) if baselines else None),
        "topsim_before": first.get("topsim") if first.get("steps") == 0 else None,  # before the first update
        "conventions": conventions_json(kind_of(record).conventions_of(config)),
        "role": fields.get("side"),
        "job_kind": kind,
        "settings": changed_settings(settings, record["preset"], kind),
        "options": {name: typed_text(value) for name, value in options.items()},
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
