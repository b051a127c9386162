"""Speed of learning in S2B, by phase: `python -m benchmarks.s2b_learning [--rounds 3] [--most 3]`.

Every way of learning trains on the same number of whole episodes, in turn, on one thread. The unit is processor time,
which other work on the machine hardly changes. The phase "dealing" includes the messages of speakers that do not learn;
"forward" is the rest of an update: playing, drawing decisions, losses. Writes benchmarks/s2b-learning.md.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from benchmarks.harness import in_turn
from icy.core.machine import device_name
from icy.core.text import markdown_table
from icy.s2b import GameSettings
from icy.s2b.agents.dealt import deal_games
from icy.s2b.agents.memories import dealt_learning, pair_learning
from icy.s2b.agents.memories.attention import MemoryListener, MemorySettings
from icy.s2b.agents.networks.listener import CoreLearning, CoreListener
from icy.s2b.agents.networks.network import NetworkSettings
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).parent / "s2b-learning.md"
EPISODES = 1024  # episodes of a measurement; so many are dealt at once
PHASES = ("dealing", "forward", "backward", "optimizer")
MEASURED: tuple[tuple[str, Any, str], ...] = (
    ("dealing", dealt_learning, "deal_games"),
    ("dealing", pair_learning, "deal_games"),
    ("backward", torch.Tensor, "backward"),
    ("optimizer", torch.optim.Adam, "step"),
    ("optimizer", torch.nn.utils, "clip_grad_norm_"),
)
Spent = defaultdict[str, float]  # seconds of each phase
Training = tuple[Callable[[int], Any], int]  # a function that makes updates, and the episodes of each


def memory(game: GameSettings, kind: str) -> Training:
    """Make an attention memory that learns by reward."""
    model = MemoryListener(game, MemorySettings(kind=kind, heads=6 if kind == "joint" else 2))
    made = dealt_learning.DealtLearning(model, game, dealt_learning.DealtLearningSettings(updates=10**6))
    return made.run, made.settings.episodes


def core(game: GameSettings, learner: str, preset: str, own: bool = False) -> Training:
    """Make a listener that learns, with the LSTM of a preset."""
    batch = 128 if learner == "ppo" else 32
    settings = dealt_learning.DealtLearningSettings(learner=learner, updates=10**6, episodes=batch, minibatch=32)
    network = NetworkSettings.preset(preset, head="policy")
    made = CoreLearning(CoreListener(game, network, own), game, settings)
    return made.run, batch


def both(game: GameSettings, estimator: str) -> Training:
    """Make a pair in which speaker and listener learn."""
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
    """Add the seconds of each phase within a `with` block to `spent`."""

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
    """Return the seconds of every way in each round; the ways take turns."""
    torch.manual_seed(0)
    trainings = {name: make(game) for name, make in WAYS.items()}
    for training in trainings.values():
        measure(training)
    return in_turn({name: partial(measure, training) for name, training in trainings.items()}, rounds)


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
    """Return the text of the page."""
    headings = ["what learns", "games a second", "observations a second", "to the first", *PHASES]
    return fill_template(
        PAGE,
        device=device_name("cpu"),
        versions=describe_versions(),
        least=game.least,
        most=game.most,
        steps=game.rounds + 2,
        table=markdown_table(headings, rows(game, found), numbers=range(1, len(headings))),
    )


def main() -> None:
    """Measure, and print and write the page."""
    given = read_options(__doc__, rounds=3, most=(3, "largest number of values"))
    torch.set_num_threads(1)
    game = GameSettings(most=given.most)
    text = page(game, measured(game, given.rounds))
    print(text)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
