"""The table that metrics read: every form in which meanings and messages come, and every mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import icy
from icy.core.errors import InvalidSettingError
from icy.languages.table import names_of_attributes
from icy.languages.tokens import PAD
from icy.metrics import Table

GRID = [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_a_language_is_read_as_it_is() -> None:
    language = icy.make_language("concat", "2x3", 4, 2, 1)
    table = Table.of(language)
    assert (table.messages == language.messages).all()
    assert (table.meanings == language.space.all()).all()
    assert (table.vocab_size, table.name, len(table)) == (4, "concat", 9)
    assert Table.of((language.space.all(), language.messages)).length == 4


def test_strings_and_names_are_numbered() -> None:
    table = Table.of([["red", 3], ["blue", 3]], ["ba", "c"])
    assert table.meanings.tolist() == [[1, 3], [0, 3]]
    assert table.messages.tolist() == [[1, 0], [2, PAD]]
    assert [table.token_name(t) for t in range(3)] == ["a", "b", "c"]
    assert (table.value_name(0, 1), table.value_name(1, 3)) == ("red", 3)
    assert table.lengths.tolist() == [2, 1]


def test_the_end_of_a_message() -> None:
    table = Table.of([[0], [1], [2]], [[3, 0, 3, 0], [0, 0, 0, 0], [1, 2, 0, 0]], eos=0)
    assert table.messages.tolist() == [[3, PAD], [PAD, PAD], [1, 2]]
    assert table.lengths.tolist() == [1, 0, 2]


def test_continuous_meanings() -> None:
    assert Table.of([[0.5, 1.0]], [[1]]).continuous
    assert not Table.of([[0.0, 1.0]], [[1]]).continuous
    with pytest.raises(InvalidSettingError, match="posdis needs discrete attributes"):
        Table.of([[0.5, 1.0]], [[1]]).require_discrete("posdis")


def test_rows_drawn_with_replacement_remember_where_they_come_from() -> None:
    table = Table.of(GRID, ["a", "b", "c", "d"]).rows(np.array([2, 2, 0])).rows(np.array([0, 1, 2, 2]))
    assert table.drawn_from is not None
    assert table.drawn_from.tolist() == [2, 2, 0, 0]


@pytest.mark.parametrize(
    ("meanings", "messages", "sentence"),
    [
        ([[0], [1]], [[1]], "2 meanings and 1 message were"),
        ([], [], "shape"),
        (np.empty((0, 2)), [], "no rows"),
        ([[0, 1], [1]], [[1], [1]], "all of one length"),
        ([[0], [1]], [[1], [-1]], "Tokens must be whole numbers from 0, not -1"),
        ([[0], [1]], [[1], [0.5]], "Tokens must be whole numbers from 0, or names"),
        ([[0], [1]], "ab", "not one string"),
        ([[0.5], [np.nan]], [[1], [2]], "no value in row 1 .counted from 0., attribute 0"),
        ([[0], [1]], None, "Give meanings and messages"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(meanings: Any, messages: Any, sentence: str) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        Table.of(meanings, messages)


def test_a_vocabulary_that_is_too_small() -> None:
    with pytest.raises(InvalidSettingError, match="has no token 3"):
        Table.of([[0], [1]], [[1], [3]], vocab_size=3)


def test_names_of_attributes() -> None:
    table = Table.of(GRID, ["a", "b", "c", "d"])
    assert names_of_attributes(table) == ["0", "1"]
    with pytest.raises(InvalidSettingError, match="2 attributes need as many names"):
        names_of_attributes(table, ["shape"])


# -- large numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("large", [2**61, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**30])
def test_tokens_and_values_of_any_size_are_distinguished(large: int) -> None:
    table = Table.of([[large, 0], [large + 1, 0]], [[large, 1], [1]])
    assert table.messages[0, 0] != table.messages[0, 1] == table.messages[1, 0]
    assert table.meanings[0, 0] != table.meanings[1, 0]
    assert table.token_name(table.messages[0, 0]) == large
    assert table.value_name(0, table.meanings[1, 0]) == large + 1
    assert table.vocab_size in (large + 1, 2)
    assert Table.of([[0], [1]], [[large, 1], [1]], eos=large).lengths.tolist() == [0, 1]


def test_arrays_without_signs_are_read_without_a_turn() -> None:
    tokens = np.array([[2**63 + 5, 3], [3, 2**63 + 5]], dtype=np.uint64)
    table = Table.of(tokens, tokens)
    assert table.messages.tolist() == [[1, 0], [0, 1]]
    assert table.token_name(1) == table.value_name(1, 1) == 2**63 + 5


def test_negative_tokens_are_refused_whatever_their_size() -> None:
    for token in (-1, -(2**63), -(10**30), -(10**5000)):
        with pytest.raises(InvalidSettingError, match="Tokens must be whole numbers from 0, not"):
            Table.of([[0], [1]], [[1], [token]])


def test_meanings_that_are_floats_and_large() -> None:
    assert Table.of(np.array([[1e300], [2.0]]), [[1], [2]]).continuous
    assert Table.of(np.array([[2.0**61], [2.0]]), [[1], [2]]).meanings.tolist() == [[2**61], [2]]
