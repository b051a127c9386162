"""What the atlas and the reproduced tables say, with intervals: `python benchmarks/findings.py [--train]`.

Write benchmarks/findings.md, which the documentation shows, and its pictures, from the atlas that comes with icy, from
benchmarks/reproduced and from the records of benchmarks/sweeps/findings-generalise.toml, which --train completes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import findings_pictures as pictures
import numpy as np
import pandas as pd
from about import describe_packs
from findings_data import (
    ARCHITECTURES,
    CELLS,
    FAMILIES,
    FEW,
    GRAMMARS,
    HIERARCHIES,
    LARGE,
    SEQUENCE,
    SIDES,
    SMALL,
    Estimate,
    Table,
    correlation_of,
    family_of,
    mean_of,
    probes,
    quotient_of,
    ratio_of,
    shown,
)
from matplotlib.figure import Figure
from numpy.typing import NDArray

import icy
from icy.analysis.emergence import EMERGED, Emergence, probed_senders
from icy.analysis.statistics import RankCorrelation, holm
from icy.core.text import listed, markdown_table
from icy.experiments.results import ProbeResult
from icy.records.pack import add_to_pack

HERE = Path(__file__).parent
PAGE = HERE / "findings.md"
SWEEP = HERE / "sweeps" / "findings-generalise.toml"
SPEAKERS = HERE / "sweeps" / "games-speakers.toml"
REPRODUCED = HERE / "reproduced" / "README.md"
RESULTS, RECORDS = HERE / "findings" / "results", HERE / "findings" / "records.parquet"
PACKS = (RECORDS, *(HERE / name / "records.parquet" for name in ("atlas", "reproduced", "games")))


@dataclass(frozen=True)
class Finding:
    """One claim: what it says, how to see it, its table, its picture's file, and what is drawn there if that is new."""

    title: str
    said: str
    command: str
    table: str = ""
    picture: str = ""
    drawn: Figure | None = None


# -- statistics --------------------------------------------------------------------------------------------------------


def concordance(values: pd.DataFrame) -> float:
    """Return Kendall's W of the orders that models put grammars into: 1 if all agree, about 0 by chance.

    It is corrected for ties, such as of two grammars that were both cut at the cap.
    """
    ranks = values.rank(axis=1).to_numpy()
    models, grammars = ranks.shape
    spread = ((ranks.sum(0) - models * (grammars + 1) / 2) ** 2).sum()
    sizes = [np.unique(row, return_counts=True)[1] for row in ranks]
    ties = sum(float((size**3 - size).sum()) for size in sizes)
    return float(12 * spread / (models**2 * (grammars**3 - grammars) - models * ties))


def components(table: NDArray[np.float64]) -> dict[str, float]:
    """Split the variance of a balanced table [architecture, cell, seed] into the shares of its sources.

    They are the components of variance of a two-way design with random effects, by the expected mean squares, so that
    noise of seeds counts for no other source; those below 0 count as 0.
    """
    rows, columns, seeds = table.shape
    mean, within = table.mean(), table.mean(2)
    of_row, of_column = within.mean(1) - mean, within.mean(0) - mean
    both = within - mean - of_row[:, None] - of_column
    noise = float(((table - within[..., None]) ** 2).sum()) / (rows * columns * (seeds - 1))
    joint = seeds * float((both**2).sum()) / ((rows - 1) * (columns - 1))
    squares = {"architecture": (columns * seeds, of_row), "cell": (rows * seeds, of_column)}
    found = {
        name: (times * float((of**2).sum()) / (len(of) - 1) - joint) / times for name, (times, of) in squares.items()
    }
    found |= {"both together": (joint - noise) / seeds, "seed": noise}
    kept = {name: max(0.0, size) for name, size in found.items()}
    return {name: size / sum(kept.values()) for name, size in kept.items()}


def ticked(grammars: Iterable[str]) -> str:
    """Return grammars in words."""
    return listed([f"`{name}`" for name in grammars]) or "no grammar"


