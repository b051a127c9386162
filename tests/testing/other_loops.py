"""icy's own models in training loops other than icy's: precision, derivatives, and PyTorch's transforms.

Each function raises a failure, or `Unsupported`. They are not checks of `icy.testing`, since they take minutes and say
nothing about training in icy; a user tries them on one model.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from icy.core.streams import stream
from icy.testing import NotApplicable, Unsupported
from icy.testing.cases import first_line, require_close
from icy.testing.models import ModelCase

FEW = 4  # examples
ENSEMBLE = 3  # models that vmap runs together
EPSILON = 1e-8  # step of differences in double precision, so small that a ReLU rarely changes sides within it
COARSE = 0.1  # difference in bfloat16, relative to the largest score

Case = Any  # a case of modules that train: `icy.testing.modules.TrainedCase`
Gradients = dict[str, Tensor]


def autocast(case: Case) -> None:
    """Within `torch.autocast("cpu", torch.bfloat16)` the module runs and trains, with about the same output."""
    module, inputs = case.ready(), case.batch()
    expected = module(inputs).detach()
    for training in (False, True):
        module.train(training)
        with torch.random.fork_rng(devices=[]), torch.autocast("cpu", torch.bfloat16):
            scores = module(inputs)
        assert scores.dtype in (torch.bfloat16, torch.float32)
        if not training:
            _assert_about(scores.detach(), expected)
        assert all(g.isfinite().all() for g in _gradients(module, scores).values())


def bfloat16(case: Case) -> None:
    """`module.to(torch.bfloat16)` runs and trains in bfloat16, with about the same output."""
    module, inputs = case.ready(), case.batch()
    expected = module(inputs).detach()
    scores = module.to(torch.bfloat16)(_as(inputs, torch.bfloat16))
    assert scores.dtype == torch.bfloat16 or not _weights(module)
    _assert_about(scores.detach(), expected)
    _gradients(module, scores)


def second_derivatives(case: Case) -> None:
    """Hessian-vector products by `create_graph=True` equal differences of gradients."""
    module, batch = _learning(case)
    module, inputs = module.double(), _as(batch[:FEW], torch.float64)
    along = {
        name: torch.from_numpy(stream(i, "testing", "along").normal(size=tuple(p.shape)))
        for i, (name, p) in enumerate(_weights(module).items())
    }
    with _optional("second derivatives"):
        first = _gradients(module, module(inputs), create_graph=True)
        total = torch.stack([(g * along[name]).sum() for name, g in first.items()]).sum()
        found = dict(zip(along, torch.autograd.grad(total, list(module.parameters()), **UNUSED), strict=True))
    sides = []
    for sign in (1, -1):
        moved = copy.deepcopy(module)
        with torch.no_grad():
            for name, p in moved.named_parameters():
                p.add_(along[name], alpha=sign * EPSILON)
        sides.append(_gradients(moved, moved(inputs)))
    _assert_same(found, {name: (sides[0][name] - sides[1][name]) / (2 * EPSILON) for name in along})


def func_grad(case: Case) -> None:
    """`torch.func.grad` gives the gradients of ordinary autograd."""
    module, inputs = _learning(case)
    with _optional("torch.func.grad"):
        found = grad(_loss_of(module))(_weights(module), inputs)
    _assert_same(found, _gradients(module, module(inputs)))


def of_vmap(case: Case) -> None:
    """`torch.func.vmap` over stacked modules, and over examples with `torch.func.grad`, equals a loop."""
    module, batch = _learning(case)
    modules, inputs = [module, *(case.trainable(case.seed + i) for i in range(1, ENSEMBLE))], batch[:FEW]
    alone = torch.stack([one(inputs).detach() for one in modules])
    with _optional("torch.func.vmap"):
        stacked = stack_module_state(modules)
        together = vmap(lambda p, b: functional_call(module, (p, b), (inputs,)))(*stacked)
        by_example = vmap(grad(_loss_of(module)), in_dims=(None, 0))(_weights(module), inputs.unsqueeze(1))
    require_close(together.detach(), alone, "Outputs of several modules by vmap and one by one", 1e-4)
    for i, one in enumerate(inputs.unsqueeze(1)):
        _assert_same({name: value[i] for name, value in by_example.items()}, _gradients(module, module(one)))


def of_compile(case: Case) -> None:
    """`torch.compile`, with the backend "eager", gives the same output and gradients."""
    case = _short(case)
    module, inputs = case.ready(), case.batch()
    with _optional("torch.compile"):
        torch.compiler.reset()
        copied = copy.deepcopy(module)
        scores = torch.compile(copied, backend="eager")(inputs)  # type: ignore[no-untyped-call]
        found = _gradients(copied, scores)
        torch.compiler.reset()
    require_close(scores.detach(), module(inputs).detach(), "Outputs of the compiled module and of the module", 1e-4)
    _assert_same(found, _gradients(module, module(inputs)))


def of_export(case: Case) -> None:
    """`torch.export` gives a program with the same output."""
    case = _short(case)
    module, inputs = case.ready(), case.batch()
    with _optional("torch.export"):
        scores = torch.export.export(module, (inputs,)).module()(inputs)
    require_close(scores.detach(), module(inputs).detach(), "Outputs of the exported program and of the module", 1e-4)


LOOPS: dict[str, Callable[[Case], None]] = {
    "autocast": autocast, "bfloat16": bfloat16, "second_derivatives": second_derivatives, "func_grad": func_grad,
    "vmap": of_vmap, "compile": of_compile, "export": of_export,
}  # fmt: skip
UNUSED: dict[str, Any] = {"allow_unused": True, "materialize_grads": True}


def _short(case: Case) -> Case:
    return replace(case, word_length=1) if isinstance(case, ModelCase) else case


def _learning(case: Case) -> tuple[nn.Module, Tensor]:
    module = case.ready()
    if not getattr(module, "learns_by_gradient", True):
        raise NotApplicable("it stores examples")
    return module, case.batch()


@contextlib.contextmanager
def _optional(what: str) -> Iterator[None]:
    """Report an error in the block as something that the module does not support."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the transforms
            yield
    except Exception as error:
        raise Unsupported(f"no {what} ({type(error).__name__}: {first_line(error)})") from error


