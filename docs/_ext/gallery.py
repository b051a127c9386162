"""The gallery: a card per kind of plot and per task, each with the command that made its picture.

When the site is built, `draw` runs the commands of cards that only read committed records. The other pictures are
committed, because their commands train for longer than a build may take.
"""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from icy.cli import main

ROOT = Path(__file__).parents[2]
SMALL = "--where meanings=3x4 --where representation=soft"  # rows of the atlas


@dataclass(frozen=True)
class Card:
    """A picture with its caption, the command that made it, and the page that explains it."""

    picture: str
    caption: str
    command: str
    page: str

    @property
    def is_drawn(self) -> bool:
        """Whether the build runs the command."""
        return self.picture == f"_generated/plot-{shlex.split(self.command)[-1]}"


def _plot(kind: str, caption: str, words: str) -> Card:
    page = "from-results-to-a-paper.md#plots"
    return Card(f"_generated/plot-{kind}.png", caption, f"icy plot {kind} {words} -o {kind}.png", page)


SOME = f"atlas -m 'FC*' -m 'HierZero:*' -m 'RNNZero:*' -m TransDecSoft --where role=sender {SMALL}"
FEW = f"atlas -m FC2L -m HierZero:GRU -m TransDecSoft --where role=sender {SMALL}"
CHAINS = "results/iterated/records.parquet -m FC1L -m RNNZero:RNN"
CONTEXT = "results/context/records.parquet --where role=sender --where word_length=2"
PLOTS = {
    "heat": _plot("heat", "How late each model learns each grammar", SOME),
    "bars": _plot("bars", "The same numbers as bars, with their spread over seeds", FEW),
    "ratios": _plot("ratios", "Ratios on a log axis, with arrows for runs that were cut", SOME),
    "tradeoff": _plot("tradeoff", "Fast on grammars with a rule, slow on noise: which models are both?", SOME),
    "parameters": _plot("parameters", "Whether larger models learn a grammar earlier", FEW),
    "curves": _plot("curves", "Accuracy during training", "results/reproduced/records.parquet -m sender/FC2L"),
    "e2e": Card(
        "_static/e2e.png",
        "How far a pair drifts from the language that it was trained on",
        "icy e2e --sender RNNZero:GRU --receiver RNN:GRU --pretrain perm --pretrain rot --quick --plot drift.png",
        "end-to-end.md",
    ),
    "pairings": Card(
        "_static/pairings.png",
        "Which receivers of a population understand which senders",
        "icy plot pairings icy-results",
        "end-to-end.md#populations",
    ),
    "side_by_side": _plot("side_by_side", "Learners in context next to networks and people", CONTEXT),
    "chain_curves": _plot("chain_curves", "How languages change when they are passed from learner to learner", CHAINS),
    "chain_paths": _plot("chain_paths", "Where chains of learners move in the space of metrics", CHAINS),
}
TASKS = (
    Card("_generated/grammars.png", "See the messages of a grammar", "icy show all --meanings 3x3", "grammars.md"),
    Card(
        "_generated/plot-placement.png",
        "Compare your own model with the atlas",
        "icy probe -m Bottleneck --plugin mine.py --quick --compare atlas --plot where.png",
        "atlas.md",
    ),
    Card(
        "_generated/plot-metrics.png",
        "Score languages with metrics of compositionality",
        "icy metrics all --meanings 3x5 --plot metrics.png",
        "metrics.md",
    ),
    Card(
        "_generated/plot-stimuli.png",
        "Play meta-referential games: the numbers that players see",
        "icy s2b stimuli --samples 16 --plot stimuli.png",
        "s2b.md",
    ),
    Card(
        "_generated/plot-study.png",
        "Compare people, simulated players and networks",
        "icy study report results/study_report/games.parquet --published --plot study.png",
        "study.md#report-a-study",
    ),
    Card(
        "../results/games/games-shape.png",
        "Train agents in games with several targets",
        "python -m results.games",
        "games.md",
    ),
    Card(
        "../results/search/search-people-trials.png",
        "Search for an architecture",
        "icy search results/search/people.toml",
        "architecture-search.md",
    ),
    Card("_static/report.png", "Report results as one page", "icy report icy-results", "report.md"),
    Card(
        "_static/atlas-page.png",
        "Explore all measured models",
        "icy atlas --html atlas.html",
        "report.md#exploring-the-atlas",
    ),
)


def draw(folder: Path) -> list[Path]:
    """Run the commands that draw pictures in the build; return the files.

    Args:
        folder: folder of the pictures.

    Raises:
        RuntimeError: a command failed.
    """
    files = []
    for card in (*PLOTS.values(), *TASKS):
        if card.is_drawn:
            files.append(folder / Path(card.picture).name)
            words = [*shlex.split(card.command)[1:-1], str(files[-1].resolve())]
            with contextlib.chdir(ROOT):
                done = CliRunner().invoke(main, words)
            if done.exit_code:
                raise RuntimeError(f"the command of the gallery failed: {card.command}\n{done.output}")
    return files


def markdown(card: Card, depth: int = 4) -> str:
    """Return a card as Markdown, in a container for the style sheet."""
    fence = ":" * depth
    body = f"[![{card.caption}]({card.picture})]({card.page})\n\n**[{card.caption}]({card.page})**"
    return f"{fence}{{container}} card\n{body}\n\n```sh\n{card.command}\n```\n{fence}"
