"""Findings on conditions: protocols, representations, sizes, held-out meanings, emergence and published tables."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import scipy

import icy
from icy.analysis.correlations import WithinOrder, within_model_order
from icy.analysis.emergence import EMERGED, Emergence, probed_senders
from icy.analysis.statistics import holm
from icy.core.text import listed, markdown_table
from icy.experiments.results import ProbeResult
from results.findings import pictures
from results.findings.data import (
    GRAMMARS,
    LARGE,
    MOST_CUT,
    NAMES,
    SIDES,
    SMALL,
    Table,
    across,
    cluster_of,
    correlation_text,
    mean_of,
    probes,
    quotient_of,
    with_logs,
)
from results.findings.finding import ALL_GRAMMARS, HERE, LEARNED, Finding, each, signed, supported
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
