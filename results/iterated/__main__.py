"""Which languages survive in chains of learners? `python -m results.iterated [--train first|senders|bottlenecks]...`.

Run the sweeps of this folder into runs/, starting from the records in
records.parquet, which is committed; add all records to this file, and write iterated.md and
its pictures. Run it again to continue, on any machine. Without --train, only pack and write.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import icy
from icy.analysis.chains import generations, with_noise
from icy.analysis.correlations import WithinOrder, across_models, rank_correlation, within_model_order
from icy.analysis.emergence import probed_senders, sender_bias
from icy.analysis.plots.chain_plots import chain_curves, chain_paths
from icy.core.errors import IncompatibleError
from icy.core.streams import stream
from icy.core.text import listed, markdown_table
from icy.experiments.results import ProbeResult
from icy.grammars import make_language
from icy.languages.language import Language
from icy.metrics import nearest_grammar
from icy.records.kinds import points_of
from icy.records.load import long_of
from icy.records.long_table import options_of
from results.estimates import print_estimate, student_interval
from results.pages import RecordFolder, describe_packs, describe_version, fill_template, run_sweeps

HERE = Path(__file__).parent
PAGE, RECORDS = HERE / "iterated.md", RecordFolder(HERE)
STAGES = ("first", "senders", "bottlenecks")
GRAMMARS = ("concat", "perm", "shufdet", "proj", "rot", "pairsum", "hol")
MIDDLE = ("perm", "shufdet", "proj", "rot", "pairsum")  # grammars with a ratio that differ in how hard they are
POSITIONAL = ("concat", "perm")
EASY = ("perm", "shufdet")
NOISES = (0.0, 0.1, 0.3)
KNOWN_SEEDS = (range(1000, 1020), range(3000, 3020))  # the rule of nearest grammars was chosen with 2000 to 2019
SIZES, SMALL = ("4x5", 4, 3), ("3x4", 4, 2)  # meanings, V, w
ERRORS = {  # numbers of systematic errors of each kind; single rules of both spaces change similar shares of the tokens
    SIZES: {
        "none": (0,),
        "single values": (2, 10, 20),
        "pairs of values": (10, 40, 100),
        "copied": (1, 3),
        "constant": (1, 3),
    },
    SMALL: {
        "none": (0,),
        "single values": (1, 4, 8),
        "pairs of values": (3, 12, 30),
        "copied": (1, 2),
        "constant": (1, 2),
    },
}
REACHED = 0.9  # least share of learners at the target in a strict analysis
MOST_OF = 3  # least number of grammars that support the second hypothesis
FEWEST = 4  # least number of cells or senders for a correlation over them
NO_RECORDS = "chains; none has been trained yet"


# -- languages of known origin -----------------------------------------------------------------------------------------


def known_origin() -> str:
    """Return the confusion matrix of nearest grammars of languages of known origin, as a table."""
    lines = []
    for noise in NOISES:
        for origin in GRAMMARS:
            languages = [with_noise(make_language(origin, *SIZES, seed), noise, seed) for seed in KNOWN_SEEDS]
            found = [nearest_grammar(language) for language in languages]
            counts = Counter(one.grammar for one in found)
            own = np.mean([one.agreement[origin] for one in found])
            lines.append([f"{noise:g}", origin, *(str(counts[name] or "") for name in GRAMMARS), f"{own:.2f}"])
    return markdown_table(["noise", "origin", *GRAMMARS, "agreement with the origin"], lines)


def with_rules(language: Language, rules: int, values: int, seed: int) -> Language:
    """Return a language with systematic errors: rules that change one token of one attribute's word.

    Args:
        language: the language.
        rules: number of rules.
        values: number of values of other attributes that a meaning needs for a rule to apply.
        seed: seed of the rules.
    """
    generator, messages, meanings = stream(seed, "rules"), np.array(language.messages), np.asarray(language.meanings)
    attributes = meanings.shape[1]
    length = messages.shape[1] // attributes
    for _ in range(rules):
        *given, target = generator.permutation(attributes)[: values + 1]
        needed = generator.integers(meanings.max(0)[given] + 1)
        applies, place = (meanings[:, given] == needed).all(1), target * length + generator.integers(length)
        messages[applies, place] = (messages[applies, place] + 1) % language.vocab_size
    return replace(language, messages=messages)


def with_positions(language: Language, kind: str, count: int, seed: int) -> Language:
    """Return a language with systematic errors at some positions.

    Args:
        language: the language.
        kind: "constant" gives all messages one token at each of these positions; "copied" replaces the first token of
            words by the last token of the word before.
        count: number of positions.
        seed: seed of the positions and tokens.
    """
    generator, messages = stream(seed, "positions"), np.array(language.messages)
    length = messages.shape[1] // language.space.attributes
    starts = np.arange(messages.shape[1]) if kind == "constant" else np.arange(length, messages.shape[1], length)
    for place in generator.permutation(starts)[:count]:
        messages[:, place] = generator.integers(language.vocab_size) if kind == "constant" else messages[:, place - 1]
    return replace(language, messages=messages)


def with_errors(language: Language, kind: str, count: int, seed: int) -> Language:
    """Return a language with a number of systematic errors of a kind, a key of `ERRORS`."""
    if kind in ("single values", "pairs of values"):
        return with_rules(language, count, 1 if kind == "single values" else 2, seed)
    return with_positions(language, kind, count, seed) if count else language


def calibration(sizes: Sequence[str | int], seeds: Iterable[int]) -> pd.DataFrame:
    """Return the nearest grammars of languages with known errors: a row per origin, kind of errors, noise and seed."""
    rows = []
    for seed, origin in product(seeds, GRAMMARS):
        exact = make_language(origin, *sizes, seed)
        for (kind, counts), noise in product(ERRORS[sizes].items(), NOISES):
            for count in counts:
                language = with_noise(with_errors(exact, kind, count, seed), noise, seed)
                found = nearest_grammar(language)
                changed = float((language.messages != exact.messages).mean())
                rows.append((seed, origin, kind, count, noise, changed, found.grammar, found.errors))
    return pd.DataFrame(rows, columns=["seed", "origin", "kind", "count", "noise", "changed", "found", "errors"])


# -- chains ------------------------------------------------------------------------------------------------------------


def whole_senders(result: ProbeResult, chains: int) -> dict[str, ProbeResult]:
    """Return, for each bottleneck, the chains of senders that are complete: all chains of all grammars."""
    if not result.records:
        return {}
    long = with_settings(long_of(result.records))
    counts = long.groupby(["model", "bottleneck"])["key"].transform("nunique")
    whole = long[counts.eq(chains * len(GRAMMARS))]
    return {str(share): of_keys(result, part["key"]) for share, part in whole.groupby("bottleneck")}


def with_settings(long: pd.DataFrame) -> pd.DataFrame:
    """Return chains in long form with their bottleneck, and the share of their learners that reached the target."""
    options = [options_of(text) for text in long["options"]]
    shares = [reached / int(own["generations"]) for own, reached in zip(options, long["reached"], strict=True)]
    return long.assign(bottleneck=[own["bottleneck"] for own in options], at_target=shares)


def of_keys(result: ProbeResult, keys: Iterable[str]) -> ProbeResult:
    """Return the chains with some keys."""
    chosen = set(keys)
    return ProbeResult([record for record in result.records if record["key"] in chosen], folder=result.folder)


def cell_of(model: str) -> str:
    """Return the cell of a sender, or FC."""
    return model.partition(":")[2] or "FC"


def name_of(model: str) -> str:
    """Return the name of a model without its side."""
    return model.rpartition("/")[2]


def means_of(long: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return means over seeds: a row per sender, a column per grammar."""
    return long.assign(model=long["model"].map(name_of)).pivot_table(index="model", columns="grammar", values=value)


