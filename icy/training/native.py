"""A learner that trains its replicates by native cores, one after another (icy.models.native)."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any
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
    Gumbel,
    LearnedCodebook,
    Representation,
    Soft,
)
from icy.core.representations.samples import linked
from icy.core.types import State
from icy.models.native import calls
from icy.models.native.builder import NotNativeError
from icy.models.native.calls import is_known, require_same, require_same_scores
from icy.models.native.program import Layout, Program, chunk_for
from icy.models.native.slabs import padded as padded_to_blocks
from icy.models.stock import has_stock

Loss = Callable[..., Tensor]
NO_END = -1  # in `struct Loss` of losses.h


class NativeStack:
    """R replicates of one architecture, trained one after another by compiled code.

    The numbers of a replicate do not depend on the others, on the worker or on the number of threads. A class of
    learners makes programs of its parts, for training (by their names in `calls.Training`) and for evaluation.

    Args:
        model: the model of a replicate.
        settings: optimizer, learning rate and clipping.
        device: the CPU.

    Raises:
        IncompatibleError: there is no compiled code for the device or the optimizer.
    """

    engine = "native"
    _trains: Mapping[str, Program]
    _loss = calls.Loss()  # of one example
    _averaged = 1  # numbers of an example that the loss is a mean of

    def __init__(self, model: nn.Module, settings: TrainingSettings, device: torch.device) -> None:
        require_native(device, settings.optimizer)
        self._layout, self._settings, self._caller = Layout.of(model), settings, calls.Caller()
        self._updates = 0
        self._last: Tensor | None = None

    def _program(
        self, part: nn.Module, sample: Tensor, training: bool, chunk: int | None = None, whole: bool = False
    ) -> Program:
        """Return the program of a part of the models, which gives the same scores."""
        program = Program(part, sample, training, training, chunk, self._layout, whole)
        require_same(self._caller, program, part, training)
        return program

    def _take(self, models: Sequence[nn.Module]) -> None:
        """Take the parameters of all replicates, which compiled code then changes in place."""
        layout = self._layout
        self._parameters = torch.stack([layout.pack(dict(model.named_parameters())) for model in models])
        self._moments = [torch.zeros_like(self._parameters) for _ in range(2)]
        self._trained: Tensor | None = None  # a mask over the vector of parameters: 1 if trained, 0 if frozen
        if layout.frozen:
            named = models[0].named_parameters()
            self._trained = layout.pack({name: torch.full_like(p, name not in layout.frozen) for name, p in named})

    def update(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update each replicate once."""
        self.train(inputs[None], targets[None], keys[None])

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor, **fields: int | None) -> None:
        """Update once per batch.

        Args:
            inputs, targets: batches [update, replicate, batch, ...].
            keys: noise keys [update, replicate].
            **fields: further fields of the description.
        """
        inputs, targets = (x.long().contiguous() for x in (inputs, targets))
        shape, program = inputs.shape[:3], self._trains["program"]
        read = calls.address_of_inputs(program, inputs, shape.numel())
        answers = address(targets, "int64", shape.numel() * program.places, "targets")
        self._train(shape, keys, inputs=read, answers=answers, **fields)

    def _train(self, shape: Sequence[int], keys: Tensor, **fields: int | None) -> None:
        """Make updates by compiled code.

        Args:
            shape: numbers of updates, of replicates, and of examples in a batch.
            keys: noise keys [update, replicate].
            **fields: fields of the description that not all learners have.
        """
        updates, replicates, batch = shape
        for program in self._trains.values():
            program.require_fits(batch)
        settings, padded = self._settings, self._layout.padded
        vectors = ("parameters", "first_moments", "second_moments"), (self._parameters, *self._moments)
        keys, losses = keys.long().contiguous(), torch.empty(replicates, dtype=torch.float64, device="cpu")
        training = calls.Training(
            **{name: ctypes.addressof(program.native) for name, program in self._trains.items()},
            loss=self._loss,
            optimizer=calls.Optimizer(
                settings.learning_rate, settings.clip_norm or 0.0, self._updates, calls.OPTIMIZERS[settings.optimizer]
            ),
            updates=updates, replicates=replicates, batch=batch, padded=padded,
            **{name: address(of, "float32", replicates * padded, name) for name, of in zip(*vectors, strict=True)},
            trained=None if self._trained is None else address(self._trained, "float32", padded, "trained"),
            keys=address(keys, "int64", updates * replicates, "keys"),
            losses=losses.data_ptr(),
            **fields,
        )  # fmt: skip
        if self._loss.kind != calls.REINFORCE:
            training.loss.scale /= self._averaged * batch
        self._caller.train(training)
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
    """The models of a probe.

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
        super().__init__(models[0], settings, device)
        require_supported(models[0])
        rows, whole = rows_of_training(chunk_for(self._layout.size), settings.batch_size, models[0])
        self._training = self._program(models[0], sample[0], True, rows, whole)
        self._evaluation = self._program(models[0], sample[0], False)
        self._trains, self._loss = {"program": self._training}, native_loss(loss, self._training)
        self._take(models)

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
        shape = drawing.batches, draws.replicates, drawing.batch
        self._train(shape, keys, draws=ctypes.addressof(draws), of_meanings=of_meanings)

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


def rows_of_training(chunk: int, batch: int, *models: nn.Module) -> tuple[int, bool]:
    """Return the rows of a chunk of a training program, and whether every batch must be one chunk."""
    whole = any(getattr(model, "whole_batches", False) for model in models)
    return max(chunk, padded_to_blocks(batch)) if whole else chunk, whole


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


class Part(nn.Module):
    """A part of a model, with the names of its parameters there.

    Args:
        name: name of the part.
        module: the part.
    """

    def __init__(self, name: str, module: nn.Module) -> None:
        super().__init__()
        self.add_module(name, module)
        self._runs = name

    def forward(self, inputs: Tensor) -> Tensor:
        """Run the part."""
        output: Tensor = self._modules[self._runs](inputs)  # type: ignore[misc]
        return output


class Joined(nn.Module):
    """The training of a pair as one module, with the names of its parameters in the pair.

    Args:
        pair: the pair.
    """

    def __init__(self, pair: Any) -> None:
        super().__init__()
        self.sender, self.receiver, self.link = pair.sender, pair.receiver, pair.link

    def forward(self, meanings: Tensor) -> Tensor:
        """Return the scores of the receiver."""
        codes = self.link.codes if isinstance(self.link, LearnedCodebook) else None
        answered: Tensor = self.receiver(linked(self.sender(meanings), self.link, codes))
        return answered


class NativePairLearner(NativeStack):
    """Pairs of a sender and a receiver.

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
        pair = models[0]
        super().__init__(pair, settings, device)
        if getattr(pair.link, "symbols", WITH_START) != WITH_START:
            raise IncompatibleError("its sender excludes the start symbol (symbols=V)")
        if any(True for _ in pair.buffers()):
            raise IncompatibleError("the model has buffers")
        kind = type(pair.link)
        if type(getattr(loss, "link", None)) is not (Codebook if kind is LearnedCodebook else kind):
            raise NotNativeError("the engine does not support the loss")
        self._link = copy.deepcopy(pair.link)
        if settings.training_readings and isinstance(self._link, nn.Module):
            raise IncompatibleError("the representation of training readings has parameters")
        self._names = {parameter: name for name, parameter in pair.named_parameters()}
        if any(not self._names[p].startswith("receiver.") for p in pair.receiver.parameters()):
            raise IncompatibleError("its sides share parameters")
        self._make_programs(pair, sample[0])
        self._trains, self._loss = {"program": self._joined}, self._loss_of(loss.link)
        self._averaged = self._joined.places
        self._codes = self._names[pair.link.codes] if isinstance(self._link, LearnedCodebook) else ""
        self._tally = loss
        self._take(models)

    def _make_programs(self, pair: Any, meanings: Tensor) -> None:
        """Make the program of the training, and those of both sides for evaluation."""
        with torch.no_grad():
            sent = copy.deepcopy(pair.sender).eval()(meanings)
        chunk = chunk_for(max(sum(p.numel() for p in side.parameters()) for side in (pair.sender, pair.receiver)))
        sender, receiver = Part("sender", pair.sender), Part("receiver", pair.receiver)
        rows, whole = rows_of_training(chunk, self._settings.batch_size, pair.sender, pair.receiver)
        self._joined = Program(Joined(pair), meanings, True, True, rows, self._layout, whole)
        require_same_scores(self._caller, self._joined)
        if not is_known(pair):  # gradients of the sides, as the link has gradients without those of the scores
            for part, inputs in ((sender, meanings), (receiver, sent)):
                self._program(part, inputs, True, rows, whole)
        self._speaking = self._program(sender, meanings, False, chunk)
        self._reading = self._program(receiver, sent, False, chunk)
        self._on_tokens = self._program(receiver, sent.argmax(-1), False, chunk)

    def _loss_of(self, link: Representation) -> calls.Loss:
        """Return the compiled code's description of the loss of the answers."""
        sizes = self._joined.places, self._joined.choices, NO_END
        if isinstance(link, Discrete):
            return calls.Loss(calls.REINFORCE, *sizes, 1.0, 1.0, link.reward_weight, link.entropy_weight)
        return calls.Loss(calls.CROSS_ENTROPY, *sizes, 1.0, 1.0, 0.0, 0.0)

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor, **fields: int | None) -> None:
        """Update once per batch of meanings, which are the inputs and the targets."""
        if not self._settings.training_readings:
            super().train(inputs, targets, keys, **fields)
            return
        (_, replicates, batch, answers), program = inputs.shape, self._joined.native
        right = torch.zeros(replicates, dtype=torch.long, device="cpu")
        size = replicates, batch, program.sent_count, program.sent_choices
        sent = torch.empty(size, dtype=torch.float32, device="cpu")
        super().train(inputs, targets, keys, right=right.data_ptr(), sent=sent.data_ptr(), **fields)
        self._tally.note(right / (batch * answers), sent, inputs[-1])

    @torch.no_grad()
    def run(self, meanings: Tensor, messages: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return the scores of senders and receivers in evaluation mode; with `messages`, the receivers' for these."""
        sent = self._caller.scores(self._speaking, self._parameters, meanings)
        received = torch.stack([self._linked(place).message(one, None) for place, one in enumerate(sent)])
        answered = self._caller.scores(self._reading, self._parameters, received)
        sent = torch.stack([self._linked(place).as_sent(one) for place, one in enumerate(sent)])
        if messages is None:
            return sent, answered
        return sent, answered, self._caller.scores(self._on_tokens, self._parameters, messages)

    def _linked(self, place: int) -> Representation:
        """Return the representation with the parameters of a pair."""
        if isinstance(self._link, LearnedCodebook):
            self._link.codes.data = self._layout.views(self._parameters[place])[self._codes]
        link: Representation = self._link
        return link
