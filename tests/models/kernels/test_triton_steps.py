"""Triton kernels against PyTorch's operations: on a GPU if there is one, else in Triton's interpreter on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from icy.config.settings import TrainingSettings
from icy.languages.meanings import MeaningSpace
from icy.models.kernels import cell_steps, triton_steps
from icy.training.probe_settings import ProbeSettings
from icy.training.stack import Stack
from icy.training.task_models import make_model

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
needs_triton: Any = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tensors of a CPU suit too; the list tells which kernels ran."""
    names: list[str] = []
    launch = triton_steps.launch

    def noted(kernel: str, *arguments: Any, **constants: Any) -> None:
        launch(kernel, *arguments, **constants)
        names.append(kernel)

    monkeypatch.setattr(triton_steps, "launch", noted)
    if not ON_GPU:
        monkeypatch.setattr(triton_steps, "suits", lambda *_: not triton_steps.failed)
    monkeypatch.setattr(triton_steps, "failed", [])
    return names


Step = Callable[..., Any]


def both_ways(step: Step, inputs: list[Tensor], outputs: slice, off: Callable[[], Any]) -> list[list[Tensor]]:
    """Return outputs and gradients by kernels and by PyTorch."""
    found = []
    for prepare in (lambda: None, off):
        prepare()
        leaves = [x.detach().requires_grad_() for x in inputs]
        out = step(*leaves)
        out = (out if isinstance(out, tuple) else (out,))[outputs]
        weights = [numbers(*y.shape, seed=50 + i) for i, y in enumerate(out)]
        grads = torch.autograd.grad(out, leaves, weights)
        found.append([y.detach() for y in out] + list(grads))
    return found


def numbers(*shape: int, seed: int, scale: float = 2.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(shape, generator=generator)).to(DEVICE)


def operands(lead: tuple[int, ...], *shapes: tuple[int, int]) -> list[Tensor]:
    return [numbers(*lead, *shape, seed=i) for i, shape in enumerate(shapes)]


SIZES = [((), 3, 5), ((2,), 17, 37), ((3,), 1, 128), ((2, 2), 20, 64), ((1,), 5, 1)]  # stack, rows, E
ALL = slice(None)
CASES: dict[str, tuple[Step, Callable[[int, int], list[tuple[int, int]]], slice, list[str]]] = {
    "gru, gates of rows": (
        cell_steps.gru_step,
        lambda rows, size: [(rows, 3 * size), (rows, 3 * size), (rows, size)],
        ALL,
        ["gru_forward", "gru_backward"],
    ),
    "gru, gates of all rows": (
        cell_steps.gru_step,
        lambda rows, size: [(1, 3 * size), (rows, 3 * size), (rows, size)],
        ALL,
        ["gru_forward", "gru_backward"],
    ),
    **{
        f"lstm, {used}": (
            cell_steps.lstm_step,
            lambda rows, size: [(rows, 4 * size), (rows, size)],
            outputs,
            ["lstm_forward", "lstm_backward"],
        )
        for used, outputs in (("h and c", slice(0, 2)), ("h", slice(0, 1)), ("c", slice(1, 2)))
    },
    **{
        f"highway, {kind}": (
            lambda gates, s, kind=kind: cell_steps.highway_step(gates, s, kind),
            lambda rows, size: [(rows, 2 * size), (rows, size)],
            ALL,
            ["highway_forward", "highway_backward"],
        )
        for kind in cell_steps.ACTIVATIONS
    },
    "mix": (cell_steps.mix, lambda rows, size: [(rows, size), (rows, size), (rows, 1)], ALL, ["mix_backward"]),
    "stop": (
        cell_steps.stop_gate,
        lambda rows, size: [(rows, size), (1, size), (1, 1)],
        ALL,
        ["stop_forward", "stop_backward"],
    ),
}


@needs_triton
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("lead", "rows", "size"), SIZES)
def test_kernels_give_what_pytorch_gives(
    case: str, lead: tuple[int, ...], rows: int, size: int, launched: list[str]
) -> None:
    step, shapes, outputs, kernels = CASES[case]
    inputs = operands(lead, *shapes(rows, size))
    fused, plain = both_ways(step, inputs, outputs, lambda: triton_steps.failed.append("switched off"))
    assert launched == kernels
    made = len(fused) - len(inputs)
    for place, (ours, theirs) in enumerate(zip(fused, plain, strict=True)):
        tolerance = 1e-6 if place < made else 1e-5
        # Relative to the largest: sums over E and over rows are added up in another order.
        assert ours.shape == theirs.shape
        assert (ours - theirs).abs().max() <= tolerance * max(1.0, float(theirs.abs().max()))


