"""The interface of players, which play many episodes at once."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

from jaxtyping import Int64, Real
from numpy.typing import NDArray

from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, PluginError, quoted
from icy.core.registry import registry
from icy.s2b.channel import Array
from icy.s2b.episode_streams import EpisodeStreams, Wholes
from icy.s2b.game import BatchedGame
from icy.s2b.settings import GameSettings
from icy.s2b.turn import Seen

Decisions = Int64[Wholes, " batch"]
Stimuli = Real[NDArray[Any], "stimulus width"]
Meanings = Int64[Wholes, "stimulus dimension"]
Sentences = Int64[Wholes, "stimulus length"]


@dataclass(frozen=True, eq=False)
class Seat:
    """The game, random numbers and batch size that a player gets before it plays.

    Attributes:
        settings: settings of the game.
        episodes: number of episodes that it plays at once, B.
        streams: the player's own random numbers for every episode.
        game: the game itself, with its latents, for privileged players only; its arrays are always NumPy arrays.
    """

    settings: GameSettings
    episodes: int
    streams: EpisodeStreams
    game: BatchedGame | None = None


@dataclass(frozen=True, eq=False)
class Action:
    """A player's action, in all B episodes.

    Attributes:
        message: tokens, [B, L]; None is the empty message.
        decision: a listener's decision, [B]; None is decision 0.
    """

    message: Int64[Wholes, "batch length"] | None = None
    decision: Decisions | None = None


class Player:
    """Base class of speakers and listeners.

    A player implements `acting`. A speaker also implements `utter` if its language is to be probed.

    Attributes:
        privileged: whether the player gets the game and its latents, as `Seat.game`.
    """

    privileged = False
    steps = 0  # steps played since the last `begin`

    def begin(self, seat: Seat) -> None:
        """Take a seat; called before the first observation of every batch of episodes, and after a reset to new seeds.

        Raises:
            IncompatibleError: the player cannot play this game.
        """
        self.seat = seat
        self.steps = 0

    def act(self, seen: Seen) -> Action:
        """Act on an observation; called at every step until all episodes of the batch have ended."""
        self.steps += 1
        found = self.acting(on_cpu(seen))
        if not isinstance(found, Action):
            raise PluginError(f"{type(self).__name__}.acting must return an Action, not {type(found).__name__}.")
        return found

    def acting(self, seen: Seen) -> Action:
        """Return the action for an observation; every player implements this."""
        raise NotImplementedError

    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Return a speaker's messages about stimuli of one episode, [n, tokens], without changing its state.

        Args:
            stimuli: the stimuli, [n, W].
            meanings: their meanings, [n, N], for privileged speakers.
            episode: index of the episode in the batch.

        Raises:
            IncompatibleError: the speaker does not support this.
        """
        raise IncompatibleError(f"{type(self).__name__} does not implement `utter`, so its language cannot be probed.")

    @property
    def game(self) -> BatchedGame:
        """The game, for privileged players."""
        if self.seat.game is None:
            raise IcyError(f"{type(self).__name__} is privileged: its seat must include the game.")
        return self.seat.game


class GameOnCpu:
    """A game on a torch device for privileged players: every array that they read from it is a NumPy array."""

    device = None

    def __init__(self, game: BatchedGame) -> None:
        self._game = game

    def __getattr__(self, name: str) -> Any:
        """Return the game's attribute of this name."""
        if name.startswith("_"):  # also during a copy, which has no game yet
            raise AttributeError(name)
        found = getattr(self._game, name)
        return (lambda *given: on_cpu(found(*given))) if callable(found) else on_cpu(found)

    def cpu(self, array: Array) -> Any:
        """Return a NumPy array unchanged."""
        return array


def on_cpu(thing: Any) -> Any:
    """Convert a tensor, or the tensors of a dataclass, to NumPy; return anything else unchanged."""
    if hasattr(thing, "cpu") and hasattr(thing, "numpy"):
        return thing.cpu().numpy()
    if is_dataclass(thing) and not isinstance(thing, (type, GameSettings)):
        values = {f.name: getattr(thing, f.name) for f in fields(thing)}
        if any(hasattr(value, "numpy") for value in values.values()):
            return type(thing)(**{name: on_cpu(value) for name, value in values.items()})
    return thing


def seated(player: str | Player, role: str, game: BatchedGame) -> Player:
    """Create a player by name, or take a `Player`, and seat it at a game.

    Raises:
        UnknownNameError: no player of this role has this name.
        InvalidSettingError: not a name or a player.
        IncompatibleError: the player cannot play this game.
    """
    made: Player = registry.get(player, role).create() if isinstance(player, str) else player
    if not isinstance(made, Player):
        raise InvalidSettingError(f"A {role} must be the name of a player or an icy.s2b.Player, not {quoted(made)}.")
    streams = EpisodeStreams.of_seeds(game.seeds).within("player", role)
    own = game if game.device is None else cast(BatchedGame, GameOnCpu(game))
    made.begin(Seat(game.settings, game.episodes, streams, own if made.privileged else None))
    return made


def name_of(player: str | Player) -> str:
    """Return a player's name for tables."""
    return player if isinstance(player, str) else type(player).__name__
