"""Diagrams of models."""

from __future__ import annotations

import pytest
import torch

from icy.core.registry import registry
from icy.experiments.search.diagram import diagram, parts_of
from icy.languages.meanings import MeaningSpace
from icy.models import create_receiver, create_sender
from icy.training.tasks import Task


def test_parts_are_in_the_order_of_their_first_use() -> None:
    model = create_sender("HierAutoReg:GRU", "3x4", 6, 4, 8)  # which declares `out` before `lower`
    parts = parts_of(model, torch.zeros(2, 3, dtype=torch.int64))
    names = [name for name, _, _ in parts]
    assert names[0] == "embed"
    assert names[-1] == "out"
    assert names.index("upper") < names.index("out")
    assert sum(count for *_, count in parts) == model.parameter_count("true")  # type: ignore[operator]


def test_shared_parameters_are_counted_once_and_own_parameters_have_a_part() -> None:
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.ones(3))
    model.first = torch.nn.Linear(3, 3, bias=False)
    model.second = torch.nn.Linear(3, 3)
    model.second.weight = model.first.weight
    model.forward = lambda x: model.second(model.first(x.float() * model.scale))  # type: ignore[method-assign]
    found = parts_of(model, torch.zeros(2, 3, dtype=torch.int64))
    assert found == [("own", "parameters", 3), ("first", "Linear", 9), ("second", "Linear", 3)]


@pytest.mark.parametrize(("side", "name"), [("sender", "FC2L"), ("receiver", "Transformer"), ("receiver", "kNN")])
def test_a_diagram_shows_both_ends_and_every_part(side: str, name: str) -> None:
    figure = diagram(Task(registry.get(name, side), MeaningSpace(3, 4), word_length=2, hidden_size=8))
    texts = [text.get_text() for text in figure.axes[0].texts if text.get_text()]
    assert {texts[0], texts[-1]} == {"meaning", "message"}
    assert texts[0] == ("meaning" if side == "sender" else "message")
    assert figure.axes[0].get_title().startswith(f"{side}/{name}, E=")


def test_a_long_name_is_in_several_lines() -> None:
    name = "Composed[decoder=hierarchy,feedback=true,cell=dgsend,encoder=perceptron,embedding=joined,norm=layer]"
    title = diagram(Task(registry.get(name, "sender"), MeaningSpace(2, 2), hidden_size=8)).axes[0].get_title()
    assert title.replace("\n", "") == f"sender/{name}, E=8"
    assert max(map(len, title.splitlines())) < 56


def test_a_container_names_its_parts() -> None:
    model = create_receiver("Transformer", "3x4", 6, 4, 8)
    kinds = [kind for _, kind, _ in parts_of(model, torch.zeros(2, 6, dtype=torch.int64))]
    assert "ModuleList of PreNormLayer" in kinds
