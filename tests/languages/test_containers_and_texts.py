"""The one rule of tokens, values and missing entries: one language gives one table, whatever container holds it."""

from __future__ import annotations

import decimal
import enum
import fractions
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icy import metrics as M
from icy.core.errors import IcyError, InvalidSettingError, StoreError, UnknownNameError, quoted
from icy.languages.readers import read_table
from icy.languages.tokens import PAD
from icy.metrics import Table

GRID = [[a, b] for a in range(4) for b in range(4)]
IDEAL = [[a, 4 + b] for a, b in GRID]


def scores(table: Table) -> tuple[float, ...]:
    """Metrics that depend on every part of a table: rows, tokens, order of tokens and vocabulary."""
    found = (M.topsim(table), M.posdis(table), M.bosdis(table, constant="zero"), M.cbm(table), M.mig(table))
    return tuple(score.value for score in found)


# -- containers ------------------------------------------------------------------------------------------------------

CONTAINERS: dict[str, Callable[[list[list[int]]], Any]] = {
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "an iterator": iter,
    "an array": np.array,
    "bytes": lambda rows: np.array(rows, dtype=np.uint8),
    "an array of objects": lambda rows: np.array(rows, dtype=object),
    "a masked array": np.ma.masked_array,
    "whole floats": lambda rows: np.array(rows, dtype=float),
    "float16": lambda rows: np.array(rows, dtype=np.float16),
    "a tensor": torch.tensor,
    "a tensor of floats": lambda rows: torch.tensor(rows, dtype=torch.float32, requires_grad=True),
    "a tensor of bfloat16": lambda rows: torch.tensor(rows, dtype=torch.bfloat16),
    "a sparse tensor": lambda rows: torch.tensor(rows).to_sparse(),
    "a transposed tensor": lambda rows: torch.tensor(rows).T.contiguous().T,
    "a tensor per row": lambda rows: [torch.tensor(row) for row in rows],
    "a tensor per token": lambda rows: [list(torch.tensor(row)) for row in rows],
    "a scalar of numpy per token": lambda rows: [list(np.array(row)) for row in rows],
    "decimals and fractions": lambda rows: [[decimal.Decimal(a), fractions.Fraction(b)] for a, b in rows],
    "a frame": pd.DataFrame,
    "a frame of Int64": lambda rows: pd.DataFrame(rows).astype("Int64"),
    "a frame of Arrow": lambda rows: pd.DataFrame(rows).astype("int64[pyarrow]"),
    "a frame of objects": lambda rows: pd.DataFrame(rows).astype(object),
    "a frame of two types": lambda rows: pd.DataFrame({"a": [a for a, _ in rows], "b": [float(b) for _, b in rows]}),
    "a series of lists": pd.Series,
    "a series of arrays": lambda rows: pd.Series([np.array(row) for row in rows], index=range(5, 5 + len(rows))),
    "a table of Arrow": lambda rows: pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]}),
    "an array of Arrow": pa.array,
    "ranges of text": lambda rows: [[str(a), str(b)] for a, b in rows],
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_of_one_language_gives_one_table(name: str) -> None:
    form = CONTAINERS[name]
    expected = Table.of(GRID, IDEAL)
    for table in (Table.of(form(GRID), form(IDEAL)), Table.of(GRID, form(IDEAL)), Table.of(form(GRID), IDEAL)):
        assert table.meanings.tolist() == GRID
        assert table.messages.tolist() == IDEAL
        assert scores(table) == scores(expected)
    assert (M.topsim(expected).value, M.posdis(expected).value, M.cbm(expected).value) == (1, 1, 1)


