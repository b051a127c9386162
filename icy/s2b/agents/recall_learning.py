"""Trainings of the recall task: the papers' agents by R2D2, and icy's attention memory by PPO."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from icy.core.fields import setting
from icy.core.registry import LISTENER
from icy.s2b.evaluation import episode_seeds
from icy.s2b.recall import BatchedRecall, RecallSettings, RecallTurn

from .dealt import Games, of_like_length
from .memories.attention import NUMBER, TOKEN, Lookup, MemorySettings, features
from .memories.dealt_learning import DealtLearningSettings, EpisodeLearning, Sampled
from .r2d2.agent import Agent, Step
from .r2d2.r2d2_learning import R2D2
from .r2d2.r2d2_settings import R2D2Settings
from .rewards import accuracies, less_phase_mean, log_of, normalised, phase_means

READ_AT_ONCE = 250  # episodes in a batch of the evaluation by R2D2


class RecallR2D2(R2D2):
    """Training of an agent by R2D2 in the recall task.

    Args:
        task: settings of the task.
        settings: settings of the training.
        seed: seed of weights, episodes and random choices.
    """

    game: RecallSettings

    def __init__(self, task: RecallSettings, settings: R2D2Settings, seed: int) -> None:
        super().__init__(task, task.sizes, settings, seed)

    def _make_source(self) -> BatchedRecall:
        return BatchedRecall(self.game, episodes=self.settings.actors, autoreset=True)

    def _play(self, turn: RecallTurn, done: list[tuple[Agent, Step]]) -> RecallTurn:
        ((_, step),) = done
        turn = self._batched.step(step.chosen[LISTENER][:, 0].numpy())  # the options of a network are the answers
        return turn

    def read(self, episodes: int = 200, seed: int = 123, game: RecallSettings | None = None) -> dict[str, float]:
        """Evaluate the best answers: `zsct`, the accuracy in the last shot, and `support`, in the first.

        With a reconstruction loss, also return `reconstructed`, the fraction of stimulus components that the head
        predicts from the core's state.
        """
        (player,), seeds = self.players, episode_seeds(seed, episodes)
        scores: dict[str, list[float]] = {"zsct": [], "support": [], "reconstructed": []}
        for begin in range(0, episodes, READ_AT_ONCE):
            some = seeds[begin : begin + READ_AT_ONCE]
            task = BatchedRecall(game or self.game, episodes=len(some))
            turn = task.reset(seeds=some)
            player.start(len(some))
            while not turn.done.all():
                player.act(turn.seen_by())
                turn = task.step(player.choices[player.steps][:, 0].numpy())
            scores["zsct"] += task.accuracy().tolist()
            scores["support"] += task.accuracy(0).tolist()
            if player.reconstruction is not None:
                scores["reconstructed"] += [player.reconstructed] * len(some)
        return {name: float(np.mean(values)) for name, values in scores.items() if values}


# -- the attention memory ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class RecallGames(Games):
    """The games of B episodes as tensors; see `icy.s2b.recall.RecallDeal`. `query` marks the last shot."""

    numbers: Float[Tensor, "batch game number"]
    dimension: Int[Tensor, "batch game"]

    @classmethod
    def deal(cls, settings: RecallSettings, seeds: Iterable[int]) -> Self:
        """Deal one episode per seed."""
        numbers = [int(seed) for seed in seeds]
        task = BatchedRecall(settings, episodes=len(numbers))
        task.reset(seeds=numbers)
        dealt = task.dealt()
        parts = {f.name: torch.as_tensor(getattr(dealt, f.name)) for f in fields(dealt)}
        return cls(query=parts.pop("last"), **parts)


class RecallMemory(nn.Module):
    """Attention memory of pairs of a number and an answer, each with the result of the answer.

    The memory has the inputs of the listener's memory of pairs: the stimulus's number in the queried dimension, and all
    earlier numbers of this dimension with the memory's answers and their results. It does not know the number of values
    of a dimension or the value of a number.

    Args:
        task: settings of the task.
        settings: settings of the memory; `kind` is "pairs".
    """

    def __init__(self, task: RecallSettings, settings: MemorySettings | None = None) -> None:
        super().__init__()
        self.task, self.settings = task, settings or MemorySettings()
        self.raw = task.representation == "ohe" or not self.settings.waves
        number = task.width // task.dimensions if self.raw else NUMBER
        self.embedding = nn.Embedding(task.most, TOKEN)
        self.lookup = Lookup(number + TOKEN + 1, self.settings)

    def _pairs(self, numbers: Tensor, answers: Tensor, result: Tensor) -> Tensor:
        """Create entries from numbers [..., w], answers [...] and results [...] (1 right, -1 wrong, 0 unknown)."""
        encoded = numbers if self.raw else features(numbers[..., 0])
        return torch.cat([encoded, self.embedding(answers), result[..., None]], -1)

    def _queries(self, games: RecallGames) -> Float[Tensor, "batch game answer entry"]:
        shape = (*games.answers.shape, self.task.most)
        each = torch.arange(self.task.most, device=games.answers.device).expand(shape)
        numbers = games.numbers[:, :, None].expand(*shape, -1)
        return self._pairs(numbers, each, torch.zeros(shape, device=each.device, dtype=torch.float32))

    def _stored(self, games: RecallGames, decided: Tensor) -> Float[Tensor, "batch game entry"]:
        result = torch.where(decided == games.answers, 1.0, -1.0)
        return self._pairs(games.numbers, decided, result)

    def forward(self, games: RecallGames, decided: Int[Tensor, "batch game"]) -> Float[Tensor, "batch game answer"]:
        """Return the logits of all answers in whole episodes, given the answers to earlier games (`decided`)."""
        count = games.there.shape[1]
        same = games.dimension[:, :, None] == games.dimension[:, None]
        known = same & torch.ones(count, count, dtype=torch.bool, device=same.device).tril(-1)
        queries = self._queries(games).flatten(1, 2)
        scores = self.lookup(queries, self._stored(games, decided), known.repeat_interleave(self.task.most, 1))
        logits: Tensor = scores.unflatten(1, (count, self.task.most))
        return logits

    @torch.no_grad()
    def play(
        self, games: RecallGames, random: torch.Generator | None = None
    ) -> tuple[Int[Tensor, "batch game"], Float[Tensor, "batch game answer"]]:
        """Answer game by game; answers are sampled with `random`, or the most likely if it is None.

        Returns:
            The answers, and the log-probabilities of all possible answers.
        """
        count = games.there.shape[1]
        decided, queries, logs = torch.zeros_like(games.answers), self._queries(games), []
        stored = torch.zeros_like(queries[:, :, 0])
        for now in range(count):
            known = games.dimension[:, :now] == games.dimension[:, now : now + 1]
            known = known[:, None].expand(-1, self.task.most, -1)
            logs.append(self.lookup(queries[:, now], stored[:, :now], known).log_softmax(-1))
            if random is None:
                decided[:, now] = logs[-1].argmax(-1)
            else:
                decided[:, now] = torch.multinomial(logs[-1].exp(), 1, generator=random)[:, 0]
            stored[:, now] = self._stored(games, decided)[:, now]
        return decided, torch.stack(logs, 1)


@dataclass(frozen=True)
class RecallLearningSettings(DealtLearningSettings):
    """Settings for training the attention memory. They add to DealtLearningSettings.

    Attributes:
        games_per_shot: largest number of games in a shot of a training episode; None for all stimuli of the space.
    """

    updates: int = setting(300, least=1)
    episodes: int = setting(64, least=1)
    learning_rate: float = setting(4e-3, above=0)
    games_per_shot: int | None = setting(24, least=1)

    @classmethod
    def usual(cls, game: Any) -> Self:
        """Return the default settings, which do not depend on the task."""
        return cls()


class RecallMemoryLearning(EpisodeLearning):
    """Training of the recall task's attention memory from the rewards of its own answers (PPO).

    Args:
        model: the attention memory.
        task: settings of the task.
        settings: settings of the training.
        seed: seed of the episodes and of the sampled answers.
    """

    game: RecallSettings
    settings: RecallLearningSettings
    model: RecallMemory

    def __init__(self, model: RecallMemory, task: RecallSettings, settings: RecallLearningSettings, seed: int) -> None:
        super().__init__(model, task, settings, seed)
        fewer = [n for n in (task.games_per_shot, settings.games_per_shot) if n is not None]
        self._shorter = replace(task, games_per_shot=min(fewer, default=None))

    @property
    def steps_of_game(self) -> int:
        """Number of steps of a game: a stimulus and a question."""
        return 2

    def _deal(self, seeds: range) -> tuple[RecallGames]:
        return (RecallGames.deal(self._shorter, seeds),)

    @torch.no_grad()
    def _sample(self, games: RecallGames) -> Sampled:
        drawn, logs = self.model.play(games, self.random)
        paid = torch.where(drawn == games.answers, self.game.right, self.game.wrong) * games.there
        return Sampled(drawn, log_of(logs, drawn), normalised(less_phase_mean(paid, games), games))

    def _loss(self, games: RecallGames, sampled: Sampled | None) -> Tensor:
        assert sampled is not None
        return self._ppo(games, self.model(games, sampled.drawn).log_softmax(-1), sampled)

    @torch.no_grad()
    def read(self, episodes: int = 200, seed: int = 123, game: RecallSettings | None = None) -> dict[str, float]:
        """Evaluate the most likely answers: `zsct`, the accuracy in the last shot, and `support`, in the first."""
        games = RecallGames.deal(game or self.game, episode_seeds(seed, episodes))
        right = of_like_length(lambda some: self.model.play(some)[0] == some.answers, games)
        return accuracies(phase_means(right, games))