def prose(text: str) -> str:
    """Return a paragraph as one line."""
    return " ".join(text.split())


# -- findings ----------------------------------------------------------------------------------------------------------

CONCATENATION = """So the plainest senders prefer concatenation more than composition: they resist shuffled words, whose
tokens still stand for one part of the meaning."""
TRIAL = "So the small space is good to try things out, and is no substitute for the setting of a paper."
REST = ("recurrent", "hierarchical (HU-RNN)", "attention")  # beside fully connected networks
TOLD = tuple(grammar for grammar in GRAMMARS if grammar != "hol")  # in the papers' space nobody learns `hol` in time


def beyond(one: Estimate, other: Estimate) -> bool:
    """Return whether one estimate lies above another with its interval; of one or two models, with their values."""
    return bool(one.low > other.high)


def of_sides(found: Iterable[tuple[str, str]]) -> str:
    """Return pairs of a side and a grammar in words."""
    return listed([f"{side}s' `{grammar}`" for side, grammar in found]) or "no grammar"


def families() -> Finding:
    long, lines = probes(), []
    table, small = Table.of(long), Table.of(probes(SMALL))
    for side in SIDES:
        for family in FAMILIES:
            if part := table.side(side).families(family):
                cells = (str(ratio_of(part, grammar)) for grammar in GRAMMARS)
                lines.append([f"{side}s: {family}", str(len(part)), *cells])

    def against(among: Table, side: str, grammar: str) -> list[Estimate]:
        return [ratio_of(among.side(side).families(*of), grammar) for of in (("fully connected",), REST)]

    def told(among: Table, side: str, grammar: str) -> str:
        return " against ".join(map(str, against(among, side, grammar)))

    def unlearnt(side: str, families: Sequence[str]) -> str:
        runs = long[long["side"].eq(side) & long["model"].map(family_of).isin(families)]
        runs = runs[runs["grammar"].isin(["rot", "pairsum"])]
        return f"{int(runs['cut'].sum())} of {len(runs)}"

    more = [(side, g) for side in SIDES for g in GRAMMARS if beyond(*against(table, side, g))]
    resist = ("sender", "shufdet") in more
    said = prose(
        f"""
        In the papers' space fully connected networks take more updates than recurrent, hierarchical and attentive
        ones, beyond their intervals, on {of_sides(more)}. In `shufdet` the last attribute's
        value determines the order of the words; it takes senders {told(table, "sender", "shufdet")} times as many
        updates as `concat` (fully connected ones against the others), and receivers
        {told(table, "receiver", "shufdet")}. Of the runs of fully connected networks on `rot`
        and `pairsum`, {unlearnt("sender", ["fully connected"])} of senders and
        {unlearnt("receiver", ["fully connected"])} of receivers were not at the target after twenty times concat's
        updates; of those of the others, {unlearnt("sender", REST)} and {unlearnt("receiver", REST)}.
        {CONCATENATION if resist else ""}
        In 64 meanings, `rot` takes senders {told(small, "sender", "rot")} times as many, receivers
        {told(small, "receiver", "rot")}; `pairsum` {told(small, "sender", "pairsum")} and
        {told(small, "receiver", "pairsum")}; `shufdet` {told(small, "sender", "shufdet")} and
        {told(small, "receiver", "shufdet")}.
        """
    )
    return Finding(
        f"Fully connected {'senders resist shuffled words' if resist else 'networks beside others'}",
        said,
        f"icy table atlas --where meanings={LARGE} --where representation=soft --where protocol=acquire",
        markdown_table(["family", "models", *GRAMMARS], lines),
        "findings-families.png",
        pictures.by_family(table),
    )


