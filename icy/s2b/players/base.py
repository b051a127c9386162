"""What every player of S2B does; it plays many episodes at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from icy.core.errors import IcyError, IncompatibleError, PluginError
from icy.core.registry import registry
from icy.s2b.game import BatchedGame, Seen
from icy.s2b.settings import GameSettings
from icy.s2b.streams import Draws, Wholes


@dataclass(frozen=True, eq=False)
class Seat:
    """What a player is told before it plays.

    Attributes:
        settings: of the game.
        episodes: how many at once, B.
        draws: streams of its own for every episode, for what it draws.
        game: for privileged players, the game itself, with its latents.
    """

    settings: GameSettings
    episodes: int
    draws: Draws
    game: BatchedGame | None = None


@dataclass(frozen=True, eq=False)
class Action:
    """What a player does, in all episodes.

    Attributes:
        message: tokens, [B, L]; None is the empty message.
        decision: of a listener, [B]; None where none is asked for.
    """

    message: Wholes | None = None
    decision: Wholes | None = None


class Player:
    """A speaker or a listener; what every player does.

    Attributes:
        privileged: whether it is shown the latents, by way of `Seat.game`.
    """

    privileged = False
    steps = 0  # acted since the last `begin`

    def begin(self, seat: Seat) -> None:
        """Take a seat; called before the first observation of every batch of episodes, and of new seeds.

        Raises:
            IncompatibleError: it cannot play this game.
        """
        self.seat = seat
        self.steps = 0

    def act(self, seen: Seen) -> Action:
        """What to do, given what is seen; called at every step, until all episodes of the batch are over."""
        self.steps += 1
        found = self.acting(seen)
        if not isinstance(found, Action):
            raise PluginError(f"{type(self).__name__}.acting answers with an Action, not with {type(found).__name__}.")
        return found

    def acting(self, seen: Seen) -> Action:
        """What `act` answers; for players to write."""
        raise NotImplementedError

    def utter(self, stimuli: NDArray[Any], meanings: Wholes, episode: int) -> Wholes:
        """What a speaker would say, as it is now, of stimuli of one episode: [n, tokens]. It does not change by that.

        Args:
            stimuli: [n, W].
            meanings: of the stimuli, [n, N], for privileged speakers.
            episode: which of the batch.

        Raises:
            IncompatibleError: it cannot be asked.
        """
        raise IncompatibleError(f"{type(self).__name__} has no `utter`, so its language cannot be probed.")

    @property
    def game(self) -> BatchedGame:
        """The game, for players that are privileged."""
        if self.seat.game is None:
            raise IcyError(f"{type(self).__name__} is privileged and must be given the game.")
        return self.seat.game


def seated(player: str | Player, side: str, game: BatchedGame) -> Player:
    """A player by name or as it is, ready for a game.

    Raises:
        UnknownNameError: no player of that side is called so.
        IncompatibleError: it cannot play this game.
    """
    if game.device is not None:
        raise IncompatibleError("Players play on arrays of NumPy; give the game no device.")
    made: Player = registry.get(player, side).create() if isinstance(player, str) else player
    draws = Draws.of_seeds(game.seeds).within("player", side)
    made.begin(Seat(game.settings, game.episodes, draws, game if made.privileged else None))
    return made


def name_of(player: str | Player) -> str:
    """What a player is called in tables."""
    return player if isinstance(player, str) else type(player).__name__
