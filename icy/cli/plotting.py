"""Figures to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from icy.errors import InvalidSettingError, StoreError

from .printing import note

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".svg")


def checked_plot(given: str) -> Path:
    """The file to draw to; said now if it cannot be, and not after hours of work."""
    path = Path(given)
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidSettingError(f"A plot is written as {', '.join(SUFFIXES)}; not as '{path.name}'.")
    if not path.absolute().parent.is_dir():
        raise InvalidSettingError(f"The folder of the plot, {path.absolute().parent}, does not exist.")
    return path


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
