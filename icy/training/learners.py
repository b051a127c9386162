"""Learners: R models trained as one, each with its own weights, gradient norm and optimiser state.

Four ways to run a stack, from the fastest: *native*, on a CPU, for models of which compiled code knows every step;
*broadcast*, for models built from `icy.models.layers`, whose parameters may carry a leading axis; *vmap*, for any
module whose operations `torch.vmap` can batch; *loop*, one module after another, for everything else. They give the
same numbers to float tolerance.
"""

import contextlib
import copy
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from typing import Protocol as Interface

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.errors import IncompatibleError
from icy.core.noise import Noise
from icy.core.representations import Representation
from icy.models.base import MemoryModel

from .adam import Adam
from .cuda_graphs import CapturedCall, CapturedUpdates, PlainUpdates, choose_issue
from .native import NativeLearner, NotNativeError, require_native
from .stack import Stack
from .weights import restore, state_of

log = logging.getLogger(__name__)
Loss = Callable[[Any, Tensor, Noise], Tensor]  # scores, targets, noise -> a loss per replicate
Prepare = Callable[[Tensor], Tensor]  # inputs [replicate, ...] -> what the models take
# Examples of a replicate in one forward pass of an evaluation: as many whatever its company, since kernels for products
# choose by the number of rows. Never fewer than 128: the published Hier receivers read a batch by its first example.
EXAMPLES_AT_ONCE = {"cpu": 512, "cuda": 1024}
FILLING = 64  # rows of examples fill registers if there is a multiple of these, whatever the size of a row
REST = 32  # numbers at the end of a tensor that may be computed apart: of two registers of AVX-512

WHY = {
    "native": "whose every step is known to it",
    "broadcast": "whose layers take stacked parameters",
    "vmap": "which can batch every operation of it",
}


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

    def state(self, place: int) -> dict[str, Any]:
        """Return a copy of all that the training of the replicate at a place goes on from, for `resume`."""

    def resume(self, states: Sequence[dict[str, Any]]) -> None:
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


def with_copies(places: Sequence[int], copies: int) -> list[int]:
    """Return the places of some replicates, the last of them again for each copy of it."""
    return [*places, *[places[-1]] * copies]


def count_right(scores: Tensor, targets: Tensor) -> Tensor:
    """Return how many places [replicate] of scores [replicate, batch, place, choice] are largest at the target."""
    return (scores.argmax(-1) == targets).flatten(1).sum(1)


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
            f"{_name(models[0])} has no parameters to train; a model that stores examples instead says "
            "`learns_by_gradient = False` and has a method `observe` (see icy.models.base.MemoryModel)."
        )
    asked, _, issue = engine.partition("+")
    if asked == "native" and prepare is not None:
        raise IncompatibleError(f"The engine 'native' cannot run {_name(models[0])}; choose another, or 'auto'.")
    if asked in ("auto", "native") and prepare is None:
        try:
            return _native(models, seeds, loss, settings, device, sample)
        except IncompatibleError as error:
            if asked == "native":
                raise IncompatibleError(
                    f"The engine 'native' cannot run {_name(models[0])} ({error}); choose another, or 'auto'."
                ) from None
            log.info("%s: not by the engine 'native' (%s).", _name(models[0]), error)
    stacking, why = _choose(models, seeds, sample, device) if asked == "auto" else (asked, "as asked for")
    if asked != "auto":
        _refuse_if_impossible(models, seeds, sample, device, stacking)
    issue, why_so = choose_issue(issue or None, stacking, device)
    log.info("%s: replicates train by the engine '%s', %s.", _name(models[0]), stacking, why)
    if device.type != "cpu":
        log.info("%s: updates are issued as '%s', %s.", _name(models[0]), issue, why_so)
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
    log.info("%s: replicates train by the engine 'native', %s.", _name(models[0]), WHY["native"])
    return learner


