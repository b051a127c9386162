"""`icy study`: Secret Spy Codes, the study with people, and its simulated players."""

from __future__ import annotations

import click

from icy.cli.groups import LazyGroup

COMMANDS = {  # name: (module, help)
    "new": ("service", "Write the files of a new study."),
    "serve": ("service", "Run studies as a web service."),
    "status": ("service", "Show the progress of a study."),
    "review": ("service", "Look at finished games, decide on them, and write payments."),
    "export": ("service", "Write the data of a study with their codebook."),
    "check": ("service", "Play every game of a study again from its log."),
    "forget": ("service", "Erase a person's ids, and optionally their data."),
    "simulate": ("report", "Let simulated players and senders of the zoo play."),
    "report": ("report", "Show people, simulated players and senders in one table."),
    "power": ("report", "Simulate studies of a given size, and show their results."),
}


@click.command("study", cls=LazyGroup, commands=COMMANDS, package=__name__)
def study_command() -> None:
    """Run Secret Spy Codes, and simulate its players (Icy22 section 4.3).

    Players learn the codes of colored shapes. Their answers to combinations that were never shown reveal their
    bias. People, simulated players and senders of the zoo play the same instances.

    Examples:
      icy study new pilot.toml
      icy study serve pilot
      icy study simulate --player composer --player memoriser --player HierZero:GRU -o games
      icy study report games --published --plot study.png
      icy study power --persons 40 --mean concat=0.6 --mean perm=0.2 --mean rot=0.02
    """
