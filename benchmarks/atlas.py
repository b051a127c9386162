"""Make the atlas: `python benchmarks/atlas.py [--train small|main] [--representation soft] [--shard i/n] [--dry-run]`.

Run the sweep benchmarks/sweeps/atlas-small.toml or atlas-main.toml into benchmarks/atlas/results, starting from the
records in benchmarks/atlas/records.parquet, which is committed; put all records back into it, and make of them
analysis/data/atlas.parquet, which comes with icy. Run it again to continue, on any machine; several machines that share
the folder can train a shard each.

What was measured with a check every 50 updates, before the grid of checks was geometric, is in older.parquet without
its records; until it is measured anew, it stays in the atlas under the setting check_every=50.

A model on a grammar comes into the atlas when all its seeds are there: of a run that was stopped, those that learn fast
finished first, and their mean is too low. Of a model that failed in some seeds on every grammar the others are there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import icy
from icy.analysis.atlas.atlas import FILE
from icy.cli import main as command
from icy.records.pack import add_to_pack

HERE = Path(__file__).parent
RESULTS, RECORDS, OLDER = (HERE / "atlas" / name for name in ("results", "records.parquet", "older.parquet"))
ROW = ["model", "representation", "meanings", "word_length", "protocol"]


def finished(table: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of grammars on which all seeds of their row have a result, be it a failure.

    A row of which only concat is left, to which others are compared, goes too.
    """
    row = [*ROW, "settings"]
    of_row = table.groupby(row, dropna=False)["seed"].transform("nunique")
    of_grammar = table.groupby([*row, "grammar"], dropna=False)["seed"].transform("nunique")
    whole = table[of_grammar.eq(of_row)]
    grammars = whole.groupby(row, dropna=False)["grammar"].transform("nunique")
    return whole[grammars.gt(1)].reset_index(drop=True)


def make() -> icy.Atlas:
    """Make the atlas of all records and of the older table."""
    add_to_pack(RECORDS, RESULTS)
    atlas, older = icy.Atlas.load(RECORDS), icy.Atlas.load(OLDER)
    anew = pd.MultiIndex.from_frame(atlas.table[ROW])
    still = older.table[~pd.MultiIndex.from_frame(older.table[ROW]).isin(anew)]
    about = {
        name: sorted({*value, *older.about[name]}) if isinstance(value, list) else value
        for name, value in atlas.about.items()
    }
    table = finished(pd.concat([atlas.table, still], ignore_index=True))
    days = about["made"]
    about |= {
        "made": [min(days), max(days)],
        "runs": len(table),
        "hours": round(table["seconds"].sum() / 3600, 2),
    }
    return icy.Atlas(table, about)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", choices=("small", "main"), help="which sweep to run; without, only pack")
    parser.add_argument("--representation", default="soft", help="soft, gumb, discr, or several")
    given, more = parser.parse_known_args()  # the rest is for icy sweep
    if given.train:
        words = ["sweep", str(HERE / "sweeps" / f"atlas-{given.train}.toml"), "-o", str(RESULTS)]
        words += ["--from", str(RECORDS)] if RECORDS.exists() else []
        command([*words, "--representation", given.representation, *more], standalone_mode=False)
    if "--dry-run" not in more:
        atlas = make()
        atlas.save(FILE)
        print(atlas.settings().to_string(index=False))


if __name__ == "__main__":
    main()
