"""What the atlas and the reproduced tables say, with intervals: `python benchmarks/findings.py [--train]`.

Write benchmarks/findings.md, which the documentation shows, and its pictures, from the atlas that comes with icy, from
benchmarks/reproduced and from the records of benchmarks/sweeps/findings-generalise.toml, which --train completes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import findings_pictures as pictures
import numpy as np
import pandas as pd
from findings_data import (
    ARCHITECTURES,
    CELLS,
    FAMILIES,
    GRAMMARS,
    HIERARCHIES,
    LARGE,
    SEQUENCE,
    SIDES,
    SMALL,
    Means,
    of_families,
    of_side,
    probes,
    table_of,
)
from matplotlib.figure import Figure
from numpy.typing import NDArray

import icy
from icy.analysis.emergence import EMERGED, Emergence, probed_senders
from icy.analysis.statistics import RankCorrelation, holm, rank_correlation, student
from icy.core.text import listed, markdown_table
from icy.experiments.results import ProbeResult
from icy.records.pack import add_to_pack

HERE = Path(__file__).parent
PAGE = HERE / "findings.md"
SWEEP = HERE / "sweeps" / "findings-generalise.toml"
SPEAKERS = HERE / "sweeps" / "games-speakers.toml"
REPRODUCED = HERE / "reproduced" / "README.md"
RESULTS, RECORDS = HERE / "findings" / "results", HERE / "findings" / "records.parquet"


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


def over_models(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of some models' values and its 95 % interval, by Student's t over models."""
    found = np.asarray(values, float)
    mean, half = float(found.mean()), student(len(found) - 1) * float(found.std(ddof=1)) / math.sqrt(len(found))
    return mean, mean - half, mean + half


def times(values: Iterable[float]) -> str:
    """Return the geometric mean of quotients, given by their logarithms, with its interval; of two, both of them."""
    logs = sorted(values)
    if len(logs) < 3:
        return " and ".join(f"{math.exp(log):.2f}" for log in logs) or "-"
    mean, low, high = (math.exp(one) for one in over_models(logs))
    return f"{mean:.2f} ({low:.2f} to {high:.2f})"


def mean(values: Iterable[float], sign: str = "") -> str:
    """Return the mean of accuracies with its interval; of two, both of them."""
    found = sorted(values)
    if len(found) < 3:
        return " and ".join(f"{value:{sign}.2f}" for value in found) or "-"
    middle, low, high = over_models(found)
    return f"{middle:{sign}.2f} ({low:{sign}.2f} to {high:{sign}.2f})"


def concordance(table: Means) -> float:
    """Return Kendall's W of the orders that models put grammars into: 1 if all agree, about 0 by chance.

    It is corrected for ties, such as of two grammars that were both cut at the cap.
    """
    ranks = table.rank(axis=1).to_numpy()
    models, grammars = ranks.shape
    spread = ((ranks.sum(0) - models * (grammars + 1) / 2) ** 2).sum()
    sizes = [np.unique(row, return_counts=True)[1] for row in ranks]
    ties = sum(float((size**3 - size).sum()) for size in sizes)
    return float(12 * spread / (models**2 * (grammars**3 - grammars) - models * ties))


def shares(table: NDArray[np.float64]) -> dict[str, float]:
    """Split the variance of a balanced table [architecture, cell, seed] into the shares of its sources."""
    mean = table.mean()
    rows, columns = table.mean((1, 2)) - mean, table.mean((0, 2)) - mean
    cells = table.mean(2) - mean - rows[:, None] - columns
    sizes = {"architecture": (rows**2).mean(), "cell": (columns**2).mean(), "both together": (cells**2).mean()}
    sizes["seed"] = (table - table.mean(2, keepdims=True)).var()
    return {name: float(size / table.var()) for name, size in sizes.items()}


def plus(values: Iterable[float]) -> str:
    """Return the mean of differences with its interval; of two, both of them."""
    return mean(values, "+")


def shown(found: RankCorrelation) -> str:
    """Return a correlation with its interval, and over how many models it is."""
    if math.isnan(found.value):
        return "-"
    return f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f}, {found.pairs} models)"


