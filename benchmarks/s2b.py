"""Environment steps per second of S2B: python -m benchmarks.s2b [--device cuda] [--seconds 5].

In a step, both players act in one episode. Resets are included, because a new episode follows each finished episode.
Actions are random and drawn beforehand, so only the game is measured, not a player. The last column is the speed
relative to a single game in the same run.
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import torch

from benchmarks.harness import fastest, print_table, rate
from icy.s2b import BatchedGame, parallel_env
from results.pages import describe_versions, read_options

BATCHES = (1, 16, 256, 4096, 16384)
Stepper = tuple[Callable[[], Any], Callable[[int], Any]]  # a reset, and a step by its number
CYCLED_ACTIONS = 8  # number of actions to cycle through


def main() -> None:
    """Measure, and print the table."""
    given = read_options(
        __doc__,
        device=(str, "torch device; by default NumPy"),
        seconds=(5.0, "smallest number of seconds to measure each row"),
    )
    torch.set_num_threads(1)
    where = given.device or f"NumPy, one core of {platform.processor() or platform.machine()}"
    print(f"S2B on {where}; {describe_versions()}\n")
    print_table(
        ["what", "S", "O", "K", "episodes at once", "first reset, s", "steps a second", "to one alone"],
        rows(given.device, given.seconds),
    )


def rows(device: str | None, seconds: float) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the table."""
    for setting in ({}, {"shots": 2, "samples": 4}, {"distractors": 3}):
        games = {count: core(count, device, setting) for count in (BATCHES if not setting else (1, 4096))}
        yield from measured("core", setting, games, seconds)
    if device is None:
        yield from measured("S2B/Listener-v0", {}, {count: listeners(count) for count in (1, 4096)}, seconds)
        yield from measured("parallel_env", {}, {1: pettingzoo()}, seconds)


def measured(
    what: str, setting: dict[str, int], games: dict[int, Stepper], seconds: float
) -> Iterator[tuple[object, ...]]:
    """Yield a row per number of episodes at once: the first reset, and the steps per second."""
    alone = 0.0
    sizes = [setting.get(name, default) for name, default in (("shots", 1), ("samples", 1), ("distractors", 0))]
    for episodes, (reset, step) in games.items():
        numbers = itertools.count()
        _, first = fastest(reset)
        rate(lambda: step(next(numbers)), 0, least=20)  # noqa: B023  # warm up
        found = episodes * rate(lambda: step(next(numbers)), seconds, least=300)  # noqa: B023  # new episodes too
        alone = alone or found
        yield what, *sizes, f"{episodes:,}", f"{first:.3f}", f"{found:,.0f}", f"{found / alone:,.0f}"


def core(episodes: int, device: str | None, setting: dict[str, int]) -> Stepper:
    """Return reset and step of the batched game, with actions on its device."""
    game = BatchedGame(episodes=episodes, autoreset=True, device=device, **setting)
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 7, (CYCLED_ACTIONS, episodes, 3))
    decided = rng.integers(0, game.settings.decisions, (CYCLED_ACTIONS, episodes))
    if device is not None:
        tokens, decided = (torch.as_tensor(a).to(device) for a in (tokens, decided))

    def step(number: int) -> None:
        turn = game.step(tokens[number % CYCLED_ACTIONS], decided[number % CYCLED_ACTIONS])
        if device is not None and number % 100 == 0:
            turn.reward.sum().item()  # waits for the device

    return lambda: game.reset(seed=0), step


def listeners(episodes: int) -> Stepper:
    """Return reset and step of the listener's Gymnasium environment, which contains the posdis speaker."""
    name = "S2B/Listener-v0"
    if episodes > 1:
        env: Any = gymnasium.make_vec(name, num_envs=episodes, vectorization_mode="vector_entry_point")
    else:
        env = gymnasium.make(name)
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, (CYCLED_ACTIONS, episodes))
    over = False

    def step(number: int) -> None:
        nonlocal over
        if over:
            env.reset()
            over = False
            return
        action = actions[number % CYCLED_ACTIONS]
        *_, terminated, _, _ = env.step(action if episodes > 1 else int(action[0]))
        over = episodes == 1 and bool(terminated)

    return lambda: env.reset(seed=0), step


def pettingzoo() -> Stepper:
    """Return reset and step of the parallel environment of PettingZoo."""
    env = parallel_env()
    rng = np.random.default_rng(0)
    actions = [{agent: rng.integers(0, [2, 7, 7, 7]) for agent in env.possible_agents} for _ in range(CYCLED_ACTIONS)]

    def step(number: int) -> None:
        if env.agents:
            env.step(actions[number % CYCLED_ACTIONS])
        else:
            env.reset()

    return lambda: env.reset(seed=0), step


if __name__ == "__main__":
    main()
