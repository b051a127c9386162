"""Holds icy's numbers against the published ones: `python benchmarks/published.py [--only TEXT] [--report]`.

Runs the rows below under the preset `published` into benchmarks/published/results (resumable: run it again to go on),
then writes benchmarks/published/agreement.csv and .md: every cell beside its published value, and how far apart they
are in combined standard errors.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import icy
from icy.analysis.agreement import agreement

HERE = Path(__file__).parent / "published"
SENDER_GRAMMARS = ["perm", "proj", "pairsum", "rot", "shufdet", "hol"]
RECEIVER_GRAMMARS = [*SENDER_GRAMMARS, "shuf"]
RATIO_GRAMMARS = ["perm", "proj", "rot", "shufdet", "hol"]
# Perkins21 looked at the clock, not at the steps, before it looked at the accuracy. Its fast models were therefore
# looked at every few hundred updates, and overshot their target by as many; a wide grid stands in for that here.
WALL_CLOCK = {"check_every": 400}
WIDE = ("FC1L", "FC2L", "HierZero:RNN")  # models that were also measured so


@dataclass(frozen=True)
class Measured:
    """One row to measure: a model on its grammars under a protocol."""

    protocol: str
    seeds: int
    model: str
    grammars: list[str]
    settings: dict[str, int] = field(default_factory=dict)
    representation: str = "soft"

    def __str__(self) -> str:
        return f"{self.protocol} {self.model} {self.representation}"


ROWS = [
    Measured("acquire", 5, "sender/FC2L", RATIO_GRAMMARS),
    Measured("budget", 3, "sender/FC1L", SENDER_GRAMMARS),
    Measured("budget", 3, "sender/FC2L", SENDER_GRAMMARS),
    Measured("budget", 3, "receiver/kNN", RECEIVER_GRAMMARS),
    Measured("budget", 3, "sender/HierZero:RNN", SENDER_GRAMMARS),
    Measured("acquire", 5, "sender/HierZero:RNN", RATIO_GRAMMARS),
    Measured("acquire", 5, "sender/RNNAutoReg:LSTM", RATIO_GRAMMARS),
    Measured("budget", 3, "receiver/RNN1L:GRU", RECEIVER_GRAMMARS),
    Measured("budget", 3, "sender/HierZero:GRU", SENDER_GRAMMARS),
    Measured("budget", 3, "receiver/Hier:GRU", RECEIVER_GRAMMARS),
    Measured("budget", 3, "sender/FC1L", SENDER_GRAMMARS, WALL_CLOCK),
    Measured("budget", 3, "sender/FC2L", SENDER_GRAMMARS, WALL_CLOCK),
    Measured("budget", 3, "sender/HierZero:RNN", SENDER_GRAMMARS, WALL_CLOCK),
    Measured("acquire", 5, "sender/HierZero:dgsend", RATIO_GRAMMARS),
    *(
        Measured("budget", 3, model, SENDER_GRAMMARS, representation=representation)
        for representation in ("gumb", "discr")
        for model in ("sender/FC2L", "sender/HierZero:RNN", "sender/RNNZero2L:SRU", "sender/TransDecSoft")
    ),
    *(
        Measured("budget", 3, model, SENDER_GRAMMARS, WALL_CLOCK, representation)
        for model, representation in (
            ("sender/FC2L", "gumb"),
            ("sender/FC2L", "discr"),
            ("sender/HierZero:RNN", "gumb"),
        )
    ),
    *(
        Measured("budget", 3, model, RECEIVER_GRAMMARS, representation=representation)
        for representation in ("soft", "gumb")
        for model in ("receiver/CNN", "receiver/RNN2L:SRU", "receiver/Hier:GRU", "receiver/Hier:dgrecv")
    ),
]


INTRODUCTION = [
    "# icy beside the published numbers",
    "",
    "Made by `python benchmarks/published.py`, under the preset `published`. Means ± standard errors of the mean; the",
    "distance is in combined standard errors. With three runs on either side, one cell in nine is more than two apart",
    "by chance alone. `check_every=400` stands in for Perkins21's checks by the clock, which let fast models train on.",
]


def measure(only: str, workers: int | None) -> None:
    """Run every row whose protocol, model and representation, with a space between, contain `only`."""
    for row in ROWS:
        if only in str(row):
            result = icy.probe(
                row.model,
                row.grammars,
                protocol=row.protocol,
                seeds=row.seeds,
                representation=row.representation,
                preset="published",
                settings=row.settings,
                out=HERE / "results",
                device="cpu",
                workers=workers,
            )
            print(result, end="\n\n", flush=True)


def compare() -> str:
    """Write measured.csv, a row per replicate, agreement.csv, and the latter as a page; returns the page."""
    measured = icy.ProbeResult.load(HERE / "results").to_dataframe()
    measured.to_csv(HERE / "measured.csv", index=False)
    cells = agreement(measured)
    clock = cells["settings"] != ""
    # The wide grid stands in for the clock of Perkins21 and for nothing else.
    cells = cells[(cells["preset"] == "published") & ~(clock & (cells["source"] != "Perkins21"))]
    cells.to_csv(HERE / "agreement.csv", index=False, float_format="%.4g")
    page = [*INTRODUCTION, "", *_counts(cells), ""]
    for (protocol, source, table, representation, settings), part in cells.groupby(GROUPS, sort=False):
        extra = f", {settings}" if settings else ""
        page += [f"## {protocol}, {source} table {table}, {representation}{extra}", "", *_rows(part), ""]
    text = "\n".join(page)
    (HERE / "agreement.md").write_text(text)
    return text


GROUPS = ["protocol", "source", "table", "representation", "settings"]


def _counts(cells: pd.DataFrame) -> list[str]:
    lines = [
        "| protocol | source, table | representation | settings | models | cells | within 2 combined standard errors |",
        "|---|---|---|---|---|---:|---:|",
    ]
    for (protocol, source, table, representation, settings), part in cells.groupby(GROUPS, sort=False):
        models = ", ".join(dict.fromkeys(part["model"]))
        about = [protocol, f"{source} {table}", representation, settings or "-", models]
        lines.append(f"| {' | '.join(about)} | {len(part)} | {int(part['within'].sum())} |")
    return lines


def _rows(part: pd.DataFrame) -> list[str]:
    lines = ["| model | grammar | icy | published | distance | outside two, because |", "|---|---|---:|---:|---:|---|"]
    for cell in part.itertuples():
        lines.append(
            f"| {cell.side}/{cell.model} | {cell.grammar} | {cell.icy:.3f}±{cell.icy_error:.3f} "
            f"| {cell.published:g}±{cell.published_error:.3f} | {cell.distance:+.1f} | {_explanation(cell)} |"
        )
    return lines


def _explanation(cell: Any) -> str:
    """The best explanation of a cell outside two combined standard errors."""
    if cell.within:
        return ""
    if cell.protocol == "acquire" and cell.grammar == "hol":
        return "both cut; the papers' checks passed the cap by a little, icy's fall on it"
    if cell.model == "CNN":
        return "concat is learnt within 100 updates, so all hangs on when it was looked at: here at 50 and 100"
    if cell.source == "Perkins21" and cell.settings:
        return "the wide grid is a stand-in: the clock's checks fell somewhere between 50 and 400 updates apart"
    if cell.source == "Perkins21" and not cell.settings and cell.distance < 0 and cell.grammar != "hol":
        if cell.side == "sender" and cell.model in WIDE:
            return "Perkins21 checked by the clock and so trained longer; see the wide grid"
        return "perhaps Perkins21's clock, as for the models of the wide grid; not measured for this one"
    if cell.source == "Icy22" and cell.table == "20":
        return "the paper gives no error; its readings, too, are of 128 meanings"
    return "chance, as far as is known"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose protocol, model and representation contain this")
    parser.add_argument("--workers", type=int, help="processes; one per core unless given")
    parser.add_argument("--report", action="store_true", help="compare what is on file, without running anything")
    arguments = parser.parse_args()
    if not arguments.report:
        measure(arguments.only, arguments.workers)
    print(compare())
