"""What the atlas and the reproduced tables say, with intervals: `python benchmarks/findings.py [--train]`.

Write benchmarks/findings.md, which the documentation shows, and its pictures, from the atlas that comes with icy, from
benchmarks/reproduced and from the records of benchmarks/sweeps/findings-generalise.toml, which --train completes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

import icy
from icy.analysis import style
from icy.analysis.cells import LEAST_RATIO
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
GRAMMARS = ("perm", "shufdet", "proj", "rot", "pairsum", "hol")
FAMILIES = {
    "fully connected": ("FC",),
    "convolution": ("CNN",),
    "recurrent": ("RNNZero", "RNNAutoReg", "RNN"),
    "hierarchical (HU-RNN)": ("HierZero", "HierAutoReg", "Hier"),
    "attention": ("Transformer", "TransDecSoft"),
}
ARCHITECTURES = ("RNNZero", "RNNZero2L", "RNNAutoReg", "RNNAutoReg2L", "HierZero", "HierAutoReg")
CELLS = ("RNN", "GRU", "LSTM", "dgsend")
Logs = pd.DataFrame  # a row per model, a column per grammar: mean logarithms of ratios


@dataclass(frozen=True)
class Finding:
    """One claim: what it says, how to see it, and what is drawn of it."""

    title: str
    said: str
    command: str
    table: str = ""
    picture: str = ""
    drawn: Figure | None = None


# -- data --------------------------------------------------------------------------------------------------------------


def probes(representation: str = "soft", meanings: str = "3x4") -> pd.DataFrame:
    """Return the atlas's ratios of models that learn by gradient, with the logarithm of each.

    All are of one setting of training, that in which the atlas has most models.
    """
    long = icy.atlas().to_dataframe()
    same = long["representation"].eq(representation) & long["meanings"].eq(meanings) & long["protocol"].eq("acquire")
    good = long[same & ~long["failed"].astype(bool) & long["parameters"].gt(0)]
    settings = good["settings"].fillna("")
    good = good[settings.eq(good.groupby(settings)["model"].nunique().idxmax())]
    return good.assign(log=np.log(good["value"].clip(lower=LEAST_RATIO)), family=good["model"].map(family_of))


def family_of(model: str) -> str:
    """Return the family of a model, a key of FAMILIES."""
    name = style.family(model)
    return next(family for family, names in FAMILIES.items() if name in names)


def logs_of(long: pd.DataFrame, grammars: Sequence[str] = GRAMMARS) -> Logs:
    """Return mean logarithms over seeds of the models that have all of some grammars."""
    return long.pivot_table(index="model", columns="grammar", values="log")[list(grammars)].dropna()


# -- statistics --------------------------------------------------------------------------------------------------------


def over_models(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of some models' values and its 95 % interval, by Student's t over models."""
    found = np.asarray(values, float)
    mean, half = float(found.mean()), student(len(found) - 1) * float(found.std(ddof=1)) / math.sqrt(len(found))
    return mean, mean - half, mean + half


def times(values: Sequence[float]) -> str:
    """Return the geometric mean of quotients, given by their logarithms, with its interval."""
    mean, low, high = (math.exp(one) for one in over_models(values))
    return f"{mean:.2f} ({low:.2f} to {high:.2f})"


def concordance(logs: Logs) -> float:
    """Return Kendall's W of the orders that models put grammars into: 1 if all agree, about 0 by chance."""
    ranks = logs.rank(axis=1).to_numpy()
    models, grammars = ranks.shape
    spread = ((ranks.sum(0) - models * (grammars + 1) / 2) ** 2).sum()
    return float(12 * spread / (models**2 * (grammars**3 - grammars)))


def shares(table: NDArray[np.float64]) -> dict[str, float]:
    """Split the variance of a balanced table [architecture, cell, seed] into the shares of its sources."""
    mean = table.mean()
    rows, columns = table.mean((1, 2)) - mean, table.mean((0, 2)) - mean
    cells = table.mean(2) - mean - rows[:, None] - columns
    sizes = {"architecture": (rows**2).mean(), "cell": (columns**2).mean(), "both together": (cells**2).mean()}
    sizes["seed"] = (table - table.mean(2, keepdims=True)).var()
    return {name: float(size / table.var()) for name, size in sizes.items()}


def shown(found: RankCorrelation) -> str:
    if math.isnan(found.value):
        return "-"
    return f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f}, {found.pairs} models)"


def prose(text: str) -> str:
    """Return a paragraph as one line."""
    return " ".join(text.split())


# -- findings ----------------------------------------------------------------------------------------------------------


