"""The agents of multi-target games with their channel as one module."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from icy.core.checks import FIRST_SEED
from icy.core.code import short_hash
from icy.core.noise import Noise, current_noise, drawing_from
from icy.core.registry import PERCEPTION, WORLD, registry
from icy.core.representations import Representation, get_representation
from icy.core.streams import stream_key
from icy.languages.meanings import MeaningSpace
from icy.models.creation import create
from icy.training.job import Job
from icy.training.task_models import ROWS, Behavior, behavior_of, fixed_randomness, sums_of

from .settings import GamesSettings

# -- the agents of a game and their channel, as one module -------------------------------------------------------------


Objects = Float[Tensor, "..."]  # [*stack, turn, object, *shape]
Logits = Float[Tensor, "*stack turn candidate"]
Losses = Float[Tensor, "*stack"]
Played = tuple[Logits, Float[Tensor, "*stack turn length vocab"], Integer[Tensor, "*stack turn length"], Losses]


class GameModel(nn.Module):
    """A sender that describes targets, a representation, and a receiver that finds the targets among the candidates.

    Args:
        sender: a sender for meanings with one attribute. Its input is the output of its perception.
        receiver: a receiver with one attribute. Its output is compared with its perception of each candidate.
        sender_sees: perception of the sender.
        receiver_sees: perception of the receiver.
        channel: representation that makes messages from the sender's scores. Saved weights have this name.
        settings: the settings of the game.
    """

    broadcasts = True

    def __init__(
        self,
        sender: nn.Module,
        receiver: nn.Module,
        sender_sees: nn.Module,
        receiver_sees: nn.Module,
        channel: Representation,
        settings: GamesSettings,
    ) -> None:
        super().__init__()
        self.sender, self.receiver = sender, receiver
        self.sender_sees, self.receiver_sees = sender_sees, receiver_sees
        self.channel, self.settings = channel, settings
        self.axes = len(settings.made_world.shape)
        candidates = settings.turns.targets + settings.turns.distractors
        # Size per turn of the smallest tensor, for GradientLearner.
        self.narrowest = min(candidates, settings.words, settings.sender_hidden, settings.receiver_hidden)
        self.own_axes = next(self.parameters()).dim()
        self.label = f"{type(sender).__name__}+{type(receiver).__name__}"

    def forward(self, objects: Objects, keys: Integer[Tensor, "*stack"] | None = None) -> Played:
        """Play turns.

        Args:
            objects: the targets of each turn, then the distractors. If the agents see different objects, first the
                objects of the sender, then the objects of the receiver.
            keys: keys of the noise, to evaluate with relaxed, noisy messages as in training.

        Returns:
            The receiver's score of each candidate, above 0 for a target; the sender's scores, in the form that the
            representation compares with its words; the words that are sent, sampled in training if the representation
            samples, and otherwise greedy; and the loss of the representation.
        """
        turns = self.settings.turns
        count = turns.targets + turns.distractors
        shown = self._slice(objects, 0, count)
        candidates = shown if turns.same_objects else self._slice(objects, count, count)
        described = self.describe(shown).unsqueeze(-2)
        with self._sampling(keys):
            noise = current_noise(objects.device) if self.training or keys is not None else None
            scores = self._run_part(self.sender, described, noise)
            message = self.channel.message(scores, noise)
        target_vector = self._run_part(self.receiver, message).squeeze(-2)
        # Not a matrix product: its last bits could depend on the number of replicates.
        logits = (self._perceive(self.receiver_sees, candidates) * target_vector.unsqueeze(-2)).sum(-1)
        sent = self.channel.as_sent(scores)
        return logits, sent, self.channel.words(message), self.channel.extra_loss(sent)

    @contextlib.contextmanager
    def _sampling(self, keys: Tensor | None) -> Iterator[None]:
        """Context manager in which the sender samples with the given noise, as in training."""
        if keys is None:
            yield
            return
        before = self.sender.training
        self.sender.train()
        with drawing_from(Noise(keys)):
            yield
        self.sender.train(before)

    def describe(self, shown: Objects) -> Float[Tensor, "*stack turn size"]:
        """Return the sender's embedding of each turn: the mean of targets, and of distractors if it sees them."""
        targets = self.settings.turns.targets
        if self.settings.sender_sees == "targets":
            return self._perceive(self.sender_sees, self._slice(shown, 0, targets)).mean(-2)
        seen = self._perceive(self.sender_sees, shown)
        return torch.cat([seen[..., :targets, :].mean(-2), seen[..., targets:, :].mean(-2)], -1)

    def described(self, shown: Objects) -> Float[Tensor, "*stack turn size"]:
        """Return `describe(shown)`. Deprecated name of versions before 0.3."""
        warnings.warn("GameModel.described is now GameModel.describe.", DeprecationWarning, stacklevel=2)
        return self.describe(shown)

    def _run_part(self, part: nn.Module, inputs: Tensor, noise: Noise | None = None) -> Tensor:
        """Run a part of the model. In a stack, parts that do not broadcast run by vmap."""
        stacked = next(self.parameters()).dim() > self.own_axes
        if not stacked or getattr(part, "broadcasts", False):
            return cast(Tensor, part(inputs))

        def of_one(parameters: dict[str, Tensor], key: Tensor | None, own_inputs: Tensor) -> Tensor:
            with drawing_from(None if key is None else Noise(key)):
                return cast(Tensor, functional_call(part, parameters, (own_inputs,)))

        keys = None if noise is None else noise.keys
        axes = (0, None if keys is None else 0, 0)
        return vmap(of_one, axes)(dict(part.named_parameters()), keys, inputs)

    def _slice(self, objects: Tensor, first: int, count: int) -> Tensor:
        return objects.narrow(-self.axes - 1, first, count)

    def _perceive(self, perception: nn.Module, objects: Tensor) -> Tensor:
        turn, each = -self.axes - 2, -self.axes - 1
        vectors = self._run_part(perception, objects.flatten(turn, each))
        sizes = objects.shape[turn], objects.shape[each]
        return cast(Tensor, vectors.unflatten(-2, sizes))  # type: ignore[no-untyped-call]


