"""ProbeResult and the tables made of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from pandas.testing import assert_frame_equal

import icy
from icy.analysis.tables.bias import bias_table
from icy.cli import main
from icy.core.errors import StoreError
from icy.experiments.results import ProbeResult, read_results
from icy.records.load import read_long
from icy.records.long_table import to_long
from icy.records.pack import Pack
from tests.helpers import long, readable, record

CUT = {"reason": "cap"}
FAILED = {"failed": True, "reason": "error", "error": "ValueError: no", "steps": None, "accuracy": None}


@pytest.fixture
def three() -> ProbeResult:
    rows = [record("concat", s, 100) for s in (1, 2)]
    rows += [record("rot", 1, 300), record("rot", 2, 500), record("hol", 1, 2000, **CUT), record("hol", 2, 0, **FAILED)]
    return ProbeResult(rows)


def test_spreads(three: ProbeResult) -> None:
    deviation = math.sqrt(2)  # of 3 and 5
    for spread, expected in (("sd", deviation), ("sem", 1.0), ("ci95", 12.7062)):
        cell = bias_table(to_long(three.records), spread).rows[0][1]["rot"]
        assert cell.spread == pytest.approx(expected)


def held_out(grammar: str, accuracy: float, **changes: Any) -> dict[str, Any]:
    made = record(grammar, 1, 100, protocol="generalise", target=0.99, measure="held_out", accuracy=accuracy)
    return {**made, "held_out": 0.2, "split": "random", "train_accuracy": 0.995, **changes}


def test_results_from_before_splits_are_shown_with_new_ones() -> None:
    old = [record("concat", 1, 100), record("hol", 1, 2000, **CUT)]
    assert to_long(old)[["held_out", "split", "train_accuracy"]].isna().all(axis=None)
    table = ProbeResult([*old, held_out("hol", 0.25, key="new", **CUT)]).whole_table().render("text")
    assert "held out" in table.splitlines()[2]
    assert " - " in table.splitlines()[4]
    assert table.count("†") == 4  # a mark in each row and in the legend


def test_dataframes(three: ProbeResult) -> None:
    long, wide = three.to_dataframe(), three.to_dataframe("wide")
    assert long.shape[0] == 6
    assert long["censored"].sum() == 1
    assert wide[("rot", "mean")].item() == 4.0
    assert list(wide.columns.get_level_values(0).unique()) == ["concat", "rot", "hol"]


def test_the_wide_dataframe_shows_what_varies() -> None:
    changes: list[dict[str, Any]] = [
        {}, {"representation": "gumb"}, {"hidden_size": 64}, {"meanings": "3x4"}, {"target": 0.9},
        {"config": {"grammar": "rot", "seed": 1, "settings": {"round_ratio": False}, "options": {"layers": 2}}},
    ]  # fmt: skip
    wide = ProbeResult([record("rot", 1, 300 + i, **change) for i, change in enumerate(changes)]).to_dataframe("wide")
    shown = wide.reset_index()
    assert len(wide) == len(changes)
    assert {"model", "representation", "hidden_size", "meanings", "target", "options"} <= set(wide.index.names)
    assert sorted(shown["hidden_size"]) == [64, 128, 128, 128, 128, 128]
    assert wide.xs("gumb", level="representation").index.get_level_values("target").tolist() == [0.8]
    assert not {"word_length", "preset", "protocol"} & set(wide.index.names)  # the same in all rows


def test_sum_keeps_each_result_once(three: ProbeResult) -> None:
    more = ProbeResult([record("concat", 1, 200), record("perm", 1, 100)])
    both = three + more
    assert len(both.records) == 7
    assert next(r for r in both.records if r["key"] == "concat1")["steps"] == 200
    with pytest.raises(TypeError):
        _ = three + 1  # type: ignore[operator]


def test_save_and_load(three: ProbeResult, tmp_path: Path) -> None:
    whole = ProbeResult([readable({n: v for n, v in r.items() if v is not None}) for r in three.records])
    path = whole.save(tmp_path / "result.json")
    assert ProbeResult.load(path).records == whole.records
    with pytest.raises(StoreError, match=r"\.json"):
        three.save(tmp_path / "result.csv")


def test_anything_loads(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack.parquet"
    Pack.read(tiny_folder).write(pack)
    for path in (tiny_folder, pack, tiny.save(tmp_path / "saved.json")):
        found = icy.load(path)
        assert type(found) is ProbeResult
        assert sorted(r["key"] for r in found.records) == sorted(r["key"] for r in tiny.records)
        assert found.folder == (path if path != tmp_path / "saved.json" else tmp_path)
    assert_frame_equal(icy.load(tiny_folder / "results.csv"), read_long(tiny_folder / "results.csv"))
    assert len(icy.load("atlas")) == len(icy.atlas().table)
    pairs = ProbeResult([{**tiny.records[0], "kind": "e2e", "side": "pair", "curve": []}]).save(tmp_path / "pairs.json")
    assert type(icy.load(pairs)) is icy.EndToEndResult
    with pytest.raises(StoreError, match="does not exist"):
        icy.load("nowhere")


def test_load_refuses_files_without_results(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[]")
    for path, words in (
        (tmp_path / "other.json", "not a results folder"),
        (tmp_path / "no.json", "does not exist"),
        (tmp_path, "no results"),
    ):
        with pytest.raises(StoreError, match=words):
            ProbeResult.load(path)


def test_load_of_a_folder(tiny: icy.ProbeResult, tiny_folder: Path) -> None:
    assert {r["key"] for r in ProbeResult.load(tiny_folder).records} == {r["key"] for r in tiny.records}


# -- reading and the command -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_results_are_read_alike_from_everywhere(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    expected = tiny.to_dataframe().sort_values("key", ignore_index=True)
    saved = tiny.save(tmp_path / "saved.json")
    places = [tiny_folder, saved, tiny_folder / "results.csv", tiny_folder / "results.parquet"]
    for place in places:
        found = read_long(place).sort_values("key", ignore_index=True)
        assert_frame_equal(found, expected, check_dtype=False)
        assert bias_table(found).render("text").splitlines()[0] == tiny.table().splitlines()[0]
    both = read_results(places)
    assert isinstance(both, pd.DataFrame)
    assert len(both) == len(expected)
    assert isinstance(read_results([tiny_folder, saved]), icy.ProbeResult)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_several_tables_the_last_counts(order: tuple[int, int], tmp_path: Path) -> None:
    tables = [long({"A": {"rot": [0.4, 0.6]}}), long({"A": {"rot": [0.5, 0.7]}}).assign(key=None)]
    for place, table in enumerate(tables):
        table.to_csv(tmp_path / f"{place}.csv", index=False)
    found = read_results([tmp_path / f"{place}.csv" for place in order])
    assert isinstance(found, pd.DataFrame)
    assert found["value"].tolist() == tables[order[1]]["value"].tolist()


@pytest.mark.slow
def test_results_with_different_measures_have_separate_tables() -> None:
    result = icy.ProbeResult.load(Path(__file__).parents[1] / "records" / "version-0.1")
    texts = result.table().split("\n\n\n")[0]
    titles = ("acquire: updates", "generalise: accuracy on meanings", "budget: accuracy", "end to end: meanings")
    assert [texts.count(title) for title in titles] == [1, 1, 1, 1]
    assert [len(part.records) for part in result.parts()] == [2, 2, 2, 1]
    assert repr(result) == "\n\n".join(repr(part) for part in result.parts())
    assert result._repr_html_().count("<table") == 4


@pytest.mark.slow
def test_games_in_the_folder_do_not_break_a_comparison() -> None:
    folder = Path(__file__).parents[1] / "records" / "version-0.1"
    done = CliRunner().invoke(main, ["table", str(folder), "--compare", str(folder)])
    assert done.exit_code == 0, done.output
    assert "Games of pairs can only be compared with published results." in done.stderr
    assert "FC1L+RNN1L:GRU" in done.stdout
