"""Checks of modules in training loops other than icy's: precision, empty batches, and PyTorch's transforms.

Transforms (`torch.func`, `torch.compile`, `torch.export`) and second derivatives are optional: a module that raises an
error there is reported as without support for them, and does not fail. Wrong numbers always fail.
"""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Self

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from icy.core.streams import stream

from .cases import CheckFailure, NotApplicable, Unsupported, first_line, require, require_close
from .modules import M, TrainedCase, require_gradient_learning

FEW = 4  # examples for derivatives one by one
EPSILON = 1e-8  # step of differences in double precision, so small that a ReLU rarely changes sides within it
COARSE = 0.1  # difference in bfloat16, relative to the largest score
ENSEMBLE = 3  # number of models that vmap runs together

Gradients = dict[str, Tensor]  # by the name of the parameter


class OtherLoopCase(TrainedCase[M]):
    """A module under test in training loops other than icy's. The module is that of `trainable`."""

    def ready(self) -> nn.Module:
        """Create the module of the case's seed, ready to run."""
        return self.trainable(self.seed)

    def short(self) -> Self:
        """Return a case with a small module, for `torch.compile` and `torch.export`, which trace every step."""
        return self

    def batch(self) -> Tensor:
        """Return a batch of inputs."""
        return self.batches([self.seed], 0)[0][0]

    def _started(self) -> tuple[nn.Module, Tensor, Tensor]:
        """Return the module, a batch of inputs, and the outputs."""
        module, inputs = self.ready(), self.batch()
        return module, inputs, _run(module, inputs)

    def _learning(self) -> tuple[nn.Module, Tensor]:
        """Return the module and a batch, if the module learns by gradient."""
        module = self.ready()
        require_gradient_learning(module)
        return module, self.batch()

    def check_autocast(self) -> None:
        """Within `torch.autocast("cpu", torch.bfloat16)` the module runs and trains, with about the same output."""
        module, inputs, expected = self._started()
        for training in (False, True):
            module.train(training)
            with torch.random.fork_rng(devices=[]), torch.autocast("cpu", torch.bfloat16):
                scores = module(inputs)
            require(scores.dtype in (torch.bfloat16, torch.float32), f"Within autocast the output is {scores.dtype}.")
            if not training:
                _require_about(scores.detach(), expected, "Outputs within autocast and without")
            broken = [name for name, g in _gradients(module, scores).items() if not g.isfinite().all()]
            require(not broken, f"Within autocast the gradient of {', '.join(broken)} is not finite.")

    def check_bfloat16(self) -> None:
        """`module.to(torch.bfloat16)` runs and trains in bfloat16, with about the same output."""
        module, inputs, expected = self._started()
        scores = module.to(torch.bfloat16)(_as(inputs, torch.bfloat16))
        if any(True for _ in module.parameters()):
            require(scores.dtype == torch.bfloat16, f"After module.to(torch.bfloat16) the output is {scores.dtype}.")
        _require_about(scores.detach(), expected, "Outputs in bfloat16 and in single precision")
        _gradients(module, scores)

    def check_empty_batch(self) -> None:
        """A batch of 0 examples gives outputs of 0 examples, and gradients of zero."""
        module, inputs, full = self._started()
        scores, expected = module(inputs[:0]), (0, *full.shape[1:])
        require(tuple(scores.shape) == expected, f"An empty batch gives shape {tuple(scores.shape)}, not {expected}.")
        nonzero = [name for name, g in _gradients(module, scores).items() if g.any()]
        require(not nonzero, f"An empty batch gives {', '.join(nonzero)} a gradient other than zero.")

    def check_state_dict(self) -> None:
        """A module with other weights gives the same output after `load_state_dict` of a saved `state_dict`."""
        module, inputs, expected = self._started()
        other, held = self.trainable(self.seed + 1), io.BytesIO()
        torch.save(module.state_dict(), held)
        held.seek(0)
        other.load_state_dict(torch.load(held, weights_only=True))
        require(torch.equal(_run(other, inputs), expected), "After load_state_dict the output differs.")

    def check_second_derivatives(self) -> None:
        """Hessian-vector products by `create_graph=True` equal differences of gradients, if they are supported."""
        module, batch = self._learning()
        module, inputs = module.double(), _as(batch[:FEW], torch.float64)
        along = {
            name: torch.from_numpy(stream(i, "testing", "along").normal(size=tuple(p.shape)))
            for i, (name, p) in enumerate(_trainable(module).items())
        }
        with _optional("second derivatives"):
            first = _gradients(module, module(inputs), create_graph=True)
            found = _gradients_of(module, torch.stack([(g * along[name]).sum() for name, g in first.items()]).sum())
        sides = []
        for sign in (1, -1):
            moved = copy.deepcopy(module)
            with torch.no_grad():
                for name, p in _trainable(moved).items():
                    p.add_(along[name], alpha=sign * EPSILON)
            sides.append(_gradients(moved, moved(inputs)))
        differences = {name: (sides[0][name] - sides[1][name]) / (2 * EPSILON) for name in along}
        _require_same(found, differences, "Second derivatives and differences of first derivatives")

    def check_func_grad(self) -> None:
        """`torch.func.grad` gives the gradients of ordinary autograd."""
        module, inputs = self._learning()
        expected = _gradients(module, module(inputs))
        with _optional("torch.func.grad"):
            found = grad(_loss_of(module))(_detached(module), inputs)
        _require_same(found, expected, "Gradients by torch.func.grad and by autograd")

    def check_vmap(self) -> None:
        """`torch.func.vmap` over stacked modules, and over examples with `torch.func.grad`, equals a loop."""
        module, batch = self._learning()
        modules, inputs = [module, *(self.trainable(self.seed + i) for i in range(1, ENSEMBLE))], batch[:FEW]
        alone = torch.stack([_run(one, inputs) for one in modules])
        of_each = [_gradients(module, module(one)) for one in inputs.unsqueeze(1)]
        with _optional("torch.func.vmap"):
            stacked = stack_module_state(modules)  # type: ignore[arg-type]
            together = vmap(lambda p, b: functional_call(module, (p, b), (inputs,)))(*stacked)
            by_example = vmap(grad(_loss_of(module)), in_dims=(None, 0))(_detached(module), inputs.unsqueeze(1))
        require_close(together, alone, "Outputs of several modules by vmap and one by one", 1e-4)
        for i, expected in enumerate(of_each):
            found = {name: value[i] for name, value in by_example.items()}
            _require_same(found, expected, "Gradients of each example by vmap and one by one")

    def check_compile(self) -> None:
        """`torch.compile`, with the backend "eager", gives the same output and gradients."""
        module, inputs, expected = self.short()._started()
        with _optional("torch.compile"):
            torch.compiler.reset()
            copied = copy.deepcopy(module)
            scores = torch.compile(copied, backend="eager")(inputs)
            found = _gradients(copied, scores)
            torch.compiler.reset()
        require_close(scores.detach(), expected, "Outputs of the compiled module and of the module", 1e-4)
        _require_same(found, _gradients(module, module(inputs)), "Gradients with torch.compile and without")

    def check_export(self) -> None:
        """`torch.export` gives a program with the same output."""
        module, inputs, expected = self.short()._started()
        with _optional("torch.export"):
            scores = torch.export.export(module, (inputs,)).module()(inputs)
        require_close(scores.detach(), expected, "Outputs of the exported program and of the module", 1e-4)


