"""Whole episodes as tensors, for training without a step of the game."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace

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

GROUPS = 8  # of episodes of like length


@dataclass(frozen=True, eq=False)
class DealtGames:
    """The games of B episodes, as their listeners meet them: G of each episode, padded behind its last.

    Attributes:
        stimuli: what the listener sees, [B, G, slots, W].
        messages: the tokens that it hears, all rounds of a game in a row, [B, G, N * L]; or one-hots of them,
            [B, G, N * L, V + 1], through which gradients pass to a speaker that learns.
        feedback: what the listener is shown at the end of a game, which is what the speaker saw, [B, G, slots, W];
            zeros in slots that the speaker did not see.
        answers: the right decisions, [B, G].
        query: which games are of the query, [B, G].
        there: which games there are, [B, G].
        sizes: number of values of each dimension, [B, N]. Privileged: for evaluation, not for agents.
        decided: what the listener decided, [B, G]; None if that is not known yet, or of no account.
    """

    stimuli: Float[Tensor, "batch game slot width"]
    messages: Shaped[Tensor, "batch game *said"]
    feedback: Float[Tensor, "batch game slot width"]
    answers: Int[Tensor, "batch game"]
    query: Bool[Tensor, "batch game"]
    there: Bool[Tensor, "batch game"]
    sizes: Int[Tensor, "batch dimension"]
    decided: Int[Tensor, "batch game"] | None = None

    def __len__(self) -> int:
        return len(self.there)

    @property
    def shown(self) -> Float[Tensor, "batch game width"]:
        """The target, as the listener is shown it at the end of a game, [B, G, W]."""
        return self.feedback[:, :, 0]

    def __getitem__(self, which: Array) -> "DealtGames":
        return self.take(which)

    def take(self, which: Array) -> "DealtGames":
        """Return some of the episodes, with no more padding than these need."""
        games = int(self.there[which].sum(1).max())
        return self._changed(lambda name, x: x[which] if name == "sizes" else x[which][:, :games])

    def steps(self, rounds: int) -> int:
        """Return the number of steps that all games take: a game has its rounds, one before them, and feedback."""
        return int(self.there.sum()) * (rounds + 2)

    def on(self, device: torch.device | str) -> "DealtGames":
        """Return the games on a torch device."""
        return self._changed(lambda name, x: x.to(device))

    def _changed(self, change: Callable[[str, Tensor], Tensor]) -> "DealtGames":
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{name: change(name, x) for name, x in parts.items() if x is not None})


def of_like_length(
    read: Callable[[DealtGames], Shaped[Tensor, "batch game ..."]], games: DealtGames, groups: int
) -> Shaped[Tensor, "batch game ..."]:
    """Return what is read of games [B, G, ...], reading episodes of like length together; zeros behind the last game.

    What is read of an episode costs as much as the longest beside it, or more.

    Args:
        read: makes [b, g, ...] of b of the episodes.
        games: the games.
        groups: number of groups, at most.
    """
    order, longest = games.there.sum(1).argsort(stable=True), games.there.shape[1]
    parts = [read(games.take(rows)) for rows in order.chunk(groups)]
    padded = [F.pad(part, (0, 0) * (part.dim() - 2) + (0, longest - part.shape[1])) for part in parts]
    return torch.cat(padded)[order.argsort()]


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
    """Return the games of episodes with their messages, [T, tokens], padded to the longest episode."""
    place = np.arange(int(dealt.games.max()))
    there = place < dealt.games[:, None]
    index = np.where(there, dealt.first[:, None] + place, dealt.first[:, None])

    unseen = dealt.listener.shape[1] - dealt.speaker.shape[1]  # slots

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
    """Deal whole episodes in which nothing has been said yet, for a speaker that learns.

    Returns:
        The games, with empty messages, and the token that the listener hears for each of the speaker's, [B, V + 1].

    Raises:
        IncompatibleError: a game in which the listener's actions change what follows.
    """
    check_dealt(settings)
    numbers = [int(seed) for seed in seeds]
    dealt = deal(settings, seeds_of(len(numbers), seeds=numbers))
    silence = np.zeros((len(dealt.query), settings.rounds * settings.length), dtype=np.int64)
    return _padded(dealt, silence), torch.as_tensor(dealt.heard)


def check_dealt(settings: GameSettings) -> None:
    """Require that episodes of a game can be dealt whole.

    Raises:
        IncompatibleError: a game in which the listener's actions change what follows, or without feedback.
    """
    if settings.listener_messages or not settings.feedback:
        raise IncompatibleError("Dealt games end with feedback, and their listeners send no messages.")


def decide(model: Callable[[DealtGames], Tensor], games: DealtGames) -> Float[Tensor, "batch game decision"]:
    """Return the log-probabilities of decisions of whole episodes, 0 behind their last games.

    Episodes of like length are read together, as the cost of attention grows with the square of the longest.

    Args:
        model: maps dealt games to logits, [B, G, decisions].
        games: the games.
    """
    logs = of_like_length(model, games, GROUPS).log_softmax(-1)
    return logs.masked_fill(~games.there.unsqueeze(-1), 0.0)
