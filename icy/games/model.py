"""The task of a training in multi-target games, and its agents with their channel as one module."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from icy.core.checks import FIRST_SEED
from icy.core.code import short_hash
from icy.core.errors import InvalidSettingError
from icy.core.fields import changed_fields, checked, stored_names
from icy.core.noise import Noise, current_noise, drawing_from
from icy.core.registry import PERCEPTION, SIDES, WORLD, Entry, registry
from icy.core.representations import Representation, get_representation
from icy.core.streams import stream_key
from icy.core.types import Choices, Fields
from icy.languages.meanings import MeaningSpace
from icy.models.creation import create
from icy.training.task_models import ROWS, Behavior, behavior_of, fixed_randomness, sums_of

from .settings import OLD_NAMES, GamesLearningSettings, TurnSettings
from .worlds.world import World, make_world

# -- tasks -------------------------------------------------------------------------------------------------------------


IMAGE_AXES = 3  # axes of an image


@dataclass(frozen=True, kw_only=True)
class GameTask:
    """All settings that can change the numbers of a training, except the seed and the kind of distractors.

    Attributes:
        world: name of the world.
        world_options: arguments of the world.
        turns: settings of turns. Each replicate has its own kind of distractors.
        representation: name of the representation of messages.
        representation_options: attributes of the representation.
        word_size: size of a word: the number of symbols (GS) or of bits (QT).
        message_length: number of words in a message.
        sender: name of the sender.
        receiver: name of the receiver.
        sender_hidden: hidden size of the sender, and size of the output of its perception.
        receiver_hidden: hidden size of the receiver, and size of the output of its perception.
        sender_sees: the sender's input: "targets", or "both" (targets and distractors).
        perception: name of the perception of both agents.
        sender_options: further arguments of the sender.
        receiver_options: further arguments of the receiver.
        perception_options: further arguments of the perception.
        steps: number of updates.
        learning: settings of learning and evaluation.
    """

    old_names: ClassVar[Mapping[str, str]] = MappingProxyType(OLD_NAMES)

    world: str
    world_options: Fields = field(default_factory=dict)
    turns: TurnSettings = field(default_factory=TurnSettings)
    representation: str = "qt"
    representation_options: Fields = field(default_factory=dict)
    word_size: int
    message_length: int
    sender: str = "RNNAutoReg:LSTM"
    receiver: str = "RNN1L:LSTM"
    sender_hidden: int = 60
    receiver_hidden: int = 40
    sender_sees: str = "targets"
    perception: str = "mlp"
    sender_options: Fields = field(default_factory=dict)
    receiver_options: Fields = field(default_factory=dict)
    perception_options: Fields = field(default_factory=dict)
    steps: int = 20_000
    learning: GamesLearningSettings = field(default_factory=GamesLearningSettings)

    @classmethod
    def of_config(cls, config: Fields) -> Self:
        """Create a task from the dictionary that `config` returns.

        Raises:
            IcyError: another version of icy wrote the configuration.
        """
        inner = {"turns": TurnSettings, "learning": GamesLearningSettings}
        made = {n: of(**checked(of, config[n], "setting")) for n, of in inner.items() if n in config}
        rest = {n: value for n, value in config.items() if n not in inner}
        return cls(**{**checked(cls, rest, "part of a training"), **made})

    def config(self) -> Choices:
        """Return the task as JSON-compatible values, without the kind of distractors."""
        config = stored_names(type(self), asdict(self))
        config["turns"].pop("distractor_kind")
        return config

    @property
    def model(self) -> str:
        """Names of sender and receiver."""
        return f"{self.sender}+{self.receiver}"

    @property
    def words(self) -> int:
        """Size of a word of the sender: one symbol fewer if one is reserved for the end."""
        reserved = self.learning.reserved_end and self.representation == "gs" and self.message_length > 1
        return self.word_size - 1 if reserved else self.word_size

    def word_name(self, word: int) -> str:
        """Return the name of a word: its digits with QT, otherwise its number."""
        if self.representation != "qt":
            return str(word)
        levels, rest, digits = self.representation_options.get("levels", 2), word % 2**64, []
        for _ in range(self.words):
            rest, digit = divmod(rest, levels)
            digits.append(str(digit))
        return "".join(reversed(digits))

    @cached_property
    def made_world(self) -> World:
        """The world."""
        return make_world(self.world, **self.world_options)

    @property
    def entries(self) -> dict[str, Entry]:
        """Registry entries of the world, the agents and the perception, by kind."""
        return {
            WORLD: registry.get(self.world, WORLD),
            **{side: registry.get(getattr(self, side), side) for side in SIDES},
            PERCEPTION: registry.get(self.perception, PERCEPTION),
        }

    @property
    def parts(self) -> int:
        """Number of vectors in the sender's input per turn: of targets, and of distractors if it sees them."""
        return 2 if self.sender_sees == "both" else 1

    def of_turns(self, distractor_kind: str) -> TurnSettings:
        """Return the settings of turns with a kind of distractors."""
        return replace(self.turns, distractor_kind=distractor_kind)

    def changes(self) -> Choices:
        """Return the settings without a table column that differ from the defaults, by name of the option."""
        usual = GameTask(world=self.world, word_size=self.word_size, message_length=self.message_length)
        turns = changed_fields(self.turns, replace(usual.turns, rule_length=self.turns.rule_length))
        shown = {"targets", "distractors", "distractor_kind"}
        owners = ("world", "representation", "perception", "sender", "receiver")
        options = stored_names(type(self), {one: getattr(self, f"{one}_options") for one in owners})
        sizes = ("sender_hidden", "receiver_hidden", "sender_sees")
        return {
            **{f"{one}.{n}": value for one, own in options.items() for n, value in own.items()},
            **{name: getattr(self, name) for name in sizes if getattr(self, name) != getattr(usual, name)},
            **({"perception": self.perception} if self.perception != default_perception(self.made_world) else {}),
            **{name: value for name, value in turns.items() if name not in shown},
            **changed_fields(self.learning, usual.learning),
        }

    def require_words(self) -> None:
        """Check that words have a useful size.

        Raises:
            InvalidSettingError: the sender has only one word, or too many words.
        """
        if self.words < 1 or (self.representation != "qt" and self.words < 2):
            raise InvalidSettingError(
                f"A sender needs at least two different words, and word_size={self.word_size} is too small; take a "
                "larger word_size."
            )
        if math.prod((self.words, self.message_length)) > 10**6:
            raise InvalidSettingError(
                f"word_size={self.word_size} times message_length={self.message_length} is above 1,000,000, too large "
                "for a sender; take a smaller word_size or message_length."
            )