def sides() -> Finding:
    tables = [Table.of(probes()), Table.of(probes(protocol="budget"), "value"), Table.of(probes(SMALL))]
    shared = [name for name in tables[0].models if all(name in set(table.models) for table in tables)]
    large, budget, small = (table.only(shared).families(*SEQUENCE) for table in tables)
    ratios = {
        space: {(side, g): ratio_of(table.side(side), g) for side in SIDES for g in GRAMMARS}
        for space, table in ((LARGE, large), (SMALL, small))
    }
    right = {(side, g): mean_of(budget.side(side).values[g].tolist()) for side in SIDES for g in GRAMMARS}
    of = {f"{LARGE}: ratio": ratios[LARGE], f"{LARGE}: accuracy": right, f"{SMALL}: ratio": ratios[SMALL]}
    lines = [
        [f"{side}s, {what}", str(len(large.side(side))), *(str(found[side, g]) for g in GRAMMARS)]
        for what, found in of.items()
        for side in SIDES
    ]
    say, read = (
        [g for g in GRAMMARS if beyond(ratios[LARGE][one, g], ratios[LARGE][other, g])]
        for one, other in (SIDES, SIDES[::-1])
    )
    turned = "rot" in say and "proj" in read
    said = prose(
        f"""
        In the papers' space the two sides do not find the same grammars hard. Over recurrent and hierarchical models,
        the ratios of senders lie above those of receivers, with their intervals, on {ticked(say)}, and those of
        receivers above on {ticked(read)}. `rot` takes senders {ratios[LARGE]["sender", "rot"]} times as many updates
        as `concat` and receivers {ratios[LARGE]["receiver", "rot"]}; `proj` {ratios[LARGE]["sender", "proj"]} and
        {ratios[LARGE]["receiver", "proj"]}. To say `rot` one needs the sum of all tokens before, to read it only the
        difference of two neighbours. The same models after the updates in which `concat` is learnt to 99 % have an
        accuracy on `rot` of {right["sender", "rot"]} as senders and {right["receiver", "rot"]} as receivers, on `proj`
        of {right["sender", "proj"]} and {right["receiver", "proj"]}. In 64 meanings `rot` takes them
        {ratios[SMALL]["sender", "rot"]} and {ratios[SMALL]["receiver", "rot"]} times, `proj`
        {ratios[SMALL]["sender", "proj"]} and {ratios[SMALL]["receiver", "proj"]}.
        """
    )
    return Finding(
        "`rot` is hard to say, `proj` is hard to understand" if turned else "What senders and receivers find hard",
        said,
        f"icy table atlas --where meanings={LARGE} --where representation=soft",
        markdown_table(["recurrent and hierarchical models", "models", *GRAMMARS], lines),
    )


def order() -> Finding:
    tables = {space: Table.of(probes(space)) for space in (LARGE, SMALL)}
    middle = [g for g in GRAMMARS if g not in ("perm", "hol")]
    lines = []
    for space, table in tables.items():
        for side in SIDES:
            part = table.side(side).values
            w = (f"{concordance(part[list(of)]):.2f}" for of in (GRAMMARS, middle))
            lines.append(
                [f"{side}s, {space}", str(len(part)), *w, ", ".join(map(str, part.mean().sort_values().index))]
            )
    large = tables[LARGE]
    said = prose(
        f"""
        Kendall's W says how far models put {listed(GRAMMARS)} into one order (1: all alike; 0: as by chance). Much of
        it is that `perm` is easy and `hol` hard for all, so it is also given without these two. `perm`, another order
        of tokens, takes senders {ratio_of(large.side("sender"), "perm")} and receivers
        {ratio_of(large.side("receiver"), "perm")} times concat's updates.
        """
    )
    return Finding(
        "How far models agree on what is hard",
        said,
        f"icy table atlas --sort=-hol --where meanings={LARGE} --where protocol=acquire",
        markdown_table(["", "models", "W", f"W of {listed(middle)}", "from easy to hard, by geometric means"], lines),
    )


