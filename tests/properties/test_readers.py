"""Files of other people's making: whatever their bytes, only a sentence comes out."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from icy.experiments.results import ProbeResult
from icy.experiments.sweep import read_sweep
from icy.metrics import read_table
from tests.properties.helpers import damaged, unless_refused

CSV = b"shape,size,message\nball,1,ab\nball,2,a\ncube,1,ab\nball,1,abc\n"
TOML = b'seeds = 5\nword-length = 2\n[[sweep]]\nmodel = "sender/*"\nrepresentation = ["soft", "gumb"]\n'
YAML = b"seeds: 5\nword-length: 2\nsweep:\n  - model: sender/*\n    representation: [soft, gumb]\n"


def arrays() -> bytes:
    file = io.BytesIO()
    np.savez(file, meanings=np.array([[0, 2], [1, 2]]), messages=np.array([[1, 2], [3, 0]]))
    return file.getvalue()


def compressed() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, meanings=np.array([[0, 2], [1, 2]]), messages=np.array([[1, 2], [3, 0]]))
    return file.getvalue()


def parquet() -> bytes:
    file = io.BytesIO()
    pd.DataFrame({"m0": [0, 1], "m1": [2, 2], "message": [[1, 2], [3]]}).to_parquet(file)
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([[1, 2], [3, 4]]))
    return file.getvalue()


def tensors() -> bytes:
    file = io.BytesIO()
    torch.save({"sender_input": torch.tensor([[0], [1]]), "message": torch.tensor([[1], [2]])}, file)
    return file.getvalue()


FILES = [
    ("t.csv", CSV),
    ("t.tsv", CSV.replace(b",", b"\t")),
    ("a.npz", arrays()),
    ("c.npz", compressed()),
    ("t.parquet", parquet()),
    ("t.pt", tensors()),
    ("interaction", pickle.dumps({"message": [1]})),
    ("said.npy", npy()),
    ("said.jsonl", b'{"meaning": [0, 1], "message": "ab"}\n{"meaning": [1, 0], "message": "ba"}\n'),
    ("pairs.jsonl", b'["4.3.0", "red.ball"]\n["2.0", "ball"]\n'),
    ("corpus.json", b"[[1, 2, 0], [3, 0]]"),
    ("columns.json", b'{"meanings": [[0, 1], [1, 0]], "messages": [[3], [4, 5]]}'),
    ("out.txt", b"1 0;3 4 0;1;1\n0 1;3 0;1;0\n"),
    ("events.txt", b"INPUTS\n[[0, 1], [1, 0]]\nMESSAGES\n[[4, 0], [3, 1]]\n"),
]


@pytest.mark.parametrize(("name", "whole"), FILES)
@given(data=st.data())
def test_a_table_of_any_bytes(name: str, whole: bytes, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_bytes(data.draw(damaged(whole)))
        found = unless_refused(lambda: read_table(file))
        assert found is None or len(found) > 0


@pytest.mark.parametrize(("name", "whole"), [("s.toml", TOML), ("s.yaml", YAML)])
@given(data=st.data())
def test_a_sweep_of_any_bytes(name: str, whole: bytes, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_bytes(data.draw(damaged(whole)))
        found = unless_refused(lambda: read_sweep(file))
        assert found is None or all(isinstance(name, str) for name in found)


@pytest.mark.parametrize("name", ["results.json", "results.zip", "results.parquet", "results.csv"])
@given(data=st.data())
def test_results_of_any_bytes(name: str, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_bytes(data.draw(damaged(b'{"records": [{"key": "a", "config": {}, "failed": false}]}')))
        unless_refused(lambda: ProbeResult.load(file))
