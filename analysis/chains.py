"""Chains of learners: measures of the language of each generation, with values by chance, and the nearest grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from icy.core.errors import InvalidSettingError
from icy.core.progress import track
from icy.core.streams import stream
from icy.languages.language import Language
from icy.metrics import evaluate, nearest_grammar
from icy.records.kinds import kind_of, points_of
from icy.records.load import long_of
from icy.records.long_table import ROW
from icy.records.record import HasRecords, Record

if TYPE_CHECKING:
    import pandas as pd

KIND = "chain"
METRICS = ("topsim", "posdis", "bosdis", "residual_entropy", "cbm")
# The exhaustive search for positions takes 5 s at 4x5, and finds positions that identify any meaning.
CONVENTIONS = {"residual_entropy": {"search": "greedy"}}
CHANCE = "_chance"  # end of the columns of values by chance
PREDICTS = "predicts_"  # beginning of the columns of agreements with grammars
FLOOR = "floor_"  # beginning of the columns of agreements that draws of grammars reach


@runtime_checkable
class KeptResults(HasRecords, Protocol):
    """Results with records and their files, such as a ProbeResult."""

    def content(self, place: str) -> bytes:
        """Return a file of a record."""


def chains_of(results: HasRecords) -> list[Record]:
    """Return the records of the chains that did not fail.

    Raises:
        InvalidSettingError: no chains.
    """
    chains = [r for r in results.records if kind_of(r).name == KIND and not r["failed"]]
    if not chains:
        raise InvalidSettingError(
            "These results have no chains; `icy iterate` passes languages from learner to learner."
        )
    return chains


def one_setting(chains: Sequence[Record]) -> Sequence[Record]:
    """Return chains if each has its own model, first language and seed, and all have one space.

    Raises:
        InvalidSettingError: chains of several settings.
    """
    spaces = {(r["meanings"], r["vocab_size"], r["word_length"]) for r in chains}
    if len(spaces) > 1 or len({(r["model"], r["grammar"], r["seed"]) for r in chains}) < len(chains):
        long = long_of(list(chains))
        column = next((name for name in ROW[1:] if long[name].nunique(dropna=False) > 1), "options")
        raise InvalidSettingError(
            "These chains have several settings, such as bottlenecks, and one plot would mix them: give the records of "
            f"one setting, as in ProbeResult([...]), or on the command line --where '{column}={long[column].iloc[0]}'."
        )
    return chains


def chain_points(record: Record) -> list[dict[str, object]]:
    """Return the curve of a chain: a row per generation."""
    about = {name: record[name] for name in ("model", "grammar", "seed", "key")}  # type: ignore[literal-required]
    return [{**about, **dict(zip(points_of(record), point, strict=True))} for point in record["curve"]]


def chain_languages(results: KeptResults, record: Record) -> list[Language]:
    """Return the languages of a chain: the first language, then the language of each generation.

    Args:
        results: the results with the record and its files: a ProbeResult of a run, a results folder or a pack.
        record: record of a chain.

    Returns:
        The languages, one per generation, the first language at index 0.

    Raises:
        StoreError: a file was removed.
    """
    matches = (re.search(r"-(\d+)\.npz$", place) for place in record.get("files", ()))
    places = {int(match[1]): match.string for match in matches if match}
    return [Language.from_bytes(results.content(places[generation])) for generation in sorted(places)]


def generations(
    results: KeptResults, *, metrics: Sequence[str] = METRICS, permutations: int | None = 10, seed: int = 0
) -> pd.DataFrame:
    """Measure the language of every generation of some chains.

    In a population, points of the curve are means over its members, and the other columns are of the language of the
    first learner of the generation.

    It takes about 0.6 s per language at 4x5 with the defaults, and 0.02 s with `metrics=()`, after a second for the
    draws of `nearest_grammar`.

    Args:
        results: results of `icy.iterate`, or `ProbeResult.load` of a results folder or pack.
        metrics: metrics to compute; residual entropy uses the greedy search.
        permutations: number of random assignments of the messages to meanings, for values by chance; None for none.
        seed: seed of the permutations, and of the halves and draws of `nearest_grammar`.

    Returns:
        A row per chain and generation: `model`, `grammar` (the first language), `seed`, `key`, the points of the
        chain's curve (`accuracy` is survival), each metric with `METRIC_chance`, the mean over permutations,
        `nearest`, the grammar that the language is a version of (`icy.metrics.nearest_grammar`), `errors` relative to
        it ("none", "random" or "systematic"), `predicts_GRAMMAR`, the agreement of each grammar, and `floor_GRAMMAR`,
        the agreement that draws of this grammar reach with the same share of random errors.

    Raises:
        InvalidSettingError: no chains.
        StoreError: a language was removed.

    Example:
        >>> import icy, tempfile
        >>> from icy.analysis.chains import generations
        >>> result = icy.iterate("FC2L", "perm", quick=True, chains=1, workers=1, out=tempfile.mkdtemp())
        >>> table = generations(result, metrics=["posdis"])
        >>> table["generation"].tolist(), table["nearest"].tolist()
        ([0, 1, 2, 3], ['perm', 'perm', 'perm', 'perm'])
        >>> table["errors"].tolist()
        ['none', 'systematic', 'random', 'random']
    """
    import pandas as pd

    records = track(list(chains_of(results)), "chains")
    return pd.DataFrame(
        [row for record in records for row in _rows(results, record, tuple(metrics), permutations, seed)]
    )


def _rows(
    results: KeptResults, record: Record, metrics: Sequence[str], permutations: int | None, seed: int
) -> Iterator[dict[str, object]]:
    for row, language in zip(chain_points(record), chain_languages(results, record), strict=True):
        if metrics:
            own = {name: CONVENTIONS[name] for name in metrics if name in CONVENTIONS}
            found = evaluate(language, metrics=metrics, conventions=own, permutations=permutations, seed=seed)
            columns = [*metrics, *(f"{name}{CHANCE}" for name in metrics if permutations)]
            row |= {name: found[name].item() for name in columns if name in found}
        nearest = nearest_grammar(language, seed=seed)
        agreement = {f"{PREDICTS}{name}": share for name, share in nearest.agreement.items()}
        floor = {f"{FLOOR}{name}": share for name, share in nearest.floor.items()}
        yield row | {"nearest": nearest.grammar, "errors": nearest.errors} | agreement | floor


def with_noise(language: Language, share: float, seed: int) -> Language:
    """Return a language in which random tokens replace a share of the tokens. A random token may equal the old one.

    Args:
        language: the language.
        share: from 0 to 1.
        seed: seed of the positions and tokens.
    """
    generator, messages = stream(seed, "noise"), np.array(language.messages)
    replaced = generator.random(messages.shape) < share
    messages[replaced] = generator.integers(language.vocab_size, size=int(replaced.sum()))
    return replace(language, messages=messages)
