"""Findings from icy's records, with intervals and limits: `python -m results.findings [--train]`.

Writes findings.md, a page of the documentation, and its pictures, from the atlas that comes with icy, from
results/reproduced and from the records of generalise.toml. --train trains missing rows of generalise.toml.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
from matplotlib.figure import Figure
from numpy.typing import NDArray

import icy
from icy.analysis.correlations import AcrossModels, WithinOrder, within_model_order
from icy.analysis.emergence import EMERGED, Emergence, probed_senders
from icy.analysis.statistics import holm
from icy.core.text import listed, markdown_table
from icy.experiments.results import ProbeResult
from icy.records.load import read_long
from results.findings import pictures
from results.findings.data import (
    ARCHITECTURES,
    CELLS,
    FAMILIES,
    GRAMMARS,
    HIERARCHIES,
    LARGE,
    LISTED,
    MOST_CUT,
    NAMES,
    SEQUENCE,
    SIDES,
    SMALL,
    Table,
    across,
    cluster_of,
    correlation_text,
    mean_of,
    mixed_of,
    probes,
    quotient_of,
    with_logs,
)
from results.pages import RecordFolder, describe_packs, fill_template, read_options

HERE = Path(__file__).parent
PAGE = HERE / "findings.md"
SWEEP = HERE / "generalise.toml"
SPEAKERS = HERE.parent / "games" / "speakers.toml"
REPRODUCED = HERE.parent / "reproduced" / "README.md"
RECORDS = RecordFolder(HERE)
BUDGET = HERE.parent / "atlas" / "budget.parquet"
PACKS = (RECORDS.pack, BUDGET, *(HERE.parent / name / "records.parquet" for name in ("atlas", "reproduced", "games")))
ALL_GRAMMARS = ("concat", *GRAMMARS)
LEARNED = tuple(grammar for grammar in GRAMMARS if grammar != "hol")  # no model learns `hol` at 5x10 before the cap
REST = ("recurrent", "hierarchical", "attention")  # families besides fully connected networks and the one convolution


@dataclass(frozen=True)
class Finding:
    """A finding: the result in a sentence, further remarks, and the evidence.

    The template of the page has the topic, a command that shows the records, and conditions that would overturn the
    result.
    """

    result: str
    more: str
    table: str
    figure: Figure | None = None


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


# -- statistics --------------------------------------------------------------------------------------------------------


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


# -- findings ----------------------------------------------------------------------------------------------------------


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


def families() -> Finding:
    long = probes()
    ratios, updates = Table.of(long), Table.of(long, "updates", ALL_GRAMMARS)
    lines, columns = [], [g for g in LEARNED if g != "perm"]
    for side in SIDES:
        for family in FAMILIES:
            part = ratios.side(side).families(family)
            names = [name.partition("/")[2] for name in part.models]
            if names:
                label = f"{side}s: {family}" + (f" ({', '.join(names)})" if len(names) <= LISTED else "")
                lines.append([f"{label}, ratio", str(len(names)), "1", *each(part, columns)])
                lines.append(["updates", "", *each(updates.side(side).families(family), ("concat", *columns))])

    plain, rest = (ratios.side("sender").families(*of) for of in (["fully connected"], REST))
    steps = updates.values.map(math.exp).round()
    one, two = (steps.loc[name] for name in ("sender/FC1L", "sender/FC2L"))
    others = steps.loc[rest.models]
    attention = steps.loc[rest.families("attention").models]
    fast, limits = (steps.loc[["receiver/FC", "receiver/FC2L"], g] for g in ("concat", "rot"))
    runs = long[long["grammar"].isin(["rot", "pairsum"])].set_index("model")["cut"].astype(bool)
    cut, other_cut = (runs.loc[part.models] for part in (plain, rest))
    result = supported(
        plain.values["shufdet"].min() > rest.values["shufdet"].max() and cut.all() and other_cut.mean() < 0.25,
        f"""
        At {LARGE}, both fully connected senders have larger ratios on `shufdet` than each of the {len(rest)} others:
        {mean_of(plain, "shufdet")} (FC1L and FC2L), against {mean_of(rest, "shufdet")}; on `rot` and `pairsum` all of
        their {len(cut)} runs were cut, and {other_cut.sum()} of the others' {len(other_cut)}.
        """,
    )
    more = supported(
        two["concat"] < others["concat"].median() / 2 < one["concat"]
        and attention["concat"].max() < 100
        and others["shufdet"].median() < two["shufdet"]
        and fast.max() < 10,
        f"""
        A ratio is also large if `concat` is learned fast. FC2L learns `concat` in {two["concat"]:.0f} updates
        (median of the others: {others["concat"].median():.0f}) and `shufdet` in {two["shufdet"]:.0f} (median:
        {others["shufdet"].median():.0f}; {(others["shufdet"] > two["shufdet"]).sum()} take more). FC1L learns `concat`
        in {one["concat"]:.0f} and `shufdet` in more than {one["shufdet"]:,.0f}. Senders with attention learn `concat`
        in {spread(attention["concat"])} and `shufdet` in {spread(attention["shufdet"])}. The receivers FC and FC2L
        learn `concat` in {fast.iloc[0]:.0f} and {fast.iloc[1]:.0f} updates, so their daggers mean only more than
        {limits.iloc[0]:.0f} and {limits.iloc[1]:.0f} updates, which does not show that they need more than others.
        """,
    )
    more += " " + _common_budget(lines, columns, others)
    return Finding(
        result,
        more,
        markdown_table(["family", "models", "concat", *columns], lines),
        pictures.by_family(ratios, updates),
    )


def _common_budget(lines: list[list[str]], columns: Sequence[str], others: pd.DataFrame) -> str:
    """Add lines of fully connected networks under a common budget to a table, and return a sentence about them.

    Args:
        lines: lines of the table.
        columns: grammars after `concat`.
        others: updates of other senders, a row per model.
    """
    common = Table.of(with_logs(read_long(BUDGET)), "updates", ("concat", *columns)).families("fully connected")
    budget = f"{int(common.runs['max_updates'].iloc[0]):,}"
    for name in common.models:
        side, _, short = name.partition("/")
        label = f"{side}s: {short}, updates of at most {budget}"
        lines.append([label, "", *each(common.only([name]), ("concat", *columns))])
    runs = common.runs.groupby(["model", "grammar"])
    reached, last = runs["cut"].agg(lambda cut: int((~cut.astype(bool)).sum())), runs["accuracy"].mean()
    one, two = "sender/FC1L", "sender/FC2L"
    never = (one, "receiver/FC1L", "receiver/FC2L")
    free, middle = np.exp(common.values.loc[two]), others.median()
    return supported(
        not common.cut.loc[two].any() and all(reached[name, g] == 0 for name in never for g in ("rot", "pairsum")),
        f"""
        Trained for {budget} updates whatever `concat` takes (`atlas-budget.md`), the sender FC2L learns `rot` in
        {free["rot"]:,.0f} and `pairsum` in {free["pairsum"]:,.0f} (medians of the others, in which cut runs count as
        they are: {middle["rot"]:,.0f} and {middle["pairsum"]:,.0f}). The sender FC1L learns `shufdet` in
        {reached[one, "shufdet"]} of 3 runs; it and the receivers FC1L and FC2L do not learn `rot` or `pairsum`
        (accuracies of {spread((last[name, g] for name in never for g in ("rot", "pairsum")), "{:.2f}")}).""",
    )


def sides() -> Finding:
    columns = [(LARGE, "log"), (LARGE, "updates"), (LARGE, "value"), (SMALL, "log"), (SMALL, "updates")]
    tables = {key: measure(*key) for key in columns}
    shared = [name for name in tables[LARGE, "log"].models if all(name in table.models for table in tables.values())]
    parts = {key: table.only(shared).families(*SEQUENCE) for key, table in tables.items()}
    found = {(*key, side, g): mean_of(part.side(side), g, log=key[1] != "value")
             for key, part in parts.items() for side in SIDES for g in LEARNED}  # fmt: skip
    lines = [
        [f"{side}s, {space}, {NAMES[column]}", str(len(part.side(side))),
         *(str(found[space, column, side, g]) for g in LEARNED)]
        for (space, column), part in parts.items()
        for side in SIDES
    ]  # fmt: skip

    mixed = {(side, g): mixed_of(parts[LARGE, "log"].side(side), g) for side in SIDES for g in LEARNED}
    for place, side in ((1, "sender"), (3, "receiver")):
        lines.insert(place, [f"{side}s, {LARGE}, ratio (mixed model)", "", *(str(mixed[side, g]) for g in LEARNED)])

    def both(column: str, grammar: str) -> str:
        return " and ".join(f"{side}s {found[LARGE, column, side, grammar].worded}" for side in SIDES)

    def above(space: str, column: str, one: str, other: str, grammar: str) -> bool:
        return bool(found[space, column, one, grammar].low > found[space, column, other, grammar].high)

    count = [len(parts[LARGE, "log"].side(side)) for side in SIDES]
    result = supported(
        above(LARGE, "log", *SIDES, "rot")
        and above(LARGE, "log", *SIDES[::-1], "proj")
        and mixed["sender", "rot"].low > mixed["receiver", "rot"].high,
        f"""
        At {LARGE}, {count[0]} recurrent and hierarchical senders and {count[1]} receivers find different grammars hard:
        `rot` takes senders {mixed["sender", "rot"]} and receivers {mixed["receiver", "rot"]} times concat's updates
        (mixed model), and `proj` senders {found[LARGE, "log", "sender", "proj"]} and receivers
        {found[LARGE, "log", "receiver", "proj"].worded} times.
        """,
    )
    more = supported(
        above(LARGE, "value", *SIDES[::-1], "rot")
        and above(LARGE, "value", *SIDES, "proj")
        and not above(SMALL, "log", *SIDES, "rot")
        and not above(SMALL, "log", *SIDES[::-1], "rot"),
        f"""
        The same after a budget: accuracies on `rot` of {both("value", "rot")}, on `proj` of {both("value", "proj")}. At
        {SMALL} the sides do not differ significantly on `rot`. Senders are measured by tokens and receivers by
        attributes, and chance differs, so a target of 80 % is not the same for both. In the mixed model, cell,
        architecture, model and seed (language) are random effects and cut runs are censored; "-": more than a third of
        the runs were cut.
        """,
    )
    return Finding(
        result,
        more,
        markdown_table(["recurrent and hierarchical", "models", *LEARNED], lines),
    )


def order() -> Finding:
    tables = {space: Table.of(probes(space)) for space in (LARGE, SMALL)}
    middle = [g for g in GRAMMARS if g not in ("perm", "hol")]
    orders: dict[str, list[tuple[str, int, int, float]]] = {}
    lines = []
    for space, table in tables.items():
        for side in SIDES:
            part = table.side(side)
            agree = [f"{concordance(part.values[list(of)]):.2f} ({least(part, of):.2f})" for of in (GRAMMARS, middle)]
            names = [str(name) for name in part.values.mean().sort_values().index]
            lines.append([f"{side}s, {space}", str(len(part)), *agree, names[0]])
            for easy, hard in itertools.pairwise(names):
                known = ~(part.cut[easy] & part.cut[hard]) & part.values[easy].ne(part.values[hard])
                right, count = int((part.values[easy] < part.values[hard])[known].sum()), int(known.sum())
                p = float(scipy.stats.binomtest(right, count).pvalue)
                orders.setdefault(lines[-1][0], []).append((hard, right, count, p))
    corrected = iter(holm([p for of in orders.values() for *_, p in of]))
    for line in lines:
        for hard, right, count, _ in orders[line[0]]:
            line[-1] += f", {hard} {right}/{count}" + ("" if next(corrected) < 0.05 else "?")
    ws = [float(line[2].split()[0]) for line in lines]
    return Finding(
        supported(
            min(ws) > 0.8,
            f"""
            Models of a side have nearly the same order of the six grammars: Kendall's W (1: all equal, 0: by chance) is
            {spread(ws, "{:.2f}")} over {spread([len(t.side(s)) for t in tables.values() for s in SIDES])} models.
            """,
        ),
        supported(
            all("?" in line[-1].split("pairsum")[1].split(",")[0] for line in lines if line[0].startswith("sender")),
            """Much of this is that `perm` is easy and `hol` is hard, so there is also W of the other four grammars.
            In brackets: the smallest W if the models of one cell are left out. After each grammar: the number of models
            for which it is harder than the grammar before, of the models with a known order; "?": not significant even
            if models were independent (sign test, Holm). So it is open whether `rot` or `pairsum` is harder for
            senders.""",
        ),
        markdown_table(["", "models", "W", f"W of {listed(middle)}", "from easy to hard, by geometric means"], lines),
    )


def least(table: Table, grammars: Sequence[str]) -> float:
    """Return the smallest concordance of models over tables that each leave out the models of one cell."""
    clusters = table.clusters()
    return min(concordance(table.values.loc[clusters.ne(name), list(grammars)]) for name in set(clusters))


def cells() -> Finding:
    lines, shares, tests = [], dict[str, dict[str, dict[str, float]]](), []
    for space, protocol in ((LARGE, "acquire"), (LARGE, "budget"), (SMALL, "acquire")):
        long = probes(space, protocol=protocol)
        column = "log" if protocol == "acquire" else "value"
        runs = long.set_index(["model", "grammar", "seed"])[column].sort_index()
        table = Table.of(long, column).only([f"sender/{name}:{cell}" for name in ARCHITECTURES for cell in CELLS])
        for grammar in (g for g in LEARNED if table.has_order(g)):
            seeds = [[runs.loc[f"sender/{n}:{cell}", grammar].to_numpy() for cell in CELLS] for n in ARCHITECTURES]
            share, p = components(np.array(seeds, float))
            label = f"{space}, {NAMES[column]}"
            shares.setdefault(label, {})[grammar] = share
            tests.append(p)
            lines.append([label, grammar, *(f"{part:.0%}" for part in share.values()), f"{p:.2f}"])
    corrected = holm(tests)
    first, second, third = shares
    names = list(shares[first]["perm"])

    def span(name_of_space: str, name: str) -> str:
        return spread((100 * share[name] for share in shares[name_of_space].values()), "{:.0f} %")

    return Finding(
        supported(
            all(share["cell"] > share["architecture"] for share in shares[first].values()) and min(corrected) > 0.05,
            f"""
            Of {len(ARCHITECTURES)} recurrent senders ({listed(ARCHITECTURES)}) with {len(CELLS)} cells each
            ({listed(CELLS)}) at {LARGE}, the cell explains {span(first, "cell")} of the variance of log ratios and the
            architecture {span(first, "architecture")}. With four of each, the difference is not significant: of
            {len(tests)} F tests of cell against architecture, the smallest p is {min(tests):.2f}, and
            {min(corrected):.2f} after Holm's correction.
            """,
        ),
        f"""After a budget the cell explains {span(second, "cell")} of the variance of accuracies, at {SMALL}
        {span(third, "cell")} of that of log ratios. These are variance components of a balanced design with random
        effects, with seeds (language and initial weights) crossed with models. Grammars with cut runs in more than
        {100 * MOST_CUT:.0f} % of the models are left out; other cut runs count as they are.""",
        markdown_table(["", "grammar", *names, "p of F(3, 3)"], lines),
        pictures.stacked(shares),
    )


def hierarchy() -> Finding:
    lines, gaps, drawn = [], {}, {}
    columns = [(LARGE, "log"), (LARGE, "updates"), (LARGE, "value"), (SMALL, "log"), (SMALL, "updates")]
    tables = {key: measure(*key) for key in columns}
    for deep, flat in HIERARCHIES:
        found = {
            key: quotient_of(table, table, "shufdet", _pairs(table, deep, flat), log=key[1] != "value")
            for key, table in tables.items()
        }
        gaps[deep] = found
        counts = [len(_pairs(tables[space, "log"], deep, flat)) for space in (LARGE, SMALL)]
        lines.append([f"{deep} / {flat}", " and ".join(map(str, counts)), *map(str, found.values())])
        drawn[f"{deep} / {flat}"] = tables[LARGE, "log"], _pairs(tables[LARGE, "log"], deep, flat)
    ratio, updates, accuracy, small, _ = ([gaps[deep][key] for deep, _ in HIERARCHIES] for key in columns)
    return Finding(
        supported(
            all(one.low < 1 < one.high for one in ratio) and all(one.low < 0 < one.high for one in accuracy),
            f"""
            At {LARGE} (words of four tokens, three seeds), networks with a hierarchy of words and tokens (HU-RNN) and
            networks of the same 4 cells without a hierarchy do not differ significantly in the ratio of `shufdet`
            (HierZero {ratio[0]} times RNNZero's, HierAutoReg {ratio[1]} times RNNAutoReg's, Hier {ratio[2]} times
            RNN1L's), or in accuracy after a budget.
            """,
        ),
        supported(
            updates[0].high < 1 and small[2].low > 1,
            f"""
            In updates, HierZero learns `shufdet` faster ({updates[0]} times), which is not significant relative to
            `concat`; at {SMALL} (words of two tokens) Hier, a receiver, has a larger ratio ({small[2]} times). Icy22
            designed HU-RNN to make shuffled words easier to learn; `icy reproduce icy22/table6` measures the
            paper's own table. The figure has the other grammars.
            """,
        ),
        markdown_table(
            ["`shufdet`", f"cells at {LARGE} and {SMALL}", *(f"{space}, {NAMES[column]}" for space, column in columns)],
            lines,
        ),
        pictures.factors(drawn, LEARNED, "quotient of ratios at 5x10 (dots: cells; hollow: a bound)"),
    )


def _pairs(table: Table, deep: str, flat: str) -> list[tuple[str, str]]:
    """Return pairs of models that share a cell: one with a hierarchy, and one without."""
    side = "receiver" if deep == "Hier" else "sender"
    names = [(f"{side}/{deep}:{cell}", f"{side}/{flat}:{cell}") for cell in (*CELLS, "SRU", "dgrecv", "minGRU")]
    return [pair for pair in names if set(pair) <= set(table.models)]


def shufdet() -> Finding:
    rest, lines, tables = [g for g in LEARNED if g != "shufdet"], [], {}
    found: dict[str, AcrossModels] = {}
    for space in (LARGE, SMALL):
        long = probes(space)
        tables[space] = Table.of(long)
        for side in SIDES:
            part = tables[space].side(side)
            of = {g: across(part, part, g, "shufdet") for g in rest}
            found |= {(f"{side}s' `{g}` at {space}"): one for g, one in of.items() if one is not None}
            known = [one for one in of.values() if one is not None]
            lines.append([f"{side}s, {space}", f"{len(part)} in {known[0].groups}", str(known[0].reliability_y),
                          *map(correlation_text, of.values())])  # fmt: skip
    above = {name: one for name, one in found.items() if one.correlation.low > 0}
    strongest = f"senders' `proj` at {SMALL}"
    first, second = sorted(long["seed"].unique())
    one, other = (Table.of(long[long["seed"].eq(seed)]) for seed in (first, second))
    other = replace(other, values=other.values.assign(**dict.fromkeys(rest, other.values["shufdet"])))
    drawn = {f"{side}s": (one.side(side), other.side(side)) for side in SIDES}
    shared = found[strongest]
    return Finding(
        supported(
            len(above) == 2 and strongest in above,
            f"""
            Models with larger ratios on one grammar have larger ratios on `shufdet` in {len(above)} of {len(found)}
            cases ({listed([f"{name}, {one.correlation}" for name, one in above.items()])}); no other correlation is
            significantly above 0.
            """,
        ),
        f"""Ratios of the same seed share a `concat` run: with the same seeds, {strongest} correlates by
        {shared.same_seeds:+.2f}, not {shared.correlation.value:+.2f}.""",
        markdown_table(["", "models in cells", "reliability of `shufdet`", *rest], lines),
        pictures.by_grammar(drawn, rest, f"ratio at {SMALL}, seed {first}", f"ratio on shufdet, seed {second}"),
    )


def protocols() -> Finding:
    long, other = probes(), probes(protocol="budget")
    ratios, scores = Table.of(long), Table.of(other, "value")
    both = [name for name in ratios.models if name in set(scores.models)]
    parts = {side: ratios.only(both).side(side) for side in SIDES}
    found = {(side, g): across(part, scores, g) for side, part in parts.items() for g in LEARNED}
    within = {side: within_model_order(part.values[list(LEARNED)], scores.values[list(LEARNED)], cluster_of)
              for side, part in parts.items()}  # fmt: skip
    below = [f"{side}s' `{g}`" for (side, g), one in found.items() if one is not None and one.correlation.high < 0]
    known = [one for one in found.values() if one is not None]
    return Finding(
        supported(
            all(one.high < 0 for one in within.values()) and len(below) >= 3,
            f"""
            Within a model at {LARGE}, grammars with a larger ratio have a lower accuracy after the updates in which it
            learns `concat` to 99 %: the median of Spearman's correlations over {len(LEARNED)} grammars is
            {within["sender"].median:+.2f} ({ends(within["sender"])}) over {len(parts["sender"])} senders and
            {within["receiver"].median:+.2f} ({ends(within["receiver"])}) over {len(parts["receiver"])} receivers;
            the medians of all {within["sender"].negative + within["receiver"].negative} cells are below 0.
            """,
        ),
        f"""Over models, on one grammar, the two agree less: of {len(known)} correlations that are known,
        {len(below)} are significantly below 0 ({listed(below)}).""",
        markdown_table(
            ["ratio against accuracy, over models", "models in cells", *LEARNED],
            [[f"{side}s", f"{len(part)} in {part.clusters().nunique()}",
              *(correlation_text(found[side, g]) for g in LEARNED)]
             for side, part in parts.items()],
        ),
        pictures.by_grammar(
            {f"{side}s": (ratios.side(side), scores.side(side)) for side in SIDES},
            LEARNED,
            pictures.RATIO,
            "accuracy after a budget",
            ratios=False,
        ),
    )  # fmt: skip


def representations() -> Finding:
    soft, lines, drawn, changed, ranked = probes(SMALL), [], {}, {}, {}
    for name in ("gumb", "discr"):
        other = probes(SMALL, name)
        for side in SIDES:
            for column in ("log", "updates"):
                ours, theirs = (Table.of(long, column).side(side) for long in (other, soft))
                both = [model for model in theirs.models if model in set(ours.models)]
                ours, theirs = ours.only(both), theirs.only(both)
                found = {g: quotient_of(ours, theirs, g) for g in GRAMMARS}
                label = f"{side}s, {name.upper()} / SOFT, {NAMES[column]}"
                lines.append([label, str(len(both)), *map(str, found.values())])
                if column == "log":
                    drawn[f"{side}s: {name.upper()}"] = theirs, ours
                    changed[name, side] = found
                    ranks = [across(theirs, ours, g) for g in GRAMMARS]
                    ranked[name, side] = [one.correlation.value for one in ranks if one is not None]
    more = {key: [f"`{g}`" for g, one in found.items() if one.low > 1] for key, found in changed.items()}
    less = [g for found in changed.values() for g, one in found.items() if one.high < 1]
    hard = [f"`{g}`" for g in GRAMMARS if g != "perm"]
    return Finding(
        supported(
            not less and more["discr", "sender"] == more["discr", "receiver"] == hard,
            f"""
            At {SMALL}, messages that are learned from a reward alone (DISCR) have larger ratios than probabilities
            (SOFT) on {listed(more["discr", "sender"])} for both sides; sampled tokens with the gradient of their
            relaxation (GUMB) on {listed(more["gumb", "sender"])} for senders and on
            {listed(more["gumb", "receiver"])} for receivers; no ratio is significantly smaller.
            """,
        ),
        f"""Over models, ratios under GUMB correlate with those under SOFT by
        {signed(ranked["gumb", "sender"])} for senders and {signed(ranked["gumb", "receiver"])} for receivers, under
        DISCR by {signed(ranked["discr", "sender"])} and {signed(ranked["discr", "receiver"])} on `perm` and `shufdet`
        (elsewhere too many runs were cut).""",
        markdown_table([SMALL, "models", *GRAMMARS], lines),
        pictures.by_grammar(drawn, GRAMMARS, "ratio under SOFT", "ratio under the other"),
    )


def size() -> Finding:
    small, large, lines, drawn, factors, ranks = probes(SMALL), probes(), [], {}, {}, {}
    for side in SIDES:
        for column in ("log", "updates"):
            ours, theirs = (Table.of(long, column).side(side) for long in (large, small))
            both = [name for name in ours.models if name in set(theirs.models)]
            ours, theirs = ours.only(both), theirs.only(both)
            found = {g: quotient_of(ours, theirs, g) for g in GRAMMARS}
            lines.append([f"{side}s, {NAMES[column]}: {LARGE} / {SMALL}", str(len(both)), *map(str, found.values())])
            if column == "log":
                factors[side], drawn[f"{side}s"] = found, (theirs, ours)
                ranks[side] = [across(theirs, ours, g) for g in GRAMMARS]
                lines.append([f"{side}s, correlation of ratios", "", *map(correlation_text, ranks[side])])
    more = {side: [f"`{g}`" for g, one in factors[side].items() if one.low > 1] for side in SIDES}
    less = [f"{side}s' `{g}` ({one})" for side in SIDES for g, one in factors[side].items() if one.high < 1]
    known = [one for of in ranks.values() for one in of if one is not None]
    sure = [one for one in known if one.correlation.low > 0]
    return Finding(
        supported(
            len(less) == 1 and len(more["sender"]) == 5 and not sure,
            f"""
            From {SMALL} (words of two tokens, hidden size 32, two seeds) to {LARGE} (words of four tokens, hidden size
            128, three seeds), ratios of the same models grow for senders on {listed(more["sender"])} and for receivers
            on {listed(more["receiver"])}, and fall on {listed(less)}; the order of models is not significantly
            correlated between the two on any of the {len(known)} grammars on which it is known.
            """,
        ),
        """Space, words and hidden size change together, so these numbers do not show which of them is the cause.""",
        markdown_table(["", "models", *GRAMMARS], lines),
        pictures.by_grammar(drawn, LEARNED, "ratio at 3x4", "ratio at 5x10"),
    )


def generalisation(result: ProbeResult) -> Finding:
    long = with_logs(result.to_dataframe())
    held, speed, updates = (Table.of(long, column, of) for column, of in
                            (("value", ALL_GRAMMARS), ("log", GRAMMARS), ("updates", ALL_GRAMMARS)))  # fmt: skip
    rest, lines = list(LEARNED), []
    within = {side: within_model_order(speed.side(side).values[rest], held.side(side).values[rest], cluster_of)
              for side in SIDES}  # fmt: skip
    models = pd.concat([one.correlations for one in within.values()])
    for side in SIDES:
        count = str(len(held.side(side)))
        of = (mean_of(held.side(side), g, log=False) for g in ALL_GRAMMARS)
        lines.append([f"{side}s, held-out accuracy", count, *map(str, of)])
        lines.append([f"{side}s, ratio", count, "1", *each(speed.side(side), GRAMMARS)])
        lines.append([f"{side}s, updates", count, *each(updates.side(side), ALL_GRAMMARS)])
    cut = long[long["cut"]]
    proj = long[long["side"].eq("receiver") & long["grammar"].eq("proj")]
    over = {(side, g): across(speed.side(side), held, g) for side in SIDES for g in rest}
    known = {pair: one for pair, one in over.items() if one is not None}
    return Finding(
        supported(
            (models < 0).all() and all(one.high < 0 for one in within.values()) and proj["cut"].all(),
            f"""
            Within each of {len(models)} models at 4x5 (625 meanings, a fifth held out; words of three tokens, hidden
            size 32, three seeds), grammars with a larger ratio have a lower accuracy on held-out meanings: the median
            of Spearman's correlations over {len(rest)} grammars ({listed(rest)}) is {within["sender"].median:+.2f}
            ({ends(within["sender"])}) for senders and {within["receiver"].median:+.2f} ({ends(within["receiver"])}) for
            receivers, and all {len(models)} are below 0.
            """,
        ),
        f"""Ratios are of updates to an accuracy of 99 % on the other meanings, of the same runs. {len(cut)} of the
        {len(long)} runs were cut at 20 times concat's updates, including all {len(proj)} of receivers on `proj`, so
        that these have held-out accuracies after less training. Over models, on one grammar, none of
        {len(known)} correlations is significantly below 0
        ({listed([f"{side}s' `{g}` {one.correlation.value:+.2f}" for (side, g), one in known.items()])}); where
        more than {100 * MOST_CUT:.0f} % of models were cut they are unknown.""",
        markdown_table(["4x5", "models", *ALL_GRAMMARS], lines),
        pictures.by_grammar(
            {f"{side}s": (speed.side(side), held.side(side)) for side in SIDES},
            rest,
            "ratio at 4x5",
            "accuracy on held-out meanings",
            ratios=False,
        ),
    )


def emergence() -> Finding:
    games = RecordFolder(HERE.parent / "games").sweep(SPEAKERS, rerun="never")
    joined = Emergence.of(probed_senders(icy.atlas().to_dataframe()), games)
    runs = games.to_dataframe().assign(sender=lambda of: of["model"].str.partition("+")[0])
    runs = runs[runs["sender"].isin(joined.table.index)].assign(above_chance=lambda of: of["cbm"] - of["cbm_floor"])
    lines, tests = [], {}
    for score, name in EMERGED.items():
        groups = [of.to_numpy(float) for _, of in runs.groupby("sender")[score]]
        f, p = scipy.stats.f_oneway(*groups)
        tests[score] = (float(f), float(p), max(0.0, 1 - 1 / float(f)))
        of = [joined.correlation(score, bias) for bias in ("bias", "against_holistic")]
        lines.append([name, f"{f:.2f}", f"{p:.2f}", f"{tests[score][2]:.2f}",
                      *(f"{one.value:+.2f} ({one.low:+.2f} to {one.high:+.2f})" for one in of)])  # fmt: skip
    table = joined.correlations()
    corrected = dict(zip(zip(table["bias"], table["score"], strict=True), holm(table["p"].tolist()), strict=True))
    sure = [pair for pair, p in corrected.items() if p < 0.05]
    count, seeds = len(joined.table), int(joined.table["seeds"].min())
    f, p, _ = tests["topsim"]
    holistic = joined.correlation("above_chance", "against_holistic")
    cell_of = joined.table.index.map(cluster_of)
    others = [replace(joined, table=joined.table[cell_of != name]) for name in set(cell_of)]
    without = [one.correlation("above_chance", "against_holistic").value for one in others]
    return Finding(
        supported(
            p > 0.05 and tests["above_chance"][1] < 0.05 and sure == [("against_holistic", "above_chance")],
            f"""
            In multi-target games (15 concepts, QT channel, {count} senders, {seeds} seeds) topsim does not differ
            significantly between senders (F({count - 1}, {count * (seeds - 1)}) = {f:.2f}, p = {p:.2f}), so its
            correlation with a bias is not informative. CBM above chance differs (p = {tests["above_chance"][1]:.2f}),
            and is lower for senders with a larger ratio of `hol` to that of compositional grammars at {SMALL}
            (Spearman's correlation {holistic.value:+.2f}, {holistic.low:+.2f} to {holistic.high:+.2f}, p =
            {corrected[sure[0]]:.2f} after Holm's correction for {len(table)}).
            """,
        ),
        f"""*Reliability*: intraclass correlation of a sender's mean over seeds; its square root bounds a correlation
        with the score. *Bias*: mean log ratio on noise grammars minus the mean on compositional grammars; *against
        holistic*: the same with `hol` in place of noise. Intervals and p-values of correlations count senders as
        independent, although they share cells; if the senders of one cell are left out, the last correlation with CBM
        is {signed(without)}.""",
        markdown_table(["score", "F", "p", "reliability", "correlation with bias", "against holistic"], lines),
        pictures.by_sender(runs, {score: EMERGED[score] for score in ("topsim", "above_chance")}),
    )


def ends(order: WithinOrder) -> str:
    """Return the interval of a median as text."""
    return f"{order.low:+.2f} to {order.high:+.2f}, cells as clusters"


def reproduction() -> Finding:
    rows = [line.strip("| ").split(" | ") for line in REPRODUCED.read_text().splitlines() if line.startswith("|")]
    table = pd.DataFrame(rows[2:], columns=rows[0])
    table["table"] = table["table"].str.extract(r"\[(.*?)\]")
    table = table[table["decided"].astype(int).ge(5)].set_index("table")
    once = table[~table.index.str.contains(",")]
    whole = once["verdict"].str.contains(r"^reproduced(?! in part)")
    senders = "perkins21/table13"
    wide, narrow = (_decided_cells(f"perkins21-table13{more}.csv") for more in ("", "-check_every-400"))
    same = wide.index.intersection(narrow.index)
    agree = [int(cells.loc[same, "verdict"].eq("agrees").sum()) for cells in (wide, narrow)]
    drift = table.loc[["perkins21/table15", "icy22/table6"]]
    columns = ["agree", "by chance", "if 20 % off", "equivalent", "mean difference", "verdict"]
    table["agree"] += " of " + table["decided"]
    table["mean difference"] = table["mean difference"].str.replace(r", \d+ rows|: \d+ rows?", "", regex=True)
    table["verdict"] = table["verdict"].str.partition(" so far")[0]
    gap = str(table.loc[senders, "mean difference"])
    return Finding(
        supported(
            "p <0.001" in gap and agree[1] > agree[0],
            f"""
            Of {len(once)} published tables with at least five decided cells, {int(whole.sum())} are reproduced so far:
            none of four tests is significant at 5 %. The accuracies of Perkins21's senders (table 13, preset
            `published`, {table.loc[senders, "decided"]} cells) differ by {gap} on average.
            """,
        ),
        f"""The tests are of the number of cells that agree (the 95 % interval of the difference contains 0), the
        furthest cell, all distances, and the mean difference (exchanges of rows). Agreement is weak evidence if many
        cells would agree if all were 20 % off; equivalent cells are within 20 % (one-sided tests at 5 %). Perkins21
        evaluated accuracy at fixed times, so fast models were trained past the target: of the {len(same)} cells of
        table 13 measured in both ways, {agree[1]} agree with evaluations every 400 updates and {agree[0]} with
        evaluations every 50. Tendencies below significance: icy's value is larger in {drift["icy larger"].iloc[0]} of
        the cells of Perkins21's table 15, and in {drift["icy larger"].iloc[1]} of the cells of Icy22's table 6.
        `results/reproduced` has every cell.""",
        markdown_table(["table", *columns], table[columns].reset_index().to_numpy().tolist()),
    )


def _decided_cells(name: str) -> pd.DataFrame:
    """Return the cells of a reproduced table, without undecided cells and cells that agree by design."""
    cells = pd.read_csv(REPRODUCED.parent / name)
    decided = cells["verdict"].isin(["agrees", "near", "differs", "failed"]) & ~cells["by_design"]
    return cells[decided].set_index(["representation", "model", "hidden_size", "grammar"])


# -- page --------------------------------------------------------------------------------------------------------------


def findings() -> dict[str, Finding]:
    """Return all findings by name."""
    makers = (families, sides, order, cells, hierarchy, shufdet, protocols, representations, size)
    found = {make.__name__: make() for make in makers}
    held_out = generalisation(RECORDS.sweep(SWEEP, rerun="never"))
    return {**found, "generalisation": held_out, "emergence": emergence(), "reproduction": reproduction()}


def page(findings_by_name: Mapping[str, Finding]) -> str:
    """Return the text of the page."""
    in_a_line = {name: replace(one, more=" ".join(one.more.split())) for name, one in findings_by_name.items()}
    return fill_template(PAGE, records=describe_packs(*PACKS), **in_a_line)


def main(words: Sequence[str] | None = None) -> None:
    options = read_options(
        __doc__,
        words,
        train=(False, "train missing rows of the sweep of held-out meanings"),
        workers=(int, "processes at once"),
    )
    if options.train:
        RECORDS.sweep(SWEEP, workers=options.workers)
    RECORDS.update_pack()
    found = findings()
    for name, one in found.items():
        if one.figure is not None:
            one.figure.savefig(PAGE.with_name(f"findings-{name}.png"), dpi=160)
    PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