def cells() -> Finding | None:
    long = probes()
    table = Table.of(long)
    there = set(table.models)
    whole = [name for name in ARCHITECTURES if all(f"sender/{name}:{cell}" in there for cell in CELLS)]
    chosen = table.only([f"sender/{name}:{cell}" for name in whole for cell in CELLS])
    told = [g for g in GRAMMARS if len(whole) > 1 and chosen.tells(g)]
    if not told:
        return None
    logs = long.set_index(["model", "grammar"])["log"]
    rows = {}
    for grammar in told:
        seeds = [[logs.loc[f"sender/{name}:{cell}", grammar].to_numpy() for cell in CELLS] for name in whole]
        rows[grammar] = components(np.array(seeds))
    names = list(rows[told[0]])
    mean = {name: float(np.mean([row[name] for row in rows.values()])) for name in names}
    said = prose(
        f"""
        Of {len(whole)} recurrent senders ({listed(whole)}) with {len(CELLS)} cells each ({listed(CELLS)}): how much of
        the variance of the logarithm of a ratio is due to the cell, to the architecture around it, to the two together
        and to the seed (components of variance of a balanced two-way design, none below 0). Over {ticked(told)} the
        cell explains {mean["cell"]:.0%} on average, the architecture {mean["architecture"]:.0%}, and seeds
        {mean["seed"]:.0%}. Grammars on which more than a fifth of these models were cut are left out.
        """
    )
    more = mean["cell"] > 2 * mean["architecture"]
    return Finding(
        "Among recurrent senders the cell matters more than what is around it" if more else "Cells and architectures",
        said,
        f"icy table atlas -m 'sender/RNN*' -m 'sender/Hier*' --where meanings={LARGE} --where protocol=acquire",
        markdown_table(["grammar", *names], [[g, *(f"{row[n]:.0%}" for n in names)] for g, row in rows.items()]),
        "findings-cells.png",
        pictures.stacked(rows, "share of the variance of log ratios"),
    )


def hierarchy() -> Finding:
    lines: list[list[str]] = []
    shuffled: dict[str, list[str]] = {f"{deep} beside {flat}": [] for deep, flat in HIERARCHIES}
    drawn: dict[str, dict[str, list[float]]] = {}
    for space, protocol in ((LARGE, "acquire"), (LARGE, "budget"), (SMALL, "acquire")):
        ratio = protocol == "acquire"
        table = Table.of(probes(space, protocol=protocol), "log" if ratio else "value")
        for deep, flat in HIERARCHIES:
            pairs = _pairs(table, deep, flat)
            gaps = {g: [float(table.values.loc[a, g] - table.values.loc[b, g]) for a, b in pairs] for g in GRAMMARS}
            found = {g: quotient_of(table, table, g, pairs) if ratio else mean_of(gaps[g], "+") for g in GRAMMARS}
            what = f"{deep} / {flat}" if ratio else f"{deep} - {flat}, accuracy"
            lines.append([f"{space}: {what}", str(len(pairs)), *map(str, found.values())])
            shuffled[f"{deep} beside {flat}"].append(str(found["shufdet"]))
            if ratio and space == LARGE:
                drawn[what] = gaps
    told = "; ".join(
        f"{what} {one[0]}, after a budget {one[1]}, in 64 meanings {one[2]}" for what, one in shuffled.items()
    )
    said = prose(
        f"""
        Icy22 made HU-RNN, a network over words and one over their tokens, so that shuffled words are learnt more
        easily. With the same cells, the hierarchy changes the ratio of `shufdet` by these factors (below 1: learnt
        more easily), and its accuracy after a budget by these differences: {told}. A word has four tokens in the
        papers' space, and two in that of 64 meanings. `icy reproduce icy22/table6` measures the paper's own table.
        """
    )
    return Finding(
        "What a hierarchy does for shuffled words",
        said,
        "icy compare atlas:model=sender/RNNZero:GRU atlas:model=sender/HierZero:GRU "
        f"--where meanings={LARGE} --where protocol=budget",
        markdown_table(["with and without a hierarchy", "cells", *GRAMMARS], lines),
        "findings-hierarchy.png",
        pictures.factors(drawn, TOLD, "quotient of ratios (dots: cells)"),
    )


