"""The table of determinism: what it compares, what it calls different, and its small form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cores import needs_native
from tests.stress import determinism

pytestmark = pytest.mark.slow


def written(folder: Path, **record: object) -> Path:
    (folder / "records").mkdir(parents=True)
    (folder / "model").write_bytes(b"weights")
    text = json.dumps({"key": "a", "accuracy": 0.5, "seconds": 1.0, "finished": "now", "files": ["model"], **record})
    (folder / "records" / "a.json").write_text(text)
    return folder


def test_records_are_compared_in_all_but_their_times(tmp_path: Path) -> None:
    one = determinism.contents(written(tmp_path / "one"))
    assert determinism.contents(written(tmp_path / "later", seconds=2.0, finished="later")) == one
    assert determinism.contents(written(tmp_path / "other", accuracy=0.5000001)) != one
    odd = written(tmp_path / "odd")
    (odd / "model").write_bytes(b"weighty")
    assert determinism.contents(odd) != one


def test_each_row_of_the_table_makes_200_comparisons() -> None:
    for parts in determinism.rows(False).values():
        replicates = sum(len(part["seeds"]) * len(part[determinism.condition_of(part)]) for part in parts)
        assert replicates * len(determinism.WAYS) >= 200


@pytest.mark.stress
@pytest.mark.parametrize("path", [pytest.param("native", marks=needs_native), "PyTorch"])
@pytest.mark.parametrize("row", ["soft", "gumb", "discr", "e2e", "games"])
def test_nothing_differs_in_the_small_form(row: str, path: str) -> None:
    (line,) = determinism.lines([row], [path], quick=True)
    assert line.compared >= 1
    assert set(line.differing.values()) == {0}
    assert line.engines == (["native"] if path == "native" else ["broadcast"])