def prose(text: str) -> str:
    """Return a paragraph as one line."""
    return " ".join(text.split())


# -- findings ----------------------------------------------------------------------------------------------------------


def sides() -> Finding:
    spaces = {space: of_families(table_of(probes(space)), *SEQUENCE) for space in (LARGE, SMALL)}
    scores = of_families(table_of(probes(protocol="budget"), column="value"), *SEQUENCE)
    lines = []
    for space, table in spaces.items():
        for side in SIDES:
            part = of_side(table, side)
            lines.append([f"{side}s, {space}: ratio", str(len(part)), *(times(part[g]) for g in GRAMMARS)])
    for side in SIDES:
        part = of_side(scores, side)
        lines.append([f"{side}s, {LARGE}: accuracy", str(len(part)), *(mean(part[g]) for g in GRAMMARS)])
    large, small = (
        {(side, g): times(of_side(table, side)[g]) for side in SIDES for g in GRAMMARS} for table in spaces.values()
    )
    right = {(side, g): f"{of_side(scores, side)[g].mean():.2f}" for side in SIDES for g in GRAMMARS}
    said = prose(
        f"""
        In the papers' space a grammar is not hard as such, but to say or to understand. Over recurrent and
        hierarchical models, `rot` takes senders {large["sender", "rot"]} times as many updates as `concat`, and
        receivers {large["receiver", "rot"]}; `proj` takes senders {large["sender", "proj"]} times as many, and
        receivers {large["receiver", "proj"]}. To say `rot` one needs the sum of all tokens before, to read it only the
        difference of two neighbours. All models were also measured after the updates in which `concat` is learnt to 99
        %: there the accuracy on `rot` is {right["sender", "rot"]} for senders and {right["receiver", "rot"]} for
        receivers, on `proj` {right["sender", "proj"]} and {right["receiver", "proj"]}. In 64 meanings the sides differ
        less: `rot` {small["sender", "rot"]} and {small["receiver", "rot"]}, `proj` {small["sender", "proj"]} and
        {small["receiver", "proj"]}.
        """
    )
    return Finding(
        "What is easy to understand may be hard to say",
        said,
        f"icy table atlas --where meanings={LARGE} --where representation=soft",
        markdown_table(["recurrent and hierarchical models", "models", *GRAMMARS], lines),
        "findings-sides.png",
        pictures.by_family(table_of(probes())),
    )


def families() -> Finding:
    long = probes()
    table = table_of(long)
    cut = long[long["cut"].astype(bool)].groupby("model")["grammar"].agg(set)
    lines = []
    for side in SIDES:
        for family in FAMILIES:
            part = of_families(of_side(table, side), family)
            if len(part):
                cells = (f"{math.exp(part[g].mean()):.2f}{_cut(part[g], cut)}" for g in GRAMMARS)
                lines.append([f"{side}s: {family}", str(len(part)), *cells])

    others = [*SEQUENCE, "attention"]

    def apart(among: Means, grammar: str) -> str:
        plain, other = (of_families(among, *names)[grammar] for names in (["fully connected"], others))
        return f"{times(plain)} against {times(other)}"

    def unlearnt(names: Sequence[str]) -> str:
        runs = long[long["family"].isin(names) & long["grammar"].isin(["rot", "pairsum"])]
        return f"{int(runs['cut'].sum())} of {len(runs)}"

    small = table_of(probes(SMALL))
    said = prose(
        f"""
        Networks without recurrence or attention pay most for what moves tokens or mixes words. `shufdet`, which
        shuffles the tokens of each word, takes fully connected senders {apart(of_side(table, "sender"), "shufdet")}
        times as many updates as `concat` in recurrent, hierarchical and attentive ones (geometric mean and interval
        over models), and receivers {apart(of_side(table, "receiver"), "shufdet")}. Of their runs on `rot` and
        `pairsum` {unlearnt(["fully connected"])} were not at the target after twenty times concat's updates, of those
        of the others {unlearnt(others)}. So what they prefer is less composition than concatenation: words whose
        tokens stand in fixed places. In 64 meanings, over both sides, `rot` takes them {apart(small, "rot")} times,
        `pairsum` {apart(small, "pairsum")}, and `shufdet` {apart(small, "shufdet")}. † in the table: some runs were
        cut at the cap, so that the mean is larger in truth.
        """
    )
    return Finding(
        "Fully connected networks resist mixed and shuffled words",
        said,
        f"icy table atlas --where meanings={LARGE} --where representation=soft --where protocol=acquire",
        markdown_table(["family", "models", *GRAMMARS], lines),
    )