@pytest.mark.parametrize(
    "texts",
    [
        [f"{a} {4 + b}" for a, b in GRID],
        np.array([f"{a} {4 + b}" for a, b in GRID]),
        np.array([f"{a} {4 + b}".encode() for a, b in GRID]),
        pd.Series([f"{a} {4 + b}" for a, b in GRID], dtype="category"),
        pd.Series([f"{a} {4 + b}" for a, b in GRID], dtype="string"),
        pa.array([f"{a} {4 + b}" for a, b in GRID]),
        [f"[{a}, {4 + b}]" for a, b in GRID],
        [f"({a}, {4 + b})" for a, b in GRID],
        [f"[{a} {4 + b}]" for a, b in GRID],
        [f"[{a}. {4 + b}.]" for a, b in GRID],
        [f"tensor([{a}, {4 + b}])" for a, b in GRID],
        [f"array([{a}, {4 + b}], dtype=int64)" for a, b in GRID],
        [f"['{a}', '{4 + b}']" for a, b in GRID],
        *([f"{a}{mark}{4 + b}" for a, b in GRID] for mark in ",;|/-_.:"),
        [f"{a}, {4 + b}" for a, b in GRID],
    ],
    ids=str,
)
def test_every_text_of_one_language_gives_one_table(texts: Any, tmp_path: Path) -> None:
    assert Table.of(GRID, texts).messages.tolist() == IDEAL
    columns = {"a": [a for a, _ in GRID], "b": [b for _, b in GRID]}
    pd.DataFrame({**columns, "message": [str(t, "utf-8") if isinstance(t, bytes) else str(t) for t in texts]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert scores(read_table(tmp_path / "t.csv")) == scores(Table.of(GRID, IDEAL))


@pytest.mark.slow
@given(
    rows=st.lists(st.lists(st.integers(0, 2**40), min_size=2, max_size=2), min_size=3, max_size=12),
    name=st.sampled_from([n for n in CONTAINERS if n not in ("bytes", "float16", "a tensor of bfloat16")]),
)
@settings(max_examples=50, deadline=None)
def test_random_languages_in_random_containers(rows: list[list[int]], name: str) -> None:
    if name == "a tensor of floats":
        rows = [[a % 2**24, b % 2**24] for a, b in rows]
    meanings = [[i % 3, i // 3] for i in range(len(rows))]
    assert scores(Table.of(meanings, CONTAINERS[name](rows))) == scores(Table.of(meanings, rows))


class Hue(enum.Enum):
    RED = 5
    BLUE = 2


class Size(enum.IntEnum):
    SMALL = 4
    LARGE = 7


class Sign(str, enum.Enum):  # noqa: UP042 - whose str() is "Sign.A"
    A = "a"
    B = "b"


def test_members_of_enumerations_are_names_numbers_and_texts() -> None:
    rows = list(itertools.product(Hue, Size))
    table = Table.of(
        rows, [[sign, size] for sign, (_, size) in zip((Sign.B, Sign.B, Sign.A, Sign.A), rows, strict=True)]
    )
    plain = Table.of([[hue.name, int(size)] for hue, size in rows], [["b", 4], ["b", 7], ["a", 4], ["a", 7]])
    assert (table.value_names, table.token_names) == (plain.value_names, plain.token_names)
    assert table.messages.tolist() == plain.messages.tolist()
    assert table.meanings.tolist() == plain.meanings.tolist()


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("e\u0301a", ["\u00e9", "a"]),  # composed, by Unicode NFC
        ("x\u0301a", ["x\u0301", "a"]),  # there is no composed form
        ("\u092c\u093fa", ["\u092c\u093f", "a"]),  # a vowel sign
        ("\U0001f44d\U0001f3fda", ["\U0001f44d\U0001f3fd", "a"]),  # of a skin tone
        ("\U0001f469\u200d\U0001f4bba", ["\U0001f469\u200d\U0001f4bb", "a"]),  # two joined
        ("\u2764\ufe0fa", ["\u2764\ufe0f", "a"]),  # with a variation selector
    ],
)
def test_marks_belong_to_the_letter_before_them(text: str, letters: list[str]) -> None:
    table = Table.of([[0], [1]], [text, "aa"])
    assert [table.token_name(token) for token in table.messages[0]] == letters


def test_messages_of_several_lengths() -> None:
    ragged = [[1, 2, 3], [4], [5, 6]]
    expected = [[1, 2, 3], [4, PAD, PAD], [5, 6, PAD]]
    nested = torch.nested.nested_tensor([torch.tensor(row) for row in ragged])
    filled = pd.DataFrame([[1, 2, 3], [4, None, None], [5, 6, None]])
    for given_ in (ragged, [tuple(row) for row in ragged], pd.Series(ragged), pa.array(ragged), nested):
        assert Table.of([[0], [1], [2]], given_).messages.tolist() == expected
    for padded in (filled, filled.astype("Int64"), [[1, 2, 3], [4, None, None], [5, 6, None]]):
        with pytest.raises(InvalidSettingError, match=r"There is no message in row 1 .* token 1; .*pad=float\('nan'\)"):
            Table.of([[0], [1], [2]], padded)
        assert Table.of([[0], [1], [2]], padded, pad=float("nan")).messages.tolist() == expected
        assert Table.of([[0], [1], [2]], padded, missing="drop").messages.tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    "form", [lambda rows: rows, np.array, torch.tensor, pd.DataFrame, lambda rows: [list(np.array(r)) for r in rows]]
)
@pytest.mark.parametrize("pad", [-1, 0, 99])
def test_padding_is_named(form: Callable[[Any], Any], pad: int) -> None:
    after, before = [[1, 2, 3], [4, pad, pad], [5, 6, pad]], [[1, 2, 3], [pad, pad, 4], [pad, 5, 6]]
    expected = [[1, 2, 3], [4, PAD, PAD], [5, 6, PAD]]
    for rows in (after, before):
        table = Table.of([[0], [1], [2]], form(rows), pad=pad)
        assert table.messages.tolist() == expected
        assert table.vocab_size == 7 - (pad == 0)
        assert Table.of([[0], [1], [2]], form(rows), pad=str(pad)).messages.tolist() == expected
    with pytest.raises(InvalidSettingError, match=rf"padding {pad} is between tokens in row 1"):
        Table.of([[0], [1]], form([[1, 2, pad], [1, pad, 2]]), pad=pad)


def test_negative_tokens_ask_for_the_padding() -> None:
    for rows in ([[1, -1]], [[np.int64(1), np.int64(-1)]], np.array([[1, -1]]), [[torch.tensor(1), torch.tensor(-1)]]):
        with pytest.raises(InvalidSettingError, match=r"not -1\. If .* give it as pad=-1 \(--pad\)"):
            Table.of([[0]], rows)


@pytest.mark.parametrize(
    ("given_", "sentence"),
    [
        ({1: [2]}, "Messages must be a sequence with an entry per row, not a dict"),
        (3, "not a int"),
        ([{1, 2}], "A set cannot be a value or a token"),
        ([1j], "complex number"),
        (np.array([1j]), "Complex numbers"),
        (torch.ones(1, 2, device="meta"), "Messages cannot be read from a Tensor: Cannot copy out of meta tensor"),
        ([[[1], [2, 3]]], "A token must be a single value, but some messages hold lists"),
        (np.zeros((1, 2, 2, 2)), r"not of shape \(1, 2, 2, 2\)"),
        (np.array([[np.inf]]), "Some tokens are infinite"),
        ([[1, 0.25]], r"not 0\.25 in row 0 .*argmax"),
        (np.array([[0.25, 0.75]]), r"not 0\.25 in row 0 .*argmax"),
        ([["a"], 3], "Messages must be sequences of tokens; row 1"),
    ],
)
def test_invalid_messages_are_errors_in_one_sentence(given_: Any, sentence: str) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        Table.of([[0]] * (len(given_) if hasattr(given_, "__len__") else 1), given_)


# -- one-hot vectors and scores --------------------------------------------------------------------------------------


def one_hot(values: int, size: int) -> list[int]:
    return [int(values == k) for k in range(size)]


SPACE = list(itertools.product(range(4), range(3), range(2)))
BLOCKS = [one_hot(a, 4) + one_hot(b, 3) + one_hot(c, 2) for a, b, c in SPACE]


CODES: list[tuple[Any, Any]] = [
    *[(-1, 1), (0, 255), (0.0, 1.0), (1, 2), (0.25, 0.75), (-1.5, 3), (False, True)],
    *[("no", "yes"), ("False", "True"), ("FALSE", "TRUE"), ("-", "+"), ("present", "absent"), ("0", "255")],
]


@pytest.mark.parametrize("code", CODES, ids=str)
@pytest.mark.parametrize("form", [list, pd.DataFrame, np.array])
def test_one_hot_meanings_of_any_two_values(code: tuple[Any, Any], form: Callable[[Any], Any]) -> None:
    messages = [[a, b, c] for a, b, c in SPACE]
    blocks = form([[code[bit] for bit in row] for row in BLOCKS])
    with pytest.raises(
        InvalidSettingError, match=r"read in two ways: as one-hot vectors of 4, 3 and 2 values"
    ) as error:
        Table.of(blocks, messages)
    assert f"The 9 columns of {quoted(code[0])} and " in str(error.value) or type(code[0]) is not int
    assert Table.of(blocks, messages, one_hot=[4, 3, 2]).meanings.tolist() == [[*row] for row in SPACE]
    assert Table.of(blocks, messages, one_hot="no").attributes == 9
    for one_hot, why in ((3, r"row 18 .* is not one-hot: .* must have a single "), (5, "not one-hot vectors of 5")):
        with pytest.raises(InvalidSettingError, match=why):
            Table.of(blocks, messages, one_hot=one_hot)


@pytest.mark.parametrize(
    "meanings",
    [
        [[-1, 1, 1], [1, -1, 1], [1, 1, -1]],  # a single -1
        [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
        [["a", "b"], ["b", "a"], ["a", "a"], ["b", "b"]],
        [["x", "y", "z"], ["y", "x", "z"], ["x", "x", "z"]],
        [[0, 0, 255], [0, 255, 255], [255, 0, 0]],
    ],
)
def test_two_values_that_are_not_one_hot(meanings: Any) -> None:
    assert Table.of(meanings, [[n] for n in range(len(meanings))]).attributes == len(meanings[0])


def test_one_hot_next_to_other_attributes() -> None:
    rows = [[-1, -1, 1, 7], [-1, 1, -1, 8], [1, -1, -1, 9]]
    with pytest.raises(InvalidSettingError, match="3 of the columns look like one-hot vectors of 3 values"):
        Table.of(rows, ["a", "b", "c"])
    assert Table.of(rows, ["a", "b", "c"], one_hot="no").attributes == 4


@pytest.mark.parametrize("code", [(-1, 1), (0, 255), (0.0, 1.0)], ids=str)
def test_one_hot_messages_of_other_numbers(code: tuple[float, float]) -> None:
    symbols = np.array(code)[np.array([[one_hot(t, 8) for t in row] for row in IDEAL])]
    assert Table.of(GRID, symbols).messages.tolist() == IDEAL
    single = np.array(code)[np.array([one_hot(a, 4) for a, _ in GRID])]
    for form in (np.array, list):
        with pytest.raises(InvalidSettingError, match=r"numbers with a single (1|255) can be read in two ways"):
            Table.of(GRID, form(single))
    assert Table.of(GRID, single, argmax=True).messages.tolist() == [[a] for a, _ in GRID]
    assert Table.of(GRID, [[3, 3, 7] if a else [3, 7, 3] for a, _ in GRID]).length == 3  # tokens


def test_columns_of_0_and_1_that_are_attributes() -> None:
    for rows in (list(itertools.product(range(2), repeat=3)), [[0, 1], [1, 0], [1, 1], [0, 0]], [[0, 1], [1, 0]]):
        assert Table.of(rows, [[i] for i in range(len(rows))]).attributes == len(rows[0])


def test_messages_of_scores() -> None:
    draws = np.random.default_rng(3)
    relaxed = draws.dirichlet(np.ones(5), size=(16, 2))
    for form in (np.array, torch.tensor, lambda rows: rows.tolist()):
        with pytest.raises(InvalidSettingError, match="argmax"):
            Table.of(GRID, form(relaxed[:, 0]))
        assert Table.of(GRID, form(relaxed), argmax=True).messages.tolist() == relaxed.argmax(-1).tolist()
        assert Table.of(GRID, form(relaxed[:, 0]), argmax=True).messages.tolist() == relaxed[:, :1].argmax(-1).tolist()
    symbols = np.array([[one_hot(t, 8) for t in row] for row in IDEAL])
    assert Table.of(GRID, symbols).messages.tolist() == IDEAL  # plain, as every vector has a single 1
    for form in (np.array, torch.tensor, pd.DataFrame):
        single = form(np.array([one_hot(a, 4) for a, _ in GRID], dtype=float))
        with pytest.raises(InvalidSettingError, match="numbers with a single 1 can be read in two ways"):
            Table.of(GRID, single)
        assert Table.of(GRID, single, argmax=True).messages.tolist() == [[a] for a, _ in GRID]
        assert Table.of(GRID, single, argmax=False).length == 4


@pytest.mark.parametrize("form", [torch.tensor, pd.DataFrame, lambda codes: codes.tolist(), pa.array])
def test_floats_are_real_codes_in_every_container(form: Callable[[Any], Any]) -> None:
    codes = np.stack([np.arange(300) % 97 * 1.0, np.arange(300) % 7 * 1.0], 1)
    factors = (np.arange(300) % 97 // 25)[:, None]
    expected = M.mig(factors, codes).value
    assert M.mig(factors, form(codes.tolist() if form is pa.array else codes)).value == expected
    assert M.mig(factors, codes.astype(int)).value != expected


# -- texts that can be read in two ways ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "readings"),
    [
        (["9", "10", "11", "12"], {"letters": 2, "whole": 1}),
        (["10", "11", "12", "13"], {"letters": 2, "whole": 1}),
        (["red", "blue", "red", "blue"], {"letters": 4, "whole": 1}),
        (["a,b", "a,-", "-,b", ",b"], {"letters": 3}),
        (["1,0-2", "1,1-2", "0,0-1", "0,0-2"], {"letters": 5, ",": 2, "-": 2}),
        (["red ball, blue", "blue", "red", "ball, red"], {",": 2, "spaces": 3}),
    ],
)
def test_texts_that_can_be_read_in_two_ways_are_refused(texts: list[str], readings: dict[str, int]) -> None:
    meanings = [[0, 0], [0, 1], [1, 0], [1, 1]]
    with pytest.raises(InvalidSettingError, match="can be read in two ways"):
        Table.of(meanings, texts)
    for tokens, longest in readings.items():
        assert Table.of(meanings, texts, tokens=tokens).length == longest


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["ab", "ba"], ["a", "b"]),
        (["ab", "a"], ["a", "b"]),
        (["01", "10"], [0, 1]),
        (["+-", "-+"], ["+", "-"]),
        (["go_left now", "stop"], ["go_left", "now"]),
        (["a.b", "b.a"], ["a", "b"]),
        (["red-ball", "cube"], ["red", "ball"]),
        (["[]", "[1, 2]"], []),
    ],
)
def test_texts_that_can_be_read_in_one_way(texts: list[str], first: list[Any]) -> None:
    table = Table.of([[0], [1]], texts)
    assert [table.token_name(token) for token in table.messages[0] if token != PAD] == first


