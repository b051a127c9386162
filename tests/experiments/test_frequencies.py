"""Probes of meanings that exist in part, or that are drawn by weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.config.specs import EndToEndSpec, ProbeSpec
from icy.core.errors import InvalidSettingError
from icy.experiments.e2e import pair_jobs
from icy.experiments.plan import plan_rows
from icy.experiments.probe import probe_jobs
from icy.languages.frequencies import Frequencies
from icy.languages.meanings import MeaningSpace
from icy.training.job import Replicate

SMALL: dict[str, Any] = {"grammar": ["perm"], "word_length": 2, "hidden": 8, "seeds": 2}
TEXT = "kind,color,weight\ncat,black,5\ncat,white,1\ndog,brown,3\nfish,brown,1\nbird,white,1\n"


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    file = tmp_path / "pets.csv"
    file.write_text(TEXT)
    return file


def only_job(**given: Any) -> Any:
    (job,) = probe_jobs(ProbeSpec("sender/FC1L", **SMALL, **given))
    return job


def test_equal_frequencies_have_the_keys_of_before() -> None:
    plain, equal = only_job(meanings="2x3"), only_job(meanings="2x3", frequencies="equal")
    zipf = only_job(meanings="2x3", frequencies="zipf:1.0")
    replicate = Replicate("perm", 123)
    assert plain.key(replicate) == equal.key(replicate) == "09c50f52e8fd74965f01"
    assert zipf.config(replicate) == {**plain.config(replicate), "frequencies": "zipf:1"}


def test_a_file_is_known_by_its_content(pets: Path) -> None:
    job, replicate = only_job(meanings=str(pets)), Replicate("perm", 123)
    assert str(job.task.space) == "4,3"
    other = pets.rename(pets.with_name("animals.csv"))
    assert only_job(meanings=other).key(replicate) == job.key(replicate)
    other.write_text(TEXT.replace("5", "6"))
    assert only_job(meanings=other).key(replicate) != job.key(replicate)


def test_space_files_and_laws_are_axes(pets: Path) -> None:
    jobs = probe_jobs(ProbeSpec("sender/FC1L", **SMALL, meanings=["2x3", str(pets), "4,2"], frequencies="equal,zipf:1"))
    assert [(str(job.task.space), *(job.frequencies.config.values() if job.frequencies else ())) for job in jobs] == [
        ("2x3",), ("2x3", "zipf:1"), ("4,3", jobs[2].frequencies.file, "equal"),
        ("4,3", jobs[2].frequencies.file, "zipf:1"), ("4,2",), ("4,2", "zipf:1"),
    ]  # fmt: skip


def test_both_accuracies_are_recorded_and_a_run_resumes(pets: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"meanings": str(pets), "out": tmp_path / "out", "workers": 1, "progress": False}
    first = icy.probe("receiver/FC1L", **SMALL, **how).to_dataframe()
    assert (first["unweighted_accuracy"] != first["accuracy"]).any()
    assert first["unweighted_accuracy"].between(0, 1).all()
    assert first["options"].str.fullmatch("existing=pets@[0-9a-f]{16}").all()
    kept = list((tmp_path / "out" / "meanings").iterdir())
    assert [file.read_text().count("\n") for file in kept] == [6]
    how["meanings"] = kept[0]  # the copy in the results continues the run
    again = icy.probe("receiver/FC1L", **SMALL, **how).to_dataframe()
    assert again["finished"].tolist() == first["finished"].tolist()


def test_alone_equals_in_a_stack_with_held_out_meanings(tmp_path: Path) -> None:
    how: dict[str, Any] = {"meanings": "4,3,2", "frequencies": "zipf:1", "protocol": "generalise", "target": 0.7}
    both = icy.probe("sender/FC2L", **SMALL, **how, out=tmp_path / "both", workers=1, progress=False)
    alone = icy.probe(
        "sender/FC2L", **{**SMALL, "seeds": [124]}, **how, out=tmp_path / "one", workers=1, progress=False
    )
    columns = ["grammar", "accuracy", "unweighted_accuracy", "train_accuracy", "steps"]
    expected = both.to_dataframe().query("seed == 124")[columns].reset_index(drop=True)
    assert alone.to_dataframe()[columns].equals(expected)


@pytest.mark.parametrize("agents", [{}, {"senders": 2, "receivers": 2}])
def test_pairs_and_populations_draw_by_the_weights_too(agents: dict[str, int], pets: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"steps": 20, "report_every": 10, "hidden": 8, "word_length": 1, "seeds": 2, "workers": 1}
    result = icy.e2e("FC1L", "FC1L", meanings=str(pets), **how, **agents, out=tmp_path / "out", progress=False)
    table = result.to_dataframe("long")
    assert table["options"].str.contains("existing=pets@").all()
    assert table["unweighted_accuracy"].between(0, 1).all()
    assert (table["unweighted_accuracy"] != table["end_to_end_accuracy"]).any()
    assert list((tmp_path / "out" / "meanings").iterdir())


def test_keys_of_pairs_with_equal_frequencies_are_those_of_before() -> None:
    keys = []
    for given in ({}, {"frequencies": "equal"}, {"frequencies": "zipf:2"}):
        (job,) = pair_jobs(EndToEndSpec("FC1L", "FC1L", meanings="3x4", hidden=8, seeds=1, **given))
        keys.append(job.key(job.replicates[0]))
    assert keys[0] == keys[1] != keys[2]


def test_saved_models_of_other_frequencies_do_not_start_a_pair(tmp_path: Path) -> None:
    how: dict[str, Any] = {"meanings": "3x4", "hidden": 8, "word_length": 2, "seeds": 1}
    kept = tmp_path / "kept"
    icy.probe(["sender/FC2L", "receiver/FC2L"], "concat", **how, keep_models=True, out=kept, workers=1, progress=False)
    given = EndToEndSpec("FC2L", "FC2L", pretrain="concat", pretrained=kept, updates=1, out=tmp_path / "out", **how)
    assert len(pair_jobs(given)) == 1
    with pytest.raises(InvalidSettingError, match=r"no saved model of sender/FC2L .* frequencies zipf:1"):
        pair_jobs(replace(given, frequencies="zipf:1"))


def remark_of(tmp_path: Path, **given: Any) -> str:
    """Return the remark on a language in which both meanings with the first value share a message."""
    language = icy.Language("2x2", [[0, 0], [0, 0], [0, 1], [1, 1]], 4, name="shared")
    options = {**SMALL, **given, "grammar": language, "word_length": 1, "meanings": "2x2"}
    rows = plan_rows(ProbeSpec.asked(model="receiver/FC1L", out=tmp_path, **options))
    return str(rows[0].job.remarks()[0])


def test_the_best_reading_of_shared_messages_counts_meanings_as_they_are_drawn(tmp_path: Path) -> None:
    assert "at most 87.5%" in remark_of(tmp_path)  # one of eight values is wrong
    law = Frequencies("zipf:2")
    rare = [min(law.of_seed(MeaningSpace(2, 2), seed)[1][:2]) for seed in (123, 124)]
    assert f"at most {1 - min(rare) / 2:.1%}" in remark_of(tmp_path, frequencies="zipf:2")
