"""Context independence, and NPMI."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icy
from icy.core.errors import IcyError, UnknownNameError
from icy.metrics import context, context_independence, npmi

# -- context independence, by co-occurrence and by alignment -----------------------------------------------------------


TWO = list(itertools.product(range(2), repeat=2))


def by_hand(meanings: np.ndarray, messages: list[list[int]]) -> float:
    """The definition, by dictionaries."""
    counts: dict[Any, dict[int, int]] = {}
    for meaning, message in zip(meanings.tolist(), messages, strict=True):
        for concept in enumerate(meaning):
            for token in message:
                counts.setdefault(concept, {}).setdefault(token, 0)
                counts[concept][token] += 1
    totals: dict[int, int] = {}
    for of_one in counts.values():
        for token, n in of_one.items():
            totals[token] = totals.get(token, 0) + n
    concepts = {concept for meaning in meanings.tolist() for concept in enumerate(meaning)}
    products = []
    for concept in concepts:
        of_one = counts.get(concept, {})
        most = max(of_one.values(), default=0)
        found = [n / sum(of_one.values()) * n / totals[token] for token, n in of_one.items() if n == most]
        products.append(max(found, default=0))
    return float(np.mean(products))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(2, 20))
def test_it_is_the_definition(seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, 2))
    meanings[:2, 0] = 0, 1
    messages = [random.integers(4, size=random.integers(0, 4)).tolist() for _ in range(rows)]
    if any(messages):
        assert context_independence(meanings, messages).value == pytest.approx(by_hand(meanings, messages), abs=1e-9)


def test_ties() -> None:
    messages = [(1 + a, 3 + b, 0) for a, b in TWO]
    assert context_independence(TWO, messages).value == pytest.approx(1 / 6)
    assert context_independence(TWO, messages, ties="lowest").value == pytest.approx(1 / 12)
    assert context_independence(TWO, messages, eos=0).value == pytest.approx(1 / 4)


def test_alignment_restores_what_co_occurrence_loses() -> None:
    meanings = icy.MeaningSpace(3, 4).all()
    messages = meanings + 4 * np.arange(3)
    score = context_independence(meanings, messages, alignment="em")
    assert score.details["converged"]
    assert score.details["change"] < score.details["tolerance"] == 1e-7
    assert 1 - 1e-6 < score.value < 1
    frame = score.details["concepts"]
    assert (frame["token"] == frame["value"] + 4 * frame["attribute"]).all()
    assert context_independence(meanings, messages).value == pytest.approx(1 / 9)
    assert context_independence(meanings, np.tile(messages, (1, 2)), alignment="em").value == pytest.approx(1, abs=1e-3)
    noise = np.random.default_rng(0).integers(12, size=messages.shape)
    assert context_independence(meanings, noise, alignment="em").value < 0.6


def test_smoothing_of_the_common_form() -> None:
    plain, smooth = (context_independence(TWO, TWO, smoothing=s).value for s in (0, 1e-7))
    assert plain == 0.28125
    assert smooth == pytest.approx(plain, abs=1e-6)
    assert smooth != plain


def test_mistakes_and_silence() -> None:
    for options, sentence in (
        ({"alignment": "ibm"}, "No alignment is called 'ibm'"),
        ({"ties": "first"}, "No rule for ties is called 'first'"),
        ({"chosen_by": "token_given_concepts"}, "did you mean token_given_concept"),
        ({"smoothing": -1}, "at least 0"),
        ({"smoothing": math.nan}, "at least 0"),
    ):
        with pytest.raises(IcyError, match=sentence):
            context_independence(TWO, TWO, **options)  # type: ignore[arg-type]
    silent = context_independence([[0], [1]], ["", ""])
    assert math.isnan(silent.value)
    assert "empty" in silent.why


def aligned_by_hand(meanings: list[list[int]], messages: list[list[int]], rounds: int) -> dict[Any, float]:
    """IBM's first model, by dictionaries: the counts that it shares out to each concept and token."""
    links = [(tuple(enumerate(x)), v) for x, message in zip(meanings, messages, strict=True) for v in message]
    near = {(c, v) for concepts, v in links for c in concepts}
    share = {(c, v): 1 / sum(other == c for other, _ in near) for c, v in near}
    counts: dict[Any, float] = {}
    for _ in range(rounds):
        counts = dict.fromkeys(near, 0.0)
        for concepts, v in links:
            for c in concepts:
                counts[c, v] += share[c, v] / sum(share[other, v] for other in concepts)
        total = {c: sum(n for (other, _), n in counts.items() if other == c) for c, _ in near}
        share = {(c, v): n / total[c] for (c, v), n in counts.items()}
    return counts


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_alignment_is_the_model(seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, 2))
    meanings[:2, 0] = 0, 1
    messages = [random.integers(4, size=random.integers(1, 4)).tolist() for _ in range(rows)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "MOST_ROUNDS", 4)
        patch.setattr(context, "PAIRS_AT_ONCE", 5)
        details = context_independence(meanings, messages, alignment="em").details
    assert details["rounds"] <= details["most_rounds"] == 4
    assert details["converged"] == (details["change"] < details["tolerance"])
    counts = aligned_by_hand(meanings.tolist(), messages, details["rounds"])
    for row in details["concepts"].itertuples():
        concept = row.attribute, row.value
        of_concept = sum(n for (c, _), n in counts.items() if c == concept)
        of_token = sum(n for (_, v), n in counts.items() if v == row.token)
        found = counts[concept, int(row.token)]
        assert row.token_given_concept == pytest.approx(found / of_concept, abs=1e-9)
        assert row.concept_given_token == pytest.approx(found / of_token, abs=1e-9)


