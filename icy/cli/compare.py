"""`--compare` of `icy probe`: results beside published ones or others, or placed in the atlas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icy.core.errors import IcyError, InvalidSettingError
from icy.experiments.plan import Plan
from icy.experiments.results import ProbeResult
from icy.records.load import ATLAS

from .output import checked_plot, save_figure
from .session import print_result

if TYPE_CHECKING:
    from icy.analysis.atlas.atlas import Atlas


COMPARE = (
    "atlas: where the rows stand among all that icy has measured (or FILE.parquet, an atlas of your own); published, a "
    "published table such as perkins21/table13, or a results folder: what stands beside each cell."
)


@dataclass(frozen=True)
class Comparison:
    """What the results of a probe are held against.

    Attributes:
        atlas: where they are placed, if anywhere.
        other: what stands beside them: the name of a published table, or results in long form.
        name: what other results are called.
        plot: the file for a drawing of their place.
    """

    atlas: Atlas | None = None
    other: Any = None
    name: str = ""
    plot: Path | None = None

    @classmethod
    def asked(cls, compare: str | None, plot: str | None, plan: Plan, format_: str) -> Comparison:
        """What was asked for; said now if it cannot be, and not after hours of work.

        Raises:
            IcyError: no such table, file or folder, or an atlas without the settings of the plan.
        """
        if plot is not None and (compare is None or not _is_atlas(compare)):
            raise InvalidSettingError("--plot draws where rows stand in the atlas: give --compare atlas with it.")
        path = None if plot is None else checked_plot(plot)
        if compare is None:
            return cls()
        if _is_atlas(compare):
            if format_ in ("json", "csv"):
                raise InvalidSettingError(
                    f"--compare atlas prints for readers, not as {format_}; in Python, icy.atlas().place(result) has "
                    "ranks and neighbours as tables."
                )
            return cls(_atlas_for(compare, plan, path), plot=path)
        from icy.analysis.tables.compare import compared_with

        return cls(None, *compared_with(compare))

    def show(self, result: ProbeResult, format_: str, spread: str, quiet: bool) -> None:
        """Print the results, and what they are held against."""
        if self.other is None:
            print_result(result, format_, spread)
        else:
            print_result(result, format_, spread, compare=self.other, compared=self.name)
        if self.atlas is None or all(record["failed"] for record in result.records):
            return
        placements = self.atlas.places(result)
        for placement in placements:
            click.echo(f"\n{placement!r}")
        if self.plot is not None:
            save_figure(placements[0].plot(), self.plot, quiet)


def _is_atlas(compare: str) -> bool:
    return compare == ATLAS or compare.endswith(".parquet")


def _atlas_for(compare: str, plan: Plan, plot: Path | None) -> Atlas:
    """The atlas that is meant, which has something under the settings of the plan.

    Raises:
        StoreError: there is none.
        InvalidSettingError: it has not, or rows of several settings are to be in one drawing.
    """
    from icy.analysis.atlas.atlas import FILE, SETTING, Atlas
    from icy.records.long_table import to_long

    atlas = Atlas.load(FILE if compare == ATLAS else compare)
    # Before anything is trained: what a record of each row will look like.
    rows = to_long([row.job.failure(row.job.replicates[0], IcyError()) for row in plan.rows])
    settings = rows.drop_duplicates(SETTING)
    if plot is not None and len(settings) > 1:
        raise InvalidSettingError("--plot draws rows of one side and setting; make a plot of each in a run of its own.")
    for place in range(len(settings)):
        atlas.alike(settings.iloc[[place]])
    return atlas
