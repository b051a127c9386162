"""Dry runs: estimates that train and write nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import FC2L, run


@pytest.mark.slow
def test_dry_run_trains_and_writes_nothing(out: str) -> None:
    result = run(*FC2L, "-m", "RNNZero:GRU", "-g", "perm", "-o", out, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "4 of 4" in result.stdout
    assert "The time of an update was measured" in result.stderr
    assert not Path(out).exists()
    rows = json.loads(run(*FC2L, "-g", "perm", "-o", out, "--dry-run", "--format", "json").stdout)
    assert rows[0]["grammars"] == "concat perm"
    assert 0 < rows[0]["least_seconds"] < rows[0]["most_seconds"]
