"""Text that EGG's programs print."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.core.errors import InvalidSettingError
from icy.languages.readers import File, Found, egg, find, read_table

NAMESPACE = "Namespace(lr=0.01, device=device(type='cpu'), values=[3, 3])\n"
EPOCH = '{"loss": 0.5, "acc": 0.25, "length": 3.0, "mode": "test", "epoch": 1}\n'
EXTERNAL = "0.0 1.0;9 9 0;3;0\n1.0 0.0;9 0;9;1\n"
OBJECTS = (
    f"{NAMESPACE}4.0,-1.0 -> 4.0,-1.0; 3.0,2.0 -> 3,0 -> 0 (label=0)\n1.0,3.0 -> 4.0,5.0; 1.0,3.0 -> 5 -> 1 (label=1)\n"
    "\nUnique target vectors seen by sender: 2\nUnique messages produced by sender: 2\n"
    "Messagses: 'msg' : msg_count: [('3,0', 1), ('5', 1)]\n\nAccuracy: 0.5"
)
CHANNEL = (
    f"the probs are:  [0.6 0.4]\n{EPOCH}input: 0 -> message: 4,3,0 -> output: 1\ninput: 1 -> message: 0 -> output: 0\n"
)
EVENTS = (
    "INPUTS\n[[0.0, 1.0], [1.0, 0.0]]\nLABELS\n[[1], [0]]\nMESSAGES\n[[4, 0, 2], [3, 1, 0]]\n"
    "OUTPUTS\n[[nan, -inf], [0.25, 0.75]]\n"
)


def read(folder: Path, text: str, name: str = "out.txt") -> Found:
    (folder / name).write_text(text)
    found = find(File(folder / name))
    assert isinstance(found, Found)
    return found


@pytest.mark.parametrize("before", ["", NAMESPACE, f"Launching game with parameters: {NAMESPACE}{EPOCH}# loading\n"])
def test_lines_of_external_game(tmp_path: Path, before: str) -> None:
    found = read(tmp_path, before + EXTERNAL)
    columns = {
        "input": [[0.0, 1.0], [1.0, 0.0]],
        "message": [[9, 9, 0], [9, 0]],
        "output": [[3], [9]],
        "label": [[0], [1]],
    }
    assert found.columns == columns
    first = before.count("\n") + 1
    assert (found.meanings, found.messages, found.places) == (("input",), ("message",), [first, first + 1])
    table = read_table(tmp_path / "out.txt", eos=0)
    assert table.messages.tolist() == [[9, 9], [9, -1]]


def test_a_table_with_a_header_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"m0;message;m1;score\n{EXTERNAL}")
    assert egg.read(File(tmp_path / "t.csv")) is None
    assert read_table(tmp_path / "t.csv", eos=0).attribute_names == ("m0", "m1")


def test_files_of_objects_game(tmp_path: Path) -> None:
    found = read(tmp_path, OBJECTS, "messages_[5, 5]_vocab_6.msg")
    assert found.columns["input"] == [[4.0, -1.0], [1.0, 3.0]]
    assert found.columns["message"] == [[3, 0], [5]]
    assert found.columns["candidates"] == [[[4.0, -1.0], [3.0, 2.0]], [[4.0, 5.0], [1.0, 3.0]]]
    assert found.places == [2, 3]


def test_lines_of_channel(tmp_path: Path) -> None:
    found = read(tmp_path, CHANNEL)
    assert found.columns == {"input": [[0], [1]], "message": [[4, 3, 0], [0]], "output": [[1], [0]]}


def test_validation_events(tmp_path: Path) -> None:
    found = read(tmp_path, f"{NAMESPACE}{EPOCH}{EVENTS}")
    assert found.columns["inputs"] == [[0.0, 1.0], [1.0, 0.0]]
    assert found.columns["messages"].tolist() == [[4, 0, 2], [3, 1, 0]]
    assert found.remarks == [egg.UNHEARD]
    assert read_table(tmp_path / "out.txt", meaning_columns="labels").meanings.tolist() == [[1], [0]]
    relaxed = EVENTS.replace("[[4, 0, 2], [3, 1, 0]]", "[[[0.1, 0.9], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]")
    found = read(tmp_path, f"{EPOCH}{EVENTS}{EPOCH}{relaxed}")
    assert found.columns["messages"].tolist() == [[1, 0], [1, 1]]
    assert found.remarks == [egg.RELAXED, "the last of 2 validations"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{EXTERNAL}1 0;3\n", "Line 3 does not have the form of EGG's external_game"),
        (f"{EXTERNAL}1 0;3 a;1;1\n", "Line 3 does not have"),
        (OBJECTS.replace("5 -> 1 (label=1)", "5 -> 1"), "Line 3 does not have the form of EGG's objects_game"),
        (f"{CHANNEL}input: 2 -> message: ", "Line 5 does not have the form of EGG's channel"),
        (EVENTS[:60], "Line 6 holds an incomplete list of MESSAGES"),
        (
            f"{EVENTS}MESSAGES\n[[1]]\n",
            r"same number of rows, but .* messages \(1 row\)",
        ),
        (f"{EVENTS}INPUTS\n[[1]]\n", "'messages' is not one of them"),
    ],
)
def test_damaged_logs_are_refused_by_their_lines(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "out.txt").write_text(text)
    with pytest.raises(InvalidSettingError, match=why):
        read_table(tmp_path / "out.txt")


@pytest.mark.parametrize("text", ["", "a;b;message\n1;2;ab\n", '{"a": 1}\n', "a -> b\n", "MESSAGES\n[[1]]\n"])
def test_other_texts(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.txt").write_text(text)
    assert egg.read(File(tmp_path / "t.txt")) is None
