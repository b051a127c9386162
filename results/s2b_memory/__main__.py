"""Make and measure the trained listener that comes with icy: `python -m results.s2b_memory [--train]`.

With --train, trains the attention memory of icy/s2b/agents/memory.safetensors anew, in some five minutes on a core; a
training that is interrupted goes on where it was. Then reads it in games that it was not trained on. Writes
results/s2b_memory/s2b-memory.md.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import icy
from icy.core.text import markdown_table
from icy.s2b import evaluate
from icy.s2b.agents.shipped import FILE
from results.pages import describe_versions, fill_template, read_options

HERE = Path(__file__).parent
# Of 32 tokens every episode uses a few others, so that all are known; and stimuli of a meaning vary.
GAME = {"most": 5, "samples": 4, "game": {"vocab_size": 32}}
VALUES = {"2-3": 3, "2-5": 5}
SPEAKERS = ("posdis", "bosdis", "holistic")
TSS = {"query": "tss"}


def train(out: Path) -> None:
    """Train the listener, and put it in its place."""
    result = icy.train("s2b", out=out, keep_models=True, seeds=1, updates=300, episodes=300, workers=1, **GAME)
    (record,) = result.records
    shutil.copy(out / "models" / f"{record['key']}.safetensors", FILE)


def games() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Return what it is read in: a name, the speaker and the settings."""
    for values, shots, samples in product(("2-3", "2-5"), (1, 4), (1, 4, 16)):
        for speaker in SPEAKERS:
            given = {"most": VALUES[values], "shots": shots, "samples": samples}
            yield f"{values} | {shots} | {samples} | 0", speaker, given | ({} if samples == 1 else TSS)
    yield "2-10 | 1 | 1 | 0", "posdis", {"most": 10, **TSS}
    yield "2-10 | 1 | 4 | 0", "posdis", {"most": 10, "samples": 4, **TSS}
    yield "2-5 | 1 | 1 | 3", "posdis", {"most": 5, "distractors": 3}


def measure(episodes: int) -> list[list[str]]:
    """Return a row per game and speaker: the query and the support, in per cent."""
    rows = []
    for name, speaker, given in games():
        means = evaluate(speaker, "memory", episodes=episodes, seeds=1, vocab_size=32, **given).summary()["mean"]
        rows.append([*name.split(" | "), speaker, *(f"{100 * means[what]:.1f}" for what in ("zsct", "support"))])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Train if it is asked for, and write the page."""
    given = read_options(__doc__, train=False, episodes=40, out=HERE / "runs")
    if given.train:
        train(given.out)
    table = markdown_table(["values", "S", "O", "K", "speaker", "query", "support"], measure(given.episodes))
    page = HERE / "s2b-memory.md"
    page.write_text(fill_template(page, versions=describe_versions(), episodes=given.episodes, table=table))


if __name__ == "__main__":
    main()
