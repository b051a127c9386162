"""Finding on chains of learners: whether the languages that are easy to learn survive."""

from __future__ import annotations

import math

import pandas as pd

from icy.analysis.correlations import WithinModelCorrelation, within_model_order
from icy.core.text import listed
from icy.records.load import long_of
from results.findings import pictures
from results.findings.finding import HERE, Claim, Finding, signed, supported
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
    points = pd.DataFrame({"x": ratios.loc[survival.index].stack(), "y": survival.stack()})
    points["line"], points["name"] = (points.index.get_level_values(level) for level in ("model", "grammar"))
    own = iterated.specificity(done, survival)
    generations = max(point[0] for record in done.records for point in record["curve"])
    return Finding(
        supported(
            (senders.correlations < 0).all() and senders.median < -0.5,
            """Grammars that a sender learns late survive less when learners pass a language on; whether this is the
            sender's own bias is unknown.""",
        ),
        f"""In chains of {generations:.0f} learners at 4x5 (bottleneck {share}, words of three tokens, hidden size 64),
        the median of Spearman's correlations of ratio (at 3x4) and survival, over {len(middle)} grammars, is
        {senders.median:+.2f} in {len(survival)} senders ({signed(senders.correlations)}). {decision(cells)} The ratios
        of other senders predict survival as well ({own.foreign:+.2f}).""",
        f"""*Survival*: share of the tokens that are the same in the first and the last language (chance: 0.25), means
        of {CHAINS} chains; the grammars are {listed(middle)}. These are {iterated.done_of("senders", long)}. A sign
        test that counts senders as independent has p = {senders.p:.2f}. {own.text} {missed} The correlations of
        the other {len(strict)} are {signed(strict)}. The hypothesis came from two earlier measurements with the same
        languages and partly the same senders, so this is a replication, not a preregistered test
        ([its page](../../results/iterated/iterated.md) has the survival of each sender).""",
        "",
        pictures.scatter({"": points}, f"{pictures.RATIO}, at 3x4", "survival"),
        (
            Claim(
                "within a sender, grammars with a larger ratio survive less",
                f"chains of {generations:.0f} learners at 4x5, bottleneck {share}",
                f"{len(survival)} senders in {cells.negative + cells.positive} cells",
                f"{senders.median:+.2f}",
                f"none over cells; senders {signed(senders.correlations)}",
                f"median of Spearman's correlations; sign test over senders, p = {senders.p:.2f}",
                "no",
                "unknown",
                "too few cells; a replication of two earlier measurements",
            ),
            Claim(
                "survival shows a bias that belongs to the sender",
                f"chains of {generations:.0f} learners at 4x5, bottleneck {share}",
                f"{len(survival)} senders",
                f"{own.interaction:+.2f}",
                f"{own.without[0]:+.2f} to {own.without[1]:+.2f} if one sender is left out",
                "correlation of the interactions of sender and grammar",
                "no",
                "unknown",
                f"other senders' ratios predict as well ({own.foreign:+.2f})",
            ),
        ),
    )


def decision(cells: WithinModelCorrelation) -> str:
    """Return whether the interval of the median over cells supports the claim, in a sentence."""
    if math.isnan(cells.low):
        known = cells.negative + cells.positive
        return f"Open: an interval over cells needs {FEWEST_CELLS} of them, and there are {known}."
    verdict = iterated.verdict(cells.low, cells.high)
    return f"{verdict}: the 95 % interval of the median over cells is {cells.low:+.2f} to {cells.high:+.2f}."
