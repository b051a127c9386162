"""What agents score in the recall task that remember little: references for trained agents."""

import functools
from dataclasses import replace

import numpy as np

from icy.s2b.evaluation import episode_seeds
from icy.s2b.recall import BatchedRecall, RecallDeal, RecallSettings

LEARNED_FROM, LEARNED_SEED = 4000, 77  # episodes from which the answer to a number is learned, none of an evaluation
BINS = 400  # of numbers from -1 to 1


@functools.cache
def recall_floors(settings: RecallSettings, episodes: int = 250, seed: int = 123) -> dict[str, float]:
    """Return the accuracies in the last shot of two agents that know nothing of earlier games.

    Args:
        settings: settings of the task.
        episodes: number of episodes.
        seed: of the evaluation, see `icy.s2b.evaluate`.

    Returns:
        `no_memory`: an agent that does not remember the stimulus either, and always gives the answer that is right most
        often; `one_game`: an agent that remembers the stimulus of the present game alone, and gives the answer that is
        right most often for its number in the dimension that is asked for.

    Example:
        >>> floors = recall_floors(RecallSettings(representation="ohe"), episodes=50)
        >>> round(floors["no_memory"], 2), floors["one_game"]
        (0.34, 1.0)
    """
    judged = _deal(settings, episodes, seed)
    constant = np.stack([judged.answers == value for value in range(settings.most)])
    found = {"no_memory": float(_mean(constant, judged).max())}
    if settings.representation == "ohe":
        return found | {"one_game": 1.0}
    learned = _deal(replace(settings, shots=1), LEARNED_FROM, LEARNED_SEED)
    counts = np.zeros((BINS, settings.most))
    weight = (learned.there / learned.there.sum(1, keepdims=True))[learned.there]
    np.add.at(counts, (_bins(learned)[learned.there], learned.answers[learned.there]), weight)
    return found | {"one_game": float(_mean(counts.argmax(1)[_bins(judged)] == judged.answers, judged))}


def _deal(settings: RecallSettings, episodes: int, seed: int) -> RecallDeal:
    task = BatchedRecall(settings, episodes=episodes)
    task.reset(seeds=episode_seeds(seed, episodes))
    return task.dealt()


def _bins(dealt: RecallDeal) -> np.ndarray:
    return np.clip((dealt.numbers[..., 0] + 1) * BINS / 2, 0, BINS - 1).astype(np.int64)


def _mean(right: np.ndarray, dealt: RecallDeal) -> np.ndarray:
    """Return the mean over episodes of the share of right answers in the last shot."""
    return np.asarray(((right & dealt.last).sum(-1) / dealt.last.sum(-1)).mean(-1))
