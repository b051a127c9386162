"""Steps and updates per second of R2D2 on S2B, and where the time goes: python -m benchmarks.s2b_r2d2 [--steps 300].

Measured in CPU seconds of one thread. Steps are counted over all actors; an update learns from one minibatch of
sequences.
"""

from __future__ import annotations

import cProfile
import itertools
import platform
import pstats
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.harness import print_table, rate
from icy.s2b import GameSettings
from icy.s2b.agents.r2d2.r2d2_learning import R2D2Learning, R2D2Settings
from results.pages import describe_versions, read_options

PLAYERS: dict[str, dict[str, Any]] = {
    "listener": {},
    "both, with SAD": {"players": "both", "sad": True},
}
STEP_PARTS = {"network": ("network.py", "step"), "game": ("game.py", "step"), "observations": ("agent.py", "_observe")}
UPDATE_PARTS = {
    "forward": ("r2d2_learning.py", "_unroll"),
    "backward": ("_tensor.py", "backward"),
    "replay": ("replay.py", "draw"),
    "optimizer": ("adam.py", "step"),
}


def main() -> None:
    """Measure, and print the table."""
    given = read_options(__doc__, steps=(300, "steps of each actor to measure"), updates=(30, "updates to measure"))
    torch.set_num_threads(1)
    print(f"R2D2 on one core of {platform.processor() or platform.machine()}; {describe_versions()}\n")
    columns = ["preset", "players", "steps a second", "where", "updates a second", "where"]
    print_table([*columns, "an hour's observations, 1 in 320"], rows(given.steps, given.updates), text=2)


def rows(steps: int, updates: int) -> Iterator[tuple[object, ...]]:
    """Yield a row per preset and players."""
    for preset, (name, changes) in itertools.product(("metarg22", "near32"), PLAYERS.items()):
        settings = R2D2Settings.preset(preset, learning_starts=6_400, **changes)
        learning = R2D2Learning(GameSettings(), settings)
        learning.run(1)
        step, of_steps = measured(learning.step, steps, STEP_PARTS)
        update, of_updates = measured(learning.learn, updates, UPDATE_PARTS)
        hour = 3600 / (step / settings.actors + update / settings.observations_per_update)
        numbers = f"{settings.actors / step:,.0f}", of_steps, f"{1 / update:.1f}", of_updates
        yield preset, name, *numbers, f"{hour / 1e6:.1f} million"


def measured(act: Callable[[], Any], times: int, parts: dict[str, tuple[str, str]]) -> tuple[float, str]:
    """Return the CPU seconds per call of a function, and the shares of its parts in words."""
    taken = 1 / rate(act, 0, time.process_time, least=times)
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    rate(act, 0, least=max(times // 5, 5))
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    whole = sum(row[2] for row in stats.values())
    shares = [f"{name} {100 * _cumulative(stats, *where) / whole:.0f} %" for name, where in parts.items()]
    return taken, ", ".join(shares)


def _cumulative(stats: Any, file: str, function: str) -> float:
    """Return the time in a function, including the functions that it calls."""
    found = [row[3] for (path, _, name), row in stats.items() if path.endswith(f"/{file}") and name == function]
    return max(found, default=0.0)


if __name__ == "__main__":
    main()
