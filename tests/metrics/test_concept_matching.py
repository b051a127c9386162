"""Concept best matching: the worked values, the definitions written out, and what may not change the score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icy
from icy.metrics.concept_matching import cbm, cbm_by_sample_size
from icy.metrics.score import Score

COUNTS = ("total", "good", "ambiguous", "paraphrase", "unmatched_concepts")
EXAMPLE_1 = [("w1 w2", "red square"), ("w1 w3", "red circle"), ("w4 w2", "blue square"), ("w4 w3", "blue circle"),
             ("w1 w5", "red circle"), ("w6", "blue square")]  # fmt: skip
EXAMPLE_2 = [("w1 w1", "red"), ("w1 w2", "blue"), ("w1 w2", "green"), ("w2 w2", "red")]


def of_texts(samples: Sequence[tuple[str, str]], **conventions: Any) -> Score:
    messages, phrases = ([text.split() for text in side] for side in zip(*samples, strict=True))
    return cbm(phrases, messages, concepts="items", **conventions)


def grid(*values: int) -> np.ndarray:
    return np.indices(values).reshape(len(values), -1).T


def counts(score: Score) -> tuple[int, ...]:
    return tuple(score.details[name] for name in COUNTS)


def map_of(score: Score) -> set[tuple[Hashable, Hashable, int]]:
    return set(score.details["translation"].itertuples(index=False, name=None))


def test_worked_example_1() -> None:
    score = of_texts(EXAMPLE_1)
    assert (score.value, score.rows, counts(score)) == (0.75, 6, (12, 9, 0, 2, 0))
    expected = {"word_tokens": 11, "concept_tokens": 12, "unique_messages": 6, "unique_words": 6, "unique_phrases": 4,
                "unique_concepts": 4, "ambiguity_rate": 0, "paraphrase_rate": 2 / 12, "unmatched_rate": 0,
                "precision": 0.75, "recall": 0.75}  # fmt: skip
    assert {name: score.details[name] for name in expected} == pytest.approx(expected)
    assert map_of(score) == {("w1", "red", 3), ("w2", "square", 2), ("w3", "circle", 2), ("w4", "blue", 2)}


def test_worked_example_2_counts_repeats() -> None:
    score = of_texts(EXAMPLE_2)
    assert (score.value, counts(score)) == (0.375, (8, 3, 5, 0, 1))
    rates = [score.details[name] for name in ("unmatched_rate", "precision", "recall")]
    assert rates == [0.25, 0.25, 0.5]


def test_repeats_taken_once_are_the_sets_of_the_text() -> None:
    once = of_texts(EXAMPLE_2, repeats="once")
    assert once.details["word_tokens"] == 6
    assert once.value == of_texts([("w1", "red"), *EXAMPLE_2[1:3], ("w2", "red")]).value
    assert once.details["unique_messages"] == 3  # the messages are what they are
    twice = [("a", "red red"), ("b", "blue blue")]
    assert of_texts(twice).value == 0.5  # weights of 2, and two good words of a Q of 4
    assert of_texts(twice, repeats="once").value == 1


@pytest.mark.parametrize(
    ("values", "positions", "expected"),
    [
        ((2, 2), lambda a, b: (1 + a, 3 + b), (8, 8, 0, 0, 0)),
        ((2, 2), lambda a, b: (3 + b, 1 + a), (8, 8, 0, 0, 0)),
        ((2, 2), lambda a, b: (1 + a, 1 + b), (8, 6, 2, 0, 4)),
        ((2, 2), lambda a, b: (1 + a, 1 + (a ^ b)), (8, 6, 2, 0, 4)),
        ((2, 2), lambda a, b: (1 + 2 * a + b,), (8, 4, 0, 0, 0)),
        ((2, 2), lambda a, b: (1 + a, 3 + b, 0 * a + 5), (12, 8, 0, 4, 0)),
        ((2, 2), lambda a, b: np.array([(1, 3), (4, 1), (3, 2), (2, 4)])[2 * a + b].T, (8, 8, 0, 0, 0)),
        ((3, 3), lambda a, b: (1 + a, 1 + b), (18, 12, 6, 0, 9)),
        ((3, 3), lambda a, b: (1 + a, 1 + (a + b) % 3), (18, 12, 6, 0, 9)),
        ((3, 3), lambda a, b: (1 + (a + b) % 3, 1 + (a + 2 * b) % 3), (18, 6, 12, 0, 9)),
        ((5, 5), lambda a, b: (a, b), (50, 30, 20, 0, 25)),
        ((4, 4, 4), lambda a, b, c: (a, b, c), (192, 96, 96, 0, 128)),
    ],
)  # fmt: skip
def test_values_of_toy_languages(values: tuple[int, ...], positions: Any, expected: tuple[int, ...]) -> None:
    meanings = grid(*values)
    score = cbm(meanings, np.stack(positions(*meanings.T), 1))
    assert counts(score) == expected
    assert score.value == expected[1] / expected[0]


@pytest.mark.parametrize("values", [(2, 2), (3, 3), (5, 5), (4, 4, 4)])
def test_words_with_a_position_restore_a_language_of_shared_symbols(values: tuple[int, ...]) -> None:
    score = cbm(grid(*values), grid(*values), words="positions")
    assert score.value == 1
    assert ("0:1", (0, 1), grid(*values).shape[0] // values[0]) in map_of(score)


@pytest.mark.parametrize("seed", [13, 21, 123])
def test_words_of_several_tokens(seed: int) -> None:
    language = icy.make_language("concat", "3x4", vocab_size=4, word_length=2, seed=seed)
    found = cbm(language).value
    assert round(found, 3) == 0.396 if seed < 100 else 0.35 < found < 0.5
    for words in (2, "2", "tokens:2", "positions:2"):
        assert cbm(language, words=words).value == 1
    word = " ".join(map(str, language.messages[0, :2]))
    assert (word, (0, 0), 16) in map_of(cbm(language, words=2))
    assert (f"0:{word}", (0, 0), 16) in map_of(cbm(language, words="positions:2"))


def by_definition(samples: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> set[tuple[Any, ...]]:
    """What the definitions give for each of the best assignments that have the most specific words."""
    weights = Counter((w, c) for message, phrase in samples for w in message for c in phrase)
    within = Counter((w, c) for message, phrase in samples for w in message for c in set(phrase))
    tokens = Counter(w for message, _ in samples for w in message)
    words, concepts = list(tokens), list({c for _, phrase in samples for c in phrase})
    few, many = sorted((words, concepts), key=len)
    best: dict[tuple[int, float], list[dict[Any, Any]]] = {}
    for chosen in permutations(many, len(few)):
        pairs = zip(*((few, chosen) if few is words else (chosen, few)), strict=True)
        matched = {w: c for w, c in pairs if weights[w, c]}
        specific = sum(within[w, c] / tokens[w] for w, c in matched.items())
        best.setdefault((sum(weights[p] for p in matched.items()), round(specific, 4)), []).append(matched)
    return {edges(samples, matched) for matched in best[max(best)]}


def edges(samples: Sequence[tuple[Sequence[Any], Sequence[Any]]], matched: dict[Any, Any]) -> tuple[Any, ...]:
    total = good = ambiguous = paraphrase = unmatched = 0
    precision, recall = [], []
    for message, phrase in samples:
        right = [w for w in message if w in matched and matched[w] in phrase]
        good += len(right)
        ambiguous += sum(w in matched and matched[w] not in phrase for w in message)
        paraphrase += sum(w not in matched for w in message)
        unmatched += sum(c not in matched.values() for c in phrase)
        total += max(len(message), len(phrase))
        precision.append(len(set(right)) / len(message))
        recall.append(len(set(right)) / len(phrase))
    rates = (round(float(np.mean(some)), 9) for some in (precision, recall))
    return total, good, ambiguous, paraphrase, unmatched, *rates


def found(samples: Sequence[tuple[Sequence[Any], Sequence[Any]]], **conventions: Any) -> Score:
    messages, phrases = zip(*samples, strict=True)
    return cbm(phrases, messages, concepts="items", **conventions)


def samples_of(most: int, unique: bool) -> st.SearchStrategy[list[tuple[list[str], list[str]]]]:
    words = st.lists(st.sampled_from("abcde"), min_size=1, max_size=4)
    concepts = st.lists(st.sampled_from("pqrs"), min_size=1, max_size=3, unique=unique)
    return st.lists(st.tuples(words, concepts), min_size=1, max_size=most)


SAMPLES = samples_of(8, unique=False)
UNLIKE = samples_of(12, unique=True)  # no phrase has a concept twice


@settings(deadline=None, max_examples=30)
@given(SAMPLES)
def test_it_is_the_best_of_all_assignments(samples: list[tuple[list[str], list[str]]]) -> None:
    score = found(samples)
    rates = (round(score.details[name], 9) for name in ("precision", "recall"))
    assert (*counts(score), *rates) in by_definition(samples)


@settings(deadline=None, max_examples=30)
@given(UNLIKE)
def test_identities(samples: list[tuple[list[str], list[str]]]) -> None:
    score = found(samples)
    d = score.details
    assert d["good"] + d["ambiguous"] + d["paraphrase"] == d["word_tokens"] == sum(len(m) for m, _ in samples)
    assert d["concept_tokens"] == sum(len(p) for _, p in samples)
    assert d["good"] == d["translation"]["weight"].sum()
    assert (d["translation"]["weight"] > 0).all()
    value = d["good"] / d["total"]
    assert math.isnan(score.value) == bool(score.why) == (d["unique_phrases"] == 1)
    assert score.why or score.value == value
    assert d["pairs"]["weight"].max() / d["total"] <= value <= 1
    sums_to_one = value + d["ambiguity_rate"] + d["paraphrase_rate"] == pytest.approx(1)
    assert sums_to_one == all(len(m) >= len(p) for m, p in samples)
    assert found(samples, unmatched="assigned").details["unmatched_concepts"] <= d["unmatched_concepts"]


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(UNLIKE, st.randoms(use_true_random=False), st.integers(2, 4))
def test_what_changes_nothing(samples: list[tuple[list[str], list[str]]], random: Any, times: int) -> None:
    score = found(samples)
    shuffled = [(random.sample(m, len(m)), random.sample(p, len(p))) for m, p in samples]
    random.shuffle(shuffled)
    assert counts(found(shuffled)) == counts(score)
    assert map_of(found(shuffled)) == map_of(score)
    again = found(samples * times)
    assert counts(again) == tuple(times * count for count in counts(score))
    assert map_of(again) == {(word, concept, times * weight) for word, concept, weight in map_of(score)}
    word, concept = (dict(zip(some, random.sample(some, len(some)), strict=True)) for some in ("abcde", "pqrs"))
    renamed = found([([word[w] for w in m], [concept[c] for c in p]) for m, p in samples])
    assert counts(renamed)[:2] == counts(score)[:2]


def test_a_word_of_every_message_stays_without_a_concept() -> None:
    meanings = grid(2, 2)
    for constant in (0, 5, 9):
        score = cbm(meanings, np.stack([1 + meanings[:, 0], 3 + meanings[:, 1], np.full(4, constant)], 1))
        assert (score.details["ambiguous"], score.details["paraphrase"]) == (0, 4)
        assert constant not in set(score.details["translation"]["word"])


@pytest.mark.parametrize(
    ("said", "expected"), [(997, {("a", "red", 999)}), (998, {("a", "blue", 1), ("b", "red", 998)})]
)
def test_specific_words_decide_ties_and_nothing_else(said: int, expected: set[tuple[str, str, int]]) -> None:
    """The word b, said with red alone, is the more specific, and has red only where the weights are the same."""
    assert map_of(of_texts([("a", "red")] * 999 + [("a", "blue")] + [("b", "red")] * said)) == expected


def test_ties_do_not_go_by_the_order_of_rows() -> None:
    random, found_maps = np.random.default_rng(0), set()
    for _ in range(20):
        found_maps.add(frozenset(map_of(of_texts([EXAMPLE_2[i] for i in random.permutation(4)]))))
    assert len(found_maps) == 1


def test_the_program_takes_a_concept_for_matched_that_was_given_to_a_word_it_is_never_with() -> None:
    samples = [("a", "red")] * 3 + [("a", "blue"), ("b", "red")]
    ours, theirs = (of_texts(samples, unmatched=reading) for reading in ("matched", "assigned"))
    assert (counts(ours), counts(theirs)) == ((5, 3, 1, 1, 1), (5, 3, 1, 1, 0))
    assert map_of(ours) == map_of(theirs) == {("a", "red", 3)}


def test_one_word_messages_have_good_over_words_as_precision() -> None:
    """As all rows with messages of one word in CBM24's tables 3 and 4."""
    random = np.random.default_rng(0)
    meanings = random.integers(5, size=(200, 4))
    score = cbm(meanings, meanings[:, :1] + 7 * random.integers(2, size=(200, 1)))
    assert score.details["precision"] == pytest.approx(score.details["good"] / 200)
    assert score.details["recall"] == pytest.approx(score.details["good"] / 800) == pytest.approx(score.value)


