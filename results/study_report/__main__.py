"""People, simulated players and senders in one table: `python -m results.study_report`.

Reads the games in results/study_report/games.parquet; the page shows the commands that made this file. Writes
study-report.md, study-report.csv, study-report.png and study-course.png.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from icy.analysis import style
from icy.analysis.order import Facts, in_order
from icy.analysis.people import published_people
from icy.analysis.picture import Panel, Picture, plot
from icy.analysis.plots.games import draw_study
from icy.analysis.tables.study import contrasts_table, report_table, study_report
from icy.core.text import markdown_table
from icy.records.load import load_records, long_of
from icy.study.rows import items_of_records, rows_of_long
from results.pages import describe_packs, fill_template

PAGE = Path(__file__).with_name("study-report.md")
GAMES = PAGE.with_name("games.parquet")
WINDOW = 8  # number of examples of the moving average: as many as between two cards
IN_COURSE = ("composer", "careless", "memoriser", "FC2L", "HierZero:GRU")


def report_of(records: list[dict[str, object]]) -> pd.DataFrame:
    """Return the statistics of all games and of the published people."""
    rows = rows_of_long(long_of(records))  # type: ignore[arg-type]
    return study_report(pd.concat([published_people().astype(object), rows.astype(object)], ignore_index=True))


def trained_table(report: pd.DataFrame) -> str:
    """Return a table of the accuracy on items with cards: a row per agent and dataset, a column per grammar."""
    found = report[report["trained"].notna() & (report["protocol"] == "played")]
    wide = found.pivot_table(
        index=["dataset", "agent"], columns="grammar", values="trained", sort=False, aggfunc="first"
    )
    lines = [
        [*key, *(f"{100 * value:.0f}" for value in row)] for key, row in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    return markdown_table(["dataset", "agent", *wide.columns], lines, numbers=range(2, 2 + len(wide.columns)))


def page(report: pd.DataFrame, records: list[dict[str, object]]) -> str:
    """Return the text of the page."""
    senders = dict.fromkeys(str(r["model"]) for r in records if r["protocol"] == "converged")
    players = [name for name in senders if any((r["model"], r["protocol"]) == (name, "played") for r in records)]
    table = report_table(report).render("markdown").split("\n", 2)[2]
    contrasts = contrasts_table(report)
    return fill_template(
        PAGE,
        games=f"{len(records):,}",
        made=describe_packs(GAMES),
        senders=" ".join(f"--player {name}" for name in senders),
        players=" ".join(f"--player {name}" for name in players),
        table=table,
        contrasts=markdown_table(contrasts.columns, contrasts.to_numpy().tolist()),
        trained=trained_table(report),
    )


@plot
def draw_course(items: pd.DataFrame) -> Picture:
    """Draw the accuracy over the course of a game: a panel per dataset and grammar, a line per agent.

    Lines are moving averages of ordinary items over the number of examples between two cards; marks are held-out items.
    Bands and error bars are standard errors over instances, which the column `seed` numbers.

    Args:
        items: one row per item, as `icy.study.rows.items_of_records` returns.
    """
    datasets, grammars = sorted(items["dataset"].unique(), reverse=True), in_order(items["grammar"].unique())
    agents = list(dict.fromkeys(items["agent"]))
    looks = style.model_looks(agents)
    panels = []
    for dataset, grammar in product(datasets, grammars):
        part = items[(items["dataset"] == dataset) & (items["grammar"] == grammar)]
        draw = partial(_draw_lines, part, looks)
        panels.append(Panel(draw, f"{dataset}, {grammar}", height=1.0, x="example", y="right, %", grid="y"))
    legend = [replace(looks[agent], dash="-").handle(agent) for agent in agents]
    title = "Secret Spy Codes: right answers over the course of a game"
    notes = [f"lines: ordinary items, over {WINDOW} examples; marks: held-out items"]
    notes += ["bands and error bars: standard error of the mean over instances"] * (items["seed"].nunique() > 1)
    return Picture(panels, title, notes, legend, len(grammars), grid={"sharex": True, "sharey": True})


def _draw_lines(part: pd.DataFrame, looks: Mapping[str, style.Look], ax: Axes) -> None:
    for agent, own in part.groupby("agent", sort=False):
        _draw_line(ax, own, looks[str(agent)])
    ax.set(ylim=(0, 102))


def _draw_line(ax: Axes, own: pd.DataFrame, look: style.Look) -> None:
    each = own.assign(right=100 * own["correct"])
    usual, marks = (
        part.pivot_table(index="example", columns="seed", values="right")
        for _, part in each.groupby(each["held_out"].astype(bool))
    )
    smooth = usual.rolling(WINDOW, min_periods=1, center=True).mean()
    mean, error = smooth.mean(axis=1), smooth.sem(axis=1).fillna(0)
    ax.plot(mean.index, mean, color=look.color, linestyle=look.dash, linewidth=1.0)
    ax.fill_between(mean.index, mean - error, mean + error, color=look.color, alpha=0.15, linewidth=0)
    marked: Facts = {"markerfacecolor": look.face, "markersize": 3.5, "linewidth": 0.7, "clip_on": False}
    error = marks.sem(axis=1).fillna(0)
    ax.errorbar(marks.index, marks.mean(axis=1), yerr=error, fmt=look.marker, color=look.color, **marked)


def main() -> None:
    """Write the page, its table and its figures."""
    records = [dict(record) for record in load_records(GAMES)]
    report = report_of(records)
    report.to_csv(PAGE.with_suffix(".csv"), index=False)
    draw_study(report).savefig(PAGE.with_suffix(".png"), dpi=200)
    course = [record for record in records if record["model"] in IN_COURSE]
    draw_course(items_of_records(course)).savefig(PAGE.with_name("study-course.png"), dpi=200)  # type: ignore[arg-type]
    PAGE.write_text(page(report, records), encoding="utf-8")


if __name__ == "__main__":
    main()
