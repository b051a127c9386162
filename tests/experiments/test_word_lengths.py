"""Probes with words of different lengths: keys, axes, tables, saved senders and languages of users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import icy
from icy.config.specs import ProbeSpec
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.experiments.probe import probe_jobs
from icy.grammars import make_language
from icy.languages.table import Table
from icy.training.job import Replicate

SMALL: dict[str, Any] = {"grammar": ["perm"], "meanings": "2x3", "hidden": 8, "seeds": 2}


def only_job(model: str = "sender/FC1L", **given: Any) -> Any:
    (job,) = probe_jobs(ProbeSpec.asked(model=model, **{**SMALL, **given}))
    return job


def test_equal_bounds_have_the_keys_of_before() -> None:
    replicate = Replicate("perm", 123)
    assert (
        only_job(word_length="2-2").key(replicate) == only_job(word_length=2).key(replicate) == "09c50f52e8fd74965f01"
    )
    several = only_job(word_length="1-2").config(replicate)
    assert several == {**only_job(word_length=2).config(replicate), "word_lengths": "1-2"}


def test_lengths_are_an_axis_of_sweeps() -> None:
    jobs = probe_jobs(ProbeSpec("sender/FC1L", **SMALL, word_length=[2, "1-3", "3-3", "2"]))
    assert [(job.task.word_length, job.task.word_lengths) for job in jobs] == [(2, ""), (3, "1-3"), (3, "")]


def test_frequent_values_have_short_words_in_a_probe() -> None:
    zipf = only_job(word_length="1-3", frequencies="zipf:2").language(Replicate("concat", 1))
    assert zipf == make_language("concat", "2x3", 4, "1-3", 1, frequencies="zipf:2")


def test_a_saved_sender_ends_its_messages_and_rows_name_the_lengths(tmp_path: Path) -> None:
    how: dict[str, Any] = {"word_length": "1-2", "workers": 1, "progress": False, "keep_models": True}
    result = icy.probe("sender/FC2L", **SMALL, **how, out=tmp_path / "out")
    assert set(result.to_dataframe("long")["options"]) == {"word_lengths=1-2"}
    languages = icy.ProbeResult.load(tmp_path / "out").languages()
    assert len(languages) == 4
    for _, make in languages:
        language = make()
        table = Table.of(language)
        assert (language.eos, table.vocab_size) == (4, 4)
        assert table.lengths.tolist() == language.lengths.tolist()


def test_a_language_with_an_end_token_takes_the_place_of_a_grammar() -> None:
    language = replace(make_language("rot", "2x3", 3, "1-2", seed=9), name="mine")
    job = only_job(grammar=[language])
    assert (job.task.vocab_size, job.task.word_lengths) == (3, "1-2")
    name = next(iter(job.languages))
    assert np.array_equal(job.language(Replicate(name, 1)).messages, language.messages)
    assert job.language(Replicate("concat", 1)).eos == 3
    larger = only_job(grammar=[language], vocab_size=5)
    assert larger.language(Replicate(name, 1)).lengths.tolist() == language.lengths.tolist()
    assert larger.language(Replicate(name, 1)).eos == 5
    with pytest.raises(InvalidSettingError, match="needs 1-2"):
        only_job(grammar=[language], word_length=2)


@pytest.mark.parametrize("given", [{"representation": "qt"}, {"symbols": "V"}])
def test_senders_that_cannot_end_are_refused_and_receivers_are_not(given: dict[str, str]) -> None:
    with pytest.raises(IncompatibleError, match="cannot end"):
        only_job(word_length="1-2", **given)
    if "symbols" not in given:
        assert only_job("receiver/FC1L", word_length="1-2", **given).task.word_lengths == "1-2"


def test_a_model_may_declare_that_it_takes_no_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from icy.models.senders.fc import FC1L

    monkeypatch.setattr(FC1L, "takes_ends", False)
    with pytest.raises(IncompatibleError, match="does not take messages that end early"):
        only_job(word_length="1-2")
