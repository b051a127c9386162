"""Figures that notebooks display."""

from __future__ import annotations

import io
import warnings

from matplotlib.artist import Artist
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text

from icy.core.errors import InvalidSettingError

from .own_settings import own_settings

DPI = 110  # resolution of the picture in a notebook
LEAST = 0.4  # narrowest readable axes, in inches


def show_as_it_is(artist: Artist) -> None:
    """Print `$` literally in the texts of a figure or axes: names may contain it, and icy's texts have no formulas."""
    for text in artist.findobj(Text):
        text.set_parse_math(False)  # type: ignore[attr-defined]


class ShownFigure(Figure):
    """A matplotlib figure that notebooks show as a picture, although it was made without pyplot.

    Drawing raises an error if the figure is too small for its labels. Matplotlib only warns, and draws labels without
    a plot.

    Attributes:
        caption: title and notes, as sentences for the caption of a paper.
    """

    caption = ""

    def draw(self, renderer: RendererBase) -> None:
        """Draw the figure.

        Raises:
            InvalidSettingError: the labels leave no room for the plot.
        """
        show_as_it_is(self)
        with own_settings(), warnings.catch_warnings():
            warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
            try:
                super().draw(renderer)
            except UserWarning as error:
                raise self._too_small() from error
        if self.get_layout_engine() is not None and any(ax.bbox.width < LEAST * self.dpi for ax in self.axes):
            raise self._too_small()

    def _too_small(self) -> InvalidSettingError:
        return InvalidSettingError(
            f"The labels leave no room for the plot in a width of {self.get_figwidth():g} inches: make it wider, "
            "or plot fewer results."
        )

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        with own_settings():
            self.savefig(file, format="png", dpi=DPI)
        return file.getvalue()
