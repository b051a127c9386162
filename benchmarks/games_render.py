"""Rendering speed of the worlds of the games, and legibility of single images: `python -m benchmarks.games_render`.

Takes five minutes of one core. Images, vectors and turns are made on one thread; rates are per second of the thread's
own time, so other programs on the machine matter little. A small network then learns to read shape, color and place
from single images. Writes benchmarks/games-render.md; `--device cuda` prints the rates of a GPU instead.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness import rate, waiting
from icy.core.machine import device_name
from icy.core.noise import counter_hash, shift
from icy.core.text import markdown_table
from icy.games import Turns, TurnSettings, World, make_world
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).parent / "games-render.md"
BATCHES = (400, 4000)  # images: a step of 10 turns with 20 + 20 candidates, and an evaluation
WORLDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("shape", "64 x 64", {}),
    ("shape", "64 x 64, published sizes", {"sizes": "published"}),
    ("shape", "32 x 32", {"canvas": 32}),
    ("shape", "64 x 64, bank of 16", {"bank": 16}),
    ("thing", "270 numbers", {}),
)
READ = WORLDS[:3]
STEPS, BATCH, LEARNING_RATE, TESTED = 1000, 64, 0.01, 4096


def main() -> None:
    """Measure, and write the page."""
    given = read_options(
        __doc__,
        device=("cpu", "torch device"),
        seconds=(3.0, "seconds to measure each rate for"),
        steps=(STEPS, "updates of the reading network"),
    )
    torch.set_num_threads(1)
    rates = rate_table(torch.device(given.device), given.seconds)
    print(rates)
    if given.device == "cpu":
        PAGE.write_text(page(rates, reading_table(given.steps)), encoding="utf-8")


def page(rates: str, reading: str) -> str:
    """Return the text of the page."""
    return fill_template(
        PAGE,
        device=device_name("cpu"),
        versions=describe_versions(),
        load=f"{os.getloadavg()[0]:.1f}",
        rates=rates,
        tested=f"{TESTED:,}",
        steps=f"{STEPS:,}",
        batch=BATCH,
        reading=reading,
    )


# -- rates -------------------------------------------------------------------------------------------------------------


def rate_table(device: torch.device, seconds: float) -> str:
    """Return a table of objects and turns per second."""
    lines = []
    for name, about, options in WORLDS:
        world = make_world(name, **options)
        rates = [per_second(lambda w=world, b=batch: looks(w, b, device), batch, device, seconds) for batch in BATCHES]
        lines.append((f"objects of {name}, {about}", *(f"{one:,.0f}" for one in rates)))
    for name, length in (("thing", 1), ("thing", 4), ("shape", 4)):
        turns = Turns(make_world(name), TurnSettings(length), [1], device)
        few, many = (per_second(lambda t=turns, s=steps: t.batch("training", 0, s, 10), steps, device, seconds)
                     for steps in (1, 100))  # fmt: skip
        lines.append((f"steps of ten turns of {name}, l = {length}, one or 100 at once", f"{few:,.0f}", f"{many:,.0f}"))
    return markdown_table(("a second", f"{BATCHES[0]} at once", f"{BATCHES[1]:,} at once"), lines, numbers=(1, 2))


def looks(world: World, count: int, device: torch.device) -> Tensor:
    """Render objects of all classes."""
    keys = counter_hash(torch.tensor(1, device=device), torch.arange(count, device=device))
    draws = shift(counter_hash(keys[:, None], torch.arange(len(world.sizes), device=device)), 32)
    return world.observe(draws % torch.tensor(world.sizes, device=device), keys)


def per_second(make: Callable[[], object], count: int, device: torch.device, seconds: float) -> float:
    """Return the number of items per second: of this thread's processor time, or on a GPU of wall time."""
    wait = waiting(device.type)
    clock = time.perf_counter if device.type == "cuda" else time.thread_time
    make()
    return count * rate(lambda: (make(), wait()), seconds, clock)


# -- reading -----------------------------------------------------------------------------------------------------------


class Reader(nn.Module):
    """Three convolutions; shape and color are read from the largest features of the image, places from all features."""

    def __init__(self, world: World) -> None:
        super().__init__()
        stride = 2 if world.shape[-1] >= 64 else 1
        self.body = nn.Sequential(*_layer(3, 16, 5, 2), *_layer(16, 32, 3, stride), *_layer(32, 64, 3, 2))
        across = world.shape[-1] // (4 * stride)
        self.what = nn.Linear(64, sum(world.sizes[:2]))
        self.where = nn.Linear(64 * across * across, sum(world.sizes[2:]))

    def forward(self, images: Tensor) -> Tensor:
        """Return scores of all concepts."""
        features = self.body(images)
        return torch.cat([self.what(features.amax((2, 3))), self.where(features.flatten(1))], -1)


def _layer(inputs: int, outputs: int, width: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, width, stride, width // 2, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


def reading_table(steps: int) -> str:
    """Return a table of the accuracies of the reading network."""
    lines = [(about, *(f"{one:.4f}" for one in accuracies(make_world(name, **o), steps))) for name, about, o in READ]
    return markdown_table(("images", "shape", "color", "across", "down"), lines, numbers=(1, 2, 3, 4))


def accuracies(world: World, steps: int = STEPS) -> list[float]:
    """Train a reader, and return the accuracy for each attribute on new images."""
    torch.manual_seed(0)
    reader = Reader(world)
    optimizer = torch.optim.Adam(reader.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, steps)
    for images, objects in examples(world, steps):
        scores = reader(images).split(world.sizes, -1)
        loss = torch.stack([nn.functional.cross_entropy(s, o) for s, o in zip(scores, objects.T, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    reader.eval()
    with torch.no_grad():
        found = [_right(reader, *batch, world) for batch in examples(world, TESTED // BATCH, first=steps)]
    return torch.stack(found).mean(0).tolist()


def examples(world: World, count: int, first: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of images and labels, with all classes equally often."""
    for number in range(first, first + count):
        keys = counter_hash(torch.tensor(5), torch.arange(number * BATCH, (number + 1) * BATCH))
        draws = shift(counter_hash(keys[:, None], torch.arange(100, 100 + len(world.sizes))), 32)
        objects = draws % torch.tensor(world.sizes)
        yield world.observe(objects, keys), objects


def _right(reader: Reader, images: Tensor, objects: Tensor, world: World) -> Tensor:
    guesses = [scores.argmax(-1) for scores in reader(images).split(world.sizes, -1)]
    return (torch.stack(guesses, -1) == objects).double().mean(0)


if __name__ == "__main__":
    main()