def families() -> Finding:
    long = probes()
    logs = logs_of(long)
    of = logs.index.map(family_of)
    groups = {f: logs[of == f] for f in FAMILIES if (of == f).any()}
    cut = long[long["cut"].astype(bool)].groupby("model")["grammar"].agg(set)
    lines = [[name, str(len(part)), *(_mean(part[g], cut) for g in GRAMMARS)] for name, part in groups.items()]
    connected, others = groups["fully connected"], logs[(of != "fully connected") & (of != "convolution")]
    rot = [times(part["rot"].tolist()) for part in (connected, others)]
    pairsum = [times(part["pairsum"].tolist()) for part in (connected, others)]
    said = prose(
        f"""
        Networks without recurrence or attention pay most for what mixes words. `rot`, where each token depends
        on all before it, takes fully connected senders and receivers {rot[0]} times as many updates as `concat`
        (geometric mean and 95 % interval over {len(connected)} models), and recurrent and attentive ones
        {rot[1]} times ({len(others)} models); `pairsum` {pairsum[0]} against {pairsum[1]}. So the strongest
        bias to composition is that of plain networks, though not of each: `rot` costs them from
        {math.exp(connected["rot"].min()):.2f} times ({connected["rot"].idxmin()}) to
        {math.exp(connected["rot"].max()):.2f}. Recurrent and attentive families resist `rot`, `proj` and
        `pairsum` by a factor of about two or less. † in the table: some runs were cut at the cap, so that the mean
        is larger in truth.
        """
    )
    return Finding(
        "Fully connected networks resist mixed words; recurrent ones hardly do",
        said,
        "icy table atlas --where meanings=3x4 --where representation=soft",
        markdown_table(["family", "models", *GRAMMARS], lines),
        "families",
        _families_drawn(groups),
    )


def _mean(logs: pd.Series[float], cut: pd.Series[Any]) -> str:
    """Return the geometric mean of some models' ratios on a grammar, marked if runs of it were cut."""
    mark = "†" if any(logs.name in cut.get(model, ()) for model in logs.index) else ""
    return f"{math.exp(logs.mean()):.2f}{mark}"


def _families_drawn(groups: dict[str, Logs]) -> Figure:
    figure, (ax,) = style.panels(["families"], None, (6.2, 2.9))
    for place, (name, part) in enumerate(groups.items()):
        for at, grammar in enumerate(GRAMMARS):
            y = at + (place - (len(groups) - 1) / 2) * 0.15
            values = np.exp(part[grammar].to_numpy())
            ax.plot(values, [y] * len(values), "o", markersize=2, color=style.COLOURS[place], alpha=0.35)
            mean = math.exp(part[grammar].mean())
            ax.plot([mean], [y], "|", markersize=7, markeredgewidth=2, color=style.COLOURS[place],
                    label=name if at == 0 else None)  # fmt: skip
    ax.set_xscale("log")
    style.ratio_axis(ax.xaxis, 0.5, 25)
    ax.set(xlim=(0.5, 25), ylim=(len(GRAMMARS) - 0.5, -0.5), xlabel="updates as a ratio to concat's (dots: models)")
    ax.set_yticks(range(len(GRAMMARS)), GRAMMARS)
    ax.axvline(1, color="black", linewidth=0.8)
    style.tidy(ax, "x")
    ax.legend(fontsize=style.SMALL, frameon=False, loc="upper right")
    return figure


def order() -> Finding:
    logs = logs_of(probes())
    senders, receivers = (logs[logs.index.str.startswith(f"{side}/")] for side in ("sender", "receiver"))
    both = senders.mean(), receivers.mean()
    said = prose(
        f"""
        Models agree on what is hard. Kendall's W of the orders that they put {listed(list(GRAMMARS))} into is
        {concordance(senders):.2f} over {len(senders)} senders and {concordance(receivers):.2f} over
        {len(receivers)} receivers (1: all alike). From easy to hard, by geometric means: senders
        {listed([str(g) for g in both[0].sort_values().index])}; receivers
        {listed([str(g) for g in both[1].sort_values().index])}. `perm` costs senders
        {times(senders["perm"].tolist())} and receivers {times(receivers["perm"].tolist())} times concat's
        updates: another order of tokens is all but free.
        """
    )
    return Finding("What is hard for one is hard for all", said, "icy table atlas --sort=-hol")


