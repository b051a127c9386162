"""The interface of players. A player acts in many episodes at once."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

from jaxtyping import Int64, Real
from numpy.typing import NDArray

from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, PluginError, quoted
from icy.core.registry import registry
from icy.s2b.channel import Array
from icy.s2b.episode_streams import EpisodeStreams, Wholes
from icy.s2b.game import BatchedGame, Seen
from icy.s2b.settings import GameSettings

Decisions = Int64[Wholes, " batch"]
Stimuli = Real[NDArray[Any], "stimulus width"]
Meanings = Int64[Wholes, "stimulus dimension"]
Sentences = Int64[Wholes, "stimulus length"]


@dataclass(frozen=True, eq=False)
class Seat:
    """The information that a player gets before it plays.

    Attributes:
        settings: settings of the game.
        episodes: number of episodes played at once, B.
        streams: the player's random numbers, with a separate stream for every episode.
        game: the game with its latents, for privileged players only. Its arrays are always NumPy arrays.
    """

    settings: GameSettings
    episodes: int
    streams: EpisodeStreams
    game: BatchedGame | None = None


@dataclass(frozen=True, eq=False)
class Action:
    """A player's action, in all B episodes.

    Attributes:
        message: tokens, [B, L]; None for empty messages.
        decision: a listener's decisions, [B]; None for decision 0.
    """

    message: Int64[Wholes, "batch length"] | None = None
    decision: Decisions | None = None


class Player:
    """Base class of speakers and listeners.

    A subclass implements `acting`. A speaker with a language to probe also implements `utter`.

    Attributes:
        privileged: whether the player gets the game and its latents, as `Seat.game`.
    """

    privileged = False
    steps = 0  # steps played since the last `begin`

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. Called before the first observation, and after a change of seeds.

        Raises:
            IncompatibleError: the player cannot play the seat's game.
        """
        self.seat = seat
        self.steps = 0

    def act(self, seen: Seen) -> Action:
        """Act on an observation. Called at every step until all episodes of the batch have ended."""
        self.steps += 1
        action = self.acting(on_cpu(seen))
        if not isinstance(action, Action):
            raise PluginError(f"{type(self).__name__}.acting must return an Action, not {type(action).__name__}.")
        return action

    def acting(self, seen: Seen) -> Action:
        """Return the action for an observation. Subclasses implement this."""
        raise NotImplementedError

    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Return the speaker's current messages for stimuli of one episode, [n, tokens], without changing its state.

        Args:
            stimuli: the stimuli, [n, W].
            meanings: meanings of the stimuli, [n, N], for privileged speakers.
            episode: index of the episode in the batch.

        Raises:
            IncompatibleError: the speaker does not implement `utter`.
        """
        raise IncompatibleError(f"{type(self).__name__} has no method `utter`, so its language cannot be probed.")

    @property
    def game(self) -> BatchedGame:
        """The game, for privileged players."""
        if self.seat.game is None:
            raise IcyError(f"{type(self).__name__} uses the game; set `privileged = True`, so that its seat has it.")
        return self.seat.game


class GameOnCpu:
    """Wrapper of a game on a torch device that returns NumPy arrays, for privileged players."""

    device = None

    def __init__(self, game: BatchedGame) -> None:
        self._game = game

    def __getattr__(self, name: str) -> Any:
        """Return the game's attribute, with NumPy arrays in place of tensors."""
        if name.startswith("_"):  # also needed while a copy has no game yet
            raise AttributeError(name)
        value = getattr(self._game, name)
        return (lambda *args: on_cpu(value(*args))) if callable(value) else on_cpu(value)

    def cpu(self, array: Array) -> Any:
        """Return the array, because the arrays of this game are already on the CPU."""
        return array


def on_cpu(thing: Any) -> Any:
    """Convert a tensor, or the tensors of a dataclass, to NumPy arrays; return any other object unchanged."""
    if hasattr(thing, "cpu") and hasattr(thing, "numpy"):
        return thing.cpu().numpy()
    if is_dataclass(thing) and not isinstance(thing, (type, GameSettings)):
        values = {f.name: getattr(thing, f.name) for f in fields(thing)}
        if any(hasattr(value, "numpy") for value in values.values()):
            return type(thing)(**{name: on_cpu(value) for name, value in values.items()})
    return thing


def seated(player: str | Player, role: str, game: BatchedGame) -> Player:
    """Return a player that is ready to play a game (`begin`). A name creates a new player.

    Raises:
        UnknownNameError: no player in this role has this name.
        InvalidSettingError: `player` is neither a name nor a Player.
        IncompatibleError: the player cannot play this game.
    """
    seated_player: Player = registry.get(player, role).create() if isinstance(player, str) else player
    if not isinstance(seated_player, Player):
        raise InvalidSettingError(
            f"A {role} must be the name of a player or an icy.s2b.Player, not {quoted(seated_player)}."
        )
    streams = EpisodeStreams.of_seeds(game.seeds).within("player", role)
    own = game if game.device is None else cast(BatchedGame, GameOnCpu(game))
    seated_player.begin(Seat(game.settings, game.episodes, streams, own if seated_player.privileged else None))
    return seated_player


def name_of(player: str | Player) -> str:
    """Return a player's name for tables."""
    return player if isinstance(player, str) else type(player).__name__
