"""The behavior of user code for fixed inputs, which shows differences that the code does not show.

A model may depend on a file, on the environment, on compiled code, or on the version of another package. So its
parameters and buffers, and its scores for a fixed input, are recorded with its results. They are compared before a
result is used again, with a tolerance, since processors differ.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.checks import FIRST_SEED
from icy.core.code import short_hash
from icy.core.errors import StoreError
from icy.records.record import Record

from .task_models import make_model
from .tasks import Task

M = TypeVar("M", bound=nn.Module)
Behavior: TypeAlias = Mapping[str, Any]  # "tensors": hash of names and shapes; "numbers": sums over outputs
SEED = 1960
ROWS = 4  # inputs
SUMS = 3  # weighted sums of an output
TOLERANCE = 1e-3  # relative difference of a number that counts as equal


@contextlib.contextmanager
def fixed_randomness() -> Iterator[None]:
    """Within the block, the global generators of Python, NumPy and PyTorch start from a fixed seed."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            random.seed(SEED)
            np.random.seed(SEED)
            torch.default_generator.manual_seed(SEED)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def behavior_of(
    make: Callable[[], M], *inputs: Tensor, run: Callable[[M, Tensor], Any] = nn.Module.__call__
) -> Behavior:
    """Return the behavior of a module: its tensors, and sums of its outputs and gradients.

    Args:
        make: makes the module.
        *inputs: inputs to try in turn. The first that the module accepts is used, in training and in evaluation mode.
            A module that accepts none has no numbers.
        run: calls the module with an input.
    """
    with fixed_randomness():
        model = make()
        tensors = [*model.named_parameters(), *model.named_buffers()]
        shapes = "\n".join(
            f"{name} {value.dtype} {tuple(value.shape)} {value.requires_grad}" for name, value in tensors
        )
        found: dict[str, Any] = {"tensors": short_hash(shapes), "numbers": []}
        for given in inputs:
            with contextlib.suppress(Exception):  # the training will report the error
                trained = _first(run(model.train(), given))
                weights = [p for p in model.parameters() if p.requires_grad]
                gradients = torch.autograd.grad(trained.sum(), weights, allow_unused=True) if weights else ()
                with torch.no_grad():
                    evaluated = _first(run(model.eval(), given))
                nothing = torch.zeros((), dtype=torch.float64, device="cpu")  # of a model without gradients
                steepness = torch.stack([nothing, *(g.double().norm() for g in gradients if g is not None)])
                found["numbers"] = sums_of((trained, evaluated, steepness))
                break
    return found


def _first(output: Any) -> Tensor:
    while not isinstance(output, Tensor):
        output = next(iter(output.values() if isinstance(output, Mapping) else output))
    return output


def sums_of(outputs: Iterable[Tensor | np.ndarray[Any, Any]]) -> list[float | None]:
    """Return sums of outputs with fixed weights of about 1; None in place of a sum that is not finite."""
    found: list[float | None] = []
    for output in outputs:
        values = torch.as_tensor(output).detach().double().flatten()
        places = torch.arange(len(values), dtype=torch.float64, device="cpu")
        for number in range(SUMS):
            total = float((values * torch.cos(places * (1 + number) + number)).sum() / max(1, len(values)) ** 0.5)
            found.append(float(f"{total:.6g}") if math.isfinite(total) else None)
    return found


def same_behavior(one: Mapping[str, Behavior], other: Mapping[str, Behavior]) -> bool:
    """Return whether the behaviors of all parts are equal, with a tolerance for their numbers."""
    pairs = [(one[name], other[name]) for name in one.keys() & other.keys()]
    equal = (a["tensors"] == b["tensors"] and _close(a["numbers"], b["numbers"]) for a, b in pairs)
    return one.keys() == other.keys() and all(equal)


def _close(one: list[float | None], other: list[float | None]) -> bool:
    if len(one) != len(other):
        return False
    if len(one) > SUMS:  # outputs may be much smaller than gradients
        return all(_close(one[i : i + SUMS], other[i : i + SUMS]) for i in range(0, len(one), SUMS))
    scale = max([abs(x) for x in (*one, *other) if x is not None], default=0.0)
    return all(
        (a is None) == (b is None) and (a is None or b is None or abs(a - b) <= TOLERANCE * scale)
        for a, b in zip(one, other, strict=True)
    )


def behavior_name(behaviors: Mapping[str, Behavior]) -> str:
    """Return a short name of some behaviors. Equal behaviors may have two names, on two processors."""
    rounded = {
        name: [one["tensors"], *(x if x is None else f"{x:.3g}" for x in one["numbers"])]
        for name, one in sorted(behaviors.items())
    }
    return short_hash(str(rounded))


def model_behavior(task: Task, settings: TrainingSettings) -> Behavior:
    """Return the behavior of the model of a task, with the initial weights of the first seed."""
    space = task.space
    if task.side == "sender":
        meanings = space.meanings(np.linspace(0, space.size - 1, ROWS).round().astype(int))
        inputs: tuple[Tensor, ...] = (torch.as_tensor(meanings, dtype=torch.int64, device="cpu"),)
    else:
        places = torch.arange(ROWS * task.message_length, device="cpu").view(ROWS, -1)
        tokens = places * places % task.vocab_size
        inputs = tokens, nn.functional.one_hot(tokens, task.vocab_size + 1).float()
    return behavior_of(lambda: make_model(task, FIRST_SEED, settings), *inputs)


def require_same_behavior(record: Record, tasks: Iterable[Task], settings: TrainingSettings) -> None:
    """Check that the models of a record behave as they did when it was made, if they are code of users.

    Raises:
        StoreError: a model behaves differently.
    """
    for task in tasks:
        made_by = record.get("made_by", {}).get(task.entry.qualified, {})
        if "behavior" in made_by:
            now = model_behavior(task, settings)
            if not same_behavior({"": made_by["behavior"]}, {"": now}):
                raise StoreError(
                    f"{task.entry.qualified} behaves differently than the model that was trained: its tensors, or its "
                    "scores for a fixed input, differ. Load the model that was trained, or train this one."
                )