@pytest.mark.parametrize("alignment", ["cooccurrence", "em"])
@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 10_000), rows=st.integers(6, 20))
def test_what_it_does_not_depend_on(alignment: str, seed: int, rows: int) -> None:
    """Names, the order of rows, attributes and tokens, and copies (metrics-facts 13)."""
    random = np.random.default_rng(seed)
    meanings, messages = random.integers(3, size=(rows, 2)), random.integers(4, size=(rows, 3))
    order = random.permutation(rows)
    renamed = np.stack([random.permutation(3)[column] for column in meanings[order].T[::-1]], 1)
    said = random.permuted(random.permutation(4)[messages[order]], axis=1)
    before = context_independence(meanings, messages, alignment=alignment).value
    after = context_independence(np.tile(renamed, (2, 1)), np.tile(said, (2, 1)), alignment=alignment).value
    assert 0 < before <= 1
    assert after == pytest.approx(before, abs=1e-5)


def test_choice_of_the_token_of_a_concept() -> None:
    """The token 9 is beside the first value most often, and 1 beside it alone."""
    table = [[0], [0], [0], [1], [1]], [[9, 9, 1], [9], [9], [9, 9], [9, 9]]
    by_count, by_concept = (context_independence(*table, chosen_by=c).details["concepts"] for c in context.CHOICES)
    assert by_count["token"].tolist() == [9, 9]
    assert by_concept["token"].tolist() == [1, 9]
    assert context_independence(*table).conventions["chosen_by"] == "token_given_concept"
    assert context_independence(*table, alignment="em").conventions["chosen_by"] == "concept_given_token"


def test_a_value_without_a_token() -> None:
    for messages, token in ((["", "a"], "a"), ([[], [3]], 3)):
        score = context_independence([[0], [1]], messages)
        assert score.value == 0.5
        assert score.details["concepts"]["token"].tolist() == [None, token]


def test_hopeless_sizes() -> None:
    rows = np.arange(8_000)[:, None]
    with pytest.raises(IcyError, match="8000 concepts by 8000 tokens are too many"):
        context_independence(rows, rows)


# -- NPMI of tokens and concepts, against its formula pair by pair -----------------------------------------------------


def npmi_by_hand(units: list[set[Any]], concepts: list[set[Any]]) -> dict[tuple[Any, Any], float]:
    """NPMI of all pairs that occur together."""
    rows, found = len(units), {}
    for v in set().union(*units):
        for c in set().union(*concepts):
            both = sum(v in unit and c in concept for unit, concept in zip(units, concepts, strict=True)) / rows
            if both:
                alone = sum(v in unit for unit in units) / rows, sum(c in concept for concept in concepts) / rows
                found[v, c] = math.log(both / math.prod(alone)) / -math.log(both)
    return found


@pytest.mark.parametrize("units", ["tokens", "messages"])
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), rows=st.integers(2, 20))
def test_it_is_the_formula(units: str, seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, 2))
    meanings[:2] = [[0, 0], [1, 1]]
    messages = [random.integers(4, size=random.integers(1, 4)).tolist() for _ in range(rows)]
    if units == "tokens":
        said: list[set[Any]] = [set(message) for message in messages]
        meant: list[set[Any]] = [set(enumerate(meaning)) for meaning in meanings.tolist()]
    else:
        said, meant = [{tuple(message)} for message in messages], [{tuple(meaning)} for meaning in meanings.tolist()]
    expected = npmi_by_hand(said, meant)
    score = npmi(meanings, messages, units=units)
    found = {(row.token, row.concept): row.npmi for row in score.details["pairs"].itertuples()}
    assert found == pytest.approx(expected, abs=1e-12)
    best = [max(value for (_, c), value in expected.items() if c == concept) for concept in set().union(*meant)]
    assert score.value == pytest.approx(np.mean(best), abs=1e-12)


def test_pairs_have_names_and_are_sorted() -> None:
    score = npmi([["red", 0], ["red", 1], ["blue", 0], ["blue", 1]], ["ac", "ad", "bc", "bb"])
    pairs = score.details["pairs"]
    assert pairs.iloc[0].tolist() == ["b", (0, "blue"), 2, 1.0]
    assert pairs.iloc[1].tolist() == ["a", (0, "red"), 2, 1.0]
    assert pairs["npmi"].is_monotonic_decreasing
    assert pairs.query("token == 'd'")["npmi"].tolist() == [0.5, 0.5]


def test_empty_messages_and_constant_attributes() -> None:
    assert npmi([[0, 5], [0, 5], [1, 5], [1, 5]], ["a", "a", "", ""]).value == 0  # the mean of 1 and -1
    assert npmi([[0], [1]], ["", ""]).why == "all messages are empty"
    with pytest.raises(UnknownNameError, match="No unit of messages is called 'words'"):
        npmi([[0], [1]], ["a", "b"], units="words")