def test_texts_of_two_kinds_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"'\[1, 2\]' in row 0 .* is in brackets, but '3' in row 1 .* is not"):
        Table.of([[0], [1]], ["[1, 2]", "3"])
    with pytest.raises(InvalidSettingError, match="is empty between two '-' or at its end"):
        Table.of([[0], [1]], ["1-2", "1-"], tokens="-")
    with pytest.raises(InvalidSettingError, match="a list of lists"):
        Table.of([[0]], ["[[1], [2]]"])


# -- tokens that begin and end messages ------------------------------------------------------------------------------


@pytest.mark.parametrize("eos", ["</s>", "0", 0])
def test_end_and_start_tokens_are_numbers_or_names(eos: Any) -> None:
    said = [["<s>", "red", "sq", str(eos), "x"], ["<s>", "red", "ci", str(eos)], ["<s>", "blue", "ci"]]
    table = Table.of([[0, 0], [0, 1], [1, 1]], said, eos=eos, start="<s>")
    names = [[table.token_name(t) for t in row if t != PAD] for row in table.messages]
    assert names == [["red", "sq"], ["red", "ci"], ["blue", "ci"]]
    assert not table.has_token("<s>")
    assert not table.has_token(str(eos))
    again = Table.of(table, eos=eos)  # which was removed before
    assert again.messages.tolist() == table.messages.tolist()


