"""Results of version 0.1 are read, shown in tables, and not trained again.

The folder `version-0.1` was written by `icy probe` and `icy e2e` of that version, with `--seeds 1 --meanings 3x4
--word-length 2 --hidden 16`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.config.requests import RunRequest
from icy.experiments.plan import make_plan
from icy.experiments.run import run_plan
from icy.records.kinds import kind_of, row_of
from icy.records.load import load_records
from icy.records.record import Record, record_key
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest

OLD = Path(__file__).parent / "version-0.1"
SIZES: dict[str, Any] = {"seeds": 1, "meanings": "3x4", "word_length": 2, "hidden": 16, "workers": 1}
EVERY_50 = {"settings": {"check_every": 50}}  # the default grid of checks of version 0.1
RUNS: list[tuple[type[RunRequest], dict[str, Any], str]] = [
    (
        ProbeRequest,
        {"model": "sender/FC1L", "grammar": "perm", "target": 0.5, "cap": 2, **EVERY_50},
        "| sender/FC1L | 390 | 1 | 100 | 1.00 | 1.00 |",
    ),
    (
        ProbeRequest,
        {
            "model": "receiver/RNN1L:GRU",
            "grammar": "rot",
            "representation": "discr",
            "protocol": "generalise",
            "target": 0.3,
            "cap": 2,
            **EVERY_50,
        },
        "| receiver/RNN1L:GRU | 1916 | 1 | 50 | 0.48 | 0.28 |",
    ),
    (
        ProbeRequest,
        {
            "model": "sender/RNNAutoReg:GRU",
            "grammar": "perm",
            "representation": "gumb",
            "preset": "published",
            "protocol": "budget",
            "target": 0.5,
        },
        "| sender/RNNAutoReg:GRU | 2005 | 1 | 150 | 0.53 | 0.52 |",
    ),
    (
        EndToEndRequest,
        {
            "sender": "FC1L",
            "receiver": "RNN1L:GRU",
            "pretrain": "perm",
            "steps": 40,
            "report_every": 20,
            "target": 0.5,
            **EVERY_50,
        },
        "| FC1L+RNN1L:GRU | 1 | topsim (hamming) | 0.291 |",
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the old folder, because tables are written to the folder of the results."""
    return Path(shutil.copytree(OLD, tmp_path / "old"))


@pytest.mark.parametrize(("spec", "given", "line"), RUNS, ids=["soft", "discr", "gumb", "pair"])
def test_the_same_run_finds_old_results(spec: type[RunRequest], given: dict[str, Any], line: str, folder: Path) -> None:
    plan = make_plan(spec.asked(**given, **SIZES, out=str(folder)))
    assert plan.total == 0
    result = run_plan(plan)
    assert line in result.table("markdown").splitlines()
    records: list[Record] = list(result.records)
    assert {row_of(record) for record in records} == {plan.rows[0].job.row}


def test_keys_of_old_results_match_their_configurations() -> None:
    parts = ("model", "grammar", "protocol")
    for record in load_records(OLD):
        versions = {name: record["versions"][name] for name in parts if name in record["versions"]}
        assert record_key(record["config"], versions) == record["key"]


def test_old_results_have_known_kinds() -> None:
    records = load_records(OLD)
    assert not any("kind" in record for record in records)
    assert sorted(kind_of(record).name for record in records) == ["e2e", *["probe"] * 6]


def test_the_emerged_language_is_read(folder: Path) -> None:
    game = icy.EndToEndResult.load(folder)
    assert game.language("perm").message_length == 6
    assert game.curves()["steps"].tolist() == [0, 20, 40]
