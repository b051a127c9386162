"""Train a listener on dealt episodes: from rewards only (PPO), or from the right decisions (supervised).

Decisions do not change later inputs. So the return of a decision is its own reward (a discount of 0), and a whole
episode is one pass.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import IncompatibleError
from icy.core.fields import CheckedFields, setting
from icy.core.streams import stream_key
from icy.s2b.agents import dealt
from icy.s2b.agents.dealt import DealtGames, Games, check_dealt, deal_games, decide
from icy.s2b.agents.training import DealtTraining, GameTraining, practice
from icy.s2b.evaluation import episode_seeds
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings, Query

from .attention import MemoryListener, MemoryPlayer

READ_AT_ONCE = 64  # episodes in a batch of the evaluation
ALIGNMENT = "alignment"  # name of the parameter with its own learning rate


@dataclass(frozen=True)
class DealtLearningSettings(CheckedFields):
    """Settings of training on dealt episodes.

    Attributes:
        learner: "ppo": from the rewards of the listener's own decisions; "supervised": from the right decisions.
        updates: number of batches of new episodes.
        episodes: number of episodes in a batch.
        epochs: number of passes of PPO over a batch.
        minibatch: number of episodes in one step of the optimizer.
        clip: clipping range of PPO's probability ratio.
        entropy: weight of the entropy of decisions in PPO. Games with distractors have a higher default, see `usual`.
        learning_rate: learning rate of Adam.
        alignment_rate: learning rate of the alignment, as a multiple of `learning_rate`.
        warm_up: number of updates in which the learning rate rises to `learning_rate`.
        decay: fraction of the updates, at the end, in which the learning rate falls to 0.
        clip_norm: largest norm of a gradient.
        query: query games in training episodes; see `icy.s2b.agents.training.practice`.
        games_per_shot: in the recall task, the largest number of games in a shot of a training episode; None for all
            stimuli of the space.
        baseline: baseline of PPO: "phase": the mean reward of the phase; "value": a state value that the network
            learns. This and the other settings below are for listeners with a core.
        discount: discount of later rewards per decision in PPO, with the baseline "value".
        trace: lambda of generalized advantage estimation, with the baseline "value".
        value_weight: weight of the squared error of values.
    """

    learner: str = setting("ppo", among=("ppo", "supervised"))
    updates: int = setting(400, least=1)
    episodes: int = setting(128, least=1)
    epochs: int = setting(2, least=1)
    minibatch: int = setting(32, least=1)
    clip: float = setting(0.2, above=0)
    entropy: float = setting(0.01, least=0)
    learning_rate: float = setting(1e-3, above=0)
    alignment_rate: float = setting(20.0, least=0)
    warm_up: int = setting(20, least=0)
    decay: float = setting(0.3, least=0, most=1)
    clip_norm: float = setting(1.0, above=0)
    query: Query | None = None
    games_per_shot: int | None = setting(24, least=1)
    baseline: str = setting("phase", among=("phase", "value"))
    discount: float = setting(0.0, least=0, most=1)
    trace: float = setting(0.95, least=0, most=1)
    value_weight: float = setting(0.5, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.discount and self.baseline == "phase":
            raise IncompatibleError("The baseline 'phase' ignores later rewards; take discount=0, or baseline='value'.")

    @classmethod
    def usual(cls, game: GameSettings) -> Self:
        """Return the default settings for a game. With distractors, the entropy has a higher weight.

        With distractors, "none" is right in half of the games, and each stimulus only in a few. With the lower weight,
        the listener would end up deciding "none" in every game.
        """
        return cls(entropy=0.1) if game.distractors else cls()


@dataclass(frozen=True, eq=False)
class Sampled:
    """Sampled decisions in whole episodes: the training data of PPO.

    Attributes:
        drawn: the sampled decisions.
        log: log-probability of each decision when it was sampled.
        gain: normalized advantage of each decision.
    """

    drawn: Int[Tensor, "batch game"]
    log: Float[Tensor, "batch game"]
    gain: Float[Tensor, "batch game"]

    def take(self, rows: Int[Tensor, " some"], games: Games) -> Self:
        """Select episodes by index, cut to the number of games in `games`."""
        length = games.there.shape[1]
        return type(self)(**{f.name: getattr(self, f.name)[rows, :length] for f in fields(self)})


class EpisodeLearning(DealtTraining):
    """Training of an agent that decides in whole dealt episodes; subclasses deal episodes, and sample decisions.

    Args:
        model: the network.
        game: settings of the game or task.
        settings: settings of the training.
        seed: seed of the episodes and of the sampled decisions.
    """

    settings: DealtLearningSettings

    def __init__(self, model: nn.Module, game: Any, settings: DealtLearningSettings, seed: int) -> None:
        super().__init__(game, settings, seed, model.named_parameters(), {ALIGNMENT: settings.alignment_rate})
        self.model, self.practice = model, game
        self.random = torch.Generator().manual_seed(stream_key(seed, "decisions") % 2**63)

    def _weights(self) -> dict[str, nn.Module]:
        return {"model": self.model}

    def networks(self) -> dict[str, nn.Module]:
        """Return the listener's network."""
        return {"listener": self.model}

    def update(self) -> float:
        """Train on a batch of new episodes, and return the mean loss of the optimizer's steps."""
        settings, batch, losses = self.settings, self.batch(self.updates), []
        sampled = self._sample(batch) if settings.learner == "ppo" else None
        for _ in range(settings.epochs if sampled else 1):
            for rows in torch.randperm(len(batch), generator=self.random, device="cpu").split(settings.minibatch):
                some = batch[rows]
                loss = self._loss(some, None if sampled is None else sampled.take(rows, some))
                losses.append(self._step(loss, settings.warm_up, settings.clip_norm))
        self._end_update(batch)
        return sum(losses) / len(losses)

    @abstractmethod
    def _sample(self, games: Any) -> Sampled:
        """Sample the model's decisions in all games and compute their advantages."""

    @abstractmethod
    def _loss(self, games: Any, sampled: Sampled | None) -> Tensor:
        """Return the loss: PPO's for sampled decisions, otherwise the supervised loss."""

    def _ppo(self, games: Games, logs: Tensor, sampled: Sampled) -> Tensor:
        ratio = (dealt.log_of(logs, sampled.drawn) - sampled.log).exp()
        clipped = ratio.clamp(1 - self.settings.clip, 1 + self.settings.clip)
        objective = torch.minimum(ratio * sampled.gain, clipped * sampled.gain)
        return -(objective + self.settings.entropy * dealt.entropy(logs))[games.there].mean()


