"""A published row of games, measured again: `icy reproduce cbm24/table1 --only thing-qt-l4`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icy
from icy.analysis import published
from icy.analysis.literature.retraining import with_names
from icy.config.specs import ReproduceSpec
from icy.experiments.reproduce import Reproducing
from icy.experiments.reproduction import printed_floors

SHORT: dict[str, Any] = {"steps": 6, "epoch": 3, "turns": 60}


def planned(table: str, only: str = "", **given: Any) -> list[Any]:
    spec = ReproduceSpec.asked(table=table, only=only or (), out="nowhere", **given)
    return [row.job for row in Reproducing.of(spec).plan().rows]


@pytest.mark.slow
def test_rows_are_found_by_name_and_trained_as_published() -> None:
    (job,) = planned("cbm24/table1", "thing-qt-l4")
    setup = job.task
    assert (setup.representation, setup.word_size, setup.message_length, setup.turns.targets) == ("qt", 6, 4, 20)
    assert (setup.steps, setup.learning.unmatched, job.preset) == (400_000, "assigned", "published")
    assert [r.condition for r in job.replicates] == ["near"] * 3
    jobs = planned("cbm24/table3", "thing-*-d64", seeds=1, settings=SHORT)
    assert [(j.task.representation, j.task.message_length, j.task.turns.targets, j.task.steps) for j in jobs] == [
        ("gs", 4, 8, 6), ("gs", 1, 8, 6), ("qt", 4, 8, 6), ("qt", 1, 8, 6),
    ]  # fmt: skip
    (quick,) = planned("cbm24/table1", quick=True)
    assert (quick.task.steps, len(quick.replicates)) == (1000, 1)
    assert (quick.task.world, quick.task.turns.rule_length) == ("thing", 1)  # the fastest row


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
