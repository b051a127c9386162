"""Turns played by agents, the result of a training, and trained agents in files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Integer
from numpy.typing import NDArray
from torch import Tensor

from icy.core.machine import git_revision, software
from icy.core.noise import counter_hash
from icy.core.streams import stream_key
from icy.core.surroundings import standard_state
from icy.records.record import LANGUAGES, Record, as_json
from icy.training.job import Job
from icy.training.lockstep import Progress
from icy.training.weights import SavedModel, code_for_card, pack_weights, restore

from .evaluation import Spoken, language_scores, matching
from .model import GameModel, make_game_model
from .settings import GamesSettings
from .turns import EVALUATION_SEED, TEST, TEST_SEEN, TurnBatch, Turns
from .worlds.world import World

# -- let agents play turns, and collect their messages and accuracy ----------------------------------------------------


class Answers(NamedTuple):
    """The messages in some turns, and the candidates that the listener chose as targets."""

    words: Integer[Tensor, "*stack turn length"]
    chosen: Bool[Tensor, "*stack turn candidate"]


class Agents(Protocol):
    """A speaker and a listener."""

    def play(self, batch: TurnBatch) -> Answers:
        """Play the turns of a batch with one step and one replicate."""


@dataclass(frozen=True, eq=False)
class TrainedAgents:
    """Trained agents, which play turns with their model.

    Attributes:
        model: model of one replicate, in evaluation mode.
        world: world of the objects.
        sampling: whether messages are relaxed and noisy, as in training.
    """

    model: GameModel
    world: World
    sampling: bool = False

    @torch.no_grad()
    def play(self, batch: TurnBatch) -> Answers:
        """Play turns."""
        objects = observe_objects(pack_objects(batch)[0, 0], self.world)
        noise = None
        if self.sampling:  # the noise depends only on the turns
            key = torch.tensor(stream_key(EVALUATION_SEED, "games", "noise"), dtype=torch.int64, device="cpu")
            noise = counter_hash(key, batch.keys.flatten()[0].cpu())
        logits, _, words, _ = self.model(objects, noise)
        return Answers(words, logits > 0)

    @torch.no_grad()
    def describe(self, batch: TurnBatch) -> Float[Tensor, "turn size"]:
        """Return the sender's embedding of each turn."""
        return self.model.describe(observe_objects(pack_objects(batch)[0, 0], self.world))


def pack_objects(batch: TurnBatch) -> Integer[Tensor, "step replicate turn object columns"]:
    """Pack the objects of turns as numbers: the values of an object, then the key of its look.

    If the agents see different objects, the objects of the sender come first.
    """
    columns = torch.cat([batch.objects, batch.keys[..., None]], -1)
    if batch.sender_objects is None or batch.sender_keys is None:
        return columns
    return torch.cat([torch.cat([batch.sender_objects, batch.sender_keys[..., None]], -1), columns], 3)


def observe_objects(
    objects: Integer[Tensor, "*turns object columns"], world: World
) -> Float[Tensor, "*turns_object_and_shape"]:
    """Return the objects from `pack_objects` as agents see them."""
    return world.observe(objects[..., :-1], objects[..., -1])


class PlayedTurns(NamedTuple):
    """The result of turns: the fraction of right answers, and the messages."""

    accuracy: float
    spoken: Spoken


def play(agents: Agents, turns: Turns, targets: int, purpose: str, count: int, size: int) -> PlayedTurns:
    """Let agents play turns of one replicate.

    Args:
        agents: a speaker and a listener.
        turns: source of the turns.
        targets: number of targets among the candidates.
        purpose: purpose of the turns; see `Turns.batch`.
        count: number of turns. An incomplete last batch is not played.
        size: turns per batch.
    """
    right, numbers, words = [], [], []
    for batch in batches(turns, purpose, count, size):
        answers = agents.play(batch)
        is_target = torch.arange(answers.chosen.shape[-1], device=answers.chosen.device) < targets
        right.append((answers.chosen == is_target).double().mean((-2, -1)))
        numbers.append(batch.numbers[0, 0].cpu())
        words.append(answers.words.cpu())
    return PlayedTurns(float(torch.stack(right).mean()), make_spoken(turns, torch.cat(numbers), torch.cat(words)))


