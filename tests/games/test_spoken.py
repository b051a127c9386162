"""Phrases and messages, in the form for metrics and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from icy.core.errors import InvalidSettingError
from icy.games.evaluation import Spoken
from icy.metrics import cbm, read_table, topsim

PHRASES = np.array([[1, 0, 1], [0, 1, 1], [1, 0, 1]], dtype=bool)


def of(words: list[list[int]]) -> Spoken:
    return Spoken(np.array([4, 7, 4]), PHRASES, np.array(words), ("a.1", "b 2", "c"))


def test_phrases_have_names_and_words_are_numbered_in_order() -> None:
    spoken = of([[9, 3], [3, 3], [-1, 9]])
    assert spoken.named == [["a.1", "c"], ["b 2", "c"], ["a.1", "c"]]
    assert spoken.tokens.tolist() == [[2, 1], [1, 1], [0, 2]]
    assert spoken.unique_words == 3


def test_lines_have_the_format_of_the_authors() -> None:
    lines = of([[9, 3], [0, 3], [9, 2**62]]).to_lines().splitlines()
    assert [json.loads(line) for line in lines] == [
        ["10.4.0", "a-1.c"],
        ["1.4.0", "b-2.c"],
        [f"10.{2**62 + 1}.0", "a-1.c"],
    ]
    assert json.loads(of([[-1, 0], [0, 0], [0, 0]]).to_lines().splitlines()[0])[0] == f"{2**64}.1.0"  # of 64 bits


def test_lines_are_read_with_the_same_scores(tmp_path: Path) -> None:
    spoken = of([[9, 3], [0, 3], [9, 5]])
    file = tmp_path / "said.jsonl"
    file.write_text(spoken.to_lines())
    table = read_table(file)
    assert table.phrases
    assert "lists of tokens; 0 ends messages, and is left out" in table.read_as
    assert table.messages.tolist() == [[10, 4], [1, 4], [10, 6]]
    ours = cbm(spoken.named, spoken.tokens, concepts="items")
    assert cbm(table, concepts="items").value == ours.value
    assert topsim(table).value == pytest.approx(topsim(PHRASES.astype(int), spoken.tokens, meaning="cosine").value)


def test_every_turn_has_a_phrase_and_a_message() -> None:
    with pytest.raises(InvalidSettingError, match="one rule, one phrase and one message"):
        of([[1], [2]])
    with pytest.raises(InvalidSettingError, match="there are 3 concepts and 1 names"):
        Spoken(np.array([1, 1, 1]), PHRASES, np.zeros((3, 1), dtype=int), ("a",))