@pytest.mark.parametrize("option", ["eos", "pad"])
@pytest.mark.parametrize(
    ("messages", "token", "size"), [([[1, 2], [3, 2]], 7, 4), ([[1, 2], [3, 2]], 0, 3), (["ab", "ca"], "z", 3)]
)
def test_an_end_or_padding_that_never_occurs_is_warned_of(
    caplog: pytest.LogCaptureFixture, option: str, messages: Any, token: object, size: int
) -> None:
    """Of several runs some may lack it; the vocabulary leaves it out in all of them."""
    table = Table.of([[0], [1]], messages, **{option: token})
    assert (table.lengths.tolist(), table.vocab_size) == ([2, 2], size)
    assert f"token {quoted(token)} is in no message, and has no effect; the first tokens are" in caplog.text
    assert table.read_as.endswith(f"; no message has the {'end' if option == 'eos' else 'padding'} token {token}")


def test_start_tokens_that_never_occur_are_refused() -> None:
    for option, token in (("start", 7), ("eos", "</s>"), ("pad", "<pad>")):  # or names among numbers
        with pytest.raises(InvalidSettingError, match=r"token .* is in no message; the first tokens are 1, 2 and 3"):
            Table.of([[0], [1]], [[1, 2], [3, 2]], **{option: token})
    with pytest.raises(InvalidSettingError, match=r"row 1 .* does not begin with 1"):
        Table.of([[0], [1]], [[1, 2], [3, 2]], start=1)
    with pytest.raises(UnknownNameError, match="option of reading"):
        Table.of([[0]], [[1]], end=7)


