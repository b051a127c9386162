"""Test whether native cores train as PyTorch does: `python -m tests.stress.native [--seeds N]`.

Last bits differ between the engines, and training makes much of them, so that equality is one of distributions: each
row is trained up to the target by both, native cores with some seeds and PyTorch (the engine `broadcast`) with others,
and the steps that they took are compared by two-sample tests. Under the same seeds they would be paired, and the tests
would find them too much alike. No two rows share seeds either. Writes tests/stress/native.md.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import icy
from icy.analysis.statistics import holm
from icy.core.machine import device_name
from icy.core.text import markdown_table
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).with_suffix(".md")
SENDERS = {
    "soft": ("FC2L", "RNNZero:LSTM", "HierZero:GRU", "RNNAutoReg:GRU", "HierAutoReg:RNN", "TransDecSoft"),
    "gumb": ("FC2L", "RNNZero:LSTM", "HierZero:GRU", "RNNAutoReg:GRU", "HierAutoReg:RNN", "TransDecSoft"),
    "discr": ("FC2L", "RNNZero:LSTM", "HierZero:GRU", "RNNSampling:GRU", "HierSampling:RNN", "TransDecSampling"),
}
RECEIVERS = ("FC2L", "CNN", "RNN1L:GRU", "RNN2L:SRU", "Hier:GRU")
ENGINES = {"native": 100_000, "broadcast": 200_000}  # where the seeds of each begin
FROM_ROW_TO_ROW = 1000  # seeds
SIZES = {"meanings": "3x4", "word_length": 2, "hidden": 32}
MOST = 2_000  # updates; what has not reached the target by then counts as having taken so many
SETTINGS = {"learning_rate": 0.003, "max_steps": MOST}
LEVEL = 0.05

Steps = NDArray[np.float64]


@dataclass
class Row:
    """Steps to the target of a row by each engine, and what the tests say of them.

    Attributes:
        model, representation: of the row.
        steps: one per seed, by engine.
        reached: how many reached the target, by engine.
    """

    model: str
    representation: str
    steps: dict[str, Steps]
    reached: dict[str, int]

    def kolmogorov_smirnov(self) -> float:
        """Return the p-value of the two-sample Kolmogorov-Smirnov test."""
        return float(stats.ks_2samp(*self.steps.values()).pvalue)

    def mann_whitney(self) -> float:
        """Return the p-value of the two-sided Mann-Whitney U test."""
        return float(stats.mannwhitneyu(*self.steps.values()).pvalue)

    def ratio(self) -> tuple[float, float, float]:
        """Return native cores' geometric mean over PyTorch's, and the ends of its 95 % interval (Welch)."""
        native, pytorch = (np.log(steps) for steps in self.steps.values())
        found = stats.ttest_ind(native, pytorch, equal_var=False)
        interval = found.confidence_interval(0.95)
        difference = native.mean() - pytorch.mean()
        return math.exp(difference), math.exp(interval.low), math.exp(interval.high)


def rows() -> Iterator[tuple[str, str]]:
    """Yield models and representations."""
    for representation, senders in SENDERS.items():
        yield from ((f"sender/{name}", representation) for name in senders)
        yield from ((f"receiver/{name}", representation) for name in RECEIVERS)


def measure(number: int, model: str, representation: str, seeds: int) -> Row:
    """Train a row, of which `number` chooses the seeds, by both engines."""
    row = Row(model, representation, {}, {})
    for engine, begin in ENGINES.items():
        start = begin + FROM_ROW_TO_ROW * number
        with tempfile.TemporaryDirectory() as out:
            found = icy.probe(
                model, "concat", representation=representation, protocol="acquire", engine=engine, settings=SETTINGS,
                seeds=list(range(start, start + seeds)), workers=1, device="cpu", out=out, progress=False,
                **SIZES,
            )  # fmt: skip
        assert {record["engine"] for record in found.records} == {engine}
        row.steps[engine] = np.array([float(record.get("crossing", record["steps"])) for record in found.records])
        row.reached[engine] = sum(record["reason"] == "target" for record in found.records)
    return row


def lines(found: list[Row]) -> Iterator[list[str]]:
    """Yield the lines of the table."""
    tests = [[test(row) for row in found] for test in (Row.kolmogorov_smirnov, Row.mann_whitney)]
    corrected = [holm(p) for p in tests]
    for i, row in enumerate(found):
        medians = [f"{np.median(steps):.0f}" for steps in row.steps.values()]
        ratio, low, high = row.ratio()
        values = [f"{p:.2f}" for test in zip(tests, corrected, strict=True) for p in (test[0][i], test[1][i])]
        yield [row.model, row.representation, *medians, f"{ratio:.2f} [{low:.2f}, {high:.2f}]", *values]


def verdict(found: list[Row]) -> str:
    """Return what all rows together say."""
    tests = {"Kolmogorov-Smirnov": Row.kolmogorov_smirnov, "Mann-Whitney": Row.mann_whitney}
    said = []
    for name, test in tests.items():
        p = [test(row) for row in found]
        small, differ = sum(x < LEVEL for x in p), sum(x < LEVEL for x in holm(p))
        said.append(f"{name}: {small} of {len(p)} below {LEVEL} uncorrected, {differ} after Holm's correction")
    logs = [math.log(row.ratio()[0]) for row in found]
    low, high = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    whole = f"{math.exp(np.mean(logs)):.3f} (95 % interval over rows {math.exp(low):.3f} to {math.exp(high):.3f})"
    return (
        f"{'; '.join(said)}. By chance {LEVEL:.0%} of the uncorrected ones, {LEVEL * len(found):.1f}, would be. Over "
        f"all rows, native cores take {whole} times PyTorch's steps."
    )


def report(found: list[Row], seeds: int) -> str:
    """Return the page."""
    headings = ["model", "representation", "native", "PyTorch", "ratio", "KS", "KS, Holm", "U", "U, Holm"]
    return fill_template(
        PAGE,
        **SIZES,
        **SETTINGS,
        seeds=seeds,
        rows=len(found),
        reached=sum(sum(row.reached.values()) for row in found),
        runs=2 * seeds * len(found),
        most=f"{MOST:,}",
        verdict=verdict(found),
        table=markdown_table(headings, lines(found), range(2, len(headings))),
        device=device_name("cpu"),
        versions=describe_versions(),
    )


def main() -> None:
    given = read_options(
        __doc__, seeds=(20, "of each engine"), models=({"nargs": "*"}, "only these, such as sender/FC2L")
    )
    found = []
    for number, (model, representation) in enumerate(rows()):
        if not given.models or model in given.models:
            found.append(measure(number, model, representation, given.seeds))
            print(model, representation, *(f"{np.median(steps):.0f}" for steps in found[-1].steps.values()), flush=True)
    text = report(found, given.seeds)
    if not given.models:
        PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
