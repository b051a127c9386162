"""Learners: R models trained as one, each with its own weights, gradient norm and optimizer state.

A stack runs in one of four ways, from the fastest: *native*, on a CPU, for models with only operations that the
compiled code supports; *broadcast*, for models built from `icy.models.layers`, where parameters may have a leading
axis; *vmap*, for modules with operations that `torch.vmap` can batch; *loop*, one module after another, for everything
else. All give the same numbers to float tolerance.
"""

import copy
import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast
from typing import Protocol as Interface

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.errors import IcyError, IncompatibleError
from icy.core.registry import Entry
from icy.core.representations import WITH_START, Representation
from icy.core.representations.samples import UNCOUNTED
from icy.core.text import listed
from icy.core.types import State
from icy.models.base import MemoryModel
from icy.models.stock import needs_stock_layers

from .gradient import GradientLearner, Loss, Prepare, count_right, label_of
from .native import NativeLearner, NativePairLearner, require_native
from .stack import Stack, choose_issue
from .weights import restore, state_of

# -- detect models that output probabilities where scores are needed ---------------------------------------------------


log = logging.getLogger(__name__)
TOLERANCE = 1e-4  # error of a sum of probabilities in float16
_warned: set[str] = set()  # models with a warning, to warn only once


def are_probabilities(scores: Tensor) -> bool:
    """Return whether scores [..., choice] are the output of a softmax: from 0 to 1, with sums of 1."""
    if scores.numel() == 0 or scores.shape[-1] < 2 or not scores.is_floating_point():
        return False
    inside = (scores >= 0) & (scores <= 1)
    sums = scores.double().sum(-1)
    return bool(inside.all() and torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=TOLERANCE))


def sentence_on(name: str) -> str:
    """Return the warning about a model that outputs probabilities."""
    return (
        f"{name} outputs probabilities (each row sums to 1). It should output scores (logits), without a softmax at "
        "the end: the loss applies a softmax, and a second softmax slows or stops learning."
    )


def warn_of_probabilities(entry: Entry, model: nn.Module, scores: Tensor) -> None:
    """Warn, once per model that learns by gradient, if its scores [..., choice] are probabilities."""
    which = f"{entry.qualified} {id(entry.factory)}"
    learns = getattr(model, "learns_by_gradient", True)  # a memory model has no loss
    if learns and which not in _warned and are_probabilities(scores):
        _warned.add(which)
        log.warning("%s", sentence_on(entry.qualified))


# -- find out why a model cannot be stacked, by a trial of a stack of two, and suggest a remedy ------------------------


# Patterns of PyTorch's messages within vmap, with the cause and the remedy. The first match is used.
SENTENCES = (
    (
        r"called random operation",
        "it draws random numbers outside nn.Dropout; leave out other noise, and dropout inside "
        "nn.MultiheadAttention and nn.Transformer layers (dropout=0)",
    ),
    (
        r"_pack_padded_sequence|_pad_packed_sequence",
        "it packs sequences; messages have a fixed length, so leave out packing",
    ),
    (
        r"calling \.item\(\)",
        "it reads a number from a tensor, as .item(), int() and pack_padded_sequence do; compute with the tensor",
    ),
    (
        r"data-dependent control flow",
        "it branches on numbers in a tensor (if, while); compute both branches and select with torch.where",
    ),
    (
        r"dynamic shape",
        "the shape of a tensor depends on numbers (a boolean mask as an index, nonzero, unique); use torch.where, or "
        "multiply by the mask",
    ),
    (
        r"more elements than|inplace arithmetic",
        "it writes into a tensor that is the same for all replicates; create the tensor with x.new_zeros(...) of an x "
        "that depends on the input, or join its parts with torch.stack or torch.cat",
    ),
    (r"access data pointer|numpy|storage", "it leaves PyTorch (.numpy(), .tolist()); compute with tensors"),
    (r"has a backward pass that vmap cannot batch", "it is built from icy's layers; set `broadcasts = True` in it"),
)
NO_RULE = re.compile(r"[Bb]atching rule not implemented for aten::(\w+)")


class _ReplacedBufferError(IcyError):
    """A model assigned new tensors to its buffers."""


def obstacle_to(
    engine: str, models: Sequence[nn.Module], seeds: Sequence[int], sample: Tensor, device: torch.device
) -> str | None:
    """Return why an engine cannot run a model, and the remedy; None if it can.

    Args:
        engine: "broadcast", "vmap" or "vmap+layers".
        models: the models; the first is tried, as a stack of two.
        seeds: a seed per model.
        sample: a small batch of inputs [replicate, batch, ...].
        device: where to train.
    """
    if engine == "broadcast" and not getattr(models[0], "broadcasts", False):
        return "it does not set `broadcasts = True`"
    if engine == "vmap" and needs_stock_layers(models[0]):
        return "it has layers that vmap runs slowly or wrongly"
    two, by_vmap = [copy.deepcopy(models[0]) for _ in range(2)], engine != "broadcast"
    first, *others = [_plain_tensors(model) for model in {id(model): model for model in models}.values()]
    different = [n for n, x in first.items() for o in others if n not in o or not torch.equal(x, o[n])]
    if by_vmap and different:
        return f"its tensor '{different[0]}' differs between replicates and is not a buffer; use register_buffer"
    inputs, keys = torch.cat([sample[:1], sample[:1]]), torch.zeros(2, dtype=torch.long, device=device)
    try:
        trial = Stack(two, device, [seeds[0]] * 2, all_buffers=by_vmap)
        if by_vmap:
            trial.modules[0].register_forward_pre_hook(
                lambda module, _: setattr(module, "buffers_before", dict(module.named_buffers()))
            )
            trial.modules[0].register_forward_hook(_require_same_buffers)
        output = trial.forward([inputs], engine, keys)
        torch.stack([part.sum() for part in (output if isinstance(output, tuple) else (output,))]).sum().backward()
        if by_vmap:
            with torch.no_grad():
                trial.forward([inputs], engine)
    except Exception as error:  # a module of a user may raise anything
        return _sentence(error)
    return None


