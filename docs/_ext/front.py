"""Draw the picture of the README and of the site: the messages of each grammar, and how well models learn them.

`python docs/_ext/front.py` writes the picture into docs/_static, for light and for dark pages. The accuracies come
from results/reproduced/replicates.parquet. Each file contains a digest of its data, so that a test can check
whether it is current.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import icy
from icy.analysis.order import ORDER

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "reproduced" / "replicates.parquet"
FOLDER = ROOT / "docs" / "_static"
SPACE, WORD_LENGTH = "3x2", 2  # meaning space and word length: a language of eight messages
SEED = 100  # a seed with few similar words, two orders in shufdet, and distinct messages of proj
MEASURED = {"protocol": "budget", "representation": "soft", "meanings": "5x10", "settings": ""}
MODELS = {
    "sender": ("FC2L", "RNNZero:GRU", "RNNAutoReg:LSTM", "HierZero:dgsend", "Hashtable"),
    "receiver": ("FC2L", "CNN", "RNN2L:GRU", "Hier:RNN", "Hashtable"),
}
GLOSSES = {
    "concat": "words\njoined",
    "perm": "positions\npermuted",
    "proj": "random\nprojection",
    "pairsum": "next word\nadded",
    "rot": "running sum\nof tokens",
    "shuf": "words\nshuffled",
    "shufdet": "words shuffled\nby a rule",
    "hol": "random\nmessages",
}
CAPTION = (
    "accuracy after as many updates as the model needs to learn concat (to 0.99); "
    "5 attributes of 10 values, mean of 3 seeds"
)
TOKENS = ("#0072B2", "#56B4E9", "#E69F00", "#D55E00")  # of Okabe and Ito, apart under every common colour blindness
HEAT = LinearSegmentedColormap.from_list("accuracy", ["#f3ead7", "#b5d8c6", "#4aa3a8", "#1f6391", "#15325f"])
BLACK, WHITE = "#1f2328", "#ffffff"
LEFT, RIGHT, COLUMN, ROW = 1.42, 0.08, 0.92, 0.29  # inches
TOP, MESSAGE, SIDE, BOTTOM = 0.8, 0.125, 0.36, 0.38  # inches: names and glosses, a message, a side's name, the caption
BETWEEN = 0.16  # inches, between labels and cells
GAP = 0.45  # between words, in tokens
SPAN = 0.8  # of a message in its column
LINE = 1.3  # between lines, in the size of letters
DPI = 200


@dataclass(frozen=True)
class Theme:
    """The colors of text on a light or a dark page."""

    ink: str
    dim: str


THEMES = {"light": Theme(BLACK, "#59636e"), "dark": Theme("#f0f6fc", "#9198a1")}


def accuracies() -> pd.DataFrame:
    """Return mean accuracies: a row per model, a column per grammar; NaN where a side cannot use a grammar."""
    long = pd.read_parquet(RESULTS)
    for column, value in MEASURED.items():
        long = long[long[column] == value]
    means = long.pivot_table(index="model", columns="grammar", values="value")
    return means.loc[[f"{side}/{model}" for side, models in MODELS.items() for model in models], list(ORDER)]


def messages() -> dict[str, NDArray[np.int64]]:
    """Return the messages of every grammar: tokens [meaning, word, position in the word]."""
    made = {name: icy.make_language(name, SPACE, word_length=WORD_LENGTH, seed=SEED) for name in ORDER}
    return {name: one.messages.reshape(one.space.size, -1, WORD_LENGTH) for name, one in made.items()}


def digest() -> str:
    """Return a digest of the data of the picture."""
    shown = accuracies().round(2).to_csv() + "".join(f"{name} {one.tolist()}" for name, one in messages().items())
    return hashlib.sha256(shown.encode()).hexdigest()


def draw(theme: Theme) -> Figure:
    """Draw the picture in the colors of a theme."""
    language, table = messages(), accuracies()
    meanings = len(language["concat"])
    bottom = TOP + MESSAGE * meanings
    width = LEFT + COLUMN * len(ORDER) + RIGHT
    height = bottom + sum(SIDE + ROW * len(models) for models in MODELS.values()) + BOTTOM
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    for i, name in enumerate(ORDER):
        middle = LEFT + COLUMN * (i + 0.5)
        write(axes, middle, 0.18, name, theme.ink, 10, weight="bold")
        write(axes, middle, 0.5, GLOSSES[name], theme.dim, 7.5)
        draw_messages(axes, middle - SPAN * COLUMN / 2, TOP, language[name])
    label = f"the same {meanings} meanings\nin every grammar"
    write(axes, LEFT - BETWEEN, (TOP + bottom) / 2, label, theme.dim, 7.5, "right")
    for side, models in MODELS.items():
        write(axes, LEFT - BETWEEN, bottom + SIDE - 0.12, f"{side}s", theme.ink, 9, "right", weight="bold")
        bottom += SIDE
        for model in models:
            write(axes, LEFT - BETWEEN, bottom + ROW / 2, model, theme.ink, 8, "right")
            draw_cells(axes, bottom, table.loc[f"{side}/{model}"], theme)
            bottom += ROW
    write(axes, LEFT + 0.03, bottom + 0.2, CAPTION, theme.dim, 7.5, "left")
    return figure


def write(
    axes: Axes, x: float, y: float, text: str, colour: str, size: float, align: str = "center", weight: str = "normal"
) -> None:
    """Write lines of text, centered on y, with evenly spaced baselines."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        base = y + size / 72 * (0.36 + LINE * (i - (len(lines) - 1) / 2))
        axes.text(x, base, line, color=colour, fontsize=size, ha=align, family="DejaVu Sans", weight=weight)


def draw_messages(axes: Axes, left: float, top: float, language: NDArray[np.int64]) -> None:
    """Draw tokens as colored squares, a row per meaning, with gaps between words."""
    _, words, tokens = language.shape
    size = SPAN * COLUMN / (words * tokens + (words - 1) * GAP)
    for (row, word, token), value in np.ndenumerate(language):
        corner = left + size * (word * (tokens + GAP) + token), top + MESSAGE * row
        axes.add_patch(Rectangle(corner, size, 0.8 * MESSAGE, facecolor=TOKENS[value], linewidth=0))


def draw_cells(axes: Axes, top: float, means: pd.Series, theme: Theme) -> None:
    """Draw the cells of a model, with a dash for a grammar that its side cannot use."""
    for i, value in enumerate(means):
        left = LEFT + COLUMN * i
        text, colour = "\N{EN DASH}", theme.dim
        if not np.isnan(value):
            text, colour = f"{value:.2f}", WHITE if value > 0.55 else BLACK
            corner = left + 0.02, top + 0.02
            axes.add_patch(Rectangle(corner, COLUMN - 0.04, ROW - 0.04, facecolor=HEAT(value), linewidth=0))
        write(axes, left + COLUMN / 2, top + ROW / 2, text, colour, 8)


def draw_all(folder: Path = FOLDER) -> list[Path]:
    """Draw the picture for light and for dark pages; return the files."""
    note = PngInfo()
    note.add_text("Description", digest())
    files = []
    for name, theme in THEMES.items():
        drawn = io.BytesIO()
        draw(theme).savefig(drawn, dpi=DPI, transparent=True)
        files.append(folder / f"icy-{name}.png")
        with Image.open(drawn) as image:
            small = image.quantize(192, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
            small.save(files[-1], optimize=True, pnginfo=note, dpi=(DPI, DPI))
    return files


if __name__ == "__main__":
    for file in draw_all():
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")
