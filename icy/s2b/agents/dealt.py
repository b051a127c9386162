"""Whole episodes as tensors, for training without a step of the game."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from icy.core.errors import IncompatibleError
from icy.core.registry import SPEAKER
from icy.s2b.episodes import Episodes, deal
from icy.s2b.game import BatchedGame
from icy.s2b.players.base import Player, seated
from icy.s2b.settings import GameSettings
from icy.s2b.streams import seeds_of


@dataclass(frozen=True, eq=False)
class DealtGames:
    """The games of B episodes, as their listeners meet them: G of each episode, padded behind its last.

    Attributes:
        stimuli: what the listener sees, [B, G, slots, W].
        messages: the tokens that it hears, all rounds of a game in a row, [B, G, N * L]; or one-hots of them, through
            which gradients pass, [B, G, N * L, V + 1].
        shown: what the speaker saw first, which the listener is shown at the end of a game, [B, G, W].
        answers: the right decisions, [B, G].
        query: which games are of the query, [B, G].
        there: which games there are, [B, G].
        sizes: number of values of each dimension, [B, N]. Privileged: for evaluation, not for agents.
    """

    stimuli: Float[Tensor, "batch game slot width"]
    messages: Shaped[Tensor, "batch game *said"]
    shown: Float[Tensor, "batch game width"]
    answers: Int[Tensor, "batch game"]
    query: Bool[Tensor, "batch game"]
    there: Bool[Tensor, "batch game"]
    sizes: Int[Tensor, "batch dimension"]

    def __len__(self) -> int:
        return len(self.there)

    def take(self, which: Any) -> "DealtGames":
        """Return some of the episodes, with no more padding than these need."""
        games = int(self.there[which].sum(1).max())
        parts = {f.name: getattr(self, f.name)[which] for f in fields(self)}
        return DealtGames(**{n: x if n == "sizes" else x[:, :games] for n, x in parts.items()})

    def on(self, device: Any) -> "DealtGames":
        """Return the games on a torch device."""
        return DealtGames(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


def deal_games(settings: GameSettings, seeds: Iterable[int], speaker: str | Player = "posdis") -> DealtGames:
    """Deal whole episodes with the messages of a speaker that does not learn from the listener's decisions.

    What a listener of these games learns equals what it learns step by step, as none of its decisions changes what it
    is shown later.

    Args:
        settings: settings of the game; games must end by showing the target, and the listener sends no messages.
        seeds: seed of each episode.
        speaker: name of a registered speaker, or a `Player`.

    Raises:
        IncompatibleError: a game in which the listener's actions change what follows.
        IcyError: a speaker that cannot play this game.
    """
    _check_dealt(settings)
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


def _padded(dealt: Episodes, messages: Any) -> DealtGames:
    """Return the games of episodes with their messages, [T, tokens], padded to the longest episode."""
    place = np.arange(int(dealt.games.max()))
    there = place < dealt.games[:, None]
    index = np.where(there, dealt.first[:, None] + place, dealt.first[:, None])

    def padded(of_games: Any) -> Tensor:
        return torch.as_tensor(of_games[index])

    return DealtGames(
        stimuli=padded(dealt.listener),
        messages=padded(messages),
        shown=padded(dealt.speaker[:, 0]),
        answers=padded(dealt.answer),
        query=padded(dealt.query) & torch.as_tensor(there),
        there=torch.as_tensor(there),
        sizes=torch.as_tensor(dealt.sizes),
    )


def deal_silent(settings: GameSettings, seeds: Iterable[int]) -> tuple[DealtGames, Int[Tensor, "batch vocab"]]:
    """Deal whole episodes in which nothing has been said yet, for a speaker that learns.

    Returns:
        The games, with empty messages, and the token that the listener hears for each of the speaker's, [B, V + 1].

    Raises:
        IncompatibleError: a game in which the listener's actions change what follows.
    """
    _check_dealt(settings)
    numbers = [int(seed) for seed in seeds]
    dealt = deal(settings, seeds_of(len(numbers), seeds=numbers))
    silence = np.zeros((len(dealt.query), settings.rounds * settings.length), dtype=np.int64)
    return _padded(dealt, silence), torch.as_tensor(dealt.heard)


def _check_dealt(settings: GameSettings) -> None:
    if settings.listener_messages or not settings.feedback:
        raise IncompatibleError("Dealt games end with feedback, and their listeners send no messages.")
