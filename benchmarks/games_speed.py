"""Time trainings in games: `python -m benchmarks.games_speed [--seeds 5] [--updates 300] [--rounds 3]`.

It compares a stack of seeds with the same seeds one after another, and with a plain PyTorch program of one seed, in
turn on one thread. It measures processor time, which other work on the machine hardly changes. Writes
benchmarks/games-speed.md.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.harness import in_turn, rate
from icy.core.provenance import device_name
from icy.core.text import markdown_table
from icy.games.game_stack import GameStack
from icy.games.jobs import game_jobs
from icy.games.spec import GamesSpec
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).parent / "games-speed.md"
ROWS = ({"channel": "gs"}, {"channel": "qt"}, {"channel": "gs", "rule_length": 4}, {"channel": "qt", "rule_length": 4})
TARGET_STEPS, CORES = 20_000, 2  # for a row of five seeds
WARM_UP = 10  # updates before the timing


class Plain(nn.Module):
    """The agents of Thing in plain PyTorch, for one seed."""

    def __init__(self, features: int, words: int, length: int, binary: bool) -> None:
        super().__init__()
        self.sees = nn.Sequential(nn.Linear(features, 60), nn.ReLU(), nn.Linear(60, 60))
        self.start, self.cell, self.out = nn.Linear(60, 60), nn.LSTMCell(60, 60), nn.Linear(60, words)
        self.embed, self.first = nn.Linear(words, 60), nn.Parameter(torch.randn(60) * 0.1)
        self.reads, self.lstm, self.wants = nn.Linear(words, 40), nn.LSTM(40, 40, batch_first=True), nn.Linear(40, 40)
        self.judges = nn.Sequential(nn.Linear(features, 40), nn.ReLU(), nn.Linear(40, 40))
        self.length, self.binary = length, binary

    def forward(self, objects: Tensor, targets: int) -> Tensor:
        """Return the score of each candidate [turn, candidate]."""
        hidden = self.start(self.sees(objects[:, :targets]).mean(1))
        memory, given, words = torch.zeros_like(hidden), self.first.expand_as(hidden), []
        for _ in range(self.length):
            hidden, memory = self.cell(given, (hidden, memory))
            words.append(self.word(self.out(hidden)))
            given = self.embed(words[-1])
        read = self.wants(self.lstm(self.reads(torch.stack(words, 1)))[0][:, -1])
        return (self.judges(objects) * read[:, None]).sum(-1)

    def word(self, scores: Tensor) -> Tensor:
        """Return a word: bits with a straight-through gradient, or a relaxed symbol."""
        if not self.binary:
            return F.gumbel_softmax(scores, 1.0)
        soft = scores.sigmoid()
        return (soft.round() - soft).detach() + soft


def course_of(given: dict[str, Any], seeds: Sequence[int]) -> GameStack:
    """Return the training of several seeds as one stack."""
    (job,) = game_jobs(GamesSpec.asked(seeds=list(seeds), **given))
    return GameStack(job, job.replicates)


def stack_of(given: dict[str, Any], seeds: int) -> Callable[[int], None]:
    """Return a function that makes a number of updates of a stack."""
    course = course_of(given, range(seeds))
    return lambda count: course.advance(course.updates + count)


def one_after_another(given: dict[str, Any], seeds: int) -> Callable[[int], None]:
    """Return a function that makes a number of updates of each seed, one seed after another."""
    courses = [course_of(given, [seed]) for seed in range(seeds)]

    def update(count: int) -> None:
        for course in courses:
            course.advance(course.updates + count)

    return update


def plain(given: dict[str, Any], seeds: int) -> Callable[[int], None]:
    """Return a function that makes a number of updates of a plain program, once for every seed."""
    course = course_of(given, [0])
    setup = course.task
    models = [Plain(270, setup.words, setup.message_length, given["channel"] == "qt") for _ in range(seeds)]
    optimisers = [torch.optim.Adam(model.parameters(), lr=5e-4) for model in models]
    labels = course.labels(setup.learning.batch_size)
    done = 0

    def update(count: int) -> None:
        nonlocal done
        for model, optimiser in zip(models, optimisers, strict=True):
            for step in range(done, done + count):
                objects = course._looks(course._objects("training", step, 1, 10))[0, 0]
                optimiser.zero_grad()
                F.binary_cross_entropy_with_logits(model(objects, setup.turns.targets), labels).backward()
                optimiser.step()
        done += count

    return update


WAYS = {"a stack": stack_of, "one after another": one_after_another, "plain PyTorch": plain}


def measure(given: dict[str, Any], seeds: int, updates: int, rounds: int) -> dict[str, float]:
    """Return the milliseconds of processor time of an update of all seeds, by way: medians over rounds."""
    ways = {name: make(given, seeds) for name, make in WAYS.items()}
    for update in ways.values():
        update(WARM_UP)
    measures = {name: lambda update=update: rate(lambda: update(updates), 0, time.process_time)
                for name, update in ways.items()}  # fmt: skip
    return {name: 1000 / updates / statistics.median(found) for name, found in in_turn(measures, rounds).items()}


def page(found: dict[str, dict[str, float]], seeds: int) -> str:
    """Return the text of the page."""
    rows = []
    for name, spent in found.items():
        ratios = [f"{spent[way] / spent['a stack']:.2f}" for way in list(WAYS)[1:]]
        seconds = spent["a stack"] * TARGET_STEPS / 1000 / CORES
        rows.append([name, *(f"{spent[way]:.1f}" for way in WAYS), *ratios, f"{seconds:.0f}"])
    headings = ["row", *(f"{way}, ms" for way in WAYS), "ratio", "ratio to plain", f"{TARGET_STEPS:,} updates, s"]
    return fill_template(
        PAGE,
        device=device_name("cpu"),
        versions=describe_versions(),
        seeds=seeds,
        cores=CORES,
        table=markdown_table(headings, rows, range(1, len(headings))),
    )


def main(words: Sequence[str] | None = None) -> None:
    given = read_options(__doc__, words, seeds=5, updates=(300, "of a round"), rounds=3)
    torch.set_num_threads(1)
    found = {
        f"{row['channel']}, l={row.get('rule_length', 1)}": measure(dict(row), given.seeds, given.updates, given.rounds)
        for row in ROWS
    }
    PAGE.write_text(page(found, given.seeds))
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
