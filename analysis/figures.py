"""A figure that shows itself in a notebook."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

DPI = 110


class ShownFigure(Figure):
    """matplotlib's figure, which without pyplot a notebook would show as text."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=DPI)
        return file.getvalue()
