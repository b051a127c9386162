"""A language written in any format that can hold it comes back with the same columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icy.languages.readers import File, Found, find, read_table
from icy.languages.readers.tables import choose_columns
from icy.languages.rule import plain
from icy.languages.table import Table
from icy.metrics import ami, bosdis, cbm, mig, posdis, topsim
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
    (meanings,), (messages,), _ = choose_columns(list(found.columns), found.meanings or (), found.messages or ())
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


def write_table(
    path: Path, meanings: Any, messages: Any, write: Callable[[pd.DataFrame, Path], None], said: Any
) -> None:
    columns = {f"m{a}": column for a, column in enumerate(zip(*meanings, strict=True))}
    write(pd.DataFrame({**columns, "message": [said(message) for message in messages]}), path)


def to_csv(frame: pd.DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ";" if "semicolons" in path.name else ",")


def joined(mark: str) -> Callable[[list[int]], str]:
    return lambda message: mark.join(map(str, message))


COLUMNS: dict[str, Callable[[Path, Any, Any], Any]] = {
    "brackets.csv": lambda path, *held: write_table(path, *held, to_csv, str),
    "brackets.tsv": lambda path, *held: write_table(path, *held, to_csv, str),
    "brackets_semicolons.csv": lambda path, *held: write_table(path, *held, to_csv, str),
    "lists.parquet": lambda path, *held: write_table(path, *held, pd.DataFrame.to_parquet, list),
    "lists.feather": lambda path, *held: write_table(path, *held, pd.DataFrame.to_feather, list),
    "texts.parquet": lambda path, *held: write_table(path, *held, pd.DataFrame.to_parquet, str),
}
MARKED: dict[str, Callable[[Path, Any, Any], Any]] = {  # where every message has a mark between its tokens
    f"{name}.csv": lambda path, *held, mark=mark: write_table(path, *held, to_csv, joined(mark))
    for name, mark in (("spaces", " "), ("commas", ","), ("dots", "."), ("dashes", "-"), ("pipes", "|"))
}
FORMATS = {**RAGGED, **RECTANGLES, **COLUMNS, **MARKED}
NEEDS_TWO = {*RECTANGLES, *MARKED}


def scores(table: Table) -> list[float]:
    """The values of metrics that together depend on every value, token and place."""
    found = (posdis(table), bosdis(table, constant="zero"), mig(table), ami(table), cbm(table), topsim(table))
    return [score.value for score in found]


def require_equal_scores(rows: Rows, name: str) -> None:
    meanings, messages = rows
    if name in NEEDS_TWO:
        messages = [(said * 4)[:4] for said in messages]
    expected = Table.of(meanings, messages, one_hot="no", phrases=name == "csar.json")
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        FORMATS[name](path, meanings, messages)
        found = read_table(path, one_hot="no")
    np.testing.assert_array_equal(scores(found), scores(expected))


@pytest.mark.slow
@given(rows=tables(shortest=1), name=st.sampled_from(sorted(FORMATS)))
@settings(max_examples=60, deadline=None)
def test_scores_are_equal_to_the_last_digit(rows: Rows, name: str) -> None:
    require_equal_scores(rows, name)


@pytest.mark.slow
@given(rows=tables(shortest=1), name=st.sampled_from(sorted(FORMATS)))
@settings(max_examples=500, deadline=None)
def test_scores_of_500_languages_are_equal_to_the_last_digit(rows: Rows, name: str) -> None:
    require_equal_scores(rows, name)
