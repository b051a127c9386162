"""Findings on architectures: families, sides, the order of grammars, cells, hierarchies and `shufdet`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import scipy

from icy.analysis.correlations import AcrossModels
from icy.analysis.statistics import holm
from icy.core.text import listed, markdown_table
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
    Estimate,
    Table,
    across,
    correlation_text,
    mean_of,
    mixed_of,
    probes,
    quotient_of,
    with_logs,
)
from results.findings.finding import (
    ALL_GRAMMARS,
    HERE,
    LEARNED,
    Claim,
    Finding,
    components,
    concordance,
    each,
    measure,
    spread,
    supported,
    verdict_of,
)

BUDGET = HERE.parent / "atlas" / "budget.parquet"
REST = ("recurrent", "hierarchical", "attention")  # families besides fully connected networks and the one convolution


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
    runs = long[long["grammar"].isin(["rot", "pairsum"])].set_index("model")["censored"].astype(bool)
    cut, other_cut = (runs.loc[part.models] for part in (plain, rest))
    sentence = supported(
        plain.values["shufdet"].min() > rest.values["shufdet"].max() and cut.all() and other_cut.mean() < 0.25,
        "Shuffling the words of messages slows down fully connected senders more than all other senders.",
    )
    numbers = supported(
        two["concat"] < others["concat"].median() / 2 and others["shufdet"].median() < two["shufdet"],
        f"""
        At {LARGE} (three seeds), the ratios of the two fully connected senders on `shufdet` are
        {mean_of(plain, "shufdet")} (FC1L and FC2L). The {len(rest)} others have {mean_of(rest, "shufdet")}, and at
        most {math.exp(rest.values["shufdet"].max()):.2f}. On `rot` and `pairsum` all {len(cut)} runs of the two were
        cut, and {other_cut.sum()} of the others' {len(other_cut)}. A ratio is also large if `concat` is learned fast:
        FC2L learns `concat` in {two["concat"]:.0f} updates (median of the others: {others["concat"].median():.0f}) and
        `shufdet` in {two["shufdet"]:.0f} (median: {others["shufdet"].median():.0f}).
        """,
    )
    more = supported(
        others["concat"].median() / 2 < one["concat"] and attention["concat"].max() < 100 and fast.max() < 10,
        f"""
        On `shufdet`, {(others["shufdet"] > two["shufdet"]).sum()} of the others take more updates than FC2L.
        FC1L learns `concat`
        in {one["concat"]:.0f} and `shufdet` in more than {one["shufdet"]:,.0f}. Senders with attention learn `concat`
        in {spread(attention["concat"])} and `shufdet` in {spread(attention["shufdet"])}. The receivers FC and FC2L
        learn `concat` in {fast.iloc[0]:.0f} and {fast.iloc[1]:.0f} updates, so their daggers mean only more than
        {limits.iloc[0]:.0f} and {limits.iloc[1]:.0f} updates, which does not show that they need more than others.
        """,
    )
    more += " " + _common_budget(lines, columns, others)
    senders = {family: ratios.side("sender").families(family) for family in FAMILIES}
    return Finding(
        sentence,
        numbers,
        more,
        markdown_table(["family", "models", "concat", *columns], lines),
        pictures.marks(
            {family: {"": mean_of(part, "shufdet")} for family, part in senders.items() if len(part)},
            f"{pictures.RATIO}, on shufdet",
        ),
        (
            Claim(
                "two fully connected senders have larger ratios on `shufdet` than all other senders",
                f"{LARGE}, SOFT",
                f"2 and {len(rest)} senders, 3 seeds",
                f"{mean_of(plain, 'shufdet')} against {mean_of(rest, 'shufdet').text.partition(' ')[0]}",
                f"of the others {mean_of(rest, 'shufdet').text.partition('(')[2].rstrip(')')}",
                "each of the two is above each of the others",
                "-",
                "shown",
                "for these two models, with one width and learning rate; no interval for a family of two",
            ),
        ),
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
    reached, last = runs["censored"].agg(lambda cut: int((~cut.astype(bool)).sum())), runs["accuracy"].mean()
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
    sentence = supported(
        above(LARGE, "log", *SIDES, "rot")
        and above(LARGE, "log", *SIDES[::-1], "proj")
        and mixed["sender", "rot"].low > mixed["receiver", "rot"].high,
        """Sums of tokens (`rot`) are harder for senders than for receivers, and random projections (`proj`) are harder
        for receivers than for senders.""",
    )
    shown = {"rot": mixed, "proj": {(side, "proj"): found[LARGE, "log", side, "proj"] for side in SIDES}}
    numbers = markdown_table(
        [f"ratio at {LARGE}", *(f"{n} {side}s" for side, n in zip(SIDES, count, strict=True))],
        [[g, *(str(of[side, g]) for side in SIDES)] for g, of in shown.items()],
    )
    numbers += "\n\n" + supported(
        not above(SMALL, "log", *SIDES, "rot") and not above(SMALL, "log", *SIDES[::-1], "rot"),
        f"""
        Recurrent and hierarchical models, three seeds; `rot` by a mixed model. At {SMALL} it is unknown whether the
        sides differ on `rot`: {found[SMALL, "log", "sender", "rot"]} and {found[SMALL, "log", "receiver", "rot"]}. A
        target of 80 % is not equally far above chance for both sides.
        """,
    )
    more = supported(
        above(LARGE, "value", *SIDES[::-1], "rot") and above(LARGE, "value", *SIDES, "proj"),
        f"""
        The same after a budget: accuracies on `rot` of {both("value", "rot")}, on `proj` of {both("value", "proj")}.
        Senders are measured by tokens and receivers by attributes. In the mixed model, cell,
        architecture, model and seed (language) are random effects and cut runs are censored; "-": more than a third of
        the runs were cut.
        """,
    )
    drawn = {
        g: {f"{side}s": replace(of, low=best.low, high=best.high, mean=best.mean)
            for side in SIDES for of in [found[LARGE, "log", side, g]]
            for best in [of if mixed[side, g].text == "-" else mixed[side, g]]}
        for g in LEARNED
    }  # fmt: skip
    return Finding(
        sentence,
        numbers,
        more,
        markdown_table(["recurrent and hierarchical", "models", *LEARNED], lines),
        pictures.marks(drawn, pictures.RATIO),
        tuple(
            Claim(
                f"`{grammar}` is harder for {worse}s than for {other}s, relative to `concat`",
                f"{LARGE}, SOFT, recurrent and hierarchical",
                f"{count[0]} senders, {count[1]} receivers",
                " and ".join(str(one).partition(" (")[0] for one in pair),
                " and ".join(str(one).partition("(")[2].rstrip(")") or str(one) for one in pair),
                test,
                f"no; {len(LEARNED)} grammars",
                "shown",
                "three languages, and targets that are not equally far above chance",
            )
            for grammar, worse, other, test, pair in (
                ("rot", "sender", "receiver", "separate intervals, mixed model", [mixed[s, "rot"] for s in SIDES]),
                (
                    "proj",
                    "receiver",
                    "sender",
                    "separate intervals, cells as clusters",
                    [found[LARGE, "log", s, "proj"] for s in SIDES],
                ),
            )
        ),
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
    pair = next(of for of in orders[f"senders, {LARGE}"] if of[0] == "pairsum")
    corrected = iter(holm([p for of in orders.values() for *_, p in of]))
    for line in lines:
        for hard, right, count, _ in orders[line[0]]:
            line[-1] += f", {hard} {right}/{count}" + ("" if next(corrected) < 0.05 else "?")
    ws = [float(line[2].split()[0]) for line in lines]
    return Finding(
        supported(min(ws) > 0.8, "Models nearly agree on which grammars are easy and which are hard."),
        supported(
            all("?" in line[-1].split("pairsum")[1].split(",")[0] for line in lines if line[0].startswith("sender")),
            f"""
            Kendall's W of the order of six grammars (1: all models agree, 0: by chance) is {spread(ws, "{:.2f}")} over
            {spread([len(t.side(s)) for t in tables.values() for s in SIDES])} models of a side. Much of this is that
            `perm` is easy and `hol` is hard: W of the other four is
            {spread((float(line[3].split()[0]) for line in lines), "{:.2f}")}. It is unknown whether `rot` or `pairsum`
            is harder for senders: at {LARGE} `pairsum` is harder for {pair[1]} of {pair[2]} (p = {pair[3]:.2f}).
            """,
        ),
        """In brackets: the smallest W if the models of one cell are left out. After each grammar: the number of models
        for which it is harder than the grammar before, of the models with a known order; "?": not significant even
        if models were independent (sign test, Holm).""",
        markdown_table(["", "models", "W", f"W of {listed(middle)}", "from easy to hard, by geometric means"], lines),
        pictures.ranks({f"{side}s, {LARGE}": tables[LARGE].side(side).values for side in SIDES}),
        (
            Claim(
                "models of a side agree on the order of the grammars",
                f"{LARGE} and {SMALL}, SOFT",
                f"{spread([len(t.side(s)) for t in tables.values() for s in SIDES])} models",
                f"W {spread(ws, '{:.2f}')}, of the middle four grammars "
                + spread((float(x[3].split()[0]) for x in lines), "{:.2f}"),
                f"without any one cell at least {min(float(x[3].split('(')[1].rstrip(')')) for x in lines):.2f}",
                "Kendall's W",
                "-",
                "shown",
                "much of it is that `perm` is easy and `hol` hard",
            ),
            Claim(
                "`pairsum` is harder than `rot` for senders",
                f"{LARGE}, SOFT",
                f"{pair[2]} senders",
                f"{pair[1]} of {pair[2]}",
                "{:.2f} to {:.2f} of senders".format(*scipy.stats.binomtest(pair[1], pair[2]).proportion_ci()),
                f"sign test, p = {pair[3]:.2f}",
                "Holm, all neighbors in the orders",
                "unknown",
            ),
        ),
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
            """The recurrent cell may matter more for a sender than the architecture around it, but four of each are too
            few to show it.""",
        ),
        f"""Of {len(ARCHITECTURES)} recurrent senders ({listed(ARCHITECTURES)}) with {len(CELLS)} cells each
        ({listed(CELLS)}) at {LARGE}, the cell explains {span(first, "cell")} of the variance of log ratios and the
        architecture {span(first, "architecture")}. Of {len(tests)} F tests of cell against architecture, the smallest p
        is {min(tests):.2f}, and {min(corrected):.2f} after Holm's correction.""",
        f"""After a budget the cell explains {span(second, "cell")} of the variance of accuracies, at {SMALL}
        {span(third, "cell")} of that of log ratios. These are variance components of a balanced design with random
        effects, with seeds (language and initial weights) crossed with models. Grammars with cut runs in more than
        {100 * MOST_CUT:.0f} % of the models are left out; other cut runs count as they are.""",
        markdown_table(["", "grammar", *names, "p of F(3, 3)"], lines),
        pictures.stacked({first: shares[first]}),
        (
            Claim(
                "the cell of a recurrent sender matters more than the architecture around it",
                f"{LARGE} and {SMALL}, SOFT",
                "4 architectures with 4 cells",
                f"{span(first, 'cell')} against {span(first, 'architecture')} of the variance at {LARGE}",
                "-",
                f"F(3, 3), smallest p = {min(tests):.2f}",
                f"Holm, {len(tests)} tests: {min(corrected):.2f}",
                verdict_of(min(corrected), min(tests)),
            ),
        ),
    )


