"""A learner that trains pairs of a sender and a receiver by compiled code, one pair after another."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any
from typing import Protocol as Interface

import torch
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.errors import IncompatibleError
from icy.core.native.arguments import address
from icy.core.representations import (
    WITH_START,
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
from icy.models.native import calls, pairs
from icy.models.native.program import Layout, Program, chunk_for
from icy.models.native.verify import require_same

from .native import NO_END, NativeStack, NotNativeError, require_native, require_optimizer

RECEIVER = "receiver."


LINKS = (Soft, Discrete, Gumbel, GumbelSoftmax, Quantized, LearnedCodebook)


class LinkLoss(Interface):
    """The joint loss of pairs, which also counts correct answers."""

    link: Representation

    def note(self, right: Tensor, sent: Tensor, meanings: Tensor) -> None:
        """Note the share of correct answers of each pair, summed over updates, and the scores of the last batch."""


class NativePairLearner(NativeStack):
    """Pairs of one architecture under Adam or RMSprop, trained one after another by compiled code.

    The numbers of a pair do not depend on the others, on the worker or on the number of threads.

    Args:
        models: a pair per replicate, all of one architecture (icy.training.pairs.model).
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
        require_native(device)
        require_optimizer(settings)
        pair = models[0]
        _require_link(pair.link)
        if getattr(pair.link, "symbols", WITH_START) != WITH_START:
            raise IncompatibleError("its sender excludes the start symbol (symbols=V)")
        if any(True for _ in pair.buffers()):
            raise IncompatibleError("the model has buffers")
        self._link = copy.deepcopy(pair.link)
        if settings.training_readings and isinstance(self._link, nn.Module):
            raise IncompatibleError("the representation of training readings has parameters")
        try:
            self._caller = pairs.PairCaller()
            self._make_programs(pair, sample[0])
            self._described = described_link(pair.link, self._sender, getattr(loss, "link", None))
        except NotNativeError as error:
            raise IncompatibleError(str(error)) from None
        super().__init__(models, Layout.of(pair), settings)
        self._first = {"sender": 0, "receiver": _first_of(self._layout, RECEIVER), "link": 0}
        if isinstance(self._link, LearnedCodebook):
            # A sender that reads its own symbols has the same codes.
            self._codes = next(name for name, p in pair.named_parameters() if p is pair.link.codes)
            self._first["link"] = self._layout.offsets[self._codes]
        for side, program in (("sender", self._sender), ("receiver", self._receiver)):
            own = {f"{side}.{name}": self._first[side] + offset for name, offset in program.layout.offsets.items()}
            if not own.items() <= self._layout.offsets.items():
                raise IncompatibleError("its sides share parameters")
        self._loss = loss

    def _make_programs(self, pair: Any, meanings: Tensor) -> None:
        """Make the programs of both sides, for training and for evaluation."""
        with torch.no_grad():
            sent = copy.deepcopy(pair.sender).eval()(meanings)
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

    def update(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update each pair once."""
        self.train(inputs[None], targets[None], keys[None])

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        """Update once per batch.

        Args:
            inputs: meanings [update, replicate, batch, attribute].
            targets: the same meanings.
            keys: noise keys [update, replicate].
        """
        meanings, keys = inputs.long().contiguous(), keys.long().contiguous()
        updates, replicates, batch, answers = meanings.shape
        losses = torch.empty(replicates, dtype=torch.float64, device="cpu")
        right = sent = None
        if self._settings.training_readings:
            right = torch.zeros(replicates, dtype=torch.long, device="cpu")
            sent = losses.new_empty((replicates, batch, self._sender.places, self._sender.choices), dtype=torch.float32)
        training = pairs.PairTraining(
            self._described, self._answers(batch), self._optimizer(), replicates, updates, batch, self._layout.padded,
            self._first["receiver"], self._first["link"], *self._addresses(replicates),
            calls.address_of_inputs(self._sender, meanings, updates * replicates * batch),
            address(keys, "int64", updates * replicates, "keys"), losses.data_ptr(),
            *(None if tensor is None else tensor.data_ptr() for tensor in (right, sent)),
        )  # fmt: skip
        address(meanings, "int64", updates * replicates * batch * self._receiver.places, "meanings")
        self._caller.train_pairs(self._sender, self._receiver, training)
        self._updates += updates
        self._last = losses
        if right is not None and sent is not None:
            self._loss.note(right / (batch * answers), sent, meanings[-1])

    def _answers(self, batch: int) -> calls.Loss:
        """Return the description of the loss of the answers in a batch."""
        places, choices = self._receiver.places, self._receiver.choices
        if isinstance(self._loss.link, Discrete):
            weights = self._loss.link.reward_weight, self._loss.link.entropy_weight
            return calls.Loss(calls.REINFORCE, places, choices, NO_END, 1.0, 1.0, *weights)
        return calls.Loss(calls.CROSS_ENTROPY, places, choices, NO_END, 1 / (places * batch), 1.0, 0.0, 0.0)

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


def _first_of(layout: Layout, prefix: str) -> int:
    """Return the smallest offset of the parameters with a prefix; 0 if there are none."""
    return min((offset for name, offset in layout.offsets.items() if name.startswith(prefix)), default=0)


def _require_link(link: object) -> None:
    """Raise if compiled code does not have a type of representations; this is known before the programs are made.

    Raises:
        IncompatibleError: it does not.
    """
    if isinstance(link, Ending):
        raise IncompatibleError("compiled code does not run messages that end early")
    if type(link) not in LINKS:
        raise IncompatibleError(_unsupported(link))


def _unsupported(link: object) -> str:
    return f"compiled code does not support the representation {getattr(link, 'name', type(link).__name__)}"


def described_link(link: object, sender: Program, of_loss: object) -> pairs.Link:
    """Return the compiled code's description of a representation.

    Args:
        link: the representation of a pair.
        sender: program of the sender.
        of_loss: the representation of the loss.

    Raises:
        NotNativeError: compiled code does not support the representation, or the loss is not of this representation.
    """
    places, choices = sender.places, sender.choices
    kind, symbols = type(link), choices - 1
    if type(of_loss) is not (Codebook if kind is LearnedCodebook else kind):
        raise NotNativeError("the engine does not support the loss")
    if kind is Soft:
        return pairs.Link(pairs.RELAXED, places, choices, choices, 0, 1.0)
    if kind is Discrete:
        return pairs.Link(pairs.DRAWN, places, choices, choices, 1, 1.0)
    if isinstance(link, Gumbel) and kind is Gumbel:
        return pairs.Link(pairs.ONE_HOT, places, choices, choices, 1, link.temperature)
    if isinstance(link, GumbelSoftmax) and kind is GumbelSoftmax:
        code = pairs.ONE_HOT if link.straight_through else pairs.RELAXED
        return pairs.Link(code, places, choices, symbols, 1, link.tau)
    if isinstance(link, Quantized) and kind is Quantized and link.normalise == "sigmoid":
        return pairs.Link(pairs.ROUNDED, places, choices, symbols, 0, 1.0, link.levels)
    if isinstance(link, LearnedCodebook) and kind is LearnedCodebook:
        count = link.word_count(symbols)
        return pairs.Link(pairs.NEAREST, places, choices, symbols, 0, 1.0, 0.0, link.commitment, count)
    raise NotNativeError(_unsupported(link))
