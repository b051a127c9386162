"""Transfer of a listener from small spaces to other games: `python -m results.s2b_transfer [--updates 200]`.

An attention memory (`icy.s2b.agents.memories.attention`) learns by reward alone with the posdis speaker, with 2 or 3
values and S = O = 1. It is evaluated without further learning with more values, shots and samples, and with speakers
of other languages. Its vocabulary has room for all of these from the start. Writes
results/s2b_transfer/s2b-transfer.md and .csv.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from icy.core.text import markdown_table
from icy.s2b import GameSettings, evaluate
from icy.s2b.agents.memories.attention import MemoryListener
from icy.s2b.agents.memories.dealt_learning import DealtLearning, DealtLearningSettings, read
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).with_name("s2b-transfer.md")
SEEDS = (0, 1, 2)
VOCABULARY = 30  # tokens that bosdis needs for up to 10 values in 3 dimensions
EPISODES = {3: 200, 5: 100, 10: 10}  # by the largest number of values; fewer if episodes are long
PART = {3: 100, 5: 50, 10: 5}  # episodes at a time, as attention grows with the square of the longest
SPEAKERS = ("posdis", "bosdis", "holistic", "digital", "random")
ABOUT: Mapping[str, str] = {
    "posdis": "a token per dimension, in order (used in training)",
    "bosdis": "a token per value of every dimension, in any order",
    "holistic": "a sentence per meaning, with parts that mean nothing",
    "digital": f"for each number, in which of {VOCABULARY} equal parts it is",
    "random": "random tokens",
}


def cells() -> Iterator[tuple[str, GameSettings]]:
    """Yield the speakers and games of the evaluation."""
    for speaker in SPEAKERS:
        for most in EPISODES:
            yield speaker, game(most)
        for most in {"posdis": (3, 5), "bosdis": (5,)}.get(speaker, ()):
            yield speaker, game(most, samples=4)
            yield from ((speaker, game(most, shots=shots)) for shots in (2, 4))


def game(most: int, **settings: Any) -> GameSettings:
    """Return a game of up to `most` values."""
    return GameSettings(most=most, vocab_size=VOCABULARY, **settings)


def trained(seed: int, updates: int) -> tuple[MemoryListener, float]:
    """Train a listener with 2 or 3 values; return it, and the CPU seconds of training."""
    torch.manual_seed(seed)
    began = time.process_time()
    learning = DealtLearning(MemoryListener(game(3)), game(3), DealtLearningSettings(updates=updates), seed)
    learning.run(updates)
    return learning.model.eval(), time.process_time() - began


def transfer(
    model: torch.nn.Module, settings: GameSettings, speaker: str, episodes: int, part: int
) -> dict[str, float]:
    """Return the accuracies of a trained listener in a game, over episodes that are evaluated in parts."""
    parts = [read(model, settings, speaker, part, seed) for seed in range(500, 500 + episodes // part)]
    return {name: sum(one[name] for one in parts) / len(parts) for name in parts[0]}


def measure(updates: int, share: float) -> pd.DataFrame:
    """Return a row per speaker, game and seed, with accuracies in percent."""
    rows, models = [], {seed: trained(seed, updates) for seed in SEEDS}
    for speaker, settings in cells():
        part = PART[settings.most]
        episodes = max(part, int(EPISODES[settings.most] * share) // part * part)
        other = evaluate(speaker, "nearest", settings, episodes=episodes, seeds=1).table()["zsct"][0]
        for seed, (model, seconds) in models.items():
            found = transfer(model, settings, speaker, episodes, part)
            rows.append({
                "speaker": speaker, "most": settings.most, "shots": settings.shots, "samples": settings.samples,
                "seed": seed, "episodes": episodes, "updates": updates, "seconds": seconds,
                "query": 100 * found["zsct"], "support": 100 * found["support"], "nearest": 100 * other,
            })  # fmt: skip
        print(speaker, settings.most, settings.shots, settings.samples, round(rows[-1]["query"], 2), flush=True)
    return pd.DataFrame(rows).assign(versions=describe_versions())


def page(scores: pd.DataFrame) -> str:
    """Return the text of the page."""
    lines = []
    for key, part in scores.groupby(["speaker", "most", "shots", "samples"], sort=False):
        speaker, most, shots, samples = key
        spread = [f"{part[name].mean():.2f} ± {part[name].std():.2f}" for name in ("query", "support")]
        nearest = f"{part['nearest'].iloc[0]:.2f}"
        lines.append([speaker, f"2-{most}", shots, samples, *spread, nearest, part["episodes"].iloc[0]])
    heads = ["speaker", "values", "S", "O", "query", "support", "nearest, query", "episodes"]
    about = "; ".join(f"`{name}` says {text}" for name, text in ABOUT.items())
    return fill_template(
        PAGE,
        versions=scores["versions"].iloc[0],
        listeners=scores["seed"].nunique(),
        updates=scores["updates"].iloc[0],
        seconds=f"{scores['seconds'].mean():.0f}",
        about=about,
        table=markdown_table(heads, lines, range(2, 8)),
    )


def main() -> None:
    """Train and evaluate listeners, and write the page and the table."""
    options = read_options(
        __doc__,
        updates=(200, "updates of every listener"),
        share=(1.0, "share of the episodes, for a quick try"),
        page=(False, "only write the page again, from the saved table"),
    )
    torch.set_num_threads(1)
    table = PAGE.with_suffix(".csv")
    if not options.page:
        measure(options.updates, options.share).round(3).to_csv(table, index=False)
    PAGE.write_text(page(pd.read_csv(table)))


if __name__ == "__main__":
    main()