def ratios() -> pd.DataFrame:
    """Return the atlas's probes of senders at 3x4."""
    return probed_senders(icy.atlas().to_dataframe())


def within_text(survival: pd.DataFrame, what: str) -> str:
    """Return the within-sender correlations with the ratio as a table and a summary over senders and cells."""
    probes = means_of(ratios(), "value")[list(MIDDLE)]
    own = survival[[name for name in MIDDLE if name in survival]]
    senders, cells = within_model_order(probes, own), within_model_order(probes, own, cell_of)
    rows = [[name, f"{value:+.2f}"] for name, value in senders.correlations.items()]
    table = markdown_table(["sender", f"correlation of {what} with the ratio"], rows)
    text = f"Over senders: {_order_text(senders)}. Over cells: {_order_text(cells)}."
    return "\n\n".join([table, f"{text} **{verdict(cells.low, cells.high)}.**"])


def verdict(low: float, high: float, expected: int = -1) -> str:
    """Return whether a 95 % interval supports a hypothesis with an expected sign, opposes it, or leaves it open."""
    if not low <= high:
        return "Open: there is no interval"
    sign = 1 if low > 0 else -1 if high < 0 else 0
    return "Open" if not sign else "Supported" if sign == expected else "Opposed"


def _order_text(order: WithinOrder) -> str:
    ends = "" if math.isnan(order.low) else f" (95 % interval {order.low:+.2f} to {order.high:+.2f})"
    counts = f"negative in {order.negative} of {order.negative + order.positive}"
    return f"median {order.median:+.2f}{ends}, {counts}, sign test p = {order.p:.2g}"


