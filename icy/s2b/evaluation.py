"""How well two players understand each other, over episodes and seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from icy.core.checks import seed_list, whole_number
from icy.core.errors import InvalidSettingError
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b.players.base import Action, Player, name_of, seated

from .game import BatchedGame, Turn
from .scores import Scores
from .settings import GameSettings
from .streams import Wholes

if TYPE_CHECKING:
    import pandas as pd


AT_ONCE = 1024  # episodes in one batch
MOST_AT_ONCE = 10_000_000  # stimuli of their spaces
MOST_EPISODES = 1_000_000  # of one seed
MEASURES = ("zsct", "support", "yes", "kept")
Told = Callable[[int, int], None]  # episodes played, and of how many

Watcher = Callable[[BatchedGame, Turn, Action, Action], None]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How a pair of players did; every measure is a mean over the episodes of a seed.

    Attributes:
        settings: of the game.
        speaker: its name.
        listener: its name.
        episodes: of each seed.
        seeds: which.
        scores: of all episodes, seed after seed.
    """

    settings: GameSettings
    speaker: str
    listener: str
    episodes: int
    seeds: tuple[int, ...]
    scores: Scores

    def table(self) -> pd.DataFrame:
        """One row per seed: `zsct`, the accuracy in the query; `support`, that in the support; `yes`, how often the
        listener said that it saw the target's meaning, and `kept`, how often it did, in the query; `illegal`, illegal
        actions of both in an episode."""
        import pandas as pd

        rows: dict[str, Any] = {"seed": list(self.seeds)}
        for name in MEASURES:
            by_seed = getattr(self.scores, name).reshape(len(self.seeds), self.episodes)
            there = np.isfinite(by_seed)
            total = np.where(there, by_seed, 0.0).sum(1)
            rows[name] = np.where(there.any(1), total / np.maximum(there.sum(1), 1), np.nan)
        rows["illegal"] = self.scores.illegal.sum(1).reshape(len(self.seeds), self.episodes).mean(1)
        return pd.DataFrame(rows)

    def summary(self) -> pd.DataFrame:
        """One row per measure: its mean over seeds, and its standard deviation (NaN for one seed)."""
        table = self.table().drop(columns="seed")
        return table.agg(["mean", "std"]).T.rename_axis("measure")

    def __repr__(self) -> str:
        parts = [f"{name} {_with_error(row)}" for name, row in self.summary().iterrows() if name in MEASURES[:3]]
        return f"Evaluation({self.speaker} and {self.listener}, {len(self.seeds)} seeds: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        return str(self.summary().to_html(float_format="{:.3f}".format))


def _with_error(row: Any) -> str:
    return f"{row['mean']:.3f}" + ("" if np.isnan(row["std"]) else f" ± {row['std']:.3f}")


def evaluate(
    speaker: str | Player = "posdis",
    listener: str | Player = "binding",
    settings: GameSettings | None = None,
    *,
    episodes: int = 64,
    seeds: int | str | Iterable[int] = 5,
    told: Told | None = None,
    **given: Any,
) -> Evaluation:
    """Let two players play, and measure how well they do (MetaRG22 and MetaRG24, ZSCT).

    Args:
        speaker: its name (`icy list players`), or itself.
        listener: the same.
        settings: of the game; or by name.
        episodes: of each seed.
        seeds: how many, from 123 on, or which. Episode i of a seed s is that of the seed s * 1,000,000 + i.
        told: called with how many episodes have been played, and of how many.
        **given: settings by name, see GameSettings.

    Raises:
        IcyError: names that there are not, settings that are not accepted, players that cannot play this game.

    Example:
        >>> from icy.s2b import evaluate
        >>> evaluate("posdis", "binding", samples=4, episodes=32, seeds=2)
        Evaluation(posdis and binding, 2 seeds: zsct 1.000 ± 0.000, support 0.928 ± 0.003, yes 0.502 ± 0.013)
    """
    chosen = GameSettings.of(settings, **given)
    numbers = seed_list(seeds)
    todo = np.concatenate([episode_seeds(seed, episodes) for seed in numbers])
    parts: list[Scores] = []
    at_once = batch_size(chosen)
    for first in range(0, len(todo), at_once):
        batch = todo[first : first + at_once]
        parts.append(play(BatchedGame(chosen, episodes=len(batch)), speaker, listener, batch))
        if told is not None:
            told(first + len(batch), len(todo))
    return Evaluation(chosen, name_of(speaker), name_of(listener), episodes, tuple(numbers), Scores.join(parts))


def batch_size(settings: GameSettings) -> int:
    """How many episodes to play at once: fewer of large spaces."""
    stimuli = int(settings.most**settings.dimensions * settings.samples)
    return max(1, min(AT_ONCE, MOST_AT_ONCE // stimuli))


def episode_seeds(seed: int, episodes: int) -> Wholes:
    """The seeds of the episodes of one seed of an evaluation.

    Raises:
        InvalidSettingError: more episodes than a seed has.
    """
    if whole_number("number of episodes", episodes) > MOST_EPISODES:
        raise InvalidSettingError(f"A seed has {MOST_EPISODES:,} episodes; take more seeds for more.")
    whole_number("seed", seed, least=0)
    return seed * MOST_EPISODES + np.arange(episodes)


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
