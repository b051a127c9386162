"""Make the atlas: `python benchmarks/atlas.py [--train small|main] [--representation soft] [--shard i/n] [--dry-run]`.

Run the sweep benchmarks/sweeps/atlas-small.toml or atlas-main.toml into benchmarks/atlas/results, and pack everything
on file there into analysis/data/atlas.parquet, which comes with icy. Run it again to continue; several machines that
share the folder can train a shard each.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import icy
from icy.analysis.atlas.atlas import FILE
from icy.cli import main as command

HERE = Path(__file__).parent
RESULTS = HERE / "atlas" / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", choices=("small", "main"), help="which sweep to run; without, only pack")
    parser.add_argument("--representation", default="soft", help="soft, gumb, discr, or several")
    given, more = parser.parse_known_args()  # the rest is for icy sweep
    if given.train:
        words = ["sweep", str(HERE / "sweeps" / f"atlas-{given.train}.toml"), "-o", str(RESULTS)]
        command([*words, "--representation", given.representation, *more], standalone_mode=False)
    if "--dry-run" not in more:
        atlas = icy.Atlas.load(RESULTS)
        atlas.save(FILE)
        print(atlas.settings().to_string(index=False))


if __name__ == "__main__":
    main()
