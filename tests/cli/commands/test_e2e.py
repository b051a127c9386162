"""`icy e2e`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.helpers import run

PAIR = ["e2e", "-s", "FC2L", "-r", "RNN1L:GRU", "--quick", "--seeds", "1", "--workers", "1", "--steps", "20"]


@pytest.mark.slow
def test_e2e_trains_prints_and_draws(tmp_path: Path) -> None:
    figure = tmp_path / "curves.png"
    result = run(*PAIR, "--out", str(tmp_path / "o"), "--plot", str(figure))
    assert result.exit_code == 0, result.stderr
    assert "FC2L+RNN1L:GRU" in result.stdout
    assert "end-to-end accuracy" in result.stdout
    assert figure.stat().st_size > 10_000
    again = run(*PAIR, "--out", str(tmp_path / "o"))
    assert "Nothing to train" in again.stderr
    assert again.stdout == result.stdout
    as_csv = run(*PAIR, "--out", str(tmp_path / "o"), "--format", "csv").stdout.splitlines()
    assert as_csv[0].startswith("model,seeds,measure,none_mean")


@pytest.mark.slow
def test_e2e_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = run(*PAIR, "--pretrain", "perm", "--dry-run", "--out", str(tmp_path / "o"))
    assert result.exit_code == 0, result.stderr
    assert "1 of 1" in result.stdout
    assert re.search(r"a replicate takes [\d,]+ to [\d,]+ updates", result.stderr)
    assert not (tmp_path / "o").exists()


def test_e2e_whose_pre_training_fails_exits_with_1(tmp_path: Path) -> None:
    given = [*PAIR, "--pretrain", "hol", "--target", "0.999", "--set", "max_steps=50", "--out", str(tmp_path / "o")]
    result = run(*given)
    assert result.exit_code == 1
    assert "failed" in result.stdout
    assert "did not reach 0.999 within 50 updates" in result.stdout
