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

import icy
from icy.analysis.chains import FLOOR, PREDICTS, generations, with_noise
from icy.analysis.correlations import (
    WithinModelCorrelation,
    across_models,
    rank_correlation,
    within_model_order,
    without_margins,
)
from icy.analysis.emergence import probed_senders, sender_bias
from icy.analysis.plots.chain_plots import chain_curves, chain_paths
from icy.core.errors import IncompatibleError
from icy.core.streams import stream
from icy.core.text import counted, listed, markdown_table
from icy.experiments.results import ProbeResult
from icy.grammars import make_language
from icy.languages.language import Language
from icy.metrics import nearest_grammar
from icy.records.kinds import points_of
from icy.records.load import long_of
from icy.records.long_table import option_columns
from results.estimates import print_estimate, student_interval
from results.pages import RecordFolder, describe_packs, describe_version, fill_template, run_sweeps

HERE = Path(__file__).parent
PAGE, RECORDS = HERE / "iterated.md", RecordFolder(HERE)
STAGES = ("first", "senders", "bottlenecks")
GRAMMARS = ("concat", "perm", "shufdet", "proj", "rot", "pairsum", "hol")
MIDDLE = ("perm", "shufdet", "proj", "rot", "pairsum")  # grammars with a ratio that differ in how hard they are
POSITIONAL = ("concat", "perm")
EASY = ("perm", "shufdet")
VERSIONS = ("concat", "perm", "shufdet", "rot", "pairsum")
RULES = ("single values", "pairs of values")  # kinds of systematic errors that are rules on values
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
FEWEST_CELLS = 6  # of an interval over cells
FEWEST = 4  # least number of cells or senders for a correlation over them
NO_RECORDS = "chains; none has been trained yet"


# -- languages of known origin -----------------------------------------------------------------------------------------


def known_origin(table: pd.DataFrame) -> str:
    """Return the confusion matrix of languages without systematic errors, from a `calibration`."""
    lines = []
    for (noise, origin), own in table[table["kind"].eq("none")].groupby(["noise", "origin"], sort=False):
        counts = Counter(own["found"])
        agreement = f"{own['agreement'].mean():.2f}"
        lines.append([f"{noise:g}", str(origin), *(str(counts[name] or "") for name in GRAMMARS), agreement])
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
    if kind in RULES:
        return with_rules(language, count, 1 + RULES.index(kind), seed)
    return with_positions(language, kind, count, seed) if count else language


def calibration(sizes: tuple[str, int, int], seeds: Iterable[int]) -> pd.DataFrame:
    """Return the nearest grammars of languages with known errors: a row per origin, kind of errors, noise and seed."""
    rows = []
    for seed, origin in product(seeds, GRAMMARS):
        exact = make_language(origin, *sizes, seed)
        for (kind, counts), noise in product(ERRORS[sizes].items(), NOISES):
            for count in counts:
                language = with_noise(with_errors(exact, kind, count, seed), noise, seed)
                found = nearest_grammar(language)
                changed = float((language.messages != exact.messages).mean())
                own = (found.agreement[origin], found.agreement["proj"], found.grammar, found.errors)
                rows.append((seed, origin, kind, count, noise, changed, *own))
    names = ("seed", "origin", "kind", "count", "noise", "changed", "agreement", "proj", "found", "errors")
    return pd.DataFrame(rows, columns=names)


def calibration_text(table: pd.DataFrame) -> str:
    """Return how often the origin of languages with known errors is found, and their errors are called systematic."""
    table = table.assign(right=table["found"].eq(table["origin"]), systematic=table["errors"].eq("systematic"))
    exact = table[table["noise"].eq(0)].groupby(["kind", "count"])["changed"].mean()
    cells = table.groupby(["kind", "count", "origin"])
    right, systematic = cells["right"].agg(["sum", "size"]), cells["systematic"].mean()
    found, called = [], []
    for kind, count in dict.fromkeys(zip(table["kind"], table["count"], strict=True)):
        head = [kind, str(count or ""), f"{100 * exact[kind, count]:.1f} %"]
        places = [(kind, count, name) for name in GRAMMARS]
        found.append([*head, *(f"{right['sum'][place]}" for place in places)])
        called.append([*head, *(f"{100 * systematic[place]:.0f} %" for place in places)])
    heads = ["systematic errors", "number", "tokens changed", *GRAMMARS]
    each = int(right["size"].iloc[0])
    return "\n\n".join(
        [
            f"Languages, of {each}, that are recognized as versions of their origin:",
            markdown_table(heads, found),
            _found_text(table),
            "Languages with errors that are called systematic relative to the grammar found:",
            markdown_table(heads, called),
            _errors_text(table),
        ]
    )


