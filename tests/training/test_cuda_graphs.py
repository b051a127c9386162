"""Captured updates: the bookkeeping with a stand-in that records on a CPU, and the real thing where there is a GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from icy.config.settings import TrainingSettings, settings_for
from icy.core import gpu as gpus
from icy.core.errors import InvalidSettingError
from icy.core.gpu import products_in
from icy.core.noise import Noise
from icy.core.registry import registry
from icy.core.representations import get_representation
from icy.experiments.plan import make_plan
from icy.languages.meanings import MeaningSpace
from icy.training.engine import train
from icy.training.gradient import GradientLearner
from icy.training.job import Job
from icy.training.learners import make_learner, supervised_loss
from icy.training.probe_settings import ProbeRequest, ProbeSettings
from icy.training.stack import BLOCK, WARM_UP, CapturedCall, CapturedUpdates, PlainUpdates, _call, choose_issue
from icy.training.task_models import make_model

CPU = torch.device("cpu")
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Captured operations run only when they are replayed, as on a GPU; the list has an entry per event."""
    events: list[str] = []

    def capture(operations: Callable[[], None]) -> Callable[[], None]:
        events.append("captured")

        def replay() -> None:
            events.append("replayed")
            operations()

        return replay

    monkeypatch.setattr(gpus, "capture", capture)
    monkeypatch.setattr(gpus, "warm_up", lambda operations: operations())
    return events


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3, 1), (50, 50), (BLOCK, BLOCK), (3 * BLOCK + 5, 7)])
def test_every_batch_is_seen_once_and_in_order(recording: list[str], sizes: tuple[int, ...]) -> None:
    numbers = torch.arange(sum(sizes)).split(list(sizes))
    found: dict[str, list[list[int]]] = {}
    for name, make in (("plain", PlainUpdates), ("captured", lambda step: CapturedUpdates(step, "model"))):
        seen = found[name] = []
        issued = make(lambda x, y, seen=seen: seen.append([int(x), int(y)]))  # type: ignore[misc, operator]
        for some in numbers:
            issued(some, some + 1)
    assert found["captured"] == found["plain"] == [[n, n + 1] for n in range(sum(sizes))]
    replays = max(0, sum(sizes) - WARM_UP)
    assert recording == ["captured"] * (replays > 0) + ["replayed"] * replays