def test_four_words_for_one_concept_have_four_times_the_precision_as_recall() -> None:
    random = np.random.default_rng(1)
    concept = random.integers(17, size=(300, 1))
    messages = np.where(random.random((300, 4)) < 0.5, concept % 7, random.integers(7, size=(300, 4)))
    d = cbm(concept, messages).details
    assert (d["total"], d["concept_tokens"], d["unique_concepts"], d["paraphrase"]) == (1200, 300, 17, 0)
    assert d["recall"] == pytest.approx(4 * d["precision"])
    assert d["precision"] < d["good"] / 1200


def test_messages_of_any_length_and_their_ends() -> None:
    samples = [("red",), ("blue", "red"), ("blue",)]
    expected = cbm(samples, ["x", "yx", "y"], concepts="items")
    assert expected.value == 1
    ended = cbm(samples, [[1, 0, 0], [2, 1, 0], [2, 0, 0]], concepts="items", eos=0)
    dropped = cbm(samples, ["x.", "yx!", "y?"], concepts="items", drop_last=True)
    assert counts(ended) == counts(dropped) == counts(expected)
    assert dropped.details["unique_words"] == 2
    assert dropped.conventions == {**expected.conventions, "drop_last": True}


def test_phrases_of_anything() -> None:
    assert cbm([{("color", 1), "big"}, [("color", 1)]], ["ab", "a"], concepts="items").value == 1
    of_an_array = cbm(np.array([["red", "red"], ["blue", "red"]]), ["aa", "ba"], concepts="items")
    assert of_an_array.details["unique_concepts"] == 2
    language = icy.make_language("concat", "2x3", vocab_size=9, word_length=1, seed=0)
    assert cbm(language, concepts="items").details["unique_concepts"] == 3
    assert cbm(([["red"], ["blue"]], ["a", "b"]), concepts="items").value == 1
    assert cbm(([["red"]], ["a"]), concepts="items").why == "all phrases are alike"
    assert cbm([["red"], ["blue"]], ["a", "b"]).details["translation"]["concept"].tolist() == [(0, "blue"), (0, "red")]