def _cut(logs: pd.Series[float], cut: pd.Series[Any]) -> str:
    """Return the mark of a mean over models if runs of it were cut."""
    return "†" if any(logs.name in cut.get(model, ()) for model in logs.index) else ""


def order() -> Finding:
    tables = {space: table_of(probes(space)) for space in (LARGE, SMALL)}
    agreed = {(space, side): concordance(of_side(t, side)) for space, t in tables.items() for side in SIDES}
    large = {side: of_side(tables[LARGE], side) for side in SIDES}
    from_easy = {side: listed([str(g) for g in part.mean().sort_values().index]) for side, part in large.items()}
    said = prose(
        f"""
        Models of one side agree on what is hard: Kendall's W of the orders that they put {listed(list(GRAMMARS))} into
        is {agreed[LARGE, "sender"]:.2f} over {len(large["sender"])} senders and {agreed[LARGE, "receiver"]:.2f} over
        {len(large["receiver"])} receivers (1: all alike); in 64 meanings {agreed[SMALL, "sender"]:.2f} and
        {agreed[SMALL, "receiver"]:.2f}. From easy to hard, by geometric means: senders {from_easy["sender"]};
        receivers {from_easy["receiver"]}. `perm` costs senders {times(large["sender"]["perm"])} and receivers
        {times(large["receiver"]["perm"])} times concat's updates: another order of tokens is all but free.
        """
    )
    command = f"icy table atlas --sort=-hol --where meanings={LARGE} --where protocol=acquire"
    return Finding("Models of one side agree on what is hard", said, command)


def cells() -> Finding | None:
    long = probes()
    senders = {(str(a), str(c)) for a, _, c in long["model"].str.removeprefix("sender/").str.partition(":").to_numpy()}
    whole = [a for a in ARCHITECTURES if all((a, c) in senders for c in CELLS)]
    if len(whole) < 2:
        return None
    rows = []
    for grammar in GRAMMARS:
        part = long[long["grammar"] == grammar].set_index("model")["log"]
        rows.append((grammar, shares(np.array([[part.loc[f"sender/{a}:{c}"] for c in CELLS] for a in whole]))))
    of = dict(rows)
    names = list(rows[0][1])
    most = max((g for g in GRAMMARS if g != "hol"), key=lambda g: of[g]["cell"])
    lines = [[grammar, *(f"{found[name]:.0%}" for name in names)] for grammar, found in rows if grammar != "hol"]
    told = {name: [of[g][name] for g in GRAMMARS if g != "hol"] for name in names}
    said = prose(
        f"""
        Of {len(whole)} recurrent senders ({listed(whole)}) with {len(CELLS)} cells each ({listed(CELLS)}), three
        seeds: the cell explains most of what differs on `{most}`, {of[most]["cell"]:.0%} of the variance of the
        logarithm of the ratio, and the architecture (hierarchy, whether tokens are fed back)
        {of[most]["architecture"]:.0%}. Over the grammars of the table the cell explains {np.mean(told["cell"]):.0%} on
        average, the architecture {np.mean(told["architecture"]):.0%}, and seeds {np.mean(told["seed"]):.0%}. With
        three seeds, shares of a few per cent are noise. `hol` is left out, as nearly all its runs were cut.
        """
    )
    return Finding(
        "Among recurrent senders the cell matters more than the architecture",
        said,
        f"icy table atlas -m 'sender/RNN*' -m 'sender/Hier*' --where meanings={LARGE} --where protocol=acquire",
        markdown_table(["grammar", *names], lines),
        "findings-cells.png",
        pictures.stacked({g: shares for g, shares in rows if g != "hol"}, "share of the variance of log ratios"),
    )


