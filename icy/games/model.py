"""The two agents of a game and the channel between them, as one module."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from icy.core.noise import Noise, current_noise, drawing_from
from icy.core.registry import PERCEPTION, registry
from icy.core.representations import Representation, get_representation
from icy.core.streams import stream_key
from icy.languages.meanings import MeaningSpace
from icy.models.creation import create

SenderSees = Literal["targets", "both"]
Objects = Float[Tensor, "..."]  # [*stack, turn, object, *shape]
Logits = Float[Tensor, "*stack turn candidate"]
Losses = Float[Tensor, "*stack"]
Played = tuple[Logits, Float[Tensor, "*stack turn length vocab"], Integer[Tensor, "*stack turn length"], Losses]


@dataclass(frozen=True)
class ModelSetup:
    """What the agents of a game are made of.

    Attributes:
        shape: of one object, as the world shows it.
        targets: number of targets in a turn, the first of the objects that an agent is shown.
        distractors: number of distractors, which follow them.
        same_objects: whether both agents see the same objects. If not, a turn holds those of the sender, then those of
            the receiver.
        sender_sees: "targets", or "both": distractors too.
        perception: name of the perception of both agents.
        sender: name of the sender.
        receiver: name of the receiver.
        channel: name of the representation of messages.
        message_length: words in a message.
        vocab_size: width of a word, without the start symbol.
        sender_hidden: hidden size of the sender, and size of what it perceives.
        receiver_hidden: hidden size of the receiver, and size of what it perceives.
        channel_options: attributes of the channel.
        perception_options: further arguments of the perception.
        sender_options: further arguments of the sender.
        receiver_options: further arguments of the receiver.
    """

    shape: tuple[int, ...]
    targets: int = 20
    distractors: int = 20
    same_objects: bool = True
    sender_sees: SenderSees = "targets"
    perception: str = "mlp"
    sender: str = "RNNAutoReg:LSTM"
    receiver: str = "RNN1L:LSTM"
    channel: str = "gs"
    message_length: int = 1
    vocab_size: int = 50
    sender_hidden: int = 60
    receiver_hidden: int = 40
    channel_options: Mapping[str, Any] = field(default_factory=dict)
    perception_options: Mapping[str, Any] = field(default_factory=dict)
    sender_options: Mapping[str, Any] = field(default_factory=dict)
    receiver_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> int:
        """Number of vectors that describe a turn to the sender, one after the other: of targets, and of distractors."""
        return 2 if self.sender_sees == "both" else 1


class GameModel(nn.Module):
    """A sender that describes targets, a channel, and a receiver that looks for them among the candidates.

    Args:
        sender: of meanings with one attribute, whose weights over values are what the sender perceives.
        receiver: that answers one attribute, whose scores are compared with what the receiver perceives.
        sender_sees: perception of the sender.
        receiver_sees: perception of the receiver.
        channel: makes messages of the sender's scores.
        setup: what a turn holds.
    """

    broadcasts = True

    def __init__(
        self,
        sender: nn.Module,
        receiver: nn.Module,
        sender_sees: nn.Module,
        receiver_sees: nn.Module,
        channel: Representation,
        setup: ModelSetup,
    ) -> None:
        super().__init__()
        self.sender, self.receiver = sender, receiver
        self.sender_sees, self.receiver_sees = sender_sees, receiver_sees
        self.channel, self.setup = channel, setup
        self.axes = len(setup.shape)
        candidates = setup.targets + setup.distractors
        # Numbers of a turn in its smallest tensor, for GradientLearner.
        self.narrowest = min(candidates, setup.vocab_size, setup.sender_hidden, setup.receiver_hidden)
        self.own_axes = next(self.parameters()).dim()
        self.label = f"{type(sender).__name__}+{type(receiver).__name__}"

    def forward(self, objects: Objects, keys: Integer[Tensor, "*stack"] | None = None) -> Played:
        """Play some turns.

        Args:
            objects: of each turn: targets, then distractors; unless both agents see the same, those of the sender and
                then those of the receiver.
            keys: of the noise, for an evaluation of messages as training makes them.

        Returns:
            The receiver's score of each of its candidates, above 0 for a target; the sender's scores, as the
            channel compares them with its words; the words it
            emitted, sampled in training where the channel samples, and greedy in evaluation; what the channel costs
            beside the answers.
        """
        count = self.setup.targets + self.setup.distractors
        shown = self._some(objects, 0, count)
        candidates = shown if self.setup.same_objects else self._some(objects, count, count)
        described = self.described(shown).unsqueeze(-2)
        with self._sampling(keys):
            noise = current_noise(objects.device) if self.training or keys is not None else None
            scores = self._by(self.sender, described, noise)
            message = self.channel.message(scores, noise)
        wanted = self._by(self.receiver, message).squeeze(-2)
        # Not a matrix product, whose last bits could depend on the number of replicates.
        logits = (self._seen(self.receiver_sees, candidates) * wanted.unsqueeze(-2)).sum(-1)
        sent = self.channel.as_sent(scores)
        return logits, sent, self.channel.words(message), self.channel.extra_loss(sent)

    @contextlib.contextmanager
    def _sampling(self, keys: Tensor | None) -> Iterator[None]:
        """Let the sender sample with given noise within the block, as it does in training."""
        if keys is None:
            yield
            return
        before = self.sender.training
        self.sender.train()
        with drawing_from(Noise(keys)):
            yield
        self.sender.train(before)

    def described(self, shown: Objects) -> Float[Tensor, "*stack turn size"]:
        """Return what the sender makes of the objects of a turn: the mean of its targets, and of distractors too."""
        targets = self.setup.targets
        if self.setup.sender_sees == "targets":
            return self._seen(self.sender_sees, self._some(shown, 0, targets)).mean(-2)
        seen = self._seen(self.sender_sees, shown)
        return torch.cat([seen[..., :targets, :].mean(-2), seen[..., targets:, :].mean(-2)], -1)

    def _by(self, part: nn.Module, given: Tensor, noise: Noise | None = None) -> Tensor:
        """Return what a part puts out; in a stack, by vmap if it does not broadcast itself."""
        stacked = next(self.parameters()).dim() > self.own_axes
        if not stacked or getattr(part, "broadcasts", False):
            alone: Tensor = part(given)
            return alone

        def of_one(parameters: dict[str, Tensor], key: Tensor | None, given: Tensor) -> Tensor:
            with drawing_from(None if key is None else Noise(key)):
                found: Tensor = functional_call(part, parameters, (given,))
            return found

        keys = None if noise is None else noise.keys
        together: Tensor = vmap(of_one, (0, None if keys is None else 0, 0))(dict(part.named_parameters()), keys, given)
        return together

    def _some(self, objects: Tensor, first: int, count: int) -> Tensor:
        return objects.narrow(-self.axes - 1, first, count)

    def _seen(self, perception: nn.Module, objects: Tensor) -> Tensor:
        turn, each = -self.axes - 2, -self.axes - 1
        vectors = self._by(perception, objects.flatten(turn, each))
        found: Tensor = vectors.unflatten(-2, (objects.shape[turn], objects.shape[each]))  # type: ignore[no-untyped-call]
        return found


def make_game_model(setup: ModelSetup, seed: int) -> GameModel:
    """Make the agents of a game with the initial weights of a seed, whatever was drawn before.

    Each part has a stream of its own, so that another sender leaves the receiver as it is.
    """
    with _weights(seed, "channel"):
        channel = get_representation(setup.channel, **setup.channel_options).as_link(setup.vocab_size)
    described = setup.sender_hidden * setup.parts

    def model(side: str, size: int, hidden: int, options: Mapping[str, Any]) -> nn.Module:
        entry = registry.get(getattr(setup, side), side)
        sizes = (MeaningSpace(1, size), setup.message_length, setup.vocab_size, hidden)
        with _weights(seed, side):
            return create(entry, *sizes, representation=channel, **options)

    def perception(side: str, size: int) -> nn.Module:
        entry = registry.get(setup.perception, PERCEPTION)
        with _weights(seed, side, PERCEPTION):
            made: nn.Module = entry.create(setup.shape, size, **setup.perception_options)
            return made

    return GameModel(
        model("sender", described, setup.sender_hidden, setup.sender_options),
        model("receiver", setup.receiver_hidden, setup.receiver_hidden, setup.receiver_options),
        perception("sender", setup.sender_hidden),
        perception("receiver", setup.receiver_hidden),
        channel,
        setup,
    )


@contextlib.contextmanager
def _weights(seed: int, *part: str) -> Iterator[None]:
    """Draw weights within the block from the stream of one part."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream_key(seed, "weights", *part))  # the CPU's, and no other device's
        yield


def game_loss(played: Played, labels: Logits, noise: Noise) -> Losses:
    """Return the binary cross-entropy of the candidates, mean over candidates and turns (CBM24 section 2.1).

    What the channel costs is added.
    """
    logits, _, _, extra = played
    errors = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
    return errors.mean((-2, -1)) + extra