def across_text(long: pd.DataFrame) -> str:
    """Return the correlations over senders of survival with the ratio, per grammar."""
    probes = ratios().assign(model=lambda table: table["model"].map(name_of))
    own = long.assign(model=long["model"].map(name_of))
    lines: list[list[str]] = []
    below = 0
    for grammar in MIDDLE:
        tables = [
            part[part["grammar"].eq(grammar)].pivot_table(index="model", columns="seed", values="value")
            for part in (probes, own)
        ]
        try:
            found = across_models(*tables, cell_of)
        except IncompatibleError:
            return f"Fewer than {FEWEST} cells have all chains, so this is not tested."
        lines.append([grammar, str(found.correlation), str(found.reliability_x), str(found.reliability_y)])
        below += found.correlation.high < 0
    heads = ["grammar", "correlation", "reliability of ratios", "reliability of survival"]
    text = (
        f"{below} of {len(MIDDLE)} intervals are below 0. **{'Supported' if below >= MOST_OF else 'Not supported'}.**"
    )
    return "\n\n".join([markdown_table(heads, lines), text])


def holistic_text(table: pd.DataFrame) -> str:
    """Return how much more compositional chains from hol become, and the correlation with the bias."""
    last = table["generation"].max()
    ends = table[table["grammar"].eq("hol") & table["generation"].eq(last)]
    rise = ends.assign(model=ends["model"].map(name_of), rise=ends["topsim"] - ends["topsim_chance"])
    bias = sender_bias(ratios())
    against = bias["hol"] - bias[list(EASY)].mean(axis=1)
    values = rise.groupby("model", sort=False)["rise"]
    lines = [
        [model, print_estimate(student_interval(part.to_numpy())), f"{against.get(model, math.nan):.2f}"]
        for model, part in values
    ]
    shared = [model for model in values.groups if model in against.index]
    found = rank_correlation([against[model] for model in shared], [values.get_group(model).mean() for model in shared])
    text = markdown_table(["sender", "topsim above chance", "bias against hol"], lines)
    more = f"Rank correlation over {len(shared)} senders: {found}. **{verdict(found.low, found.high, 1)}.**"
    few = f"Fewer than {FEWEST} senders have all chains, so the correlation is not tested."
    return "\n\n".join([text, more if len(shared) >= FEWEST else few])


