"""Count the operations of one update of a model, without training it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from icy.config.settings import TrainingSettings
from icy.core.checks import FIRST_SEED
from icy.core.noise import Noise
from icy.models.creation import COPIES

from .engine import make_model, representation_of
from .learners import supervised_loss
from .stack import Stack
from .tasks import PairTask, Task
from .work import Work

LARGE = 2_000_000  # parameters from which only shapes are computed, as a forward pass on a CPU would take long
# A backward pass takes about twice as long as its forward pass. Rates are per operation of the forward pass, so the
# operations after both passes are counted at a third.
UPDATE_CALLS = 10  # calls of clipping and Adam
UPDATE_PASSES = 3  # passes over the parameters: clearing gradients, clipping and Adam


def work_of_task(task: Task, settings: TrainingSettings) -> Work | None:
    """Count one update of the model of a task from one forward pass; None for a model that learns without gradients."""
    model = make_model(task, FIRST_SEED, settings)
    if not getattr(model, "learns_by_gradient", True):
        return None
    stack = Stack([model], torch.device("cpu"), [FIRST_SEED])
    examples = 1, settings.batch_size
    meanings = torch.zeros(*examples, task.space.attributes, dtype=torch.long, device="cpu")
    messages = torch.zeros(*examples, task.message_length, dtype=torch.long, device="cpu")
    inputs, targets = (meanings, messages) if task.side == "sender" else (messages, meanings)
    arguments = [inputs, targets] if getattr(model, "teacher_forcing", False) else [inputs]
    loss = supervised_loss(representation_of(task, settings), task.side, bool(task.word_lengths))
    keys = torch.zeros(1, dtype=torch.long, device="cpu")
    engine = "broadcast" if getattr(model, "broadcasts", False) else "loop"

    def forward() -> None:
        loss(stack.forward(arguments, engine, keys), targets, Noise(keys))

    return counted_work(forward, stack.flat, stack.flat.numel() > LARGE)


def counted_work(forward: Callable[[], object], weights: Tensor, shapes_only: bool) -> Work:
    """Count an update by running its forward pass and loss.

    Args:
        forward: computes the forward pass and loss of a batch.
        weights: all parameters.
        shapes_only: whether to run it on tensors without data, which is slower for small models.
    """
    counter = _Counter()
    fake = FakeTensorMode(allow_non_fake_inputs=True) if shapes_only else contextlib.nullcontext()
    with fake, torch.autograd.graph.saved_tensors_hooks(counter.keep, lambda kept: kept), counter:
        forward()
    count = weights.numel()
    kept = counter.kept + COPIES * weights.element_size() * count
    return Work(counter.calls + UPDATE_CALLS, counter.elements + UPDATE_PASSES * count, counter.flops, kept)


def work_of_pair(task: PairTask, settings: TrainingSettings) -> Work | None:
    """Count one update of a game: both sides one after the other, for each pairing of a population.

    An impatient receiver reads every prefix of a message.
    """
    sides = [work_of_task(task.alone(side, task.representation), settings) for side in ("sender", "receiver")]
    sender, receiver = sides
    if sender is None or receiver is None:
        return None
    return (sender + receiver.times(task.lengths.readings)).times(task.population.size)


def work_of_chain(task: Task | PairTask, settings: TrainingSettings) -> Work | None:
    """Count one update of the model of a chain, or of a pair."""
    return work_of_pair(task, settings) if isinstance(task, PairTask) else work_of_task(task, settings)


class _Counter(TorchDispatchMode):
    """Counts operations within a block."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._kept: dict[int, Tensor] = {}  # references, so that memory is not reused
        self.calls = self.elements = self.flops = 0.0

    @property
    def kept(self) -> int:
        """Bytes of the tensors that are kept for the backward pass."""
        return sum(tensor.untyped_storage().nbytes() for tensor in self._kept.values())

    def keep(self, tensor: Tensor) -> Tensor:
        """Count a tensor that is kept for the backward pass; each tensor is counted once."""
        if not isinstance(tensor, torch.nn.Parameter):
            self._kept.setdefault(tensor.untyped_storage()._cdata, tensor)
        return tensor

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function.is_view or function is torch.ops.prim.device.default:  # the latter is called on fake tensors
            return result
        self.calls += 1
        if (count := _flop_counter(function)) is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=result)
        else:
            self.elements += max((tensor.numel() for tensor in _tensors((args, result))), default=0)
        return result


def _flop_counter(function: Any) -> Any:
    """Return PyTorch's counter of the operations of a product; in-place variants use the counter of the plain one."""
    packet = function.overloadpacket
    return flop_registry.get(packet) or flop_registry.get(getattr(torch.ops.aten, packet.__name__.rstrip("_"), packet))


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