def _pairs(table: Table, deep: str, flat: str) -> list[tuple[str, str]]:
    """Return the models with a hierarchy and without one that share a cell."""
    side = "receiver" if deep == "Hier" else "sender"
    names = [(f"{side}/{deep}:{cell}", f"{side}/{flat}:{cell}") for cell in (*CELLS, "SRU", "dgrecv", "minGRU")]
    return [pair for pair in names if set(pair) <= set(table.models)]


def shufdet() -> Finding:
    rest, lines, best, above = [g for g in TOLD if g != "shufdet"], [], {}, {}
    tables = {space: Table.of(probes(space)) for space in (LARGE, SMALL)}
    for space, table in tables.items():
        for side in SIDES:
            found = {g: correlation_of(table.side(side), table.side(side), "shufdet", g) for g in rest}
            above[space, side] = [g for g, one in found.items() if one is not None and one.low > 0]
            best[space, side] = max(rest, key=lambda g: _value(found[g]))
            lines.append([f"{side}s, {space}", *(shown(found[g]) for g in rest)])
    told = {space: of_sides((side, g) for side in SIDES for g in above[space, side]) for space in tables}
    said = prose(
        f"""
        Which models of a side learn shuffled words (`shufdet`) sooner than others is told, by Spearman's correlations
        with intervals above 0, by {told[LARGE]} in the papers' space, and by {told[SMALL]} in 64 meanings. The largest
        correlations there are with `{best[SMALL, "sender"]}` for senders and `{best[SMALL, "receiver"]}` for receivers.
        Grammars on which more than a fifth of the models were cut at the cap, so that their order is not known, tell
        nothing ("-").
        """
    )
    return Finding(
        "What predicts shufdet",
        said,
        f"icy plot ratios atlas --where meanings={SMALL} --where representation=soft --where protocol=acquire",
        markdown_table(["", *rest], lines),
        "findings-shufdet.png",
        pictures.families_against(tables[SMALL], {side: best[SMALL, side] for side in SIDES}, "shufdet"),
    )


def _value(found: RankCorrelation | None) -> float:
    return -math.inf if found is None or math.isnan(found.value) else found.value


def protocols() -> Finding:
    ratios, scores = Table.of(probes()), Table.of(probes(protocol="budget"), "value")
    sooner = Table(-ratios.values, ratios.cut)
    found = {(side, g): correlation_of(sooner.side(side), scores, g) for side in SIDES for g in TOLD}
    alike = [pair for pair, one in found.items() if one is not None and one.low > 0]
    open_ = [pair for pair, one in found.items() if one is not None and not one.low > 0]
    rest = f"; it cannot be told on {of_sides(open_)}" if open_ else ""
    said = prose(
        f"""
        Do models that learn a grammar to 80 % in few updates, as a ratio to concat's, also know more of it after the
        updates in which they learn `concat` to 99 %? With an interval above 0 they do on {of_sides(alike)}{rest}. Where
        more than a fifth of the models were cut at the cap their order is not known ("-").
        """
    )
    return Finding(
        "Acquisition beside a budget",
        said,
        f"icy table atlas --where meanings={LARGE} --where representation=soft",
        markdown_table(
            ["fewer updates against accuracy", *TOLD],
            [[f"{side}s", *(shown(found[side, g]) for g in TOLD)] for side in SIDES],
        ),
        "findings-protocols.png",
        pictures.by_grammar(
            {f"{side}s": (ratios.side(side), scores.side(side)) for side in SIDES},
            TOLD,
            pictures.RATIO,
            "accuracy after a budget",
            ratios=False,
        ),
    )


