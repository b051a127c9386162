"""Environment steps per second of S2B: python -m benchmarks.s2b [--device cuda] [--seconds 5].

In a step both players act in one episode. Resets are included, as every episode that ends is followed by another.
Actions are random and drawn beforehand, so only the game is measured, not a player. The last column is the speed
relative to a single game in the same run.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch

from icy.s2b import BatchedGame, parallel_env
from results.pages import describe_versions

BATCHES = (1, 16, 256, 4096, 16384)
Stepper = tuple[Callable[[], Any], Callable[[int], Any]]  # a reset, and a step by its number
KEPT = 8  # number of actions to cycle through


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", help="torch device; by default NumPy")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds to measure each row for, at least")
    given = parser.parse_args()
    torch.set_num_threads(1)
    where = given.device or f"NumPy, one core of {platform.processor() or platform.machine()}"
    print(f"S2B on {where}; {describe_versions()}\n")
    print("| what | S | O | K | episodes at once | first reset, s | steps a second | to one alone |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for setting in ({}, {"shots": 2, "samples": 4}, {"distractors": 3}):
        alone = 0.0
        for episodes in BATCHES if not setting else (1, 4096):
            reset, rate = measured(core(episodes, given.device, setting), episodes, given.seconds)
            alone = alone or rate
            print(row("core", setting, episodes, reset, rate, alone), flush=True)
    if given.device:
        return
    alone = 0.0
    for episodes in (1, 4096):
        reset, rate = measured(listeners(episodes), episodes, given.seconds)
        alone = alone or rate
        print(row("S2B/Listener-v0", {}, episodes, reset, rate, alone), flush=True)
    reset, rate = measured(pettingzoo(), 1, given.seconds)
    print(row("parallel_env", {}, 1, reset, rate, rate), flush=True)


def row(what: str, setting: dict[str, int], episodes: int, reset: float, rate: float, alone: float) -> str:
    """Return a line of the table."""
    shots, samples, distractors = (setting.get(n, d) for n, d in (("shots", 1), ("samples", 1), ("distractors", 0)))
    sizes = f"{shots} | {samples} | {distractors} | {episodes:,}"
    return f"| {what} | {sizes} | {reset:.3f} | {rate:,.0f} | {rate / alone:,.0f} |"


def measured(
    stepper: tuple[Callable[[], Any], Callable[[int], Any]], episodes: int, seconds: float
) -> tuple[float, float]:
    """Measure the seconds of the first reset, and the steps per second."""
    reset, step = stepper
    begun = time.perf_counter()
    reset()
    first = time.perf_counter() - begun
    for warm in range(20):
        step(warm)
    steps, begun = 0, time.perf_counter()
    while (passed := time.perf_counter() - begun) < seconds or steps < 300:  # long enough to deal new episodes
        step(steps)
        steps += 1
    return first, steps * episodes / passed


def core(episodes: int, device: str | None, setting: dict[str, int]) -> Stepper:
    """Make the batched game, with actions on its device."""
    game = BatchedGame(episodes=episodes, autoreset=True, device=device, **setting)
    rng = np.random.default_rng(0)
    said = rng.integers(1, 7, (KEPT, episodes, 3))
    decided = rng.integers(0, game.settings.decisions, (KEPT, episodes))
    if device is not None:
        said, decided = (torch.as_tensor(a).to(device) for a in (said, decided))

    def step(number: int) -> None:
        turn = game.step(said[number % KEPT], decided[number % KEPT])
        if device is not None and number % 100 == 0:
            turn.reward.sum().item()  # wait for the device

    return lambda: game.reset(seed=0), step


def listeners(episodes: int) -> Stepper:
    """Make the listener's environment of Gymnasium, with the posdis speaker inside, observations and infos."""
    name = "S2B/Listener-v0"
    if episodes > 1:
        env: Any = gymnasium.make_vec(name, num_envs=episodes, vectorization_mode="vector_entry_point")
    else:
        env = gymnasium.make(name)
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, (KEPT, episodes))
    over = False

    def step(number: int) -> None:
        nonlocal over
        if over:
            env.reset()
            over = False
            return
        action = actions[number % KEPT]
        *_, terminated, _, _ = env.step(action if episodes > 1 else int(action[0]))
        over = episodes == 1 and bool(terminated)

    return lambda: env.reset(seed=0), step


def pettingzoo() -> Stepper:
    """Make the parallel environment of PettingZoo."""
    env = parallel_env()
    rng = np.random.default_rng(0)
    actions = [{agent: rng.integers(0, [2, 7, 7, 7]) for agent in env.possible_agents} for _ in range(KEPT)]

    def step(number: int) -> None:
        if env.agents:
            env.step(actions[number % KEPT])
        else:
            env.reset()

    return lambda: env.reset(seed=0), step


if __name__ == "__main__":
    main()
