"""`icy s2b play`: watch an episode, or play along."""

from __future__ import annotations

import sys
from typing import Any

import click
import numpy as np

from icy.cli.groups import command
from icy.cli.options import Assignments
from icy.core.checks import parse_whole
from icy.core.registry import LISTENER, PLAYERS, SPEAKER
from icy.core.text import counted
from icy.s2b.settings import GameSettings

from .game_options import game_options, plugins_and_quiet, settings_of
from .players import ChosenPlayer, player_of, player_option, tables_of, where_option

ME = "me"
EPILOG = """\b
Examples:
  icy s2b play
  icy s2b play --listener me
  icy s2b play --speaker me --listener binding --shots 2 --seed 7

\b
As the speaker, type tokens such as 3 1 2. As the listener, type the number of an answer. q quits.
"""


@command("play", short_help="Watch an episode, or play along.", epilog=EPILOG)
@player_option("speaker", "posdis")
@player_option("listener", "binding")
@where_option
@click.option("--seed", type=int, default=123, show_default=True, help="Seed of the episode.")
@click.option("--pause/--no-pause", default=None, help="Wait for Enter after every game; by default on a terminal.")
@click.option("--latents/--no-latents", default=None, help="Show meanings; by default if you do not play along.")
@game_options()
@plugins_and_quiet
@click.pass_context
def play_command(
    ctx: click.Context,
    /,
    speaker: str,
    listener: str,
    where: Assignments,
    seed: int,
    pause: bool | None,
    latents: bool | None,
    quiet: bool,
    **given: object,
) -> None:
    """Watch an episode step by step, or play along: --listener me, --speaker me.

    If you play along, you see only the stimuli and messages of that player, not the meanings.
    """
    from icy.s2b.game import BatchedGame
    from icy.s2b.players.interface import seated
    from icy.s2b.transcript import Transcript

    names = {SPEAKER: speaker, LISTENER: listener}
    mine = [role for role in PLAYERS if names[role] == ME]
    chosen = tuple(
        ChosenPlayer(ME, person(role), role) if names[role] == ME else player_of(names[role], role, where)
        for role in (SPEAKER, LISTENER)
    )
    ((_, settings),) = tables_of([chosen], settings_of(ctx, given), quiet)
    game = BatchedGame(settings)
    waits = (sys.stdin.isatty() and not mine) if pause is None else pause
    turn = game.reset(seeds=[seed])
    players = {one.role: seated(one.player, one.role, game) for one in chosen}
    transcript = Transcript(game, views=mine or PLAYERS, latents=not mine if latents is None else latents)
    transcript.begin(turn)
    click.echo(transcript.text())
    while not turn.done.all():
        said, heard = players[SPEAKER].act(turn.speaker), players[LISTENER].act(turn.listener)
        before, turn = turn, game.step(said.message, heard.decision, heard.message)
        transcript.add(before, turn, said.message, heard.decision)
        if waits and transcript.new_game and click.prompt("", default="", prompt_suffix="", show_default=False) == "q":
            return
        if text := transcript.text():
            click.echo(text)


def person(role: str) -> Any:
    """Make a player with typed actions."""
    from icy.s2b.players.interface import Action, Player

    class Person(Player):
        """The person at the keyboard."""

        def acting(self, seen: Any) -> Action:
            """Ask for an action where one is legal."""
            settings = self.seat.settings
            if role == SPEAKER:
                return Action(message=_ask_tokens(settings) if seen.may_speak[0] else None)
            message = _ask_tokens(settings) if seen.may_speak[0] else None
            return Action(message, _ask_decision(settings) if seen.may_decide[0] else None)

    return Person()


def _ask_tokens(settings: GameSettings) -> Any:
    """Ask for a message, [1, L]."""
    wanted = f"up to {counted(settings.length, 'token')} from 1 to {settings.vocab_size}"
    while True:
        words = _answer(f"  you say ({wanted})").replace(",", " ").split()
        said = [parse_whole(word) for word in words]
        if len(said) <= settings.length and all(n is not None and n <= settings.vocab_size for n in said):
            return np.array([[*said, *[0] * (settings.length - len(said))]])
        click.echo(f"  That is not {wanted}.")


def _ask_decision(settings: GameSettings) -> Any:
    """Ask for a decision, [1]."""
    from icy.s2b.transcript import answer

    choices = ", ".join(f"{d} {answer(d, settings)}" for d in range(settings.decisions))
    while True:
        decision = parse_whole(_answer(f"  you decide ({choices})").strip())
        if decision is not None and decision < settings.decisions:
            return np.array([decision])
        click.echo(f"  That is not one of {choices}.")


def _answer(question: str) -> str:
    text: str = click.prompt(question, default="", show_default=False, prompt_suffix=": ")
    if text.strip().lower() == "q":
        raise SystemExit(0)
    return text
