"""Make and measure the trained listener that comes with icy: `python -m results.s2b_memory [--train]`.

With --train, trains the attention memory of icy/s2b/agents/memory.safetensors again, in about five minutes on a core;
interrupted training resumes. Then evaluates it in games that it was not trained on. Writes
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
from icy.s2b.agents.saved_networks import FILE
from results.pages import describe_versions, fill_template, read_options

HERE = Path(__file__).parent
# Every episode uses a few of 32 tokens, so that all are learned; and stimuli of a meaning vary.
GAME = {"most": 5, "samples": 4, "game": {"vocab_size": 32}}
VALUES = {"2-3": 3, "2-5": 5}
SPEAKERS = ("posdis", "bosdis", "holistic")
TSS = {"query": "tss"}


def train(out: Path) -> None:
    """Train the listener, and copy it to its file in icy."""
    result = icy.train("s2b", out=out, keep_models=True, seeds=1, updates=300, episodes=300, workers=1, **GAME)
    (record,) = result.records
    shutil.copy(out / "models" / f"{record['key']}.safetensors", FILE)


def games() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the games of the evaluation: a name, the speaker and the settings."""
    for values, shots, samples in product(("2-3", "2-5"), (1, 4), (1, 4, 16)):
        for speaker in SPEAKERS:
            settings = {"most": VALUES[values], "shots": shots, "samples": samples}
            yield f"{values} | {shots} | {samples} | 0", speaker, settings | ({} if samples == 1 else TSS)
    yield "2-10 | 1 | 1 | 0", "posdis", {"most": 10, **TSS}
    yield "2-10 | 1 | 4 | 0", "posdis", {"most": 10, "samples": 4, **TSS}
    yield "2-5 | 1 | 1 | 3", "posdis", {"most": 5, "distractors": 3}


def measure(episodes: int) -> list[list[str]]:
    """Return a row per game and speaker: accuracy in the query and in the support, in percent."""
    rows = []
    for name, speaker, settings in games():
        means = evaluate(speaker, "memory", episodes=episodes, seeds=1, vocab_size=32, **settings).summary()["mean"]
        rows.append([*name.split(" | "), speaker, *(f"{100 * means[score]:.1f}" for score in ("zsct", "support"))])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Train with --train, and write the page."""
    options = read_options(__doc__, train=False, episodes=40, out=HERE / "runs")
    if options.train:
        train(options.out)
    table = markdown_table(["values", "S", "O", "K", "speaker", "query", "support"], measure(options.episodes))
    page = HERE / "s2b-memory.md"
    page.write_text(fill_template(page, versions=describe_versions(), episodes=options.episodes, table=table))


if __name__ == "__main__":
    main()
