"""Agents of the recall task: trainings by R2D2 and, of icy's attention memory, by PPO; tasks and jobs."""

import functools
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from icy.core.entry import CORE
from icy.core.errors import InvalidSettingError
from icy.core.fields import changed_fields, checked, setting
from icy.core.registry import LISTENER, registry
from icy.core.streams import stream_key
from icy.core.text import counted
from icy.core.types import Choices
from icy.records.record import Record
from icy.s2b.evaluation import episode_seeds
from icy.s2b.recall import BatchedRecall, RecallDeal, RecallSettings, RecallTurn
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate

from .agent_job import (
    FINAL_SEED,
    FLOOR_EPISODES,
    AgentJob,
    AgentTask,
    LearningMethod,
    check_run,
    exact_name,
    learner_options,
    memory_settings,
    network_settings,
    run_options,
)
from .dealt import Games, accuracies, less_phase_mean, log_of, normalised, of_like_length, phase_means
from .memories.attention import NUMBER, TOKEN, Lookup, MemorySettings, features
from .memories.dealt_learning import DealtLearningSettings, EpisodeLearning, Sampled
from .networks.network import ReconstructionSettings
from .r2d2.agent import Agent, Step
from .r2d2.r2d2_learning import PRESETS as R2D2_PRESETS
from .r2d2.r2d2_learning import R2D2, R2D2Settings
from .saved_networks import Weights, restored
from .spec import RecallSpec

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


# -- jobs that train agents of the recall task: one task with several seeds --------------------------------------------


MEMORY = "pairs"
OBSERVATIONS = 1_000_000  # as in the authors' scripts; the papers do not give the number
# Every learning agent of the papers has the reconstruction loss (MetaRG22 and MetaRG24, section 4).
PRESETS = MappingProxyType(
    {
        name: replace(settings, observations=OBSERVATIONS, reconstruction=ReconstructionSettings())
        for name, settings in {**R2D2_PRESETS, "default": R2D2_PRESETS["metarg22"]}.items()
    }
)
TRAINING_EPISODES, TRAINING_SEED = 4000, 77  # for estimating the best answer to a number; not used in evaluations
BINS = 400  # bins of numbers from -1 to 1


@dataclass(frozen=True, kw_only=True)
class RecallTask(AgentTask):
    """Everything except the seed that can change the results of a training in the recall task; see AgentTask.

    The field `game` has the settings of the task.
    """

    speaker: str = ""

    @property
    def how(self) -> LearningMethod:
        """The learning method."""
        return LEARNERS[self.learner]

    def game_settings(self) -> Any:
        """Return the settings of the task."""
        return RecallSettings(**checked(RecallSettings, self.game, "setting of the recall task"))


def make_memory(task: AgentTask, seed: int) -> RecallMemoryLearning:
    """Create a task's training of the attention memory by PPO."""
    game: Any = task.game_settings()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(seed, "weights") % 2**63)
        model = RecallMemory(game, memory_settings(task))
    settings: RecallLearningSettings = task.learner_settings()
    return RecallMemoryLearning(model, game, settings, seed)


def make_r2d2(task: AgentTask, seed: int) -> RecallR2D2:
    """Create a task's training of a core by R2D2."""
    settings, game = task.learner_settings(), task.game_settings()
    network = network_settings(task, settings.network)
    return RecallR2D2(game, replace(settings, network=network), seed)