def hierarchy() -> Finding:
    lines: list[list[str]] = []
    changed: dict[str, list[str]] = {side: [] for side in SIDES}  # of shufdet: ratio, accuracy, ratio in 64 meanings
    for space, protocol in ((LARGE, "acquire"), (LARGE, "budget"), (SMALL, "acquire")):
        ratio = protocol == "acquire"
        table = table_of(probes(space, protocol=protocol), column="log" if ratio else "value")
        gaps = {pair: _gaps(table, *pair) for pair in HIERARCHIES}
        if (space, protocol) == (LARGE, "acquire"):
            drawn = {f"{deep} / {flat}": of for (deep, flat), of in gaps.items()}
        told = times if ratio else plus
        for (deep, flat), of in gaps.items():
            what = f"{deep} / {flat}" if ratio else f"{deep} - {flat}, accuracy"
            lines.append([f"{space}: {what}", str(len(of)), *(told(of[g]) for g in GRAMMARS)])
        *senders, receivers = gaps.values()
        changed["sender"].append(told(pd.concat(senders)["shufdet"]))
        changed["receiver"].append(told(receivers["shufdet"]))
    said = prose(
        f"""
        Icy22 made HU-RNN, a network over words and one over their tokens, so that shuffled words are learnt more
        easily. With the same cell, the hierarchy changes the ratio of `shufdet` by a factor of {changed["sender"][0]}
        in senders and {changed["receiver"][0]} in receivers (below 1: learnt more easily), and after a budget its
        accuracy by {changed["sender"][1]} and {changed["receiver"][1]}. In 64 meanings, where a word has two tokens,
        the factor is {changed["sender"][2]} and {changed["receiver"][2]}. `icy reproduce icy22/table6` measures the
        paper's own table.
        """
    )
    return Finding(
        "What a hierarchy does for shuffled words",
        said,
        "icy compare atlas:model=sender/RNNZero:GRU atlas:model=sender/HierZero:GRU "
        f"--where meanings={LARGE} --where protocol=budget",
        markdown_table(["with and without a hierarchy", "cells", *GRAMMARS], lines),
        "findings-hierarchy.png",
        pictures.factors(drawn, [g for g in GRAMMARS if g != "hol"], "quotient of ratios (dots: cells)"),
    )


def _gaps(table: Means, deep: str, flat: str) -> Means:
    """Return by how much models with a hierarchy differ from those without, a row per cell."""
    side = "receiver" if deep == "Hier" else "sender"
    of = {cell: [f"{side}/{name}:{cell}" for name in (deep, flat)] for cell in (*CELLS, "SRU", "dgrecv", "minGRU")}
    both = {cell: names for cell, names in of.items() if all(name in table.index for name in names)}
    return pd.DataFrame({cell: table.loc[one] - table.loc[other] for cell, (one, other) in both.items()}).T


def shufdet() -> Finding:
    table = table_of(probes())
    rest = [g for g in GRAMMARS if g not in ("shufdet", "hol")]
    lines, best = [], {}
    for side in SIDES:
        part = of_side(table, side)
        found = {g: rank_correlation(part["shufdet"], part[g]) for g in rest}
        best[side] = max(rest, key=lambda g: found[g].value)
        lines.append([f"{side}s", *(shown(found[g]) for g in rest)])
    told = {side: line[1 + rest.index(best[side])] for side, line in zip(SIDES, lines, strict=True)}
    said = prose(
        f"""
        Which models learn shuffled words (`shufdet`) soon is told best by `{best["sender"]}` among senders (Spearman's
        correlation {told["sender"]}) and by `{best["receiver"]}` among receivers ({told["receiver"]}). `hol` tells
        nothing here, as nearly all its runs were cut.
        """
    )
    return Finding(
        "What predicts shufdet",
        said,
        f"icy plot ratios atlas --where meanings={LARGE} --where representation=soft --where protocol=acquire",
        markdown_table(["", *rest], lines),
        "findings-shufdet.png",
        pictures.families_against(table, best, "shufdet"),
    )


