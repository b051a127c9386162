"""Holds icy's numbers against the published ones: `python benchmarks/published.py [--only TEXT] [--report]`.

Runs the rows below under the preset `published` into benchmarks/published/results (resumable: run it again to go on),
then writes benchmarks/published/agreement.csv and .md: every cell beside its published value, and how far apart they
are in combined standard errors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import icy

HERE = Path(__file__).parent / "published"
SENDER_GRAMMARS = ["perm", "proj", "pairsum", "rot", "shufdet", "hol"]
ROWS = [
    ("acquire", 5, "sender/FC2L", ["perm", "proj", "rot", "shufdet", "hol"]),
    ("budget", 3, "sender/FC1L", SENDER_GRAMMARS),
    ("budget", 3, "sender/FC2L", SENDER_GRAMMARS),
    ("budget", 3, "receiver/kNN", [*SENDER_GRAMMARS, "shuf"]),
    ("budget", 3, "sender/HierZero:RNN", SENDER_GRAMMARS),
    ("acquire", 5, "sender/HierZero:RNN", ["perm", "proj", "rot", "shufdet", "hol"]),
    ("acquire", 5, "sender/RNNAutoReg:LSTM", ["perm", "proj", "rot", "shufdet", "hol"]),
    ("budget", 3, "receiver/RNN1L:GRU", [*SENDER_GRAMMARS, "shuf"]),
    ("budget", 3, "sender/HierZero:GRU", SENDER_GRAMMARS),
    ("acquire", 5, "sender/HierZero:dgsend", ["perm", "proj", "rot", "shufdet", "hol"]),
    ("budget", 3, "receiver/Hier:GRU", [*SENDER_GRAMMARS, "shuf"]),
]


def measure(only: str) -> None:
    """Run every row whose protocol or model contains `only`."""
    for protocol, seeds, model, grammars in ROWS:
        if only in f"{protocol} {model}":
            result = icy.probe(
                model, grammars, protocol=protocol, seeds=seeds, preset="published", out=HERE / "results", device="cpu"
            )
            print(result, end="\n\n", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose protocol or model contains this")
    parser.add_argument("--report", action="store_true", help="compare what is on file, without running anything")
    arguments = parser.parse_args()
    if not arguments.report:
        measure(arguments.only)
