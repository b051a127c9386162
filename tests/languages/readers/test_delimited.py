"""Tables of text: header lines, comments and separators."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.core.errors import InvalidSettingError
from icy.languages.readers import read_table
from icy.languages.table import Table

GRID = [("red", "big", "ab"), ("red", "small", "ac"), ("blue", "big", "cb"), ("blue", "small", "cc")]
NUMBERS = [(0, 0, 5, 7), (0, 1, 5, 8), (1, 0, 6, 7), (1, 1, 6, 8)]
COGS = [
    ("A rose was helped by a dog .", "rose ( x _ 1 ) AND help . theme ( x _ 3 , x _ 1 ) ; dog ( x _ 6 )"),
    ("The boy slept .", "* boy ( x _ 1 ) ; sleep . agent ( x _ 2 , x _ 1 )"),
    ("A cat ran .", "cat ( x _ 1 ) AND run . agent ( x _ 2 , x _ 1 )"),
]
SCAN = [("jump", "I_JUMP"), ("jump twice", "I_JUMP I_JUMP"), ("walk", "I_WALK"), ("walk twice", "I_WALK I_WALK")]


def write(path: Path, rows: list[tuple[object, ...]], separator: str, before: str = "") -> Path:
    path.write_text(before + "".join(separator.join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("name", "rows", "separator", "meanings", "messages"),
    [
        ("a.csv", GRID, ",", ["1", "2"], ["3"]),
        ("a.tsv", GRID, "\t", ["1", "2"], ["3"]),
        ("a.txt", GRID, ";", ["1", "2"], ["3"]),
        ("a.csv", NUMBERS, ",", ["1", "2"], ["3", "4"]),
        ("a.csv", [row[::-1] for row in GRID], "|", ["3", "2"], ["1"]),
        ("scan.tsv", SCAN, "\t", ["2"], ["1"]),
        ("cogs.tsv", [(*row, "in_distribution") for row in COGS], "\t", ["2"], ["1"]),
        ("same.csv", [("x", "x", "ab"), ("y", "y", "cd"), ("z", "x", "ef")], ",", ["1", "2"], ["3"]),
        ("distinct.csv", [("red", "ab"), ("blue", "cd"), ("green", "ef")], ",", ["1"], ["2"]),
    ],
)
def test_a_table_without_a_header_loses_no_row(
    tmp_path: Path, name: str, rows: list[tuple[object, ...]], separator: str, meanings: list[str], messages: list[str]
) -> None:
    path = write(tmp_path / name, rows, separator)
    with pytest.raises(
        InvalidSettingError, match=r"no header line: columns have numbers, from 1|by number: --message-"
    ):
        read_table(path)
    table = read_table(path, meaning_columns=meanings, message_columns=messages)
    assert len(table) == len(rows)
    assert "no header line: columns have numbers, from 1" in table.read_as
    named = write(tmp_path / f"named{path.suffix}", [tuple(f"c{n}" for n in range(len(rows[0]))), *rows], separator)
    same = read_table(
        named,
        meaning_columns=[f"c{int(n) - 1}" for n in meanings],
        message_columns=[f"c{int(n) - 1}" for n in messages],
    )
    assert same.messages.tolist() == table.messages.tolist()
    assert "names of columns from line 1" in same.read_as


@pytest.mark.parametrize(
    "header", ["a,b,message", "0,1,2", "1,2,3", "red,hue,word", "m0,m1,t0", "Meaning.a,Meaning.b,text", "x,big,y"]
)
def test_a_header_is_no_row(tmp_path: Path, header: str) -> None:
    path = write(tmp_path / "a.csv", GRID, ",", before=f"{header}\n")
    names = header.split(",")
    table = read_table(path, meaning_columns=names[:2], message_columns=names[2:], tokens="letters")
    assert len(table) == len(GRID)
    assert table.attribute_names == tuple(names[:2])


def test_a_number_that_is_no_column_of_a_known_header_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", GRID, ",", before="color,size,message\n")
    with pytest.raises(InvalidSettingError, match="has the columns color, size, message; '1' is not one of them"):
        read_table(path, meaning_columns=["1", "2"], message_columns=["3"])


def test_messages_alone_without_a_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", [("abba",), ("abcd",), ("ba",)], ",")
    with pytest.raises(InvalidSettingError, match="choose by number: --message-columns 1"):
        read_table(path)
    assert read_table(path, message_columns="1").lengths.tolist() == [4, 4, 2]


def test_commands_of_scan(tmp_path: Path) -> None:
    path = tmp_path / "tasks.txt"
    path.write_text("".join(f"IN: {command} OUT: {actions}\n" for command, actions in SCAN))
    table = read_table(path)
    assert table.concepts[1] == ["I_JUMP", "I_JUMP"]
    assert table.lengths.tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "# made by hand\n{0}{1}",
        "# two\n#\n# with, a comma\n{0}{1}",
        "#one, two, three\n{0}{1}",
        "{0}{1}# the end\n",
        "{0}# first half\n{1}",
        "# {0}{1}",
        "#{0}{1}",
        "\n# text\n\n{0}{1}",
    ],
)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_comments_are_no_rows(tmp_path: Path, text: str, separator: str) -> None:
    rows = "".join(separator.join(row) + "\n" for row in GRID)
    path = tmp_path / "a.csv"
    path.write_text(text.format(separator.join(["color", "size", "message"]) + "\n", rows))
    table = read_table(path)
    assert table.attribute_names == ("color", "size")
    assert (len(table), table.length) == (4, 2)


def test_values_and_names_that_begin_like_comments(tmp_path: Path) -> None:
    rows = [(f"#{color * 3}", size, message) for color, size, message in GRID]
    hues = ("#redredred", "#blueblueblue")
    numbered = write(tmp_path / "a.csv", rows, ",")
    table = read_table(numbered, meaning_columns=["1", "2"], message_columns="3")
    assert {table.value_name(0, v) for v in table.meanings[:, 0]} == {*hues}
    named = read_table(write(tmp_path / "b.csv", rows, ",", before="#,size,message\n"))
    assert named.attribute_names == ("#", "size")
    assert {named.value_name(0, v) for v in named.meanings[:, 0]} == {*hues}
    assert isinstance(named, Table)