def _found_text(table: pd.DataFrame) -> str:
    """Return in sentences how often the origin is found, and which other grammars are found."""
    shares = table.groupby("seed")["right"].mean().to_numpy()
    parts = [
        f"{own['right'].sum():,} of {len(own):,} for seeds {seeds[0]} to {seeds[-1]}"
        for seeds in KNOWN_SEEDS
        for own in [table[table["seed"].isin(seeds)]]
    ]
    noises = [f"{100 * own['right'].mean():.1f} % with noise {noise:g}" for noise, own in table.groupby("noise")]
    wrong = Counter(zip(*(table.loc[~table["right"], name] for name in ("origin", "found", "kind")), strict=True))
    most = [f"{count} of {origin} as {found} ({kind})" for (origin, found, kind), count in wrong.most_common(4)]
    versions = table[~table["origin"].isin(["proj", "hol"])]
    general, special = versions["found"].eq("proj"), table.loc[table["origin"].eq("proj"), "found"].isin(VERSIONS)
    return (
        f"The origin is found for {listed(parts)}; share by seed: {print_estimate(student_interval(shares), 3)}. "
        f"It is found for {listed(noises)}. {general.sum()} of {len(general):,} languages of other grammars than proj "
        f"and hol are taken for languages of proj, and {special.sum()} of {len(special):,} languages of proj for one "
        f"of {listed(VERSIONS, 'or')}. The most frequent mistakes are {listed(most)}."
    )


def _errors_text(table: pd.DataFrame) -> str:
    """Return in sentences how often errors are called systematic, and how systematic errors change the agreement."""
    none, rules = table["kind"].eq("none"), table["kind"].isin(RULES) & table["origin"].isin(VERSIONS)
    false, true = table.loc[none, "systematic"], table.loc[rules & table["right"], "systematic"]
    exact = table[rules & table["noise"].eq(0)]
    above = (exact["proj"] > exact["agreement"]).sum()
    gap = (exact["agreement"] - 1 + exact["changed"]).groupby([exact["origin"], exact["kind"], exact["count"]]).mean()
    return (
        f"Without systematic errors, {false.sum()} of {len(false)} languages are said to have some. Of languages of "
        f"{listed(VERSIONS)} with rules on values that are recognized, {100 * true.mean():.1f} % are said to have "
        "systematic errors. Without noise, the mean agreement of these languages with their origin is "
        f"{gap.min():+.3f} to {gap.max():+.3f} from the share of tokens that the rules leave, by origin and number of "
        "rules: rules that change a word are no errors, and many rules make a few words be estimated wrongly. proj has "
        f"a larger agreement than the origin for {above:,} of these {len(exact):,} languages."
    )


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
    options = option_columns(long)
    return long.assign(bottleneck=options["bottleneck"], at_target=long["reached"] / options["generations"].astype(int))


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


