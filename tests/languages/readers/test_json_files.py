"""JSON and JSON lines: objects, columns, pairs, and messages alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.languages.readers import File, Found, find, read_table, text_files

MEANINGS, MESSAGES = [[0, 1], [1, 0], [1, 1]], [[4, 5], [6], [7, 5]]


def read(folder: Path, content: Any, name: str = "said.jsonl") -> Found:
    """Read a text, or rows as JSON lines."""
    file = folder / name
    text = content if isinstance(content, str) else "".join(f"{json.dumps(row)}\n" for row in content)
    file.write_bytes(text.encode("utf-8"))
    found = find(File(file))
    assert isinstance(found, Found)
    return found


def test_objects(tmp_path: Path) -> None:
    rows = [{"id": 3, "message": said, "meaning": meant} for meant, said in zip(MEANINGS, MESSAGES, strict=True)]
    for found in (read(tmp_path, rows), read(tmp_path, json.dumps(rows, indent=1), "said.json")):
        assert found.columns == {"id": [3, 3, 3], "message": MESSAGES, "meaning": MEANINGS}
    assert not read_table(tmp_path / "said.json").phrases  # numbers at their places


def test_sets_of_concepts(tmp_path: Path) -> None:
    for name, meanings, phrases in (
        ("semantics", [["red", "ball"], ["blue", "ball"]], True),
        ("attributes", [["red", "ball"], ["blue", "ball"]], False),
        ("attributes", [["red", "ball"], ["ball"]], True),
    ):
        read(tmp_path, [{name: meaning, "message": [3]} for meaning in meanings])
        assert read_table(tmp_path / "said.jsonl").phrases == phrases
    read(tmp_path, [{"meaning": meaning, "message": [3]} for meaning in ([1, 2], [2])])
    with pytest.raises(InvalidSettingError, match="all of one length"):  # numbers are values, and one is missing
        read_table(tmp_path / "said.jsonl")


def test_objects_within_objects_and_missing_keys(tmp_path: Path) -> None:
    text = '{"meaning": {"hue": "red", "size": 1}, "message": "ab"}\n\n{"message": "ba", "meaning": {"hue": NaN}}\n'
    found = read(tmp_path, text)
    assert found.columns == {"meaning.hue": ["red", None], "message": ["ab", "ba"], "meaning.size": [1, None]}
    assert (found.places, found.place) == ([1, 3], "line")
    with pytest.raises(InvalidSettingError, match="line 3"):
        read_table(tmp_path / "said.jsonl")


@pytest.mark.parametrize("name", ["said.json", "said.txt", "said"])
def test_an_object_of_columns(tmp_path: Path, name: str) -> None:
    held = {"seed": 3, "setup": {"lr": 0.1}, "meanings": MEANINGS, "messages": MESSAGES}
    found = read(tmp_path, json.dumps(held), name)
    assert found.columns == {"meanings": MEANINGS, "messages": MESSAGES}
    assert found.remarks == ["not used: seed and setup.lr"]
    short = {**held, "messages": MESSAGES[:2]}
    with pytest.raises(InvalidSettingError, match=r"meanings \(3 rows\) and messages \(2 rows\)"):
        read(tmp_path, json.dumps(short), name)


@pytest.mark.parametrize("orient", ["records", "columns", "index", "split", "table"])
def test_all_orientations_of_pandas(tmp_path: Path, orient: Any) -> None:
    frame = pd.DataFrame({"hue": ["red", "blue"], "size": [1, 2], "message": [[3, 4], [5]]})
    frame.to_json(tmp_path / "frame.json", orient=orient)
    table = read_table(tmp_path / "frame.json", meaning_columns=["hue", "size"])
    assert table.attribute_names == ("hue", "size")
    assert table.messages.tolist() == [[3, 4], [5, -1]]


def test_pairs_of_tokens_and_concepts(tmp_path: Path) -> None:
    concepts = [["red", "ball"], ["ball"], ["red"]]
    pairs = list(zip(MESSAGES, concepts, strict=True))
    bare = "".join(f"{json.dumps(said)}, {json.dumps(meant)}\n" for said, meant in pairs)  # on the page of csar
    flat = json.dumps([part for pair in pairs for part in pair])  # likewise
    for found in (
        read(tmp_path, pairs),
        read(tmp_path, json.dumps(pairs), "said.json"),
        read(tmp_path, json.dumps(pairs)),  # in one line
        read(tmp_path, bare, "bare.jsonl"),
        read(tmp_path, flat, "flat.json"),
    ):
        assert found.columns == {"message": MESSAGES, "meaning": concepts}
        assert found.phrases
    assert not read(tmp_path, list(zip(MESSAGES, MEANINGS, strict=True))).phrases  # attributes, by their places


def test_observations_of_csar(tmp_path: Path) -> None:
    held = {"observations": [["blue car", ["blue", "car"]], ["pig", ["pig"]]], "morphemes": [["pig", ["pig"]]]}
    found = read(tmp_path, json.dumps(held, indent=2), "case.json")
    assert found.columns == {"message": ["blue car", "pig"], "meaning": [["blue", "car"], ["pig"]]}
    assert found.phrases
    assert read_table(tmp_path / "case.json").token_names == ("blue", "car", "pig")


def test_lines_of_cbm(tmp_path: Path) -> None:
    found = read(tmp_path, [["3.1.0", "red.square"], ["1.0", "square"]])
    assert found.columns == {"message": [["3", "1", "0"], ["1", "0"]], "phrase": [["red", "square"], ["square"]]}
    assert (found.phrases, found.eos, found.places) == (True, "0", [1, 2])
    assert read(tmp_path, [["0.0", "a"], ["2.0", "b"]]).eos is None  # 0 is a word, too
    assert read(tmp_path, [["x.y", "a"], ["x", "b"]]).eos is None
    padded = read(tmp_path, [["4.3.0.0", "a"], ["2.1.3.0", "b"]])
    assert padded.eos is None
    assert padded.remarks == ["0 ends and pads messages, and counts as a token unless it is given as eos"]
    for odd in (["1..2", "a"], ["", "a"], ["1 2.", "a"]):
        with pytest.raises(InvalidSettingError, match="Line 3 does not have the form"):
            read(tmp_path, [["3.1.0", "a"], ["3.0", "b.c"], odd])


def test_corpora_have_no_meanings(tmp_path: Path) -> None:
    for found in (read(tmp_path, MESSAGES), read(tmp_path, json.dumps(MESSAGES), "corpus.json")):
        assert found.columns == {"message": MESSAGES}
        assert found.meanings == ()
    assert read(tmp_path, ["da so", "so"]).columns == {"message": ["da so", "so"]}
    assert read_table(tmp_path / "corpus.json").attributes == 0


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_blank_lines_and_separators_of_unicode(tmp_path: Path, mark: str) -> None:
    text = f'{mark}\r\n{{"meaning": "a\u2028b", "message": "xy"}}\r\n \r\n{{"meaning": "c\x85", "message": "yx"}}\r\n'
    assert read(tmp_path, text).columns == {"meaning": ["a\u2028b", "c\x85"], "message": ["xy", "yx"]}
    (tmp_path / "wide.jsonl").write_bytes(text.removeprefix(mark).encode("utf-16"))  # as PowerShell writes it
    found = text_files.read_json(File(tmp_path / "wide.jsonl"))
    assert found is not None
    assert found.places == [2, 4]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1, 2]\n\n[3, 4\n[5]\n", "Line 3 is not JSON"),
        ("[1, 2\n[3]\n", "Line 1 is not JSON"),
        ('{"message": "a"}\n{"message": }\n', "Line 2 is not JSON"),
        ("[1, 2]\n3\n", "Line 2 holds 3, but line 1 holds a list of numbers"),
        ('[1, 2]\n{"message": "a"}\n', "Line 2 holds an object, but line 1 holds a list of numbers"),
        ('[1, "a"]\n', "Line 1 holds a list of texts and numbers; rows are objects, as in"),
        ("[[1, 2], [3], [4]]\n[[1], [3], [5]]\n", "Line 1 holds a list of lists"),
        ('[[1], ["a"]]\n[1]\n', "Line 2 holds a list of numbers, but line 1 holds a pair"),
        ("[" * 5000 + "\n", "Line 1 is not JSON"),
    ],
)
def test_other_lines_are_refused_by_their_number(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(IcyError, match=why):
        read(tmp_path, text)


def test_damaged_documents(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Line 3 is not JSON"):
        read(tmp_path, '{\n"meanings": [1],\n"messages": [2}\n', "said.json")
    with pytest.raises(InvalidSettingError, match="no rows"):
        read(tmp_path, "[]", "said.json")


@pytest.mark.parametrize("text", ['"m0","message"\n"1","ab"\n', "m0,message\n[1],ab\n", "[note]\na,b\n", "", "{a\n"])
def test_other_texts_are_not_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "table.csv").write_text(text)
    assert text_files.read_json(File(tmp_path / "table.csv")) is None
