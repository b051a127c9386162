"""The analysis of the study of iterated learning, on small chains."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import icy
from icy.experiments.results import ProbeResult
from icy.records.load import long_of
from results.iterated import __main__ as iterated


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> ProbeResult:
    folder = tmp_path_factory.mktemp("chains")
    options = {"quick": True, "generations": 1, "updates": 20, "workers": 1, "out": folder}
    return icy.iterate(["FC2L", "FC1L"], list(iterated.GRAMMARS), **options)  # type: ignore[arg-type]


def test_only_senders_with_all_chains_count(chains: ProbeResult) -> None:
    (share, done), *others = iterated.whole_senders(chains, 2).items()
    assert (share, len(done.records), others) == ("0.5", 28, [])
    partial = ProbeResult(list(chains.records)[:-1], folder=chains.folder)
    (left,) = iterated.whole_senders(partial, 2).values()
    assert {record["model"] for record in left.records} == {"sender/FC2L"}
    assert iterated.whole_senders(ProbeResult([]), 2) == {}


@pytest.mark.slow
def test_a_stage_has_every_analysis_and_says_that_it_is_partial(
    chains: ProbeResult, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "first.toml").write_text('model = ["FC2L", "FC1L", "RNNZero:RNN"]')
    monkeypatch.setattr(iterated, "HERE", tmp_path)
    ((share, done),) = iterated.whole_senders(chains, 2).items()
    text = iterated.stage_text("first", share, done)
    assert "28 chains of 2 of 3 senders; the other senders are not finished." in text
    assert text.count("\n### ") == 5
    assert "Fewer than 4 cells have all chains" in text
    assert sorted(path.name for path in tmp_path.glob("*.png")) == [
        "iterated-first-0.5-curves.png",
        "iterated-first-0.5-paths.png",
    ]


def test_learners_that_missed_the_target_are_named(chains: ProbeResult) -> None:
    long = iterated.with_settings(long_of(chains.records))
    text, good = iterated.reached_text(long)
    assert text.startswith("Fewer than 90 % of the learners of FC1L (0%) and FC2L (0%)")
    assert good == set()


def test_a_verdict_follows_from_the_interval() -> None:
    assert iterated.verdict(-0.9, -0.1) == "Supported"
    assert iterated.verdict(0.1, 0.9) == "Opposed"
    assert iterated.verdict(0.1, 0.9, expected=1) == "Supported"
    assert iterated.verdict(-0.1, 0.9) == "Open"
    assert iterated.verdict(float("nan"), float("nan")) == "Open: there is no interval"


def test_survival_that_falls_with_the_ratio_has_a_negative_correlation() -> None:
    ratios = iterated.means_of(iterated.ratios(), "value")[list(iterated.MIDDLE)]
    text = iterated.within_text(-ratios.rank(axis=1), "survival")
    assert "**Supported.**" in text
    assert pd.Series(text.splitlines()).str.contains(r"\| -1\.00 \|").sum() > 30
