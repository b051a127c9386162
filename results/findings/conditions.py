"""Findings on conditions: protocols, representations, sizes, held-out meanings, emergence and published tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import scipy

import icy
from icy.analysis.correlations import RankCorrelation, WithinModelCorrelation, rank_correlation, within_model_order
from icy.analysis.emergence import EMERGED, Emergence, probed_senders
from icy.analysis.statistics import CONFIDENCE, holm
from icy.core.text import listed, markdown_table
from results.findings import pictures
from results.findings.data import (
    GRAMMARS,
    LARGE,
    NAMES,
    SIDES,
    SMALL,
    Estimate,
    Table,
    across,
    cluster_of,
    correlation_text,
    probes,
    quotient_of,
)
from results.findings.finding import (
    ALPHA,
    HERE,
    LEARNED,
    VERDICTS,
    Claim,
    Finding,
    signed,
    supported,
    verdict_of,
)
from results.pages import RecordFolder

SPEAKERS = HERE.parent / "games" / "speakers.toml"
REPRODUCED = HERE.parent / "reproduced" / "README.md"


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
            """The two protocols agree, as they must: both are readings of one learning curve, so this checks the
            protocols and is not a finding.""",
        ),
        f"""Within a model at {LARGE}, grammars with a larger ratio have a lower accuracy after the updates in which it
        learns `concat` to 99 %: the median of Spearman's correlations over {len(LEARNED)} grammars is
        {within["sender"].median:+.2f} ({ends(within["sender"])}) over {len(parts["sender"])} senders and
        {within["receiver"].median:+.2f} ({ends(within["receiver"])}) over {len(parts["receiver"])} receivers; the
        medians of all {within["sender"].negative + within["receiver"].negative} cells are below 0.""",
        f"""Over models, on one grammar, the two agree less: of {len(known)} correlations that are known,
        {len(below)} are significantly below 0 ({listed(below)}). The others are unknown: their intervals contain 0 and
        correlations of {min(one.correlation.low for one in known if one.correlation.high > 0):+.2f}.""",
        markdown_table(
            ["ratio against accuracy, over models", "models in cells", *LEARNED],
            [[f"{side}s", f"{len(part)} in {part.clusters().nunique()}",
              *(correlation_text(found[side, g]) for g in LEARNED)]
             for side, part in parts.items()],
        ),
        claims=(
            Claim(
                "within a model, grammars with a larger ratio have a lower accuracy after a budget",
                f"{LARGE}, SOFT",
                f"{len(parts['sender'])} senders, {len(parts['receiver'])} receivers",
                listed([f"{one.median:+.2f}" for one in within.values()]),
                listed([f"{one.low:+.2f} to {one.high:+.2f}" for one in within.values()]),
                "median of Spearman's correlations, cells as clusters",
                "no",
                "shown",
                "two readings of one learning curve: a check of the protocols, not a finding",
            ),
        ),
    )  # fmt: skip


def representations() -> Finding:
    soft, lines, changed, ranked = probes(SMALL), [], {}, {}
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
                    changed[name, side] = found
                    ranks = [across(theirs, ours, g) for g in GRAMMARS]
                    ranked[name, side] = [one.correlation.value for one in ranks if one is not None]
    tests = {(*key, g): one.p for key, found in changed.items() for g, one in found.items() if one.p > 0}
    corrected = dict(zip(tests, holm(list(tests.values())), strict=True))
    more = {key: [f"`{g}`" for g, one in found.items() if one.low > 1 and corrected[*key, g] < ALPHA]
            for key, found in changed.items()}  # fmt: skip
    alone = [f"{key[1]}s' `{g}` under {key[0].upper()} (p = {corrected[*key, g]:.3f} after it)"
             for key, found in changed.items() for g, one in found.items()
             if one.low > 1 and corrected[*key, g] >= ALPHA]  # fmt: skip
    sizes = {line[0]: f"{line[1]} models" for line in lines}
    counts = [len(changed["discr", side]["perm"].values) for side in SIDES]
    less = [g for found in changed.values() for g, one in found.items() if one.high < 1]
    return Finding(
        supported(
            not less and bool(more["discr", "sender"]) and bool(more["discr", "receiver"]),
            """If models learn from a reward alone, hard grammars fall further behind `concat` than if they learn from
            gradients.""",
        ),
        f"""At {SMALL} (two seeds), messages that are learned from a reward alone (DISCR) have larger ratios than
        probabilities (SOFT) on {listed(more["discr", "sender"])} for {counts[0]} senders (at least
        {_least(changed["discr", "sender"], more["discr", "sender"])} times) and on
        {listed(more["discr", "receiver"])} for {counts[1]} receivers (at least
        {_least(changed["discr", "receiver"], more["discr", "receiver"])} times). Sampled tokens with the gradient of
        their relaxation (GUMB) have larger ratios on {listed(more["gumb", "sender"])} for senders and on
        {listed(more["gumb", "receiver"])} for receivers (p below 0.05 after Holm's correction for {len(tests)}
        quotients).""",
        f"""Without the correction there would also be {listed(alone)}: not shown. Where an interval contains 1
        the difference is unknown, up to the end of the interval. Over models, ratios under GUMB correlate with those
        under SOFT by {signed(ranked["gumb", "sender"])} for senders and {signed(ranked["gumb", "receiver"])} for
        receivers, under
        DISCR by {signed(ranked["discr", "sender"])} and {signed(ranked["discr", "receiver"])} on `perm` and `shufdet`
        (elsewhere too many runs were cut).""",
        markdown_table([SMALL, "models", *GRAMMARS], lines),
        pictures.marks(
            {g: {f"{side}s": changed["discr", side][g] for side in SIDES} for g in GRAMMARS},
            "ratio with rewards / with gradients",
        ),
        tuple(
            Claim(
                f"{side}s have larger ratios under {name.upper()} than under SOFT on "
                + listed([f"`{g}`" for g in own]),
                SMALL,
                sizes[f"{side}s, {name.upper()} / SOFT, {NAMES['log']}"],
                "times " + listed([one.text.partition(" (")[0].partition(",")[0] for one in own.values()]),
                listed([one.text.partition("(")[2].partition(")")[0] or "a bound" for one in own.values()]),
                "Student's t over cells, p = " + listed([f"{corrected[name, side, g]:.2g}" for g in own]),
                f"Holm, {len(tests)} quotients",
                verdict,
            )
            for (name, side), found in changed.items()
            for verdict in VERDICTS[:2]
            if (
                own := {
                    g: one
                    for g, one in found.items()
                    if one.low > 1 and verdict_of(corrected[name, side, g], one.p) == verdict
                }
            )
        ),
    )


def _least(found: Mapping[str, Estimate], grammars: Sequence[str]) -> str:
    """Return the smallest bound or lower end of the intervals on these grammars (in backticks)."""
    return f"{min(found[name.strip('`')].low for name in grammars):.2f}"


def size() -> Finding:
    small, large, lines, factors, ranks = probes(SMALL), probes(), [], {}, {}
    for side in SIDES:
        for column in ("log", "updates"):
            ours, theirs = (Table.of(long, column).side(side) for long in (large, small))
            both = [name for name in ours.models if name in set(theirs.models)]
            ours, theirs = ours.only(both), theirs.only(both)
            found = {g: quotient_of(ours, theirs, g) for g in GRAMMARS}
            lines.append([f"{side}s, {NAMES[column]}: {LARGE} / {SMALL}", str(len(both)), *map(str, found.values())])
            if column == "log":
                factors[side] = found
                ranks[side] = [across(theirs, ours, g) for g in GRAMMARS]
                lines.append([f"{side}s, correlation of ratios", "", *map(correlation_text, ranks[side])])
    tests = {(side, g): one for side in SIDES for g, one in factors[side].items()}
    corrected = dict(zip(tests, holm([one.p for one in tests.values()]), strict=True))
    more = {side: [f"`{g}`" for g, one in factors[side].items() if one.low > 1 and corrected[side, g] < ALPHA]
            for side in SIDES}  # fmt: skip
    alone = [f"{side}s' `{g}` ({one}, p = {corrected[side, g]:.2f} after it)" for (side, g), one in tests.items()
             if one.p < ALPHA <= corrected[side, g]]  # fmt: skip
    counts = listed([f"{len(factors[side]['perm'].values)} {side}s on {listed(more[side])}" for side in SIDES])
    known = [one for of in ranks.values() for one in of if one is not None]
    sure = [one for one in known if one.correlation.low > 0]
    return Finding(
        supported(
            sum(map(len, more.values())) > len(tests) / 2 and not sure,
            """In the papers' setting, with more meanings and larger networks, most grammars fall further behind
            `concat` than in a small one.""",
        ),
        f"""From {SMALL} (words of two tokens, hidden size 32, two seeds) to {LARGE} (words of four tokens, hidden size
        128, three seeds), the ratios of the same models grow: of {counts} (p below 0.05 after Holm's correction for
        {len(tests)} quotients). Space, words and hidden size change together, so any of them may be the cause. Whether
        the order of models is the same is unknown: all {len(known)} intervals of its correlation contain 0.""",
        f"""Without the correction there would also be changes of {listed(alone)}. The intervals of the correlations
        reach {max(one.correlation.high for one in known):+.2f}.""",
        markdown_table(["", "models", *GRAMMARS], lines),
        pictures.marks(
            {g: {f"{side}s": factors[side][g] for side in SIDES} for g in GRAMMARS}, f"ratio at {LARGE} / at {SMALL}"
        ),
        (
            Claim(
                f"ratios are larger at {LARGE} than at {SMALL} on "
                + " and ".join(f"{listed(names)} for {side}s" for side, names in more.items()),
                f"{SMALL} and {LARGE}, SOFT",
                listed([f"{len(factors[side]['perm'].values)} {side}s" for side in SIDES]),
                f"{sum(map(len, more.values()))} of {len(tests)} quotients",
                f"quotients of at least {min(_least(factors[side], more[side]) for side in SIDES)}",
                "Student's t over cells",
                f"Holm, {len(tests)} quotients",
                "shown",
                "space, words and hidden size change together",
            ),
            Claim(
                "the order of models is the same in both spaces",
                f"{SMALL} and {LARGE}, SOFT",
                f"{known[0].models} senders, {known[-1].models} receivers",
                signed(one.correlation.value for one in known),
                signed(end for one in known for end in (one.correlation.low, one.correlation.high)),
                f"{len(known)} correlations over models, jackknife over cells",
                "no",
                "unknown",
                "intervals contain 0 and large correlations",
            ),
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
    largest = f * float(scipy.stats.f.ppf(1 - ALPHA / 2, count * (seeds - 1), count - 1))  # F at the interval's end
    most = max(0.0, (largest - 1) / (largest + seeds - 1))
    holistic = joined.correlation("above_chance", "against_holistic")
    cell_of = joined.table.index.map(cluster_of)
    others = [replace(joined, table=joined.table[cell_of != name]) for name in set(cell_of)]
    without = [one.correlation("above_chance", "against_holistic").value for one in others]
    points = pd.DataFrame({"x": np.exp(joined.table["against_holistic"]), "y": joined.table["above_chance"]})
    points["name"] = cell_of
    means = joined.table.groupby(cell_of)[["above_chance", "against_holistic"]].mean()
    cells = rank_correlation(means["above_chance"].tolist(), means["against_holistic"].tolist())
    return Finding(
        supported(
            p > 0.05
            and tests["above_chance"][1] < 0.05
            and sure == [("against_holistic", "above_chance")]
            and cells.low < 0 < cells.high,
            "Whether the bias of a sender shapes the language that it invents is unknown.",
        ),
        f"""In multi-target games (15 concepts, QT representation, {count} senders, {seeds} seeds), two measures of how
        compositional a language is were compared. CBM above chance differs between senders (p =
        {tests["above_chance"][1]:.2f}). Its correlation with the ratio of `hol` to that of compositional grammars at
        {SMALL} is {cells.value:+.2f} ({cells.low:+.2f} to {cells.high:+.2f}, p = {cells.p:.2f}) over the means of
        {cells.pairs} cells. It is unknown whether topsim differs between senders (F({count - 1},
        {count * (seeds - 1)}) = {f:.2f}, p = {p:.2f}; senders have 0 to {100 * most:.0f} % of its variance).""",
        f"""*Reliability*: intraclass correlation of a sender's mean over seeds; its square root bounds a correlation
        with the score. *Bias*: mean log ratio on noise grammars minus the mean on compositional grammars; *against
        holistic*: the same with `hol` in place of noise. In the table, intervals and p-values of correlations count
        senders as independent, although they share cells. So counted, the last correlation with CBM is
        {holistic.value:+.2f} ({holistic.low:+.2f} to {holistic.high:+.2f}, p = {corrected[sure[0]]:.2f} after Holm's
        correction for {len(table)}), and {signed(without)} if the senders of one cell are left out.""",
        markdown_table(["score", "F", "p", "reliability", "correlation with bias", "against holistic"], lines),
        pictures.scatter({"": points}, "ratio of hol / of compositional grammars", "CBM above chance"),
        (
            Claim(
                "CBM is lower for senders with a larger ratio of `hol`",
                f"multi-target games, 15 concepts, QT; ratios at {SMALL}",
                f"{count} senders in {cells.pairs} cells, {seeds} seeds",
                f"{cells.value:+.2f}",
                f"{cells.low:+.2f} to {cells.high:+.2f}",
                f"Spearman's correlation over means of cells, p = {cells.p:.2f}",
                f"no; over senders p = {corrected[sure[0]]:.2f} (Holm, {len(table)})",
                "unknown",
                "cells, not senders, are independent",
            ),
        ),
    )


def ends(order: WithinModelCorrelation) -> str:
    """Return the interval of a median as text."""
    return f"{order.low:+.2f} to {order.high:+.2f}, cells as clusters"


PAPERS = {"cbm24": "CBM24", "icy22": "Icy22", "perkins21": "Perkins21"}


def reproduction() -> Finding:
    rows = [line.strip("| ").split(" | ") for line in REPRODUCED.read_text().splitlines() if line.startswith("|")]
    table = pd.DataFrame(rows[2:], columns=rows[0])
    table["table"] = table["table"].str.extract(r"\[(.*?)\]")
    table = table[table["decided"].astype(int).ge(5)].set_index("table")
    once = table[~table.index.str.contains(",")]
    none = once["two tests"].str.startswith("no difference found")
    by_paper = none.groupby(once.index.str.split("/").str[0]).agg(["sum", "size"])
    equal = once["equivalent within 20 %"].astype(int) / once["decided"].astype(int)
    senders = "perkins21/table13"
    grids = ("", "-check_every-400", "-clock-True-check_growth-0.13")
    usual, wide, clock = (_decided_cells(f"perkins21-table13{grid}.csv") for grid in grids)
    speed = _speed_and_difference(usual)
    same, timed = (usual.index.intersection(cells.index) for cells in (wide, clock))
    agree = [int(cells.loc[same, "verdict"].eq("agrees").sum()) for cells in (usual, wide)]
    gaps = [float((cells["icy"] - cells["published"])[timed].mean()) for cells in (usual, clock)]
    trend = (
        "Models that learn `concat` in fewer updates differ more, as a clock would explain"
        if speed.low > 0
        else "It is unknown whether the difference depends on the speed of a model"
    )
    table["mean difference"] = table["mean difference"].str.replace(r", \d+ rows|: \d+ rows?", "", regex=True)
    gap, decided = str(table.loc[senders, "mean difference"]), str(table.loc[senders, "decided"])
    return Finding(
        supported(
            "p <0.001" in gap
            and agree[1] > agree[0]
            and speed.high > 0
            and by_paper.loc["icy22"].to_list() == [4, 5]
            and none.index[none & ~none.index.str.startswith("icy22")].to_list() == ["perkins21/table15"],
            """Four of Icy22's five tables and Perkins21's receivers show no difference when they are measured again;
            the other tables of Perkins21 and CBM24 show one.""",
        ),
        f"""Of {len(once)} published tables with at least five decided cells, two tests find no difference in
        {int(none.sum())} and a difference in {int(once["two tests"].str.startswith("difference").sum())}; without a
        difference are {listed([f"{n} of {size} tables of {PAPERS[one]}" for one, n, size in by_paper.itertuples()])}.
        *No difference* is weak evidence, because few seeds find few differences: {100 * equal[none].min():.0f} to
        {100 * equal[none].max():.0f} % of the cells of these tables are shown to be within 20 %. The accuracies of
        Perkins21's senders (table 13, preset `published`, {decided} cells) differ by {gap} on average.""",
        f"""The tests, and a row for each table, are on [their page](../../results/reproduced/README.md). A part of the
        difference of table 13 comes from the clock: Perkins21 rounded the stop of `concat` up to its next look at a
        clock, and the stop of each other grammar again. With evaluations spaced like these looks (`clock=true`),
        {len(timed)} cells differ by {gaps[1]:+.3f} on average, and by {gaps[0]:+.3f} with evaluations every 50 updates.
        The rest has no known cause. {trend} (the correlation of the mean difference of a model with its updates for
        `concat` is {speed.value:+.2f}, {speed.low:+.2f} to {speed.high:+.2f}, over {speed.pairs} models).
        Of the {len(same)} cells of table 13 measured in both ways, {agree[1]} have no difference
        with evaluations every 400 updates and {agree[0]} with evaluations every 50.""",
        "",
        pictures.marks(
            {
                name: {"": Estimate(values=(int(row["no difference"]) / int(row["decided"]),))}
                for name, row in once.iterrows()
            },
            "share of cells without a difference (line: 95 %)",
            CONFIDENCE,
        ),
        (
            Claim(
                "icy's numbers are those of the published tables",
                "preset `published`",
                f"{len(once)} tables with five or more decided cells",
                f"no difference found in {int(none.sum())}",
                f"{100 * equal[none].min():.0f} to {100 * equal[none].max():.0f} % of the cells of these equivalent",
                "two tests at 5 %; one-sided tests of 20 %",
                "cells of a table are tested together",
                "unknown",
                "for cells that are not equivalent; the page of each table has them",
            ),
            Claim(
                "icy's accuracies of senders are lower than Perkins21's (table 13)",
                "preset `published`, checks every 50 updates",
                f"{decided} cells",
                gap.partition(" (")[0],
                "-",
                f"exchanges of rows, {gap.partition('(')[2].rstrip(')')}",
                "no",
                "shown",
                "for the part that the clock of the paper's program does not explain",
            ),
        ),
    )


def _speed_and_difference(cells: pd.DataFrame) -> RankCorrelation:
    """Correlate the mean difference of each model from the paper with its updates for `concat`."""
    runs = pd.read_parquet(REPRODUCED.parent / "replicates.parquet")
    runs = runs[runs["role"].eq("sender") & runs["protocol"].eq("budget") & runs["settings"].eq("")]
    row = ["representation", "model", "hidden_size"]
    speed = runs.assign(model=runs["model"].str.rpartition("/")[2]).groupby(row)["steps"].mean()
    gaps = (cells["icy"] - cells["published"]).groupby(level=row).mean()
    return rank_correlation([speed.get(key, np.nan) for key in gaps.index], gaps.to_numpy())


def _decided_cells(name: str) -> pd.DataFrame:
    """Return the cells of a reproduced table, without undecided cells and cells that agree by design."""
    cells = pd.read_csv(REPRODUCED.parent / name)
    decided = cells["verdict"].isin(["agrees", "near", "differs", "failed"]) & ~cells["by_design"]
    return cells[decided].set_index(["representation", "model", "hidden_size", "grammar"])