def default_perception(world: World) -> str:
    """Return the name of the default perception of a world: conv4 for images, otherwise mlp."""
    return "conv4" if len(world.shape) == IMAGE_AXES else "mlp"


def default_word_size(representation: str, concepts: int, levels: int = 2) -> int:
    """Return the smallest size of a word that can name every concept.

    Example:
        >>> default_word_size("gs", 50), default_word_size("qt", 50), default_word_size("qt", 17)
        (50, 6, 5)
    """
    if representation != "qt":
        return concepts
    digits = 1
    while levels**digits < concepts:
        digits += 1
    return digits


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
        task: the task of the game.
    """

    broadcasts = True

    def __init__(
        self,
        sender: nn.Module,
        receiver: nn.Module,
        sender_sees: nn.Module,
        receiver_sees: nn.Module,
        channel: Representation,
        task: GameTask,
    ) -> None:
        super().__init__()
        self.sender, self.receiver = sender, receiver
        self.sender_sees, self.receiver_sees = sender_sees, receiver_sees
        self.channel, self.task = channel, task
        self.axes = len(task.made_world.shape)
        candidates = task.turns.targets + task.turns.distractors
        # Size per turn of the smallest tensor, for GradientLearner.
        self.narrowest = min(candidates, task.words, task.sender_hidden, task.receiver_hidden)
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
        turns = self.task.turns
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
        targets = self.task.turns.targets
        if self.task.sender_sees == "targets":
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


def make_game_model(task: GameTask, seed: int) -> GameModel:
    """Create the agents of a game with the initial weights of a seed, without the global generator.

    Each part has its own stream of random numbers, so another sender does not change the receiver.
    """
    with _weights(seed, "channel"):  # a name of initial weights, which must not change
        channel = get_representation(task.representation, **task.representation_options).for_pair(task.words)
    described = task.sender_hidden * task.parts

    def model(side: str, size: int, hidden: int, options: Mapping[str, Any]) -> nn.Module:
        entry = registry.get(getattr(task, side), side)
        sizes = (MeaningSpace(1, size), task.message_length, task.words, hidden)
        with _weights(seed, side):
            return create(entry, *sizes, representation=channel, **options)

    def perception(side: str, size: int) -> nn.Module:
        entry = registry.get(task.perception, PERCEPTION)
        with _weights(seed, side, PERCEPTION):
            return cast(nn.Module, entry.create(task.made_world.shape, size, **task.perception_options))

    return GameModel(
        model("sender", described, task.sender_hidden, task.sender_options),
        model("receiver", task.receiver_hidden, task.receiver_hidden, task.receiver_options),
        perception("sender", task.sender_hidden),
        perception("receiver", task.receiver_hidden),
        channel,
        task,
    )


def behaviors(task: GameTask) -> dict[str, Behavior]:
    """Return the behavior of the world and of the parts of the agents that are code of users, by qualified name."""
    world, model = task.made_world, make_game_model(task, FIRST_SEED)
    with fixed_randomness():
        objects = torch.as_tensor(world.space.meanings(np.linspace(0, world.objects - 1, ROWS).round().astype(int)))
        seen = world.observe(objects, torch.arange(ROWS, device="cpu"))
    tokens = torch.arange(ROWS * task.message_length, device="cpu").view(ROWS, -1) % task.words
    messages = (nn.functional.one_hot(tokens, task.words + more).float() for more in (1, 0))
    described = torch.linspace(-1, 1, ROWS * task.sender_hidden * task.parts, dtype=torch.float32, device="cpu")
    inputs = {"sender": [described.view(ROWS, -1)], "receiver": [tokens, *messages], PERCEPTION: [seen]}
    parts = {"sender": model.sender, "receiver": model.receiver, PERCEPTION: model.sender_sees}
    found: dict[str, Behavior] = {}
    for kind, entry in task.entries.items():
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
