"""`--compare` of `icy probe`: show results next to published or other results, or place them in the atlas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icy.core.errors import IcyError, InvalidSettingError
from icy.core.text import printable
from icy.experiments.plan import Plan
from icy.experiments.results import ProbeResult
from icy.records.load import ATLAS

from .output import checked_plot, save_figure
from .session import print_by_protocol

if TYPE_CHECKING:
    from icy.analysis.atlas.atlas import Atlas


COMPARE = (
    "atlas (or FILE.parquet, an atlas of your own) ranks the rows among all models measured by icy; published, a "
    "published table such as perkins21/table13, or a results folder shows reference values next to the cells."
)


@dataclass(frozen=True)
class ProbeComparison:
    """Reference results for the results of a probe.

    Attributes:
        atlas: the atlas in which results are placed, or None.
        other: the source of reference values: the name of a published table, results in long form, or None.
        name: name of the reference results.
        plot: file for a plot of the placement, or None.
    """

    atlas: Atlas | None = None
    other: Any = None
    name: str = ""
    plot: Path | None = None

    @classmethod
    def asked(cls, compare: str | None, plot: str | None, plan: Plan, format_: str) -> ProbeComparison:
        """Return the comparison of a command line. Check it before the training, which may take hours.

        Raises:
            IcyError: an unknown table, file or folder, or an atlas without the settings of the plan.
        """
        if plot is not None and (compare is None or not _is_atlas(compare)):
            raise InvalidSettingError("--plot draws the rows in the atlas: use it with --compare atlas.")
        path = None if plot is None else checked_plot(plot)
        if compare is None:
            return cls()
        if _is_atlas(compare):
            if format_ in ("json", "csv"):
                raise InvalidSettingError(
                    f"--compare atlas cannot print {format_}; in Python, icy.atlas().place(result) has "
                    "ranks and neighbors as tables."
                )
            return cls(_atlas_for(compare, plan), plot=path)
        from icy.analysis.tables.references import compared_with

        return cls(None, *compared_with(compare))

    def show(self, result: ProbeResult, format_: str, spread: str, quiet: bool) -> None:
        """Print the results with their comparison."""
        if self.other is None:
            print_by_protocol(result, format_, spread)
        else:
            print_by_protocol(result, format_, spread, compare=self.other, compared=self.name)
        if self.atlas is None or all(record["failed"] for record in result.records):
            return
        placements = self.atlas.places(result)
        for placement in placements:
            click.echo(printable(f"\n{placement!r}"))
        if self.plot is not None:
            from icy.analysis.atlas.placement import plot_placements

            save_figure(plot_placements(placements), self.plot, quiet)


def _is_atlas(compare: str) -> bool:
    return compare == ATLAS or compare.endswith(".parquet")


def _atlas_for(compare: str, plan: Plan) -> Atlas:
    """Return the atlas, after a check that the atlas has results with the plan's settings.

    Raises:
        StoreError: the atlas does not exist.
        InvalidSettingError: the atlas has no results with these settings.
    """
    from icy.analysis.atlas.atlas import FILE, SETTING, Atlas
    from icy.records.long_table import to_long

    atlas = Atlas.load(FILE if compare == ATLAS else compare)
    # Nothing is trained yet, so use failed records. They have the settings of each row.
    rows = to_long([row.job.failure(row.job.replicates[0], IcyError()) for row in plan.rows])
    settings = rows.drop_duplicates(SETTING)
    for place in range(len(settings)):
        atlas.alike(settings.iloc[[place]])
    return atlas
