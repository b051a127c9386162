"""Metrics that are wrong in the way that a check looks for, which test_kinds checks; ranges and conventions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from icy import metrics, testing
from icy.core.registry import Entry, registry
from icy.languages.language import Language
from icy.metrics import Score, Table
from icy.testing import METRIC_CHECKS
from tests.testing.mistakes import Kind


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


def misnamed(meanings: Any, messages: Any = None) -> Score:
    return answer("something", *share(meanings, messages))


def wants_messages(meanings: Any, messages: Any) -> Score:
    return answer("wants_messages", *share(meanings, messages))


def never_defined(meanings: Any, messages: Any = None) -> Score:
    return Score("never_defined", math.nan, len(Table.of(meanings, messages)), why="I do not want to")


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


def looks_at_the_first(meanings: Any, messages: Any = None) -> Score:
    table = Table.of(meanings, messages)
    return answer("looks_at_the_first", table, float(np.sum(table.messages[:1] == table.messages)) / len(table))


def takes_tokens_for_numbers(meanings: Any, messages: Any = None) -> Score:
    table = Table.of(meanings, messages)
    return answer("takes_tokens_for_numbers", table, float(table.messages[:, :1].sum() / len(table)))


def wants_one_length(meanings: Any, messages: Any = None) -> Score:
    table, value = share(meanings, messages)
    assert len(set(table.lengths.tolist())) == 1
    return answer("wants_one_length", table, value)


def wants_whole_numbers(meanings: Any, messages: Any = None) -> Score:
    table, value = share(meanings, messages)
    np.bincount(table.meanings[:, 0])
    return answer("wants_whole_numbers", table, value)


def divides(meanings: Any, messages: Any = None) -> Score:
    table, value = share(meanings, messages)
    return answer("divides", table, value if len(table) > 1 else math.inf)


def wants_fresh_rows(meanings: Any, messages: Any = None) -> Score:
    table, value = share(meanings, messages)
    return answer("wants_fresh_rows", table, value + len(table.drawn_from or ()))


def ignores_weights(meanings: Any, messages: Any = None) -> Score:
    return answer("ignores_weights", *share(meanings, messages))


def wants_no_check(meanings: Any, messages: Any = None) -> Score:
    if messages is not None and len(meanings) != len(messages):
        raise ValueError("not as many")
    return answer("wants_no_check", *share(meanings, messages))


CALLS = [0]


def counts(meanings: Any, messages: Any = None) -> Score:
    CALLS[0] += 1
    table, value = share(meanings, messages)
    return answer("counts", table, value + 1e-12 * CALLS[0])


def draws_elsewhere(meanings: Any, messages: Any = None) -> Score:
    np.random.random()
    return answer("draws_elsewhere", *share(meanings, messages))


def sorts_in_place(meanings: Any, messages: Any = None) -> Score:
    found = answer("sorts_in_place", *share(meanings, messages))
    if isinstance(messages, np.ndarray):
        messages.sort()
    return found


WRONG = {
    "made_by_name": misnamed,
    "arguments": wants_messages,
    "score": never_defined,
    "documented_range": out_of_range,
    "conventions_repeat_the_value": states_otherwise,
    "choices_are_conventions": hides_a_choice,
    "same_however_given": likes_languages,
    "rows_in_any_order": looks_at_the_first,
    "names_do_not_matter": takes_tokens_for_numbers,
    "ragged_messages": wants_one_length,
    "continuous_meanings": wants_whole_numbers,
    "undefined_says_why": divides,
    "resampled_rows": wants_fresh_rows,
    "weights": ignores_weights,
    "refuses_what_is_no_table": wants_no_check,
    "deterministic": counts,
    "random_state_untouched": draws_elsewhere,
    "inputs_unchanged": sorts_in_place,
}


KIND = Kind(
    "metric",
    METRIC_CHECKS,
    WRONG,
    plain,
    {"documented_range": "from 0 to 1", "choices_are_conventions": "tried power=2"},
)


def test_a_score_counts_its_rows() -> None:
    def miscounts(meanings: Any, messages: Any = None) -> Score:
        return Score("miscounts", 0.5, 1)

    results = {r.name: r for r in testing.check(miscounts, "metric", raise_on_failure=False)}
    assert results["score"].message == "On a common table of 40 rows the score says rows = 1, and there are 40."


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
