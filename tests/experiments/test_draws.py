"""Training on the authors' languages: keys, facts, and pairs and chains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icy
from icy.config.specs import ChainSpec, EndToEndSpec, ProbeSpec
from icy.core.errors import InvalidSettingError
from icy.experiments.e2e import pair_jobs
from icy.experiments.iterate import chain_jobs
from icy.experiments.probe import probe_jobs
from icy.training.job import Replicate

SMALL: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 8}
ROT = Replicate("rot", 123)


def jobs_of(kind: str, **given: Any) -> list[Any]:
    if kind == "probe":
        return list(probe_jobs(ProbeSpec("sender/FC1L", "rot", **SMALL, **given)))
    if kind == "e2e":
        return list(pair_jobs(EndToEndSpec("FC1L", "RNN1L:GRU", "rot", **SMALL, **given)))
    return list(chain_jobs(ChainSpec("FC1L", grammar="rot", **SMALL, **given)))


@pytest.mark.parametrize("kind", ["probe", "e2e", "chain"])
def test_the_draws_are_part_of_the_key_except_the_default(kind: str) -> None:
    plain, authors = jobs_of(kind, draws="all")
    assert authors.config(ROT) == {**plain.config(ROT), "draws": "authors"}
    assert "draws" not in plain.config(ROT)
    assert authors.facts == {**plain.facts, "draws": "authors"}
    assert authors.language(ROT) == icy.make_language("rot", "2x3", 4, 2, 123, draws="authors")
    assert plain.language(ROT) == icy.make_language("rot", "2x3", 4, 2, 123)
    assert jobs_of(kind)[0].key(ROT) == plain.key(ROT)


def test_draws_do_not_change_games_from_scratch() -> None:
    def scratch(draws: str) -> str:
        (job,) = pair_jobs(EndToEndSpec("FC1L", "RNN1L:GRU", draws=draws, **SMALL))  # type: ignore[arg-type]
        return str(job.key(Replicate("none", 123)))

    assert scratch("authors") == scratch("icy")


def test_languages_of_users_are_measured_against_the_concat_of_the_draws() -> None:
    language = icy.make_language("perm", "2x3", 4, 2, 7)
    plain, authors = probe_jobs(ProbeSpec("sender/FC1L", language, draws="all", hidden=8))
    keys = [{job.key(replicate) for replicate in job.replicates} for job in (plain, authors)]
    assert len(keys[0] | keys[1]) == 12
    assert {
        key for job in probe_jobs(ProbeSpec("sender/FC1L", language, hidden=8)) for key in map(job.key, job.replicates)
    } == keys[0]


@pytest.mark.slow
def test_pairs_start_from_saved_models_of_the_same_draws(tmp_path: Path) -> None:
    about: dict[str, Any] = {"workers": 1, "draws": "authors", "quick": True}
    probed = icy.probe("sender/FC2L", "rot", keep_models=True, seeds=1, out=tmp_path / "p", **about)
    assert probed.to_dataframe()["options"].unique().tolist() == ["draws=authors"]
    icy.probe("receiver/FC2L", "rot", keep_models=True, seeds=1, out=tmp_path / "p", **about)
    pair = {"pretrain": "rot", "seeds": 1, "steps": 5, "pretrained": tmp_path / "p", "out": tmp_path / "e"}
    assert len(icy.e2e("FC2L", "FC2L", **pair, **about).records) == 1
    with pytest.raises(InvalidSettingError, match="has no saved model"):
        icy.e2e("FC2L", "FC2L", **pair, **{**about, "draws": "icy"})