def make_game_model(settings: GamesSettings, seed: int) -> GameModel:
    """Create the agents of a game with the initial weights of a seed, without the global generator.

    Each part has its own stream of random numbers, so another sender does not change the receiver.
    """
    with _weights(seed, "channel"):  # a name of initial weights, which must not change
        channel = get_representation(settings.representation, **settings.representation_options)
        channel = channel.for_pair(settings.words)
    described = settings.sender_hidden * settings.parts

    def model(side: str, size: int, hidden: int, options: Mapping[str, Any]) -> nn.Module:
        entry = registry.get(getattr(settings, side), side)
        sizes = (MeaningSpace(1, size), settings.message_length, settings.words, hidden)
        with _weights(seed, side):
            return create(entry, *sizes, representation=channel, **options)

    def perception(side: str, size: int) -> nn.Module:
        entry = registry.get(settings.perception, PERCEPTION)
        with _weights(seed, side, PERCEPTION):
            return cast(nn.Module, entry.create(settings.made_world.shape, size, **settings.perception_options))

    return GameModel(
        model("sender", described, settings.sender_hidden, settings.sender_options),
        model("receiver", settings.receiver_hidden, settings.receiver_hidden, settings.receiver_options),
        perception("sender", settings.sender_hidden),
        perception("receiver", settings.receiver_hidden),
        channel,
        settings,
    )


def behaviors(job: Job) -> dict[str, Behavior]:
    """Return the behavior of the world and of the parts of the agents that are code of users, by qualified name."""
    settings: GamesSettings = job.settings
    world, model = settings.made_world, make_game_model(settings, FIRST_SEED)
    with fixed_randomness():
        objects = torch.as_tensor(world.space.meanings(np.linspace(0, world.objects - 1, ROWS).round().astype(int)))
        seen = world.observe(objects, torch.arange(ROWS, device="cpu"))
    tokens = torch.arange(ROWS * settings.message_length, device="cpu").view(ROWS, -1) % settings.words
    messages = (nn.functional.one_hot(tokens, settings.words + more).float() for more in (1, 0))
    described = torch.linspace(-1, 1, ROWS * settings.sender_hidden * settings.parts, dtype=torch.float32, device="cpu")
    inputs = {"sender": [described.view(ROWS, -1)], "receiver": [tokens, *messages], PERCEPTION: [seen]}
    parts = {"sender": model.sender, "receiver": model.receiver, PERCEPTION: model.sender_sees}
    found: dict[str, Behavior] = {}
    for kind, entry in settings.registered.items():
        if entry.is_users and kind == WORLD:
            about = short_hash(f"{world.values} {world.shape} {seen.dtype}")
            found[entry.qualified] = {"tensors": about, "numbers": sums_of([seen])}
        elif entry.is_users:
            found[entry.qualified] = behavior_of(partial(parts.__getitem__, kind), *inputs[kind])
    return found


@contextlib.contextmanager
def _weights(seed: int, *part: str) -> Iterator[None]:
    """Context manager in which weights are drawn from the stream of one part."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream_key(seed, "weights", *part))  # of the CPU only
        yield


def game_loss(played: Played, labels: Logits, noise: Noise) -> Losses:
    """Return the binary cross-entropy of the candidates, plus the representation's loss (CBM24 section 2.1).

    The cross-entropy is a mean over candidates and turns.
    """
    logits, _, _, extra = played
    errors = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
    return errors.mean((-2, -1)) + extra