def representations() -> Finding | None:
    soft, lines, told, drawn = Table.of(probes(SMALL)), [], [], {}
    for name in ("gumb", "discr"):
        other = Table.of(probes(SMALL, name))
        for side in SIDES:
            both = [model for model in soft.side(side).models if model in set(other.models)]
            if len(both) < FEW:
                continue
            ours, theirs = other.only(both), soft.only(both)
            changed = {g: quotient_of(ours, theirs, g) for g in GRAMMARS}
            ranks = {g: correlation_of(theirs, ours, g) for g in GRAMMARS}
            lines.append([f"{side}s: {name.upper()} / SOFT", str(len(both)), *map(str, changed.values())])
            lines.append([f"{side}s: rank correlation", "", *(shown(ranks[g], models=False) for g in GRAMMARS)])
            drawn[f"{side}s: {name.upper()}"] = theirs, ours
            told.append(_changed(f"{name.upper()}, {len(both)} {side}s", changed, ranks))
    if not told:
        return None
    said = prose(
        f"""
        In 64 meanings, the ratios of messages that are sampled tokens, with the gradient of their relaxation (GUMB),
        or that both sides learn from a reward alone (DISCR), beside those of probabilities (SOFT). {" ".join(told)}
        """
    )
    return Finding(
        "What sampled tokens and rewards change",
        said,
        f"icy compare atlas:representation=soft atlas:representation=discr --where meanings={SMALL}",
        markdown_table(["64 meanings", "models", *GRAMMARS], lines),
        "findings-representations.png",
        pictures.by_grammar(drawn, GRAMMARS, "ratio under SOFT", "ratio under the other"),
    )


def _changed(what: str, changed: Mapping[str, Estimate], ranks: Mapping[str, RankCorrelation | None]) -> str:
    """Return in a sentence which ratios became larger or smaller, and how far the order of models stays."""
    larger, smaller = (
        [g for g, one in changed.items() if of(one)] for of in (lambda e: e.low > 1, lambda e: e.high < 1)
    )
    values = [one.value for one in ranks.values() if one is not None]
    order = f"; the ranks of models correlate by {min(values):+.2f} to {max(values):+.2f}" if values else ""
    return f"{what}: larger on {ticked(larger)}, smaller on {ticked(smaller)}{order}."


def size() -> Finding:
    small, large = Table.of(probes(SMALL)), Table.of(probes())
    lines, harder, carried = [], [], []
    for side in SIDES:
        both = [name for name in large.side(side).models if name in set(small.models)]
        ours, theirs = large.only(both), small.only(both)
        factors = {g: quotient_of(ours, theirs, g) for g in GRAMMARS}
        ranks = {g: correlation_of(theirs, ours, g) for g in GRAMMARS}
        lines.append([f"{side}s: {LARGE} / {SMALL}", str(len(both)), *map(str, factors.values())])
        lines.append([f"{side}s: rank correlation", "", *(shown(ranks[g], models=False) for g in GRAMMARS)])
        harder += [(side, g) for g, one in factors.items() if one.low > 1]
        carried += [(side, g) for g, one in ranks.items() if one is not None and one.low > 0]
    said = prose(
        f"""
        From 64 meanings to 100,000 ratios become larger on {of_sides(harder)}, of the same models (a bound, `>`, where
        some were cut at the cap). Which models find a grammar hard carries over, with an interval of the rank
        correlation above 0, on {of_sides(carried)}; where more than a fifth were cut their order is not known ("-").
        {"" if carried else TRIAL}
        """
    )
    return Finding(
        "From 64 meanings to 100,000",
        said,
        f"icy compare atlas:meanings={SMALL} atlas:meanings={LARGE} "
        "--where protocol=acquire --where representation=soft",
        markdown_table(["", "models", *GRAMMARS], lines),
        "findings-size.png",
        pictures.by_grammar(
            {f"{side}s": (small.side(side), large.side(side)) for side in SIDES},
            TOLD,
            "ratio in 64 meanings",
            "ratio in 100,000",
        ),
    )


