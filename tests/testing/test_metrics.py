"""Checks of metrics and grammars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from icy import metrics, testing
from icy.core.registry import Entry, registry
from icy.grammars import Corruption
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.metrics import Score, Table
from icy.testing import ContractError
from tests.testing.helpers import seedless
from tests.testing.mistakes import Kind

# -- metrics that are wrong in the way that a check looks for, which test_kinds checks; ranges and conventions ---------


def share(meanings: Any, messages: Any = None, **conventions: Any) -> tuple[Table, float]:
    """The table, and the share of its messages that are distinct."""
    table = Table.of(meanings, messages)
    return table, len({tuple(message) for message in table.messages.tolist()}) / len(table)


def plain(meanings: Any, messages: Any = None, *, power: int = 1) -> Score:
    """Share of the messages that are distinct.

    Returns:
        A score in [0, 1].
    """
    table, value = share(meanings, messages)
    return Score("plain", value**power, len(table), {"power": power})


def answer(name: str, table: Table, value: float, **conventions: Any) -> Score:
    return Score(name, value, len(table), conventions)


def wants_messages(meanings: Any, messages: Any) -> Score:
    return answer("wants_messages", *share(meanings, messages))


def out_of_range(meanings: Any, messages: Any = None) -> Score:
    """Share of the messages that are distinct.

    Returns:
        A score in [0, 0.2], or so it says.
    """
    return answer("out_of_range", *share(meanings, messages))


def states_otherwise(meanings: Any, messages: Any = None, *, power: int = 1) -> Score:
    table, value = share(meanings, messages)
    return answer("states_otherwise", table, value**power, power=power + 1)


def hides_a_choice(meanings: Any, messages: Any = None, *, squared: bool = False) -> Score:
    table, value = share(meanings, messages)
    return answer("hides_a_choice", table, value**2 if squared else value)


def likes_languages(meanings: Any, messages: Any = None) -> Score:
    table, value = share(meanings, messages)
    return answer("likes_languages", table, value / 2 if isinstance(meanings, Language) else value)


def ignores_weights(meanings: Any, messages: Any = None) -> Score:
    return answer("ignores_weights", *share(meanings, messages))


def wants_no_check(meanings: Any, messages: Any = None) -> Score:
    if messages is not None and len(meanings) != len(messages):
        raise ValueError("not as many")
    return answer("wants_no_check", *share(meanings, messages))


def sorts_in_place(meanings: Any, messages: Any = None) -> Score:
    found = answer("sorts_in_place", *share(meanings, messages))
    if isinstance(messages, np.ndarray):
        messages.sort()
    return found


def metric(value: Callable[[Table, float], float]) -> Callable[..., Score]:
    """Return a metric with the value of a function of the table and of the share of its distinct messages."""

    def scored(meanings: Any, messages: Any = None) -> Score:
        table, usual = share(meanings, messages)
        return answer("scored", table, value(table, usual))

    return scored


def wants_one_length(table: Table, usual: float) -> float:
    assert len(set(table.lengths.tolist())) == 1
    return usual


CALLS = itertools.count()
WRONG = {
    "made_by_name": lambda meanings, messages=None: answer("something", *share(meanings, messages)),
    "arguments": wants_messages,
    "score": lambda meanings, messages=None: Score("<lambda>", math.nan, len(Table.of(meanings, messages)), why="no"),
    "documented_range": out_of_range,
    "conventions_repeat_the_value": states_otherwise,
    "choices_are_conventions": hides_a_choice,
    "same_however_given": likes_languages,
    "rows_in_any_order": metric(lambda table, usual: float((table.messages[:1] == table.messages).sum()) / len(table)),
    "names_do_not_matter": metric(lambda table, usual: float(table.messages[:, :1].sum() / len(table))),
    "ragged_messages": metric(wants_one_length),
    "continuous_meanings": metric(lambda table, usual: usual + 0 * len(np.bincount(table.meanings[:, 0]))),
    "undefined_says_why": metric(lambda table, usual: usual if len(table) > 1 else math.inf),
    "resampled_rows": metric(lambda table, usual: usual + len(table.drawn_from or ())),
    "weights": ignores_weights,
    "refuses_what_is_no_table": wants_no_check,
    "deterministic": metric(lambda table, usual: usual + 1e-12 * next(CALLS)),
    "random_state_untouched": metric(lambda table, usual: usual + 0 * np.random.random()),
    "inputs_unchanged": sorts_in_place,
}


KIND = Kind(
    "metric",
    WRONG,
    plain,
    {"documented_range": "from 0 to 1", "choices_are_conventions": "tried power=2"},
)


def test_a_score_counts_its_rows() -> None:
    def miscounts(meanings: Any, messages: Any = None) -> Score:
        return Score("miscounts", 0.5, 1)

    results = {r.name: r for r in testing.check(miscounts, "metric", raise_on_failure=False)}
    assert results["score"].message == "On a common table of 40 rows the score has rows = 1, but there are 40."


def test_a_number_is_no_score() -> None:
    results = {r.name: r for r in testing.check(lambda x, y=None: 1.0, "metric", raise_on_failure=False)}
    assert results["score"].message == "The metric returns a float, not an icy.metrics.Score."


def test_ranges_are_read_from_docstrings() -> None:
    said = {}
    for name in ("topsim", "ami", "residual_entropy"):
        results = {r.name: r for r in testing.check(name, "metric")}
        said[name] = results["documented_range"].message
    assert said == {"topsim": "from -1 to 1", "ami": "from -inf to 1", "residual_entropy": "from 0 to inf"}


@pytest.mark.slow
def test_sampled_scores_may_differ_by_their_errors() -> None:
    results = {r.name: r for r in testing.check("factor_vae", "metric")}
    assert all(r.passed for r in results.values())
    assert "seed=1" in results["choices_are_conventions"].message


def test_registered_metrics_are_found() -> None:
    assert all(r.passed and not r.excused for r in testing.check(metrics.hce, "metric") if r.name == "made_by_name")
    entry = Entry("metric", "plain", plain, "", "", defaults={"power": 2}, origin=__name__)
    with registry.holding(entry):
        assert not any(r.excused for r in testing.check(entry, "metric") if r.name == "made_by_name")


# -- the checks of grammars: each fails for a grammar that is wrong in the way it looks for ----------------------------


def global_draws(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.random.randint(vocab_size, size=(space.size, space.attributes * word_length))


def too_many_tokens(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return seedless(space, vocab_size, word_length, seed) + vocab_size


def too_long(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return seedless(space, vocab_size, word_length + 1, seed)


def one_space(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(vocab_size, size=(64, 6))


def divides(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(vocab_size, size=(space.size, space.attributes * word_length)) + 0 // (
        word_length - 1
    )


class InPlace(Corruption):
    """A corruption that changes its input in place."""

    def apply(self, messages: Any, table: Any) -> Any:
        messages[:, 0] = 0
        return messages


class ForNobody(Corruption):
    """A corruption for neither senders nor receivers."""

    sides = ()

    def apply(self, messages: Any, table: Any) -> Any:
        return messages


class DropsTokens(Corruption):
    """A corruption that shortens messages."""

    shorter_words = True

    def apply(self, messages: Any, table: Any) -> Any:
        return np.where(messages == 0, -1, messages) if table.shorter_words else messages


@pytest.mark.parametrize(
    ("grammar", "check"),
    [
        (DropsTokens, "words_of_different_lengths"),
        (global_draws, "same_seed_same_language"),
        (global_draws, "random_state_untouched"),
        (seedless, "different_seeds_differ"),
        (too_many_tokens, "messages"),
        (too_long, "messages"),
        (one_space, "other_settings"),
        (divides, "small_vocabulary"),
        (InPlace, "base_messages_unchanged"),
        (ForNobody, "sides"),
    ],
)
def test_a_wrong_grammar_is_found_out(grammar: Callable[..., Any], check: str) -> None:
    results = {r.name: r for r in testing.check(grammar, "grammar", raise_on_failure=False)}
    assert not results[check].passed
    assert results[check].message


def test_grammars_need_no_registration_to_be_checked() -> None:
    before = registry.entries("grammar")
    results = testing.check(seedless, "grammar", expected_failures={"different_seeds_differ": "it draws nothing"})
    assert all(r.passed for r in results)
    assert registry.entries("grammar") == before
    assert {r.name: r for r in testing.check("hol", "grammar")}["chains"].message.startswith("refused")
    with pytest.raises(ContractError, match="different_seeds_differ"):
        testing.check(seedless, "grammar")
