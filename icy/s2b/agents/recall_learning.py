"""Agents of the recall task: trainings by R2D2 and, of icy's attention memory, by PPO; scores without memory."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from icy.core.registry import LISTENER
from icy.s2b.evaluation import episode_seeds
from icy.s2b.recall import BatchedRecall, RecallDeal, RecallSettings, RecallTurn

from .dealt import Games, accuracies, less_phase_mean, log_of, normalised, of_like_length, phase_means
from .memories.attention import NUMBER, TOKEN, Lookup, MemorySettings, features
from .memories.dealt_learning import DealtLearningSettings, EpisodeLearning, Sampled
from .r2d2.r2d2_learning import R2D2, R2D2Settings

# -- trainings of the recall task --------------------------------------------------------------------------------------


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

    def _play(self, turn: RecallTurn) -> RecallTurn:
        (agent,) = self.agents
        turn = self._batched.step(agent.chosen[LISTENER][:, 0].numpy())  # the options of a network are the answers
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
        dealt = _deal(settings, seeds)
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


RECALL = DealtLearningSettings(updates=300, episodes=64, learning_rate=4e-3)  # the defaults of this training


class RecallMemoryLearning(EpisodeLearning):
    """Training of the recall task's attention memory from the rewards of its own answers (PPO).

    Args:
        model: the attention memory.
        task: settings of the task.
        settings: settings of the training.
        seed: seed of the episodes and of the sampled answers.
    """

    game: RecallSettings
    model: RecallMemory

    def __init__(self, model: RecallMemory, task: RecallSettings, settings: DealtLearningSettings, seed: int) -> None:
        super().__init__(model, task, settings, seed)
        fewer = [n for n in (task.games_per_shot, settings.games_per_shot) if n is not None]
        self._shorter = replace(task, games_per_shot=min(fewer, default=None))

    @property
    def steps_of_game(self) -> int:
        """Number of steps of a game: a stimulus and a question."""
        return 2

    def _deal(self, seeds: range) -> RecallGames:
        return RecallGames.deal(self._shorter, seeds)

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


# -- floors -----------------------------------------------------------------------------------------------------------


TRAINING_EPISODES, TRAINING_SEED = 4000, 77  # for estimating the best answer to a number; not used in evaluations
BINS = 400  # bins of numbers from -1 to 1


@functools.cache
def recall_floors(settings: RecallSettings, episodes: int = 250, seed: int = 123) -> dict[str, float]:
    """Return the accuracies in the last shot of two agents that do not remember earlier games.

    Args:
        settings: settings of the task.
        episodes: number of episodes.
        seed: seed of the evaluation, see `icy.s2b.evaluate`.

    Returns:
        `no_memory`: an agent that does not remember the current stimulus either, and always gives the most frequent
            right answer; `one_game`: an agent that remembers the current stimulus, and gives the answer that is most
            often right for the stimulus's number in the queried dimension.

    Example:
        >>> floors = recall_floors(RecallSettings(representation="ohe"), episodes=50)
        >>> round(floors["no_memory"], 2), floors["one_game"]
        (0.34, 1.0)
    """
    evaluation = _deal(settings, episode_seeds(seed, episodes))
    constant = np.stack([evaluation.answers == value for value in range(settings.most)])
    floors = {"no_memory": float(_mean(constant, evaluation).max())}
    if settings.representation == "ohe":
        return floors | {"one_game": 1.0}
    training = _deal(replace(settings, shots=1), episode_seeds(TRAINING_SEED, TRAINING_EPISODES))
    counts = np.zeros((BINS, settings.most))
    weight = (training.there / training.there.sum(1, keepdims=True))[training.there]
    np.add.at(counts, (_bins(training)[training.there], training.answers[training.there]), weight)
    right = counts.argmax(1)[_bins(evaluation)] == evaluation.answers
    return floors | {"one_game": float(_mean(right, evaluation))}


def _deal(settings: RecallSettings, seeds: Iterable[int]) -> RecallDeal:
    """Return all games of one episode per seed."""
    numbers = [int(seed) for seed in seeds]
    task = BatchedRecall(settings, episodes=len(numbers))
    task.reset(seeds=numbers)
    return task.dealt()


def _bins(dealt: RecallDeal) -> np.ndarray:
    return np.clip((dealt.numbers[..., 0] + 1) * BINS / 2, 0, BINS - 1).astype(np.int64)


def _mean(right: np.ndarray, dealt: RecallDeal) -> np.ndarray:
    """Return the fraction of right answers in the last shot, averaged over episodes."""
    return np.asarray(((right & dealt.last).sum(-1) / dealt.last.sum(-1)).mean(-1))
