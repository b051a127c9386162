"""How much faster icy is than the plain way, on one row: `python benchmarks/speed.py [--device cuda] [--quick]`.

For each model, the same row (7 grammars x 3 seeds, the same number of updates each and a reading at the end) is trained
the plain way (benchmarks/plain.py: one model after another, ordinary modules, all cores) and by icy, in turn, on the
same machine. Both times are whole, from nothing to readings: making languages and starting workers count.
Writes benchmarks/speed-<device>.csv and .md.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path

import pandas as pd
import plain
import torch

import icy
from icy.provenance import device_name, software, usable_cores

GRAMMARS = ["concat", "perm", "proj", "pairsum", "rot", "shufdet", "hol"]


@dataclasses.dataclass(frozen=True)
class Setting:
    """One model's row: how many seeds, and updates for each replicate."""

    model: str
    seeds: int
    updates: int


ROWS = [
    Setting("sender/FC2L", 3, 2000),
    Setting("sender/RNNAutoReg:LSTM", 3, 100),
    Setting("sender/HierZero:GRU", 3, 100),
]


def plain_seconds(row: Setting, device: str) -> float:
    """Wall time of the plain way."""
    started = time.perf_counter()
    with torch.device(device):
        for grammar in GRAMMARS:
            for seed in range(row.seeds):
                language = icy.make_language(grammar, "5x10", seed=seed)
                plain.train(row.model, language, seed, row.updates, check_every=row.updates)
    return time.perf_counter() - started


def icy_seconds(row: Setting, device: str) -> float:
    """Wall time of icy. Concat passes a target near 0 at its first check, and the others get as many updates."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        result = icy.probe(
            row.model,
            GRAMMARS,
            protocol="budget",
            target=1e-6,
            seeds=list(range(row.seeds)),
            settings={"check_every": row.updates},
            device=device,
            out=out,
        )
    done = result.to_dataframe()
    assert (done["steps"] == row.updates).all(), "icy made another number of updates"
    assert len(done) == len(GRAMMARS) * row.seeds, "icy trained another number of replicates"
    return time.perf_counter() - started


def compare(row: Setting, device: str) -> dict[str, object]:
    """Both ways, one after the other."""
    slow, fast = plain_seconds(row, device), icy_seconds(row, device)
    replicates = len(GRAMMARS) * row.seeds
    per_update = 1000 / (replicates * row.updates)
    return {
        "model": row.model,
        "replicates": replicates,
        "updates each": row.updates,
        "plain s": round(slow, 1),
        "icy s": round(fast, 1),
        "plain ms per update": round(slow * per_update, 2),
        "icy ms per update": round(fast * per_update, 2),
        "ratio": round(slow / fast, 2),
    }


def report(rows: list[dict[str, object]], device: str) -> str:
    """The table, with what it was measured on."""
    table = pd.DataFrame(rows)
    head = list(table.columns)
    lines = ["| " + " | ".join(map(str, line)) + " |" for line in [head, ["---"] * len(head), *table.values.tolist()]]
    versions = ", ".join(f"{name} {version}" for name, version in software().items())
    measured = f"Measured on {device_name(device)}; {versions}; plain way on {torch.get_num_threads()} threads."
    return "\n".join(["# icy against the plain way", "", measured, "", *lines, ""])


def main() -> None:
    """Compare every row and write the table after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="a tenth of the updates, to see that it works")
    arguments = parser.parse_args()
    out = Path(__file__).parent / f"speed-{arguments.device}"
    print(f"{usable_cores()} cores, device {arguments.device}")
    rows = []
    for setting in ROWS:
        row = dataclasses.replace(setting, updates=setting.updates // 10) if arguments.quick else setting
        rows.append(compare(row, arguments.device))
        print(rows[-1], flush=True)
        if not arguments.quick:
            pd.DataFrame(rows).to_csv(out.with_suffix(".csv"), index=False)
            out.with_suffix(".md").write_text(report(rows, arguments.device))


if __name__ == "__main__":
    main()
