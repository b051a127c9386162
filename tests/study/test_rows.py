"""Rows of the study table."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import icy
from icy.analysis.people import STUDY_COLUMNS
from icy.core.errors import InvalidSettingError, StoreError
from icy.study.rows import COLUMNS, frame_of, items_of_records, read_rows, rows_of_game, rows_of_long
from tests.study.game.helpers import game_of, play_out


def test_columns_are_those_of_the_analysis() -> None:
    assert COLUMNS == STUDY_COLUMNS


def test_rows_of_a_game() -> None:
    game = game_of(dataset="eng", grammar="rot", number=3)
    state = play_out(game)
    rows = frame_of(rows_of_game(game, state, {"agent_kind": "human", "agent": "people", "person": "a"}, minutes=12.5))
    assert set(rows["person"]) == {"a"}
    assert set(rows["instance"]) == {3}
    assert set(rows["protocol"]) == {"played"}
    by = rows.set_index(["metric", "split"])
    assert by.loc[("exact", "held-out"), "value"] == 1.0
    assert by.loc[("exact", "held-out"), "items"] == 3
    assert by.loc[("exact", "trained"), "items"] == 47
    assert by.loc[("score", "game"), "value"] == 182
    assert math.isnan(by.loc[("score", "game"), "items"])
    assert by.loc[("minutes", "game"), "value"] == 12.5
    assert by.loc[("exact", "answerable twice"), "items"] == 3  # shown by the feedback alone: Train was never opened


def test_agents_are_named_by_the_settings_that_vary(tmp_path: Path) -> None:
    for options in ({}, {"slip": 0.5}):
        result = icy.train("study", player="careless", dataset="synth", grammar="concat", instances=2, options=options,
                           workers=1, out=tmp_path)  # fmt: skip
    other = icy.train("study", player="FC2L", dataset="synth", grammar="concat", instances=1, updates=1, hidden=8,
                      workers=1, out=tmp_path)  # fmt: skip
    from icy.records.load import read_long

    rows = rows_of_long(read_long(tmp_path))
    assert set(rows["agent"]) == {"careless", "careless slip=0.5", "FC2L"}
    assert set(rows.loc[rows["agent"] == "FC2L", "agent_kind"]) == {"model"}
    assert set(rows.loc[rows["agent"] != "FC2L", "agent_kind"]) == {"simulated"}
    exact = rows[(rows["metric"] == "exact") & (rows["split"] == "held-out")]
    assert len(exact) == 5
    saved = {r["seed"]: r["accuracy"] for r in result.records}
    found = exact[exact["agent"] == "careless slip=0.5"].set_index("instance")["value"].to_dict()
    assert found == saved
    items = items_of_records([*result.records, *other.records])
    assert len(items) == 150
    assert items["held_out"].sum() == 9


def test_files(tmp_path: Path) -> None:
    game = game_of()
    rows = frame_of(rows_of_game(game, play_out(game), {"agent_kind": "human", "agent": "people", "person": "a"}))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert read_rows(tmp_path / "rows.csv")["value"].tolist() == rows["value"].tolist()
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidSettingError, match="it lacks the columns agent_kind"):
        read_rows(tmp_path / "other.csv")
    with pytest.raises(StoreError, match=r"cannot be read: No such file or directory\.$"):
        read_rows(tmp_path / "none.csv")
