"""Columns that hold meanings and messages: asked for, named, or the rest; the same in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from icy.core.errors import InvalidSettingError
from icy.languages.readers import read_table
from icy.languages.readers.tables import choose_columns

MEANINGS, MESSAGES = [0, 1, 2, 0], [4, 5, 6, 4]
FORMATS: dict[str, Callable[[Path, dict[str, list[int]]], object]] = {
    "csv": lambda path, held: pd.DataFrame(held).to_csv(path, index=False),
    "parquet": lambda path, held: pd.DataFrame(held).to_parquet(path),
    "json": lambda path, held: path.write_text(json.dumps(held)),
    "jsonl": lambda path, held: pd.DataFrame(held).to_json(path, orient="records", lines=True),
    "npz": lambda path, held: np.savez(path, **held),  # type: ignore[arg-type]
    "pt": lambda path, held: torch.save({name: torch.tensor(column) for name, column in held.items()}, path),
}


@pytest.mark.parametrize("suffix", FORMATS)
def test_usual_names_in_every_format(tmp_path: Path, suffix: str) -> None:
    names = ("meaning", "Meanings", "attributes", "concept", "phrase", "INPUT", "semantics", "sender_input")
    for meaning, message in zip(names, ("message", "Messages", "tokens", "utterance") * 2, strict=True):
        path = tmp_path / f"{meaning}.{suffix}"
        FORMATS[suffix](path, {"id": [1, 2, 3, 4], message: MESSAGES, meaning: MEANINGS})
        table = read_table(path)
        assert (table.attribute_names, table.meanings[:, 0].tolist()) == ((meaning,), MEANINGS)
        assert table.messages[:, 0].tolist() == MESSAGES
        assert table.read_as.endswith("not used: id")


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_rest_in_every_format(tmp_path: Path, suffix: str) -> None:
    held = {"hue": MEANINGS, "t1": [1, 2, 3, 4], "t0": MESSAGES, "size": [1, 1, 0, 0]}
    FORMATS[suffix](tmp_path / f"said.{suffix}", held)
    table = read_table(tmp_path / f"said.{suffix}")
    assert table.attribute_names == ("hue", "size")
    assert table.messages.tolist() == [[4, 1], [5, 2], [6, 3], [4, 4]]


def test_names_win_over_the_rest() -> None:
    for columns, meanings, messages, rest in (
        (["m1", "id", "m0", "message"], ["m0", "m1"], ["message"], False),
        (["meaning", "t1", "t0"], ["meaning"], ["t0", "t1"], False),
        (["hue", "t0", "message"], ["hue"], ["message"], True),  # t0 is not an attribute
        (["hue", "Message", "message"], ["hue", "Message"], ["message"], True),
        (["m0", "word"], ["m0"], ["word"], False),
        (["meaning", "form"], ["meaning"], ["form"], False),
        (["message.0", "message.1"], [], ["message.0", "message.1"], False),
        (["t0", "t1"], [], ["t0", "t1"], False),
        (["message"], [], ["message"], False),
    ):
        assert choose_columns(columns) == (meanings, messages, rest)
    for columns in (["hue", "size"], ["word"]):
        with pytest.raises(InvalidSettingError, match="choose columns of meanings and columns of messages"):
            choose_columns(columns)


def test_requested_columns() -> None:
    assert choose_columns(["meaning", "hue", "message"], ["hue"]) == (["hue"], ["message"], False)
    assert choose_columns(["meaning", "message", "said"], [], ["said"]) == (["meaning"], ["said"], False)
    assert choose_columns(["message", "said"], ["message"]) == (["message"], ["said"], False)
    assert choose_columns(["word"], [], ["word"]) == ([], ["word"], False)
    for asked in ((["hue"], ["hue"]), (["hue", "hue"], ["message"])):
        with pytest.raises(InvalidSettingError, match="without overlap, as in --message-columns"):
            choose_columns(["hue", "message"], *asked)
    with pytest.raises(InvalidSettingError, match="'shape' is not one of them"):
        choose_columns(["hue", "message"], ["shape"])


def test_the_name_of_a_dictionary_is_that_of_its_entries(tmp_path: Path) -> None:
    rows = [{"state": {"hue": h, "size": 1 - h}, "step": h, "sent": {"a": 3, "b": 4 + h}} for h in (0, 1)]
    (tmp_path / "said.json").write_text(json.dumps(rows))
    table = read_table(tmp_path / "said.json", meaning_columns="state", message_columns="sent")
    assert table.attribute_names == ("state.hue", "state.size")
    assert table.messages.tolist() == [[3, 4], [3, 5]]
    part = read_table(tmp_path / "said.json", meaning_columns=["state.size", "step"], message_columns="sent")
    assert part.attribute_names == ("state.size", "step")


def test_texts_that_are_phrases(tmp_path: Path) -> None:
    rows = [["red ball", "ab"], ["ball", "b"], ["blue ball", "cb"]]
    for name, attributes in (("phrase", 2), ("what", 1)):  # by the name of the column
        pd.DataFrame(rows, columns=[name, "message"]).to_csv(tmp_path / "said.csv", index=False)
        table = read_table(tmp_path / "said.csv", tokens="letters")
        assert (table.phrases, table.attributes) == (name == "phrase", attributes)
    pd.DataFrame(rows[::2], columns=["phrase", "message"]).to_csv(tmp_path / "said.csv", index=False)
    assert read_table(tmp_path / "said.csv").attribute_names == ("phrase",)  # of as many words each