def _name(model: nn.Module) -> str:
    """Return the name of a model in a sentence: its class, or for a pair both classes."""
    return str(getattr(model, "label", type(model).__name__))


def _choose(models: Sequence[nn.Module], seeds: Sequence[int], sample: Tensor, device: torch.device) -> tuple[str, str]:
    """Choose the fastest engine that the model allows, with the reason."""
    obstacles = {}
    for engine in ("broadcast", "vmap"):
        obstacle = _obstacle(engine, models, seeds, sample, device)
        if obstacle is None:
            return engine, WHY[engine]
        obstacles[engine] = obstacle
    name = _name(models[0])
    log.warning("%s cannot be stacked (%s): its replicates train one at a time.", name, obstacles["vmap"])
    return "loop", "since it cannot be stacked"


def _refuse_if_impossible(
    models: Sequence[nn.Module], seeds: Sequence[int], sample: Tensor, device: torch.device, engine: str
) -> None:
    obstacle = None if engine == "loop" else _obstacle(engine, models, seeds, sample, device)
    if obstacle is not None:
        name = _name(models[0])
        raise IncompatibleError(f"The engine '{engine}' cannot run {name} ({obstacle}); choose another, or 'auto'.")


def _obstacle(
    engine: str, models: Sequence[nn.Module], seeds: Sequence[int], sample: Tensor, device: torch.device
) -> str | None:
    """Return why an engine cannot run the model, found by trying a stack of two; None if it can."""
    if engine == "broadcast" and not getattr(models[0], "broadcasts", False):
        return "it does not say `broadcasts = True`"
    if engine == "vmap" and any(True for _ in models[0].buffers()):
        return "it has buffers"
    two = [copy.deepcopy(models[0]) for _ in range(2)]
    trial = Stack(two, device, [seeds[0]] * 2)
    try:
        with warnings.catch_warnings():  # of vmap, that it is slow at something: it is then not what is chosen
            warnings.simplefilter("ignore", UserWarning)
            twice = torch.cat([sample[:1], sample[:1]])
            _total(trial.forward([twice], engine, torch.zeros(2, dtype=torch.long, device=device))).backward()
    except Exception as error:  # whatever a stranger's module does that the engine refuses
        return str(error).strip().partition("\n")[0]
    return None


def _total(output: Any) -> Tensor:
    """Return the sum of all outputs."""
    parts = output if isinstance(output, tuple) else (output,)
    return torch.stack([part.sum() for part in parts]).sum()


@contextlib.contextmanager
def _products(tf32: bool | None) -> Iterator[None]:
    """Set the precision of matrix products on a GPU within the block: TF32 or full; None where there is no GPU."""
    if tf32 is None:
        yield
        return
    places: tuple[Any, Any] = (
        torch.backends.cuda.matmul,
        torch.backends.cudnn,
    )  # of the second, PyTorch's default is TF32
    before = [place.allow_tf32 for place in places]
    for place in places:
        place.allow_tf32 = tf32
    try:
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            place.allow_tf32 = value


