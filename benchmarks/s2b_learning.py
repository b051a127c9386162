"""How fast agents learn S2B, and where the time goes: `python benchmarks/s2b_learning.py [--rounds 3] [--most 3]`.

Every way of learning trains on as many whole episodes as the others, in turn, on one thread. What counts is the time
of the processor, which other work on the machine hardly changes. Dealing includes what a speaker that does not learn
says; forward is the rest of an update: playing, drawing decisions, losses. Writes benchmarks/s2b-learning.md.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from about import describe_versions

from icy.core.provenance import device_name
from icy.core.text import markdown_table
from icy.s2b import GameSettings
from icy.s2b.agents.dealt import deal_games
from icy.s2b.agents.memories import dealt_learning, pair_learning
from icy.s2b.agents.memories.attention import MemoryListener, MemorySettings
from icy.s2b.agents.networks.core_learning import CoreLearning, CoreLearningSettings
from icy.s2b.agents.networks.listener import CoreListener
from icy.s2b.agents.networks.network import NetworkSettings

PAGE = Path(__file__).parent / "s2b-learning.md"
EPISODES = 1024  # of a measurement: as many as are dealt at once
PHASES = ("dealing", "forward", "backward", "optimiser")
MEASURED: tuple[tuple[str, Any, str], ...] = (
    ("dealing", dealt_learning, "deal_games"),
    ("dealing", pair_learning, "deal_silent"),
    ("backward", torch.Tensor, "backward"),
    ("optimiser", torch.optim.Adam, "step"),
    ("optimiser", torch.nn.utils, "clip_grad_norm_"),
)
Spent = defaultdict[str, float]  # seconds of each phase
Training = tuple[Callable[[int], Any], int]  # makes some updates, of so many episodes each


def memory(game: GameSettings, kind: str) -> Training:
    """Make an attention memory that learns by reward."""
    model = MemoryListener(game, MemorySettings(kind=kind, heads=6 if kind == "joint" else 2))
    made = dealt_learning.DealtLearning(model, game, dealt_learning.DealtLearningSettings(updates=10**6))
    return made.run, made.settings.episodes


def core(game: GameSettings, learner: str, preset: str, own: bool = False) -> Training:
    """Make a listener with the LSTM of a preset that learns."""
    batch = 128 if learner == "ppo" else 32
    settings = CoreLearningSettings(learner=learner, updates=10**6, episodes=batch, minibatch=32)
    network = NetworkSettings.preset(preset, head="policy")
    made = CoreLearning(CoreListener(game, network, own), game, settings)
    return made.run, batch


def both(game: GameSettings, estimator: str) -> Training:
    """Make a pair that learns both sides."""
    made = pair_learning.PairLearning(game, pair_learning.PairSettings(estimator=estimator, updates=10**6))
    return made.run, made.settings.episodes


WAYS: Mapping[str, Callable[[GameSettings], Training]] = {
    "memory of pairs, by reward": functools.partial(memory, kind="pairs"),
    "joint memory, by reward": functools.partial(memory, kind="joint"),
    "LSTM (metarg22), supervised": functools.partial(core, learner="supervised", preset="metarg22"),
    "LSTM (near32), supervised": functools.partial(core, learner="supervised", preset="near32"),
    "LSTM (near32), by reward": functools.partial(core, learner="ppo", preset="near32"),
    "the same, seeing its own results": functools.partial(core, learner="ppo", preset="near32", own=True),
    "pair, by reward": functools.partial(both, estimator="reinforce"),
    "pair, straight-through": functools.partial(both, estimator="gumbel"),
}


@contextmanager
def clocked(spent: Spent) -> Iterator[None]:
    """Add the seconds of the phases that can be told apart to a counter."""

    def timed(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            found = function(*args, **kwargs)
            spent[phase] += time.process_time() - began
            return found

        return call

    with ExitStack() as at_the_end:
        for phase, owner, name in MEASURED:
            at_the_end.enter_context(mock.patch.object(owner, name, timed(phase, getattr(owner, name))))
        yield


def measure(training: Training) -> Spent:
    """Return the seconds of each phase for EPISODES episodes."""
    run, batch = training
    spent: Spent = defaultdict(float)
    with clocked(spent):
        began = time.process_time()
        run(EPISODES // batch)
        whole = time.process_time() - began
    spent["forward"] = whole - sum(spent.values())
    return spent


def measured(game: GameSettings, rounds: int) -> dict[str, list[Spent]]:
    """Return what every way took in each round; the ways take turns."""
    torch.manual_seed(0)
    trainings = {name: make(game) for name, make in WAYS.items()}
    for training in trainings.values():
        measure(training)
    found: dict[str, list[Spent]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, training in trainings.items():
            found[name].append(measure(training))
    return found


def rows(game: GameSettings, found: Mapping[str, list[Spent]]) -> Iterator[list[str]]:
    """Return the rows of the table."""
    games = int(deal_games(game, range(EPISODES)).there.sum())
    observations = games * (game.rounds + 2) - EPISODES
    first = 0.0
    for name, rounds in found.items():
        seconds = statistics.median(sum(spent.values()) for spent in rounds)
        first = first or seconds
        shares = [statistics.median(spent[phase] / sum(spent.values()) for spent in rounds) for phase in PHASES]
        yield [
            name,
            f"{games / seconds:,.0f}",
            f"{observations / seconds:,.0f}",
            f"{first / seconds:.2f}",
            *(f"{100 * share:.0f} %" for share in shares),
        ]


def page(game: GameSettings, found: Mapping[str, list[Spent]]) -> str:
    """Return the page."""
    headings = ["what learns", "games a second", "observations a second", "to the first", *PHASES]
    return f"""# How fast agents learn S2B

Made by `python benchmarks/s2b_learning.py` on one thread of {device_name("cpu")}; {describe_versions()},
in seconds of the processor: games of {game.least} to {game.most} values (S = O = 1), dealt and
learned from. An observation is a step of the game as a player meets it, of which a game has {game.rounds + 2}. PPO goes
through every game twice. Medians of rounds in which all take turns; the fourth column is the ratio of games a second to
those of the first row, in the same run.

{markdown_table(headings, rows(game, found), numbers=range(1, len(headings)))}

Dealing includes what a speaker that does not learn says. Forward is all the rest of an update: playing, drawing
decisions, losses. The memories see one entry a game, the LSTMs every observation.
"""


def main() -> None:
    """Measure, and print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=3, help="largest number of values")
    given = parser.parse_args()
    torch.set_num_threads(1)
    game = GameSettings(most=given.most)
    text = page(game, measured(game, given.rounds))
    print(text)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