def _plain_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of a model that are not parameters or buffers, by name."""
    return {
        f"{place}.{name}".lstrip("."): value
        for place, part in model.named_modules()
        for name, value in vars(part).items()
        if isinstance(value, Tensor)
    }


def _require_same_buffers(module: Any, inputs: Any, output: Any) -> None:
    """Raise if a forward pass replaces or adds buffers, as a stack would not keep these."""
    after = dict(module.named_buffers())
    replaced = [name for name, buffer in module.buffers_before.items() if after.get(name) is not buffer]
    if replaced or len(after) > len(module.buffers_before):
        names = listed([f"'{name}'" for name in replaced or sorted(set(after) - set(module.buffers_before))])
        raise _ReplacedBufferError(
            f"it replaces its buffers by other tensors ({names}); write into the buffers, as in self.x.copy_(...)"
        )


def _sentence(error: Exception) -> str:
    """Return the cause and the remedy of an error, in place of PyTorch's message."""
    message = str(error).strip().partition("\n")[0]
    if isinstance(error, IcyError) and "vmap cannot batch" not in message:
        return message
    if match := NO_RULE.search(message):
        return f"torch.vmap has no rule for {match[1]}; compute it by other operations"
    known = next((sentence for pattern, sentence in SENTENCES if re.search(pattern, message)), None)
    return known or f"in a stack it raises {type(error).__name__}: {message.rstrip('.')}"


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
    name = label_of(models[0])
    requested, _, issue = engine.partition("+")
    by_native = by_native or (partial(_native, by_gradient) if prepare is None else None)
    if requested == "native" and by_native is None:
        raise IncompatibleError(f"The engine 'native' cannot run {name}; choose another, or 'auto'.")
    if requested in ("auto", "native") and by_native is not None:
        try:
            learner = by_native(models, seeds, loss, settings, device, sample)
        except IncompatibleError as error:
            if requested == "native":
                raise IncompatibleError(
                    f"The engine 'native' cannot run {name} ({error}); choose another, or 'auto'."
                ) from None
            log.info("%s: the engine 'native' is not used (%s).", name, error)
        else:
            log.info("%s: replicates train by the engine 'native', %s.", name, WHY["native"])
            return learner
    stacking, why = _stacking(requested, models, seeds, sample, device)
    if settings.optimizer != "adam":
        if issue == "graph":
            raise IncompatibleError(f"A graph cannot capture updates of {settings.optimizer}: leave out '+graph'.")
        issue = "plain"
    issue, why_so = choose_issue(issue or None, stacking, device)
    log.info("%s: replicates train by the engine '%s', %s.", name, stacking, why)
    if device.type != "cpu":
        log.info("%s: updates are issued as '%s', %s.", name, issue, why_so)
    return by_gradient(models, seeds, loss, settings, device, stacking, issue, prepare=prepare)


def _native(
    by_gradient: Callable[..., GradientLearner],
    models: Sequence[nn.Module],
    seeds: Sequence[int],
    loss: Any,
    settings: TrainingSettings,
    device: torch.device,
    sample: Tensor,
) -> Learner:
    """Return a learner by compiled code. If it does not support pairs, native cores run only both of their sides.

    Raises:
        IncompatibleError: there is no compiled code, or it cannot train the model.
    """
    if not hasattr(models[0], "with_native_cores"):
        return NativeLearner(models, loss, settings, device, sample)
    why: IncompatibleError | str = "a population"
    if by_gradient is GradientLearner:
        try:
            return cast(Learner, NativePairLearner(models, loss, settings, device, sample))
        except IncompatibleError as error:
            why = error
    require_native(device)
    pairs = [model.with_native_cores(sample[0]) for model in models]  # type: ignore[operator]
    log.info("%s: PyTorch runs the representation between native cores (%s).", label_of(models[0]), why)
    return by_gradient(pairs, seeds, loss, settings, device, "broadcast", name="native")


def _stacking(
    requested: str, models: Sequence[nn.Module], seeds: Sequence[int], sample: Tensor, device: torch.device
) -> tuple[str, str]:
    """Return the requested stacking, or with "auto" the fastest that the model allows, and the reason.

    Raises:
        IncompatibleError: the requested engine cannot run the model.
    """
    obstacle: str | None = ""
    for stacking in {"auto": ("broadcast", *BY_VMAP), "vmap": BY_VMAP, "loop": ()}.get(requested, (requested,)):
        obstacle = obstacle_to(stacking, models, seeds, sample, device)
        if obstacle is None:
            return stacking, WHY[stacking] if requested == "auto" else "as requested"
    name = label_of(models[0])
    if requested == "auto":
        log.warning("%s cannot be stacked, so its replicates train one at a time: %s.", name, obstacle)
        return "loop", "since it cannot be stacked"
    if requested == "loop":
        return "loop", "as requested"
    if requested == "vmap" and getattr(models[0], "broadcasts", False):
        obstacle = "it is built from icy's layers, which the engine 'broadcast' stacks"
    raise IncompatibleError(f"The engine '{requested}' cannot run {name} ({obstacle}); choose another, or 'auto'.")


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