class GradientLearner:
    """R replicates of one architecture under Adam, with gradients clipped replicate by replicate.

    Args:
        models: one per replicate, all of one architecture. They are copied.
        seeds: one per replicate, for models that draw random numbers of their own.
        loss: scores, targets, noise -> one loss per replicate.
        settings: learning rate and clipping.
        device: where to train.
        stacking: "broadcast", "vmap" or "loop".
        issue: "plain" or "graph"; see icy.training.cuda_graphs.
        name: of the engine, if it is not just the stacking.
        prepare: turns the inputs of the stack into what the models take.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        seeds: Sequence[int],
        loss: Loss,
        settings: TrainingSettings,
        device: torch.device,
        stacking: str,
        issue: str = "plain",
        name: str | None = None,
        prepare: Prepare | None = None,
    ) -> None:
        self._prepare = prepare
        self._stacking, self._issue, self._engine = stacking, issue, name or stacking
        self._name = _name(models[0])
        self._on_cpu = device.type == "cpu"
        self._batch_size = settings.batch_size
        self._narrowest = getattr(models[0], "narrowest", 1)  # numbers of an example in the smallest tensor
        self._count = len(models)
        self._copies = self._copies_for(self._count, self._batch_size)
        places = with_copies(range(self._count), self._copies)
        self._stack = Stack([copy.deepcopy(models[i]) for i in places], device, [seeds[i] for i in places])
        self._loss = loss
        self._clip = settings.clip_norm
        self._learning_rate = settings.learning_rate
        self._teaches = getattr(models[0], "teacher_forcing", False)
        self._last: Tensor | None = None
        self._tf32 = settings.tf32 if device.type == "cuda" else None
        self._optimiser = self._new_optimiser()
        self._issued: CapturedUpdates | PlainUpdates | None = None
        self._prepare_issue()

    @property
    def engine(self) -> str:
        """How the replicates are stacked and, other than plainly, how their updates are issued."""
        return f"{self._engine}+graph" if self._captured() else self._engine

    def _captured(self) -> bool:
        return isinstance(self._issued, CapturedUpdates) and not self._issued.failed

    def _prepare_issue(self) -> None:
        """Prepare to issue updates of the changed stack; what could not be captured is not tried again."""
        captured = self._issue == "graph" and (self._issued is None or self._captured())
        self._issued = CapturedUpdates(self.update, self._name) if captured else PlainUpdates(self.update)
        self._forward = CapturedCall(self._evaluate) if captured else self._evaluate

    def _new_optimiser(self) -> Adam:
        # Adam works element by element, so one call on the whole matrix equals one optimiser per replicate.
        return Adam(self._stack.flat, self._stack.flat_grad, self._learning_rate)

    def _copies_for(self, replicates: int, examples: int) -> int:
        """Return how many copies of the last replicate a stack ends with, so that no replicate's numbers depend on it.

        On a CPU, PyTorch computes what is left at the end of a tensor and does not fill registers by other
        instructions, which round otherwise; and the product of a stack of one by another kernel than those of several.
        So copies stand there if the examples do not fill registers, as many as hold all that is left, or one beside a
        replicate that is alone.
        """
        alone = replicates == 1 and self._engine in ("broadcast", "vmap")
        if not self._on_cpu or not (alone or examples % FILLING):
            return 0
        return -(-REST // (examples * self._narrowest)) if examples % FILLING else 1

    def update(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Run one forward and backward pass, clip, and step Adam."""
        if self._copies:
            filled = with_copies(range(self._count), self._copies)
            inputs, targets, keys = inputs[filled], targets[filled], keys[filled]
        if self._prepare is not None:
            inputs = self._prepare(inputs)
        with _products(self._tf32):
            self._stack.flat_grad.zero_()
            given = [inputs, targets] if self._teaches else [inputs]
            losses = self._loss(self._stack.forward(given, self._stacking, keys), targets, Noise(keys))
            losses.sum().backward()  # the replicates share nothing, so each gets the gradient of its own loss
            # Without the graph that it came from, which would hold on to the stream that it ran on.
            self._last = losses.detach()[: self._count]
            if self._clip is not None:
                self._stack.clip(self._clip)
            self._optimiser.step()

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update once per batch."""
        assert self._issued is not None
        self._issued(inputs, targets, keys)

    def scores(self, inputs: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return scores in evaluation mode, of all replicates or of some."""
        # Of some it is asked once, when they end, so that capturing it would cost more than it saves.
        scores: Tensor = self.run(inputs) if which is None else self._evaluate(inputs, which=which)
        return scores

    def right(self, inputs: Tensor, targets: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return how many places of some examples have their largest score at the target."""
        return count_right(self.scores(inputs, which), targets)

    def run(self, *inputs: Tensor) -> Any:
        """Return all outputs in evaluation mode, for one or several arguments."""
        return self._forward(*inputs)

    @torch.no_grad()
    def _evaluate(self, *inputs: Tensor, which: Sequence[int] | None = None) -> Any:
        count, examples = inputs[0].shape[:2]
        copies = self._copies_for(count, examples)
        if which is None and copies > self._copies:
            which = range(count)
        if which is None:
            copies = self._copies  # that the stack has anyway
        else:
            which = with_copies(which, copies)
        if copies:
            filled = with_copies(range(count), copies)
            inputs = tuple(x[filled] for x in inputs)
        if self._prepare is not None:
            inputs = (self._prepare(inputs[0]), *inputs[1:])
        with _products(self._tf32):
            found = self._stack.forward(inputs, self._stacking, which=which)
        if not copies:
            return found
        return tuple(x[:count] for x in found) if isinstance(found, tuple) else found[:count]

    def weights(self, place: int) -> dict[str, Tensor]:
        """Return a copy of the weights at a place of the stack, as `load_state_dict` takes them."""
        return self._stack.state(place)

    def losses(self) -> Tensor | None:
        """Return the loss of each replicate at the last update."""
        return self._last

    def state(self, place: int) -> dict[str, Any]:
        """Return a copy of all that the training of the replicate at a place goes on from, for `resume`."""
        moments = {
            moment: {name: view[place].clone() for name, view in self._stack.views(flat).items()}
            for moment, flat in self._optimiser.moments.items()
        }
        of_cpu, of_device = self._stack.random_state(place)
        random = {"cpu": of_cpu} if of_device is None else {"cpu": of_cpu, "device": of_device}
        steps = self._optimiser.steps.clone()
        return {"weights": self.weights(place), "moments": moments, "steps": steps, "random": random}

    def resume(self, states: Sequence[dict[str, Any]]) -> None:
        """Go on from what `state` returned of each replicate, after as many updates of each."""
        for place, at in enumerate(with_copies(range(self._count), self._copies)):
            state = states[at]
            self._stack.load(place, state["weights"])
            for moment, flat in self._optimiser.moments.items():
                for name, view in self._stack.views(flat).items():
                    view[place].copy_(state["moments"][moment][name])
            self._stack.load_random_state(place, (state["random"]["cpu"], state["random"].get("device")))
        self._optimiser.steps.copy_(states[0]["steps"])

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates and their optimiser state."""
        self._count, self._copies = len(which), self._copies_for(len(which), self._batch_size)
        which = with_copies(which, self._copies)
        index, before = torch.tensor(which, device=self._stack.flat.device), self._optimiser
        moments = {
            name: {key: view[index] for key, view in self._stack.views(moment).items()}
            for name, moment in before.moments.items()
        }
        self._stack.keep(which)
        self._optimiser = self._new_optimiser()
        self._optimiser.steps = before.steps
        self._optimiser.moments = {name: self._stack.pack(values) for name, values in moments.items()}
        self._prepare_issue()


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

    def state(self, place: int) -> dict[str, Any]:
        """Return what is stored, for `resume`."""
        return self.weights(place)

    def resume(self, states: Sequence[dict[str, Any]]) -> None:
        """Go on from what `state` returned of each replicate.

        Raises:
            IncompatibleError: they are no `MemoryModel`, so that what they store is not known.
        """
        if not isinstance(self._models[0], MemoryModel):
            raise IncompatibleError(f"{_name(self._models[0])} stores examples, and is no icy.models.base.MemoryModel")
        for model, stored in zip(self._models, states, strict=True):
            restore(model, {name: value.cpu() for name, value in stored.items()}, _name(model))

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates."""
        self._models = [self._models[i] for i in which]


def supervised_loss(representation: Representation, side: str) -> Loss:
    """Return the loss of one side under a representation."""
    return representation.sender_loss if side == "sender" else representation.receiver_loss
