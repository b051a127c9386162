"""Train a listener with a core on dealt episodes: recurrent PPO, or supervised, the upper reference of a core."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from icy.core.errors import IncompatibleError, InvalidSettingError, unknown
from icy.s2b.game import REWARDS
from icy.s2b.players.base import Player
from icy.s2b.settings import GameSettings

from .dealt import DealtGames
from .learning import DealtLearning, LearningSettings, _Tried
from .recurrent import CoreListener, CorePlayer
from .advantages import advantages

BASELINES = ("phase", "value")
SUPERVISED: Mapping[str, Any] = {
    "learner": "supervised", "updates": 6000, "episodes": 16, "minibatch": 16, "learning_rate": 2e-3, "decay": 0.5
}  # fmt: skip


@dataclass(frozen=True)
class CoreLearningSettings(LearningSettings):
    """Settings of the training of a listener with a core; see LearningSettings for the others.

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

    @classmethod
    def supervised(cls, **changes: Any) -> "CoreLearningSettings":
        """Return settings of supervised learning, with changes: small batches, of which cores learn more a game."""
        return cls(**{**SUPERVISED, **changes})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.baseline not in BASELINES:
            raise unknown("baseline", self.baseline, BASELINES)
        for name in ("discount", "trace"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSettingError(f"{name} is a factor from 0 to 1, not {getattr(self, name)}.")
        if self.discount and self.baseline == "phase":
            raise IncompatibleError("The mean of a phase knows nothing of later rewards; take discount=0, or 'value'.")


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
        super().__init__(model, game, settings or CoreLearningSettings(), **given)

    def listener(self) -> Player:
        """Return the listener as it is now, to play."""
        return CorePlayer(self.model)

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
    def _tried(self, games: DealtGames) -> _Tried:
        """Decide all games at random as the model would, and weigh the rewards."""
        if self.settings.baseline == "phase":
            return super()._tried(games)
        scores, drawn = self._decided(games)
        paid = torch.tensor(REWARDS)[games.query.long(), (drawn == games.answers).long()]
        gain = advantages(paid, scores[..., -1], games.there, self.settings.discount, self.settings.trace)
        known = gain[games.there]
        log = scores[..., :-1].log_softmax(-1).gather(-1, drawn[..., None]).squeeze(-1)
        return _Valued(drawn, log, (gain - known.mean()) / (known.std() + 1e-6), gain + scores[..., -1])

    def _loss(self, games: DealtGames, tried: _Tried | None) -> Tensor:
        if not isinstance(tried, _Valued):
            return super()._loss(games if tried is None else replace(games, decided=tried.drawn), tried)
        scores = self.model.scored(replace(games, decided=tried.drawn))
        error = (scores[..., -1] - tried.returned)[games.there].square().mean()
        return self._ppo(games, scores[..., :-1].log_softmax(-1), tried) + self.settings.value_weight * error


@dataclass(frozen=True, eq=False)
class _Valued(_Tried):
    """Decisions that were tried, and what they returned, from which values are learned."""

    returned: Tensor

    def take(self, rows: Tensor, games: DealtGames) -> "_Valued":
        """Return those of some episodes, cut to the length of their games."""
        tried = super().take(rows, games)
        return _Valued(tried.drawn, tried.log, tried.gain, self.returned[rows, : games.there.shape[1]])
