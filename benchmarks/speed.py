"""Compare the speed of icy with the plain way, on one row: `python benchmarks/speed.py [--device cuda] [--quick]`.

For each model, the same row (7 grammars x 5 seeds, with the same number of updates each and one evaluation at the end)
is trained the plain way (benchmarks/plain.py: one model after another, ordinary modules, all cores) and by icy, in
turn, on the same machine. Both times are total, including making languages and starting workers. On a GPU the plain way
trains only some of the models (--plain), and its time is extrapolated.

Operations are the plain form's matrix products for both (forward and backward, as PyTorch counts them). The device's
peak is that of one large product, measured in the same run. Writes benchmarks/speed-<device>.csv and .md.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
import tempfile
import time
from pathlib import Path

import pandas as pd
import plain
import torch
from torch.utils.flop_counter import FlopCounterMode

import icy
from icy.core.provenance import device_name, software, usable_cores
from icy.core.text import markdown_table

GRAMMARS = ["concat", "perm", "proj", "pairsum", "rot", "shufdet", "hol"]


@dataclasses.dataclass(frozen=True)
class Setting:
    """The row of one model: its seeds, and the updates of each replicate."""

    model: str
    seeds: int
    updates: int


ROWS = {
    "cpu": [
        Setting("sender/FC2L", 5, 600),
        Setting("sender/RNNAutoReg:LSTM", 5, 40),
        Setting("sender/HierZero:GRU", 5, 40),
        Setting("receiver/Hier:GRU", 5, 40),
        Setting("sender/TransDecSoft", 5, 6),
    ],
    "cuda": [Setting(model, 5, 2000) for model in plain.MODELS],
}


def plain_seconds(row: Setting, device: str, replicates: int) -> float:
    """Return the wall time of the plain way for the first `replicates` of a row."""
    started = time.perf_counter()
    with torch.device(device):
        for grammar, seed in itertools.islice(itertools.product(GRAMMARS, range(row.seeds)), replicates):
            language = icy.make_language(grammar, "5x10", seed=seed)
            plain.train(row.model, language, seed, row.updates, check_every=row.updates)
    return time.perf_counter() - started


def operations(row: Setting) -> float:
    """Return the operations of the matrix products in one update of one replicate."""
    language = icy.make_language("concat", "5x10")
    model, space = plain.make(row.model, language), language.space
    meanings, messages = (
        torch.zeros(plain.BATCH, space.attributes).long(),
        torch.tensor(language.messages.astype("int64")),
    )
    with FlopCounterMode(display=False) as counter:
        model(meanings if row.model.startswith("sender") else messages[: plain.BATCH]).sum().backward()
    return float(counter.get_total_flops())


def peak(device: str) -> float:
    """Return the operations per second of one large product in single precision, the best of six."""
    size = 2048 if device == "cpu" else 16384
    one = torch.randn(size, size, device=device)
    best = math.inf
    for _ in range(6):
        started = time.perf_counter()
        (one @ one).sum().item()
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best


def icy_seconds(row: Setting, device: str, engine: str) -> float:
    """Return the wall time of icy. Concat reaches a target near 0 at its first check; others get as many updates."""
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
            engine=engine,
            out=out,
        )
    done = result.to_dataframe()
    assert (done["steps"] == row.updates).all(), "icy made another number of updates"
    assert len(done) == len(GRAMMARS) * row.seeds, "icy trained another number of replicates"
    return time.perf_counter() - started


def compare(row: Setting, device: str, engine: str, few: int | None) -> dict[str, object]:
    """Time both ways, one after the other; the plain way trains `few` replicates and is extrapolated, unless None."""
    replicates = len(GRAMMARS) * row.seeds
    tried = min(few or replicates, replicates)
    slow, fast = plain_seconds(row, device, tried) * replicates / tried, icy_seconds(row, device, engine)
    per_update = 1000 / (replicates * row.updates)
    rate = operations(row) * replicates * row.updates / 1e9
    return {
        "model": row.model,
        "replicates": replicates,
        "updates each": row.updates,
        "plain s": round(slow, 1),
        "icy s": round(fast, 1),
        "plain ms per update": round(slow * per_update, 2),
        "icy ms per update": round(fast * per_update, 2),
        "plain GFLOP/s": round(rate / slow, 1),
        "icy GFLOP/s": round(rate / fast, 1),
        "ratio": round(slow / fast, 2),
    }


def report(rows: list[dict[str, object]], device: str, peak_rate: float) -> str:
    """Return the table, and what it was measured on."""
    table = pd.DataFrame(rows)
    versions = ", ".join(f"{name} {version}" for name, version in software().items())
    measured = (
        f"Measured on {device_name(device)}; {versions}; plain way on {torch.get_num_threads()} threads. "
        f"One large product makes {peak_rate / 1e9:.0f} GFLOP/s here, in single precision. Operations are those of the "
        "plain form for both, so that a rate above this says that icy needs fewer: of TransDecSoft it keeps keys and "
        "values, where the plain form runs over the whole prefix."
    )
    shown = markdown_table(table, table.to_numpy().tolist())
    return "\n".join(["# icy against the plain way", "", measured, "", shown, ""])


def main() -> None:
    """Compare every row and write the table after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--engine", default="auto", help="of icy")
    parser.add_argument("--plain", type=int, metavar="N", help="replicates of the plain way that stand for all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the updates, to see that it works")
    arguments = parser.parse_args()
    out = Path(__file__).parent / f"speed-{arguments.device}"
    peak_rate = peak(arguments.device)
    print(f"{usable_cores()} cores, device {arguments.device}, peak {peak_rate / 1e9:.0f} GFLOP/s")
    few = arguments.plain or (None if arguments.device == "cpu" else 2)
    rows = []
    for setting in ROWS["cpu" if arguments.device == "cpu" else "cuda"]:
        row = dataclasses.replace(setting, updates=setting.updates // 10) if arguments.quick else setting
        rows.append(compare(row, arguments.device, arguments.engine, few))
        print(rows[-1], flush=True)
        if not arguments.quick:
            pd.DataFrame(rows).to_csv(out.with_suffix(".csv"), index=False)
            out.with_suffix(".md").write_text(report(rows, arguments.device, peak_rate))


if __name__ == "__main__":
    main()
