"""Record episodes as a table with a row per game, for other tools and `icy metrics`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError
from icy.core.files import whole_file
from icy.core.registry import LISTENER, SPEAKER
from icy.core.surroundings import standard_state
from icy.s2b.players.interface import Action, Player, name_of
from icy.version import __version__

from .channel import Array
from .episode_streams import Wholes
from .evaluation import ProgressCallback, batches, episode_seeds, play
from .game import BatchedGame
from .options import GameOptions
from .settings import GameSettings
from .transcript import PHASES
from .turn import Turn

if TYPE_CHECKING:
    import pandas as pd


class Recorder:
    """A callback of `icy.s2b.play` that records every game of a batch of episodes."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Array]] = []
        self._said: Wholes = np.zeros((0, 0), dtype=np.int64)

    def __call__(self, game: BatchedGame, turn: Turn, said: Action, heard: Action) -> None:
        """Record the actions of a step, before the game plays it."""
        settings = game.settings
        width = settings.rounds * settings.length
        if self._said.shape != (game.episodes, width):
            self._said = np.zeros((game.episodes, width), dtype=np.int64)
        message, decision, _ = game.taken(said.message, heard.decision)
        self._said[turn.speaker.round == 0] = 0
        for place in range(settings.rounds):
            now = turn.speaker.round == place
            self._said[now, place * settings.length : (place + 1) * settings.length] = message[now]
        asked = np.flatnonzero(turn.listener.may_decide)
        if len(asked):
            self._note(game, turn, asked, decision)

    def _note(self, game: BatchedGame, turn: Turn, asked: Wholes, decision: Wholes) -> None:
        spoken = game.latents(SPEAKER)[:, 0]
        heard = np.take_along_axis(game.heard_as, self._said, axis=1)
        columns: dict[str, Array] = {
            "episode": game.seeds,
            "game": game.game_number,
            "query": turn.listener.query,
            "decision": decision,
            "answer": game.answer,
            **{f"values_{i}": game.sizes[:, i] for i in range(game.settings.dimensions)},
            **{f"meaning_{i}": spoken[:, i] for i in range(game.settings.dimensions)},
            "sample": game.sample_numbers(SPEAKER)[:, 0],
            "said": self._said.copy(),
            "heard": heard,
            "speaker_sees": turn.speaker.stimulus.reshape(game.episodes, -1),
            "listener_sees": turn.listener.stimulus.reshape(game.episodes, -1),
            "listener_meanings": game.latents(LISTENER).reshape(game.episodes, -1),
        }
        self.rows.append({name: column[asked] for name, column in columns.items()})

    def table(self) -> "pd.DataFrame":
        """Return the recorded games; see `record` for the columns."""
        import pandas as pd

        joined = {name: np.concatenate([row[name] for row in self.rows]) for name in self.rows[0]}
        query = joined.pop("query")
        order = np.lexsort([joined["game"], joined["episode"]])
        columns = {name: _column(values[order]) for name, values in joined.items()}
        table = pd.DataFrame(columns)
        table.insert(2, "phase", np.array(PHASES)[query[order].astype(np.int64)])
        table.insert(5, "correct", table["decision"] == table["answer"])
        for name in ("said", "heard"):
            table[name] = [" ".join(map(str, tokens)) for tokens in table[name]]
        return table


def _column(values: NDArray[Any]) -> object:
    return values if values.ndim == 1 else list(values)


@standard_state()
def record(
    speaker: str | Player = "posdis",
    listener: str | Player = "binding",
    settings: GameSettings | None = None,
    *,
    episodes: int = 64,
    seed: int = 123,
    progress: ProgressCallback | None = None,
    **given: Unpack[GameOptions],
) -> "pd.DataFrame":
    """Play episodes with a speaker and a listener, and return a table with a row per game.

    Args:
        speaker: name of a registered speaker (`icy list players`), or a `Player`.
        listener: name of a registered listener, or a `Player`.
        settings: settings of the game; or give them by name.
        episodes: number of episodes.
        seed: seed of the episodes, see `evaluate`.
        progress: callback, called after each batch with the number of episodes played and their total.
        **given: settings by name, see GameSettings.

    Returns:
        A row per game: `episode` (the episode's seed), `game`, `phase`, `decision`, `answer`, `correct`; `values_0`...,
        the numbers of values of the space; `meaning_0`... and `sample` of the target; `said` and `heard`, the tokens of
        all rounds before and after the renaming; and the lists `speaker_sees`, `listener_sees` and
        `listener_meanings`, slot by slot. `attrs` holds the settings, the seed, the players' names and icy's version.

    Raises:
        IcyError: as for `evaluate`.

    Example:
        >>> from icy.s2b import record
        >>> games = record("posdis", "oracle", episodes=2)
        >>> columns = ["phase", "meaning_0", "meaning_1", "meaning_2", "said", "heard"]
        >>> print(games[columns].head(2).to_string(index=False))
          phase  meaning_0  meaning_1  meaning_2  said heard
        support          2          1          0 3 2 1 5 2 6
        support          2          2          1 3 3 2 5 5 2
    """
    import pandas as pd

    chosen = GameSettings.of(settings, **given)
    parts = []
    for game, batch in batches(chosen, episode_seeds(seed, episodes), progress):
        recorder = Recorder()
        play(game, speaker, listener, batch, recorder)
        parts.append(recorder.table())
    table = pd.concat(parts, ignore_index=True)
    table.attrs = {
        "icy": __version__,
        "settings": asdict(chosen),
        "seed": seed,
        SPEAKER: name_of(speaker),
        LISTENER: name_of(listener),
    }
    return table


def write(table: "pd.DataFrame", path: str | Path) -> Path:
    """Write recorded games as parquet, atomically.

    Raises:
        InvalidSettingError: the file name does not end in .parquet, or its folder does not exist.
        OSError: the file cannot be written.
    """
    file = checked_target(path)
    with whole_file(file) as stream:
        table.to_parquet(stream, index=False)
    return file


def checked_target(path: str | Path) -> Path:
    """Return the path of a file for recorded games, after a check that games can be written to it.

    Raises:
        InvalidSettingError: see `write`.
    """
    file = Path(path)
    if file.suffix.lower() != ".parquet":
        raise InvalidSettingError(f"Games are recorded as .parquet, not as '{file.name}'.")
    if not file.absolute().parent.is_dir():
        raise InvalidSettingError(f"The folder {file.absolute().parent} does not exist.")
    return file