def _order_text(order: WithinModelCorrelation) -> str:
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
        without = [interaction_of(survival.loc[part], logs.loc[part]) for part in parts]
        spread = (survival - survival.to_numpy().mean()).to_numpy()
        return cls(
            held_out=own,
            foreign=float(np.median(known)),
            pairs=len(known),
            share=float((without_margins(survival.to_numpy(float)) ** 2).sum() / (spread**2).sum()),
            interaction=interaction_of(survival, logs),
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


def interaction_of(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """Return Pearson's correlation of two tables' interactions."""
    return float(np.corrcoef(*(without_margins(table.to_numpy(float)).ravel() for table in (one, other)))[0, 1])


def specificity(done: ProbeResult, survival: pd.DataFrame) -> Specificity:
    """Return the `Specificity` of chains."""
    return Specificity.of(done, survival[list(MIDDLE)], means_of(ratios(), "value")[list(MIDDLE)])


def nearest_text(table: pd.DataFrame) -> str:
    """Return where chains end: counts and distances of nearest grammars of the last languages, by first grammar."""
    ends = table[table["generation"].eq(table["generation"].max())]
    counts, distances = [], []
    for first in GRAMMARS:
        own = ends[ends["grammar"].eq(first)]
        nearest, systematic = Counter(own["nearest"]), own["errors"].eq("systematic").sum()
        shares = (own["nearest"].eq(first).mean(), own["nearest"].isin(POSITIONAL).mean())
        numbers = (str(nearest[name] or "") for name in GRAMMARS)
        counts.append([first, *numbers, str(systematic), *(f"{share:.2f}" for share in shares)])
        means = own[[f"{start}{name}" for start in (PREDICTS, FLOOR) for name in GRAMMARS]].mean()
        pairs = ((1 - means[f"{PREDICTS}{name}"], 1 - means[f"{FLOOR}{name}"]) for name in GRAMMARS)
        distances.append([first, *(f"{distance:.2f} ({floor:.2f})" for distance, floor in pairs)])
    heads = ["first language", *GRAMMARS, "systematic errors", "ends where it began", "concat or perm"]
    return "\n\n".join(
        [
            "Last languages by the grammar of which they are versions:",
            markdown_table(heads, counts),
            _ends_text(ends),
            "Mean distance from each grammar, the share of tokens that it does not predict. In brackets: its noise "
            "floor, the distance of draws of this grammar with the same share of random errors.",
            markdown_table(["first language", *GRAMMARS], distances),
            _distance_text(ends),
        ]
    )


def _ends_text(ends: pd.DataFrame) -> str:
    """Return in sentences whether chains end as versions of their first grammar."""
    worded, stays = ends[ends["grammar"].ne("hol")], ends["nearest"].eq(ends["grammar"])
    kept = worded[stays[worded.index]]
    by_sender = stays[worded.index].groupby(worded["model"].map(name_of)).agg(["sum", "size"])
    senders = [f"{name} {own['sum']} of {own['size']}" for name, own in by_sender.iterrows()]
    others = ends[~ends["grammar"].isin(POSITIONAL)]
    moved, hol = others["nearest"].isin(POSITIONAL).sum(), ends.loc[ends["grammar"].eq("hol"), "nearest"]
    cells = ends["model"].map(name_of).map(cell_of).nunique()
    too_few = ", too few for an interval over cells, so hypothesis 5 is **open**"
    return (
        f"{len(kept)} of {len(worded)} chains that do not begin with hol end as versions of their first grammar "
        f"({listed(senders)}), {kept['errors'].eq('systematic').sum()} of them with systematic errors. {moved} of "
        f"{len(others)} chains that begin with another grammar end as concat or perm. Of chains from hol, "
        f"{hol.eq('proj').sum()} of {len(hol)} end as proj: their tokens have become predictable by sums of scores of "
        f"the values, as in proj, and the rule finds no other grammar in them. The chains are of "
        f"{counted(cells, 'cell')}{too_few if cells < FEWEST_CELLS else ''}."
    )


def _distance_text(ends: pd.DataFrame) -> str:
    """Return in a sentence how many languages that keep their grammar are predicted better by proj than by it."""
    kept = ends[ends["nearest"].eq(ends["grammar"]) & ends["nearest"].isin(VERSIONS)]
    own = np.array([row[f"{PREDICTS}{row['nearest']}"] for _, row in kept.iterrows()])
    above = int((kept[f"{PREDICTS}proj"] > own).sum())
    return (
        f"proj has the smaller distance for {above} of the {len(kept)} languages that are versions of their first "
        "grammar other than proj. The distance from proj alone would call these languages of proj, because proj also "
        "predicts a part of the systematic errors."
    )


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
    known = {sizes: pd.concat([calibration(sizes, seeds) for seeds in KNOWN_SEEDS]) for sizes in ERRORS}
    return fill_template(
        PAGE,
        records=records,
        version=describe_version(),
        seeds=sum(map(len, KNOWN_SEEDS)),
        known=known_origin(known[SIZES]),
        errors=calibration_text(known[SIZES]),
        small=calibration_text(known[SMALL]),
        results="\n\n".join(stage_text(*section) for section in sections.values()),
    )


def main(words: Sequence[str] | None = None) -> None:
    PAGE.write_text(page(run_sweeps(__doc__, words, RECORDS, STAGES)).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
