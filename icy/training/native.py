"""A learner that trains its replicates by native cores, one after another (icy.models.native)."""

from __future__ import annotations

import copy
import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar
from typing import Protocol as Interface

import torch
from jaxtyping import Int
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core import native
from icy.core.errors import IncompatibleError
from icy.core.native import address
from icy.core.representations import (
    WITH_START,
    Answering,
    Codebook,
    Discrete,
    Ending,
    Gumbel,
    GumbelSoftmax,
    LearnedCodebook,
    Quantized,
    Representation,
    Soft,
)
from icy.core.types import State
from icy.models.native import calls
from icy.models.native.builder import NotNativeError
from icy.models.native.calls import require_same
from icy.models.native.program import Layout, Program, chunk_for
from icy.models.stock import has_stock

Loss = Callable[..., Tensor]
NO_END = -1  # in `struct Loss` of losses.h
D = TypeVar("D", calls.NativeTraining, calls.PairTraining, calls.Game)


class NativeStack(ABC):
    """Parameters and optimizer states of R replicates of one architecture, which compiled code changes in place.

    Args:
        models: a model per replicate, all of one architecture.
        layout: layout of the parameters of a replicate.
        settings: optimizer, learning rate and clipping.
    """

    engine = "native"

    def __init__(self, models: Sequence[nn.Module], layout: Layout, settings: TrainingSettings) -> None:
        self._layout, self._settings = layout, settings
        self._parameters = torch.stack([layout.pack(dict(model.named_parameters())) for model in models])
        self._moments = [torch.zeros_like(self._parameters) for _ in range(2)]
        self._trained: Tensor | None = None  # a mask over the vector of parameters: 1 if trained, 0 if frozen
        if layout.frozen:
            named = models[0].named_parameters()
            self._trained = layout.pack({name: torch.full_like(p, name not in layout.frozen) for name, p in named})
        self._updates = 0
        self._last: Tensor | None = None

    def update(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update each replicate once."""
        self.train(inputs[None], targets[None], keys[None])

    @abstractmethod
    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update once per batch."""

    def _update_all(self, training: D, shape: tuple[int, int, int], keys: Tensor, call: Callable[[D], None]) -> None:
        """Make updates by compiled code.

        Args:
            training: description of the updates, without the fields that all descriptions have.
            shape: numbers of updates, of replicates, and of examples in a batch.
            keys: noise keys [update, replicate].
            call: calls the compiled code with the description, for every replicate.
        """
        training.updates, training.replicates, training.batch = updates, replicates, _ = shape
        settings, padded = self._settings, self._layout.padded
        clip, kind = settings.clip_norm or 0.0, calls.OPTIMIZERS[settings.optimizer]
        training.optimizer = calls.Optimizer(settings.learning_rate, clip, self._updates, kind)
        training.padded = padded
        for (name, _), tensor in zip(calls.PARAMETERS, (self._parameters, *self._moments), strict=False):
            setattr(training, name, address(tensor, "float32", replicates * padded, name))
        if self._trained is not None:
            training.trained = address(self._trained, "float32", padded, "trained")
        keys, losses = keys.long().contiguous(), torch.empty(replicates, dtype=torch.float64, device="cpu")
        training.keys, training.losses = address(keys, "int64", updates * replicates, "keys"), losses.data_ptr()
        call(training)
        self._updates += updates
        self._last = losses

    def weights(self, place: int) -> dict[str, Tensor]:
        """Return a copy of the weights of a replicate, for `load_state_dict`."""
        return self._named(self._parameters[place])

    def _named(self, flat: Tensor) -> dict[str, Tensor]:
        """Return copies of the tensors in a vector, by name."""
        views = self._layout.views(flat)
        return {name: views[name].reshape(shape).clone() for name, shape in self._layout.shapes.items()}

    def losses(self) -> Tensor | None:
        """Return the loss of each replicate at the last update."""
        return self._last

    def state(self, place: int) -> State:
        """Return a copy of the training state of a replicate, for `resume`."""
        moments = [self._named(moment[place]) for moment in self._moments]
        return {"weights": self.weights(place), "moments": moments, "steps": self._updates}

    def resume(self, states: Sequence[State]) -> None:
        """Resume from the `state` of each replicate; all states have the same number of updates.

        Raises:
            IncompatibleError: PyTorch made the last updates.
        """
        if not all(isinstance(state["moments"], list) for state in states):
            raise IncompatibleError("another engine saved it")
        vectors = [[state["weights"], *state["moments"]] for state in states]
        packed = [torch.stack([self._layout.pack(named) for named in of_all]) for of_all in zip(*vectors, strict=True)]
        self._parameters, self._moments = packed[0], packed[1:]
        self._updates = states[0]["steps"]

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates and their optimizer states."""
        self._parameters = self._parameters[which].contiguous()
        self._moments = [m[which].contiguous() for m in self._moments]
        self._last = None if self._last is None else self._last[which]


class NativeLearner(NativeStack):
    """R replicates of one architecture under Adam or RMSprop, trained one after another by compiled code.

    The numbers of a replicate do not depend on the others, on the worker or on the number of threads.

    Args:
        models: a model per replicate, all of one architecture.
        loss: supervised loss of one of icy's representations.
        settings: optimizer, learning rate and clipping.
        device: the CPU.
        sample: a small batch of inputs [replicate, batch, ...].

    Raises:
        IncompatibleError: there is no compiled code, or it does not support the model or the loss.
    """

    def __init__(
        self, models: Sequence[nn.Module], loss: Loss, settings: TrainingSettings, device: torch.device, sample: Tensor
    ) -> None:
        require_native(device, settings.optimizer)
        require_supported(models[0])
        self._training = Program(models[0], sample[0], training=True, gradient=True)
        self._evaluation = Program(models[0], sample[0], training=False, gradient=False)
        self._loss = native_loss(loss, self._training)
        self._caller = calls.Caller()
        for program, training in ((self._training, True), (self._evaluation, False)):
            require_same(self._caller, program, models[0], training)
        super().__init__(models, self._training.layout, settings)

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update once per batch."""
        inputs, targets = (x.long().contiguous() for x in (inputs, targets))
        updates, replicates, batch = inputs.shape[:3]
        examples = updates * replicates * batch
        training = self._described(batch)
        training.inputs = calls.address_of_inputs(self._training, inputs, examples)
        training.targets = address(targets, "int64", examples * self._training.places, "targets")
        call = partial(self._caller.train, self._training)
        self._update_all(training, (updates, replicates, batch), keys, call)

    def train_on_draws(self, drawing: calls.Drawing, keys: Tensor, of_meanings: bool) -> None:
        """Update once per batch that compiled code draws.

        Args:
            drawing: the batches.
            keys: noise keys [batch, replicate].
            of_meanings: whether meanings are the inputs and messages the targets, or the other way round.

        Raises:
            IncompatibleError: the model does not take these batches.
        """
        draws = drawing.checked(self._training, len(self._parameters), of_meanings)
        training = self._described(drawing.batch)
        training.draws, training.of_meanings = ctypes.addressof(draws), of_meanings
        shape = drawing.batches, draws.replicates, drawing.batch
        call = partial(self._caller.train, self._training, numbers=draws.attributes + draws.length)
        self._update_all(training, shape, keys, call)

    def _described(self, batch: int) -> calls.NativeTraining:
        """Return a description of updates with the loss of a batch of some examples."""
        training = calls.NativeTraining(loss=self._loss)
        if self._loss.kind != calls.REINFORCE:
            training.loss.scale /= batch
        return training

    @torch.no_grad()
    def scores(self, inputs: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return scores in evaluation mode, of all replicates or of some."""
        parameters = self._parameters if which is None else self._parameters[list(which)]
        return self._caller.scores(self._evaluation, parameters, inputs)

    @torch.no_grad()
    def right(self, inputs: Tensor, targets: Tensor, which: Sequence[int] | None = None) -> Tensor:
        """Return the number of positions with the largest score at the target, per replicate."""
        parameters = self._parameters if which is None else self._parameters[list(which)]
        return self._caller.right(self._evaluation, parameters, inputs, targets)

    @torch.no_grad()
    def right_of_draws(
        self, drawing: calls.Drawing, of_meanings: bool, which: Sequence[int] | None = None
    ) -> Int[Tensor, " replicate"]:
        """Return the same as `right` for a batch that compiled code draws; see `train_on_draws`."""
        parameters = self._parameters if which is None else self._parameters[list(which)]
        return self._caller.right_of_draws(self._evaluation, parameters, drawing, of_meanings)


def require_native(device: torch.device, optimizer: str = "adam") -> None:
    """Raise if there are no native cores for a device, or they do not have the optimizer.

    Raises:
        IncompatibleError: the device is not a CPU, there is no compiled code, or it does not have the optimizer.
    """
    if device.type != "cpu":
        raise IncompatibleError("the engine runs on the CPU only")
    if not calls.available():
        raise IncompatibleError(str(native.why_not(calls.PACKAGE)))
    if optimizer not in calls.OPTIMIZERS:
        raise IncompatibleError(f"the engine does not support the optimizer {optimizer}")


def require_supported(model: nn.Module) -> None:
    """Raise if native cores do not support models of this type.

    Raises:
        IncompatibleError: the model does not set `broadcasts = True`, has buffers, or uses teacher forcing.
    """
    if not getattr(model, "broadcasts", False) and not has_stock(model):
        raise IncompatibleError("the model does not set `broadcasts = True`")
    if any(True for _ in model.buffers()):
        raise IncompatibleError("the model has buffers")
    if getattr(model, "teacher_forcing", False):
        raise IncompatibleError("the model uses teacher forcing")


def native_loss(loss: Loss, program: Program) -> calls.Loss:
    """Return the compiled code's description of a supervised loss of icy's representations, for a batch of one example.

    Raises:
        NotNativeError: the loss is not one of these.
    """
    representation, places, choices = getattr(loss, "__self__", None), program.places, program.choices
    kind = type(representation)
    name = getattr(loss, "__name__", "")
    side = {"sender_loss": "sender", "ended_loss": "sender", "receiver_loss": "receiver"}.get(name)
    sizes = places, choices, choices - 1 if name == "ended_loss" else NO_END
    soft = kind is Soft or (side == "receiver" and getattr(kind, "receiver_loss", None) is Answering.receiver_loss)
    if side == "sender" and not soft and getattr(representation, "symbols", WITH_START) != WITH_START:
        raise NotNativeError("its sender excludes the start symbol (symbols=V)")
    if side is None or not (soft or kind in (Gumbel, Discrete)):
        raise NotNativeError("the engine does not support the loss")
    if soft:
        return calls.Loss(calls.CROSS_ENTROPY, *sizes, 1 / places if side == "sender" else 1.0, 1.0, 0.0, 0.0)
    if isinstance(representation, Gumbel):
        exact = side == "receiver" and representation.least_squares
        code = calls.LEAST_SQUARES if exact else calls.STRAIGHT_THROUGH
        return calls.Loss(code, *sizes, 1 / (places * choices), representation.temperature, 0.0, 0.0)
    assert isinstance(representation, Discrete)
    weights = representation.reward_weight, representation.entropy_weight
    return calls.Loss(calls.REINFORCE, *sizes, 1.0, 1.0, *weights)


# -- a learner that trains pairs of a sender and a receiver by compiled code, one pair after another -------------------


class LinkLoss(Interface):
    """The joint loss of pairs, which also counts correct answers."""

    link: Representation

    def note(self, right: Tensor, sent: Tensor, meanings: Tensor) -> None:
        """Note the share of correct answers of each pair, summed over updates, and the scores of the last batch."""


class NativePairLearner(NativeStack):
    """Pairs of one architecture under Adam or RMSprop, trained one after another by compiled code.

    The numbers of a pair do not depend on the others, on the worker or on the number of threads.

    Args:
        models: a pair per replicate, all of one architecture (icy.training.task_models).
        loss: the loss of the pairs.
        settings: optimizer, learning rate and clipping.
        device: the CPU.
        sample: a small batch of meanings [replicate, batch, attribute].

    Raises:
        IncompatibleError: there is no compiled code, or it does not support a side, the representation or the loss.
    """

    def __init__(
        self, models: Sequence[Any], loss: LinkLoss, settings: TrainingSettings, device: torch.device, sample: Tensor
    ) -> None:
        require_native(device, settings.optimizer)
        pair = models[0]
        with torch.no_grad():
            sent = copy.deepcopy(pair.sender).eval()(sample[0])
        self._described = described_link(pair.link, sent.shape[-2:], getattr(loss, "link", None))
        if getattr(pair.link, "symbols", WITH_START) != WITH_START:
            raise IncompatibleError("its sender excludes the start symbol (symbols=V)")
        if any(True for _ in pair.buffers()):
            raise IncompatibleError("the model has buffers")
        self._link = copy.deepcopy(pair.link)
        if settings.training_readings and isinstance(self._link, nn.Module):
            raise IncompatibleError("the representation of training readings has parameters")
        self._caller = calls.Caller()
        self._make_programs(pair, sample[0], sent)
        super().__init__(models, Layout.of(pair), settings)
        receivers = [offset for name, offset in self._layout.offsets.items() if name.startswith("receiver.")]
        self._first = {"sender": 0, "receiver": min(receivers, default=0), "link": 0}
        if isinstance(self._link, LearnedCodebook):
            # A sender that reads its own symbols has the same codes.
            self._codes = next(name for name, p in pair.named_parameters() if p is pair.link.codes)
            self._first["link"] = self._layout.offsets[self._codes]
        for side, program in (("sender", self._sender), ("receiver", self._receiver)):
            own = {f"{side}.{name}": self._first[side] + offset for name, offset in program.layout.offsets.items()}
            if not own.items() <= self._layout.offsets.items():
                raise IncompatibleError("its sides share parameters")
        self._loss = loss

    def _make_programs(self, pair: Any, meanings: Tensor, sent: Tensor) -> None:
        """Make the programs of both sides, for training and for evaluation."""
        chunk = chunk_for(max(sum(p.numel() for p in side.parameters()) for side in (pair.sender, pair.receiver)))
        made = [
            (side, inputs, training, Program(side, inputs, training, gradient=training, chunk=chunk))
            for side, inputs, training in (
                *((pair.sender, meanings, training) for training in (True, False)),
                *((pair.receiver, sent, training) for training in (True, False)),
                (pair.receiver, sent.argmax(-1), False),
            )
        ]
        for side, _, training, program in made:
            require_same(self._caller, program, side, training)
        self._sender, self._speaking, self._receiver, self._reading, self._on_tokens = (one[-1] for one in made)

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update once per batch.

        Args:
            inputs: meanings [update, replicate, batch, attribute].
            targets: the same meanings.
            keys: noise keys [update, replicate].
        """
        meanings = inputs.long().contiguous()
        updates, replicates, batch, answers = meanings.shape
        right = sent = None
        if self._settings.training_readings:
            right = torch.zeros(replicates, dtype=torch.long, device="cpu")
            size = replicates, batch, self._sender.places, self._sender.choices
            sent = torch.empty(size, dtype=torch.float32, device="cpu")
        places, choices, link = self._receiver.places, self._receiver.choices, self._loss.link
        answers_loss = calls.Loss(calls.CROSS_ENTROPY, places, choices, NO_END, 1 / (places * batch), 1.0, 0.0, 0.0)
        if isinstance(link, Discrete):
            weights = link.reward_weight, link.entropy_weight
            answers_loss = calls.Loss(calls.REINFORCE, places, choices, NO_END, 1.0, 1.0, *weights)
        training = calls.PairTraining(
            self._described, answers_loss, receiver=self._first["receiver"], codes=self._first["link"],
            meanings=calls.address_of_inputs(self._sender, meanings, updates * replicates * batch),
            right=None if right is None else right.data_ptr(), sent=None if sent is None else sent.data_ptr(),
        )  # fmt: skip
        address(meanings, "int64", updates * replicates * batch * self._receiver.places, "meanings")
        call = partial(self._caller.train_pairs, self._sender, self._receiver)
        self._update_all(training, (updates, replicates, batch), keys, call)
        if right is not None and sent is not None:
            self._loss.note(right / (batch * answers), sent, meanings[-1])

    @torch.no_grad()
    def run(self, meanings: Tensor, messages: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return the scores of senders and receivers in evaluation mode; with `messages`, the receivers' for these."""
        receivers = self._of("receiver", self._receiver)
        sent = self._caller.scores(self._speaking, self._of("sender", self._sender), meanings)
        received = torch.stack([self._linked(place).message(one, None) for place, one in enumerate(sent)])
        answered = self._caller.scores(self._reading, receivers, received)
        sent = torch.stack([self._linked(place).as_sent(one) for place, one in enumerate(sent)])
        if messages is None:
            return sent, answered
        return sent, answered, self._caller.scores(self._on_tokens, receivers, messages)

    def _of(self, side: str, program: Program) -> Tensor:
        """Return the parameters of one side of all pairs."""
        first, padded = self._first[side], program.layout.padded
        found = self._parameters.new_zeros(len(self._parameters), padded)
        some = self._parameters[:, first : first + padded]
        found[:, : some.shape[1]] = some
        return found

    def _linked(self, place: int) -> Representation:
        """Return the representation with the parameters of a pair."""
        if isinstance(self._link, LearnedCodebook):
            self._link.codes.data = self._layout.views(self._parameters[place])[self._codes]
        link: Representation = self._link
        return link


def described_link(link: object, shape: Sequence[int], of_loss: object) -> calls.Link:
    """Return the compiled code's description of a representation.

    Args:
        link: the representation of a pair.
        shape: places and choices of the scores of the sender.
        of_loss: the representation of the loss.

    Raises:
        NotNativeError: compiled code does not support the representation, or the loss is not of this representation.
    """
    (places, choices), kind = shape, type(link)
    symbols = choices - 1
    if isinstance(link, Ending):
        raise NotNativeError("compiled code does not run messages that end early")
    found: calls.Link | None = None
    if kind is Soft:
        found = calls.Link(calls.RELAXED, places, choices, choices, 0, 1.0)
    elif kind is Discrete:
        found = calls.Link(calls.DRAWN, places, choices, choices, 1, 1.0)
    elif isinstance(link, Gumbel) and kind is Gumbel:
        found = calls.Link(calls.ONE_HOT, places, choices, choices, 1, link.temperature)
    elif isinstance(link, GumbelSoftmax) and kind is GumbelSoftmax:
        code = calls.ONE_HOT if link.straight_through else calls.RELAXED
        found = calls.Link(code, places, choices, symbols, 1, link.tau)
    elif isinstance(link, Quantized) and kind is Quantized and link.normalise == "sigmoid":
        found = calls.Link(calls.ROUNDED, places, choices, symbols, 0, 1.0, link.levels)
    elif isinstance(link, LearnedCodebook) and kind is LearnedCodebook:
        count = link.word_count(symbols)
        found = calls.Link(calls.NEAREST, places, choices, symbols, 0, 1.0, 0.0, link.commitment, count)
    if found is None:
        name = getattr(link, "name", kind.__name__)
        raise NotNativeError(f"compiled code does not support the representation {name}")
    if type(of_loss) is not (Codebook if kind is LearnedCodebook else kind):
        raise NotNativeError("the engine does not support the loss")
    return found
