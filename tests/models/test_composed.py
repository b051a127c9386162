"""Composed models: existing models are points of the families, and other points keep the contract of models."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import icy
from icy import testing
from icy.core.registry import registry
from icy.models.cells import WordEnds, damp, mix
from icy.models.layers import AttributeEmbedding
from icy.models.senders.composed import TiedLinear
from tests.models.helpers import CREATE, A, E, K, L, V, some_meanings, some_messages
from tests.models.native.helpers import assert_same_pass, inputs_of
from tests.models.native.helpers import make as make_odd

POINTS = [
    ("sender", "FC1L", "decoder=linear,embedding=onehot"),
    ("sender", "FC2L", "decoder=linear,embedding=onehot,encoder=perceptron"),
    ("sender", "RNNZero:GRU", ""),
    ("sender", "RNNZero2L:SRU", "layers=2,cell=SRU"),
    ("sender", "RNNAutoReg:LSTM", "feedback=true,cell=LSTM"),
    ("sender", "HierZero:dgsend", "decoder=hierarchy,cell=dgsend"),
    ("sender", "HierAutoReg:RNN", "decoder=hierarchy,cell=RNN,feedback=true"),
    ("sender", "TransDecSoft2L", "decoder=transdec,layers=2"),
    ("sender", "Transformer", "decoder=transformer,layers=2"),
    ("receiver", "FC2L", "encoder=linear"),
    ("receiver", "FC", "encoder=linear,head=perceptron"),
    ("receiver", "FC2Lv2", "encoder=linear,embedding=positional"),
    ("receiver", "RNN1L:GRU", ""),
    ("receiver", "RNN2L:LSTM", "layers=2,cell=LSTM"),
    ("receiver", "Hier:dgrecv", "encoder=hierarchy,cell=dgrecv"),
    ("receiver", "CNN", "encoder=convolution"),
    ("receiver", "MeanEmbeddings", "encoder=mean"),
    ("receiver", "Transformer", "encoder=transformer,layers=2"),
]
OTHERS = [
    "sender/Composed[embedding=joined]",
    "sender/Composed[feedback=true,cell=LSTM,encoder=attention,norm=layer,tied=true]",
    "sender/Composed[decoder=hierarchy,boundary=fixed,encoder=perceptron,embedding=onehot,depth=2,width=2]",
    "sender/Composed[decoder=hierarchy,feedback=true,boundary=fixed,tied=true]",
    "sender/Composed[decoder=linear,encoder=attention,norm=layer]",
    "sender/Composed[decoder=transdec,positions=learned,tied=true]",
    "sender/Composed[decoder=transformer,positions=learned,embedding=joined,tied=true]",
    "receiver/Composed[direction=both,layers=2,head=perceptron,norm=layer]",
    "receiver/Composed[encoder=hierarchy,boundary=fixed,norm=layer]",
    "receiver/Composed[encoder=transformer,positions=learned,head=perceptron]",
    "receiver/Composed[encoder=convolution,head=perceptron,norm=layer,width=2]",
]
SMALL: dict[str, Any] = {"meanings": "2x3", "hidden": 8, "seeds": 1, "target": 0.4, "workers": 1}


def make(side: str, name: str, length: int = L) -> nn.Module:
    torch.manual_seed(5)
    model: nn.Module = CREATE[side](name, (A, K), length, V, E)
    return model


def inputs(side: str) -> Tensor:
    return some_meanings() if side == "sender" else some_messages()


@pytest.mark.parametrize(("side", "name", "options"), POINTS, ids=lambda text: text.replace(",", "-"))
def test_existing_models_are_points(side: str, name: str, options: str) -> None:
    known, composed = make(side, name), make(side, f"Composed[{options}]")
    assert composed.parameter_count("published") == known.parameter_count("published")  # type: ignore[operator]
    numbers = [sorted(tuple(p.flatten().tolist()) for p in model.parameters()) for model in (known, composed)]
    assert numbers[0] == numbers[1]
    x = inputs(side)
    torch.testing.assert_close(composed(x), known(x), rtol=0, atol=0)


def test_existing_models_train_like_their_points(tmp_path: Path) -> None:
    result = icy.probe(["sender/RNNAutoReg:GRU", "sender/Composed[feedback=true]"], "concat", out=tmp_path, **SMALL)
    known, composed = result.records
    assert [known["model"], composed["model"]] == ["sender/RNNAutoReg:GRU", "sender/Composed[feedback=true]"]
    assert known["curve"] == composed["curve"]
    assert known["key"] != composed["key"]


def test_a_run_resumes_by_any_form_of_the_name(tmp_path: Path) -> None:
    first = icy.probe("receiver/Composed[encoder=hierarchy,cell=RNN]", "concat", out=tmp_path, **SMALL)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "records").iterdir()}
    again = icy.probe("receiver/composed[CELL=rnn, direction=both, encoder=Hierarchy]", "concat", out=tmp_path, **SMALL)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "records").iterdir()} == files
    assert [record["model"] for record in again.records] == ["receiver/Composed[encoder=hierarchy,cell=RNN]"]
    assert again.records[0]["key"] == first.records[0]["key"]


def test_one_network_has_one_name() -> None:
    flat = registry.get("Composed[decoder=linear,embedding=onehot,width=4,norm=layer,tied=true,layers=3]", "sender")
    assert flat.name == "Composed[decoder=linear,embedding=onehot]"
    attentive = registry.get("Composed[encoder=attention,embedding=joined,depth=2,boundary=fixed]", "sender")
    assert attentive.name == "Composed[encoder=attention,depth=2]"
    assert registry.get("Composed[encoder=mean,cell=LSTM,layers=2,direction=both]", "receiver").name == (
        "Composed[encoder=mean]"
    )


@pytest.mark.slow
@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_every_value_makes_another_network(side: str) -> None:
    """Each value that is part of a name changes the output: of pairs of options, where an option has an effect."""
    entry = registry.get(f"{side}/Composed")
    pairs = [(option, value) for option, values in entry.choices.items() for value in values[1:]]
    names = {entry.with_choices(dict(some)).name for some in itertools.combinations(pairs, 2)}
    names |= {entry.with_choices(dict([one])).name for one in pairs}
    x, outputs = inputs(side), {}
    for name in sorted(names):
        model = make(side, name)
        key = (sum(p.numel() for p in model.parameters()), tuple(model(x).flatten().tolist()))
        assert outputs.setdefault(key, name) == name


def test_word_ends_are_after_every_word_and_the_last_token() -> None:
    ends = WordEnds(3, 7)
    assert [ends((torch.zeros(1, 1),), step) for step in range(7)] == [False, False, True, False, False, True, True]
    old, new = (torch.ones(2, 3),), (torch.zeros(2, 3),)
    assert (mix(old, new, True), mix(old, new, False)) == (new, old)
    assert damp(old, False) == old
    torch.testing.assert_close(damp(old, True)[0], new[0])


def test_a_fixed_boundary_forgets_the_word_before() -> None:
    """With boundaries after each word, the state of the lower level does not depend on earlier words."""
    model = make("receiver", "Composed[encoder=hierarchy,boundary=fixed]", 2 * A)
    seen: list[Tensor] = []
    model.stop.register_forward_hook(lambda module, given, _: seen.append(given[0][0]))  # type: ignore[union-attr]
    messages = some_messages()
    model(messages)
    other = torch.cat([(messages[:, :2] + 1) % V, messages[:, 2:]], 1)
    model(other)
    first, second = torch.stack(seen[: 2 * A]), torch.stack(seen[2 * A :])
    assert not torch.equal(first[:2], second[:2])
    torch.testing.assert_close(first[2:], second[2:])


def test_an_attribute_embedding_has_a_row_per_attribute() -> None:
    embed, meanings = AttributeEmbedding(A, K, E), some_meanings()
    rows = torch.stack([torch.stack([embed.weight[a * K + m] for a, m in enumerate(one)]) for one in meanings])
    torch.testing.assert_close(embed(meanings), rows)
    torch.testing.assert_close(embed(nn.functional.one_hot(meanings, K).float()), rows)


def test_a_tied_output_layer_shares_the_embedding_of_symbols() -> None:
    tied, free = (make("sender", f"Composed[feedback=true,tied={tied}]") for tied in ("true", "false"))
    assert sum(p.numel() for p in free.parameters()) - sum(p.numel() for p in tied.parameters()) == (V + 1) * E
    twin = copy.deepcopy(tied)
    assert isinstance(twin.out, TiedLinear)
    with torch.no_grad():
        twin.feedback.embed.weight.zero_()  # type: ignore[union-attr]
        twin.out.bias.copy_(torch.arange(V + 1.0))
    torch.testing.assert_close(twin(some_meanings())[0, 0], torch.arange(V + 1.0))
    assert tied(some_meanings())[0, 0].std() > 0


@pytest.mark.contract
@pytest.mark.parametrize("name", OTHERS)
def test_other_points_keep_the_contract(name: str) -> None:
    testing.check(name, representation="gumb")


@pytest.mark.native
@pytest.mark.parametrize("name", OTHERS)
def test_points_are_native(name: str) -> None:
    side, _, bare = name.partition("/")
    assert_same_pass(make_odd(side, bare), inputs_of(side))
