"""Reproductions of published tables: of models, agents and games."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest

import icy
from icy.analysis.literature.catalogue import find_table, published
from icy.analysis.literature.retraining import with_names
from icy.config.requests import ReproduceRequest
from icy.experiments.reproduce import Reproducing
from icy.experiments.reproduction import Reproduction, _learned_from, printed_floors

# -- reproductions: measurement, verdicts and output -------------------------------------------------------------------


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_row_is_measured_and_judged(memory: tuple[icy.Reproduction, Path]) -> None:
    done, folder = memory
    (cell,) = done.cells.to_dict("records")
    assert (cell["model"], cell["grammar"], cell["seeds"], cell["published"]) == ("Hashtable", "perm", 2, 1.0)
    assert cell["verdict"] == "agrees"
    assert done.verdict.measured == 1
    page = done.page()
    assert page.startswith("# icy22/table3, measured again")
    assert "| Hashtable | perm |" in page
    partly = replace(done, wanted=published("icy22/3").query("model in ('Hashtable', 'FC2L')")).page()
    assert "Not measured: FC2L, Hashtable (proj, rot, shufdet, hol)." in partly
    assert str(done.verdict) in repr(done)
    assert "<td>Hashtable</td>" in done._repr_html_()
    again = icy.reproduce("icy22/3", "Hashtable", grammar="perm", seeds=2, rerun="never", out=folder)
    pd.testing.assert_frame_equal(again.cells, done.cells)


def test_pairs_are_judged_and_shown() -> None:
    """Three games after learning perm, as the store has them."""
    about = {
        "model": "RNNZero:GRU+RNN1L:GRU", "side": "pair", "grammar": "perm", "representation": "soft", "failed": False,
        "meanings": "5x10", "vocab_size": 4, "word_length": 4, "hidden_size": 128, "protocol": "e2e", "target": 0.99,
        "cap": 20, "most": 10_000, "pretrain_representation": "soft", "report_every": 100, "preset": "published",
        "measure": "accuracy", "reason": "steps", "steps": 10_000, "accuracy": 1.0, "end_to_end_accuracy": 1.0,
        "parameters": {}, "config": {"settings": {"check_every": 50}, "options": {}}, "versions": {},
        "finished": "2026-01-01", "curve": [],
    }  # fmt: skip
    records = [{**about, "seed": s, "key": str(s), "sender_accuracy": 0.87 + 0.01 * s, "topsim": 0.5} for s in range(3)]
    source = find_table("perkins21/table17")
    wanted = published(source.id).query("model == @about['model'] and grammar == 'perm' and representation == 'soft'")
    done = icy.Reproduction(source, icy.EndToEndResult(records), wanted)
    (cell,) = done.cells.to_dict("records")
    assert (cell["icy"], cell["published"], cell["verdict"]) == (pytest.approx(0.88), 0.88, "agrees")
    assert "0.880±0.006" in done.table().render("text")
    assert "(+0.0)" in done.table().render("text")
    assert "| RNNZero:GRU+RNN1L:GRU | perm | 0.880±0.006 | 3 |" in done.page()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "settings", "title"),
    [
        ("icy22/table4", {}, "icy22/table4"),  # rows of 1280 units are checked at every update, others not
        ("perkins21/table13", {"check_every": 400}, "perkins21/table13, check_every=400"),
    ],
)
def test_only_settings_of_all_rows_are_in_the_title(
    table: str, settings: dict[str, int], title: str, tmp_path: Path
) -> None:
    pack = ROOT / "results" / "reproduced" / "records.parquet"
    done = icy.reproduce(table, "FC2L", settings=settings, rerun="never", initial_results=pack, out=tmp_path)
    assert len(done.result.records) > 20
    assert done.page().startswith(f"# {title}, measured again")


# -- the page of a reproduction of agents, which know no grammars ------------------------------------------------------


class Measured:
    """Results in long form, without records."""

    def __init__(self, long: pd.DataFrame) -> None:
        self.long, self.records = long, list[Any]()

    def to_dataframe(self) -> pd.DataFrame:
        return self.long


def reproduction() -> Reproduction:
    rows = [
        {"model": "LSTM+r2d2", "shots": 1, "samples": 1, "failed": False, "value": value, "observations": count,
         "options": "values=2-5, shots=1", "settings": ""}
        for value, count in ((0.61, 1e6), (0.63, 1.5e6))
    ]  # fmt: skip
    table = find_table("metarg22/listener")
    return Reproduction(table, cast(Any, Measured(pd.DataFrame(rows))), published(table.id))


def test_cells_have_the_columns_of_agents() -> None:
    cells = reproduction().cells
    assert len(cells) == 9
    assert cells["icy"].dropna().tolist() == [62.0]


def test_the_page_shows_agents_and_games() -> None:
    text = reproduction().page()
    assert "| agent | game |" in text
    assert "| LSTM | S=1, O=1 | 62.000" in text
    assert "Not measured: LSTM (S=2, O=1" in text


def test_the_page_says_from_how_many_observations() -> None:
    assert _learned_from(reproduction()) == "from 1,250,000 observations an agent, where the paper's had 5,000,000"


# -- a published row of games, measured again: `icy reproduce cbm24/table1 --only thing-qt-l4` -------------------------


SHORT: dict[str, Any] = {"steps": 6, "epoch": 3, "turns": 60}


def planned(table: str, only: str = "", **given: Any) -> list[Any]:
    spec = ReproduceRequest.asked(table=table, only=only or (), out="nowhere", **given)
    return [row.job for row in Reproducing.of(spec).plan().rows]


@pytest.mark.slow
def test_rows_are_found_by_name_and_trained_as_published() -> None:
    (job,) = planned("cbm24/table1", "thing-qt-l4")
    setup = job.settings
    assert (setup.representation, setup.word_size, setup.message_length, setup.turns.targets) == ("qt", 6, 4, 20)
    assert (setup.updates, setup.learning.unmatched, job.preset) == (400_000, "assigned", "published")
    assert [r.condition for r in job.replicates] == ["nearest"] * 3
    jobs = planned("cbm24/table3", "thing-*-d64", seeds=1, settings=SHORT)
    rows = [job.settings for job in jobs]
    assert [(row.representation, row.message_length, row.turns.targets, row.updates) for row in rows] == [
        ("gs", 4, 8, 6), ("gs", 1, 8, 6), ("qt", 4, 8, 6), ("qt", 1, 8, 6),
    ]  # fmt: skip
    (quick,) = planned("cbm24/table1", quick=True)
    assert (quick.settings.updates, len(quick.replicates)) == (1000, 1)
    assert (quick.settings.world, quick.settings.turns.rule_length) == ("thing", 1)  # the fastest row


@pytest.mark.slow
def test_a_row_is_measured_again_with_floors_and_claims(tmp_path: Path) -> None:
    done = icy.reproduce(
        "cbm24/table1", "thing-gs-l1", seeds=2, settings=SHORT, workers=1, out=tmp_path, progress=False
    )
    cells = done.cells.set_index("measure")
    assert len(cells) == 11
    assert cells.loc["accuracy", "published"] == 0.86
    assert cells.loc["accuracy", "seeds"] == 2
    floors = done.floors()
    assert floors["row"].tolist() == ["thing-gs-l1"]
    assert floors["chance"].item() == pytest.approx(0.07, abs=0.01)
    assert done.claims()["verdict"].isin(["not measured", "holds", "does not hold", "holds in part"]).all()
    page = done.page()
    assert "| thing-gs-l1 | accuracy |" in page
    assert "## Claims" in page
    assert "## CBM and chance" in page
    assert "with 6 updates" in page
    assert "cbm24/table1" in done.table().render("text")


def test_floors_of_printed_rows() -> None:
    rows = with_names(published("cbm24/table1"), "cbm24/table1").query("row in ('shape-gs-l1', 'shape-gs-l4')")
    found = printed_floors(rows).set_index("row")
    assert found["chance"].tolist() == pytest.approx([0.11, 0.29], abs=0.01)
    assert found["printed"].tolist() == [0.62, 0.52]
    # The score of a random message for every phrase equals the published score.
    assert found["holistic"].tolist() == pytest.approx([0.60, 0.49], abs=0.02)
