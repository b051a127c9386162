"""Classes, functions and modules in place of the names of models."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import icy
from icy.core.errors import DuplicateNameError, IncompatibleError, InvalidSettingError, StoreError
from icy.core.registry import registry
from icy.experiments.plan import make_plan
from icy.experiments.user_models import FreshCopies, model_names
from icy.languages.meanings import MeaningSpace
from icy.records.pack import Pack
from icy.records.record import Record, own_key
from icy.training.language_job import PairJob
from icy.training.pair_settings import EndToEndRequest

pytestmark = pytest.mark.usefixtures("forgetting")
SPACE = MeaningSpace(2, 3)


class Speaks(nn.Sequential):
    """A sender of one layer."""

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        shape = message_length, vocab_size + 1
        super().__init__(
            nn.Embedding(space.values, hidden_size),
            nn.Flatten(),
            nn.Linear(space.attributes * hidden_size, shape[0] * shape[1]),
            nn.Unflatten(1, shape),
        )


class Understands(nn.Module):
    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size + 1, hidden_size)
        self.out = nn.Linear(message_length * hidden_size, space.attributes * space.values)
        self.shape = space.attributes, space.values

    def forward(self, message: Tensor) -> Tensor:
        embedded = self.embedding(message) if message.dim() == 2 else message @ self.embedding.weight
        return self.out(embedded.flatten(1)).unflatten(1, self.shape)


class Hidden(nn.Module):
    """A layer that PyTorch cannot reset."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))


def test_names_are_left_as_they_are() -> None:
    assert model_names("sender/FC2L,RNN*") == "sender/FC2L,RNN*"
    assert model_names(["sender/FC2L", "RNN*"]) == ["sender/FC2L", "RNN*"]


def test_a_trial_determines_the_side_of_a_class() -> None:
    assert model_names([Speaks, "sender/FC2L", Understands]) == ["sender/Speaks", "sender/FC2L", "receiver/Understands"]
    assert registry.get("Speaks").description == "A sender of one layer."
    assert model_names(Speaks) == "sender/Speaks"  # once more


def test_a_registered_class_keeps_its_name() -> None:
    icy.register_sender("Mine")(Speaks)
    assert model_names(Speaks) == "sender/Mine"


def test_the_random_numbers_of_the_caller_are_untouched() -> None:
    before = torch.get_rng_state()
    model_names(Speaks)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("model", [nn.Linear(2, 3), int, lambda space: space])
def test_classes_that_are_not_models_are_refused(model: object) -> None:
    with pytest.raises(IncompatibleError, match=r"is not a sender or a receiver .*: .* Give a class or function"):
        model_names(model)  # type: ignore[arg-type]


def test_the_wrong_shape_of_a_sender_is_named() -> None:
    expected = r"as a sender, it outputs \(2, 4, 4\) and must output \(2, 4, 5\); as a receiver, \w+Error: "
    with pytest.raises(IncompatibleError, match=expected):
        model_names(lambda *sizes: Speaks(SPACE, 4, 3, 8), sizes=(SPACE, 4, 4, 8))


def test_a_receiver_is_not_accepted_as_a_sender() -> None:
    with pytest.raises(IncompatibleError, match="'Understands' is not a sender"):
        model_names(Understands, "sender")


def test_two_models_of_one_name_are_refused() -> None:
    other = type("Speaks", (Speaks,), {})
    with pytest.raises(DuplicateNameError, match="Two models are called 'sender/Speaks'"):
        model_names([Speaks, other])
    with pytest.raises(DuplicateNameError, match="'FC2L' is already registered by icy"):
        model_names(type("FC2L", (Speaks,), {}))


def test_copies_of_a_module_have_weights_of_their_own() -> None:
    module = Speaks(SPACE, 4, 4, 8)
    made = FreshCopies(module)
    one, other = (made(SPACE, 4, 4, 8) for _ in range(2))
    assert not torch.equal(one[2].weight, other[2].weight)
    assert not torch.equal(one[2].weight, module[2].weight)
    with pytest.raises(IncompatibleError, match="Hidden cannot get new initial weights: its layer 'Hidden' has no"):
        FreshCopies(Hidden())(SPACE, 4, 4, 8)


def test_a_class_gives_the_numbers_of_a_registered_model(tmp_path: Path) -> None:
    sizes = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "workers": 1}
    by_class = icy.probe(Speaks, "perm", out=tmp_path / "class", **sizes)
    icy.register_sender("Named")(Speaks)
    by_name = icy.probe("Named", "perm", out=tmp_path / "name", **sizes)
    assert [r["steps"] for r in by_class.records] == [r["steps"] for r in by_name.records]
    assert {r["model"] for r in by_class.records} == {"sender/Speaks"}


def test_a_module_has_the_sizes_of_the_run(tmp_path: Path) -> None:
    sizes = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "workers": 1}
    result = icy.probe(Speaks(SPACE, 4, 4, 8), "perm", out=tmp_path, **sizes)
    assert {(r["model"], r["failed"]) for r in result.records} == {("sender/Speaks", False)}
    with pytest.raises(IncompatibleError, match="a module of the sizes of the run"):
        icy.probe(nn.Sequential(Speaks(SPACE, 4, 4, 8)), "perm", out=tmp_path, **(sizes | {"meanings": "3x3"}))


def test_a_family_needs_a_cell() -> None:
    with pytest.raises(IncompatibleError, match="HierZero takes a cell: name the cell, as in 'sender/HierZero:"):
        model_names(registry.get("sender/HierZero:GRU").load())


def test_a_pair_of_classes_learns(tmp_path: Path) -> None:
    sizes = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "steps": 2, "workers": 1}
    (record,) = icy.end_to_end(Speaks, Understands, out=tmp_path, **sizes).records
    assert record["model"] == "Speaks+Understands"
    assert not record.get("error")


# -- pairs that start from models that a probe kept --------------------------------------------------------------------


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
    one, other = (make_plan(EndToEndRequest.asked(**asked, **more)).rows[0].job for more in ({}, {"pretrained": kept}))
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
    job = make_plan(EndToEndRequest.asked(**asked)).rows[0].job
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