class DealtLearning(EpisodeLearning, GameTraining):
    """Training of a listener on dealt episodes, with a speaker that does not learn.

    Args:
        model: maps dealt games to the logits of decisions, [B, G, decisions].
        game: settings of the game.
        settings: settings of the training.
        seed: seed of the episodes and of the sampled decisions.
        speaker: a speaker that does not learn: its name, or a function that creates it.

    Raises:
        IncompatibleError: whole episodes of the game cannot be dealt.
    """

    def __init__(
        self,
        model: nn.Module,
        game: GameSettings,
        settings: DealtLearningSettings | None = None,
        seed: int = 0,
        speaker: str | Callable[[], Player] = "posdis",
    ) -> None:
        check_dealt(game)
        super().__init__(model, game, settings or DealtLearningSettings.usual(game), seed)
        self.practice, self._speaker = practice(game, self.settings.query), speaker

    def listener(self) -> Player:
        """Return a player with the listener in its current state."""
        return MemoryPlayer(cast(MemoryListener, self.model))

    def speaker(self) -> str | Player:
        """Return the speaker, or the name of a registered speaker."""
        return self._speaker if isinstance(self._speaker, str) else self._speaker()

    def read(self, episodes: int = 200, seed: int = 123, game: GameSettings | None = None) -> dict[str, float]:
        """Evaluate the listener's most likely decisions on new episodes, without training on them.

        Arguments as for `AgentTraining.read`. Returns the shares of right decisions, `zsct` (query) and `support`.
        """
        return read(self.model, game or self.game, self.speaker(), episodes, seed)

    def _deal(self, seeds: range) -> DealtGames:
        return deal_games(self.practice, seeds, self.speaker())

    def _loss(self, games: DealtGames, sampled: Sampled | None) -> Tensor:
        logs = decide(self.model, games)
        return self._supervised(games, logs) if sampled is None else self._ppo(games, logs, sampled)

    def _supervised(self, games: DealtGames, logs: Tensor) -> Tensor:
        return F.nll_loss(logs[games.there], games.answers[games.there])

    @torch.no_grad()
    def _sample(self, games: DealtGames) -> Sampled:
        logs, drawn = self._drawn(games)
        gain = dealt.less_phase_mean(dealt.rewards(drawn == games.answers, games), games)
        return Sampled(drawn, dealt.log_of(logs, drawn), dealt.normalised(gain, games))

    def _drawn(self, games: DealtGames) -> tuple[Tensor, Tensor]:
        """Sample decisions; return the log-probabilities of all decisions, and the sampled decisions."""
        logs = decide(self.model, games)
        drawn = torch.multinomial(logs.flatten(0, 1).exp(), 1, generator=self.random).view(logs.shape[:2])
        return logs, drawn


@torch.no_grad()
def read(
    model: nn.Module, game: GameSettings, speaker: str | Player = "posdis", episodes: int = 200, seed: int = 123
) -> dict[str, float]:
    """Evaluate a model's most likely decisions: accuracies as in `evaluate`, averaged over episodes.

    Args:
        model: maps dealt games to logits of decisions.
        game: settings of the game.
        speaker: a speaker that does not learn.
        episodes: number of episodes.
        seed: seed of the evaluation.

    Returns:
        The accuracies `zsct`, in the query, and `support`.
    """
    games, parts = deal_games(game, episode_seeds(seed, episodes), speaker), []
    for rows in torch.arange(len(games), device="cpu").split(READ_AT_ONCE):
        some = games[rows]
        parts.append(dealt.phase_means(decide(model, some).argmax(-1) == some.answers, some))
    return dealt.accuracies(torch.cat(parts, 1))