def test_the_end_token_is_no_part_of_the_vocabulary() -> None:
    said = [[1, 3, 0], [1, 4, 0], [2, 3, 0], [2, 4, 0]]
    assert M.bosdis([[0, 0], [0, 1], [1, 0], [1, 1]], said, constant="zero", eos=0).value == 1
    assert Table.of([[0]] * 4, said, eos=0).vocab_size == 4
    assert Table.of([[0]] * 4, said, eos=0, vocab_size=10).vocab_size == 9
    assert Table.of([[0]] * 4, [[1, 5]] * 4, eos=5).vocab_size == 2


# -- meanings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b: f"[{a}, {b}]",
        lambda a, b: f"({a}, {b})",
        lambda a, b: f"{a},{b}",
        lambda a, b: f"{a} {b}",
        lambda a, b: f"{a}-{b}",
        lambda a, b: f"{'wxyz'[a]}_{'wxyz'[b]}",
        lambda a, b: f"{'wxyz'[a]} {'wxyz'[b]}",
    ],
)
def test_a_meaning_column_of_lists_is_several_attributes(form: Callable[[int, int], str], tmp_path: Path) -> None:
    texts = [form(a, b) for a, b in GRID]
    assert np.stack(Table.of(texts, IDEAL).factors, 1).tolist() == GRID
    frame = pd.DataFrame({"meaning": texts, "message": [f"{a} {b}" for a, b in IDEAL]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv")
    assert table.attribute_names == ("meaning0", "meaning1")
    assert table.read_as.startswith("meaning as 2 attributes meaning0 (4 values) and meaning1 (4 values); ")
    frame.assign(meaning=GRID).to_parquet(tmp_path / "t.parquet")
    assert scores(read_table(tmp_path / "t.parquet")) == scores(Table.of(GRID, IDEAL)) == scores(table)


def test_names_with_spaces_are_no_lists() -> None:
    for names in (["New York", "Los Angeles", "San Diego", "Las Vegas"], ["light blue", "red", "dark blue", "green"]):
        assert Table.of(names, [[0], [1], [2], [3]]).attributes == 1


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, np.float32("nan"), np.datetime64("NaT"), np.ma.masked])
def test_missing_values_are_refused_with_their_row_or_dropped(missing: Any) -> None:
    meanings: list[list[Any]] = [["red", 0], [missing, 1], ["blue", 0]]
    with pytest.raises(InvalidSettingError, match=r"There is no value in row 1 .*, attribute 0; .*missing=\"drop\""):
        Table.of(meanings, ["ab", "ac", "bb"])
    dropped = Table.of(meanings, ["ab", "ac", "bb"], missing="drop")
    assert scores(dropped) == scores(Table.of([["red", 0], ["blue", 0]], ["ab", "bb"]))
    frame = pd.DataFrame({"a": [0, 1, 2], "message": ["ab", missing, "b"]}, dtype=object)
    with pytest.raises(InvalidSettingError, match="There is no message in row 1"):
        Table.of(frame[["a"]], frame["message"])
    assert Table.of(frame[["a"]], frame["message"], missing="drop").meanings.tolist() == [[0], [2]]


