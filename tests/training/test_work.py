"""Operations of an update, counted from a forward pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icy.config.settings import settings_for
from icy.core.registry import registry
from icy.languages.meanings import MeaningSpace
from icy.training import counting
from icy.training.counting import UPDATE_CALLS, work_of_task
from icy.training.tasks import Task
from icy.training.work import Work


def task(model: str, **sizes: Any) -> Task:
    side, _, name = model.partition("/")
    return Task(registry.get(name, side), MeaningSpace(3, 4), word_length=2, **{"hidden_size": 16, **sizes})


def counted(model: str, batch_size: int = 128, **sizes: Any) -> Work:
    found = work_of_task(task(model, **sizes), settings_for("default", batch_size=batch_size))
    assert found is not None
    return found


def test_the_products_of_two_layers_are_counted_for_a_whole_batch() -> None:
    meanings, hidden, scores = 3 * 4, 16, 6 * 5  # one-hot values; E; a choice of five for each of six tokens
    assert counted("sender/FC2L").flops == 128 * 2 * (meanings * hidden + hidden * scores)


@pytest.mark.parametrize(
    "model", ["sender/RNNZero:GRU", "sender/HierAutoReg:SRU", "receiver/CNN", "sender/TransDecSoft"]
)
def test_only_tensors_of_the_batch_grow_with_it(model: str) -> None:
    once, twice = counted(model), counted(model, 256)
    assert once.calls == twice.calls > UPDATE_CALLS
    assert twice.flops == pytest.approx(2 * once.flops, rel=0.02)  # of weights alone there are a few
    assert once.elements < twice.elements <= 2 * once.elements
    assert once.kept < twice.kept <= 2 * once.kept


def test_samples_cost_more_than_probabilities_and_memory_is_not_counted() -> None:
    soft, gumb = counted("sender/RNNAutoReg:GRU"), counted("sender/RNNAutoReg:GRU", representation="gumb")
    assert gumb.calls > soft.calls
    assert gumb.elements > soft.elements
    assert work_of_task(replace(task("sender/Hashtable")), settings_for("default")) is None


def test_a_stack_shares_calls_and_nothing_else() -> None:
    work = Work(calls=10, elements=100, flops=1000, kept=7)
    assert work.units(3) == (10, 300, 3000)
    assert work + work == Work(20, 200, 2000, 14)
    assert work.usual_seconds(3) < 3 * work.usual_seconds(1)


def test_shapes_alone_give_the_same_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = counted("sender/RNNZero:GRU")
    monkeypatch.setattr(counting, "LARGE", 0)
    assert counted("sender/RNNZero:GRU") == whole