def protocols() -> Finding:
    ratios, scores = table_of(probes()), table_of(probes(protocol="budget"), column="value")
    lines, above = [], []
    for side in SIDES:
        both = [m for m in of_side(ratios, side).index if m in scores.index]
        rest = [g for g in GRAMMARS if g != "hol"]
        found = {g: rank_correlation(-ratios.loc[both, g], scores.loc[both, g]) for g in rest}
        above += [f"{side}s' `{g}`" for g in rest if found[g].low > 0]
        lines.append([f"{side}s", *(shown(found[g]) for g in rest)])
    said = prose(
        f"""
        A ratio of updates to 80 % and the accuracy after the updates in which `concat` is learnt to 99 % are two
        questions. Models that learn a grammar sooner than others by the one are ahead by the other as well, with an
        interval above 0, for {listed(above) if above else "no grammar"}. A claim on a model's bias should say which
        protocol it is of.
        """
    )
    return Finding(
        "Acquisition and a budget are two questions",
        said,
        f"icy table atlas --where meanings={LARGE} --where representation=soft",
        markdown_table(["fewer updates against accuracy", *(g for g in GRAMMARS if g != "hol")], lines),
        "findings-protocols.png",
        pictures.by_grammar(
            {f"{side}s": (of_side(ratios, side), of_side(scores, side)) for side in SIDES},
            [g for g in GRAMMARS if g != "hol"],
            pictures.RATIO,
            "accuracy after a budget",
            ratios=False,
        ),
    )


