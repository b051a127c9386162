"""A language written in any format that can hold it comes back with the same columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

from icy.languages.containers import plain
from icy.languages.readers import File, Found, find
from tests.properties.helpers import Rows, tables


def write_json(path: Path, held: Any) -> None:
    path.write_text(json.dumps(held))


def write_lines(path: Path, rows: Any) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def pairs(meanings: Any, messages: Any) -> list[Any]:
    return list(zip(messages, meanings, strict=True))


def objects(meanings: Any, messages: Any) -> list[Any]:
    return [{"message": said, "meaning": meant} for said, meant in pairs(meanings, messages)]


def write_log(path: Path, meanings: Any, messages: Any) -> None:
    path.write_text(
        "".join(f"{' '.join(map(str, m))};{' '.join(map(str, s))};0;0\n" for s, m in pairs(meanings, messages))
    )


def write_events(path: Path, meanings: Any, messages: Any) -> None:
    path.write_text(f"INPUTS\n{meanings}\nMESSAGES\n{messages}\n")


RAGGED: dict[str, Callable[[Path, Any, Any], Any]] = {
    "pairs.jsonl": lambda path, *held: write_lines(path, pairs(*held)),
    "pairs.json": lambda path, *held: write_json(path, pairs(*held)),
    "csar.json": lambda path, *held: write_json(path, {"observations": pairs(*held), "morphemes": []}),
    "objects.jsonl": lambda path, *held: write_lines(path, objects(*held)),
    "objects.json": lambda path, *held: write_json(path, objects(*held)),
    "columns.json": lambda path, *held: write_json(path, dict(zip(("meanings", "messages"), held, strict=True))),
    "dict.pt": lambda path, *held: torch.save(dict(zip(("meanings", "messages"), held, strict=True)), path),
    "log.txt": write_log,
}
RECTANGLES: dict[str, Callable[[Path, Any, Any], Any]] = {
    "dict.npz": lambda path, meant, said: np.savez(path, meanings=meant, messages=said),
    "tensors.pt": lambda path, *held: torch.save(
        {"sender_input": torch.tensor(held[0]), "message": torch.tensor(held[1])}, path
    ),
    "pair.pth": lambda path, *held: torch.save(tuple(map(torch.tensor, held)), path),
    "events.txt": write_events,
}


def columns(found: Found) -> tuple[Any, Any]:
    assert found.meanings is not None
    assert found.messages is not None
    (meanings,), (messages,) = found.meanings, found.messages
    return plain(list(found.columns[meanings])), plain(list(found.columns[messages]))


@pytest.mark.parametrize("name", [*RAGGED, *RECTANGLES])
@given(rows=tables(shortest=1))
def test_columns_come_back_from_every_format(name: str, rows: Rows) -> None:
    meanings, messages = rows
    if name in RECTANGLES:
        messages = [(said * 4)[:4] for said in messages]
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        {**RAGGED, **RECTANGLES}[name](path, meanings, messages)
        assert columns(find(File(path))) == (meanings, messages)
