"""Does the bias belong to the sender? `python -m results.iterated.experiments [--train SWEEP]...`.

Run the sweeps of the three experiments into runs/experiments, starting from the records in experiments.parquet, which
is committed; add all records to this file, and write experiments.md. Run it again to continue, on any machine. Without
--train, only pack and write. Languages of generations are not packed.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icy.analysis.correlations import rank_correlation, without_margins
from icy.core.text import markdown_table
from icy.experiments.results import ProbeResult
from icy.grammars import make_language
from icy.records.load import long_of
from results.estimates import print_estimate, student_interval
from results.iterated.__main__ import HERE, MIDDLE, NO_RECORDS, cell_of, interaction_of, name_of
from results.pages import RecordFolder, describe_packs, fill_template, run_sweeps

PAGE, RECORDS = HERE / "experiments.md", RecordFolder(HERE, "experiments.parquet", "runs/experiments", files=False)
SWEEPS = tuple(f"{name}{end}" for name in ("interaction", "dissociation", "intervention") for end in ("-ratios", ""))
SIGNIFICANT = 0.05
NOT_TRAINED = "*Not complete yet.*"
CELLS = 5  # of the senders and receivers of the second experiment
CAP = 20.0  # of ratios
ROUNDING = 1e-12  # correlations that differ by less are equal

Values = NDArray[np.float64]


# -- senders times grammars --------------------------------------------------------------------------------------------


def by_seed(result: ProbeResult, grammars: Sequence[str], log: bool = False) -> dict[int, pd.DataFrame]:
    """Return a table per seed, with a row per model and a column per grammar, of models with all runs."""
    long = long_of(result.records)
    long = long[~long["failed"].astype(bool) & long["grammar"].isin(grammars)]
    values = long["value"].astype(float).clip(upper=CAP)
    long = long.assign(number=np.log(values) if log else values)
    whole = long.pivot_table(index="model", columns=["seed", "grammar"], values="number").dropna()
    whole.index = [name_of(name) if name.startswith("sender/") else name for name in whole.index]
    return {seed: whole[seed][list(grammars)] for seed in whole.columns.unique("seed")}


def mean_of(tables: Mapping[int, pd.DataFrame], seeds: Sequence[int] | None = None) -> pd.DataFrame:
    """Return the mean of the tables of some seeds, by default of all."""
    chosen = [tables[seed] for seed in (seeds or tables)]
    total = sum(chosen[1:], chosen[0])
    return total / len(chosen)


def of_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over the senders of each cell."""
    return table.groupby(table.index.map(cell_of)).mean()


def assignments(survival: pd.DataFrame, ratios: pd.DataFrame) -> tuple[float, float, float, int]:
    """Return the correlation of two interactions, and its exact one-sided p-values over assignments of rows.

    Args:
        survival: a row per cell, a column per grammar.
        ratios: logarithms of ratios, with the same index and columns.

    Returns:
        The correlation; the shares of all assignments of the rows of `ratios` to those of `survival` with a
        correlation at most, and at least, as large; and the number of assignments.
    """
    own, other = (without_margins(table.to_numpy(float)) for table in (survival, ratios))
    orders = np.array(list(itertools.permutations(range(len(own)))))
    products = np.einsum("cg,ocg->o", own, other[orders])
    size = math.sqrt(float((own**2).sum() * (other**2).sum()))
    gaps = (products - products[0]) / size
    below, above = (float((sign * gaps <= ROUNDING).mean()) for sign in (1, -1))
    return float(products[0]) / size, below, above, len(orders)


