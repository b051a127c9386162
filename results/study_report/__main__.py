"""People, simulated players and senders in one table: `python -m results.study_report`.

Reads the games in results/study_report/games.parquet; the page shows the commands that made this file. Writes
study-report.md, study-report.csv, study-report.png and study-course.png.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from icy.analysis.literature.people import published_people
from icy.analysis.plots.study import draw_course, draw_study
from icy.analysis.tables.study import contrasts_table, report_table, study_report
from icy.core.text import markdown_table
from icy.records.load import load_records, long_of
from icy.study.rows import items_of_records, rows_of_long
from results.pages import describe_packs, fill_template

PAGE = Path(__file__).with_name("study-report.md")
GAMES = PAGE.with_name("games.parquet")
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
