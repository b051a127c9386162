"""Pairs that start from models that a probe kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import icy
from icy.config.specs import EndToEndSpec
from icy.core.errors import InvalidSettingError, StoreError
from icy.experiments.plan import make_plan
from icy.records.pack import Pack
from icy.records.record import Record, own_key
from icy.training.pair_job import PairJob

SIZES: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 16, "seeds": 2, "workers": 1}
GAME: dict[str, Any] = {"steps": 4, "report_every": 2, **SIZES}
PAIR = ("FC1L", "FC1L")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("probe")
    icy.probe(["sender/FC1L", "receiver/FC1L"], "perm", target=0.9, keep_models=True, out=out, **SIZES)
    return out


@pytest.mark.slow
def test_a_game_starts_where_the_probe_ended(kept: Path, tmp_path: Path) -> None:
    result = icy.end_to_end(*PAIR, "perm", pretrained=kept, out=tmp_path, keep_models=True, **GAME)
    probe = icy.ProbeResult.load(kept)
    for record in result.records:
        assert [point[0] for point in record["curve"]] == [0, 2, 4]
        before = record["curve"][0][4]  # the sender's accuracy on its language
        meanings = torch.cartesian_prod(torch.arange(3), torch.arange(3))
        said = probe.model("perm", record["seed"], "sender/FC1L")(meanings).argmax(-1)
        language = icy.make_language("perm", "2x3", 4, 2, record["seed"])
        assert before == pytest.approx(float((said == torch.tensor(language.messages)).double().mean()), abs=0.05)
        assert before > 0.8
        assert record["sender_steps"] == next(
            r["steps"] for r in probe.records
            if (r["model"], r["grammar"], r["seed"]) == ("sender/FC1L", "perm", record["seed"])
        )  # fmt: skip


@pytest.mark.slow
def test_its_length_is_relative_to_the_concat_of_the_probe(kept: Path, tmp_path: Path) -> None:
    sizes = {**SIZES, "seeds": 1}
    result = icy.end_to_end(*PAIR, "perm", pretrained=kept, cap=2, report_every=50, out=tmp_path, **sizes)
    concat = [r for r in icy.ProbeResult.load(kept).records if r["grammar"] == "concat" and r["seed"] == 123]
    slower = max(r["steps"] for r in concat)
    found = {(r["grammar"], r["baseline_steps"], r["steps"]) for r in result.records}
    assert found == {("concat", slower, 2 * slower), ("perm", slower, 2 * slower)}


@pytest.mark.process
def test_folder_pack_and_pool_give_the_same(kept: Path, tmp_path: Path) -> None:
    pack = Pack.read(kept).write(tmp_path / "kept.parquet")
    runs = [
        icy.end_to_end(*PAIR, "perm", pretrained=place, out=tmp_path / str(n), **{**GAME, "workers": workers})
        for n, (place, workers) in enumerate([(kept, 1), (pack, 1), (kept, 2)])
    ]
    first, *others = [[(r["key"], r["seed"], r["end_to_end_accuracy"]) for r in run.records] for run in runs]
    for other in others:
        assert [found[:2] for found in other] == [found[:2] for found in first]
        assert [found[2] for found in other] == pytest.approx([found[2] for found in first], abs=0.02)


def test_it_is_another_row_than_pre_training_here(kept: Path, tmp_path: Path) -> None:
    asked = {"sender": "FC1L", "receiver": "FC1L", "pretrain": "perm", "out": tmp_path, **GAME}
    one, other = (make_plan(EndToEndSpec.asked(**asked, **more)).rows[0].job for more in ({}, {"pretrained": kept}))
    replicate = one.replicates[0]
    assert one.row != other.row
    assert one.key(replicate) != other.key(replicate)
    assert "pretrained" not in one.config(replicate)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pretrain": "rot"}, r"has no saved model of sender/FC1L on rot with seed 123 \(meanings 2x3"),
        ({"hidden": 32}, "hidden_size 32"),
        ({"pretrain": "none"}, "from scratch do not start from saved models"),
        ({"sender": "FC2L"}, "no saved model of sender/FC2L"),
    ],
)
def test_errors_name_the_missing_model(kept: Path, tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    asked = {"sender": "FC1L", "receiver": "FC1L", "pretrain": "perm", **GAME, **changes}
    with pytest.raises(InvalidSettingError, match=said):
        icy.end_to_end(**asked, pretrained=kept, out=tmp_path)


def with_version(record: Record, what: str, version: str) -> Record:
    """The record as if a part had been of another version."""
    changed: Any = {**record, "versions": {**record["versions"], what: version}}
    return {**changed, "key": own_key(changed)}


def test_a_grammar_or_model_that_was_edited_is_refused(kept: Path, tmp_path: Path) -> None:
    for what in ("grammar", "model"):
        records = [
            with_version(r, what, "0") if what == "model" or r["grammar"] == "perm" else r
            for r in icy.ProbeResult.load(kept).records
        ]
        files = dict(Pack.read(kept).files)
        pack = Pack.of(records, files).write(tmp_path / f"{what}.parquet")
        with pytest.raises(StoreError, match=f"trained with version 0 of the {what}"):
            icy.end_to_end(*PAIR, "perm", pretrained=pack, out=tmp_path / "games", **GAME)


def test_models_below_the_target_are_failures(tmp_path: Path) -> None:
    out = tmp_path / "probe"
    icy.probe(["sender/FC1L", "receiver/FC1L"], "hol", target=0.9, cap=1, keep_models=True, out=out, **SIZES)
    result = icy.end_to_end(*PAIR, "hol", pretrained=out, out=tmp_path / "games", **GAME)
    assert {r["reason"] for r in result.records} == {"not_learnt"}
    assert "did not reach 0.9 in the probe: the" in result.records[0]["error"]
    assert result.records[0]["target"] == 0.9  # the target of the probe


def test_weights_are_read_where_they_are_needed(kept: Path, tmp_path: Path) -> None:
    asked = {"sender": "FC1L", "receiver": "FC1L", "pretrain": "perm", "out": tmp_path, "pretrained": kept, **GAME}
    job = make_plan(EndToEndSpec.asked(**asked)).rows[0].job
    assert isinstance(job, PairJob)
    assert all(one.content is None for one in job.saved_sides.values())
    packed = job.for_travel()
    assert all(one.content == one.weights() for one in packed.saved_sides.values())
    assert [job.key(r) for r in job.replicates] == [packed.key(r) for r in packed.replicates]


def test_two_ways_to_have_been_trained_are_ambiguous(kept: Path, tmp_path: Path) -> None:
    both = shutil.copytree(kept, tmp_path / "both")
    icy.probe(["sender/FC1L", "receiver/FC1L"], "perm", target=0.7, keep_models=True, out=both, **SIZES)
    with pytest.raises(InvalidSettingError, match=r"several ways, which differ in target \(0.[79], 0.[79]\): give"):
        icy.end_to_end(*PAIR, "perm", pretrained=both, out=tmp_path / "games", **GAME)
