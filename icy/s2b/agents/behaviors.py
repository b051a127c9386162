"""The behavior of cores and speakers that are code of users."""

from functools import partial

import torch

from icy.core.code import short_hash
from icy.core.entry import CORE
from icy.core.registry import SPEAKER, registry
from icy.s2b.evaluation import evaluate
from icy.training.behavior import ROWS, Behavior, behavior_of, fixed_randomness, sums_of

from .agent_task import AgentTask
from .cores.core import made_of

WIDTH, STEPS, EPISODES = 10, 3, 4


def behaviors(task: AgentTask) -> dict[str, Behavior]:
    """Return the behavior of the core and the speaker of a task, by qualified name, if they are code of users.

    A core runs some steps, and a speaker plays some episodes with a listener of icy.
    """
    core, speaker = registry.find(CORE, task.core), registry.find(SPEAKER, task.speaker)
    found: dict[str, Behavior] = {}
    if core is not None and core.is_users:
        xs = torch.linspace(-1, 1, STEPS * ROWS * WIDTH, dtype=torch.float32, device="cpu").view(STEPS, ROWS, WIDTH)
        found[core.qualified] = behavior_of(
            partial(made_of, core, WIDTH, **task.options), xs, run=lambda made, xs: made.unroll(xs, made.start(ROWS))
        )
    if speaker is not None and speaker.is_users:
        with fixed_randomness():
            scores = evaluate(task.speaker, "binding", task.game_settings(), episodes=EPISODES, seeds=1).scores
        numbers = sums_of([scores.zsct, scores.support, scores.yes])
        found[speaker.qualified] = {"tensors": short_hash(speaker.name), "numbers": numbers}
    return found