@dataclass(frozen=True)
class Specificity:
    """Whether survival shows a bias that belongs to the sender, not only to the grammars.

    Attributes:
        held_out: for each sender, Spearman's correlation over grammars of survival with the accuracy of the same
            learners on meanings that they did not see.
        foreign: median correlation of a sender's survival with another sender's ratio.
        pairs: number of these pairs of senders.
        share: share of the variance of survival that is the interaction of sender and grammar.
        interaction: correlation of the interactions of survival and of log ratios.
        without: the same if one sender is left out: the smallest and the largest value.
    """

    held_out: list[float]
    foreign: float
    pairs: int
    share: float
    interaction: float
    without: tuple[float, float]

    @classmethod
    def of(cls, done: ProbeResult, survival: pd.DataFrame, probes: pd.DataFrame) -> Specificity:
        """Compute them from chains, means of survival, and ratios: a row per sender, a column per grammar."""
        rows = [
            (name_of(record["model"]), record["grammar"], dict(zip(points_of(record), point, strict=True)))
            for record in done.records
            for point in record["curve"][1:]
        ]
        unseen = pd.DataFrame([(*names, point["unseen_accuracy"]) for *names, point in rows], columns=["m", "g", "a"])
        means = unseen.pivot_table(index="m", columns="g", values="a")[list(survival)]
        own = [rank_correlation(means.loc[name], survival.loc[name]).value for name in survival.index]
        pairs = [
            rank_correlation(survival.loc[one], probes.loc[other]).value
            for one in survival.index
            for other in probes.index
            if one != other
        ]
        known = [value for value in pairs if math.isfinite(value)]  # a lookup table has equal ratios
        logs = probes.loc[survival.index].map(math.log)
        names = list(survival.index)
        parts = [[name for name in names if name != left_out] for left_out in names]
        without = [_interaction(survival.loc[part], logs.loc[part]) for part in parts]
        spread = (survival - survival.to_numpy().mean()).to_numpy()
        return cls(
            held_out=own,
            foreign=float(np.median(known)),
            pairs=len(known),
            share=float((_centred(survival) ** 2).sum() / (spread**2).sum()),
            interaction=_interaction(survival, logs),
            without=(min(without), max(without)),
        )

    @property
    def text(self) -> str:
        """The numbers in sentences.

        Raises:
            AssertionError: the records show a bias that belongs to the sender.
        """
        assert self.without[0] < 0 < self.without[1], "The interactions agree in sign: change the sentences."
        assert self.foreign < -0.5, "The ratios of other senders do not predict survival: change the sentences."
        return (
            "There is no evidence yet of a bias that belongs to the sender. The ratios of other senders predict "
            f"survival as well (median {self.foreign:+.2f} over {self.pairs} pairs of senders), and survival has the "
            "order of the same learners' accuracy on meanings that they did not see (correlations of "
            f"{min(self.held_out):+.2f} to {max(self.held_out):+.2f}). The interaction of sender and grammar is "
            f"{100 * self.share:.0f} % of the variance of survival. Its correlation with that of the log ratio is "
            f"{self.interaction:+.2f}, and {self.without[0]:+.2f} to {self.without[1]:+.2f} if one sender is left out: "
            "unknown."
        )


def _centred(table: pd.DataFrame) -> NDArray[np.float64]:
    """Return the interaction of rows and columns: a table without the means of its rows and columns."""
    values = table.to_numpy(float)
    return np.asarray(values - values.mean(0) - values.mean(1)[:, None] + values.mean())


