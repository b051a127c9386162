"""Measure the time of an update of TransDecSoft: `python -m benchmarks.transformer [--device cuda] [--updates 2]`.

At 5x10, V=4, w=4, E=128 and batch 128, it times one update (forward, backward, Adam) of
(a) the plain form, PyTorch's TransformerDecoder run over the whole prefix at every step, on all cores and on one
    thread;
(b) one model of icy, on all cores and on one thread;
(c) a stack of four models of (b) on one thread, per replicate.
The ways take turns, and the fastest round of each counts. Ratios are relative to the faster plain way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

import icy
from benchmarks import plain
from benchmarks.harness import fastest, in_turn, print_table, waiting
from icy.config.settings import TrainingSettings
from icy.core.machine import device_name, usable_cores
from icy.core.representations import SOFT
from icy.training.learners import make_learner
from results.pages import describe_versions, read_options

A, K, L, V, E, BATCH = 5, 10, 20, 4, 128, 128
ROUNDS = 3
Update = Callable[[], None]


def plain_update(layers: int, device: str) -> Update:
    """Return a function that makes one update of the plain form (a)."""
    with torch.device(device):
        model = plain.senders.TransDecSoft(A, K, L, V + 1, E, layers=layers)
        meanings, messages = torch.randint(K, (BATCH, A)), torch.randint(V, (BATCH, L))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def update() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(meanings).flatten(0, 1), messages.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()

    return update


def icy_update(layers: int, device: str, stack: int) -> Update:
    """Return a function that makes one update of icy (b, c), by the learner that real runs use."""
    name = "TransDecSoft" if layers == 1 else f"TransDecSoft{layers}L"
    models = [icy.create_sender(name, f"{A}x{K}", L, V, E) for _ in range(stack)]
    at = torch.device(device)
    meanings = torch.randint(K, (stack, BATCH, A), device=at)
    messages = torch.randint(V, (stack, BATCH, L), device=at)
    keys = torch.arange(stack, device=at)
    learner = make_learner(models, range(stack), SOFT.sender_loss, TrainingSettings(), at, meanings)
    return lambda: learner.update(meanings, messages, keys)


def seconds(update: Update, threads: int, updates: int, device: str) -> float:
    """Return the wall time of one update."""
    torch.set_num_threads(threads)
    update()
    _, taken = fastest(lambda: ([update() for _ in range(updates)], waiting(device)()))
    return taken / updates


def rows(device: str, updates: int) -> Iterator[tuple[object, ...]]:
    """Yield a row per way, and the layers of the model."""
    cores = usable_cores()
    for layers in (1, 2):
        whole = plain_update(layers, device)
        alone, four = icy_update(layers, device, 1), icy_update(layers, device, 4)
        ways = [
            ("plain, whole prefix", whole, cores, 1),
            ("plain, whole prefix", whole, 1, 1),
            ("icy, alone", alone, cores, 1),
            ("icy, alone", alone, 1, 1),
            ("icy, stack of 4", four, 1, 4),
        ]
        measures = {
            (name, threads): partial(seconds, update, threads, updates, device) for name, update, threads, _ in ways
        }
        times = {way: min(found) for way, found in in_turn(measures, ROUNDS).items()}
        fastest_plain = min(times[way] for way in times if way[0].startswith("plain"))  # fewer threads may be faster
        for name, _, threads, stack in ways:
            taken = times[name, threads] / stack
            yield layers, name, threads, f"{1000 * taken:.1f}", f"{fastest_plain / taken:.1f}"


def main() -> None:
    """Time every way and print the table."""
    given = read_options(__doc__, device="cpu", updates=(2, "updates in each round"))
    print(f"{device_name(given.device)}; {usable_cores()} cores; {describe_versions()}\n")
    print_table(
        ["layers", "way", "threads", "ms per update and replicate", "ratio"],
        rows(given.device, given.updates),
        text=2,
    )


if __name__ == "__main__":
    main()