def hierarchy() -> Finding:
    lines, gaps = [], {}
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
    senders = [(deep, flat) for deep, flat in HIERARCHIES if deep != "Hier"]
    pairs = [pair for names in senders for pair in _pairs(tables[LARGE, "log"], *names)]
    pooled = {column: quotient_of(tables[LARGE, column], tables[LARGE, column], "shufdet", pairs)
              for column in ("log", "updates")}  # fmt: skip
    values = tables[LARGE, "log"].values["shufdet"]
    lower = sum(bool(values[one] < values[other]) for one, other in pairs)
    first, second = holm([pooled["log"].p, pooled["updates"].p])
    ratio, updates, accuracy, small, _ = ([gaps[deep][key] for deep, _ in HIERARCHIES] for key in columns)
    return Finding(
        supported(
            pooled["log"].low < 1 < pooled["log"].high
            and pooled["updates"].high < 1
            and lower == len(pairs)
            and all(one.low < 0 < one.high for one in accuracy),
            """Senders with a hierarchy of words and tokens (HU-RNN) learn shuffled words in fewer updates; whether they
            gain more there than on `concat` is unknown.""",
        ),
        f"""At {LARGE} (words of four tokens, three seeds), senders with a hierarchy need {pooled["updates"]} times the
        updates on `shufdet` of senders without, with the same {len(CELLS)} cells (p = {second:.2f} after
        Holm's correction for two measures). Their ratios are {pooled["log"]} times as large, and smaller in {lower} of
        {len(pairs)} pairs.""",
        supported(
            updates[0].high < 1 and small[2].low > 1,
            f"""
            One by one, HierZero has {ratio[0]} times RNNZero's ratio, HierAutoReg {ratio[1]} times RNNAutoReg's, and
            the receiver Hier {ratio[2]} times RNN1L's. Accuracy after a budget is unknown, too (differences of
            {accuracy[0]}, {accuracy[1]} and {accuracy[2]}). At {SMALL} (words of two tokens)
            Hier has a larger ratio ({small[2]} times). Icy22
            designed HU-RNN to make shuffled words easier to learn; `icy reproduce icy22/table6` measures the
            paper's own table.
            """,
        ),
        markdown_table(
            ["`shufdet`", f"cells at {LARGE} and {SMALL}", *(f"{space}, {NAMES[column]}" for space, column in columns)],
            lines,
        ),
        pictures.marks(
            {
                f"{deep} / {flat}": {name: gaps[deep][LARGE, column] for column, name in list(NAMES.items())[:2]}
                for deep, flat in HIERARCHIES
            },
            "with / without a hierarchy, on shufdet",
        ),
        tuple(
            Claim(
                f"a hierarchy lowers a sender's {what} on `shufdet`",
                f"{LARGE}, SOFT",
                f"{len(pairs)} pairs in 4 cells",
                f"{pooled[column].text.partition(' ')[0]} times",
                pooled[column].text.partition("(")[2].rstrip(")"),
                f"Student's t over cells, p = {pooled[column].p:.2f}",
                f"Holm, 2 measures: {p:.2f}",
                verdict_of(p, pooled[column].p),
                "" if column == "log" else "in updates, not relative to `concat`",
            )
            for column, what, p in (("log", "ratio", first), ("updates", "updates", second))
        ),
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
    shared = found[strongest]
    return Finding(
        supported(
            len(above) == 2 and strongest in above,
            """Whether a model that finds one grammar hard also finds shuffled words hard is mostly unknown.""",
        ),
        f"""Models with larger ratios on one grammar have larger ratios on `shufdet` in {len(above)} of {len(found)}
        cases ({listed([f"{name}, {one.correlation}" for name, one in above.items()])}), not corrected for
        {len(found)} correlations. The other intervals contain 0 and reach
        {max(one.correlation.high for name, one in found.items() if name not in above):+.2f}.""",
        f"""Ratios of the same seed share a `concat` run: with the same seeds, {strongest} correlates by
        {shared.same_seeds:+.2f}, not {shared.correlation.value:+.2f}.""",
        markdown_table(["", "models in cells", "reliability of `shufdet`", *rest], lines),
        pictures.marks(
            {
                name.replace("`", ""): {"": Estimate(low=one.low, high=one.high, mean=one.value)}
                for name, one in ((name, one.correlation) for name, one in found.items())
            },
            "correlation with the ratio on shufdet",
            0,
        ),
        (
            Claim(
                f"models with larger ratios on {listed(list(above))} have larger ratios on `shufdet`",
                f"{SMALL}, SOFT",
                listed([f"{one.models} models" for one in above.values()]),
                listed([f"{one.correlation.value:+.2f}" for one in above.values()]),
                listed([f"{one.correlation.low:+.2f} to {one.correlation.high:+.2f}" for one in above.values()]),
                "correlation over models, jackknife over cells",
                f"no; {len(found)} correlations",
                "not shown",
            ),
        ),
    )
