"""Figures that notebooks show."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

DPI = 110  # of the picture in a notebook


class ShownFigure(Figure):
    """A matplotlib figure that notebooks show as a picture, although it was made without pyplot."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=DPI)
        return file.getvalue()
