"""Whole episodes as tensors, for training that does not play step by step, and the rewards of their decisions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
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
from icy.s2b.game import REWARDS, BatchedGame
from icy.s2b.players.interface import Player, seated
from icy.s2b.settings import GameSettings

# -- whole episodes as tensors, for training that does not play the game step by step ----------------------------------


GROUPS = 8  # number of groups of episodes with similar length
OfGames = Float[Tensor, "batch game"]
Mask = Bool[Tensor, "batch game"]


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
    query: Mask
    there: Mask

    def __len__(self) -> int:
        return len(self.there)

    def __getitem__(self, which: Array) -> Self:
        """Select episodes by index or mask, and drop unnecessary padding."""
        games, parts = int(self.there[which].sum(1).max()), {n: x for n, x in vars(self).items() if x is not None}
        some = {n: x[which] if n in self.of_episodes else x[which][:, :games] for n, x in parts.items()}
        return replace(self, **some)


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
        heard: the token that the listener receives for each of the speaker's tokens, [B, V + 1]. Privileged.
        decided: the listener's decisions, [B, G]; None if they are not known yet or not used.
    """

    of_episodes = ("sizes", "heard")

    stimuli: Float[Tensor, "batch game slot width"]
    messages: Shaped[Tensor, "batch game *said"]
    feedback: Float[Tensor, "batch game slot width"]
    sizes: Int[Tensor, "batch dimension"]
    heard: Int[Tensor, "batch vocab"]
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
    parts = [read(games[rows]) for rows in order.chunk(groups)]
    padded = [F.pad(part, (0, 0) * (part.dim() - 2) + (0, longest - part.shape[1])) for part in parts]
    return torch.cat(padded)[order.argsort()]


def deal_games(settings: GameSettings, seeds: Iterable[int], speaker: str | Player | None = "posdis") -> DealtGames:
    """Deal whole episodes, with the messages of a speaker that does not learn, or without messages.

    Learning from these games is equivalent to learning step by step, because the listener's decisions do not change its
    later inputs.

    Args:
        settings: settings of the game; it must have feedback, and no messages of the listener.
        seeds: seed of each episode.
        speaker: name of a registered speaker, or a `Player`; None for empty messages, if the speaker learns.

    Raises:
        IncompatibleError: the listener's actions change later steps of the game.
        IcyError: the speaker cannot play this game.
    """
    check_dealt(settings)
    numbers, length = [int(seed) for seed in seeds], settings.length
    if speaker is None:
        dealt = deal(settings, seeds_of(len(numbers), seeds=numbers))
        return _padded(dealt, np.zeros((len(dealt.query), settings.rounds * length), dtype=np.int64))
    game = BatchedGame(settings, episodes=len(numbers))
    turn = game.reset(seeds=numbers)
    speaks, dealt = seated(speaker, SPEAKER, game), game.dealt
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
        heard=torch.as_tensor(dealt.heard),
    )


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


# -- rewards, returns, advantages and accuracies of decisions on whole dealt episodes ----------------------------------


def rewards(right: Mask, games: Games) -> OfGames:
    """Return the reward of every decision, [B, G]; 0 for padding."""
    pay = torch.tensor(REWARDS, dtype=torch.float32, device="cpu")
    return pay[games.query.long(), right.long()] * games.there


def returns(reward: OfGames, discount: float) -> OfGames:
    """Return, for each game, the discounted sum of its reward and all later rewards."""
    place = torch.arange(reward.shape[1], device="cpu")
    later = place[:, None] - place  # rows: rewards, columns: games
    return reward @ torch.where(later >= 0, discount ** later.clamp(min=0).to(reward.dtype), 0.0)


def advantages(gain: OfGames, games: Games, discount: float) -> OfGames:
    """Return normalized advantages: returns minus a baseline.

    The baseline is a linear function of the phase and of the remaining games of each phase, fitted to the batch by
    least squares.
    """
    there, query = games.there.to(gain.dtype), games.query.to(gain.dtype)
    left = there.flip(1).cumsum(1).flip(1)
    of_phase = [returns(phase, discount) for phase in (query, there - query)]
    features = torch.stack([there, query, left, query * left, *of_phase], -1)
    rows, known = features[games.there], gain[games.there]
    # Regularized, because some columns may be equal.
    regularized = rows.T @ rows + 1e-3 * torch.eye(rows.shape[1], dtype=torch.float32, device="cpu")
    baseline = features @ torch.linalg.solve(regularized, rows.T @ known)
    return normalised((gain - baseline) * there, games)


def generalized_advantages(
    rewards: OfGames, values: OfGames, there: Mask, discount: float = 0.0, trace: float = 1.0
) -> OfGames:
    """Return generalized advantage estimates of decisions (Schulman et al. 2016), 0 for padding.

    Args:
        rewards: reward of each decision.
        values: state value before each decision; with zeros and trace=1, the result is returns.
        there: mask of the decisions, False for padding.
        discount: discount of rewards per decision.
        trace: lambda, from 0 (use the values of later states) to 1 (use rewards only).
    """
    advantage, there = torch.zeros_like(rewards[:, 0]), there.to(rewards.dtype)
    later, reverse = torch.zeros_like(advantage), []
    for number in reversed(range(rewards.shape[1])):
        error = rewards[:, number] + discount * later - values[:, number]
        advantage = (error + discount * trace * advantage) * there[:, number]
        later = values[:, number] * there[:, number]
        reverse.append(advantage)
    return torch.stack(reverse[::-1], 1)


def less_phase_mean(reward: OfGames, games: Games) -> OfGames:
    """Return rewards minus the mean reward of their phase."""
    centered = torch.zeros_like(reward)
    for phase in (games.query, games.there & ~games.query):
        centered[phase] = reward[phase] - reward[phase].mean()
    return centered


def normalised(gain: OfGames, games: Games) -> OfGames:
    """Return gains divided by their standard deviation over all games."""
    scaled: Tensor = gain / (gain[games.there].std() + 1e-6)
    return scaled


def entropy(logs: Float[Tensor, "*lead choice"]) -> Float[Tensor, "*lead"]:
    """Return the entropy of distributions given by log-probabilities."""
    return -(logs.exp() * logs).sum(-1)


def log_of(logs: Float[Tensor, "*lead choice"], chosen: Int[Tensor, "*lead"]) -> Float[Tensor, "*lead"]:
    """Return the log-probability of each choice."""
    return logs.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


def accuracies(of_episodes: Float[Tensor, "phase batch"]) -> dict[str, float]:
    """Average the result of `phase_means` over episodes: `zsct` (query) and `support`."""
    query, support = of_episodes.double().mean(1).tolist()
    return {"zsct": query, "support": support}


def phase_means(right: Mask, games: Games) -> Float[Tensor, "phase batch"]:
    """Return each episode's fraction of right decisions, in the query and in the support, [2, B]."""
    phases = games.query, games.there & ~games.query
    return torch.stack([(right & phase).sum(1) / phase.sum(1) for phase in phases])
