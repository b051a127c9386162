"""Accuracies of agents with little memory in the recall task: baselines for trained agents."""

import functools
from dataclasses import replace

import numpy as np

from icy.s2b.evaluation import episode_seeds
from icy.s2b.recall import BatchedRecall, RecallDeal, RecallSettings

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
        right
            answer; `one_game`: an agent that remembers the current stimulus, and gives the answer that is most often
            right for the stimulus's number in the queried dimension.

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