def generalisation(result: ProbeResult) -> Finding | None:
    if not result.records:
        return None
    long = result.to_dataframe()
    good = long[~long["failed"].astype(bool)]
    names = [g for g in ("concat", *GRAMMARS) if g in set(good["grammar"])]
    held, speed = Table.of(good, "value", names), Table.of(probes(SMALL))
    rest = [g for g in TOLD if g in names]
    lines, found = [], {}
    for side in SIDES:
        part = held.side(side).values
        spans = (f"{part[g].mean():.2f} ({part[g].min():.2f} to {part[g].max():.2f})" for g in names)
        found |= {(side, g): correlation_of(speed.side(side), held, g) for g in rest}
        ranks = {g: shown(found[side, g], models=False) for g in rest}
        lines.append([f"{side}s: mean (least to most)", str(len(part)), *spans])
        lines.append([f"{side}s: rank correlation with the ratio", "", *(ranks.get(g, "-") for g in names)])
    worse, better = ([pair for pair, one in found.items() if one is not None and of(one)]
                     for of in (lambda one: one.high < 0, lambda one: one.low > 0))  # fmt: skip
    said = prose(
        f"""
        Of 625 meanings (4x5) a fifth is held out, and the others are learnt to the target. Are grammars that a model
        learns late (in 64 meanings) also those that it says worse where it never heard them? Over models of one side,
        the ratio of updates and the accuracy on held-out meanings correlate below 0 on {of_sides(worse)}, above 0 on
        {of_sides(better)}, and elsewhere by nothing that can be told from 0. `hol` has nothing to generalise: it is
        the control.
        """
    )
    return Finding(
        "Acquisition and generalisation",
        said,
        "icy table benchmarks/findings/records.parquet",
        markdown_table(["held-out accuracy", "models", *names], lines),
        "findings-generalisation.png",
        pictures.by_grammar(
            {f"{side}s": (speed.side(side), held.side(side)) for side in SIDES},
            rest,
            "ratio in 64 meanings",
            "accuracy on held-out meanings",
            ratios=False,
        ),
    )


def not_reproduced() -> Finding:
    rows = [line.strip("| ").split(" | ") for line in REPRODUCED.read_text().splitlines() if line.startswith("| [")]
    told = [row for row in rows if row[3] != "0"]
    counts = {row[0].partition("]")[0].strip("["): f"{row[4]} of {row[3]}" for row in told}
    twenty = pd.read_csv(REPRODUCED.parent / "icy22-table20.csv").query("verdict in ['near', 'differs']")
    apart = (twenty["icy"] - twenty["published"]).abs()
    said = prose(
        f"""
        Papers' tables measured again, as far as that went: cells of several seeds whose 95 % interval of the
        difference from the printed value holds 0, of those that can be told. What was not measured is not counted as
        agreeing. Perkins21's senders (table 13) are the one case of which the cause is known: the authors looked at
        accuracy every 400 updates, so that concat overshot its target and the other grammars were given more updates.
        With that grid {counts["perkins21/table13, check_every=400"]} cells agree; with checks every 50,
        {counts["perkins21/table13"]}. Icy22's table 20 prints no errors, and its cells that do not agree differ by
        {listed([f"{gap:.3f}" for gap in sorted(apart)])}, which its five runs cannot be asked about. Ratios and
        receivers agree as often as chance allows.
        """
    )
    lines = [[row[0].partition("]")[0].strip("["), row[2], f"{row[4]} of {row[3]}", row[5], row[6]] for row in rows]
    table = markdown_table(["table", "measured", "agree", "by chance", "verdict"], lines)
    return Finding("What did not reproduce", said, "icy reproduce perkins21/table13 --only FC2L", table)