def batches(turns: Turns, purpose: str, count: int, size: int) -> Iterator[TurnBatch]:
    """Yield the first `count` turns of the first replicate for a purpose, such as "test", in batches of `size`."""
    for step in range(max(1, count // size)):
        yield turns.batch(purpose, step, 1, min(size, count), [0])


def make_spoken(turns: Turns, numbers: Integer[Tensor, " turn"], words: Integer[Tensor, "turn length"]) -> Spoken:
    """Combine messages with the phrases of their rules."""
    phrases = turns.rules.phrases(numbers.to(turns.device)).cpu().numpy()
    return Spoken(numbers.numpy().astype(np.int64), phrases, words.numpy().astype(np.int64), turns.rules.concepts)


# -- the result of a training: accuracies, scores of the language, and files -------------------------------------------


@dataclass
class GameProgress(Progress):
    """The progress of one replicate of a stack.

    Attributes:
        best: highest accuracy of an evaluation so far.
        best_step: number of updates before the best evaluation.
        weights: weights at the best evaluation.
        loss: loss of the last update before the latest evaluation.
    """

    best: float = -1.0
    best_step: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)
    loss: float = math.nan


def final_results(job: Job, runner: GameProgress, updates: int) -> dict[str, Any]:
    """Evaluate a replicate with its best weights, outside the stack; return the accuracy, more numbers and files."""
    settings, replicate = job.settings, runner.replicate
    model = make_game_model(settings, replicate.seed)
    restore(model, {name: value.cpu() for name, value in runner.weights.items()}, settings.name)
    agents = TrainedAgents(model.to(job.device).eval(), settings.made_world)
    scores, said = evaluate_agents(agents, settings, replicate.condition, job.device)
    accuracy = scores.pop("accuracy")
    place = f"{LANGUAGES}/{job.key(replicate)}.jsonl"
    extra = {**scores, "best_step": runner.best_step, "language": place, **settings.sizes}
    files = {place: said.to_lines().encode()}
    if job.keep_models:
        card = {"accuracy": accuracy, **scores, "best_step": runner.best_step}
        files[job.model_file(replicate)] = pack_model(job, runner, updates, card)
    return {"accuracy": accuracy, "extra": extra, "files": files}


def pack_model(job: Job, runner: GameProgress, updates: int, scores: Mapping[str, object]) -> bytes:
    """Pack the best weights and their card as the content of a .safetensors file."""
    card = {
        "kind": job.kind,
        "model": job.name,
        "grammar": runner.replicate.condition,
        "seed": runner.replicate.seed,
        "setup": job.settings.setup(),
        "updates": updates,
        "scores": scores,
        "software": software(),
        "git": git_revision(),
        **code_for_card(job.fixed_versions(runner.replicate)),
    }
    return pack_weights(runner.weights, as_json(card))


@standard_state()
def evaluate_agents(
    agents: Agents, setup: GamesSettings, distractor_kind: str, device: str = "cpu"
) -> tuple[dict[str, float], Spoken]:
    """Evaluate agents in a game, and return the scores and the messages.

    Args:
        agents: a speaker and a listener.
        setup: settings of the game and of the evaluation.
        distractor_kind: kind of the distractors.
        device: device of the turns.

    Returns:
        `accuracy` is measured on held-out phrases, if there are any, and `seen_accuracy` and `seen_cbm` on training
        phrases. `soft_accuracy` is the accuracy of trained agents with messages as in training, relaxed and noisy. The
        other scores are `icy.games.evaluation.MEASURES`; `topsim` of embeddings is NaN for oracles, which have no
        embeddings.
    """
    turns, learning = Turns(setup.made_world, setup.of_turns(distractor_kind), [0], device), setup.learning

    def played(purpose: str, who: Agents = agents) -> PlayedTurns:
        return play(who, turns, setup.turns.targets, purpose, learning.turns, learning.batch_size)

    test, seen = played(TEST), played(TEST_SEEN)
    spoken, soft, topsim_of = test.spoken, math.nan, learning.topsim_of
    if isinstance(agents, TrainedAgents):
        soft = played(TEST, replace(agents, sampling=True)).accuracy
    perceives = topsim_of != "embedding" or isinstance(agents, TrainedAgents)
    if topsim_of != "phrase" and perceives:
        spoken = replace(spoken, objects=_objects(agents, turns, setup))
    scores = language_scores(spoken, topsim_of if perceives else "phrase", learning.unmatched)
    if not perceives:
        scores["topsim"] = math.nan
    of_seen = {"seen_accuracy": seen.accuracy, "seen_cbm": matching(seen.spoken, learning.unmatched).value}
    return {"accuracy": test.accuracy, "soft_accuracy": soft, **of_seen, **scores}, spoken


def _objects(agents: Agents, turns: Turns, setup: GamesSettings) -> NDArray[np.float64]:
    """Return the vectors that topsim uses as meanings instead of phrases [turn, size]."""
    world, vectors = setup.made_world, []
    first = torch.tensor(world.first_concepts, dtype=torch.int64, device="cpu")
    for batch in batches(turns, TEST, setup.learning.turns, setup.learning.batch_size):
        if setup.learning.topsim_of == "embedding" and isinstance(agents, TrainedAgents):
            vectors.append(agents.describe(batch))
            continue
        objects = batch.objects if batch.sender_objects is None else batch.sender_objects
        targets = objects[0, 0, :, : setup.turns.targets].cpu() + first
        vectors.append(torch.nn.functional.one_hot(targets, len(world.concepts)).double().sum(2).mean(1))
    return torch.cat(vectors).double().cpu().numpy()


def game_model(record: Record, weights: Mapping[str, Tensor]) -> GameModel:
    """Return the trained agents of a record. Errors as for `icy.training.weights.restore`."""
    setup = GamesSettings.of_setup(record["config"]["settings"]["setup"])
    return load_game_model(setup, record["seed"], dict(weights))


def load_game_model(setup: GamesSettings, seed: int, weights: dict[str, Tensor]) -> GameModel:
    """Create agents with these weights. Errors as for `icy.training.weights.restore`."""
    return cast(GameModel, restore(make_game_model(setup, seed), weights, setup.name))


# -- trained agents of games in files ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SavedAgents(SavedModel):
    """A trained sender and receiver in a file."""

    kind = GamesSettings.kind
    what = "agents"

    @property
    def setup(self) -> GamesSettings:
        """The game that the agents were trained to play."""
        return GamesSettings.of_setup(self.card["setup"])

    @property
    def distractor_kind(self) -> str:
        """Kind of distractors in training."""
        return str(self.card["grammar"])

    def model(self, setup: GamesSettings | None = None) -> GameModel:
        """Load the agents, in evaluation mode.

        Args:
            setup: settings of the game to play; by default the settings of the training.

        Raises:
            StoreError: the file is damaged, or was written by another version.
        """
        return load_game_model(self.setup if setup is None else setup, self.card["seed"], self.weights())


def kept_agents(path: str | Path, **where: Any) -> list[SavedAgents]:
    """Find the trained agents in a results folder, a pack, or a .safetensors file.

    Args:
        path: the folder, pack or file.
        **where: select agents with these values of their records' fields, as in seed=124, representation="qt",
            rule_length=4.

    Returns:
        An entry per trained pair. Weights are read only when they are used, so a list of many pairs is cheap.

    Raises:
        StoreError: no agents match.
        UnknownNameError: the records have no field of this name.
    """
    return SavedAgents.find(path, **where)
