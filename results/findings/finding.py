"""A finding, the check that records support its sentences, and the numbers that several findings share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
from matplotlib.figure import Figure
from numpy.typing import NDArray

from results.findings.data import GRAMMARS, Table, mean_of, probes

HERE = Path(__file__).parent
ALPHA = 0.05
ALL_GRAMMARS = ("concat", *GRAMMARS)
LEARNED = tuple(grammar for grammar in GRAMMARS if grammar != "hol")  # no model learns `hol` at 5x10 before the cap


VERDICTS = ("shown", "not shown", "unknown")


@dataclass(frozen=True)
class Claim:
    """A row of the page of claims, as text.

    Attributes:
        claim: the claim, as a sentence without a full stop.
        setting: space, words, and protocol.
        n: numbers of models, cells, or runs.
        number: the estimate.
        interval: its interval, of 95 % unless `test` says otherwise.
        test: how the interval or the p-value was made.
        corrected: for how many tests the verdict is corrected.
        verdict: one of VERDICTS.
        reason: why, or what limits it.
        command: command that shows the records, if it is not that of the section.
    """

    claim: str
    setting: str
    n: str
    number: str
    interval: str
    test: str
    corrected: str
    verdict: str
    reason: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        """Check the verdict."""
        assert self.verdict in VERDICTS, f"{self.claim}: '{self.verdict}' is not a verdict."

    def row(self, command: str, place: str) -> list[str]:
        """Return the row of the table, with the command that shows the records, and a link to the claim's place."""
        verdict = f"**{self.verdict}**" + (f": {self.reason}" if self.reason else "")
        claim, shown = f"[{self.claim}]({place})", f"`{self.command or command}`"
        parts = (claim, verdict, self.setting, self.n, self.number, self.interval, self.test, self.corrected, shown)
        return [" ".join(part.split()) for part in parts]


def verdict_of(p: float, alone: float) -> str:
    """Return the verdict of a test: by its corrected p-value, and by its p-value alone."""
    return "shown" if p < ALPHA else "not shown" if alone < ALPHA else "unknown"


@dataclass(frozen=True)
class Finding:
    """A finding. The templates have its topic, and conditions that would overturn it.

    Attributes:
        sentence: the finding in plain words.
        numbers: the numbers that show it, with setting, numbers of models or runs, and intervals.
        more: further remarks, for the page with all evidence.
        table: the evidence; "" if another page has it.
        figure: a picture of the numbers, if the short page has the finding.
        claims: rows of the page of claims.
    """

    sentence: str
    numbers: str
    more: str
    table: str
    figure: Figure | None = None
    claims: tuple[Claim, ...] = ()


class UnsupportedError(ValueError):
    """The records no longer support a sentence of the page."""


def supported(condition: bool | np.bool_, sentence: str) -> str:
    """Return a sentence, in one line, after checking that the records support it.

    Raises:
        UnsupportedError: the condition does not hold; the sentence must be changed.
    """
    text = " ".join(sentence.split())
    if not condition:
        raise UnsupportedError(f"The records do not support this sentence: {text}")
    return text


def concordance(values: pd.DataFrame) -> float:
    """Return Kendall's W of the models' orders of grammars: 1 if all agree, about 0 by chance.

    W is corrected for ties, such as two grammars that were both cut at the cap.
    """
    ranks = values.rank(axis=1).to_numpy()
    models, grammars = ranks.shape
    spread = ((ranks.sum(0) - models * (grammars + 1) / 2) ** 2).sum()
    sizes = [np.unique(row, return_counts=True)[1] for row in ranks]
    ties = sum(float((size**3 - size).sum()) for size in sizes)
    return float(12 * spread / (models**2 * (grammars**3 - grammars) - models * ties))


def components(table: NDArray[np.float64]) -> tuple[dict[str, float], float]:
    """Split the variance of a balanced table [architecture, cell, seed] into the shares of its sources.

    The shares are variance components of a random-effects design, with seeds crossed with models, by expected mean
    squares. Negative components count as 0.

    Returns:
        The shares, and the p-value of an F test of the mean square of the cell against that of the architecture.
    """
    rows, columns, seeds = table.shape
    mean, models = table.mean(), table.mean(2)
    parts = {"architecture": models.mean(1) - mean, "cell": models.mean(0) - mean, "seed": table.mean((0, 1)) - mean}
    both = models - mean - parts["architecture"][:, None] - parts["cell"]
    rest = table - models[..., None] - parts["seed"]
    noise = float((rest**2).sum()) / ((rows * columns - 1) * (seeds - 1))
    joint = seeds * float((both**2).sum()) / ((rows - 1) * (columns - 1))
    square = {name: table.size / len(of) * float((of**2).sum()) / (len(of) - 1) for name, of in parts.items()}
    found = {name: (square[name] - joint) * len(parts[name]) / table.size for name in ("architecture", "cell")}
    found |= {"both together": (joint - noise) / seeds, "seed": (square["seed"] - noise) / (rows * columns)}
    sizes = {name: max(0.0, size) for name, size in found.items()} | {"rest": noise}
    p = float(scipy.stats.f.sf(square["cell"] / square["architecture"], columns - 1, rows - 1))
    return {name: size / sum(sizes.values()) for name, size in sizes.items()}, p


def measure(space: str, column: str) -> Table:
    """Return a table of ratios ("log"), "updates", or accuracies after a budget ("value") in a space."""
    return Table.of(probes(space, protocol="budget" if column == "value" else "acquire"), column)


def each(table: Table, grammars: Iterable[str]) -> list[str]:
    """Return the mean over models on each grammar, as text."""
    return [str(mean_of(table, grammar)) for grammar in grammars]


def spread(values: Iterable[float], form: str = "{:,.0f}") -> str:
    """Return the range of values as text."""
    found = list(values)
    return f"{form.format(min(found))} to {form.format(max(found))}"


def signed(values: Iterable[float]) -> str:
    """Return the range of correlations as text, with signs."""
    return spread(values, "{:+.2f}")
