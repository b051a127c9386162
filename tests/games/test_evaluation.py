"""Scores of messages."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.games.evaluation import MEASURES, Spoken, language_scores, matching, similarity
from icy.metrics import cbm

from .helpers import silent


def said(phrases: list[list[int]], words: list[list[int]]) -> Spoken:
    """Return messages, with phrases given as numbers of concepts."""
    table = np.zeros((len(phrases), 6), dtype=bool)
    for row, phrase in enumerate(phrases):
        table[row, phrase] = True
    rules = np.unique(table, axis=0, return_inverse=True)[1].ravel()
    return Spoken(rules.astype(np.int64), table, np.array(words), tuple("abcdef"))


def test_the_scores_have_the_names_of_measures() -> None:
    assert tuple(language_scores(silent("thing", 1, turns=20))) == MEASURES


def test_matching_equals_the_metric() -> None:
    """Worked example 2 of metrics-facts.md section 9, with repeated words."""
    spoken = said([[0], [1], [2], [0]], [[1, 1], [1, 2], [1, 2], [2, 2]])
    score = matching(spoken)
    assert score.value == cbm([["a"], ["b"], ["c"], ["a"]], [[1, 1], [1, 2], [1, 2], [2, 2]], concepts="items").value
    assert (score.value, score.details["good"], score.details["total"]) == (0.375, 3, 8)
    named = matching(spoken, name=lambda word: f"w{word}").details["translation"]
    assert set(named["word"]) == {"w1", "w2"}


def test_topsim_compares_shared_concepts() -> None:
    phrases, words = [[0, 1], [0, 2], [3, 4], [3, 1]], [[7, 8], [7, 9], [5, 6], [5, 8]]
    spoken = said(phrases, words)
    shared = np.array([[len(set(p) & set(q)) / 2 for q in phrases] for p in phrases])
    edits = np.array([[sum(a != b for a, b in zip(v, w, strict=True)) for w in words] for v in words])
    upper = np.triu_indices(4, 1)
    assert similarity(spoken).value == pytest.approx(-np.corrcoef(shared[upper], edits[upper])[0, 1], abs=0.05)
    assert similarity(spoken).value == pytest.approx(1.0)


def test_phrases_of_different_lengths_are_compared_by_cosine() -> None:
    spoken = said([[0], [0, 1], [2, 3], [4]], [[1], [1], [2], [3]])
    cosines = [1 / math.sqrt(2), 0, 0, 0, 0, 0]
    assert similarity(spoken).value == pytest.approx(1.0)
    assert len(set(np.round(cosines, 9))) == 2


def test_topsim_can_compare_objects() -> None:
    spoken = said([[0], [1], [2]], [[1], [2], [3]])
    with pytest.raises(InvalidSettingError, match="needs `objects` of Spoken"):
        similarity(spoken, "targets")
    objects = np.array([[1.0, 0.1], [0.9, 0.2], [0.1, 1.0]])
    alike = replace(said([[0], [1], [2]], [[1], [1], [2]]), objects=objects)
    assert similarity(alike, "targets").value == pytest.approx(0.866, abs=0.001)
    with pytest.raises(UnknownNameError, match="did you mean targets"):
        similarity(spoken, "target")


def test_scores_of_a_perfect_language() -> None:
    concepts = [[n % 6] for n in range(60)]
    scores = language_scores(said(concepts, [[n % 6 + 10] for n in range(60)]))
    assert (scores["cbm"], scores["ami"], scores["topsim"]) == (1, 1, 1)
    assert (scores["ambiguity_rate"], scores["paraphrase_rate"], scores["unmatched_rate"]) == (0, 0, 0)
    assert [scores[f"unique_{name}"] for name in ("words", "messages", "phrases", "concepts")] == [6, 6, 6, 6]
    assert 0.2 < scores["cbm_floor"] < 0.5
