"""Learners: R models trained as one, each with its own weights, gradient norm and optimizer state.

A stack runs in one of four ways, from the fastest: *native*, on a CPU, for models with only operations that the
compiled code supports; *broadcast*, for models built from `icy.models.layers`, where parameters may have a leading
axis; *vmap*, for modules with operations that `torch.vmap` can batch; *loop*, one module after another, for everything
else. All give the same numbers to float tolerance.
"""

import copy
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast
from typing import Protocol as Interface

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.ends import UNCOUNTED
from icy.core.errors import IncompatibleError
from icy.core.representations import WITH_START, Representation
from icy.core.types import State
from icy.models.base import MemoryModel

from .cuda_graphs import choose_issue
from .gradient import GradientLearner, Loss, Prepare, count_right, label_of
from .native import NativeLearner, NotNativeError, require_native
from .native_pair import NativePairLearner
from .obstacles import obstacle_to
from .weights import restore, state_of

log = logging.getLogger(__name__)
# Examples per replicate in one forward pass of an evaluation. The number does not depend on the size of the stack,
# since kernels for products depend on the number of rows. At least 128: the published Hier receivers read a batch by
# its first example.
EXAMPLES_AT_ONCE = {"cpu": 512, "cuda": 1024}

WHY = {
    "native": "which supports all operations of the model",
    "broadcast": "as the model's layers take stacked parameters",
    "vmap": "which can batch all operations of the model",
    "vmap+layers": "with PyTorch's recurrent layers and dropout run by icy",
}
BY_VMAP = ("vmap", "vmap+layers")  # tried in this order


