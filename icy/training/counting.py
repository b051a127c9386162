"""Count the operations of one update of a model, without training it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
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

MARKERS = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
# A backward pass takes about twice as long as its forward pass. Rates are per operation of the forward pass, so the
# operations after both passes are counted at a third.
UPDATE_CALLS = 10  # calls of clipping and Adam
UPDATE_PASSES = 3  # passes over the parameters: clearing gradients, clipping and Adam


def work_of_task(task: Task, settings: TrainingSettings) -> Work | None:
    """Count one update of the model of a task; None for a model that learns without gradients.

    The forward pass is run once, on a batch of a few examples. The batch size is a prime number that does not divide
    any other size, so a tensor grows with the batch if one of its sizes is a multiple of this number.
    """
    model = make_model(task, FIRST_SEED, settings)
    if not getattr(model, "learns_by_gradient", True):
        return None
    few = marker(_sizes(task))
    stack = Stack([model], torch.device("cpu"), [FIRST_SEED])
    meanings = torch.zeros(1, few, task.space.attributes, dtype=torch.long, device="cpu")
    messages = torch.zeros(1, few, task.message_length, dtype=torch.long, device="cpu")
    inputs, targets = (meanings, messages) if task.side == "sender" else (messages, meanings)
    arguments = [inputs, targets] if getattr(model, "teacher_forcing", False) else [inputs]
    loss = supervised_loss(representation_of(task, settings), task.side)
    keys = torch.zeros(1, dtype=torch.long, device="cpu")
    engine = "broadcast" if getattr(model, "broadcasts", False) else "loop"

    def forward() -> None:
        loss(stack.forward(arguments, engine, keys), targets, Noise(keys))

    return counted_work(forward, few, settings.batch_size / few, stack.flat)


def counted_work(forward: Callable[[], object], few: int, scale: float, weights: Tensor) -> Work:
    """Count an update by running its forward pass and loss on a few examples.

    Args:
        forward: computes the forward pass and loss of `few` examples.
        few: a number that does not divide any other size in the model (`marker`); it identifies tensors of the batch.
        scale: batch size divided by `few`.
        weights: all parameters.
    """
    counter = _Counter(few, scale)
    with torch.autograd.graph.saved_tensors_hooks(counter.keep, lambda kept: kept), counter:
        forward()
    count = weights.numel()
    kept = counter.kept + COPIES * weights.element_size() * count
    return Work(counter.calls + UPDATE_CALLS, counter.elements + UPDATE_PASSES * count, counter.flops, kept)


def work_of_pair(task: PairTask, settings: TrainingSettings) -> Work | None:
    """Count one update of a game: both sides one after the other."""
    sides = [work_of_task(task.alone(side, task.representation), settings) for side in ("sender", "receiver")]
    sender, receiver = sides
    return None if sender is None or receiver is None else sender + receiver


def work_of_chain(task: Task | PairTask, settings: TrainingSettings) -> Work | None:
    """Count one update of the model of a chain, or of a pair."""
    return work_of_pair(task, settings) if isinstance(task, PairTask) else work_of_task(task, settings)


def _sizes(task: Task) -> list[int]:
    sizes = [task.space.attributes, task.space.values, task.message_length, task.vocab_size, task.vocab_size + 1]
    return [*sizes, task.hidden_size, *whole_numbers(task.options.values())]


def whole_numbers(options: Iterable[object]) -> list[int]:
    """Return the options that may be sizes: positive whole numbers."""
    return [n for n in options if isinstance(n, int) and n > 0]


def marker(sizes: Iterable[int]) -> int:
    """Return a prime number of examples that does not divide any size, if there is one."""
    sizes = list(sizes)
    return next((m for m in MARKERS if all(size % m for size in sizes)), MARKERS[0])


class _Counter(TorchDispatchMode):
    """Counts operations within a block. Operations on the batch are scaled to the full batch size.

    Args:
        marker: size of the small batch.
        scale: full batch size divided by `marker`.
    """

    def __init__(self, marker: int, scale: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._marker, self._scale = marker, scale
        self._seen: set[int] = set()
        self._held: list[Tensor] = []  # references, so that memory is not reused
        self.calls = self.elements = self.flops = self.kept = 0.0

    def keep(self, tensor: Tensor) -> Tensor:
        """Count a tensor that is kept for the backward pass; each tensor is counted once."""
        address = tensor.untyped_storage()._cdata
        if address not in self._seen and not isinstance(tensor, torch.nn.Parameter):
            self._seen.add(address)
            self._held.append(tensor)
            self.kept += tensor.untyped_storage().nbytes() * (self._scale if self._grown(tensor) else 1)
        return tensor

    def _grown(self, tensor: Tensor) -> bool:
        return any(n % self._marker == 0 and n for n in tensor.shape)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function.is_view or function is torch.ops.prim.device.default:  # the latter is called on fake tensors
            return result
        self.calls += 1
        if (count := _flop_counter(function)) is not None:
            flops = count(*args, **(kwargs or {}), out_val=result)
            grown = any(self._grown(t) for t in _tensors((args, result)))
            self.flops += flops * self._scale if grown else flops
        else:
            few = most = 0
            for tensor in _tensors((args, result)):
                if self._grown(tensor):
                    most = max(most, tensor.numel())
                else:
                    few = max(few, tensor.numel())
            self.elements += most * self._scale if most else few
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
