"""Draw the picture of the README and of the site: the messages of each grammar, and how late models learn them.

`python docs/_ext/front.py` writes the picture into docs/_static, for light and for dark pages. The ratios come from the
atlas, under the settings of the README's first command. Each file contains a digest of its data, so that a test can
check whether it is current.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import icy
from icy.analysis.order import ORDER
from icy.analysis.statistics import LogSummary, log_summary
from icy.languages.meanings import MeaningSpace

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "_static"
SPACE, WORD_LENGTH = "3x2", 2  # meaning space and word length: a language of eight messages
VALUES = (("big", "small"), ("red", "blue"), ("disk", "square"))
SEED = 100  # a seed with few similar words, two orders in shufdet, and distinct messages of proj
MEASURED = {"protocol": "acquire", "representation": "soft", "meanings": "5x10", "settings": ""}
MODELS = {
    "sender": ("FC2L", "HierZero:GRU", "RNNAutoReg:LSTM", "TransDecSoft"),
    "receiver": ("FC2L", "CNN", "RNN2L:GRU", "Transformer"),
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
    "updates to an accuracy of 0.8, relative to concat: geometric mean over 3 seeds, times or divided by "
    "its geometric SD\n"
    "5 attributes of 10 values; >: a seed was cut at 20 times concat's updates; senders can only memorize shuf"
)
TOKENS = ("#0072B2", "#56B4E9", "#E69F00", "#D55E00")  # of Okabe and Ito, apart under every common color blindness
HEAT = LinearSegmentedColormap.from_list("ratio", ["#15325f", "#1f6391", "#4aa3a8", "#b5d8c6", "#f3ead7"])
CAP = 20.0  # of a ratio
BLACK, WHITE = "#1f2328", "#ffffff"
LEFT, RIGHT, COLUMN, ROW = 1.42, 0.08, 0.92, 0.36  # inches
TOP, MESSAGE, SIDE, BOTTOM = 0.8, 0.15, 0.36, 0.48  # inches: names and glosses, a message, a side's name, the caption
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


def ratios() -> dict[tuple[str, str], LogSummary]:
    """Return the ratios of each model and grammar; a side that cannot use a grammar has no entry."""
    long = icy.atlas().to_dataframe()
    for column, value in MEASURED.items():
        long = long[long[column].fillna("") == value]
    names = [f"{side}/{model}" for side, models in MODELS.items() for model in models]
    groups = long[long["model"].isin(names)].groupby(["model", "grammar"])
    return {place: log_summary(one["value"].to_list(), one["censored"].astype(bool).to_list()) for place, one in groups}


def messages() -> dict[str, NDArray[np.int64]]:
    """Return the messages of every grammar: tokens [meaning, word, position in the word]."""
    made = {name: icy.make_language(name, SPACE, word_length=WORD_LENGTH, seed=SEED) for name in ORDER}
    return {name: one.messages.reshape(one.space.size, -1, WORD_LENGTH) for name, one in made.items()}


def digest() -> str:
    """Return a digest of the data of the picture."""
    shown = [f"{place} {one.text(2)}" for place, one in ratios().items()]
    shown += [f"{name} {one.tolist()}" for name, one in messages().items()]
    return hashlib.sha256("\n".join(shown).encode()).hexdigest()


def draw(theme: Theme) -> Figure:
    """Draw the picture in the colors of a theme."""
    language, table = messages(), ratios()
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
    for row, values in enumerate(MeaningSpace.of(SPACE).all()):
        name = " ".join(names[value] for names, value in zip(VALUES, values, strict=True))
        write(axes, LEFT - BETWEEN, TOP + MESSAGE * (row + 0.4), name, theme.dim, 6.5, "right")
    for side, models in MODELS.items():
        write(axes, LEFT - BETWEEN, bottom + SIDE - 0.12, f"{side}s", theme.ink, 9, "right", weight="bold")
        bottom += SIDE
        for model in models:
            write(axes, LEFT - BETWEEN, bottom + ROW / 2, model, theme.ink, 8, "right")
            draw_cells(axes, bottom, [table.get((f"{side}/{model}", grammar)) for grammar in ORDER], theme)
            bottom += ROW
    write(axes, LEFT + 0.03, bottom + 0.25, CAPTION, theme.dim, 7.5, "left")
    return figure


def write(
    axes: Axes, x: float, y: float, text: str, color: str, size: float, align: str = "center", weight: str = "normal"
) -> None:
    """Write lines of text, centered on y, with evenly spaced baselines."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        base = y + size / 72 * (0.36 + LINE * (i - (len(lines) - 1) / 2))
        axes.text(x, base, line, color=color, fontsize=size, ha=align, family="DejaVu Sans", weight=weight)


def draw_messages(axes: Axes, left: float, top: float, language: NDArray[np.int64]) -> None:
    """Draw tokens as colored squares, a row per meaning, with gaps between words."""
    _, words, tokens = language.shape
    size = SPAN * COLUMN / (words * tokens + (words - 1) * GAP)
    for (row, word, token), value in np.ndenumerate(language):
        corner = left + size * (word * (tokens + GAP) + token), top + MESSAGE * row
        axes.add_patch(Rectangle(corner, size, 0.8 * MESSAGE, facecolor=TOKENS[value], linewidth=0))


def draw_cells(axes: Axes, top: float, row: Sequence[LogSummary | None], theme: Theme) -> None:
    """Draw the ratios of a model, with a dash for a grammar that its side cannot learn."""
    for i, found in enumerate(row):
        left, middle = LEFT + COLUMN * i, top + ROW / 2
        if found is None:
            write(axes, left + COLUMN / 2, middle, "\N{EN DASH}", theme.dim, 8)
            continue
        value, _, spread = found.text(2).partition("\N{MULTIPLICATION SIGN}")
        shade = np.log(max(found.center, 1)) / np.log(CAP)
        color = WHITE if shade < 0.55 else BLACK
        corner = left + 0.02, top + 0.02
        axes.add_patch(Rectangle(corner, COLUMN - 0.04, ROW - 0.04, facecolor=HEAT(shade), linewidth=0))
        write(axes, left + COLUMN / 2, middle - (0.055 if spread else 0), value, color, 8)
        if spread:
            write(axes, left + COLUMN / 2, middle + 0.085, f"\N{MULTIPLICATION SIGN}{spread}", color, 6)


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
