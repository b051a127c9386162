"""Measurements of several parts, such as languages or pairs of players: their rows, their table and their plot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from icy.core.errors import InvalidSettingError
from icy.core.files import write_atomically
from icy.core.progress import track
from icy.core.text import counted, csv_table

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.tables.printed_table import BiasTable

FILES = (".csv", ".parquet")  # suffixes of files with rows


@dataclass(eq=False, repr=False)
class Measurement(ABC):
    """Rows of a measurement with several parts, such as languages, or pairs of players and their game.

    A notebook displays the table.

    Attributes:
        parts: the measured things, in order.
        frames: rows of each part that is measured.
    """

    parts: Sequence[Any]
    frames: list[pd.DataFrame] = field(default_factory=list, init=False)

    noun = "row"  # of a part
    resume = ""  # end of the sentence after an interruption

    @abstractmethod
    def measure_part(self, part: Any) -> pd.DataFrame:
        """Return the rows of a part."""

    @abstractmethod
    def bias_table(self, spread: str = "sd") -> BiasTable:
        """Return the table of all rows as an object.

        Args:
            spread: "sd" over seeds or episodes, "sem" the standard error, or "ci95", half the 95 % interval.
        """

    def measure(self, finished: Finished | None = None) -> Self:
        """Measure all parts that have no rows yet.

        Args:
            finished: callback, called with this measurement at the end if it has any rows, also after an error.

        Raises:
            KeyboardInterrupt: at Ctrl-C, with the number of measured parts. Their rows are kept.
        """
        try:
            for part in track(self.parts[len(self.frames) :], f"{self.noun}s"):
                self.frames.append(self.measure_part(part))
        except KeyboardInterrupt:
            done = f"{len(self.frames)} of {counted(len(self.parts), self.noun)} measured"
            raise KeyboardInterrupt(f"{done}{self.resume}.") from None
        finally:
            if self.frames and finished is not None:
                finished(self)
        return self

    @property
    def rows(self) -> pd.DataFrame:
        """The rows of all measured parts."""
        return joined(self.frames)

    def table(self, format: str = "text", spread: str = "sd") -> str:
        """Return the table as text.

        Args:
            format: "text", "markdown", "latex", "csv", "json" or "html".
            spread: as for `bias_table`.
        """
        return self.bias_table(spread).render(format)

    def save(self, path: str | Path) -> Path:
        """Write the rows to a file, as csv or parquet.

        Args:
            path: the file; its suffix is the format.

        Raises:
            InvalidSettingError: another suffix.
            StoreError: the file cannot be written.
        """
        return save_rows(self.rows, path)

    def __repr__(self) -> str:
        return self.table() if self.frames else f"{type(self).__name__} without rows"

    def _repr_html_(self) -> str:
        return self.table("html") if self.frames else repr(self)


Finished = Callable[[Any], object]  # called with a measurement


def joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join several tables with the same columns."""
    import pandas as pd

    rows = pd.concat([frame.set_axis(frame.columns, axis=1) for frame in frames], ignore_index=True)
    rows.attrs = {}  # not saved in files
    return rows


def save_rows(rows: pd.DataFrame, path: str | Path) -> Path:
    """Write rows to a file, as csv or parquet, and return its path; errors as for `Measurement.save`."""
    path = Path(path)
    if path.suffix.lower() not in FILES:
        raise InvalidSettingError(f"Rows are written as .csv or .parquet, not as '{path.name}'.")
    is_csv = path.suffix.lower() == ".csv"
    write_atomically(path, csv_table(rows).to_csv(index=False).encode() if is_csv else rows.to_parquet(index=False))
    return path
