"""Published agents of S2B: jobs that retrain them, and comparison of the results with the printed numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType

import pandas as pd

from icy.analysis.row_types import Facts, Row, Series

from .verdicts import DRAWN, judge_runs, verdict_of

COLUMN = {"zsct": "value", "accuracy": "value"}  # columns of results by measure; other columns have the measure's name
SEEDS = 3  # for tables that do not say how many seeds they had
STIMULI = "stimuli"  # column of tables of the recall task
LOSS, WITHOUT = "reconstruction", "without"  # a setting and column, and the column's value for agents without the loss


@dataclass(frozen=True)
class AgentTable:
    """How the agents of a published table are trained, as arguments of the kind of job "s2b".

    Attributes:
        preset: settings of learner and network.
        learner: learning algorithm of the agents.
        settings: changes to the learner's settings. All have the reconstruction loss, as the papers' agents did not
            learn without it; in a table with the column `reconstruction`, this column decides.
    """

    preset: str
    learner: str = "r2d2"
    settings: Facts = field(default_factory=lambda: {LOSS: {}})


AGENTS = {
    "metarg22/listener": AgentTable("metarg22"),
    "metarg22/cores": AgentTable("metarg22"),
    "metarg24/listener": AgentTable("metarg24"),
    "metarg24/cores": AgentTable("metarg24"),
    "metarg24/marl": AgentTable("metarg24", "vdn", {"sad": True, LOSS: {}}),
    "metarg24/figure8": AgentTable("metarg24"),
    "metarg24/figure9": AgentTable("metarg24"),
}
ACQUIRED = "ease_of_acquisition"
EPISODES_ACQUIRED = 20  # number of episodes from which new listeners learn the language; the papers do not say theirs
GAME = MappingProxyType({"compat": "near32"})  # gives the numbers of the authors' program


def agent_parts(
    table: str, reference: pd.DataFrame, seeds: object = None, observations: int | None = None
) -> list[Facts]:
    """Return the arguments of the jobs that retrain published agents, one dict per job.

    Args:
        table: id of the table, one of AGENTS.
        reference: rows of `icy.analysis.published(table)`.
        seeds: seeds; by default as many as the table has.
        observations: number of observations; by default the table's.

    Example:
        >>> from icy.analysis import published
        >>> cells = published("metarg22/listener").query("samples == 4")
        >>> agent_parts("metarg22/listener", cells, observations=1_000_000)[0]["observations"]
        1000000
    """
    about = AGENTS[table]
    trained = reference[reference["observations"].notna()]
    if STIMULI in reference:
        return [
            {
                "core": str(agent),
                "stimuli": list(dict.fromkeys(rows[STIMULI])),
                "preset": about.preset,
                "seeds": SEEDS if seeds is None else seeds,
                "observations": int(rows["observations"].max()) if observations is None else observations,
                "settings": dict(about.settings),
            }
            for agent, rows in trained.groupby("agent", sort=False)
        ]
    own = [name for name in (LOSS, "distractors") if name in trained]
    parts = []
    for key, rows in trained.groupby(["agent", "values", "observations", *own], sort=False):
        agent, values, count = map(str, key[:3])
        least, _, most = values.partition("-")
        runs, more = rows["n"].max(), dict(zip(own, key[3:], strict=True))
        settings = {name: value for name, value in about.settings.items() if name != LOSS or more.get(LOSS) != WITHOUT}
        common = {
            "core": agent,
            "learner": about.learner,
            "preset": about.preset,
            "least": int(least),
            "most": int(most),
            "game": dict(GAME),
            "seeds": (SEEDS if pd.isna(runs) else int(runs)) if seeds is None else seeds,
            "observations": int(count) if observations is None else observations,
            **({"eoa": EPISODES_ACQUIRED} if rows["measure"].eq(ACQUIRED).any() else {}),
            **({"distractors": int(str(more["distractors"]))} if "distractors" in more else {}),
        }
        parts += [{**common, "settings": settings, **games} for games in _games(rows)]
    return parts


def _games(rows: pd.DataFrame) -> list[dict[str, list[int]]]:
    """Return grids of shots and samples that cover the rows: rows with the same shots share a grid."""
    shots = {
        samples: tuple(sorted({int(n) for n in rows.loc[rows["samples"] == samples, "shots"]}))
        for samples in sorted({int(n) for n in rows["samples"]})
    }
    return [
        {"shots": list(grid), "samples": [samples for samples, own in shots.items() if own == grid]}
        for grid in dict.fromkeys(shots.values())
    ]


def judge_agents(table: str, long: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare results with the published numbers of agents; see `icy.analysis.literature.verdicts.judge_cells`.

    Args:
        table: id of the table, one of AGENTS.
        long: results of the kind of job "s2b" in long form.
        reference: rows of `icy.analysis.published`.

    Returns:
        The table of `judge_cells`, in percent: the column `representation` holds the number of values, and `grammar`
        holds shots and samples.
    """
    runs = [_runs(long, cell) for cell in reference.to_dict("records")]
    cells = reference.rename(columns={"agent": "model"})
    if STIMULI in cells:
        cells = cells.assign(representation="recall", grammar=cells[STIMULI])
    else:
        games = zip(cells["shots"], cells["samples"], strict=True)
        named = ["" if pd.isna(shots) else f"S={shots}, O={samples}" for shots, samples in games]
        cells = cells.assign(representation="V " + cells["values"], grammar=named)
    if LOSS in cells:
        cells["model"] += ", " + cells[LOSS] + " reconstruction"
        cells["grammar"] += [f", K={k}" for k in cells["distractors"]]
    return judge_runs(cells, runs, _verdict)


def _verdict(cell: Series) -> str:
    """Return the verdict on a cell; DRAWN if the paper only plots the number."""
    return DRAWN if cell["seeds"] and math.isnan(cell["published"]) else verdict_of(cell)


def _runs(long: pd.DataFrame, cell: Row) -> pd.DataFrame:
    """Return the results of a cell, in percent."""
    name = COLUMN.get(cell["measure"], cell["measure"])
    if (STIMULI not in cell and pd.isna(cell["shots"])) or name not in long or not len(long):
        return long[:0]
    of = long["model"].str.partition("+")[0].eq(cell["agent"])
    options = long["options"].fillna("")
    if STIMULI in cell:
        of &= long["grammar"].eq(cell[STIMULI])
    else:
        of &= long["shots"].eq(cell["shots"]) & long["samples"].eq(cell["samples"])
        of &= options.str.contains(rf"(?:^|, )values={cell['values']}(?:,|$)")
    if LOSS in cell:
        of &= long["distractors"].eq(cell["distractors"])
        of &= options.str.contains(rf"(?:^|, ){LOSS}=").eq(cell[LOSS] != WITHOUT)
    return pd.DataFrame({"value": 100 * long[name].astype(float), "failed": long["failed"]})[of]
