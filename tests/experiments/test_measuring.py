"""Measurements of several languages, players or text models."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import icy
from icy.core.errors import InvalidSettingError
from icy.experiments.measuring import Measurement


def test_a_measurement_has_rows_a_table_and_a_file(tmp_path: Path) -> None:
    scores = icy.measure_languages(["concat", "hol"], "topsim", meanings="2x3", word_length=2, seeds=2)
    assert scores.rows["name"].tolist() == ["concat", "concat", "hol", "hol"]
    assert scores.table().splitlines()[0] == "metrics of languages"
    assert scores.table("csv", spread="sem").startswith("language,")
    assert repr(scores) == scores.table()
    assert scores.plot().axes
    for name in ("rows.csv", "rows.parquet"):
        file = scores.save(tmp_path / name)
        again = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
        assert again["topsim"].tolist() == pytest.approx(scores.rows["topsim"].tolist())
    with pytest.raises(InvalidSettingError, match="Rows are written as"):
        scores.save(tmp_path / "rows.txt")


def test_an_interrupted_measurement_keeps_its_rows_and_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Measurement] = []

    def stop(self: object, part: object) -> pd.DataFrame:
        raise KeyboardInterrupt

    part = icy.measure_languages("concat", "topsim", meanings="2x3", seeds=2)
    monkeypatch.setattr(type(part), "measure_part", stop)
    part.frames.pop()
    with pytest.raises(KeyboardInterrupt, match="1 of 2 languages measured"):
        part.measure(found.append)
    monkeypatch.undo()
    assert found == [part]
    assert len(part.measure().rows) == 2
