"""Learners: R models trained as one, each with its own weights, gradient norm and optimizer state.

Four ways to run a stack, from the fastest: *native*, on a CPU, for models of which compiled code knows every step;
*broadcast*, for models built from `icy.models.layers`, whose parameters may carry a leading axis; *vmap*, for any
module whose operations `torch.vmap` can batch; *loop*, one module after another, for everything else. They give the
same numbers to float tolerance.
"""

import copy
import logging
from collections.abc import Sequence
from typing import Any
from typing import Protocol as Interface

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.errors import IncompatibleError
from icy.core.representations import Representation
from icy.core.types import State
from icy.models.base import MemoryModel

from .cuda_graphs import choose_issue
from .gradient import GradientLearner, Loss, Prepare, count_right, label_of
from .native import NativeLearner, NotNativeError, require_native
from .obstacles import obstacle_to
from .weights import restore, state_of

log = logging.getLogger(__name__)
# Examples of a replicate in one forward pass of an evaluation: as many whatever its company, since kernels for products
# choose by the number of rows. Never fewer than 128: the published Hier receivers read a batch by its first example.
EXAMPLES_AT_ONCE = {"cpu": 512, "cuda": 1024}

WHY = {
    "native": "whose every step is known to it",
    "broadcast": "whose layers take stacked parameters",
    "vmap": "which can batch every operation of it",
    "vmap+layers": "with PyTorch's recurrent layers and dropout run by icy",
}
BY_VMAP = ("vmap", "vmap+layers")  # the second if the first cannot run a model


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

        `which` gives the places of the replicates that `inputs` are for; all unless given.
        """

    def right(self, inputs: Tensor, targets: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return how many places [replicate] of some examples have their largest score at the target."""

    def weights(self, place: int) -> dict[str, Tensor]:
        """Return a copy of what the replicate at a place of the stack has learnt, as tensors by name."""

    def losses(self) -> Tensor | None:
        """Return the loss [replicate] at the last update, or None."""

    def state(self, place: int) -> State:
        """Return a copy of all that the training of the replicate at a place goes on from, for `resume`."""

    def resume(self, states: Sequence[State]) -> None:
        """Go on from what `state` returned of each replicate, after as many updates of each."""

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates."""


def accuracy(
    learner: Learner, inputs: Tensor, targets: Tensor, which: Sequence[int] | None = None
) -> Float[Tensor, " replicate"]:
    """Return the accuracy of each replicate: over tokens of a sender, attribute values of a receiver.

    `which` gives the places of the replicates that `inputs` and `targets` are for; all unless given. Counted in whole
    numbers and divided once, in double precision, so that a reading of exactly the target is one.
    """
    step = examples_at_once(inputs)
    right = [
        learner.right(some, answers, which)
        for some, answers in zip(inputs.split(step, 1), targets.split(step, 1), strict=True)
    ]
    return torch.stack(right).sum(0).double() / targets[0].numel()


def examples_at_once(inputs: Tensor) -> int:
    """Return how many examples of each replicate of inputs [replicate, batch, ...] to evaluate at once."""
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
) -> Learner:
    """Make the learner that suits some models.

    Args:
        models: one per replicate, all of one architecture.
        seeds: one per replicate.
        loss: scores, targets, noise -> one loss per replicate.
        settings: how to train.
        device: where.
        sample: a small batch of inputs [replicate, batch, ...], to try vmap on.
        engine: "auto", or "native", "broadcast", "vmap" or "loop"; with "+plain" or "+graph", how updates are issued
            too.
        prepare: turns the inputs of a stack into what the models take, in every update and evaluation; `sample` is
            what they take. Without it, inputs are that.

    Raises:
        IncompatibleError: there is nothing to train, or the engine asked for cannot run the model.
        InvalidSettingError: a graph of updates without a GPU.
    """
    if not getattr(models[0], "learns_by_gradient", True):
        return MemoryLearner(models, device)
    if not any(p.requires_grad for p in models[0].parameters()):
        raise IncompatibleError(
            f"{label_of(models[0])} has no parameters to train; a model that stores examples instead says "
            "`learns_by_gradient = False` and has a method `observe` (see icy.models.base.MemoryModel)."
        )
    asked, _, issue = engine.partition("+")
    if asked == "native" and prepare is not None:
        raise IncompatibleError(f"The engine 'native' cannot run {label_of(models[0])}; choose another, or 'auto'.")
    if asked in ("auto", "native") and prepare is None:
        try:
            return _native(models, seeds, loss, settings, device, sample)
        except IncompatibleError as error:
            if asked == "native":
                raise IncompatibleError(
                    f"The engine 'native' cannot run {label_of(models[0])} ({error}); choose another, or 'auto'."
                ) from None
            log.info("%s: not by the engine 'native' (%s).", label_of(models[0]), error)
    if asked == "auto":
        stacking, why = _choose(models, seeds, sample, device)
    else:
        stacking, why = _as_asked(models, seeds, sample, device, asked), "as asked for"
    if settings.optimizer != "adam":
        if issue == "graph":
            raise IncompatibleError(f"Updates by {settings.optimizer} are not captured as a graph; leave out '+graph'.")
        issue = "plain"
    issue, why_so = choose_issue(issue or None, stacking, device)
    log.info("%s: replicates train by the engine '%s', %s.", label_of(models[0]), stacking, why)
    if device.type != "cpu":
        log.info("%s: updates are issued as '%s', %s.", label_of(models[0]), issue, why_so)
    return GradientLearner(models, seeds, loss, settings, device, stacking, issue, prepare=prepare)


def _native(models: Sequence[nn.Module], seeds: Sequence[int], loss: Loss, *how: Any) -> Learner:
    """Return a learner of native cores; of a pair they run both sides, and PyTorch all else. `how` as in make_learner.

    Raises:
        IncompatibleError: there is no compiled code, or it cannot train the model.
    """
    learner: Learner
    if not hasattr(models[0], "made_native"):
        learner = NativeLearner(models, loss, *how)
    else:
        settings, device, sample = how
        require_native(device)
        try:
            made = [model.made_native(sample[0]) for model in models]  # type: ignore[operator]
        except NotNativeError as error:
            raise IncompatibleError(str(error)) from None
        learner = GradientLearner(made, seeds, loss, settings, device, "broadcast", name="native")
    log.info("%s: replicates train by the engine 'native', %s.", label_of(models[0]), WHY["native"])
    return learner


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


def _as_asked(
    models: Sequence[nn.Module], seeds: Sequence[int], sample: Tensor, device: torch.device, engine: str
) -> str:
    """Return the stacking of an engine that was asked for.

    Raises:
        IncompatibleError: the engine cannot run the model.
    """
    if engine == "loop":
        return engine
    for stacking in BY_VMAP if engine == "vmap" else (engine,):
        obstacle = obstacle_to(stacking, models, seeds, sample, device)
        if obstacle is None:
            return stacking
    name = label_of(models[0])
    raise IncompatibleError(f"The engine '{engine}' cannot run {name} ({obstacle}); choose another, or 'auto'.")


class MemoryLearner:
    """Replicates that store examples (hash table, nearest neighbours), run one by one on the CPU.

    They look things up rather than compute, and of equally near neighbours the CPU's argmax finds the first.
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
        """Return scores from what is stored."""
        models = self._models if which is None else [self._models[i] for i in which]
        scores = [model(x) for model, x in zip(models, inputs.cpu(), strict=True)]
        return torch.stack(scores).to(self._device)

    def right(self, inputs: Tensor, targets: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return how many places of some examples have their largest score at the target."""
        return count_right(self.scores(inputs, which), targets)

    def weights(self, place: int) -> dict[str, Tensor]:
        """Return a copy of what is stored."""
        return {name: value.clone() for name, value in state_of(self._models[place]).items()}

    def losses(self) -> Tensor | None:
        """Return None: there is no loss."""
        return None

    def state(self, place: int) -> State:
        """Return what is stored, for `resume`."""
        return self.weights(place)

    def resume(self, states: Sequence[State]) -> None:
        """Go on from what `state` returned of each replicate.

        Raises:
            IncompatibleError: they are no `MemoryModel`, so that what they store is not known.
        """
        if not isinstance(self._models[0], MemoryModel):
            raise IncompatibleError(
                f"{label_of(self._models[0])} stores examples, and is no icy.models.base.MemoryModel"
            )
        for model, stored in zip(self._models, states, strict=True):
            restore(model, stored, label_of(model))

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates."""
        self._models = [self._models[i] for i in which]


def supervised_loss(representation: Representation, side: str) -> Loss:
    """Return the loss of one side under a representation."""
    return representation.sender_loss if side == "sender" else representation.receiver_loss