def test_scores_by_sample_size() -> None:
    random = np.random.default_rng(0)
    meanings = random.integers(4, size=(250, 3))
    messages = np.where(random.random(meanings.shape) < 0.5, meanings, random.integers(12, size=meanings.shape))
    sizes = cbm_by_sample_size(meanings, messages, segment=100, seed=3, words="positions")
    assert sizes["drawn"].tolist() == [100, 100, 200, 200]
    assert sizes["rows"].tolist() == [100, 100, 100, 200]
    assert sizes.loc[0, "cbm"] == sizes.loc[1, "cbm"]
    assert sizes["cbm"].between(0.4, 0.8).all()
    whole = cbm_by_sample_size(meanings, messages, segment=250).iloc[1]
    score = cbm(meanings, messages)
    assert whole["cbm"] == score.value
    assert whole["unmatched_rate"] == score.details["unmatched_rate"]
    assert cbm_by_sample_size(meanings, messages, seed=3, words="positions").equals(sizes)
    assert not cbm_by_sample_size(meanings, messages, seed=4, words="positions").equals(sizes)


def test_few_rows_make_the_score_too_high() -> None:
    random = np.random.default_rng(0)
    sizes = cbm_by_sample_size(random.integers(8, size=(500, 2)), random.integers(16, size=(500, 2)), segment=50)
    segments, accumulated = (sizes.loc[sizes["sample"] == kind, "cbm"] for kind in ("segment", "accumulated"))
    assert segments.min() > accumulated.iloc[-1]


def test_words_of_large_tokens_are_distinguished() -> None:
    """Their numbers, multiplied, would be more than 64 bits hold."""
    large = 2**61
    messages = [[large + a, large + b, large + c] for a, b, c in [(0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1)]]
    small = [[token - large for token in row] for row in messages]
    meanings = [[0], [1], [2], [3]]
    for words in ("tokens:3", "positions:3", "positions"):
        assert cbm(meanings, messages, words=words).value == cbm(meanings, small, words=words).value
    assert cbm(meanings, messages, words="tokens:3").value == 1
