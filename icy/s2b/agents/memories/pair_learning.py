"""Train a speaker and a listener together, from rewards only, on whole dealt episodes.

The players do not see rewards or results while they play. So an episode takes two passes: the speaker chooses tokens
game by game, and the listener decides all games at once. MemoryPlayer and TrainedSpeaker do the same step by step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.checks import LARGEST_SEED
from icy.core.errors import IncompatibleError
from icy.core.fields import CheckedFields, setting
from icy.s2b.agents import dealt
from icy.s2b.agents.dealt import DealtGames, check_dealt, deal_games, decide
from icy.s2b.agents.training import DealtTraining, GameTraining, practice
from icy.s2b.episode_streams import SavedState
from icy.s2b.evaluation import episode_seeds
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings, Query

from .attention import MemoryListener, MemoryPlayer, MemorySettings, pick
from .speaker import MemorySpeaker, OfTokens, SpeakerSettings, Tokens, TrainedSpeaker

SHARP = ("sharpness", "new")  # parameters of the speaker that determine which numbers it treats as equal
EVALUATED_AT_ONCE = 4_000_000  # limit of pairs of games in a batch of the evaluation
Heard = Int[Tensor, "batch vocab"]


@dataclass(frozen=True, kw_only=True)
class PairSettings(CheckedFields):
    """Settings of the training of a pair.

    Attributes:
        speaker: settings of the speaker.
        listener: settings of the listener.
        estimator: "reinforce": both learn from rewards only; "gumbel": the listener learns from the right decisions,
            and gradients pass through the messages to the speaker (an upper reference).
        episodes: number of episodes in an update.
        updates: number of updates.
        learning_rate: learning rate of Adam.
        warmup: number of updates in which the learning rate rises.
        decay: fraction of the updates, at the end, in which the learning rate falls.
        max_grad_norm: largest norm of a player's gradients.
        entropy: weight of the entropy of tokens and decisions.
        discount: the speaker's discount per game of later rewards.
        speaker_weight: weight of the speaker's reward.
        alignment_rate: learning rate of both players' alignments, as a multiple of `learning_rate`.
        memory_rate: learning rate of the speaker's sharpness of attention and of its score for a new number, as a
            multiple of `learning_rate`.
        temperature: temperature of straight-through tokens.
        query: query games in training episodes; see `icy.s2b.agents.training.practice`.
        seed: seed of weights, episodes and draws.
    """

    old_names: ClassVar[Mapping[str, str]] = MappingProxyType({"rate": "learning_rate", "clip": "max_grad_norm"})

    speaker: SpeakerSettings = field(default_factory=SpeakerSettings)
    listener: MemorySettings = field(default_factory=MemorySettings)
    estimator: str = setting("reinforce", among=("reinforce", "gumbel"))
    episodes: int = setting(64, "number of episodes", least=2)
    updates: int = setting(3000, "number of updates", least=1)
    learning_rate: float = setting(1e-3, above=0)
    warmup: int = setting(100, least=0)
    decay: float = setting(0.3, least=0, most=1)
    max_grad_norm: float = setting(1.0, above=0)
    entropy: float = setting(0.01, least=0)
    discount: float = setting(0.9, least=0, most=1)
    speaker_weight: float = setting(0.3, least=0)
    alignment_rate: float = setting(20.0, least=0)
    memory_rate: float = setting(1.0, least=0)
    temperature: float = setting(1.0, above=0)
    query: Query | None = None
    seed: int = setting(0, "seed", least=0, most=LARGEST_SEED)


class PairLearning(DealtTraining, GameTraining):
    """Training of a speaker and a listener together.

    Args:
        game: settings of the game.
        settings: settings of the players and of their training.

    Raises:
        IncompatibleError: whole episodes of the game cannot be dealt, or the speaker cannot play it.
    """

    settings: PairSettings

    def __init__(self, game: GameSettings, settings: PairSettings | None = None) -> None:
        check_dealt(game)
        settings = settings or PairSettings()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.speaking = MemorySpeaker(game, settings.speaker)
            self.listening = MemoryListener(game, settings.listener)
        self.random = torch.Generator().manual_seed(settings.seed)
        self.practice = practice(game, settings.query)
        times = dict.fromkeys(("alignment", "listener.alignment"), settings.alignment_rate)
        times |= dict.fromkeys(SHARP, settings.memory_rate)
        named = [*self.speaking.named_parameters(), *self.listening.named_parameters(prefix="listener")]
        super().__init__(game, settings, settings.seed, named, times)

    def _deal(self, seeds: range) -> DealtGames:
        return deal_games(self.practice, seeds, None)

    # -- training ------------------------------------------------------------------------------------------------------

    def update(self) -> float:
        """Train on a batch of new episodes, and return the loss."""
        settings, games = self.settings, self.batch(self.updates)
        learn = self._straight if settings.estimator == "gumbel" else self._reinforced
        loss = self._step(learn(games), settings.warmup, settings.max_grad_norm)
        self._end_update(games)
        return loss

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.random, dtype=torch.float32, device="cpu")

    def _reinforced(self, games: DealtGames) -> Tensor:
        """Return the loss of both players from the rewards of sampled decisions."""
        settings, there = self.settings, games.there
        batch, count = there.shape
        dimensions = self.speaking.draw_dimensions(self._uniform(batch, self.speaking.positions))
        recall = self.speaking.recall(games.shown, dimensions)
        tokens = self.speaking.speak(recall, self._uniform(batch, self.speaking.positions, count))
        decisions = self._heard(games, hear(tokens, games.heard))
        chosen = pick(decisions.detach().exp(), self._uniform(batch, count))
        reward = dealt.rewards(chosen == games.answers, games)
        said = self.speaking.log_chances(recall, tokens)
        log_said = dealt.log_of(said, tokens).sum(1)
        log_chosen = dealt.log_of(decisions, chosen)
        better = dealt.advantages(dealt.returns(reward, settings.discount), games, settings.discount)
        own = dealt.less_phase_mean(reward, games)
        of_episode = (better * there).sum(1) / there.sum(1)
        speaking = (better * log_said)[there].mean()
        aligning = (of_episode * self.speaking.dimension_log_chances(dimensions)).mean()
        surprise = dealt.entropy(said).sum(1)[there].mean() + dealt.entropy(decisions)[there].mean()
        listening = (own * log_chosen)[there].mean()
        return -(listening + settings.speaker_weight * (speaking + aligning) + settings.entropy * surprise)

    def _straight(self, games: DealtGames) -> Tensor:
        """Return the loss of both players from the right decisions, with gradients through the tokens."""
        settings, there = self.settings, games.there
        batch, count = there.shape
        shape = batch, self.speaking.positions, count, self.speaking.vocab
        dimensions = self.speaking.draw_dimensions(self._uniform(*shape[:2]))
        noise = -torch.log(-torch.log(self._uniform(*shape).clamp(1e-9, 1 - 1e-7)))
        recall = self.speaking.recall(games.shown, dimensions)
        said, logs = self.speaking.speak_straight(recall, noise, settings.temperature)
        decisions = self._heard(games, hear_straight(said, games.heard))
        right = dealt.log_of(decisions, games.answers)
        of_episode = (right.detach() * there).sum(1) / there.sum(1)
        better = (of_episode - of_episode.mean()) / (of_episode.std() + 1e-6)
        aligning = (better * self.speaking.dimension_log_chances(dimensions)).mean()
        surprise = dealt.entropy(logs).sum(1)[there].mean()
        return -(right[there].mean() + settings.speaker_weight * aligning + settings.entropy * surprise)

    def _heard(self, games: DealtGames, messages: Tensor) -> Tensor:
        """Return the log-probabilities of the listener's decisions, [B, G, decisions]."""
        return decide(self.listening, replace(games, messages=messages))

    # -- evaluation ----------------------------------------------------------------------------------------------------

    def networks(self) -> dict[str, nn.Module]:
        """Return the networks of both players."""
        return {"speaker": self.speaking, "listener": self.listening}

    def listener(self) -> Player:
        """Return a player with the listener in its current state."""
        return MemoryPlayer(self.listening)

    def speaker(self) -> Player:
        """Return a player with the speaker in its current state."""
        return TrainedSpeaker(self.speaking)

    @torch.no_grad()
    def read(self, episodes: int = 200, seed: int = 123, game: GameSettings | None = None) -> dict[str, float]:
        """Evaluate the most likely choices of both players; see AgentTraining."""
        games = deal_games(game or self.game, episode_seeds(seed, episodes), None)
        longest = games.there.shape[1]
        means = []
        for rows in torch.arange(episodes, device="cpu").split(max(1, EVALUATED_AT_ONCE // (40 * longest**2))):
            some = games[rows]
            dimensions = self.speaking.likeliest_dimensions(len(rows))
            messages = hear(self.speaking.speak(self.speaking.recall(some.shown, dimensions)), some.heard)
            right = self.listening(replace(some, messages=messages)).argmax(-1) == some.answers
            means.append(dealt.phase_means(right, some))
        return dealt.accuracies(torch.cat(means, 1))

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def state(self) -> SavedState:
        """Return the state to resume from."""
        return super().state() | {"settings": self._settings()}

    def load(self, state: SavedState) -> None:
        """Resume from a state of `state`.

        Raises:
            IncompatibleError: the state is from a training with other settings.
        """
        if state["settings"] != self._settings():
            raise IncompatibleError("The state is from a training with other settings; this training cannot resume it.")
        super().load(state)

    def _settings(self) -> str:
        return f"{self.game} {self.settings}"


# -- messages ----------------------------------------------------------------------------------------------------------


def hear(tokens: Tokens, heard: Heard) -> Int[Tensor, "batch game position"]:
    """Return the messages that the listener receives, for the speaker's tokens without the end token, from 0."""
    said = tokens.mT + 1
    return heard[:, None].expand(-1, said.shape[1], -1).gather(2, said)


def hear_straight(said: OfTokens, heard: Heard) -> Float[Tensor, "batch game position vocab"]:
    """Return the messages that the listener receives, as one-hots over 0..V through which gradients pass."""
    renamed = F.one_hot(heard[:, 1:], heard.shape[1]).to(said.dtype)
    return torch.einsum("blgv,bvw->bglw", said, renamed)
