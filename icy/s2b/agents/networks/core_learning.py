"""Train a listener with a core on dealt episodes, by recurrent PPO or supervised (an upper reference)."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from icy.core.errors import IncompatibleError
from icy.core.fields import setting
from icy.s2b.agents.dealt import DealtGames
from icy.s2b.agents.memories.dealt_learning import DealtLearning, DealtLearningSettings, Sampled
from icy.s2b.agents.rewards import generalized_advantages, log_of, normalised, rewards
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings

from .listener import CoreListener


@dataclass(frozen=True)
class CoreLearningSettings(DealtLearningSettings):
    """Settings for training a listener with a core. They add to DealtLearningSettings.

    Attributes:
        baseline: baseline of PPO: "phase": the mean reward of the phase; "value": a state value that the network
            learns.
        discount: discount of later rewards per decision in PPO, with the baseline "value".
        trace: lambda of generalized advantage estimation, with the baseline "value".
        value_weight: weight of the squared error of values.
    """

    baseline: str = setting("phase", among=("phase", "value"))
    discount: float = setting(0.0, least=0, most=1)
    trace: float = setting(0.95, least=0, most=1)
    value_weight: float = setting(0.5, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.discount and self.baseline == "phase":
            raise IncompatibleError("The baseline 'phase' ignores later rewards; take discount=0, or baseline='value'.")


@dataclass(frozen=True)
class SupervisedCoreSettings(CoreLearningSettings):
    """Settings with defaults for supervised learning. Batches are small, because cores then learn more per game."""

    learner: str = setting("supervised", among=("ppo", "supervised"))
    updates: int = setting(6000, least=1)
    episodes: int = setting(16, least=1)
    minibatch: int = setting(16, least=1)
    learning_rate: float = setting(2e-3, above=0)
    decay: float = setting(0.5, least=0, most=1)


@dataclass(frozen=True, eq=False)
class Valued(Sampled):
    """Sampled decisions with their returns, the targets of the state values.

    Attributes:
        returned: the return of each decision.
    """

    returned: Float[Tensor, "batch game"]


class CoreLearning(DealtLearning):
    """Training of a listener with a core on dealt episodes; see DealtLearning.

    Args:
        model: the listener.
        game: settings of the game.
        settings: settings of the training.
        **options: seed and speaker, see DealtLearning.
    """

    model: CoreListener
    settings: CoreLearningSettings

    def __init__(
        self, model: CoreListener, game: GameSettings, settings: CoreLearningSettings | None = None, **options: Any
    ) -> None:
        super().__init__(model, game, settings or CoreLearningSettings.usual(game), **options)

    def listener(self) -> Player:
        """Return a player with the listener in its current state."""
        return self.model.player()

    def _decided(self, games: DealtGames) -> tuple[Tensor, Tensor]:
        """Sample decisions; return the scores of whole episodes, [B, G, decisions + 1], and the decisions, [B, G]."""
        if self.model.own:
            return self.model.play(games, self.random)
        scores = self.model.scored(games)
        chances = scores[..., :-1].softmax(-1).flatten(0, 1)
        return scores, torch.multinomial(chances, 1, generator=self.random).view(scores.shape[:2])

    def _drawn(self, games: DealtGames) -> tuple[Tensor, Tensor]:
        scores, drawn = self._decided(games)
        return scores[..., :-1].log_softmax(-1), drawn

    @torch.no_grad()
    def _sample(self, games: DealtGames) -> Sampled:
        """Sample the model's decisions in all games and compute their advantages."""
        if self.settings.baseline == "phase":
            return super()._sample(games)
        scores, drawn = self._decided(games)
        paid, values = rewards(drawn == games.answers, games), scores[..., -1]
        gain = generalized_advantages(paid, values, games.there, self.settings.discount, self.settings.trace)
        log = log_of(scores[..., :-1].log_softmax(-1), drawn)
        return Valued(drawn, log, normalised(gain - gain[games.there].mean(), games), gain + values)

    def _loss(self, games: DealtGames, sampled: Sampled | None) -> Tensor:
        """Return the loss; see DealtLearning. The listener itself groups episodes of similar length."""
        scores = self.model.scored(games if sampled is None else replace(games, decided=sampled.drawn))
        logs = scores[..., :-1].log_softmax(-1)
        if sampled is None:
            return self._supervised(games, logs)
        loss = self._ppo(games, logs, sampled)
        if isinstance(sampled, Valued):
            error = (scores[..., -1] - sampled.returned)[games.there].square().mean()
            loss = loss + self.settings.value_weight * error
        return loss