def representations() -> Finding:
    soft = table_of(probes(SMALL))
    lines, told, drawn = [], {}, {}
    for name in ("gumb", "discr"):
        other = table_of(probes(SMALL, name))
        for side in SIDES:
            both = [m for m in of_side(soft, side).index if m in other.index]
            gaps = other.loc[both] - soft.loc[both]
            drawn[f"{side}s: {name.upper()}"] = of_side(soft, side), other
            found = {g: rank_correlation(soft.loc[both, g], other.loc[both, g]) for g in GRAMMARS}
            told[name, side] = {g: (times(gaps[g]), shown(found[g])) for g in GRAMMARS}
            lines.append([f"{side}s: {name.upper()} / SOFT", str(len(both)), *(times(gaps[g]) for g in GRAMMARS)])
            lines.append([f"{side}s: rank correlation", "", *(f"{found[g].value:+.2f}" for g in GRAMMARS)])
    said = prose(
        f"""
        With sampled tokens (GUMB) the order of models stays: the rank correlation with SOFT on `hol` is
        {told["gumb", "sender"]["hol"][1]} for senders and {told["gumb", "receiver"]["hol"][1]} for receivers, on
        `shufdet` {told["gumb", "sender"]["shufdet"][1]} and {told["gumb", "receiver"]["shufdet"][1]}. With sampled
        tokens and a reward alone (DISCR) it is {told["discr", "sender"]["hol"][1]} and
        {told["discr", "receiver"]["hol"][1]} on `hol`, {told["discr", "sender"]["shufdet"][1]} and
        {told["discr", "receiver"]["shufdet"][1]} on `shufdet`. DISCR changes the ratio of `hol` by a factor of
        {told["discr", "sender"]["hol"][0]} in senders and {told["discr", "receiver"]["hol"][0]} in receivers; GUMB by
        {told["gumb", "sender"]["hol"][0]} and {told["gumb", "receiver"]["hol"][0]}.
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


def size() -> Finding:
    small, large = table_of(probes(SMALL)), table_of(probes())
    lines, carried, flat = [], [], {}
    rest = [g for g in GRAMMARS if g != "hol"]
    for side in SIDES:
        both = [m for m in of_side(large, side).index if m in small.index]
        ranks = {g: rank_correlation(small.loc[both, g], large.loc[both, g]) for g in rest}
        gaps = large.loc[both] - small.loc[both]
        lines.append([f"{side}s: {LARGE} / {SMALL}", str(len(both)), *(times(gaps[g]) for g in GRAMMARS)])
        lines.append([f"{side}s: rank correlation", "", *(f"{ranks[g].value:+.2f}" for g in rest), "-"])
        carried += [f"{side}s' `{g}`" for g in rest if ranks[g].low > 0]
        flat[side] = rank_correlation(small.loc[both].to_numpy().ravel(), large.loc[both].to_numpy().ravel()).value
    said = prose(
        f"""
        From 64 meanings to 100,000 every grammar but `perm` becomes harder, and not alike for both sides. Over models
        and grammars together, the ranks of ratios correlate by {flat["sender"]:+.2f} for senders and
        {flat["receiver"]:+.2f} for receivers, most of which is that the same grammars are hard. Which models find a
        grammar hard carries over less: the interval of that correlation lies above 0 for
        {listed(carried) if carried else "no grammar"}. The small space is good to try things out, and no substitute
        for the setting of a paper.
        """
    )
    return Finding(
        "A small space does not tell what a large one will",
        said,
        f"icy compare atlas:meanings={SMALL} atlas:meanings={LARGE} "
        "--where protocol=acquire --where representation=soft",
        markdown_table(["", "models", *GRAMMARS], lines),
        "findings-size.png",
        pictures.by_grammar(
            {f"{side}s": (of_side(small, side), of_side(large, side)) for side in SIDES},
            rest,
            f"ratio in {SMALL}",
            f"ratio in {LARGE}",
        ),
    )


def generalisation(result: ProbeResult) -> Finding | None:
    if not result.records:
        return None
    long = result.to_dataframe()
    good = long[~long["failed"].astype(bool)]
    held = good.pivot_table(index="model", columns="grammar", values="value")
    speed = np.exp(table_of(probes(SMALL)))
    names = [g for g in ("concat", *GRAMMARS) if g in held]
    lines = []
    for side in ("sender", "receiver"):
        part = held[held.index.str.startswith(side)]
        lines.append(
            [
                f"{side}s",
                str(len(part)),
                *(f"{part[g].mean():.2f} ({part[g].min():.2f} to {part[g].max():.2f})" for g in names),
            ]
        )
    rest = [g for g in GRAMMARS if g in held and g != "hol"]
    shared = [m for m in held.index if m in speed.index]
    found = {g: rank_correlation(speed.loc[shared, g], held.loc[shared, g]) for g in rest}
    flat = rank_correlation(speed.loc[shared, rest].to_numpy().ravel(), held.loc[shared, rest].to_numpy().ravel())
    within = "; ".join(f"`{g}` {found[g].value:+.2f} ({found[g].low:+.2f} to {found[g].high:+.2f})" for g in rest)
    said = prose(
        f"""
        Of 625 meanings (4x5) a fifth is held out, and the others are learnt to the target. Grammars that are learnt
        soon are also said right where they were never heard: over {len(shared)} models and {len(rest)} grammars the
        ratio of updates (in 3x4) and the accuracy on held-out meanings correlate by {flat.value:+.2f}. Within one
        grammar, over models: {within}. No model generalises `hol`, which has nothing to generalise: it is the control.
        """
    )
    return Finding(
        "Acquisition and generalisation",
        said,
        "icy table benchmarks/findings/records.parquet",
        markdown_table(["held-out accuracy: mean (least to most)", "models", *names], lines),
        "findings-generalisation.png",
        pictures.by_grammar(
            {f"{side}s": (np.log(of_side(speed, side)), of_side(held, side)) for side in SIDES},
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
    rows = [
        [row.bias.replace("_", " "), EMERGED[row.score], f"{row.spearman:+.2f} ({row.low:+.2f} to {row.high:+.2f})",
         f"{p:.2f}"]
        for row, p in zip(table.itertuples(), holm(table["p"].tolist()), strict=True)
    ]  # fmt: skip
    topsim, cbm = (shown(found.correlation(score)).replace("models", "senders") for score in ("topsim", "above_chance"))
    said = prose(
        f"""
        Senders that learn compositional languages easily do not invent more compositional ones: in multi-target games
        of a world of 15 concepts the bias towards composition that the atlas measured correlates with the topsim of
        the language by {topsim}, and with its CBM above chance by {cbm}.
        """
    )
    return Finding(
        "The bias of a sender does not predict the language that emerges",
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
            seeds). Ratios are of updates to an accuracy of 80 %, to concat's, and those cut at 20 count as 20.
            Intervals in brackets are of 95 %, over models (Student's t), or of rank correlations (Bonett and Wright);
            of one or two models their values stand there. Which models there are is the choice of the zoo, so that an
            interval speaks of models like these. Made by `python benchmarks/findings.py`.
            """
        ),
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
