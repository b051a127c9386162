"""Makes the atlas: `python benchmarks/atlas.py [--train small|main] [--representation soft] [--shard i/n] [--dry-run]`.

Runs the sweeps benchmarks/sweeps/atlas-small.toml and atlas-main.toml into benchmarks/atlas/results (resumable: run it
again to go on, with a shard each on several machines that share the folder), and packs everything that is on file there
into analysis/data/atlas.parquet, which comes with icy.
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