def emergence() -> Finding | None:
    pack = HERE / "games" / "records.parquet"
    games = icy.sweep(file=SPEAKERS, out=RESULTS, start=[pack], rerun="never") if pack.exists() else None
    if games is None or not games.records:
        return None
    found = Emergence.of(probed_senders(icy.atlas().to_dataframe()), games)
    table = found.correlations()
    corrected = holm(table["p"].tolist())
    told = [f"{row.bias.replace('_', ' ')} with {EMERGED[row.score]} ({row.spearman:+.2f})"
            for row, p in zip(table.itertuples(), corrected, strict=True) if p < 0.05]  # fmt: skip
    rows = [
        [row.bias.replace("_", " "), EMERGED[row.score], f"{row.spearman:+.2f} ({row.low:+.2f} to {row.high:+.2f})",
         f"{p:.2f}"]
        for row, p in zip(table.itertuples(), corrected, strict=True)
    ]  # fmt: skip
    topsim, cbm = (shown(found.correlation(score)).replace("models", "senders") for score in ("topsim", "above_chance"))
    said = prose(
        f"""
        Do senders that learn compositional languages easily invent more compositional ones? In multi-target games of a
        world of 15 concepts the bias towards composition that the atlas measured (in 64 meanings) correlates with the
        topsim of the language by {topsim}, and with its CBM above chance by {cbm}. Of the {len(table)} correlations of
        the table {len(told) or "none"} can be told from 0 after Holm's
        correction{f": {listed(told)}" if told else ""}.
        """
    )
    return Finding(
        "The bias of a sender and the language that emerges",
        said,
        "python benchmarks/games.py --train speakers",
        markdown_table(["bias", "score", "rank correlation", "p (Holm)"], rows),
        "games-speakers.png",
    )


ALL: tuple[Callable[[], Finding | None], ...] = (
    families, sides, order, cells, hierarchy, shufdet, protocols, representations, size,
)  # fmt: skip


# -- page --------------------------------------------------------------------------------------------------------------


def run(rerun: str = "missing", workers: int | None = None) -> ProbeResult:
    """Train what the sweep lacks, or with `rerun="never"` load what it has."""
    start = [RECORDS] if RECORDS.exists() else []
    given: dict[str, Any] = {"out": RESULTS, "start": start, "rerun": rerun, "workers": workers}
    return icy.sweep(file=SWEEP, **given)


def findings() -> list[Finding]:
    """Return all findings for which there are records."""
    held = generalisation(run(rerun="never"))
    return [*filter(None, (*(make() for make in ALL), held, emergence())), not_reproduced()]


def page(found: Sequence[Finding]) -> str:
    """Return the page."""
    parts = [
        "# Findings",
        "",
        prose(
            """
            What icy's own measurements say, for those who would cite it. Unless it is said otherwise, numbers are of
            SOFT messages, of the papers' space of 100,000 meanings (5x10, words of four tokens, three seeds) and of
            models that learn by gradient; "64 meanings" are those of the small space (3x4, words of two tokens, two
            seeds). Ratios are of updates to an accuracy of 80 %, to concat's. Those that were cut at 20 times concat's
            updates are larger in truth: means count them as larger (Tobit), show a bound (`>`) where nearly all were
            cut, and single values have a dagger (†). Intervals in brackets are of 95 %, over models (Student's t), or
            of rank correlations (Bonett and Wright); of one or two models their values stand there. They are not
            corrected for how many there are. Which models there are is the choice of the zoo, so that an interval
            speaks of models like these. Made by `python benchmarks/findings.py`.
            """
        ),
        "",
        f"Records of {describe_packs(*PACKS)}.",
    ]
    for one in found:
        parts += ["", f"## {one.title}", "", one.said, ""]
        parts += [one.table, ""] if one.table else []
        parts += [f"![{one.title}]({one.picture})", ""] if one.picture else []
        parts += ["```sh", *one.command.split("; "), "```"]
    return "\n".join(parts) + "\n"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true", help="train what the sweep of held-out meanings lacks")
    parser.add_argument("--workers", type=int, help="processes at once")
    asked = parser.parse_args(given)
    if asked.train:
        run(workers=asked.workers)
    add_to_pack(RECORDS, RESULTS)
    found = findings()
    for one in found:
        if one.drawn is not None:
            one.drawn.savefig(PAGE.with_name(one.picture), dpi=160)
    PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