def cells() -> Finding:
    long = probes()
    rows, table = [], long[long["side"] == "sender"]
    for grammar in GRAMMARS:
        part = table[table["grammar"] == grammar].set_index("model")["log"]
        values = np.array([[part.loc[f"sender/{a}:{c}"].to_numpy() for c in CELLS] for a in ARCHITECTURES])
        rows.append((grammar, shares(values)))
    names = list(rows[0][1])
    lines = [[grammar, *(f"{found[name]:.0%}" for name in names)] for grammar, found in rows]
    hol = dict(rows)["hol"]
    said = prose(
        f"""
        Of {len(ARCHITECTURES)} recurrent senders with {len(CELLS)} cells each ({listed(CELLS)}), two seeds: the
        cell explains {hol["cell"]:.0%} of the variance of the logarithm of `hol`'s ratio, the architecture
        (layers, hierarchy, whether tokens are fed back) {hol["architecture"]:.0%}, and seeds {hol["seed"]:.0%}.
        With two seeds, shares of a few per cent are noise.
        """
    )
    return Finding(
        "Among recurrent senders the cell matters as much as the architecture",
        said,
        "icy table atlas -m 'sender/RNN*' -m 'sender/Hier*' --where meanings=3x4 --where representation=soft",
        markdown_table(["grammar", *names], lines),
    )


def hierarchy() -> Finding:
    logs = logs_of(probes())
    lines, gaps_of = [], {}
    for pair in (("HierZero", "RNNZero"), ("HierAutoReg", "RNNAutoReg"), ("Hier", "RNN1L")):
        side = "receiver" if pair[0] == "Hier" else "sender"
        shared = [c for c in (*CELLS, "SRU", "dgrecv", "minGRU") if all(f"{side}/{n}:{c}" in logs.index for n in pair)]
        gaps = pd.DataFrame([logs.loc[f"{side}/{pair[0]}:{c}"] - logs.loc[f"{side}/{pair[1]}:{c}"] for c in shared])
        gaps_of[pair] = gaps
        lines.append([f"{side}s: {pair[0]} / {pair[1]}", str(len(gaps)), *(times(gaps[g].tolist()) for g in GRAMMARS)])
    senders = pd.concat([gaps_of["HierZero", "RNNZero"], gaps_of["HierAutoReg", "RNNAutoReg"]])
    receivers = gaps_of["Hier", "RNN1L"]
    said = prose(
        f"""
        A hierarchy of a network over words and one over their tokens changes the ratio of `shufdet` by a factor
        of {times(senders["shufdet"].tolist())} in senders and {times(receivers["shufdet"].tolist())} in
        receivers, with the same cell (below 1: learnt more easily). In this small space, where a word has two
        tokens, the hierarchy does not help with shuffled words, and makes them harder for receivers; Icy22's
        advantage of HU-RNN, of four tokens a word, is measured by
        `icy reproduce icy22/table6` in 5x10.
        """
    )
    return Finding(
        "With short words, a hierarchy does not help with shuffled ones",
        said,
        "icy compare atlas:model=sender/RNNZero:GRU atlas:model=sender/HierZero:GRU "
        "--where meanings=3x4 --where representation=soft",
        markdown_table(["quotient of ratios", "cells", *GRAMMARS], lines),
    )


def shufdet() -> Finding:
    logs = logs_of(probes())
    rest = [g for g in GRAMMARS if g != "shufdet"]
    lines = []
    for side in ("sender", "receiver"):
        part = logs[logs.index.str.startswith(f"{side}/")]
        lines.append([f"{side}s", *(shown(rank_correlation(part["shufdet"], part[g])) for g in rest)])
    best = {side: _best(logs[logs.index.str.startswith(f"{side}/")], rest) for side in ("sender", "receiver")}
    said = prose(
        f"""
        Which models learn shuffled words (`shufdet`) soon is told best by `{best["sender"][0]}` among senders
        (Spearman's correlation {best["sender"][1]}) and by `{best["receiver"][0]}` among receivers
        ({best["receiver"][1]}); least by `{best["sender"][2]}` and `{best["receiver"][2]}`.
        """
    )
    return Finding(
        "What predicts shufdet",
        said,
        "icy plot ratios atlas --where meanings=3x4 --where representation=soft",
        markdown_table(["", *rest], lines),
        "shufdet",
        _shufdet_drawn(logs, best),
    )


def _best(part: Logs, rest: Sequence[str]) -> tuple[str, str, str]:
    found = {g: rank_correlation(part["shufdet"], part[g]) for g in rest}
    ranked = sorted(found, key=lambda g: found[g].value)
    return ranked[-1], shown(found[ranked[-1]]), ranked[0]


