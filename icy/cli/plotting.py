"""Figures to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from icy.errors import StoreError

from .printing import note
from .writing import checked_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".svg")


def checked_plot(given: str) -> Path:
    """The file to draw to."""
    return checked_file(given, SUFFIXES, "A plot is")


# The same figure gives the same file.
NO_DATE: dict[str, dict[str, str | None]] = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
DPI = 200


def save_figure(figure: Figure, path: Path, quiet: bool) -> None:
    """Write a figure, and say so."""
    from matplotlib import rc_context

    try:
        # Letters in a pdf stay letters, of a kind that publishers accept.
        with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "icy"}):
            figure.savefig(path, dpi=DPI, metadata=NO_DATE[path.suffix.lower()])
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error
    if not quiet:
        note(f"Drawn: {path}.")
