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
        {SMALL} it is unknown whether the sides differ on `rot` (senders {found[SMALL, "log", "sender", "rot"]},
        receivers {found[SMALL, "log", "receiver", "rot"]}). Senders are measured by tokens and receivers by
        attributes, and chance differs, so a target of 80 % is not the same for both. In the mixed model, cell,
        architecture, model and seed (language) are random effects and cut runs are censored; "-": more than a third of
        the runs were cut.
        """,
    )
    return Finding(
        result,
        more,
        markdown_table(["recurrent and hierarchical", "models", *LEARNED], lines),
        claims=tuple(
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
            if models were independent (sign test, Holm). So it is unknown whether `rot` or `pairsum` is harder
            for senders.""",
        ),
        markdown_table(["", "models", "W", f"W of {listed(middle)}", "from easy to hard, by geometric means"], lines),
        claims=(
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
            f"""
            Of {len(ARCHITECTURES)} recurrent senders ({listed(ARCHITECTURES)}) with {len(CELLS)} cells each
            ({listed(CELLS)}) at {LARGE}, the cell explains {span(first, "cell")} of the variance of log ratios and the
            architecture {span(first, "architecture")}. With four of each, it is not shown that the cell explains more:
            of {len(tests)} F tests of cell against architecture, the smallest p is {min(tests):.2f}, and
            {min(corrected):.2f} after Holm's correction.
            """,
        ),
        f"""After a budget the cell explains {span(second, "cell")} of the variance of accuracies, at {SMALL}
        {span(third, "cell")} of that of log ratios. These are variance components of a balanced design with random
        effects, with seeds (language and initial weights) crossed with models. Grammars with cut runs in more than
        {100 * MOST_CUT:.0f} % of the models are left out; other cut runs count as they are.""",
        markdown_table(["", "grammar", *names, "p of F(3, 3)"], lines),
        pictures.stacked(shares),
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
            f"""
            At {LARGE} (words of four tokens, three seeds), senders with a hierarchy of words and tokens (HU-RNN) have
            lower ratios on `shufdet` than senders of the same 4 cells without a hierarchy in {lower} of {len(pairs)}
            pairs: {pooled["log"]} times over cells, so the difference is unknown, and updates of {pooled["updates"]}
            times.
            """,
        ),
        supported(
            updates[0].high < 1 and small[2].low > 1,
            f"""
            One by one, HierZero has {ratio[0]} times RNNZero's ratio, HierAutoReg {ratio[1]} times RNNAutoReg's, and
            the receiver Hier {ratio[2]} times RNN1L's. Accuracy after a budget is unknown, too (differences of
            {accuracy[0]}, {accuracy[1]} and {accuracy[2]}). At {SMALL} (words of two tokens)
            Hier has a larger ratio ({small[2]} times). Icy22
            designed HU-RNN to make shuffled words easier to learn; `icy reproduce icy22/table6` measures the
            paper's own table. The figure has the other grammars.
            """,
        ),
        markdown_table(
            ["`shufdet`", f"cells at {LARGE} and {SMALL}", *(f"{space}, {NAMES[column]}" for space, column in columns)],
            lines,
        ),
        pictures.factors(drawn, LEARNED, "quotient of ratios at 5x10 (dots: cells; hollow: a bound)"),
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
            cases ({listed([f"{name}, {one.correlation}" for name, one in above.items()])}), not corrected for
            {len(found)} correlations. The others are unknown: their intervals contain 0 and reach
            {max(one.correlation.high for name, one in found.items() if name not in above):+.2f}.
            """,
        ),
        f"""Ratios of the same seed share a `concat` run: with the same seeds, {strongest} correlates by
        {shared.same_seeds:+.2f}, not {shared.correlation.value:+.2f}.""",
        markdown_table(["", "models in cells", "reliability of `shufdet`", *rest], lines),
        pictures.by_grammar(drawn, rest, f"ratio at {SMALL}, seed {first}", f"ratio on shufdet, seed {second}"),
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