class Learner(Interface):
    """Interface of a stack of replicates to the engine."""

    @property
    def engine(self) -> str:
        """How its replicates are stacked, for the record."""

    def update(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update each replicate once: `inputs` and `targets` [replicate, batch, ...], noise `keys` [replicate]."""

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update once per batch; batches are the first axis of all arguments."""

    def scores(self, inputs: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return scores [replicate, batch, ..., choice] in evaluation mode, without gradients.

        `which` holds the indices of the replicates of `inputs` in the stack; by default all.
        """

    def right(self, inputs: Tensor, targets: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return the number of positions where the target has the largest score, [replicate]."""

    def weights(self, place: int) -> dict[str, Tensor]:
        """Return a copy of the learned state of the replicate at this index of the stack, as tensors by name."""

    def losses(self) -> Tensor | None:
        """Return the loss [replicate] at the last update, or None."""

    def state(self, place: int) -> State:
        """Return a copy of the training state of the replicate at this index of the stack, for `resume`."""

    def resume(self, states: Sequence[State]) -> None:
        """Resume from the `state` of each replicate; all states have the same number of updates."""

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates."""


def accuracy(
    learner: Learner, inputs: Tensor, targets: Tensor, which: Sequence[int] | None = None
) -> Float[Tensor, " replicate"]:
    """Return the accuracy of each replicate: over tokens for a sender, over attribute values for a receiver.

    Targets that are UNCOUNTED, such as positions after the end of a message, do not count.

    `which` holds the indices of the replicates of `inputs` and `targets` in the stack; by default all. Correct
    positions are counted in whole numbers and divided once, in double precision, so that an accuracy equal to the
    target reaches the target.
    """
    step = examples_at_once(inputs)
    right = [
        learner.right(some, answers, which)
        for some, answers in zip(inputs.split(step, 1), targets.split(step, 1), strict=True)
    ]
    return torch.stack(right).sum(0).double() / (targets != UNCOUNTED).flatten(1).sum(1)


def examples_at_once(inputs: Tensor) -> int:
    """Return the number of examples per replicate in one forward pass of an evaluation."""
    return EXAMPLES_AT_ONCE.get(inputs.device.type, EXAMPLES_AT_ONCE["cpu"])


def make_learner(
    models: Sequence[nn.Module],
    seeds: Sequence[int],
    loss: Loss,
    settings: TrainingSettings,
    device: torch.device,
    sample: Tensor,
    engine: str = "auto",
    prepare: Prepare | None = None,
    by_gradient: Callable[..., GradientLearner] = GradientLearner,
    by_native: Callable[..., Learner] | None = None,
) -> Learner:
    """Make the learner that suits some models.

    Args:
        models: a model per replicate, all of one architecture.
        seeds: a seed per replicate.
        loss: scores, targets, noise -> a loss per replicate.
        settings: training settings.
        device: where to train.
        sample: a small batch of inputs of the models [replicate, batch, ...], to try vmap on.
        engine: "auto", "native", "broadcast", "vmap" or "loop"; a suffix "+plain" or "+graph" determines how updates
            are issued.
        prepare: converts inputs of the learner to inputs of the models, in every update and evaluation; by default
            they are the same.
        by_gradient: the class of learners that PyTorch trains, or of pairs with native cores.
        by_native: makes the learner with native cores from models, seeds, loss, settings, device and sample; required
            for native cores if there is `prepare`.

    Raises:
        IncompatibleError: there is nothing to train, or the requested engine cannot run the model.
        InvalidSettingError: a graph of updates without a GPU.
    """
    if not getattr(models[0], "learns_by_gradient", True):
        return MemoryLearner(models, device)
    if not any(p.requires_grad for p in models[0].parameters()):
        raise IncompatibleError(
            f"{label_of(models[0])} has no parameters to train. A model that stores examples instead sets "
            "`learns_by_gradient = False` and has a method `observe` (see icy.models.base.MemoryModel)."
        )
    requested, _, issue = engine.partition("+")
    by_native = by_native or (partial(_native, by_gradient) if prepare is None else None)
    if requested == "native" and by_native is None:
        raise IncompatibleError(f"The engine 'native' cannot run {label_of(models[0])}; choose another, or 'auto'.")
    if requested in ("auto", "native") and by_native is not None:
        learner = _try_native(by_native, requested, models, seeds, loss, settings, device, sample)
        if learner is not None:
            return learner
    if requested == "auto":
        stacking, why = _choose(models, seeds, sample, device)
    else:
        stacking, why = _requested_stacking(models, seeds, sample, device, requested), "as requested"
    if settings.optimizer != "adam":
        if issue == "graph":
            raise IncompatibleError(f"A graph cannot capture updates of {settings.optimizer}: leave out '+graph'.")
        issue = "plain"
    issue, why_so = choose_issue(issue or None, stacking, device)
    log.info("%s: replicates train by the engine '%s', %s.", label_of(models[0]), stacking, why)
    if device.type != "cpu":
        log.info("%s: updates are issued as '%s', %s.", label_of(models[0]), issue, why_so)
    return by_gradient(models, seeds, loss, settings, device, stacking, issue, prepare=prepare)


def _try_native(
    by_native: Callable[..., Learner], requested: str, models: Sequence[nn.Module], *how: Any
) -> Learner | None:
    """Return a learner with native cores; None if there is none and the user did not request it.

    Raises:
        IncompatibleError: the user requested it.
    """
    name = label_of(models[0])
    try:
        learner = by_native(models, *how)
    except IncompatibleError as error:
        if requested == "native":
            raise IncompatibleError(
                f"The engine 'native' cannot run {name} ({error}); choose another, or 'auto'."
            ) from None
        log.info("%s: the engine 'native' is not used (%s).", name, error)
        return None
    log.info("%s: replicates train by the engine 'native', %s.", name, WHY["native"])
    return learner


def _native(
    by_gradient: Callable[..., GradientLearner],
    models: Sequence[nn.Module],
    seeds: Sequence[int],
    loss: Loss,
    *how: Any,
) -> Learner:
    """Return a learner with native cores.

    Raises:
        IncompatibleError: there is no compiled code, or it cannot train the model.
    """
    if hasattr(models[0], "with_native_cores"):
        return _native_pair(by_gradient, models, seeds, loss, *how)
    return NativeLearner(models, loss, *how)


def _native_pair(
    by_gradient: Callable[..., GradientLearner],
    models: Sequence[nn.Module],
    seeds: Sequence[int],
    loss: Any,
    settings: TrainingSettings,
    device: torch.device,
    sample: Tensor,
) -> Learner:
    """Return a learner of pairs by compiled code. If it does not support them, native cores run only both sides.

    Raises:
        IncompatibleError: as for `_native`.
    """
    why: IncompatibleError | str = "a population"
    if by_gradient is GradientLearner:
        try:
            return cast(Learner, NativePairLearner(models, loss, settings, device, sample))
        except IncompatibleError as error:
            why = error
    require_native(device)
    try:
        pairs = [model.with_native_cores(sample[0]) for model in models]  # type: ignore[operator]
    except NotNativeError as error:
        raise IncompatibleError(str(error)) from None
    log.info("%s: PyTorch runs the representation between native cores (%s).", label_of(models[0]), why)
    return by_gradient(pairs, seeds, loss, settings, device, "broadcast", name="native")


def _choose(models: Sequence[nn.Module], seeds: Sequence[int], sample: Tensor, device: torch.device) -> tuple[str, str]:
    """Choose the fastest stacking that the model allows, with the reason."""
    obstacle: str | None = ""
    for stacking in ("broadcast", *BY_VMAP):
        obstacle = obstacle_to(stacking, models, seeds, sample, device)
        if obstacle is None:
            return stacking, WHY[stacking]
    name = label_of(models[0])
    log.warning("%s cannot be stacked, so its replicates train one at a time: %s.", name, obstacle)
    return "loop", "since it cannot be stacked"


def _requested_stacking(
    models: Sequence[nn.Module], seeds: Sequence[int], sample: Tensor, device: torch.device, engine: str
) -> str:
    """Return the stacking of a requested engine.

    Raises:
        IncompatibleError: the engine cannot run the model.
    """
    if engine == "loop":
        return engine
    for stacking in BY_VMAP if engine == "vmap" else (engine,):
        obstacle = obstacle_to(stacking, models, seeds, sample, device)
        if obstacle is None:
            return stacking
    if engine == "vmap" and getattr(models[0], "broadcasts", False):
        obstacle = "it is built from icy's layers, which the engine 'broadcast' stacks"
    name = label_of(models[0])
    raise IncompatibleError(f"The engine '{engine}' cannot run {name} ({obstacle}); choose another, or 'auto'.")


class MemoryLearner:
    """Replicates that store examples (hash table, nearest neighbours), run one by one on the CPU.

    A GPU would not help: these models look up values. Among equally near neighbors, argmax on the CPU finds the first.
    """

    engine = "memory"

    def __init__(self, models: Sequence[nn.Module], device: torch.device) -> None:
        self._device = device
        self._models = [copy.deepcopy(m).cpu().eval() for m in models]

    def update(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Store the batch."""
        for model, x, y in zip(self._models, inputs.cpu(), targets.cpu(), strict=True):
            model.observe(x, y)  # type: ignore[operator]

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Store several batches."""
        for batch in zip(inputs, targets, keys, strict=True):
            self.update(*batch)

    @torch.no_grad()
    def scores(self, inputs: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return scores from the stored examples."""
        models = self._models if which is None else [self._models[i] for i in which]
        scores = [model(x) for model, x in zip(models, inputs.cpu(), strict=True)]
        return torch.stack(scores).to(self._device)

    def right(self, inputs: Tensor, targets: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return the number of positions where the target has the largest score, per replicate."""
        return count_right(self.scores(inputs, which), targets)

    def weights(self, place: int) -> dict[str, Tensor]:
        """Return a copy of the stored examples."""
        return {name: value.clone() for name, value in state_of(self._models[place]).items()}

    def losses(self) -> Tensor | None:
        """Return None, as there is no loss."""
        return None

    def state(self, place: int) -> State:
        """Return the stored examples, for `resume`."""
        return self.weights(place)

    def resume(self, states: Sequence[State]) -> None:
        """Resume from the `state` of each replicate.

        Raises:
            IncompatibleError: the models are not instances of `MemoryModel`, so their storage is not known.
        """
        if not isinstance(self._models[0], MemoryModel):
            raise IncompatibleError(
                f"{label_of(self._models[0])} stores examples, but is not an icy.models.base.MemoryModel"
            )
        for model, stored in zip(self._models, states, strict=True):
            restore(model, stored, label_of(model))

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates."""
        self._models = [self._models[i] for i in which]


def supervised_loss(representation: Representation, side: str, ends: bool = False) -> Loss:
    """Return the supervised loss of a sender or receiver with a representation.

    Args:
        representation: the representation.
        side: "sender" or "receiver".
        ends: whether messages have different lengths. The loss of a sender then ignores positions after their end.

    Raises:
        IncompatibleError: senders cannot end messages in this representation.
    """
    if side != "sender":
        return representation.receiver_loss
    if not ends:
        return representation.sender_loss
    ends_messages = hasattr(representation, "ended_loss")
    if not ends_messages or getattr(representation, "symbols", WITH_START) != WITH_START:
        raise IncompatibleError(
            f"Senders with '{'symbols=V' if ends_messages else representation.name}' cannot end messages, since they "
            "do not emit the start symbol, which ends a message: give a single word length, or "
            f"{'leave out symbols' if ends_messages else 'soft, gumb or discr'}."
        )
    loss: Loss = representation.ended_loss  # type: ignore[attr-defined]
    return loss
