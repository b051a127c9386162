"""The table of the study: people, simulated players and senders of the zoo, by dataset and grammar."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy  # loads its parts on first use

from icy.analysis.order import Facts, heading, in_order, range_text
from icy.analysis.people import (
    PUBLISHED,
    chance_p,
    cluster_bootstrap,
    equivalence_p,
    exact_interval,
    people_distance,
    permutation_p,
    printed,
    published_accuracies,
    study_accuracies,
)
from icy.analysis.statistics import Values, holm
from icy.analysis.table_cells import TableCell, cell_of, p_text
from icy.config.protocols import BASELINE
from icy.core.checks import boolean_column
from icy.core.errors import InvalidSettingError
from icy.core.text import counted, listed
from icy.records.load import Results

from .by_setting import FURTHER, frame_table, results_in, with_options
from .printed_table import BiasTable, Line

AGENT = ["agent_kind", "agent", "protocol", "preset", "dataset"]  # columns that identify rows of the report
KINDS = ("published", "human", "simulated", "model")  # in the order of the report
HELD_OUT, EXACT = "held-out", "exact"
MARGIN = 0.2  # tests of equivalence: accuracies that differ by less count as equal
SETTINGS = ("representation", "hidden_size", "protocol", "preset", "most")  # of simulated players, shown if they vary
ANSWERABLE = {"first held-out": "first", "answerable": "answerable", "answerable twice": "answerable_twice"}


# -- the report --------------------------------------------------------------------------------------------------------


def study_report(rows: pd.DataFrame, seed: int = 0, margin: float = MARGIN) -> pd.DataFrame:
    """Return the statistics of the study: one row per agent, protocol, preset, dataset and grammar.

    Columns:
        - `pilot`, whether the games are of a pilot;
        - `games`, `persons`;
        - `right` of `items` held-out items;
        - `accuracy` with `low` and `high`, by bootstrap of persons; `printed`, by the published rule;
        - `any_right`, the share of persons with at least one held-out item right, and its exact interval `any_low`,
          `any_high`;
        - `p_chance`, the probability of at least this many right answers by chance;
        - `difference` from concat with its `p` (permutation test) and `p_holm` (over the grammars of the row), and
          `p_equal`, the p-value of the test of equivalence;
        - accuracy on answerable items (`answerable`, `answerable_twice`), on the first held-out item (`first`) and on
          `trained` items;
        - `letters`, `distance`, `score`, `views`, `added`, `minutes`;
        - `agreement` of yoked players with their partners (the players whose games they repeat), on held-out items.

    Games of a pilot, and of people with changed settings of the game, have rows of their own.

    Args:
        rows: rows in long form, from `icy.study.rows` and `published_people`.
        seed: seed of resampling.
        margin: margin of the test of equivalence.
    """
    found = []
    for key, of_agent in rows.groupby(AGENT, sort=False, dropna=False):
        about = dict(zip(AGENT, key, strict=True))
        cells = {str(grammar): _cell(part, seed) for grammar, part in of_agent.groupby("grammar", sort=False)}
        contrasts = {} if about["agent_kind"] == PUBLISHED else _contrasts(of_agent, seed, margin)
        about["pilot"] = "pilot" in rows and bool(boolean_column("Column pilot", of_agent["pilot"]).any())
        found += [{**about, "grammar": g, **cells[g], **contrasts.get(g, {})} for g in in_order(cells)]
    report = pd.DataFrame(found)
    order = pd.DataFrame({"kind": report["agent_kind"].map(KINDS.index)})
    for name in ("agent", "protocol", "preset"):  # keeps rows of an agent together
        order[name] = pd.factorize(report[name])[0]
    return report.loc[order.sort_values([*order], kind="stable").index].reset_index(drop=True)


def _cell(part: pd.DataFrame, seed: int) -> Facts:
    """Return the statistics of one agent on one grammar."""
    held_out = _of(part, EXACT, HELD_OUT)
    if (part["agent_kind"] == PUBLISHED).any():
        return _published_cell(part, held_out)
    mean = cluster_bootstrap(held_out["value"], list(held_out["person"]), seed=seed)
    best = held_out.groupby("person")["value"].max()
    some = exact_interval(int((best > 0).sum()), len(best))
    right, items = round(float((held_out["value"] * held_out["items"]).sum())), int(held_out["items"].sum())
    return {
        "games": len(held_out),
        "persons": held_out["person"].nunique(),
        "right": right,
        "items": items,
        **dict(zip(("accuracy", "low", "high"), (mean.value, mean.low, mean.high), strict=True)),
        "printed": printed(held_out["value"]),
        **dict(zip(("any_right", "any_low", "any_high"), (some.value, some.low, some.high), strict=True)),
        "p_chance": chance_p(right, items, float(_of(part, "chance", "game")["value"].mean())),
        **_secondary(part),
    }


def _published_cell(part: pd.DataFrame, held_out: pd.DataFrame) -> Facts:
    """Return the counts and printed numbers of a published cell."""
    of_game = part[part["split"] == "game"].set_index("metric")["value"]
    row = held_out.iloc[0]
    return {
        "games": int(row["persons"]),
        "persons": math.nan,  # the service recorded only games
        "right": row["value"] * row["items"],
        "items": int(row["items"]),
        "accuracy": row["value"],
        **{name: row[name] for name in ("low", "high", "printed")},
        **{name: of_game.get(name, math.nan) for name in ("score", "minutes")},
    }


def _secondary(part: pd.DataFrame) -> dict[str, float]:
    """Return the means of further measures: over items or over games."""
    found: dict[str, float] = {}
    for split, name in {**ANSWERABLE, "trained": "trained"}.items():
        some = _of(part, EXACT, split)
        found |= {name: _weighted(some), f"{name}_items": float(some["items"].sum())}
    found |= {"letters": _weighted(_of(part, "letters", HELD_OUT))}
    found |= {"distance": _weighted(_of(part, "edit distance", HELD_OUT))}
    found |= {"agreement": _weighted(_of(part, "agreement", HELD_OUT))}
    for metric, name in (("score", "score"), ("views", "views"), ("cards added", "added"), ("minutes", "minutes")):
        found[name] = float(_of(part, metric, "game")["value"].mean())
    return found


def _of(part: pd.DataFrame, metric: str, split: str) -> pd.DataFrame:
    return part[(part["metric"] == metric) & (part["split"] == split)]


def _weighted(some: pd.DataFrame) -> float:
    items = float(some["items"].sum())
    return float((some["value"] * some["items"]).sum()) / items if items else math.nan


# -- contrasts ---------------------------------------------------------------------------------------------------------


def _contrasts(of_agent: pd.DataFrame, seed: int, margin: float) -> dict[str, dict[str, float]]:
    """Return the difference of every grammar from the baseline, with tests; p-values are corrected over grammars."""
    held_out = _of(of_agent, EXACT, HELD_OUT)
    base = held_out[held_out["grammar"] == BASELINE]
    pairs = {g: _pair(part, base) for g, part in held_out.groupby("grammar", sort=False) if g != BASELINE and len(base)}
    p = {g: permutation_p(*pair, seed=seed) for g, pair in pairs.items()}
    corrected = dict(zip(p, holm(list(p.values())), strict=True))
    return {
        str(g): {
            "difference": float(ours.mean() - theirs.mean()),
            "p": p[g],
            "p_holm": corrected[g],
            "p_equal": equivalence_p(ours, theirs, margin, paired),
            "paired": float(paired),
        }
        for g, (ours, theirs, paired) in pairs.items()
    }


def _pair(part: pd.DataFrame, base: pd.DataFrame) -> tuple[Values, Values, bool]:
    """Return accuracies per person on a grammar and on the baseline, and whether they are pairs.

    Machines play each instance once, so their accuracies are paired by instance.
    """
    once = all(some["instance"].is_unique for some in (part, base))
    if once and (part["agent_kind"] != "human").all() and set(part["instance"]) == set(base["instance"]):
        ours, theirs = (some.set_index("instance")["value"].sort_index() for some in (part, base))
        return ours.to_numpy(float), theirs.to_numpy(float), True
    means = [some.groupby("person")["value"].mean().to_numpy(float) for some in (part, base)]
    return means[0], means[1], False


# -- tables ------------------------------------------------------------------------------------------------------------


def report_table(report: pd.DataFrame, value: str = "accuracy") -> BiasTable:
    """Return the report as a table: a row per agent, a column per grammar, grouped by dataset.

    Args:
        report: report of `study_report`.
        value: a column of the report; "accuracy" is shown with half the width of its interval.
    """
    varying = [name for name in ("protocol", "preset") if report[name].nunique(dropna=False) > 1]
    labels = ["dataset", "agent", *varying]
    grammars = in_order(list(report["grammar"].unique()))
    lines: list[Line] = []
    for key, part in report.groupby(labels, sort=False):
        cells = {}
        for row in part[part[value].notna()].to_dict("records"):
            half = (row["high"] - row["low"]) / 2 if value == "accuracy" else math.nan
            p = row.get("p_holm", math.nan) if value == "accuracy" else math.nan
            cells[row["grammar"]] = TableCell(float(row[value]), float(half), int(row["games"]), 0, 0, p=float(p))
        if not cells:  # such as `agreement` of people, who are not yoked to others
            continue
        lines.append(([*map(str, key), range_text(part["games"])], cells))
    lines.sort(key=lambda line: line[0][0], reverse=True)  # synth before eng; else in the order of the report
    return BiasTable(
        "Secret Spy Codes: accuracy on held-out items" if value == "accuracy" else f"Secret Spy Codes: {value}",
        [*labels, "games"],
        grammars,
        lines,
        _report_notes(report, value),
        grouped=("dataset",),
    )


def _report_notes(report: pd.DataFrame, value: str) -> list[str]:
    """Return notes on the numbers of the report."""
    pilots = sorted(set(report["agent"][report["pilot"]])) if "pilot" in report else []
    warning = [f"{listed(pilots)}: games of a pilot, which are not data of the study"] if pilots else []
    if value != "accuracy":
        return warning
    notes = [*warning, "mean over persons ± half the 95 % interval, by bootstrap of persons"]
    if (report["agent_kind"] == PUBLISHED).any():
        notes.append("people (Icy22): counts derived from the printed means ± half the range of counts that fit them")
    return notes


def contrasts_table(report: pd.DataFrame) -> pd.DataFrame:
    """Return the contrasts with concat as text: a row per agent and grammar."""
    names = ["agent", "protocol", "preset", "dataset", "grammar", "difference"]
    if "p_holm" not in report:
        return pd.DataFrame(columns=[*names, "p (Holm)", "p (equal)"])
    found = report[report["p_holm"].notna()]
    shown = found[names].copy()
    shown["difference"] = [f"{one:+.2f}" for one in found["difference"]]
    shown["p (Holm)"] = [p_text(p) for p in found["p_holm"]]
    shown["p (equal)"] = ["-" if math.isnan(p) else p_text(p) for p in found["p_equal"]]
    return shown.reset_index(drop=True)


# -- simulated games ---------------------------------------------------------------------------------------------------


def simulated_table(results: Results, spread: str = "sd", *, compare: object = None, compared: str = "") -> BiasTable:
    """Make a table of simulated games: a row per player, dataset and protocol, a column per grammar.

    Cells are means over instances of the game.

    Args:
        results: results of `icy study simulate`.
        spread: "sd", "sem" or "ci95".
        compare: must be None; `icy study report` compares with published people.
        compared: not used.

    Raises:
        InvalidSettingError: an unknown spread, or `compare` is not None.
    """
    long = results_in(results, spread, compare, "Simulated games are compared by `icy study report`")
    long = with_options(long, ["dataset"], ["protocol"])
    varying = [name for name in SETTINGS if long[name].nunique() > 1]
    labels = {"dataset": "dataset", "model": "player", **{name: heading(name) for name in varying}}
    labels |= {FURTHER: "settings"} if long[FURTHER].nunique() > 1 else {}
    games = counted(len(long), "game")
    trained = long["trained"].mean() if "trained" in long and len(long) else math.nan
    games += "" if math.isnan(trained) else f"; {100 * trained:.0f} % of the other items are right"
    return frame_table(
        "Secret Spy Codes: accuracy on held-out items",
        long,
        labels,
        lambda part, _: cell_of(part, spread),
        notes=["accuracy: share of held-out items that are exactly right", games],
        spread=spread,
        counted="instances",
        grouped=("dataset",),
    )


# -- the order of grammars from easy to hard, for people and for senders -----------------------------------------------


PEOPLE = ("published", "human")  # kinds of agents that senders are compared with
LEAST_GRAMMARS = 3  # least number of grammars for a comparison of orders


def acquisition_order(report: pd.DataFrame, long: pd.DataFrame) -> pd.DataFrame:
    """Compare senders with people by their order of grammars, from easy to hard.

    Ratios are of larger languages than people learn, and are not accuracies, so only orders are compared. Kendall's
    tau-b is 1 if senders need more updates for the grammars on which people are less accurate, and -1 if they need
    fewer. Over five grammars, 1 in 60 pairs of random orders has a tau of 1 or of -1.

    Args:
        report: report of `icy.analysis.tables.study.study_report`, with people in it.
        long: a long table of senders under the protocol `acquire`, as `icy probe` saves it.

    Returns:
        A row per sender: `sender`, the mean ratio to concat on each grammar, and a column `tau AGENT, DATASET` for each
        group of people.

    Raises:
        InvalidSettingError: the report has no people, or the table no ratios of senders for their grammars.
    """
    people = {
        f"tau {agent}, {dataset}": part.groupby("grammar")["accuracy"].mean()
        for (agent, dataset), part in report[report["agent_kind"].isin(PEOPLE)].groupby(
            ["agent", "dataset"], sort=False
        )
    }
    if not people:
        raise InvalidSettingError("The report has no people to compare senders with; add --rows or --published.")
    ratios = _ratios(long, {str(grammar) for accuracy in people.values() for grammar in accuracy.index})
    taus = {
        label: [order_tau(accuracy.to_dict(), row.dropna().to_dict()) for _, row in ratios.iterrows()]
        for label, accuracy in people.items()
    }
    return ratios.reset_index(names="sender").assign(**taus)


def _ratios(long: pd.DataFrame, grammars: set[str]) -> pd.DataFrame:
    """Return the mean ratios of senders to concat: a row per sender, a column per grammar; the ratio of concat is 1.

    Raises:
        InvalidSettingError: the table has no ratios of senders on these grammars.
    """
    senders = long[long["model"].str.startswith("sender/") & ~long["failed"].astype(bool)]
    chosen = senders[senders["grammar"].isin(grammars - {BASELINE}) & (senders["measure"] == "ratio")]
    if chosen.empty:
        raise InvalidSettingError(
            "These results have no acquisition ratios of senders for the grammars that people learned; "
            "`icy probe --protocol acquire` measures them."
        )
    means = chosen.groupby(["model", "grammar"], sort=False)["value"].mean().unstack(sort=False)
    means = means.assign(**{BASELINE: 1.0}).rename(index=lambda name: str(name).removeprefix("sender/"))
    return means[in_order(map(str, means))].rename_axis(columns=None)


def order_tau(accuracy: Mapping[Any, float], ratio: Mapping[Any, float]) -> float:
    """Return Kendall's tau-b of two orders of grammars; NaN for fewer than three grammars, or if all are tied.

    Args:
        accuracy: accuracies by grammar; high for an easy grammar.
        ratio: ratios by grammar; low for an easy grammar.

    Example:
        >>> round(order_tau({"concat": 0.6, "perm": 0.2, "rot": 0.0}, {"concat": 1.0, "perm": 1.1, "rot": 4.0}), 6)
        1.0
    """
    shared = [grammar for grammar in accuracy if grammar in ratio]
    if len(shared) < LEAST_GRAMMARS:
        return math.nan
    ours, theirs = (np.array([found[grammar] for grammar in shared]) for found in (accuracy, ratio))
    return float(scipy.stats.kendalltau(ours, -theirs).statistic)


# -- distances to people -----------------------------------------------------------------------------------------------


def people_distances(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the distances of machines to people on held-out items, as searches have them; see `people_distance`.

    The people are in the rows, or else in Icy22. Only machines that played all conditions of a dataset have
    a distance.

    Args:
        rows: rows of the study table.

    Returns:
        A row per machine and dataset: the columns of AGENT, `distance` with `low` and `high`, and the `ceiling`, the
        median distance between two halves of the people.
    """
    people = study_accuracies(rows) if (rows["agent_kind"] == "human").any() else published_accuracies()
    machines = _of(rows[~rows["agent_kind"].isin(PEOPLE)], EXACT, HELD_OUT)
    found = []
    for names, part in machines[machines["dataset"].isin({d for d, _ in people.conditions})].groupby(AGENT):
        about = dict(zip(AGENT, names, strict=True))
        here = people.part(str(about["dataset"]))
        wide = part.astype({"value": float}).pivot_table(index="instance", columns="grammar", values="value")
        accuracies = wide.reindex(columns=[grammar for _, grammar in here.conditions]).dropna().to_numpy(float)
        if len(accuracies):
            own = people_distance(accuracies, here)
            found.append(
                {**about, "distance": own.value, "low": own.low, "high": own.high, "ceiling": here.ceiling().value}
            )
    return pd.DataFrame(found, columns=[*AGENT, "distance", "low", "high", "ceiling"])
