"""Whole episodes as tensors, for training that does not play the game step by step."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from icy.core.errors import IncompatibleError
from icy.core.registry import SPEAKER
from icy.s2b.channel import Array
from icy.s2b.episode_streams import Wholes, seeds_of
from icy.s2b.episodes import Episodes, deal
from icy.s2b.game import BatchedGame
from icy.s2b.players.interface import Player, seated
from icy.s2b.settings import GameSettings

GROUPS = 8  # number of groups of episodes with similar length


@dataclass(frozen=True, eq=False, kw_only=True)
class Games:
    """The games of B episodes, padded to G games per episode.

    Attributes:
        answers: the right decisions, [B, G].
        query: mask of the games of the query, [B, G].
        there: mask of the games, False for padding, [B, G].
    """

    of_episodes: ClassVar[tuple[str, ...]] = ()  # fields without an axis of games

    answers: Int[Tensor, "batch game"]
    query: Bool[Tensor, "batch game"]
    there: Bool[Tensor, "batch game"]

    def __len__(self) -> int:
        return len(self.there)

    def __getitem__(self, which: Array) -> Self:
        return self.take(which)

    def take(self, which: Array) -> Self:
        """Select episodes by index or mask, and drop unnecessary padding."""
        games = int(self.there[which].sum(1).max())
        return self._changed(lambda name, x: x[which] if name in self.of_episodes else x[which][:, :games])

    def on(self, device: torch.device | str) -> Self:
        """Move the games to a torch device."""
        return self._changed(lambda name, x: x.to(device))

    def _changed(self, change: Callable[[str, Tensor], Tensor]) -> Self:
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{name: change(name, x) for name, x in parts.items() if x is not None})


SomeGames = TypeVar("SomeGames", bound=Games)


@dataclass(frozen=True, eq=False, kw_only=True)
class DealtGames(Games):
    """The games of B episodes as the listener of the referential game sees them.

    Attributes:
        stimuli: the listener's stimuli, [B, G, slots, W].
        messages: the tokens that the listener receives, with the rounds of a game concatenated, [B, G, N * L]; or these
            tokens as one-hots, [B, G, N * L, V + 1], through which gradients reach a speaker that learns.
        feedback: the speaker's stimuli, which the listener sees at the end of a game, [B, G, slots, W]; zeros in slots
            that the speaker does not see.
        sizes: number of values of each dimension, [B, N]. Privileged: for evaluation, not for agents.
        decided: the listener's decisions, [B, G]; None if they are not known yet or not used.
    """

    of_episodes = ("sizes",)

    stimuli: Float[Tensor, "batch game slot width"]
    messages: Shaped[Tensor, "batch game *said"]
    feedback: Float[Tensor, "batch game slot width"]
    sizes: Int[Tensor, "batch dimension"]
    decided: Int[Tensor, "batch game"] | None = None

    @property
    def shown(self) -> Float[Tensor, "batch game width"]:
        """The target that the listener sees at the end of a game, [B, G, W]."""
        return self.feedback[:, :, 0]


def of_like_length(
    read: Callable[[SomeGames], Shaped[Tensor, "batch game ..."]], games: SomeGames, groups: int = GROUPS
) -> Shaped[Tensor, "batch game ..."]:
    """Apply a function to groups of episodes with similar length; return [B, G, ...], with zeros for padding.

    This saves time, because the longest episode determines the cost of its group.

    Args:
        read: maps b episodes to a tensor [b, g, ...].
        games: the games.
        groups: largest number of groups.
    """
    order, longest = games.there.sum(1).argsort(stable=True), games.there.shape[1]
    parts = [read(games.take(rows)) for rows in order.chunk(groups)]
    padded = [F.pad(part, (0, 0) * (part.dim() - 2) + (0, longest - part.shape[1])) for part in parts]
    return torch.cat(padded)[order.argsort()]


def deal_games(settings: GameSettings, seeds: Iterable[int], speaker: str | Player = "posdis") -> DealtGames:
    """Deal whole episodes, with the messages of a speaker that does not learn.

    Learning from these games is equivalent to learning step by step, because the listener's decisions do not change its
    later inputs.

    Args:
        settings: settings of the game; it must have feedback, and no messages of the listener.
        seeds: seed of each episode.
        speaker: name of a registered speaker, or a `Player`.

    Raises:
        IncompatibleError: the listener's actions change later steps of the game.
        IcyError: the speaker cannot play this game.
    """
    check_dealt(settings)
    numbers = [int(seed) for seed in seeds]
    game = BatchedGame(settings, episodes=len(numbers))
    turn = game.reset(seeds=numbers)
    speaks = seated(speaker, SPEAKER, game)
    dealt, length = game.dealt, settings.length
    messages = np.zeros((len(dealt.query), settings.rounds * length), dtype=np.int64)
    while not turn.done.all():
        round_, at = turn.listener.round, dealt.first + game.game_number
        for now in range(1, settings.rounds + 1):
            rows = np.flatnonzero((round_ == now) & ~turn.done)
            messages[at[rows], (now - 1) * length : now * length] = turn.listener.message[rows]
        turn = game.step(speaks.act(turn.speaker).message)
    return _padded(dealt, messages)


def _padded(dealt: Episodes, messages: Wholes) -> DealtGames:
    """Convert episodes and the messages of their games, [T, tokens], to padded tensors."""
    place = np.arange(int(dealt.games.max()))
    there = place < dealt.games[:, None]
    index = np.where(there, dealt.first[:, None] + place, dealt.first[:, None])

    unseen = dealt.listener.shape[1] - dealt.speaker.shape[1]  # number of slots that the speaker does not see

    def padded(of_games: Array) -> Tensor:
        return torch.as_tensor(of_games[index])

    return DealtGames(
        stimuli=padded(dealt.listener),
        messages=padded(messages),
        feedback=F.pad(padded(dealt.speaker), (0, 0, 0, unseen)),
        answers=padded(dealt.answer),
        query=padded(dealt.query) & torch.as_tensor(there),
        there=torch.as_tensor(there),
        sizes=torch.as_tensor(dealt.sizes),
    )


def deal_silent(settings: GameSettings, seeds: Iterable[int]) -> tuple[DealtGames, Int[Tensor, "batch vocab"]]:
    """Deal whole episodes without messages, for a speaker that learns.

    Returns:
        The games, with empty messages, and the token that the listener receives for each of the speaker's tokens,
        [B, V + 1].

    Raises:
        IncompatibleError: the listener's actions change later steps of the game.
    """
    check_dealt(settings)
    numbers = [int(seed) for seed in seeds]
    dealt = deal(settings, seeds_of(len(numbers), seeds=numbers))
    silence = np.zeros((len(dealt.query), settings.rounds * settings.length), dtype=np.int64)
    return _padded(dealt, silence), torch.as_tensor(dealt.heard)


def check_dealt(settings: GameSettings) -> None:
    """Check that a game can be dealt as whole episodes.

    Raises:
        IncompatibleError: the listener's actions change later steps of the game, or the game has no feedback.
    """
    if settings.listener_messages or not settings.feedback:
        raise IncompatibleError(
            "Dealt games must end with feedback, and their listeners must not send messages; take feedback=True and "
            "listener_messages=False."
        )


def decide(model: Callable[[DealtGames], Tensor], games: DealtGames) -> Float[Tensor, "batch game decision"]:
    """Return the log-probability of every decision in whole episodes; 0 for padding.

    Episodes of similar length are processed together, because the cost of attention grows with the square of the
    length.

    Args:
        model: maps dealt games to logits, [B, G, decisions].
        games: the games.
    """
    logs = of_like_length(model, games).log_softmax(-1)
    return logs.masked_fill(~games.there.unsqueeze(-1), 0.0)
