"""Train a listener with a core on dealt episodes: recurrent PPO, or supervised, the upper reference of a core."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from icy.core.checks import real_number
from icy.core.errors import IncompatibleError, unknown
from icy.s2b.agents.dealt import DealtGames
from icy.s2b.agents.memories.dealt_learning import DealtLearning, DealtLearningSettings, Tried
from icy.s2b.agents.rewards import generalised_advantages, log_of, normalised, rewards
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings

from .listener import CoreListener

BASELINES = ("phase", "value")


@dataclass(frozen=True)
class CoreLearningSettings(DealtLearningSettings):
    """Settings of the training of a listener with a core; see DealtLearningSettings for the others.

    Attributes:
        baseline: what PPO expects of a decision: "phase": the mean of its phase; "value": what the network says of the
            state, which it learns as well.
        discount: discount of later rewards per decision in PPO, with the baseline "value".
        trace: how far rewards count rather than the values of later states (lambda), likewise.
        value_weight: weight of the squared error of values.
    """

    baseline: str = "phase"
    discount: float = 0.0
    trace: float = 0.95
    value_weight: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.baseline not in BASELINES:
            raise unknown("baseline", self.baseline, BASELINES)
        for name in ("discount", "trace"):
            real_number(f"setting {name}", getattr(self, name), most=1)
        real_number("setting value_weight", self.value_weight)
        if self.discount and self.baseline == "phase":
            raise IncompatibleError("The mean of a phase knows nothing of later rewards; take discount=0, or 'value'.")


@dataclass(frozen=True)
class SupervisedCoreSettings(CoreLearningSettings):
    """The same with defaults for supervised learning: small batches, of which cores learn more a game."""

    learner: str = "supervised"
    updates: int = 6000
    episodes: int = 16
    minibatch: int = 16
    learning_rate: float = 2e-3
    decay: float = 0.5


@dataclass(frozen=True, eq=False)
class Valued(Tried):
    """Decisions that were tried, with what they returned, from which values are learned.

    Attributes:
        returned: the return of each decision.
    """

    returned: Float[Tensor, "batch game"]


class CoreLearning(DealtLearning):
    """A listener with a core in training; see DealtLearning.

    Args:
        model: the listener.
        game: settings of the game.
        settings: how to train.
        **given: seed and speaker, see DealtLearning.
    """

    model: CoreListener
    settings: CoreLearningSettings

    def __init__(
        self, model: CoreListener, game: GameSettings, settings: CoreLearningSettings | None = None, **given: Any
    ) -> None:
        super().__init__(model, game, settings or CoreLearningSettings.usual(game), **given)

    def listener(self) -> Player:
        """Return the listener as it is now, to play."""
        return self.model.player()

    def _decided(self, games: DealtGames) -> tuple[Tensor, Tensor]:
        """Return the scores of whole episodes, [B, G, decisions + 1], and decisions that are drawn by them."""
        if self.model.own:
            return self.model.play(games, self.random)
        scores = self.model.scored(games)
        chances = scores[..., :-1].softmax(-1).flatten(0, 1)
        return scores, torch.multinomial(chances, 1, generator=self.random).view(scores.shape[:2])

    def _drawn(self, games: DealtGames) -> tuple[Tensor, Tensor]:
        scores, drawn = self._decided(games)
        return scores[..., :-1].log_softmax(-1), drawn

    @torch.no_grad()
    def _tried(self, games: DealtGames) -> Tried:
        """Decide all games at random as the model would, and weigh the rewards."""
        if self.settings.baseline == "phase":
            return super()._tried(games)
        scores, drawn = self._decided(games)
        paid, values = rewards(drawn == games.answers, games), scores[..., -1]
        gain = generalised_advantages(paid, values, games.there, self.settings.discount, self.settings.trace)
        log = log_of(scores[..., :-1].log_softmax(-1), drawn)
        return Valued(drawn, log, normalised(gain - gain[games.there].mean(), games), gain + values)

    def _loss(self, games: DealtGames, tried: Tried | None) -> Tensor:
        """Return the loss of some episodes; networks put episodes of like length together themselves."""
        scores = self.model.scored(games if tried is None else replace(games, decided=tried.drawn))
        logs = scores[..., :-1].log_softmax(-1)
        if tried is None:
            return self._supervised(games, logs)
        loss = self._ppo(games, logs, tried)
        if isinstance(tried, Valued):
            error = (scores[..., -1] - tried.returned)[games.there].square().mean()
            loss = loss + self.settings.value_weight * error
        return loss
