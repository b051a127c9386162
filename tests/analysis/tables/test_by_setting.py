"""Tables with a row per setting: games, agents, metrics."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import icy
from icy.analysis.plots.metric_bars import plot_metrics
from icy.analysis.tables.by_setting import metrics_table
from icy.analysis.tables.games import SCORES, evaluation_table, games_table
from icy.analysis.tables.s2b import training_table
from icy.core.errors import InvalidSettingError, StoreError, UnknownNameError
from icy.games.comparison import TRAINING, compare, one_player
from icy.games.playing import kept_agents
from icy.records.record import Record
from icy.training.job import Outcome
from tests.games.helpers import jobs

# -- tables of games, with published values ----------------------------------------------------------------------------


def records(**given: Any) -> list[Record]:
    found = []
    for job in jobs(**given):
        for place, replicate in enumerate(job.replicates):
            scores = {name: 0.25 + place / 100 for name in SCORES if name != "accuracy"}
            extra = {**scores, **job.settings.sizes, "best_step": 6}
            found.append(job.record(Outcome(replicate, "steps", 12, 0.7 + place / 10, [], extra=extra)))
    return found


def test_a_row_per_game_and_a_column_per_score() -> None:
    table = games_table(records(representation=["gs", "qt"], rule_length=1, seeds=2))
    assert table.labels == ["world", "representation", "l", "d", "seeds"]
    assert [labels for labels, _ in table.rows] == [["thing", "gs", "1", "50", "2"], ["thing", "qt", "1", "6", "2"]]
    assert "seen" not in table.grammars  # no rule is held out
    cell = table.rows[0][1]["accuracy"]
    assert (cell.mean, cell.seeds) == (pytest.approx(0.75), 2)


@pytest.mark.slow
def test_columns_that_vary_are_shown() -> None:
    table = games_table(
        records(rule_length=4, targets=[5, 8], message_length=2, seeds=1, distractor_kind=["near", "uniform"],
                settings={"epoch": 9})
    )  # fmt: skip
    assert table.labels == ["world", "representation", "l", "words said", "T", "distractors", "settings", "seeds"]
    assert table.rows[0][0] == ["thing", "qt", "4", "2", "5", "near", "epoch=9", "1"]
    assert "seen" in table.grammars


def test_published_rows_are_below() -> None:
    table = games_table(records(representation=["gs", "qt"], rule_length=1, seeds=2, steps=9), compare="cbm24/table1")
    reference = table.rows[0][1]["CBM"].reference
    assert reference is not None
    assert reference.mean == 0.38
    assert table.compared == "cbm24/table1"
    assert table.rows[0][1]["soft"].reference is None
    with pytest.raises(UnknownNameError, match="published table of games"):
        games_table(records(seeds=1), compare="icy22/table3")
    with pytest.raises(InvalidSettingError, match="published table"):
        games_table(records(seeds=1), compare=pd.DataFrame())


def test_agents_side_by_side() -> None:
    about = {
        "world": "thing",
        **dict.fromkeys(TRAINING, ""),
        "rule_length": 1,
        "targets": 3,
        "distractors": 3,
        "distractor_kind": "near",
    }
    scores = dict.fromkeys(SCORES, 0.5) | {"soft_accuracy": float("nan")}
    rows = pd.DataFrame(
        [{"agents": f"a+b, seed {s}", "seed": s, **about, **scores, "accuracy": s / 10} for s in (4, 6)]
        + [{"agents": "ideal", "seed": 0, **about, **scores}]
    )
    table = evaluation_table(rows, "sem")
    assert [labels[0] for labels, _ in table.rows] == ["a+b", "ideal"]
    assert table.rows[0][1]["accuracy"].mean == pytest.approx(0.5)
    assert "soft" not in table.grammars


@pytest.mark.slow
def test_trainings_that_differ_are_not_averaged(tmp_path: Path) -> None:
    few = {"steps": 4, "seeds": 2, "workers": 1, "settings": {"epoch": 2, "turns": 20}, "progress": False}
    trained = icy.train("games", representation=["gs", "qt"], targets=2, keep_models=True, out=tmp_path, **few)
    table = evaluation_table(compare([tmp_path, "ideal"]))
    at = table.labels.index("representation")
    assert [(labels[at], labels[-1]) for labels, _ in table.rows] == [("gs", "2"), ("qt", "2"), ("-", "1")]
    of_gs = [dict(record)["cbm"] for record in trained.records if record["representation"] == "gs"]
    assert table.rows[0][1]["CBM"].mean == pytest.approx(sum(of_gs) / 2)
    assert "mean ± standard deviation over seeds" in table.notes
    alone = evaluation_table(compare(tmp_path, seed=123, representation="qt"))
    assert "mean ± standard deviation over seeds" not in alone.notes
    assert "representation" not in alone.labels


def test_an_ambiguous_name_is_an_error(tmp_path: Path) -> None:
    few = {"steps": 2, "workers": 1, "settings": {"epoch": 1, "turns": 20}, "progress": False}
    icy.train("games", seeds=2, targets=2, keep_models=True, out=tmp_path, **few)
    with pytest.raises(
        StoreError, match=r"2 saved models that match, which differ in seed \(123, 124\); choose one, as in seed=123"
    ):
        one_player(tmp_path)
    assert one_player(tmp_path, seed=124).seed == 124
    file = tmp_path / kept_agents(tmp_path, seed=124)[0].source[1]
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(StoreError, match=rf"{file.name}: The file of a saved model is damaged .* leave it out"):
        compare(tmp_path)


# -- tables of trained agents ------------------------------------------------------------------------------------------


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


# -- tables and bars of scores -----------------------------------------------------------------------------------------


def test_figure_and_table_of_scores() -> None:
    rows = pd.DataFrame(
        {"name": ["rot", "rot", "mine"], "seed": [1, 2, None], "rows": 9, "attributes": 2, "length": 4, "vocab_size": 4,
         "topsim": [0.25, 0.75, -0.5], "tre": [1.0, 3.0, math.nan], "topsim_error": [math.nan, math.nan, 0.125]}
    )  # fmt: skip
    table = metrics_table(rows, ["topsim", "tre"], "sem")
    assert [row[-2:] for row in table.groups()[0][1]] == [["0.500±0.250", "2.000±1.000"], ["-0.500±0.125", "-"]]
    figure = plot_metrics(rows, ["topsim", "tre"])
    assert [ax.get_title() for ax in figure.axes] == ["topsim", "tre\nlower is better"]
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0.5, -0.5]


def test_metrics_of_a_single_language_share_a_panel_and_show_their_values() -> None:
    rows = pd.DataFrame(
        {"name": "mine", "seed": [1, 2], "topsim": [0.25, 0.75], "tre": [10.0, 20.0], "dci": [math.nan, math.nan],
         "posdis": [0.5, 0.5]}
    )  # fmt: skip
    shares, numbers = plot_metrics(rows, ["topsim", "tre", "dci", "posdis"]).axes
    assert [label.get_text() for label in shares.get_yticklabels()] == ["topsim", "dci", "posdis"]
    assert [text.get_text() for text in shares.texts] == ["0.500 ± 0.354", "undefined", "0.500 ± 0.000"]
    assert [text.get_text() for text in numbers.texts] == ["15 ± 7.071"]
    assert len(plot_metrics(rows, ["topsim"]).axes) == 1