def _shufdet_drawn(logs: Logs, best: dict[str, tuple[str, str, str]]) -> Figure:
    figure, axes = style.panels([f"{side}s" for side in best], None, (6.4, 2.7), 2, sharey=True)
    for ax, (side, (grammar, _, _)) in zip(axes, best.items(), strict=True):
        part = logs[logs.index.str.startswith(f"{side}/")]
        for place, family in enumerate(FAMILIES):
            chosen = part[part.index.map(family_of) == family]
            ax.plot(np.exp(chosen[grammar]), np.exp(chosen["shufdet"]), "o", markersize=3.5,
                    color=style.COLOURS[place], label=family if len(chosen) else None)  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel=f"ratio on {grammar}")
        style.ratio_axis(ax.xaxis, *ax.get_xlim())
        style.ratio_axis(ax.yaxis, *ax.get_ylim())
        style.head(ax, f"{side}s", 3)
        style.tidy(ax)
    axes[0].set_ylabel("ratio on shufdet")
    axes[1].legend(fontsize=style.SMALL, frameon=False)
    return figure


def representations() -> Finding:
    soft, gumb = (logs_of(probes(name)) for name in ("soft", "gumb"))
    lines, corr = [], {}
    for side in ("sender", "receiver"):
        shared = [m for m in soft.index if m in gumb.index and m.startswith(side)]
        gaps = gumb.loc[shared] - soft.loc[shared]
        corr[side] = {g: rank_correlation(soft.loc[shared, g], gumb.loc[shared, g]) for g in GRAMMARS}
        lines.append([f"{side}s: GUMB / SOFT", str(len(shared)), *(times(gaps[g].tolist()) for g in GRAMMARS)])
        lines.append([f"{side}s: rank correlation", "", *(f"{corr[side][g].value:+.2f}" for g in GRAMMARS)])
    said = prose(
        f"""
        With sampled tokens (GUMB) the order of models stays: the rank correlation with SOFT on `hol` is
        {shown(corr["sender"]["hol"])} for senders and {shown(corr["receiver"]["hol"])} for receivers, on
        `shufdet` {shown(corr["sender"]["shufdet"])} and {shown(corr["receiver"]["shufdet"])}. GUMB was measured
        with a check every 50 updates, before the grid of checks was geometric, so its small ratios are coarse.
        DISCR, where a sender learns from a reward alone, has been measured for three models of each side only,
        of which nothing is said here.
        """
    )
    return Finding(
        "Sampled tokens change ratios less than models do",
        said,
        "icy compare atlas:representation=soft atlas:representation=gumb --where meanings=3x4",
        markdown_table(["", "models", *GRAMMARS], lines),
    )


def size() -> Finding:
    small, large = logs_of(probes()), logs_of(probes(meanings="5x10"))
    shared = [m for m in large.index if m in small.index]
    ranks = {g: rank_correlation(small.loc[shared, g], large.loc[shared, g]) for g in GRAMMARS}
    lines = [[g, times((large.loc[shared, g] - small.loc[shared, g]).tolist()), shown(ranks[g])] for g in GRAMMARS]
    carried = [g for g in GRAMMARS if ranks[g].low > 0]
    flat = rank_correlation(small.loc[shared].to_numpy().ravel(), large.loc[shared].to_numpy().ravel())
    said = prose(
        f"""
        {len(shared)} models have been measured in both 64 meanings (3x4) and 100,000 (5x10). Over these models
        and the {len(GRAMMARS)} grammars together, the ranks of the ratios correlate by {flat.value:+.2f}, most
        of which is that the same grammars are hard. Which models find a grammar hard carries over less: the
        interval of that correlation lies above 0 for {listed(carried) if carried else "no grammar"}. The small
        space is good for what is roughly hard, and no substitute for the setting of a paper.
        """
    )
    return Finding(
        "A small space gives the same picture, roughly",
        said,
        "icy compare atlas:meanings=3x4 atlas:meanings=5x10 --where protocol=acquire --where representation=soft",
        markdown_table(["grammar", "5x10 / 3x4", "rank correlation over models"], lines),
    )


