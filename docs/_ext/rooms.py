"""Picture of the packages of icy in their layers, drawn from the source tree; numbers are lines of code."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
LAYERS = [line.split(" | ") for line in reversed(CONTRACTS[0]["layers"])]  # low to high
CONTENTS = {
    "core": "registry and plug-ins, errors, checks, random streams, noise, devices, files, representations",
    "languages": "meaning spaces, languages, their files, splits",
    "text": "requests to\nlanguage models",
    "config": "requests, settings,\nprotocols, presets",
    "models": "senders, receivers,\ncells, kernels",
    "grammars": "one file each",
    "metrics": "measures of\ncompositionality",
    "records": "saving and loading results: records, kinds of jobs, the store, the long table",
    "training": "jobs, the replicate engine, pairs, runners",
    "s2b": "the meta-referential game:\nepisodes, environments, players",
    "games": "multi-target games:\nworlds, turns, agents",
    "study": "Secret Spy Codes: the game,\nplayers, service, report",
    "context": "text models in context:\nprompts, answers",
    "analysis": "tables, plots, published results,\nthe atlas",
    "experiments": "plan and run: probe, sweep, end to end,\nreproduce, estimates, trackers",
    "testing": "contracts of every\nkind of plug-in",
    "cli": "the commands: parse, call the library, print",
}
OUTSIDE = ("models", "grammars", "analysis")  # folders next to icy/
COLORS = {"models": "#d9efe3", "grammars": "#f7ead0", "analysis": "#f6dcd8"}
OWN, EDGE, INK, DIM = "#dbe8f4", "#41566b", "#17212b", "#4b5563"
WIDTH, HEIGHT, GAP = 10.0, 0.72, 0.16  # of the picture and of a layer, in inches


@dataclass(frozen=True)
class Room:
    """A package: its name and its lines of code."""

    name: str
    lines: int


def rooms() -> list[list[Room]]:
    """Return the layers, from low to high; each room (package) has its number of lines."""
    return [[Room(name, _lines(name)) for name in layer] for layer in LAYERS]


def _lines(name: str) -> int:
    folder = ROOT / name if name in OUTSIDE else ROOT / "icy" / name
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))


def picture() -> Figure:
    """Draw the layers from top to bottom; within a layer, the width of a package grows with its lines."""
    layers = rooms()
    figure = Figure(figsize=(WIDTH, len(layers) * (HEIGHT + GAP) + GAP))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(0, WIDTH)
    ax.set_ylim(0, len(layers) * (HEIGHT + GAP) + GAP)
    ax.axis("off")
    for level, layer in enumerate(layers):
        widths = _widths([room.lines for room in layer], WIDTH - 2 * GAP - (len(layer) - 1) * GAP)
        x, y = GAP, GAP + level * (HEIGHT + GAP)
        for room, width in zip(layer, widths, strict=True):
            shape = {"boxstyle": "round,pad=0,rounding_size=0.06", "linewidth": 1.0, "edgecolor": EDGE}
            ax.add_patch(
                FancyBboxPatch((x, y), width, HEIGHT, facecolor=COLORS.get(room.name, OWN), **shape)  # type: ignore[arg-type]
            )
            ax.text(x + 0.1, y + HEIGHT - 0.09, room.name, va="top", color=INK, fontsize=11, fontweight="bold")
            count = f"{room.lines / 1000:.1f}k"
            ax.text(x + width - 0.1, y + HEIGHT - 0.1, count, va="top", ha="right", color=DIM, fontsize=7.5)
            ax.text(x + 0.1, y + 0.08, CONTENTS[room.name], va="bottom", color=DIM, fontsize=8.2, linespacing=1.15)
            x += width + GAP
    return figure


def _widths(lines: list[int], total: float) -> list[float]:
    """Divide a width in proportion to the square root of lines, so that small packages have space for their text."""
    roots = [count**0.5 for count in lines]
    return [total * root / sum(roots) for root in roots]
