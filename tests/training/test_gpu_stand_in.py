"""Whole trainings of every kind on a stand-in for a GPU: no mixed devices, and every update can be captured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.stand_in import MixedDevicesError, StandIn, gpu_of_meta
from icy.cli.commands.check import _devices
from icy.config.requests import RunRequest
from icy.core import gpu
from icy.core.errors import InvalidSettingError
from icy.core.machine import resolve_device
from icy.core.registry import registry
from icy.experiments.plan import plan_rows
from icy.games.settings import GamesRequest
from icy.games.worlds import shape
from icy.s2b.agents.kinds import AgentRequest
from icy.training.chain_settings import ChainRequest
from icy.training.job import Outcome
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest

META = torch.device("meta")
SENDER, RECEIVER = "RNNAutoReg:GRU", "RNN1L:GRU"
FEW = (
    *("sender/FC2L", "sender/HierZero:GRU", "sender/Transformer", "sender/RNNSampling:SRU"),
    *("receiver/CNN", "receiver/Hier:LSTM"),
)  # in all representations
USUAL = ("sender/FC2L", "pair, soft", "game of things")  # others are slow
MODELS = [e.qualified for e in registry.match("*", "sender", "receiver")]


def quick_first(names: Iterable[str]) -> list[Any]:
    """Return names as parameters; all but a few are slow."""
    return [pytest.param(name, marks=() if name in USUAL else pytest.mark.slow) for name in names]


def trained(request: RunRequest, caplog: pytest.LogCaptureFixture) -> Outcome:
    """Train the first row of a request on the stand-in; no update may have failed to be captured."""
    caplog.set_level(logging.INFO, "icy")
    with gpu_of_meta() as standing:
        outcomes = list(plan_rows(request)[0].job.train(None))
    assert "cannot be captured" not in caplog.text
    assert standing.events["captured"]
    assert standing.events["replayed"]
    return outcomes[-1]


def probe_of(model: str, tmp_path: Path, representation: str) -> ProbeRequest:
    return ProbeRequest(
        model=model, grammar="concat", meanings="2x3", word_length=2, hidden=8, max_updates=8, seeds=1, device="meta",
        out=str(tmp_path), representation=representation,
    )  # fmt: skip


@pytest.mark.parametrize("model", quick_first(MODELS))
def test_a_model_trains_and_is_captured(model: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    entry = registry.get(model)
    of_memory = not getattr(entry.load(), "learns_by_gradient", True)  # it stores examples on the CPU
    usual = entry.representations or ("soft", "gumb", "discr")
    for representation in usual if model in FEW else usual[:1]:
        request = probe_of(model, tmp_path, representation)
        if of_memory:
            with gpu_of_meta():
                assert list(plan_rows(request)[0].job.train(None))
        else:
            assert trained(request, caplog).engine == "broadcast+graph"


WHERE: dict[str, Any] = {"device": "meta"}
PAIR: dict[str, Any] = {
    "sender": SENDER, "receiver": RECEIVER, "meanings": "2x3", "hidden": 8, "updates": 10, "report_every": 5,
    "seeds": 1, **WHERE,
}  # fmt: skip
CHAIN: dict[str, Any] = {
    "model": SENDER, "meanings": "2x3", "word_length": 2, "hidden": 8, "generations": 2, "updates": 10, "chains": 1,
    **WHERE,
}  # fmt: skip
GAME: dict[str, Any] = {
    "updates": 10, "seeds": 1, "settings": {"epoch": 5, "turns": 16, "batch_size": 8}, **WHERE
}  # fmt: skip
KINDS: dict[str, Callable[[str], RunRequest]] = {
    **{
        f"pair, {kind}": lambda out, kind=kind: EndToEndRequest(**PAIR, representation=kind, out=out)  # type: ignore[misc]
        for kind in ("soft", "gumb", "discr")
    },
    "pair, preset published": lambda out: EndToEndRequest(**PAIR, preset="published", out=out),
    "pair, messages that end early": lambda out: EndToEndRequest(
        **{**PAIR, "sender": "RNNZero:GRU"}, max_length=4, length_cost=0.1, out=out
    ),
    "population": lambda out: EndToEndRequest(**PAIR, senders=2, receivers=2, out=out),
    "chain": lambda out: ChainRequest(**CHAIN, out=out),
    "chain of pairs that interact": lambda out: ChainRequest(**CHAIN, receiver=RECEIVER, interaction=5, out=out),
    "game of things": lambda out: GamesRequest(**GAME, out=out),
    "game of images": lambda out: GamesRequest(**GAME, world="shape", out=out),
}


@pytest.mark.parametrize("kind", quick_first(KINDS))
def test_a_kind_of_job_trains_and_is_captured(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    outcome = trained(KINDS[kind](str(tmp_path)), caplog)
    assert (outcome.reason, outcome.engine) == ("steps", "broadcast+graph")


def test_agents_of_s2b_train_on_the_cpu(tmp_path: Path) -> None:
    with gpu_of_meta(), pytest.raises(InvalidSettingError, match="train on the CPU; leave out device"):
        plan_rows(AgentRequest(quick=True, device="meta", out=str(tmp_path)))


def test_images_for_a_gpu_are_those_for_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU all distances of all figures are computed, because a captured update cannot find out which exist."""
    for sizes in ("clear", "published"):
        world = shape.Shape(canvas=32, sizes=sizes)
        draws = torch.arange(200)
        objects = torch.stack([draws % n for n in world.sizes], -1)
        expected = world.observe(objects, draws)
        with monkeypatch.context() as on_gpu:
            on_gpu.setattr(shape, "is_gpu", lambda device: True)
            assert torch.equal(world.observe(objects, draws), expected)


