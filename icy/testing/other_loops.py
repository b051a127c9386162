"""Checks of modules in training loops other than icy's: precision, empty batches, and PyTorch's transforms.

Transforms (`torch.func`, `torch.compile`, `torch.export`) and second derivatives are optional: a module that raises an
error there is reported as without support for them, and does not fail. Wrong numbers always fail.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from icy.core.streams import stream

from .cases import CheckFailure, NotApplicable, Unsupported, first_line, require, require_close, run

FEW = 4  # examples for derivatives one by one
EPSILON = 1e-8  # step of differences in double precision, so small that a ReLU rarely changes sides within it
COARSE = 0.1  # difference in bfloat16, relative to the largest score
ENSEMBLE = 3  # number of models that vmap runs together

C = TypeVar("C")


@dataclass(frozen=True)
class OtherLoopCase:
    """A module in a training loop other than icy's.

    Attributes:
        make: function from a seed to the module with its weights, in evaluation mode.
        inputs: a batch of examples.
        shape: the shape of the output of one example.
        learns: False for a model that stores examples.
        ready: function that creates the module of seed 0; a model that stores examples has stored some.
        short: function that creates a small module, ready to run, for `torch.compile` and `torch.export`, which trace
            every step.
    """

    make: Callable[[int], nn.Module]
    inputs: Tensor
    shape: tuple[int, ...]
    learns: bool = True
    ready: Callable[[], nn.Module] | None = None
    short: OtherLoopCase | None = None

    def module(self) -> nn.Module:
        """Create the module, ready to run."""
        return self.make(0) if self.ready is None else self.ready()

    def trained(self) -> nn.Module:
        """Create the module, if it learns by gradient.

        Raises:
            NotApplicable: the module does not learn by gradient.
        """
        if not self.learns:
            raise NotApplicable("the model stores examples and does not learn by gradient")
        return self.module()

    def inputs_as(self, dtype: torch.dtype) -> Tensor:
        """Return the inputs in a floating-point type; inputs of whole numbers are not converted."""
        return self.inputs.to(dtype) if self.inputs.is_floating_point() else self.inputs


OTHER_LOOP_CHECKS: dict[str, Callable[[OtherLoopCase], str | None]] = {}


def other_loop_checks(convert: Callable[[C], OtherLoopCase]) -> dict[str, Callable[[C], str | None]]:
    """Return the checks of this module for another kind of case, which `convert` converts to an OtherLoopCase."""

    def of_case(check: Callable[[OtherLoopCase], str | None]) -> Callable[[C], str | None]:
        @wraps(check)
        def converted(case: C) -> str | None:
            return check(convert(case))

        return converted

    return {name: of_case(check) for name, check in OTHER_LOOP_CHECKS.items()}


def _check(check: Callable[[OtherLoopCase], None]) -> Callable[[OtherLoopCase], None]:
    OTHER_LOOP_CHECKS[check.__name__.removeprefix("check_")] = check
    return check


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


def _loss(scores: Tensor) -> Tensor:
    """Return a nonlinear loss over all scores."""
    weights = torch.from_numpy(stream(0, "testing", "loss").normal(size=tuple(scores.shape)))
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return (wide.log_softmax(-1) * weights.to(wide)).sum()


def _trainable(module: nn.Module) -> dict[str, Tensor]:
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def _gradients(module: nn.Module, inputs: Tensor) -> dict[str, Tensor]:
    """Return the gradients of the loss by ordinary autograd; zeros for parameters without effect."""
    named = _trainable(module)
    found = torch.autograd.grad(_loss(module(inputs)), list(named.values()), allow_unused=True, materialize_grads=True)
    return dict(zip(named, found, strict=True))


def _accumulated(module: nn.Module) -> dict[str, Tensor]:
    """Return the gradients after a backward pass."""
    return {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in _trainable(module).items()}


def _require_same(found: dict[str, Tensor], expected: dict[str, Tensor], what: str, tolerance: float = 1e-4) -> None:
    """Fail the check unless gradients agree, relative to the largest of each tensor."""
    for name, value in expected.items():
        scale = max(1.0, value.abs().max().item() if value.numel() else 0.0)
        require_close(found[name] / scale, value / scale, f"{what}, of {name}", tolerance)


def _require_about(found: Tensor, expected: Tensor, what: str) -> None:
    """Fail the check unless most scores agree to the precision of bfloat16. A sender may read another symbol."""
    require(found.shape == expected.shape, f"{what}: shapes are {tuple(found.shape)} and {tuple(expected.shape)}.")
    require(found.isfinite().all(), f"{what}: some numbers are infinite or NaN.")
    difference = (found.double() - expected.double()).abs().median().item()
    limit = COARSE * max(1.0, expected.abs().max().item())
    require(difference <= limit, f"{what}: half of the numbers differ by {difference:.2g} or more.")


@_check
def check_autocast(case: OtherLoopCase) -> None:
    """Within `torch.autocast("cpu", torch.bfloat16)` the module runs and trains, with about the same output."""
    expected = run(case.module(), case.inputs)
    for training in (False, True):
        module = case.module().train(training)
        with torch.random.fork_rng(devices=[]), torch.autocast("cpu", torch.bfloat16):
            scores = module(case.inputs)
        require(scores.dtype in (torch.bfloat16, torch.float32), f"Within autocast the output is {scores.dtype}.")
        if not training:
            _require_about(scores.detach(), expected, "Outputs within autocast and without")
        if scores.requires_grad:
            _loss(scores).backward()
            broken = [name for name, g in _accumulated(module).items() if not g.isfinite().all()]
            require(not broken, f"Within autocast the gradient of {', '.join(broken)} is not finite.")


@_check
def check_bfloat16(case: OtherLoopCase) -> None:
    """`module.to(torch.bfloat16)` runs and trains in bfloat16, with about the same output."""
    expected, module = run(case.module(), case.inputs), case.module().to(torch.bfloat16)
    scores = module(case.inputs_as(torch.bfloat16))
    if any(True for _ in module.parameters()):
        require(scores.dtype == torch.bfloat16, f"After module.to(torch.bfloat16) the output is {scores.dtype}.")
    _require_about(scores.detach(), expected, "Outputs in bfloat16 and in single precision")
    if scores.requires_grad:
        _loss(scores).backward()


@_check
def check_empty_batch(case: OtherLoopCase) -> None:
    """A batch of 0 examples gives outputs of 0 examples, and gradients of zero."""
    module, expected = case.module(), (0, *case.shape)
    scores = module(case.inputs[:0])
    require(tuple(scores.shape) == expected, f"An empty batch gives shape {tuple(scores.shape)}, not {expected}.")
    if scores.requires_grad:
        scores.sum().backward()
        nonzero = [name for name, g in _accumulated(module).items() if g.any()]
        require(not nonzero, f"An empty batch gives {', '.join(nonzero)} a gradient other than zero.")


@_check
def check_state_dict(case: OtherLoopCase) -> None:
    """A module with other weights gives the same output after `load_state_dict` of a saved `state_dict`."""
    module, other, held = case.module(), case.make(1), io.BytesIO()
    torch.save(module.state_dict(), held)
    held.seek(0)
    other.load_state_dict(torch.load(held, weights_only=True))
    require(torch.equal(run(other, case.inputs), run(module, case.inputs)), "After load_state_dict the output differs.")


@_check
def check_second_derivatives(case: OtherLoopCase) -> None:
    """Hessian-vector products by `create_graph=True` equal differences of gradients, if they are supported."""
    module, inputs = case.trained().double(), case.inputs_as(torch.float64)[:FEW]
    named = _trainable(module)
    along = {
        name: torch.from_numpy(stream(i, "testing", "along").normal(size=tuple(p.shape)))
        for i, (name, p) in enumerate(named.items())
    }
    with _optional("second derivatives"):
        loss = _loss(module(inputs))
        first = torch.autograd.grad(
            loss, list(named.values()), create_graph=True, allow_unused=True, materialize_grads=True
        )
        product = torch.stack([(g * along[name]).sum() for name, g in zip(named, first, strict=True)]).sum()
        if product.requires_grad:
            product.backward()
    sides = []
    for sign in (1, -1):
        moved = copy.deepcopy(module)
        with torch.no_grad():
            for name, p in _trainable(moved).items():
                p.add_(along[name], alpha=sign * EPSILON)
        sides.append(_gradients(moved, inputs))
    differences = {name: (sides[0][name] - sides[1][name]) / (2 * EPSILON) for name in named}
    _require_same(_accumulated(module), differences, "Second derivatives and differences of first derivatives")


@_check
def check_func_grad(case: OtherLoopCase) -> None:
    """`torch.func.grad` gives the gradients of ordinary autograd."""
    module = case.trained()
    expected = _gradients(module, case.inputs)
    with _optional("torch.func.grad"):
        found = grad(_loss_of(module))({n: p.detach() for n, p in _trainable(module).items()}, case.inputs)
    _require_same(found, expected, "Gradients by torch.func.grad and by autograd")


def _loss_of(module: nn.Module) -> Callable[[dict[str, Tensor], Tensor], Tensor]:
    """Return the loss as a function of parameters and inputs."""
    return lambda parameters, inputs: _loss(functional_call(module, parameters, (inputs,)))


@_check
def check_vmap(case: OtherLoopCase) -> None:
    """`torch.func.vmap` over stacked modules, and over examples with `torch.func.grad`, equals a loop."""
    modules, inputs = [case.trained(), *map(case.make, range(1, ENSEMBLE))], case.inputs[:FEW]
    alone = torch.stack([run(module, inputs) for module in modules])
    of_each = [_gradients(modules[0], one) for one in inputs.unsqueeze(1)]
    parameters = {name: p.detach() for name, p in _trainable(modules[0]).items()}
    with _optional("torch.func.vmap"):
        stacked = stack_module_state(modules)  # type: ignore[arg-type]
        together = vmap(lambda p, b: functional_call(modules[0], (p, b), (inputs,)))(*stacked)
        by_example = vmap(grad(_loss_of(modules[0])), in_dims=(None, 0))(parameters, inputs.unsqueeze(1))
    require_close(together, alone, "Outputs of several modules by vmap and one by one", 1e-4)
    for i, expected in enumerate(of_each):
        found = {name: value[i] for name, value in by_example.items()}
        _require_same(found, expected, "Gradients of each example by vmap and one by one")


@_check
def check_compile(case: OtherLoopCase) -> None:
    """`torch.compile`, with the backend "eager", gives the same output and gradients."""
    short = case.short or case
    module = short.module()
    expected = run(module, short.inputs)
    with _optional("torch.compile"):
        torch.compiler.reset()
        copied = copy.deepcopy(module)
        scores = torch.compile(copied, backend="eager")(short.inputs)
        if scores.requires_grad:
            _loss(scores).backward()
        torch.compiler.reset()
    require_close(scores.detach(), expected, "Outputs of the compiled module and of the module", 1e-4)
    if scores.requires_grad:
        unchanged = _gradients(module, short.inputs)
        _require_same(_accumulated(copied), unchanged, "Gradients with torch.compile and without")


@_check
def check_export(case: OtherLoopCase) -> None:
    """`torch.export` gives a program with the same output."""
    short = case.short or case
    module = short.module()
    expected = run(module, short.inputs)
    with _optional("torch.export"):
        scores = torch.export.export(module, (short.inputs,)).module()(short.inputs)
    require_close(scores.detach(), expected, "Outputs of the exported program and of the module", 1e-4)


@_check
def check_distributed(case: OtherLoopCase) -> None:
    """`DistributedDataParallel` trains the module, without `find_unused_parameters`."""
    from torch import distributed
    from torch.distributed import HashStore  # type: ignore[attr-defined]
    from torch.nn.parallel import DistributedDataParallel

    if not distributed.is_available() or distributed.is_initialized():
        raise NotApplicable("torch.distributed is not available, or is in use")
    module = case.trained()
    expected = _gradients(module, case.inputs)
    if not expected:
        raise NotApplicable("the module has no parameters")
    distributed.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    parallel: nn.Module | None = None
    try:
        parallel = DistributedDataParallel(module)
        for _ in range(2):  # the second pass raises an error if a parameter got no gradient in the first
            module.zero_grad()
            _loss(parallel(case.inputs)).backward()
    finally:
        # The wrapper is deleted first: if its destructor destroys the group, it can wait forever for a thread of the
        # group.
        parallel = None
        gc.collect()
        distributed.destroy_process_group()
    _require_same(_accumulated(module), expected, "Gradients with DistributedDataParallel and without")
