"""Accuracy without listening in S2B: `python -m results.s2b_floors [--train] [--workers 2]`.

Listeners that do not learn play under three schedules of the query: the default, by the listener's stimuli; the papers'
(`query_of="speaker"`); and the authors' program's (`compat="near32"`). Agents without messages learn in the published
cells: `--train` trains those of deaf.toml that are not in records.parquet, which is committed.
Writes results/s2b_floors/s2b-floors.md, .csv and .png.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icy.analysis.literature.agreement import NAMES, with_distance
from icy.analysis.literature.catalogue import published
from icy.analysis.row_types import Row
from icy.analysis.statistics import CONFIDENCE, Paired, holm, paired, student, tost
from icy.analysis.style import legend, panels, tidy
from icy.analysis.table_cells import p_text
from icy.core.text import listed, markdown_table
from icy.experiments.results import ProbeResult
from icy.records.load import long_of
from icy.records.long_table import options_of
from icy.s2b import evaluate
from icy.s2b.evaluation import CONSTANT, NEVER_LISTENING
from results.estimates import print_estimate
from results.pages import RecordFolder, describe_packs, describe_versions, fill_template, read_options

HERE = Path(__file__).parent
PAGE, RECORDS = HERE / "s2b-floors.md", RecordFolder(HERE)
SEEDS = 6
SELECTION_SEEDS = range(200, 203)  # of the episodes in which the best listener without messages is selected
SCHEDULES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "papers": {"query_of": "speaker"},
    "near32": {"compat": "near32"},
}
DEAF = (*NEVER_LISTENING, *CONSTANT)
HEARING = ("nearest", "binding")
SPACES: Mapping[str, Mapping[str, Any]] = {
    "2-3": {"most": 3},
    "2-5": {},
    "2-10": {"most": 10},
    "2-5, K = 3": {"distractors": 3},
}
SHOTS, SAMPLES = (1, 2, 4), (1, 4, 16)
FEW, MANY = 20, 500  # episodes per seed if episodes are long, and in the published cells
CELL = ["values", "shots", "samples"]  # columns that identify a game
# The runs of metarg24/listener are those of metarg22/listener, and only MetaRG24 prints the number of runs of all cores.
LISTENERS = ("metarg22/listener", "metarg24/cores")
TABLES = (*LISTENERS, "metarg24/marl", "metarg24/llm")
DRAWN = ("2-5, K = 3", 2, 1)  # the game of metarg24/figure9, which has no printed accuracy
MARGIN = 5.0  # largest difference of accuracies that does not matter, in points
LEAST_SEEDS = 3  # for a test
EPISODES_OF_TAUGHT = 1000  # of the final evaluation of an agent
BELOW, WITHIN, ABOVE, UNKNOWN, UNTESTED = VERDICTS = ("below", "within 5 points", "above", "unknown", "not tested")


# -- floors ------------------------------------------------------------------------------------------------------------


def cells() -> Iterator[tuple[str, int, int]]:
    """Return the settings: values, shots and samples."""
    for values in SPACES:
        for samples in SAMPLES if values in ("2-3", "2-5") else (1, 4):
            for shots in SHOTS if values != "2-10" else (1, 4):
                yield values, shots, samples


def measure(episodes: int) -> pd.DataFrame:
    """Return a row per schedule, setting and listener, in percent.

    `query` and `support` are means over seeds, and `query_sd` and `support_sd` standard deviations over seeds.
    `episode_sd` is the standard deviation over episodes, and `selection` the query accuracy in the episodes in which
    the best listener is selected.
    """
    compared = {DRAWN, *printed()[CELL].itertuples(index=False, name=None)}
    rows = []
    for cell in cells():
        values, shots, samples = cell
        for schedule, changes in SCHEDULES.items():
            usual = min(episodes, FEW) if samples == 16 or values == "2-10" else episodes
            whole = schedule == "near32" and cell in compared
            settings = {**SPACES[values], "shots": shots, "samples": samples, **changes}
            for listener in (*DEAF, *HEARING):
                count = MANY if whole and listener in DEAF else usual
                found = evaluate("posdis", listener, episodes=count, seeds=SEEDS, **settings)
                query, support = (found.table()[name] * 100 for name in ("zsct", "support"))
                if whole and listener in DEAF:
                    other = evaluate("posdis", listener, episodes=usual, seeds=SELECTION_SEEDS, **settings).table()
                selection = 100 * other["zsct"].mean() if whole and listener in DEAF else np.nan
                rows.append([
                    *(schedule, *cell, listener, count, query.mean(), query.std(), support.mean(), support.std()),
                    *(100 * np.nanstd(found.scores.zsct, ddof=1), selection),
                ])  # fmt: skip
        print(*cell, flush=True)
    names = ("schedule", *CELL, "listener", "episodes", "query", "query_sd", "support", "support_sd", "episode_sd")
    return pd.DataFrame(rows, columns=[*names, "selection"]).assign(versions=describe_versions())


def printed(tables: Sequence[str] = TABLES) -> pd.DataFrame:
    """Return the published accuracies in the query, in percent: a row per agent and cell."""
    found = pd.concat([published(name).assign(source=name) for name in tables], ignore_index=True)
    found = found[found["measure"].eq("zsct")].fillna({"values": "2-5"})
    return found.astype({"shots": int, "samples": int, "n": float}).rename(columns=NAMES).reset_index(drop=True)


def floors(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the best listener without messages of each published cell, with mean (`icy`) and error (`icy_error`).

    The best is selected in other episodes. The standard error of its mean is the error over seeds, or over episodes if
    that is larger.
    """
    near = scores[scores["schedule"].eq("near32") & scores["selection"].notna()]
    best = near.loc[near.groupby(CELL, sort=False)["selection"].idxmax()]
    by_seed, by_episode = best["query_sd"] / SEEDS**0.5, best["episode_sd"] / (SEEDS * best["episodes"]) ** 0.5
    found = best.assign(icy=best["query"], icy_error=np.maximum(by_seed, by_episode), seeds=SEEDS)
    return found[[*CELL, "listener", "icy", "icy_error", "seeds", "episode_sd"]].reset_index(drop=True)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def judge(cells: pd.DataFrame) -> pd.DataFrame:
    """Compare published accuracies with accuracies without messages; see "Questions and rules" of the page.

    Args:
        cells: cells of one question, with the columns that `with_distance` needs.

    Returns:
        The cells of `with_distance` with `gap`, the published minus the other accuracy; `p_holm` and `p_within`, the
        corrected p-values of a difference and of a difference below the margin; and `verdict`, one of VERDICTS.
    """
    cells = with_distance(cells)
    gap, tested = cells["published"] - cells["icy"], cells["seeds"] >= LEAST_SEEDS
    arrays = [one.to_numpy(float) for one in (gap, cells["combined_error"], cells["freedom"])]
    differ, near = (
        np.array(holm(p.where(tested).tolist())) for p in (cells["p"], pd.Series(tost(*arrays, MARGIN), cells.index))
    )
    level = 1 - CONFIDENCE
    cases = [~tested, (differ < level) & (gap < 0), differ < level, near < level]
    verdicts = np.select(cases, [UNTESTED, BELOW, ABOVE, WITHIN], UNKNOWN)
    return cells.assign(gap=gap, p_holm=differ, p_within=near, verdict=verdicts)