def _as(inputs: Tensor, dtype: torch.dtype) -> Tensor:
    return inputs.to(dtype) if inputs.is_floating_point() else inputs


def _loss(scores: Tensor) -> Tensor:
    weights = torch.from_numpy(stream(0, "testing", "loss").normal(size=tuple(scores.shape)))
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return (wide.log_softmax(-1) * weights.to(wide)).sum()


def _loss_of(module: nn.Module) -> Callable[[Gradients, Tensor], Tensor]:
    return lambda parameters, inputs: _loss(functional_call(module, parameters, (inputs,)))


def _weights(module: nn.Module) -> Gradients:
    return {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}


def _gradients(module: nn.Module, scores: Tensor, create_graph: bool = False) -> Gradients:
    if not scores.requires_grad:  # a model that stores examples
        return {}
    parameters = list(module.parameters())
    found = torch.autograd.grad(_loss(scores), parameters, create_graph=create_graph, **UNUSED)
    return dict(zip(_weights(module), found, strict=True))


def _assert_same(found: Gradients, expected: Gradients) -> None:
    for name, value in expected.items():
        scale = max(1.0, value.abs().max().item())
        require_close(found[name] / scale, value / scale, f"Gradients of {name}", 1e-4)


def _assert_about(found: Tensor, expected: Tensor) -> None:
    """Most scores agree to the precision of bfloat16. A sender may read another symbol."""
    assert found.isfinite().all()
    limit = COARSE * max(1.0, expected.abs().max().item())
    assert (found.double() - expected.double()).abs().median().item() <= limit
