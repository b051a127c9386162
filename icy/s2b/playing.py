"""Playing: two players and a batch of episodes, from the first step to the last."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from icy.registry import LISTENER, SPEAKER

from .game import BatchedGame, Turn
from .players.base import Action, Player, seated
from .scoring import Scores

Watcher = Callable[[BatchedGame, Turn, Action, Action], None]


def play(
    game: BatchedGame,
    speaker: str | Player,
    listener: str | Player,
    seeds: Iterable[int],
    watcher: Watcher | None = None,
) -> Scores:
    """Play one episode in every slot of a game to its end.

    Args:
        game: without autoreset.
        speaker: by name, or itself.
        listener: the same.
        seeds: of each episode.
        watcher: called before each step with the game, what is seen, and what both do.

    Raises:
        IcyError: players that cannot play this game.
    """
    turn = game.reset(seeds=seeds)
    speaks, listens = seated(speaker, SPEAKER, game), seated(listener, LISTENER, game)
    while not turn.done.all():
        said, heard = speaks.act(turn.speaker), listens.act(turn.listener)
        if watcher is not None:
            watcher(game, turn, said, heard)
        turn = game.step(said.message, heard.decision, heard.message)
    return game.scores()
