"""Tables of trained agents."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from icy.analysis.tables.s2b import training_table


def long(options: str = "values=2-3, shots=1, samples=4", **changed: Any) -> pd.DataFrame:
    """Return the results of an agent at two seeds."""
    columns = {
        "model": "LSTM+vdn", "grammar": "learned", "measure": "accuracy", "value": [0.5, 0.6], "seed": [1, 2],
        "steps": 4, "job_kind": "s2b", "preset": "metarg24", "shots": 1.0, "samples": 4.0, "distractors": 0.0,
        "support": 0.5, "floor": 0.5, "observations": 100.0, "failed": False, "censored": False, "options": options,
    }  # fmt: skip
    return pd.DataFrame(columns | changed)


def shown(frame: pd.DataFrame, column: str) -> list[str]:
    table = training_table(frame)
    return [line[0][table.labels.index(column)] for line in table.rows]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("game={'ratio': None, 'query': 'tss'}, values=2-3", "game.query=tss"),
        ("part={'hidden': 8, 'near': 0.1}, sad=True", "part.hidden=8, part.near=0.1, sad=True"),
        ("reconstruction={}, sad=True", "reconstruction, sad=True"),
        ("query=None, sizes=[256, 128], values=2-3", "sizes=[256, 128]"),
        ("sizes=(64, 32)", "sizes=(64, 32)"),
    ],
)  # fmt: skip
def test_settings_with_commas_are_not_split(options: str, settings: str) -> None:
    assert shown(long(options), "settings") == [settings]


def test_nothing_to_say_is_no_column() -> None:
    assert "settings" not in training_table(long("game={'ratio': None}, values=2-3")).labels


def test_presets_are_rows_of_their_own() -> None:
    assert "preset" not in training_table(long()).labels
    both = pd.concat([long(), long(preset="metarg22")])
    assert shown(both, "preset") == ["near32", "metarg22"]  # older records call near32 metarg24


def test_ease_of_acquisition_is_a_column_where_it_was_measured() -> None:
    table = training_table(long(ease_of_acquisition=[0.5, 0.7]))
    assert "EoA" in table.grammars
    assert table.rows[0][1]["EoA"].mean == pytest.approx(60.0)
    assert "EoA: ease of acquisition" in table.render("text")
    assert "EoA" not in training_table(long()).grammars


@pytest.mark.parametrize(
    ("constants", "floor", "note"),
    [
        ([0.52, 0.54], 53.0, "constant answers included,"),
        ([0.52, None], 51.0, "constant answers included for 1 of 2 agents,"),
        (None, 50.0, "constant answers included for 0 of 2 agents,"),
    ],
)
def test_the_note_says_whether_the_floor_has_constant_answers(
    constants: list[float | None] | None, floor: float, note: str
) -> None:
    table = training_table(long(**({} if constants is None else {"constant_floor": constants})))
    assert table.rows[0][1]["deaf"].mean == pytest.approx(floor)
    assert f"ignores all messages, {note}" in " ".join(table.render("text").split())


def test_reconstruction_accuracy_is_a_column_where_there_is_the_loss() -> None:
    table = training_table(long(reconstructed=[0.5, 0.7]))
    assert table.rows[0][1]["reconstructed"].mean == pytest.approx(60.0)
    assert "reconstructed: stimulus components" in table.render("text")
    assert "reconstructed" not in training_table(long()).grammars


@pytest.mark.parametrize(
    ("more", "deaf"), [({}, "50.0±0.0"), ({"constant_floor": 0.55}, "55.0±0.0"), ({"constant_floor": 0.4}, "50.0±0.0")]
)
def test_the_floor_of_trained_agents_includes_constant_answers(more: dict[str, float], deaf: str) -> None:
    ((_, cells),) = training_table(long(**more)).rows
    assert cells["deaf"].text(1) == deaf
