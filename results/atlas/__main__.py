"""Make the atlas: `python -m results.atlas [--train small|main|budget] [--shard i/n] [--dry-run]`.

Run the sweep results/atlas/small.toml or main.toml into results/atlas/runs, starting from the
records in results/atlas/records.parquet, which is committed; add all records to this file, and make
analysis/data/atlas.parquet, which comes with icy, from it. Run it again to continue, on any machine; several machines
that share the folder can train a shard each.

Older measurements with an evaluation every 50 updates, before the grid of evaluations was geometric, are in
older.parquet without their records. Until they are measured again, they are in the atlas under the setting
check_every=50.

`--train budget` runs results/atlas/budget.toml into results/atlas/budget-runs: the rows of the atlas at
5x10 in which runs were cut, under a common budget of updates. Its records are in results/atlas/budget.parquet, and
results/atlas/atlas-budget.md is made of them; they are not in the atlas that comes with icy.

A model on a grammar is added to the atlas when all its seeds are finished: seeds that learn fast finish first, so the
mean of an interrupted run is too low. A seed that failed counts as finished.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import icy
from icy.analysis.atlas.atlas import FILE
from icy.analysis.table_cells import cell_in_row
from icy.cli import main as command
from icy.core.machine import circumstances
from icy.core.text import listed, markdown_table
from icy.experiments.sweep import make_sweep, over, read_sweep, sweep_request
from icy.records.pack import add_to_pack
from results.pages import fill_template

HERE = Path(__file__).parent
RESULTS, RECORDS, OLDER = (HERE / name for name in ("runs", "records.parquet", "older.parquet"))
BUDGET, BUDGET_PAGE = HERE / "budget.parquet", HERE / "atlas-budget.md"
BUDGET_RESULTS, BUDGET_SWEEP = HERE / "budget-runs", HERE / "budget.toml"
ROW = ["model", "representation", "meanings", "word_length", "protocol"]


def finished(table: pd.DataFrame) -> pd.DataFrame:
    """Return the runs on grammars on which all seeds of the row have finished or failed.

    Rows with only concat are left out.
    """
    row = [*ROW, "settings"]
    of_row = table.groupby(row, dropna=False)["seed"].transform("nunique")
    of_grammar = table.groupby([*row, "grammar"], dropna=False)["seed"].transform("nunique")
    whole = table[of_grammar.eq(of_row)]
    grammars = whole.groupby(row, dropna=False)["grammar"].transform("nunique")
    return whole[grammars.gt(1)].reset_index(drop=True)


def make() -> icy.Atlas:
    """Make the atlas from all records and from the older table."""
    add_to_pack(RECORDS, RESULTS)
    atlas, older = icy.Atlas.load(RECORDS), icy.Atlas.load(OLDER)
    measured = pd.MultiIndex.from_frame(atlas.table[ROW])
    rest = older.table[~pd.MultiIndex.from_frame(older.table[ROW]).isin(measured)]
    about = {
        name: sorted({*value, *older.about[name]}) if isinstance(value, list) else value
        for name, value in atlas.about.items()
    }
    table = finished(pd.concat([atlas.table, rest], ignore_index=True))
    days = about["made"]
    about |= {
        "made": [min(days), max(days)],
        "runs": len(table),
        "hours": round(table["seconds"].sum() / 3600, 2),
    }
    return icy.Atlas(table, about)


def make_budget() -> str:
    """Pack the records of runs under the common budget, and return the text of their page."""
    records = list(add_to_pack(BUDGET, BUDGET_RESULTS).records)
    long, capped = icy.ProbeResult(records).to_dataframe(), icy.Atlas.load(RECORDS).table
    budget = f"{int(long['max_updates'].iloc[0]):,}"
    where = {"out": str(BUDGET_RESULTS), "start": [str(BUDGET)]}
    lines, missing = [], []
    for row in make_sweep(sweep_request(**over(read_sweep(str(BUDGET_SWEEP)), where))).rows:
        seeds = {replicate.seed for replicate in row.job.replicates}
        unfinished = []
        for grammar in dict.fromkeys(replicate.condition for replicate in row.job.replicates):
            part = long[long["model"].eq(row.name) & long["grammar"].eq(grammar)]
            if set(part["seed"]) != seeds:
                unfinished.append(grammar)
                continue
            same = [capped[name].eq(part[name].iloc[0]) for name in (*ROW, "grammar")]
            before = capped[np.logical_and.reduce([*same, capped["settings"].eq("")])]
            cell = cell_in_row(part, "sd", log=True)
            numbers = [cell.text(2), cell.below("updates", 2, "sd"), f"{part['accuracy'].mean():.3f}"]
            cut = f"{int(before['censored'].sum())} of {len(before)}"
            lines.append([row.name, grammar, str(len(seeds)), *numbers, cut, f"{before['accuracy'].mean():.3f}"])
        missing += [f"{row.name} ({', '.join(unfinished)})"] * bool(unfinished)
    headings = ["model", "grammar", "seeds", "ratio", "updates", f"accuracy at {budget}", "cut at 20", "accuracy there"]
    about = circumstances(records)
    made = f"made {' to '.join(dict.fromkeys(about['made']))} with {'; '.join(about['versions'])}"
    return fill_template(
        BUDGET_PAGE,
        budget=budget,
        table=markdown_table(headings, lines),
        missing=f"Not measured yet: {listed(missing)}." if missing else "All rows are measured.",
        runs=len(records),
        made=made,
        devices=", ".join(about["devices"]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", choices=("small", "main", "budget"), help="which sweep to run; else only pack")
    parser.add_argument("--representation", default="soft", help="soft, gumb, discr, or several")
    options, more = parser.parse_known_args()  # the rest is for icy sweep
    budget = options.train == "budget"
    records, results = (BUDGET, BUDGET_RESULTS) if budget else (RECORDS, RESULTS)
    if options.train:
        words = ["sweep", str(HERE / f"{options.train}.toml"), "-o", str(results)]
        words += ["--from", str(records)] if records.exists() else []
        command([*words, "--representation", options.representation, *more], standalone_mode=False)
    if budget and "--dry-run" not in more:
        BUDGET_PAGE.write_text(make_budget())
    elif "--dry-run" not in more:
        atlas = make()
        atlas.save(FILE)
        print(atlas.settings().to_string(index=False))


if __name__ == "__main__":
    main()
