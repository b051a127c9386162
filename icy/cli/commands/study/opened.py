"""Shared parts of the commands of a running study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icy.cli.options import Decorator

if TYPE_CHECKING:
    from icy.study.service.studies import Study

study_argument: Decorator = click.argument("study", type=click.Path(), metavar="STUDY")
pilot_option: Decorator = click.option(
    "--pilot/--no-pilot",
    default=None,
    help="Look at the data of the pilot, or not; by default as the study's state is.",
)


def opened(given: str) -> Study:
    """Return a study that has been run, by its name or settings file, to look at its data.

    Raises:
        IcyError: there is none, or it has not been run.
    """
    from icy.study.service import read_plan
    from icy.study.service.studies import look_at_study

    return look_at_study(read_plan(given))