def test_a_field_may_be_longer_than_the_csv_library_takes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"a,message\n1,{'ab ' * 60_000}\n2,b a\n")
    assert read_table(tmp_path / "t.csv").lengths.tolist() == [60_000, 2]


# -- what a user who tried to break this found -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("meanings", "messages", "options", "sentence"),
    [
        ([[0, 1], [[1], 2]], ["a", "b"], {}, "lists of several lengths"),
        ([[[0, None]], [[1, 2]]], ["a", "b"], {}, "There is no value in row 0"),
        (["[0, None]", "[1, 2]"], ["a", "b"], {}, "lacks a value"),
        (["[0, 1]", "1, 1"], ["a", "b"], {}, "is in brackets, but '1, 1' in row 1"),
        (["{'c': 1}", "{'c': 2}"], ["a", "b"], {}, "set or dictionary"),
        ([[0], [1]], ["[1 2 ... 4]", "[1 2 3 4]"], {}, "cut off"),
        ([[0], [1]], ["a b", "b a"], {"tokens": ","}, "separator ',' is in no message"),
        ([[0], [1]], ["1.0", "2.0"], {}, "two ways: as the tokens before and after the point"),
        ([[0], [1], [2], [3]], ["w1", "w10", "w1", "w10"], {}, "can be read in two ways"),
        ([[0], [1]], [["0.1", "0.9"], ["0.7", "0.3"]], {}, "argmax"),
        ([[0], [1], [2]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], {}, "with a single 1 can be read in two ways"),
        ([[0], [1]], np.array([[[np.nan, 0.7]], [[0.1, 0.2]]]), {"argmax": True}, "There is no message in row 0"),
        ([["a", "1", 0], ["b", 0, 1], ["c", "0", 0]], [frozenset("a")] * 3, {}, "frozenset cannot be"),
        ([[2**53 + 1, 0.5], [2**53, 1.5]], ["a", "b"], {}, "loses digits"),
        ([[None], [None]], ["a", "b"], {"missing": "drop"}, "no row remains"),
        ([[0], [1]], ["a", "b"], {"missing": True}, "treatment of missing values"),
        ([[0], [1]], ["a", "b"], {"weights": {0: 1, 1: 2}}, "not a dict"),
        ([[0], [1]], [[1], [2]], {"eos": [1, 2]}, "Only one token can end"),
    ],
)
def test_ambiguous_data_is_refused(meanings: Any, messages: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(IcyError, match=sentence):
        Table.of(meanings, messages, **options)


@pytest.mark.parametrize(
    ("messages", "options", "expected"),
    [
        (["['x', ',']", "['y', 'x']"], {}, [["x", ","], ["y", "x"]]),
        (["['r x' 'x']", "['x' 'y']"], {}, [["r x", "x"], ["x", "y"]]),
        (["[np.int64(3), np.int64(4)]", "[np.int64(4), np.int64(3)]"], {}, [[3, 4], [4, 3]]),
        (["[0. 1.]", "[0.e+00 1.e+00]"], {}, [[0, 1], [0, 1]]),
        (["<s> x y </s>", "<s> y x </s>"], {"start": "<s>", "eos": "</s>"}, [["x", "y"], ["y", "x"]]),
        ([["0.1", "0.9"], ["0.7", "0.3"]], {"argmax": True}, [[1], [0]]),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], {"argmax": True}, [[0], [1], [2]]),
        ([[1, "1"], ["2", 1]], {}, [[1, 1], [2, 1]]),
        ([[2, 5, 1, 0, 0], [3, 5, 6, 1, 0]], {"eos": 1, "pad": 0}, [[2, 5], [3, 5, 6]]),
        ([[2, 5, 0, 0], [3, 5, 6, 0]], {"eos": 0, "pad": 0}, [[2, 5], [3, 5, 6]]),
        ([[0, 0, 1, 2, 5], [0, 1, 3, 5, 6]], {"start": 1, "pad": 0}, [[2, 5], [3, 5, 6]]),
        ([[2, 1], [3, 1]], {"eos": torch.tensor(1)}, [[2], [3]]),
        (["ab ", "ba"], {}, [["a", "b"], ["b", "a"]]),
        (["a b", "b a"], {"tokens": "LETTERS"}, [["a", "b"], ["b", "a"]]),
    ],
)
def test_readings_that_are_plain(messages: Any, options: dict[str, Any], expected: list[list[Any]]) -> None:
    table = Table.of([[0], [1], [2]][: len(messages)], messages, **options)
    assert [[table.token_name(t) for t in row if t != PAD] for row in table.messages] == expected