# -- the stand-in itself, and devices ----------------------------------------------------------------------------------


REFUSED: dict[str, Callable[[torch.Tensor], object]] = {
    "a number is read": lambda x: x.sum().item(),
    "a number is converted": lambda x: bool((x > 0).any()),
    "a copy to the CPU": lambda x: x.cpu(),
    "a copy from the CPU": lambda x: x + torch.ones(3).to(x.device),
    "a new constant": lambda x: x * torch.tensor([1.0, 2.0, 3.0], device=x.device),
    "a list of places": lambda x: x[[0, 1]],
    "a mask": lambda x: x[x > 0],
    "places of numbers": lambda x: x.nonzero(),
    "unique numbers": lambda x: torch.unique(x),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_captured_is_refused(case: str) -> None:
    with gpu_of_meta():
        x = torch.ones(3, device=META)
        with pytest.raises((RuntimeError, NotImplementedError)):
            gpu.capture(lambda: REFUSED[case](x))


def test_devices_are_not_mixed() -> None:
    with StandIn(), pytest.raises(MixedDevicesError, match=r"add.* of tensors on cpu and meta"):
        torch.ones(3, device=META) + torch.ones(3)


@pytest.mark.parametrize(
    ("device", "sentence"),
    [
        ("mps", "'mps' is not supported: icy does not train on Apple's GPUs, .*; use auto, cpu"),
        ("xpu:0", "'xpu:0' is not supported: icy was never run on Intel's GPUs.*; use auto, cpu"),
        ("cuda:99", "'cuda:99' is not available; use auto, cpu"),
        ("privateuseone", "'privateuseone' is not available"),
        ("banana", "'banana' is not available"),
    ],
)
def test_other_devices_are_refused_in_a_sentence(device: str, sentence: str) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        resolve_device(device)


def test_a_gpu_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "names", lambda: ["cuda:0"])

    def busy(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable\nand more")

    monkeypatch.setattr(torch, "empty", busy)
    with pytest.raises(
        InvalidSettingError, match=r"cannot be used \(CUDA error: all .* unavailable\); use auto, cpu, cuda:0"
    ):
        resolve_device("cuda")


@pytest.mark.parametrize(("hip", "driven"), [(None, "CUDA 13.0"), ("7.1", "ROCm 7.1")])
def test_the_doctor_names_a_gpu_and_what_drives_it(
    hip: str | None, driven: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class About:
        name, total_memory = "Some GPU", 64 * 2**30

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: About)
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    facts = {name: fact for name, fact, _ in _devices()}
    assert facts["cuda:0"] == f"Some GPU, 64 GiB, {driven}"
    assert facts["--device auto"] == "cuda"
    assert "benchmarks.gpu" in facts["measure it"]
