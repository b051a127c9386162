"""The benchmark of the service of the study: a few players get to the end, and the page says so."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks import study_load
from tests.study.service.web.serving import free_port

pytestmark = pytest.mark.slow


@pytest.mark.stress
@pytest.mark.skipif(not Path("/proc/stat").is_file(), reason="what else the machine does is read from /proc/stat")
def test_all_players_finish_without_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_load, "PORT", free_port())
    page = study_load.measured(argparse.Namespace(players=3, pause=0.3, ramp=1.0))
    assert "no errors; 3 of 3 games\n" in page
    assert "no faults in 36 items" in page