def test_updates_that_cannot_be_captured_run_plainly(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def refuse(operations: Callable[[], None]) -> Callable[[], None]:
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    monkeypatch.setattr(gpus, "capture", refuse)
    monkeypatch.setattr(gpus, "warm_up", lambda operations: operations())
    seen: list[int] = []
    issued = CapturedUpdates(lambda x: seen.append(int(x)), "Strange")
    with caplog.at_level(logging.WARNING):
        issued(torch.arange(10))
        issued(torch.arange(10, 20))
    assert seen == list(range(20))
    assert caplog.text.count("Strange: an update cannot be captured (operation not permitted") == 1


def test_calls_are_captured_once_for_every_shape(recording: list[str]) -> None:
    call = CapturedCall(lambda x: (x + 1, 2 * x))
    first = call(torch.zeros(2))
    for n in range(3):
        plus, double = call(torch.full((2,), float(n)))
        assert plus.tolist() == [n + 1] * 2
        assert double.tolist() == [2 * n] * 2
    assert first[0].tolist() == [1, 1]
    assert call(torch.zeros(3))[0].tolist() == [1] * 3
    assert recording.count("captured") == 2


def learner(graph: bool, model: str = "sender/HierZero:GRU", representation: str = "soft") -> GradientLearner:
    task = ProbeSettings.of_model(model, MeaningSpace(3, 4), 4, 2, 8, representation)
    settings, seeds = TrainingSettings(batch_size=8), (1, 2, 3, 4)
    loss = supervised_loss(get_representation(representation), task.side)
    models = [make_model(task, seed, settings) for seed in seeds]
    found = make_learner(models, seeds, loss, settings, CPU, torch.zeros(4, 2, 3, dtype=torch.long), "broadcast")
    assert isinstance(found, GradientLearner)
    if graph:  # which a CPU is refused
        found._issue, found._issued = "graph", None
        found._prepare_issue()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("representation", ["soft", "gumb", "discr"])
def test_a_captured_stack_learns_as_one_that_is_not(recording: list[str], representation: str) -> None:
    """Also after some replicates have left, when the update is captured again."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randint(4, (20, 4, 8, 3), generator=generator)
    targets = torch.randint(4, (20, 4, 8, 6), generator=generator)
    keys = torch.randint(2**60, (20, 4), generator=generator)
    one, other = (learner(graph, representation=representation) for graph in (False, True))
    for some in (one, other):
        some.train(inputs[:12], targets[:12], keys[:12])
        some.keep([3, 1])
        some.train(*(x[12:, [3, 1]] for x in (inputs, targets, keys)))
    for name, value in one.weights(1).items():
        torch.testing.assert_close(other.weights(1)[name], value, rtol=0, atol=0)
    for _ in range(3):
        torch.testing.assert_close(other.scores(inputs[0, :2]), one.scores(inputs[0, :2]), rtol=0, atol=0)
    assert (one.engine, other.engine) == ("broadcast", "broadcast+graph")
    assert recording.count("captured") == 3


def test_a_graph_needs_a_gpu() -> None:
    assert choose_issue(None, "broadcast", CPU)[0] == "plain"
    assert choose_issue(None, "vmap", torch.device("cuda"))[0] == "graph"
    assert choose_issue(None, "loop", torch.device("cuda"))[0] == "plain"
    assert choose_issue("plain", "vmap", torch.device("cuda")) == ("plain", "as requested")
    with pytest.raises(InvalidSettingError, match="only with a GPU"):
        choose_issue("graph", "vmap", CPU)
    with pytest.raises(InvalidSettingError, match="that can be stacked"):
        choose_issue("graph", "loop", torch.device("cuda"))


def test_tf32_is_off_by_default_and_refused_under_published() -> None:
    assert settings_for("default").tf32 is False
    with pytest.raises(InvalidSettingError, match="full precision"):
        settings_for("published", tf32=True)
    plain, asked = settings_for("default").under("soft"), settings_for("default", tf32=True).under("soft")
    assert "tf32" not in plain  # so that earlier results, without this setting, keep their keys
    assert asked == {**plain, "tf32": True}


def job(model: str, device: str, engine: str = "auto", **changes: Any) -> Job:
    spec = ProbeRequest.asked(
        model=model, grammar=["perm", "rot"], quick=True, device=device, engine=engine, settings=changes
    )
    return make_plan(spec).rows[0].job


def readings(of: Job) -> dict[Any, Any]:
    return {o.replicate: (o.curve, o.accuracy) for o in train(replace(of, replicates=of.replicates))}


MODELS = ["sender/FC2L", "sender/HierZero:GRU", "sender/RNNAutoReg:LSTM", "sender/TransDecSoft", "receiver/Hier:GRU"]


@gpu
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("representation", ["soft", "gumb", "discr"])
def test_a_graph_gives_the_results_of_single_operations(model: str, representation: str) -> None:
    of = job(model, "cuda", "auto+plain")
    of = replace(of, settings=replace(of.settings, representation=representation))
    plain, graph = readings(of), readings(replace(of, engine="auto+graph"))
    for replicate, (curve, accuracy) in plain.items():
        for (steps, before), (same, after) in zip(curve[:3], graph[replicate][0], strict=False):
            assert steps == same
            assert after == pytest.approx(before, abs=0.03)
        assert graph[replicate][1] == pytest.approx(accuracy, abs=0.1)


@pytest.mark.parametrize("asked", [True, False])
def test_products_are_as_asked_within_an_update_and_as_before_after_it(asked: bool) -> None:
    """PyTorch's convolutions use TF32 by default, so full precision must be set."""
    places: Any = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [place.allow_tf32 for place in places]
    with products_in(asked):
        assert [place.allow_tf32 for place in places] == [asked, asked]
    assert [place.allow_tf32 for place in places] == before == [False, True]
    with products_in(None):  # without a GPU
        assert [place.allow_tf32 for place in places] == before


class Watch(TorchDispatchMode):
    """Notes operations that a GPU cannot capture; the device "meta", which has only shapes, replaces the GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if "_local_scalar_dense" in str(func):
            self.found.add("the host waits for a number")
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and tensor.device.type == "cpu":
                self.found.add(f"{func} makes a tensor on the host")
        for tensor in tree_leaves(args):
            if isinstance(tensor, Tensor) and tensor.device.type == "cpu" and tensor.dim():
                self.found.add(f"{func} reads a tensor on the host")
        return out


def stackable(representation: str) -> Iterator[tuple[ProbeSettings, torch.nn.Module]]:
    """Every model of the zoo that works with a representation, learns by gradient and is stacked by broadcasting."""
    for entry in registry.match("*", "sender", "receiver"):
        if entry.works_with(representation):
            task = ProbeSettings.of_model(entry, MeaningSpace(3, 4), 4, 2, 8, representation)
            model = make_model(task, 1, TrainingSettings())
            if getattr(model, "broadcasts", False):
                yield task, model


@pytest.mark.slow
@pytest.mark.parametrize(
    "representation",
    [pytest.param("soft", marks=pytest.mark.slow), "gumb", pytest.param("discr", marks=pytest.mark.slow)],
)
def test_no_update_of_any_model_waits_for_the_host(representation: str) -> None:
    """Forward, loss and backward of the whole zoo stay on their device, as a captured update must."""
    tried = 0
    for task, model in stackable(representation):
        shapes = {"sender": (2, 8, 3), "receiver": (2, 8, 6)}
        x, y = (torch.zeros(shapes[side], dtype=torch.long, device="meta") for side in _sides(task))
        keys = torch.zeros(2, dtype=torch.long, device="meta")
        parameters = {
            name: torch.empty(2, *p.shape, device="meta", requires_grad=True) for name, p in model.named_parameters()
        }
        inputs = (x, y) if getattr(model, "teacher_forcing", False) else (x,)
        loss = supervised_loss(get_representation(representation), task.side)
        with Watch() as watch:
            loss(_call(model, parameters, keys, *inputs), y, Noise(keys)).sum().backward()
        assert not watch.found, task.model
        tried += 1
    assert tried > 50


def _sides(task: ProbeSettings) -> tuple[str, str]:
    return ("sender", "receiver") if task.side == "sender" else ("receiver", "sender")