@contextlib.contextmanager
def _optional(what: str) -> Iterator[None]:
    """Report an error in the block as an optional feature that the module does not support.

    Warnings of PyTorch in the block concern its transforms, not the module.

    Raises:
        Unsupported: the block raised an error other than a failure of the check.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    except (CheckFailure, NotApplicable):
        raise
    except Exception as error:
        raise Unsupported(f"no {what} ({type(error).__name__}: {first_line(error)})") from error


def _run(module: nn.Module, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        scores: Tensor = module(inputs)
    return scores


def _as(inputs: Tensor, dtype: torch.dtype) -> Tensor:
    """Return inputs in a floating-point type; inputs of whole numbers are not converted."""
    return inputs.to(dtype) if inputs.is_floating_point() else inputs


def _loss(scores: Tensor) -> Tensor:
    """Return a nonlinear loss over all scores."""
    weights = torch.from_numpy(stream(0, "testing", "loss").normal(size=tuple(scores.shape)))
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return (wide.log_softmax(-1) * weights.to(wide)).sum()


def _loss_of(module: nn.Module) -> Callable[[Gradients, Tensor], Tensor]:
    """Return the loss as a function of parameters and inputs."""
    return lambda parameters, inputs: _loss(functional_call(module, parameters, (inputs,)))


def _trainable(module: nn.Module) -> dict[str, Tensor]:
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def _detached(module: nn.Module) -> dict[str, Tensor]:
    return {name: p.detach() for name, p in _trainable(module).items()}


def _gradients(module: nn.Module, scores: Tensor, create_graph: bool = False) -> Gradients:
    """Return the gradients of the loss of scores; zeros for parameters without effect."""
    return _gradients_of(module, _loss(scores), create_graph)


def _gradients_of(module: nn.Module, number: Tensor, create_graph: bool = False) -> Gradients:
    named = _trainable(module)
    if not number.requires_grad:
        return {name: torch.zeros_like(p) for name, p in named.items()}
    found = torch.autograd.grad(
        number, list(named.values()), create_graph=create_graph, allow_unused=True, materialize_grads=True
    )
    return dict(zip(named, found, strict=True))


def _require_same(found: Gradients, expected: Gradients, what: str) -> None:
    """Fail the check unless gradients agree, relative to the largest of each tensor."""
    for name, value in expected.items():
        scale = max(1.0, value.abs().max().item() if value.numel() else 0.0)
        require_close(found[name] / scale, value / scale, f"{what}, of {name}", 1e-4)


def _require_about(found: Tensor, expected: Tensor, what: str) -> None:
    """Fail the check unless most scores agree to the precision of bfloat16. A sender may read another symbol."""
    require(found.shape == expected.shape, f"{what}: shapes are {tuple(found.shape)} and {tuple(expected.shape)}.")
    require(found.isfinite().all(), f"{what}: some numbers are infinite or NaN.")
    difference = (found.double() - expected.double()).abs().median().item()
    limit = COARSE * max(1.0, expected.abs().max().item())
    require(difference <= limit, f"{what}: half of the numbers differ by {difference:.2g} or more.")
