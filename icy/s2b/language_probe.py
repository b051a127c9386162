"""Languages of frozen speakers, and stimuli, measured by the metrics of icy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icy import metrics as icy_metrics
from icy.core.checks import whole_number
from icy.core.registry import SPEAKER, registry
from icy.s2b.players.base import Player, seated

from .channel import END
from .episodes import eligible, of_space, shown
from .evaluation import episode_seeds
from .game import BatchedGame
from .settings import GameSettings
from .stimuli import Sections, Spaces
from .streams import Draws, Wholes

if TYPE_CHECKING:
    import pandas as pd


LANGUAGE = ("topsim", "posdis", "bosdis", "tre", "hce", "cbm")
CODE = ("factor_vae", "mig", "modularity")
ROWS = ("all", "support")


def probe_language(
    speaker: str | Player = "posdis",
    settings: GameSettings | None = None,
    *,
    metrics: str | Iterable[str] = LANGUAGE,
    episodes: int = 20,
    seed: int = 123,
    **given: Any,
) -> pd.DataFrame:
    """How compositional a speaker is: it plays an episode, and is then asked to name every stimulus of it (MetaRG24).

    Args:
        speaker: its name, or itself; it must have `utter`.
        settings: of the game; or by name.
        metrics: names or wildcards, see `icy.metrics.evaluate`.
        episodes: how many.
        seed: of the episodes, see `evaluate`.
        **given: settings by name, see GameSettings.

    Returns:
        A row per episode: `episode`, its seed; `space`, its numbers of values; `messages`, how many different ones;
        and a column per metric.

    Raises:
        IcyError: names that there are not, settings that are not accepted, a speaker that cannot be asked.

    Example:
        >>> from icy.s2b import probe_language
        >>> probe_language("posdis", metrics=["posdis"], episodes=3)["posdis"].tolist()
        [1.0, 1.0, 1.0]
    """
    import pandas as pd

    game = BatchedGame(settings, episodes=whole_number("number of episodes", episodes), **given)
    turn = game.reset(seeds=episode_seeds(seed, episodes))
    player = seated(speaker, SPEAKER, game)
    datasets = list(_datasets(game.settings, game.seeds))
    uttered: dict[int, Wholes] = {}
    while not turn.done.all():
        turn = game.step(player.act(turn.speaker).message, game.answer)
        for episode in set(np.flatnonzero(turn.done).tolist()) - set(uttered):  # as it is at the end of this one
            meanings, stimuli = datasets[episode]
            uttered[episode] = player.utter(stimuli, meanings, episode)
    found = []
    for episode, (meanings, _) in enumerate(datasets):
        messages = uttered[episode]
        row = icy_metrics.evaluate(meanings, messages, metrics=metrics, eos=END)
        scores = {name: row[name][0] for name in row.attrs["scores"]}
        space = "x".join(map(str, game.sizes[episode].tolist()))
        facts = {"episode": int(game.seeds[episode]), "space": space, "messages": int(row["distinct_messages"][0])}
        found.append(facts | scores)
    return pd.DataFrame(found)


def disentanglement(
    settings: GameSettings | None = None,
    *,
    rows: int | str = 512,
    metrics: str | Iterable[str] = CODE,
    episodes: int = 5,
    seed: int = 123,
    **given: Any,
) -> pd.DataFrame:
    """How well every number of a stimulus tells of one dimension of its meaning (MetaRG22, table of SCS).

    Args:
        settings: of the game; or by name. The papers' are `least=5, most=5, samples=5`.
        rows: stimuli drawn with replacement; or "all" of an episode, each once; or those of its "support".
        metrics: names or wildcards.
        episodes: how many.
        seed: of the episodes and of what is drawn.
        **given: settings by name, see GameSettings.

    Returns:
        A row per episode, with a column per metric.

    Raises:
        IcyError: names that there are not, settings that are not accepted.
    """
    import pandas as pd

    from icy.core.errors import unknown

    if not isinstance(rows, int) and rows not in ROWS:
        raise unknown("choice of stimuli", str(rows), ROWS)
    chosen = GameSettings.of(settings, **given)
    seeds, entries = episode_seeds(seed, episodes), registry.match(metrics, "metric")
    found = []
    for place, (meanings, stimuli) in enumerate(_datasets(chosen, seeds, support=rows == "support")):
        which = slice(None)
        if isinstance(rows, int):
            which = Draws.of_seeds(seeds[[place]]).integers("rows", len(meanings), (whole_number("rows", rows),))[0]
        codes = stimuli[which].astype(np.float64)
        scores = {entry.name: entry.load()(meanings[which], codes).value for entry in entries}
        found.append({"episode": int(seeds[place])} | scores)
    return pd.DataFrame(found)


def _datasets(
    settings: GameSettings, seeds: Wholes, support: bool = False
) -> Iterable[tuple[Wholes, NDArray[np.float32]]]:
    """Of every episode the meanings [n, N] and the stimuli [n, W] of its space, or of its support."""
    draws = of_space(settings, Draws.of_seeds(seeds).nth(np.zeros_like(seeds)))
    spaces = Spaces.draw(draws, settings.dimensions, settings.least, settings.most)
    show = shown(settings, draws, spaces)
    wanted = eligible(settings, spaces)[0] if support else spaces.valid
    for episode in range(len(seeds)):
        numbers = np.flatnonzero(wanted[episode].repeat(settings.samples))
        stimuli = show(np.full(len(numbers), episode), numbers[:, None])[:, 0]
        yield spaces.meanings[numbers // settings.samples], stimuli


def sections_of(settings: GameSettings, seed: int) -> Sections:
    """The densities and samples of the episode of a seed."""
    draws = of_space(settings, Draws.of_seeds([seed]).nth([0]))
    spaces = Spaces.draw(draws, settings.dimensions, settings.least, settings.most)
    return Sections.draw(draws, spaces, settings.samples, settings.truncate)