LEARNERS = {
    "ppo": LearningMethod(
        make_memory, RecallLearningSettings, {"learner": "ppo"}, ("query", "alignment_rate"), cores=False
    ),
    "r2d2": LearningMethod(
        make_r2d2, R2D2Settings, {"players": "listener", "sad": False}, ("network", "speaker", "shared"), PRESETS,
        memories=False,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class RecallJob(AgentJob):
    """A job that trains one agent of the recall task with several seeds; see AgentJob."""

    kind = "recall"
    early = "first_shot"

    def of_game(self, replicate: Replicate) -> tuple[Choices, Choices]:
        """Return the stimuli, and the settings of the task that differ from their defaults."""
        return {"stimuli": replicate.condition}, _changes(self.task.game_settings())

    def floors(self) -> dict[str, float]:
        """Return the accuracies of guesses, and of agents that do not remember earlier games."""
        task: RecallSettings = self.task.game_settings()
        return {"chance": 1 / task.most, **recall_floors(task, FLOOR_EPISODES, FINAL_SEED)}

    def summary(self, record: Record) -> str:
        """Return a short text with the result of a replicate."""
        return f"second shot {record['accuracy']:.3f} after {counted(record['steps'], 'update')}"


def _changes(task: RecallSettings) -> Choices:
    """Return the shortest description of the task: a `compat`, if any, and the settings that differ from it."""
    candidates = []
    for compat in (None, *RecallSettings.compats):
        usual = RecallSettings.of(compat=compat, representation=task.representation, most=task.most)
        changed = {f"task.{name}": value for name, value in changed_fields(task, usual).items()}
        changed |= {} if task.most == RecallSettings.most else {"task.most": task.most}
        candidates.append(({"compat": compat} if compat else {}) | changed)
    return min(candidates, key=len)


# -- from a spec -------------------------------------------------------------------------------------------------------


def recall_jobs(spec: RecallSpec) -> list[RecallJob]:
    """Return the jobs of a spec, one per combination of its options' values.

    Raises:
        IcyError: an unknown name, a value that is not accepted, or settings that do not go together.
    """
    check_run(spec, "Agents of the recall task")
    if "representation" in spec.task:
        raise InvalidSettingError("representation is a separate option (--stimuli), not a setting of task.")
    return jobs_of_each(spec, _jobs)


def _jobs(spec: RecallSpec) -> list[RecallJob]:
    """Return the job of a spec with one value per option."""
    stimuli = str(spec.stimuli)
    core = exact_name("core", str(spec.core), [MEMORY, *(entry.name for entry in registry.entries(CORE))])
    learner = "ppo" if core == MEMORY else "r2d2"
    game = RecallSettings.of(compat=spec.compat or None, **{**spec.task, "representation": stimuli})
    task = RecallTask(
        core=core,
        learner=learner,
        game=asdict(game),
        options=dict(spec.options),
        settings=learner_options(spec, core, learner, LEARNERS[learner]),
        preset=str(spec.preset),
        observations=spec.observations,
    ).completed()
    return [RecallJob(task, **run_options(spec, task, stimuli))]


def kept_networks(record: Record, weights: Weights) -> nn.Module:
    """Load the trained networks of a record."""
    task = RecallTask.of_config(record["config"]["settings"]["setup"])
    return nn.ModuleDict(restored(task, record["seed"], weights).networks()).eval()


# -- floors -----------------------------------------------------------------------------------------------------------


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
    evaluation = _deal(settings, episodes, seed)
    constant = np.stack([evaluation.answers == value for value in range(settings.most)])
    floors = {"no_memory": float(_mean(constant, evaluation).max())}
    if settings.representation == "ohe":
        return floors | {"one_game": 1.0}
    training = _deal(replace(settings, shots=1), TRAINING_EPISODES, TRAINING_SEED)
    counts = np.zeros((BINS, settings.most))
    weight = (training.there / training.there.sum(1, keepdims=True))[training.there]
    np.add.at(counts, (_bins(training)[training.there], training.answers[training.there]), weight)
    right = counts.argmax(1)[_bins(evaluation)] == evaluation.answers
    return floors | {"one_game": float(_mean(right, evaluation))}


def _deal(settings: RecallSettings, episodes: int, seed: int) -> RecallDeal:
    task = BatchedRecall(settings, episodes=episodes)
    task.reset(seeds=episode_seeds(seed, episodes))
    return task.dealt()


def _bins(dealt: RecallDeal) -> np.ndarray:
    return np.clip((dealt.numbers[..., 0] + 1) * BINS / 2, 0, BINS - 1).astype(np.int64)


def _mean(right: np.ndarray, dealt: RecallDeal) -> np.ndarray:
    """Return the fraction of right answers in the last shot, averaged over episodes."""
    return np.asarray(((right & dealt.last).sum(-1) / dealt.last.sum(-1)).mean(-1))
