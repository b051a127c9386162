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
    help="Use the data of the pilot, or of the main study; by default, the current state of the study decides.",
)


def opened(given: str) -> Study:
    """Return a study that has run, by its name or settings file, to read its data.

    Raises:
        IcyError: the study does not exist, or has not run.
    """
    from icy.study.service import read_plan
    from icy.study.service.studies import look_at_study

    return look_at_study(read_plan(given))
