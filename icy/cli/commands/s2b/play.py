"""`icy s2b play` and `record`: watch an episode, play along, or write games to a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import click
import numpy as np

from icy.cli.options import Quiet, command, plugin_option, written
from icy.cli.output import note, set_up_log
from icy.core.checks import parse_whole
from icy.core.registry import LISTENER, PLAYERS, SPEAKER
from icy.core.text import counted
from icy.experiments.measuring import save_rows
from icy.experiments.players import ChosenPlayer, player_of, tables_of
from icy.s2b.settings import GameSettings

from .players import Game, Listener, Speaker, Where, settings_of

ME = "me"


@command("play", short_help="Watch an episode, or play along.")
@plugin_option
def play_command(
    *,
    speaker: Speaker = "posdis",
    listener: Listener = "binding",
    where: Where = None,
    seed: int = 123,
    pause: bool | None = None,
    latents: bool | None = None,
    chosen: Game,
    quiet: Quiet = False,
) -> None:
    """Watch an episode step by step, or play along: --listener me, --speaker me.

    If you play along, you see only the stimuli and messages of that player, not the meanings.

    Args:
        seed: seed of the episode.
        pause: wait for Enter after every game; by default on a terminal.
        latents: show meanings; by default if you do not play along.

    Examples:
      icy s2b play
      icy s2b play --listener me
      icy s2b play --speaker me --listener binding --shots 2 --seed 7

    As the speaker, type tokens such as 3 1 2. As the listener, type the number of an answer. q quits.
    """
    from icy.s2b.game import BatchedGame
    from icy.s2b.players.interface import seated
    from icy.s2b.transcript import Transcript

    set_up_log(quiet)
    names = {SPEAKER: speaker, LISTENER: listener}
    mine = [role for role in PLAYERS if names[role] == ME]
    players = tuple(
        ChosenPlayer(ME, person(role), role) if names[role] == ME else player_of(names[role], role, where)
        for role in (SPEAKER, LISTENER)
    )
    ((_, settings),) = tables_of([players], settings_of(chosen))
    game = BatchedGame(settings)
    waits = (sys.stdin.isatty() and not mine) if pause is None else pause
    turn = game.reset(seeds=[seed])
    seats = {one.role: seated(one.player, one.role, game) for one in players}
    transcript = Transcript(game, views=mine or PLAYERS, latents=not mine if latents is None else latents)
    transcript.begin(turn)
    click.echo(transcript.text())
    while not turn.done.all():
        said, heard = seats[SPEAKER].act(turn.speaker), seats[LISTENER].act(turn.listener)
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


# -- record ------------------------------------------------------------------------------------------------------------


@command("record", short_help="Write a row per game to a file.")
@plugin_option
def record_command(
    *,
    speaker: Speaker = "posdis",
    listener: Listener = "binding",
    where: Where = None,
    episodes: int = 64,
    seed: int = 123,
    chosen: Game,
    out: Annotated[Path, written("Games are", (".parquet",))],
    quiet: Quiet = False,
) -> None:
    """Play episodes with two players, and write one row per game: stimuli, messages and decisions.

    Args:
        episodes: number of episodes.
        seed: seed of the episodes.
        out: file to write, as parquet.

    Examples:
      icy s2b record --listener binding --episodes 100 -o games.parquet
    """
    from icy.s2b.evaluation import record

    set_up_log(quiet)
    pair = player_of(speaker, SPEAKER, where), player_of(listener, LISTENER, where)
    (((speaks, listens), game),) = tables_of([pair], settings_of(chosen))
    games = record(speaks.player, listens.player, game, episodes=episodes, seed=seed)
    save_rows(games, out)
    if not quiet:
        note(f"Written: {out}, {counted(len(games), 'game')} of {counted(episodes, 'episode')}.")