def test_concepts_of_phrases_are_the_same_at_any_place() -> None:
    words = [["b", "c"], ["c"], ["b"], ["c", "d"]]
    numbers = [[{"b": "1", "c": "2", "d": "3"}[concept] for concept in phrase] for phrase in words]
    said = ["xy", "y", "x", "yz"]
    for phrases in (words, numbers, [[int(c) for c in phrase] for phrase in numbers]):
        table = Table.of(phrases, said, phrases=True)
        assert M.cbm(table, concepts="items").value == 1
        assert M.topsim(table).value == pytest.approx(M.topsim(Table.of(words, said, phrases=True)).value)
        one_per_concept = [[int(c in phrase) for c in ("b", "c", "d")] for phrase in words]
        cosine = M.topsim(
            Table.of(np.array(one_per_concept) + 1e-9, said), meaning="cosine", correlation="pearson"
        ).value
        assert M.topsim(table, meaning="cosine", correlation="pearson").value == pytest.approx(cosine, abs=1e-6)


def test_files_that_broke(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text('m0\tm1\tmessage\n0\t0\tx a\n0\t1\t" a\n1\t0\tx b\n1\t1\ty "\n')
    assert read_table(tmp_path / "q.tsv").messages.shape == (4, 2)
    (tmp_path / "na.csv").write_text("a,message\n1,ab\nNA,ba\n")
    with pytest.raises(InvalidSettingError, match="There is no value in line 3"):
        read_table(tmp_path / "na.csv")
    order = [0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9]
    header = ",".join(f"t{t}" for t in order)
    (tmp_path / "t.csv").write_text(f"a,{header}\n0,{','.join(map(str, order))}\n1,{','.join(map(str, order))}\n")
    assert read_table(tmp_path / "t.csv").messages[0].tolist() == list(range(11))
    frame = pd.get_dummies(pd.DataFrame({"c": ["r", "g", "b"] * 2, "s": ["w", "x"] * 3}))
    frame.assign(message=["ab", "cd", "ef", "ad", "cb", "ed"]).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(InvalidSettingError, match="one-hot vectors of 3 and 2 values"):
        read_table(tmp_path / "d.csv")
    assert read_table(tmp_path / "d.csv", one_hot=[3, 2]).attributes == 2
    shuffled = pd.DataFrame({"a": [0, 1], "message": ["ab", "ba"]}, index=[1, 0])
    shuffled.to_parquet(tmp_path / "s.parquet")
    assert read_table(tmp_path / "s.parquet").attributes == 1
    (tmp_path / "m.csv").write_text("message\nab\nba\n")
    assert read_table(tmp_path / "m.csv").attributes == 0
    for broken in ("INPUTS\n[[0, 1], [1, 0]\nMESSAGES\n[[1, 2], [2]]\n", "INPUTS\n5\nMESSAGES\n[[1, 2]]\n"):
        (tmp_path / "v.txt").write_text(broken)
        with pytest.raises(IcyError):
            read_table(tmp_path / "v.txt")
    with pytest.raises(StoreError):
        read_table(tmp_path / ("x" * 300))
    with pytest.raises(StoreError, match="has a format that icy does not know"):
        read_table(tmp_path)


def test_files_as_pandas_r_and_spreadsheets_write_them(tmp_path: Path) -> None:
    def table(text: str, **options: Any) -> Table:
        (tmp_path / "t.csv").write_text(text)
        return read_table(tmp_path / "t.csv", **options)

    padded = "m0,m1,t0,t1,t2\n0,0,5,6.0,7.0\n0,1,5,6.0,\n1,0,7,5.0,\n1,1,6,,\n"
    assert table(padded, pad="").messages.tolist() == [[5, 6, 7], [5, 6, PAD], [7, 5, PAD], [6, PAD, PAD]]
    assert table('"","a","message"\n"1","x","ab"\n"2","y","ba"\n').attribute_names == ("a",)
    assert table(",a,message\n0,x,ab\n1,y,ba\n").attribute_names == ("a",)
    assert table("a;message;\nx;ab;\ny;ba;\n;;\n").attribute_names == ("a",)
    decimal = table("size;message\n0,5;ab\n1,5;ba\n")
    assert decimal.meanings.tolist() == [[0.5], [1.5]]
    assert table("colour,t0,t1,message\nred,1,2,x y\nblue,2,1,y x\n").attribute_names == ("colour",)
    for name in ("messages", "Utterance", "tokens"):
        assert table(f"colour,{name}\nred,ab\nblue,ba\n").attribute_names == ("colour",)
    for commas in ("a,message\n0,[3, 4]\n1,[5, 6]\n",):
        with pytest.raises(InvalidSettingError, match="needs quotes"):
            table(commas)


def test_more_readings() -> None:
    square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    one = Table.of(square, pd.DataFrame({"message": ["wa ki", "wa po", "tu ki", "tu po"]}))
    assert one.length == 2
    with pytest.raises(InvalidSettingError, match="most messages do not"):
        Table.of(square, ["ki-mu", "kipo", "tumu", "tupo"])
    assert Table.of(square, ["w\u00e9", "wa", "te\u0301", "ta"]).vocab_size == 4  # one é, however it is encoded
    assert Table.of([0, 1], [[1], [2]]).meanings.tolist() == [[0], [1]]
    vectors = np.eye(4)[[[1, 2], [3, 0]]]
    vectors[1, 1] = 0  # after the end of the message
    for options in ({}, {"argmax": True}):
        assert Table.of([[0], [1]], vectors, **options).messages.tolist() == [[1, 2], [3, PAD]]
    assert Table.of([[0], [1]], [bytes([1, 9]), bytes([1, 10])]).messages.tolist() == [[1, 9], [1, 10]]
    texts = ["[tensor(0, device='cuda:0'), tensor(4)]", "[tensor(1), tensor(4)]"]
    assert Table.of([[0], [1]], texts).messages.tolist() == [[0, 4], [1, 4]]
    assert Table.of([[0], [1]], ["c(1, 3)", "c(2, 3)"]).messages.tolist() == [[1, 3], [2, 3]]
