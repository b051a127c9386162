"""Trainings of the recall task: the papers' agents by R2D2, and icy's attention memory by PPO."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Self, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from icy.core.fields import setting
from icy.core.registry import LISTENER
from icy.core.streams import stream_key
from icy.s2b.agents.dealt import of_like_length
from icy.s2b.agents.memories.attention import NUMBER, TOKEN, Lookup, MemorySettings, features
from icy.s2b.agents.memories.dealt_learning import DealtLearning, DealtLearningSettings, Sampled
from icy.s2b.agents.r2d2.agent import Agent, Step
from icy.s2b.agents.r2d2.r2d2_learning import R2D2Learning
from icy.s2b.agents.rewards import accuracies, less_phase_mean, log_of, normalised, phase_means
from icy.s2b.agents.schedule import EpisodeBatches, first_episode, grouped
from icy.s2b.evaluation import episode_seeds
from icy.s2b.players.interface import Player
from icy.s2b.recall import BatchedRecall, RecallSettings
from icy.s2b.turn import Turn

from .table import RecallTable, recall_scores

GROUPS = 8  # number of groups of episodes with similar length


class RecallR2D2(R2D2Learning):
    """Training of an agent by R2D2 in the recall task; see R2D2Learning."""

    def _make_game(self) -> RecallTable:
        return RecallTable(cast(Any, self.game), self.settings.actors, autoreset=True)

    def _make_partner(self) -> None:
        return None

    def _acts(self, turn: Turn, done: list[tuple[Agent, Step]]) -> tuple[Any, Any, Any]:
        ((agent, step),) = done
        return None, agent.actions.taken(step.chosen[LISTENER].numpy())[1], None

    def speaker(self) -> str:
        """Return "", because the task has no speaker."""
        return ""

    def read(self, episodes: int = 200, seed: int = 123, game: Any = None) -> dict[str, float]:
        """Evaluate the best answers; see `recall_scores`."""
        return recall_scores(self.listener(), cast(Any, game or self.game), episodes, seed)


# -- the attention memory ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RecallGames:
    """The games of B episodes as tensors; see `icy.s2b.recall.RecallDeal`. `query` marks the last shot."""

    numbers: Float[Tensor, "batch game number"]
    dimension: Int[Tensor, "batch game"]
    answers: Int[Tensor, "batch game"]
    there: Bool[Tensor, "batch game"]
    query: Bool[Tensor, "batch game"]

    @classmethod
    def deal(cls, settings: RecallSettings, seeds: Iterable[int]) -> Self:
        """Deal one episode per seed."""
        numbers = [int(seed) for seed in seeds]
        task = BatchedRecall(settings, episodes=len(numbers))
        task.reset(seeds=numbers)
        dealt = task.dealt()
        return cls(*(torch.as_tensor(getattr(dealt, f.name)) for f in fields(dealt)))

    def __len__(self) -> int:
        return len(self.there)

    def __getitem__(self, which: Any) -> Self:
        return self.take(which)

    def take(self, which: Any) -> Self:
        """Select episodes by index or mask, and drop unnecessary padding."""
        games = int(self.there[which].sum(1).max())
        return replace(self, **{f.name: getattr(self, f.name)[which][:, :games] for f in fields(self)})

    def steps(self, rounds: int) -> int:
        """Return the number of steps in all games. A game has two steps."""
        return 2 * int(self.there.sum())


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


class RecallMemoryLearning(DealtLearning):
    """Training of the recall task's attention memory from the rewards of its own answers (PPO).

    Args:
        model: the attention memory.
        task: settings of the task.
        settings: settings of the training.
        seed: seed of the episodes and of the sampled answers.
    """

    settings: RecallLearningSettings
    model: RecallMemory

    def __init__(self, model: RecallMemory, task: RecallSettings, settings: RecallLearningSettings, seed: int) -> None:
        self.model, self.task, self.settings, self.seed = model, task, settings, seed
        self.game = self.practice = cast(Any, task)
        self.updates = self._observations = 0
        self.optimizer = torch.optim.Adam(grouped(model.named_parameters(), {}), settings.learning_rate)
        self.random = torch.Generator().manual_seed(stream_key(seed, "decisions") % 2**63)
        fewer = [n for n in (task.games_per_shot, settings.games_per_shot) if n is not None]
        self._shorter = replace(task, games_per_shot=min(fewer, default=None))
        self._batches = EpisodeBatches(first_episode(seed), settings.episodes, self._deal)

    def _deal(self, seeds: range) -> Any:
        return (RecallGames.deal(self._shorter, seeds),)

    def listener(self) -> Player:
        """Raise NotImplementedError: the memory answers whole episodes and is not a player."""
        raise NotImplementedError

    def speaker(self) -> str:
        """Return "", because the task has no speaker."""
        return ""

    @torch.no_grad()
    def _sample(self, games: Any) -> Sampled:
        drawn, logs = self.model.play(games, self.random)
        right = drawn == games.answers
        paid = torch.where(right, self.task.right, self.task.wrong) * games.there
        return Sampled(drawn, log_of(logs, drawn), normalised(less_phase_mean(paid, games), games))

    def _loss(self, games: Any, sampled: Sampled | None) -> Tensor:
        assert sampled is not None
        return self._ppo(games, self.model(games, sampled.drawn).log_softmax(-1), sampled)

    @torch.no_grad()
    def read(self, episodes: int = 200, seed: int = 123, game: Any = None) -> dict[str, float]:
        """Evaluate the most likely answers; see `recall_scores`."""
        games = RecallGames.deal(game or self.task, episode_seeds(seed, episodes))
        right = of_like_length(lambda some: self._right(cast(Any, some)), cast(Any, games), GROUPS)
        return accuracies(phase_means(right, cast(Any, games)))

    def _right(self, games: RecallGames) -> Bool[Tensor, "batch game"]:
        return self.model.play(games)[0] == games.answers
