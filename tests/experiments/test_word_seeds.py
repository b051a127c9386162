"""Seeds of words that differ from the seeds of initial weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icy
from icy.config.specs import ProbeSpec
from icy.experiments.probe import probe_jobs
from icy.training.job import Replicate

SMALL: dict[str, Any] = {"grammar": ["rot"], "meanings": "2x3", "word_length": 2, "hidden": 8, "quick": False}


def probed(out: Path, **given: Any) -> Any:
    return icy.probe("sender/FC1L", **SMALL, out=out, **given)


def test_words_depend_on_the_seed_of_words() -> None:
    (job,) = probe_jobs(ProbeSpec("sender/FC1L", **SMALL, seeds=[1, 2], word_seeds=[7]))
    (plain,) = probe_jobs(ProbeSpec("sender/FC1L", **SMALL, seeds=[1, 7]))
    words = [job.language(Replicate("rot", seed)) for seed in (1, 2)]
    assert words[0] is words[1]
    assert words[0] is plain.language(Replicate("rot", 7))
    assert job.config(Replicate("rot", 1)) == {**plain.config(Replicate("rot", 1)), "word_seed": 7}


def test_keys_without_a_seed_of_words_are_unchanged() -> None:
    (job,) = probe_jobs(ProbeSpec("sender/FC1L", **SMALL, seeds=2))
    assert "word_seed" not in job.config(Replicate("rot", 123))
    assert "word seed" not in job.facts
    assert job.key(Replicate("concat", 123)) == "678d5b09d4b49ecf4cb6"


@pytest.mark.slow
def test_each_seed_of_words_is_a_row_and_more_of_them_resume(tmp_path: Path) -> None:
    first = probed(tmp_path, seeds=2, word_seeds="7,123").to_dataframe()
    assert first["options"].unique().tolist() == ["word_seed=7", "word_seed=123"]
    again = probed(tmp_path, seeds=2, word_seeds=[123, 7, 8]).to_dataframe()
    assert len(again) == 12
    assert set(first["finished"]) <= set(again["finished"])  # loaded, not trained again
    own = probed(tmp_path, seeds=[123]).to_dataframe().set_index("grammar")["value"]
    same = first.query("options == 'word_seed=123' and seed == 123").set_index("grammar")["value"]
    assert own.to_dict() == same.to_dict()
    shown = icy.ProbeResult.load(tmp_path).bias_table().render("text")
    assert all(f"word_seed={seed}" in shown for seed in (7, 8, 123))
