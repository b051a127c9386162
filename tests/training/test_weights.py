"""Kept models: the module comes back as it was when training ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import icy
from icy.core.errors import StoreError, UnknownNameError
from icy.games.playing import kept_agents
from icy.grammars import make_language
from icy.records.pack import Pack
from icy.records.record import model_file
from icy.training import weights
from icy.training.task_models import make_model
from icy.training.weights import card_of, pack_weights, restore, state_of, unpack_weights
from tests.training.helpers import SEEDS, SETTINGS, batches, stacked, step, task

SMALL: dict[str, Any] = {
    "meanings": "3x4", "word_length": 2, "hidden": 16, "seeds": 1, "workers": 1, "target": 0.5, "cap": 2,
}  # fmt: skip
# One model for each kind of learned state: stacked parameters, a cell with a state, layer norms, buffers, examples.
MODELS = [
    "sender/FC2L", "sender/HierZero:GRU", "sender/TransDecSoft", "sender/Hashtable",
    "receiver/RNN2L:SRU", "receiver/Transformer", "receiver/Hashtable", "receiver/kNN",
]  # fmt: skip


@pytest.mark.parametrize("how", ["auto", "broadcast"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_restored_to_the_bit(name: str, how: str) -> None:
    of = task(name)
    learner = stacked(of, SEEDS[:2], how=how)
    for n in range(3):
        step(learner, *batches(of.side, 2, n))
    kept = unpack_weights(pack_weights(learner.weights(1)))
    assert {n: value.dtype for n, value in kept.items()} == {n: v.dtype for n, v in learner.weights(1).items()}
    for n, value in learner.weights(1).items():
        assert torch.equal(kept[n], value), n
    inputs = batches(of.side, 1, 9)[0][0]
    again = restore(make_model(of, 77, SETTINGS), kept, name)
    direct = restore(make_model(of, 78, SETTINGS), learner.weights(1), name)
    assert torch.equal(again(inputs), direct(inputs))
    torch.testing.assert_close(again(inputs), learner.scores(inputs.expand(2, *inputs.shape))[1], atol=1e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("kept")
    return icy.probe(["sender/FC2L", "receiver/Hashtable"], "perm", keep_models=True, out=out, **SMALL)


def test_the_module_reaches_the_accuracy_of_the_record(kept: Any) -> None:
    """Over all meanings, as its accuracy was over a sample of them."""
    module = kept.model("perm", 123, "FC2L")
    language = make_language("perm", "3x4", 4, 2, 123)
    said = module(torch.tensor(language.space.meanings(range(64)))).argmax(-1)
    record = next(r for r in kept.records if r["grammar"] == "perm" and r["model"] == "sender/FC2L")
    right = float((said == torch.tensor(language.messages)).double().mean())
    assert record["accuracy"] == pytest.approx(right, abs=0.05)
    assert not module.training


def test_one_file_per_result_travels_with_its_record(kept: Any, tmp_path: Path) -> None:
    names = {model_file(record) for record in kept.records}
    assert names == {f"models/{record['key']}.safetensors" for record in kept.records}
    assert {f"models/{path.name}" for path in (kept.folder / "models").iterdir()} == names
    pack = Pack.read(kept.folder).write(tmp_path / "kept.parquet")
    loaded = icy.ProbeResult.load(pack)
    for model in ("sender/FC2L", "receiver/Hashtable"):
        theirs, ours = (
            loaded.model("concat", model=model),
            icy.ProbeResult.load(kept.folder).model("concat", model=model),
        )
        assert {n: v.tolist() for n, v in state_of(theirs).items()} == {
            n: v.tolist() for n, v in state_of(ours).items()
        }


def test_results_without_their_model_are_trained_again(tmp_path: Path) -> None:
    first = icy.probe("sender/FC1L", "perm", out=tmp_path, **SMALL)
    with pytest.raises(StoreError, match=r"sender/FC1L on perm with seed 123 was not saved: .* keep_models=True"):
        first.model("perm")
    again = icy.probe("sender/FC1L", "perm", keep_models=True, out=tmp_path, **SMALL)
    assert [r["key"] for r in again.records] == [r["key"] for r in first.records]
    assert [r["curve"] for r in again.records] == [r["curve"] for r in first.records]
    finished = [r["finished"] for r in again.records]
    assert finished > [r["finished"] for r in first.records]
    for flag in (True, False):  # nothing is left to do, whether asked again or not
        later = icy.probe("sender/FC1L", "perm", keep_models=flag, out=tmp_path, **SMALL)
        assert [r["finished"] for r in later.records] == finished
    assert isinstance(later.model("perm"), nn.Module)


def test_weights_that_were_deleted_are_made_again(tmp_path: Path) -> None:
    result = icy.probe("sender/FC1L", "perm", keep_models=True, out=tmp_path, **SMALL)
    (tmp_path / str(model_file(result.records[0]))).unlink()
    again = icy.probe("sender/FC1L", "perm", keep_models=True, out=tmp_path, **SMALL)
    changed = [a["finished"] != b["finished"] for a, b in zip(result.records, again.records, strict=True)]
    assert changed == [True, False]
    assert isinstance(again.model(result.records[0]["grammar"]), nn.Module)


def test_a_pair_is_kept_whole(tmp_path: Path) -> None:
    sizes = {n: SMALL[n] for n in ("meanings", "word_length", "hidden", "seeds", "workers")}
    result = icy.end_to_end("FC1L", "RNN1L:GRU", steps=20, report_every=20, keep_models=True, out=tmp_path, **sizes)
    pair, language = result.model("none"), result.language()
    said = pair.sender(torch.tensor(language.space.meanings(range(64)))).argmax(-1)
    assert said.tolist() == language.messages.tolist()
    assert pair.receiver(said).shape == (64, 3, 4)


@pytest.mark.process
def test_a_pool_keeps_the_same_models(kept: Any, tmp_path: Path) -> None:
    pooled = icy.probe("sender/FC2L", "perm", keep_models=True, out=tmp_path, **{**SMALL, "workers": 2})
    for grammar in ("concat", "perm"):
        mine, theirs = (state_of(one.model(grammar, model="FC2L")) for one in (pooled, kept))
        for name, value in mine.items():
            torch.testing.assert_close(value, theirs[name], atol=1e-5, rtol=1e-5)


def test_a_model_that_was_edited_is_refused(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    record = next(r for r in kept.records if r["model"] == "sender/FC2L" and r["grammar"] == "perm")
    edited = {**record, "versions": {**record["versions"], "model": "0-other"}}
    with pytest.raises(StoreError, match="trained with version 0-other of the model, but the current version is"):
        icy.ProbeResult([edited], folder=kept.folder).model("perm")


def test_several_rows_need_a_distinguishing_field(tmp_path: Path) -> None:
    result = icy.probe("sender/FC2L", "perm", keep_models=True, out=tmp_path, **{**SMALL, "hidden": [8, 16]})
    with pytest.raises(StoreError, match=r"which differ in hidden_size \(8, 16\); choose one, as in hidden_size=8"):
        result.model("perm")
    with pytest.raises(UnknownNameError, match="called 'hiden_size'; did you mean hidden_size"):
        result.model("perm", hiden_size=8)
    for size in (8, 16):
        assert result.model("perm", hidden_size=size).hidden_size == size


def test_one_of_several_models_is_never_returned_silently(kept: Any) -> None:
    with pytest.raises(
        StoreError, match=r"differ in model \(sender/FC2L, receiver/Hashtable\); choose one, as in model="
    ):
        kept.model("perm")
    assert type(kept.model("perm", model="receiver/Hashtable")).__name__ == "Hashtable"


def test_errors_list_the_available_models(kept: Any, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no result for 'rot'; there is sender/FC2L on concat with seed 123"):
        kept.model("rot")
    with pytest.raises(StoreError, match="no longer has the file models/"):
        icy.ProbeResult(kept.records, folder=tmp_path).model("perm", model="FC2L")
    wider = make_model(task("sender/FC1L"), 1, SETTINGS)
    with pytest.raises(StoreError, match="do not fit the current version of the model"):
        restore(wider, state_of(kept.model("perm", model="FC2L")), "sender/FC2L")
    with pytest.raises(StoreError, match="damaged"):
        unpack_weights(b"nonsense")


def test_a_card_goes_with_the_weights() -> None:
    weights = {"a": torch.arange(3.0)}
    content = pack_weights(weights, {"model": "x", "scores": {"zsct": 0.5}})
    assert card_of(content) == {"model": "x", "scores": {"zsct": 0.5}}
    assert torch.equal(unpack_weights(content)["a"], weights["a"])
    assert card_of(pack_weights(weights)) == {}
    with pytest.raises(StoreError, match="damaged"):
        card_of(content[:40])


# -- trained models in files -------------------------------------------------------------------------------------------


CARD = {
    "model": "FC2L+FC2L", "grammar": "uniform", "seed": 123,
    "setup": {"channel": "qt", "model": "inner", "turns": {"rule_length": 4}},
}  # fmt: skip


@pytest.mark.parametrize(
    "where",
    [{"seed": 123}, {"channel": "qt"}, {"representation": "QT"}, {"rule_length": "2,4"}, {"agents": "FC2L+FC2L"}],
)
def test_a_choice_is_checked_against_the_card_of_a_single_file(
    where: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "card_of_file", lambda path, what: CARD)
    file = Path("mine.safetensors")
    assert [found.label for found in kept_agents(file, **where)] == ["FC2L+FC2L, seed 123"]
    (name,) = where
    with pytest.raises(StoreError, match=rf"mine.safetensors has no agents with {name}=other; available: {name} \("):
        kept_agents(file, **{name: "other"})
    with pytest.raises(UnknownNameError, match="did you mean seed"):
        kept_agents(file, sed=123)
