"""Finding on chains of learners: whether the languages that are easy to learn survive."""

from __future__ import annotations

import math

from icy.analysis.correlations import WithinOrder, within_model_order
from icy.core.text import listed, markdown_table
from icy.records.load import long_of
from results.estimates import print_estimate, student_interval
from results.findings.finding import HERE, Finding, signed, supported
from results.iterated import __main__ as iterated
from results.pages import RecordFolder

ITERATED = HERE.parent / "iterated"
CHAINS = 4  # per sender and first language
FEWEST_CELLS = 6  # for an interval of a median


def transmission() -> Finding:
    whole = RecordFolder(ITERATED).sweep(ITERATED / "senders.toml", rerun="never")
    ((share, done),) = iterated.whole_senders(whole, CHAINS).items()
    long = iterated.with_settings(long_of(done.records))
    middle = list(iterated.MIDDLE)
    survival, ratios = (iterated.means_of(table, "value")[middle] for table in (long, iterated.ratios()))
    senders, cells = (within_model_order(ratios, survival, of) for of in (None, iterated.cell_of))
    missed, good = iterated.reached_text(long)
    strict = senders.correlations[senders.correlations.index.isin(good)]
    runs = long.assign(model=long["model"].map(iterated.name_of)).groupby(["model", "grammar"])["value"]
    values = {key: print_estimate(student_interval(of.to_numpy(float))) for key, of in runs}
    generations = max(point[0] for record in done.records for point in record["curve"])
    return Finding(
        supported(
            (senders.correlations < 0).all() and senders.median < -0.5,
            f"""
            In chains of {generations:.0f} learners at 4x5 (bottleneck {share}, words of three tokens, hidden size 64),
            grammars with a larger ratio at 3x4 survive less within each of {len(survival)} senders: the median of
            Spearman's correlations over {len(middle)} grammars ({listed(middle)}) is {senders.median:+.2f}
            ({signed(senders.correlations)}). {decision(cells)}
            """,
        ),
        f"""*Survival*: share of the tokens that are the same in the first and the last language (chance: 0.25), means
        of {CHAINS} chains with intervals by Student's t. These are {iterated.done_of("senders", long)}. A sign test
        that counts senders as independent has p = {senders.p:.2f}. All senders find nearly the same grammars easy, so
        this is evidence on grammars, not on differences between senders. {missed} The correlations of the other
        {len(strict)} are {signed(strict)}. The hypotheses were committed before the chains were trained
        (`results/iterated/iterated.md`).""",
        markdown_table(
            ["survival", "correlation", *iterated.GRAMMARS],
            [
                [name, f"{value:+.2f}", *(values[name, grammar] for grammar in iterated.GRAMMARS)]
                for name, value in senders.correlations.items()
            ],
        ),
    )


def decision(cells: WithinOrder) -> str:
    """Return whether the interval of the median over cells supports the claim, in a sentence."""
    if math.isnan(cells.low):
        known = cells.negative + cells.positive
        return f"Open: an interval over cells needs {FEWEST_CELLS} of them, and there are {known}."
    verdict = iterated.verdict(cells.low, cells.high)
    return f"{verdict}: the 95 % interval of the median over cells is {cells.low:+.2f} to {cells.high:+.2f}."
