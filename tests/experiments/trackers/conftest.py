"""Each tracker that is installed, and results of every kind."""

from __future__ import annotations

from typing import Any

import pytest

import icy
from icy.experiments.trackers import TRACKERS
from icy.records.record import Record


@pytest.fixture(params=TRACKERS)
def name(request: pytest.FixtureRequest) -> str:
    """Each tracker with an installed package."""
    for package in TRACKERS[request.param].packages:
        pytest.importorskip(package)
    return str(request.param)


@pytest.fixture(scope="session")
def variety(tiny: icy.ProbeResult, tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Results of a probe, of a game from scratch, and of pairs that failed before it."""
    out = tmp_path_factory.mktemp("pairs")
    small: Any = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "workers": 1, "out": out}
    played = icy.end_to_end("FC1L", "FC1L", steps=20, report_every=10, **small)
    learnt = icy.end_to_end("FC1L", "FC1L", "concat", steps=20, target=0.2, settings={"check_every": 5}, **small)
    failed = icy.end_to_end("FC1L", "FC1L", "perm", steps=10, settings={"max_steps": 10, "check_every": 5}, **small)
    assert not played.failures
    assert not learnt.failures
    assert failed.failures
    return [*list(tiny.records)[:2], *played.records, *learnt.records, *failed.records]
