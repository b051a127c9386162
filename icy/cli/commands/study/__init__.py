"""`icy study`: Secret Spy Codes, the study with people, and its simulated players."""

from __future__ import annotations

import importlib

import click

COMMANDS = {  # name: (module, what it does)
    "new": ("new", "Write the files of a new study."),
    "serve": ("serve", "Run studies as a web service."),
    "status": ("status", "Show how far a study is."),
    "review": ("review", "Look at finished games, decide on them, and write payments."),
    "export": ("export", "Write the data of a study with their codebook."),
    "check": ("check", "Play every game of a study again from its log."),
    "forget": ("forget", "Erase a person's ids, and data if wished."),
    "simulate": ("simulate", "Let simulated players and senders of the zoo play."),
    "report": ("report", "Show people, simulated players and senders in one table."),
    "power": ("power", "Tell by simulation what a study of some size would find."),
}
EPILOG = """\b
Examples:
  icy study new pilot.toml
  icy study serve pilot
  icy study simulate --player composer --player memoriser --player HierZero:GRU -o games
  icy study report games --published --plot study.png
  icy study power --persons 40 --mean concat=0.6 --mean perm=0.2 --mean rot=0.02
"""


class StudyGroup(click.Group):
    """A group that imports a command when it is run: those of the service need what the others do not."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands in the help, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.command("study", cls=StudyGroup, epilog=EPILOG)
def study_command() -> None:
    """Run Secret Spy Codes, and simulate its players (Icy22 section 4.3).

    Players learn the codes of coloured shapes; what they get right of combinations that were never shown tells their
    bias. People, simulated players and senders of the zoo play on the same instances.
    """