def halves(tables: Mapping[int, pd.DataFrame]) -> float:
    """Return the reliability of an interaction of cells and grammars: halves of seeds, Spearman-Brown."""
    seeds = list(tables)
    found = []
    for shift in range(len(seeds)):
        half = [seeds[(shift + i) % len(seeds)] for i in range(len(seeds) // 2)]
        rest = [seed for seed in seeds if seed not in half]
        found.append(interaction_of(of_cells(mean_of(tables, half)), of_cells(mean_of(tables, rest))))
    one = float(np.mean(found))
    return 2 * one / (1 + one)


def interaction_text(chains: ProbeResult, probes: ProbeResult) -> str:
    """Return the result of the first experiment."""
    survival, ratios = by_seed(chains, MIDDLE), by_seed(probes, MIDDLE, log=True)
    own, logs = mean_of(survival), mean_of(ratios)
    shared = own.index.intersection(logs.index)
    own, logs = own.loc[shared], logs.loc[shared]
    cells, cell_logs = of_cells(own), of_cells(logs)
    r, p, opposed, orders = assignments(cells, cell_logs)
    without = {cell: interaction_of(cells.drop(cell), cell_logs.drop(cell)) for cell in cells.index}
    verdict = "Unknown"
    if p < SIGNIFICANT and max(without.values()) < 0:
        verdict = "Shown"
    elif opposed < SIGNIFICANT and min(without.values()) > 0:
        verdict = "Opposed"
    parts = (without_margins(table.to_numpy(float)) for table in (cells, cell_logs))
    rows = [
        [cell, *(f"{one:+.3f} / {other:+.2f}" for one, other in zip(*pair, strict=True)), f"{without[cell]:+.2f}"]
        for cell, *pair in zip(cells.index, *parts, strict=True)
    ]
    table = markdown_table(["cell", *MIDDLE, "r without this cell"], rows)
    spread = own.to_numpy() - own.to_numpy().mean()
    share = float((without_margins(own.to_numpy(float)) ** 2).sum() / (spread**2).sum())
    pairs = {
        (one, other): rank_correlation(own.loc[one], logs.loc[other]).value for one in own.index for other in own.index
    }
    mine = np.median([value for (one, other), value in pairs.items() if one == other])
    foreign = np.median([value for (one, other), value in pairs.items() if one != other])
    planned = len(tomllib.loads((HERE / "interaction.toml").read_text(encoding="utf-8"))["model"])
    counts = (
        f"{len(shared)} of {planned} senders (those with all runs) in {len(cells)} cells, {len(survival)} languages"
    )
    ends = f"{min(without.values()):+.2f} to {max(without.values()):+.2f}"
    return f"""Interactions of survival / of the logarithm of the ratio, for {counts},
and {len(ratios)} seeds of probes:

{table}

*r* = {r:+.2f}, p = {p:.3f} ({orders} assignments); without one cell {ends}. Reliabilities of the interactions: survival
{halves(survival):.2f}, ratios {halves(ratios):.2f}. **{verdict}.**

Over {len(shared)} senders as separate rows *r* is {interaction_of(own, logs):+.2f}. The interaction is
{100 * share:.0f} % of the variance of survival. Over the five grammars, the correlation of a sender's survival with
its own ratios is {mine:+.2f} (median), and with the ratios of a foreign sender {foreign:+.2f}."""


# -- senders against receivers -----------------------------------------------------------------------------------------


def chance(grammar: str, seed: int, word_length: int) -> float:
    """Return the agreement of a language with the same messages in a random order, as a share of tokens."""
    messages = np.asarray(make_language(grammar, "4x5", 4, word_length, seed).messages)
    shares = [np.unique(column, return_counts=True)[1] / len(column) for column in messages.T]
    return float(np.mean([(share**2).sum() for share in shares]))


def side_of(model: str) -> str:
    """Return the side of a model whose name has no "sender/"."""
    return "receivers" if model.startswith("receiver/") else "senders"


def dissociation_text(chains: ProbeResult, probes: ProbeResult) -> str:
    """Return the result of the second experiment."""
    pair = ("proj", "rot")
    survival = by_seed(chains, pair)
    corrected = {}
    for seed, table in survival.items():
        by_chance = pd.Series({name: chance(name, seed, 4) for name in pair})
        corrected[seed] = (table - by_chance) / (1 - by_chance)
    columns = {
        "survival of proj": mean_of(survival)["proj"],
        "survival of rot": mean_of(survival)["rot"],
        "D": mean_of(survival)["rot"] - mean_of(survival)["proj"],
        "D, corrected for chance": mean_of(corrected)["rot"] - mean_of(corrected)["proj"],
        "log ratio(rot) / ratio(proj)": mean_of(by_seed(probes, pair, log=True)).diff(axis=1)["rot"],
    }
    table = pd.DataFrame(columns).loc[list(columns["D"].index)]
    lines = [
        [name, *(f"{value:.2f}" for value in row)] for name, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    recurrent = table[[":" in name for name in table.index]]
    cells = recurrent.groupby([recurrent.index.map(side_of), recurrent.index.map(cell_of)]).mean()
    counts = [len(cells.loc[side]) if side in cells.index else 0 for side in ("senders", "receivers")]
    if min(counts) < CELLS:
        return f"*Not complete yet: all chains of {counts[0]} cells of senders and {counts[1]} of receivers.*"
    ends: dict[tuple[str, str], tuple[float, float, float]] = {}
    rows = []
    for side in ("senders", "receivers"):
        for name in list(columns)[2:]:
            ends[side, name] = student_interval(cells.loc[side, name].to_numpy(float))
        rows.append(
            [side, f"{len(cells.loc[side])}", *(print_estimate(ends[side, name]) for name in list(columns)[2:])]
        )

    def signs(name: str) -> tuple[int, int]:
        """Return the signs of a column's intervals for senders and receivers: 0 if an interval contains 0."""
        return tuple(
            1 if low > 0 else -1 if high < 0 else 0 for _, low, high in (ends["senders", name], ends["receivers", name])
        )  # type: ignore[return-value]

    found, fair, check = map(signs, list(columns)[2:])
    reversed_order = check == (1, -1)
    verdict = "Unknown"
    if reversed_order and found == fair and found in ((-1, 1), (1, -1)):
        verdict = "Shown" if found == (-1, 1) else "Opposed"
    over_all = rank_correlation(table["log ratio(rot) / ratio(proj)"], table["D"])
    controls = []
    for name in ("FC2L", "receiver/FC2L"):
        each = np.array([one.loc[name, "rot"] - one.loc[name, "proj"] for one in survival.values()])
        controls.append(f"{print_estimate(student_interval(each))} in {name}")
    order = "reversed" if reversed_order else "not reversed with both intervals"
    overview = markdown_table(["side", "cells", *list(columns)[2:]], rows)
    return f"""{overview}

Means over cells with 95 % intervals (Student's t). In the probes the order of the two grammars is {order}.
**{verdict}.**

Of each model, over {len(survival)} languages:

{markdown_table(["model", *columns], lines)}

In the control, D is {controls[0]} and {controls[1]} (Student's t over languages). Over all {over_all.pairs} models,
the rank correlation of D with the logarithm of ratio(`rot`) / ratio(`proj`) is {over_all.value:+.2f}; models with one
cell are not independent."""


# -- an intervention ---------------------------------------------------------------------------------------------------

TRAININGS = {"FC2L": "none", "FC2L-after-concat": "concat", "FC2L-after-rot": "rot"}


def intervention_text(chains: ProbeResult, probes: ProbeResult) -> str:
    """Return the result of the third experiment."""
    survival, logs = by_seed(chains, ("concat", "rot")), by_seed(probes, ("rot",), log=True)
    if not all({*TRAININGS} <= {*table.index} for table in [*survival.values(), *logs.values()]):
        return NOT_TRAINED
    of = {
        name: np.array([table.loc[name, "rot"] - table.loc[name, "concat"] for table in survival.values()])
        for name in TRAININGS
    }
    ratio = {name: np.array([table.loc[name, "rot"] for table in logs.values()]) for name in TRAININGS}
    rows = [
        [
            text,
            *(f"{mean_of(survival).loc[name, grammar]:.2f}" for grammar in ("concat", "rot")),
            print_estimate(student_interval(of[name])),
            print_estimate([math.exp(end) for end in student_interval(ratio[name])]),
        ]
        for name, text in TRAININGS.items()
    ]
    others = list(TRAININGS)[:2]
    gains = [student_interval(of["FC2L-after-rot"] - of[name]) for name in others]
    checks = [student_interval(ratio["FC2L-after-rot"] - ratio[name]) for name in others]
    holds = all(high < 0 for _, _, high in checks)
    verdict = "Unknown"
    if holds and all(low > 0 for _, low, _ in gains):
        verdict = "Shown"
    elif holds and all(high < 0 for _, _, high in gains):
        verdict = "Opposed"
    low, high = student_interval(of["FC2L-after-rot"])[1:]
    flips = (
        "The order flips"
        if low > 0
        else "The order does not flip"
        if high < 0
        else "Whether the order flips is unknown"
    )
    gain, check = (list(map(print_estimate, ends)) for ends in (gains, [np.exp(end) for end in checks]))
    heads = ["trained before on", "survival of concat", "survival of rot", "D", "ratio of rot"]
    return f"""{markdown_table(heads, rows)}

D after `rot` minus D without training is {gain[0]}, and minus D after `concat` {gain[1]} ({len(survival)}
languages). The ratio of `rot` is {check[0]} times that without training and {check[1]} times that after `concat`
({len(logs)} seeds). **{verdict}.** {flips}."""


# -- page --------------------------------------------------------------------------------------------------------------


TEXTS = {"interaction": interaction_text, "dissociation": dissociation_text, "intervention": intervention_text}


def result_text(text: str) -> str:
    """Return the section of a result, with its heading."""
    return f"### Result\n\n{text}"


def page(results: Mapping[str, ProbeResult]) -> str:
    """Return the page."""
    texts = {}
    for name, make in TEXTS.items():
        chains, probes = results[name], results[f"{name}-ratios"]
        texts[name] = result_text(make(chains, probes) if chains.records and probes.records else NOT_TRAINED)
    records = f"records made with {describe_packs(RECORDS.pack)}" if RECORDS.pack.exists() else NO_RECORDS
    return fill_template(PAGE, records=records, **texts)


def main(words: Sequence[str] | None = None) -> None:
    PAGE.write_text(page(run_sweeps(__doc__, words, RECORDS, SWEEPS)).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