def generalisation(result: ProbeResult) -> Finding | None:
    if not result.records:
        return None
    long = result.to_dataframe()
    good = long[~long["failed"].astype(bool)]
    held = good.pivot_table(index="model", columns="grammar", values="value")
    speed = np.exp(logs_of(probes()))
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
        Of 625 meanings (4x5) a fifth is held out, and the others are learnt to the target. Grammars that are
        learnt soon are also said right where they were never heard: over {len(shared)} models and {len(rest)}
        grammars the ratio of updates (in 3x4) and the accuracy on held-out meanings correlate by
        {flat.value:+.2f}. Within one grammar, over models: {within}. Nobody generalises `hol`, which has
        nothing to generalise: it is the control.
        """
    )
    return Finding(
        "Acquisition and generalisation",
        said,
        "icy table benchmarks/findings/records.parquet",
        markdown_table(["held-out accuracy: mean (least to most)", "models", *names], lines),
        "generalisation",
        _generalisation_drawn(held, speed, rest),
    )


def _generalisation_drawn(held: pd.DataFrame, speed: pd.DataFrame, rest: Sequence[str]) -> Figure:
    looks = style.grammar_looks(rest)
    figure, axes = style.panels(["senders", "receivers"], None, (6.4, 2.7), 2, sharey=True)
    for ax, side in zip(axes, ("sender", "receiver"), strict=True):
        shared = [m for m in held.index if m in speed.index and m.startswith(side)]
        for grammar, look in looks.items():
            ax.plot(speed.loc[shared, grammar], held.loc[shared, grammar], look.marker, markersize=3.5,
                    color=look.colour, label=grammar)  # fmt: skip
        ax.set(xscale="log", xlabel="updates as a ratio to concat's", ylim=(-0.03, 1.03))
        style.ratio_axis(ax.xaxis, *ax.get_xlim())
        style.head(ax, f"{side}s", 3)
        style.tidy(ax)
    axes[0].set_ylabel("accuracy on held-out meanings")
    axes[1].legend(fontsize=style.SMALL, frameon=False)
    return figure


def not_reproduced() -> Finding:
    rows = [line.strip("| ").split(" | ") for line in REPRODUCED.read_text().splitlines() if line.startswith("| [")]
    told = [row for row in rows if row[3] != "0"]
    counts = {row[0].partition("]")[0].strip("["): f"{row[4]} of {row[3]}" for row in told}
    twenty = pd.read_csv(REPRODUCED.parent / "icy22-table20.csv").query("verdict in ['near', 'differs']")
    apart = (twenty["icy"] - twenty["published"]).abs()
    said = prose(
        f"""
        Papers' tables measured again, as far as that went: cells of several seeds whose 95 % interval of the
        difference from the printed value holds 0, of those that can be told. What was not measured is not
        counted as agreeing. Perkins21's senders (table 13) are the one case of which the cause is known: the
        authors looked at accuracy every 400 updates, so that concat overshot its target and the other grammars
        were given more updates. With that grid {counts["perkins21/table13, check_every=400"]} cells agree; with
        checks every 50, {counts["perkins21/table13"]}. Icy22's table 20 prints no errors, and its cells that do
        not agree differ by {listed([f"{gap:.3f}" for gap in sorted(apart)])}, which its five runs cannot be asked
        about. Ratios and receivers agree as often as chance allows.
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
    )


ALL: tuple[Callable[[], Finding], ...] = (families, order, cells, hierarchy, shufdet, representations, size)


# -- page --------------------------------------------------------------------------------------------------------------


def run(rerun: str = "missing", workers: int | None = None) -> ProbeResult:
    """Train what the sweep lacks, or with `rerun="never"` load what it has."""
    start = [RECORDS] if RECORDS.exists() else []
    given: dict[str, Any] = {"out": RESULTS, "start": start, "rerun": rerun, "workers": workers}
    return icy.sweep(file=SWEEP, **given)


def findings() -> list[Finding]:
    """Return all findings for which there are records."""
    held = generalisation(run(rerun="never"))
    return [*(make() for make in ALL), *filter(None, (held, emergence())), not_reproduced()]


def page(found: Sequence[Finding]) -> str:
    """Return the page."""
    parts = [
        "# Findings",
        "",
        prose(
            """
            What icy's own measurements say, for those who would cite it. All numbers are of SOFT messages, 64
            meanings (3x4), two seeds a cell, models that learn by gradient, unless it is said otherwise; ratios are
            of updates to a token accuracy of 80 %, to concat's, and those cut at 20 count as 20. Intervals in
            brackets are of 95 %, over models (Student's t), or of rank correlations (Bonett and Wright). Which models
            there are is the choice of the zoo, so that an interval speaks of models like these. Made by `python
            benchmarks/findings.py`.
            """
        ),
    ]
    for one in found:
        parts += ["", f"## {one.title}", "", one.said, ""]
        parts += [one.table, ""] if one.table else []
        parts += [f"![{one.title}](findings-{one.picture}.png)", ""] if one.picture else []
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
            one.drawn.savefig(PAGE.with_name(f"findings-{one.picture}.png"), dpi=160)
    PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
