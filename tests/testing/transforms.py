"""PyTorch's transforms of icy's own models: each gives the numbers of ordinary PyTorch, or raises `Unsupported`.

`torch.compile` and `torch.export` trace every step of a model, which takes seconds, so these are not checks of
`icy.testing`: a user tries them on one model.
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

from icy.testing import Unsupported
from icy.testing.cases import first_line, require_close
from icy.testing.models import ModelCase
from icy.testing.modules import TrainedCase, require_gradient_learning

FEW = 4  # examples
ENSEMBLE = 3  # models that vmap runs together

Case = TrainedCase[Any]
Gradients = dict[str, Tensor]


def func_grad(case: Case) -> None:
    """`torch.func.grad` gives the gradients of ordinary autograd."""
    module, inputs = _learning(case)
    with _optional("torch.func.grad"):
        found = grad(_loss_of(module))(_weights(module), inputs)
    _require_same(found, _gradients(module, module(inputs)))


def of_vmap(case: Case) -> None:
    """`torch.func.vmap` over stacked modules, and over examples with `torch.func.grad`, equals a loop."""
    module, batch = _learning(case)
    modules, inputs = [module, *(case.trainable(case.seed + i) for i in range(1, ENSEMBLE))], batch[:FEW]
    alone = torch.stack([one(inputs).detach() for one in modules])
    with _optional("torch.func.vmap"):
        stacked = stack_module_state(modules)  # type: ignore[arg-type]
        together = vmap(lambda p, b: functional_call(module, (p, b), (inputs,)))(*stacked)
        by_example = vmap(grad(_loss_of(module)), in_dims=(None, 0))(_weights(module), inputs.unsqueeze(1))
    require_close(together.detach(), alone, "Outputs of several modules by vmap and one by one", 1e-4)
    for i, one in enumerate(inputs.unsqueeze(1)):
        _require_same({name: value[i] for name, value in by_example.items()}, _gradients(module, module(one)))


def of_compile(case: Case) -> None:
    """`torch.compile`, with the backend "eager", gives the same output and gradients."""
    case = _short(case)
    module, inputs = case.ready(), case.batch()
    with _optional("torch.compile"):
        torch.compiler.reset()
        copied = copy.deepcopy(module)
        scores = torch.compile(copied, backend="eager")(inputs)
        found = _gradients(copied, scores)
        torch.compiler.reset()
    require_close(scores.detach(), module(inputs).detach(), "Outputs of the compiled module and of the module", 1e-4)
    _require_same(found, _gradients(module, module(inputs)))


def of_export(case: Case) -> None:
    """`torch.export` gives a program with the same output."""
    case = _short(case)
    module, inputs = case.ready(), case.batch()
    with _optional("torch.export"):
        scores = torch.export.export(module, (inputs,)).module()(inputs)
    require_close(scores.detach(), module(inputs).detach(), "Outputs of the exported program and of the module", 1e-4)


TRANSFORMS: dict[str, Callable[[Case], None]] = {
    "func_grad": func_grad, "vmap": of_vmap, "compile": of_compile, "export": of_export,
}  # fmt: skip


def _short(case: Case) -> Case:
    return replace(case, word_length=1) if isinstance(case, ModelCase) else case


def _learning(case: Case) -> tuple[nn.Module, Tensor]:
    module = case.ready()
    require_gradient_learning(module)
    return module, case.batch()


@contextlib.contextmanager
def _optional(what: str) -> Iterator[None]:
    """Report an error in the block as a transform that the module does not support."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the transforms
            yield
    except Exception as error:
        raise Unsupported(f"no {what} ({type(error).__name__}: {first_line(error)})") from error


def _loss(scores: Tensor) -> Tensor:
    weights = torch.linspace(-1, 1, scores.numel(), dtype=scores.dtype).view(scores.shape)
    return (scores.log_softmax(-1) * weights).sum()


def _loss_of(module: nn.Module) -> Callable[[Gradients, Tensor], Tensor]:
    return lambda parameters, inputs: _loss(functional_call(module, parameters, (inputs,)))


def _weights(module: nn.Module) -> Gradients:
    return {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}


def _gradients(module: nn.Module, scores: Tensor) -> Gradients:
    if not scores.requires_grad:  # a model that stores examples
        return {}
    return dict(zip(_weights(module), torch.autograd.grad(_loss(scores), list(module.parameters())), strict=True))


def _require_same(found: Gradients, expected: Gradients) -> None:
    for name, value in expected.items():
        scale = max(1.0, value.abs().max().item())
        require_close(found[name] / scale, value / scale, f"Gradients of {name}", 1e-4)