def taught(long: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """Return deaf agents that learned from the right decisions: mean and error by cell.

    All agents of a cell were evaluated in the same episodes, so the error of this evaluation is added.

    Args:
        long: the agents.
        best: `floors`, with the spread over episodes of a score in each cell.
    """
    own = long[long["model"].eq("LSTM+supervised (deaf)")].assign(value=100 * long["value"])
    found = own.groupby(CELL, sort=False)["value"].agg(["mean", "sem", "count"]).reset_index()
    found = found.merge(best[[*CELL, "episode_sd"]], on=CELL)
    error = np.hypot(found["sem"], found["episode_sd"] / EPISODES_OF_TAUGHT**0.5)
    return found.assign(icy_error=error).rename(columns={"mean": "icy", "count": "seeds"})


def twins(long: pd.DataFrame) -> pd.DataFrame:
    """Return the R2D2 agents in percent: a row per seed with both, and the columns `hearing` and `deaf`."""
    names = {"LSTM+r2d2": "hearing", "LSTM+r2d2 (deaf)": "deaf"}
    own = long[long["model"].isin(list(names))]
    table = own.assign(who=own["model"].map(names)).pivot_table(index="seed", columns="who", values="value")
    return 100 * table.reindex(columns=list(names.values())).dropna()


def help_of_messages(pairs: pd.DataFrame) -> tuple[Paired, float, str]:
    """Return the comparison of hearing and deaf twins, the p-value of a difference below the margin, and the verdict."""
    none = [False] * len(pairs)
    found = paired(pairs["hearing"].to_numpy(), pairs["deaf"].to_numpy(), none, none, log=False)
    within = tost(found.effect, found.spread / len(pairs) ** 0.5, len(pairs) - 1, MARGIN)
    level = 1 - CONFIDENCE
    other = f"messages {'help' if found.effect > 0 else 'harm'}" if found.p < level else UNKNOWN
    return found, within, "no difference within 5 points" if within < level else other


# -- the page ----------------------------------------------------------------------------------------------------------


def schedules(scores: pd.DataFrame) -> dict[str, str]:
    """Return a table per schedule: the accuracy of each listener."""
    tables = {}
    for schedule in SCHEDULES:
        of = scores[scores["schedule"] == schedule]
        wide = of.assign(text=[f"{q:.1f} ± {s:.1f}" for q, s in zip(of["query"], of["query_sd"], strict=True)])
        table = wide.pivot(index=CELL, columns="listener", values="text")[[*DEAF, *HEARING]]
        table = table.reindex(pd.MultiIndex.from_tuples(list(cells()), names=CELL))
        rows = [[*key, *row] for key, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
        tables[schedule] = markdown_table(["values", "S", "O", *DEAF, *HEARING], rows, range(1, 10))
    return tables


def interval(mean: float, error: float, freedom: float) -> str:
    """Return a mean with its 95 % interval, as text."""
    half = student(freedom) * error
    return print_estimate((mean, mean - half, mean + half), 1)


def comparison(cells: pd.DataFrame, listener: str) -> str:
    """Return a table of judged cells. `listener` is the column with the name of the listener without messages."""
    rows = [
        [
            *(cell["source"], cell["agent"], cell["values"], f"{cell['shots']}", f"{cell['samples']}"),
            interval(cell["published"], cell["published_error"], cell["n"] - 1),
            f"{cell[listener]}",
            interval(cell["icy"], cell["icy_error"], cell["seeds"] - 1),
            interval(cell["gap"], cell["combined_error"], cell["freedom"]),
            p_text(cell["p_holm"]),
            f"**{cell['verdict']}**",
        ]
        for cell in cells.to_dict("records")
    ]
    heads = ["table", "agent", "values", "S", "O", "published", listener, "without messages", "difference"]
    return markdown_table([*heads, "p (Holm)", "published is"], rows, [3, 4, 5, 7, 8, 9])


def counts(cells: pd.DataFrame) -> str:
    """Return how many cells have each verdict, as text."""
    found = cells["verdict"].value_counts()
    return listed([f"{name} in {found[name]}" for name in VERDICTS if name in found])


def place(cell: Row) -> str:
    """Return shots and samples of a cell, as text."""
    return f"S = {cell['shots']} and O = {cell['samples']}"


def span(values: pd.Series[float]) -> str:
    """Return the range of numbers, as text."""
    return f"{values.min():.1f} to {values.max():.1f}"
