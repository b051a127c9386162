"""`icy study new`: the files of a new study."""

from __future__ import annotations

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.output import note

EPILOG = """\b
Examples:
  icy study new pilot.toml
  icy study new spy-codes --platform prolific --language de

\b
Writes the settings, and texts of information and debriefing for you to complete. `icy study serve` runs the study.
"""


@command("new", epilog=EPILOG)
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option("--platform", default="link", show_default=True, metavar="NAME",
              help="Where people will come from: link, kiosk, prolific, mturk or sona.")  # fmt: skip
@click.option("--language", default="en", show_default=True, metavar="CODE", help="Language of the texts: en or de.")
def new_command(file: str, platform: str, language: str) -> int:
    """Write the files of a new study."""
    from icy.study.service.new import new_study

    paths = new_study(file, platform, language)
    note(f"Written: {', '.join(map(str, paths))}.")
    note(f"Try it with `icy study serve {paths[0]}`; write the texts marked TODO before the study opens.")
    return DONE