@needs_triton
def test_inputs_may_have_any_strides(launched: list[str]) -> None:
    """Such as gates of one step of a message, transposed states, and gradients that are one number for all."""
    gates = numbers(2, 4, 3, 15, seed=1).unbind(1)[2]
    state, h = numbers(2, 15, 3, seed=2).mT, numbers(2, 5, 3, seed=3).mT
    found = []
    for prepare in (lambda: None, lambda: triton_steps.failed.append("switched off")):
        prepare()
        leaves = [x.detach().requires_grad_() for x in (gates, state, h)]
        found.append(torch.autograd.grad(cell_steps.gru_step(*leaves).sum(), leaves))
    assert launched == ["gru_forward", "gru_backward"]
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@needs_triton
@pytest.mark.parametrize("rows", [9, 1])
def test_a_model_of_a_stack_gets_the_numbers_that_it_gets_alone(rows: int, launched: list[str]) -> None:
    inputs = [numbers(3, count, width, seed=count) for count, width in ((1, 18), (rows, 18), (rows, 6))]
    found = []
    for part in (slice(None), slice(1, 2)):
        leaves = [x[part].detach().requires_grad_() for x in inputs]
        new = cell_steps.gru_step(*leaves)
        found.append([new, *torch.autograd.grad(new.pow(2).sum(), leaves)])
    for of_all, alone in zip(*found, strict=True):
        assert torch.equal(of_all[1:2], alone)


@needs_triton
@pytest.mark.parametrize("model", ["sender/HierZero:GRU", "sender/HierAutoReg:LSTM", "receiver/Hier:dgrecv"])
def test_a_model_has_the_gradients_that_pytorch_gives_it(model: str, launched: list[str]) -> None:
    """Of a stack of two; two levels, so that every step is there."""
    side = model.partition("/")[0]
    task = ProbeSettings.of_model(model, MeaningSpace(2, 3), 4, 2, 8, "soft")
    models = [make_model(task, seed, TrainingSettings()) for seed in (1, 2)]
    stack = Stack(models, DEVICE, [1, 2])
    given = torch.randint(3, (2, 5, 2 if side == "sender" else 4), generator=torch.Generator().manual_seed(0)).to(
        DEVICE
    )
    keys, found = torch.zeros(2, dtype=torch.long, device=DEVICE), []
    for prepare in (lambda: None, lambda: triton_steps.failed.append("switched off")):
        prepare()
        stack.flat_grad.zero_()
        scores = stack.forward([given], "broadcast", keys)
        scores.log_softmax(-1)[..., 0].sum().backward()
        found.append((scores.detach(), stack.flat_grad.clone()))
    assert {name.partition("_")[0] for name in launched} >= {"stop", "mix"}
    assert len(launched) > 20
    (scores, gradient), (expected, of_pytorch) = found
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(gradient, of_pytorch, rtol=0, atol=1e-5 * float(of_pytorch.abs().max()))


def test_pytorch_replaces_kernels_that_do_not_compile_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def __getattr__(self, kernel: str) -> Any:
            raise RuntimeError("Failed to find C compiler\nand more")

    monkeypatch.setattr(triton_steps, "failed", [])
    monkeypatch.setattr(triton_steps, "suits", lambda *_: not triton_steps.failed)
    monkeypatch.setattr(triton_steps, "_kernels", Broken)
    inputs = operands((2,), (3, 24), (3, 24), (3, 8))
    new = [cell_steps.gru_step(*inputs) for _ in range(2)]
    assert triton_steps.failed == ["gru_forward"]
    assert caplog.text.count("Failed to find C compiler") == 1
    assert "and more" not in caplog.text
    monkeypatch.undo()
    assert all(torch.equal(one, cell_steps.gru_step(*inputs)) for one in new)


def test_memory_that_is_not_there_is_no_reason_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __getattr__(self, kernel: str) -> Any:
            raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(triton_steps, "suits", lambda *_: True)
    monkeypatch.setattr(triton_steps, "_kernels", Full)
    with pytest.raises(torch.OutOfMemoryError):
        cell_steps.mix(
            *operands((), (3, 8), (3, 8), (3, 1))[:2], torch.zeros(3, 1, requires_grad=True)
        ).sum().backward()


def test_a_variable_of_the_environment_switches_them_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(triton_steps.SWITCH, "off")
    assert triton_steps._kernels.__wrapped__() is None
    assert triton_steps.in_use() == "PyTorch, Triton switched off by ICY_TRITON=off"
    monkeypatch.delenv(triton_steps.SWITCH)
    assert triton_steps.in_use().startswith("Triton" if find_spec("triton") else "PyTorch")


def test_a_cpu_double_precision_and_vmap_are_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_steps, "_kernels", lambda: "there are some")

    class OnGPU(Tensor):
        is_cuda = True  # type: ignore[assignment]

    on_gpu, in_double = (torch.zeros(2, dtype=kind).as_subclass(OnGPU) for kind in (torch.float32, torch.float64))
    found = []
    assert not triton_steps.suits(on_gpu)  # a gradient that is recorded, to be differentiated again
    monkeypatch.setattr(torch, "is_grad_enabled", lambda: False)
    assert triton_steps.suits(on_gpu)
    torch.func.vmap(lambda x: found.append(triton_steps.suits(on_gpu)) or x)(torch.zeros(2))
    assert found == [False]
    assert not triton_steps.suits(on_gpu, torch.zeros(2))
    assert not triton_steps.suits(in_double)


COMPILE = """
from benchmarks.kernels import SIZES, compiled

found = [*compiled((90,)), *compiled((80, 100), (SIZES[0], 128))]
print(len({one.kernel.split()[0] for one in found}), "kernels")
for one in found:
    if not one.fits:
        print(one)
"""


@needs_triton
@pytest.mark.slow
def test_all_kernels_fit_gpus_that_need_not_be_there(tmp_path: Path) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True)
    assert done.stdout == "9 kernels\n", done.stderr