def _interaction(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """Return Pearson's correlation of two tables' interactions."""
    return float(np.corrcoef(_centred(one).ravel(), _centred(other).ravel())[0, 1])


def specificity(done: ProbeResult, survival: pd.DataFrame) -> Specificity:
    """Return the `Specificity` of chains."""
    return Specificity.of(done, survival[list(MIDDLE)], means_of(ratios(), "value")[list(MIDDLE)])


def nearest_text(table: pd.DataFrame) -> str:
    """Return where chains end: counts of nearest grammars of the last languages, by first grammar."""
    ends = table[table["generation"].eq(table["generation"].max())]
    lines = []
    for first in GRAMMARS:
        own = ends.loc[ends["grammar"].eq(first), "nearest"]
        counts, positional = Counter(own), own.isin(POSITIONAL).mean()
        stays = own.eq(first).mean()
        lines.append([first, *(str(counts[name] or "") for name in GRAMMARS), f"{stays:.2f}", f"{positional:.2f}"])
    share = f"{ends['nearest'].eq('proj').sum()} of {len(ends)} chains end nearest to `proj`."
    caution = """This does not show that languages move towards it: `proj` contains `concat`, and a few systematic
errors make `proj` the nearest grammar of a language of `concat` (see the table of rules above)."""
    table_ = markdown_table(["first language", *GRAMMARS, "ends where it began", "concat or perm"], lines)
    return f"{table_}\n\n{share} {caution}"


def reached_text(long: pd.DataFrame) -> tuple[str, set[str]]:
    """Return a sentence on learners that missed the target, and the senders with at least 90 % at the target."""
    share = long["at_target"].groupby(long["model"].map(name_of)).mean()
    missed = [f"{model} ({value:.0%})" for model, value in share[share < REACHED].items()]
    text = "At least 90 % of the learners of every sender reached the target."
    text = f"Fewer than 90 % of the learners of {listed(missed)} reached the target." if missed else text
    return text, set(share[share >= REACHED].index)


def stage_text(name: str, share: str, done: ProbeResult) -> str:
    """Return the section of a bottleneck of a stage, from the chains of complete senders."""
    long = with_settings(long_of(done.records))
    pictures = draw(f"{name}-{share}", done)
    table = generations(done, metrics=())
    holistic = of_keys(done, long.loc[long["grammar"].eq("hol"), "key"])
    survival, distinct = means_of(long, "value"), means_of(long.assign(kept=_kept(table, long)), "kept")
    missed, good = reached_text(long)
    strict = survival[survival.index.isin(good)]
    parts = [
        f"## Stage `{name}`, bottleneck {share}",
        f"{len(done.records)} chains of {done_of(name, long)}. {missed}",
        done.table("markdown", "ci95").strip(),
        *(f"![{text}]({file})" for file, text in pictures.items()),
        "### 1. Within a sender",
        within_text(survival, "survival"),
        *(["Only senders at the target:", within_text(strict, "survival")] if 0 < len(strict) < len(survival) else []),
        *([specificity(done, survival).text] if len(survival) >= FEWEST else []),
        "### 2. Across senders",
        across_text(long),
        "### 3. Holistic languages",
        holistic_text(generations(holistic, metrics=("topsim",))),
        "### 4. Collapse",
        within_text(distinct, "distinct messages"),
        "### 5. Nearest grammars",
        nearest_text(table),
    ]
    return "\n\n".join(parts)


def done_of(name: str, long: pd.DataFrame) -> str:
    """Return the number of senders with all chains, and of all senders of the stage."""
    sweep = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
    done, all_ = long["model"].nunique(), len(sweep["model"])
    return f"{done} of {all_} senders" + ("; the other senders are not finished" if done < all_ else "")


def draw(name: str, result: ProbeResult) -> dict[str, str]:
    """Draw the curves and the paths of some chains; return the names of the pictures, with descriptions."""
    files = {f"iterated-{name}-curves.png": "Survival, distinct messages and topsim over generations"}
    chain_curves(result, spread="ci95").savefig(HERE / next(iter(files)), dpi=160)
    paths = f"iterated-{name}-paths.png"
    chain_paths(result).savefig(HERE / paths, dpi=160)
    return {**files, paths: "Paths of languages in bias space"}


def _kept(table: pd.DataFrame, long: pd.DataFrame) -> list[float]:
    """Return the distinct messages of the last language as a share of those of the first, for each row of `long`."""
    shares = table.groupby("key")["distinct"].agg(["first", "last"])
    kept = shares["last"] / shares["first"]
    return [float(kept[key]) for key in long["key"]]


# -- page --------------------------------------------------------------------------------------------------------------


def page(results: dict[str, ProbeResult]) -> str:
    """Return the page."""
    records = f"records made with {describe_packs(RECORDS.pack)}" if RECORDS.pack.exists() else NO_RECORDS
    chains = {"first": 4, "senders": 4, "bottlenecks": 10}
    sections: dict[frozenset[str], tuple[str, str, ProbeResult]] = {}  # by chains: stages may have the same so far
    for name, result in results.items():
        for share, done in whole_senders(result, chains[name]).items():
            sections.setdefault(frozenset(record["key"] for record in done.records), (name, share, done))
    return fill_template(
        PAGE,
        records=records,
        version=describe_version(),
        seeds=len(KNOWN_SEEDS),
        known=known_origin(),
        errors=known_errors(),
        results="\n\n".join(stage_text(*section) for section in sections.values()),
    )


def main(words: Sequence[str] | None = None) -> None:
    PAGE.write_text(page(run_sweeps(__doc__, words, RECORDS, STAGES)).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
