"""Compositionality metrics of frozen speakers' languages, and disentanglement metrics of stimuli."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy.typing import NDArray

from icy import metrics as icy_metrics
from icy.core.checks import whole_number
from icy.core.conventions import conventions_json
from icy.core.errors import require_known
from icy.core.registry import SPEAKER, registry
from icy.core.surroundings import standard_state
from icy.languages.meanings import MeaningSpace
from icy.s2b.players.interface import Player, seated

from .channel import END
from .episode_streams import EpisodeStreams, Wholes
from .episodes import eligible, shown, space_streams
from .evaluation import episode_seeds
from .game import BatchedGame
from .options import GameOptions
from .settings import GameSettings
from .targets import Sections, Spaces

if TYPE_CHECKING:
    import pandas as pd


LANGUAGE = ("topsim", "posdis", "bosdis", "tre", "hce", "cbm")  # metrics of languages
CODE = ("factor_vae", "mig", "modularity")  # metrics of stimuli
ROWS = ("all", "support")  # choices for `rows` of disentanglement


@standard_state()
def probe_language(
    speaker: str | Player = "posdis",
    settings: GameSettings | None = None,
    *,
    metrics: str | Iterable[str] = LANGUAGE,
    episodes: int = 20,
    seed: int = 123,
    permutations: int | None = None,
    **given: Unpack[GameOptions],
) -> "pd.DataFrame":
    """Score the language of a speaker, which plays an episode and then describes every stimulus (MetaRG24).

    Args:
        speaker: name of a registered speaker, or a `Player` with the method `utter`.
        settings: settings of the game; or give them by name.
        metrics: names or wildcards, see `icy.metrics.evaluate`.
        episodes: number of episodes.
        seed: seed of the episodes, see `evaluate`.
        permutations: number of permutations of the messages for a permutation test of every metric; None for no test.
        **given: settings by name, see GameSettings.

    Returns:
        A row per episode: `episode`, its seed; `space`, the numbers of values of its dimensions; `messages`, the number
        of different messages; a column per metric; and `conventions`, JSON with the conventions of each metric.

    Raises:
        IcyError: unknown names, settings that are not accepted, or a speaker without `utter`.

    Example:
        >>> from icy.s2b import probe_language
        >>> probe_language("posdis", metrics=["posdis"], episodes=3)["posdis"].tolist()
        [1.0, 1.0, 1.0]
    """
    import pandas as pd

    chosen = GameSettings.of(settings, **given)
    found = []
    for language in frozen_languages(speaker, chosen, episode_seeds(seed, episodes)):
        ended = END if (language.messages == END).any() else None
        table = icy_metrics.Table.of(language.meanings, language.messages, eos=ended, one_hot="no", argmax=False)
        row = icy_metrics.evaluate(table, metrics=metrics, permutations=permutations)
        scored = [name for name in row if str(name).startswith(tuple(row.attrs["scores"]))]
        scores = {name: row[name][0] for name in (*scored, "conventions")}
        facts = {"episode": language.seed, "space": language.space, "messages": int(row["distinct_messages"][0])}
        found.append(facts | scores)
    return pd.DataFrame(found)


@dataclass(frozen=True, eq=False)
class FrozenLanguage:
    """Messages about every stimulus of a space, from a speaker frozen at the end of an episode.

    Attributes:
        seed: seed of the episode.
        sizes: number of values of each dimension, [N].
        meanings: meaning of each stimulus, [n, N]; the samples of a meaning are next to each other.
        stimuli: the stimuli, [n, W].
        query: whether each stimulus belongs to the query, [n].
        messages: the speaker's message about each stimulus, [n, tokens].
    """

    seed: int
    sizes: Int64[Wholes, " dimension"]
    meanings: Int64[Wholes, "stimulus dimension"]
    stimuli: Float32[NDArray[np.float32], "stimulus width"]
    query: Bool[NDArray[np.bool_], " stimulus"]
    messages: Int64[Wholes, "stimulus token"]

    @property
    def space(self) -> str:
        """The space of the episode, as in "5,4,4"."""
        return str(MeaningSpace.of_sizes(self.sizes.tolist()))


def frozen_languages(
    speaker: str | Player, settings: GameSettings, seeds: Int64[Wholes, " episode"]
) -> list[FrozenLanguage]:
    """Return the language of a speaker after one episode per seed, with a listener that is always right.

    At the end of an episode the speaker is frozen and describes every stimulus of the space.

    Args:
        speaker: name of a registered speaker, or a `Player` with the method `utter`.
        settings: settings of the game.
        seeds: seed of each episode, [E].

    Raises:
        IcyError: a speaker that cannot play this game, or without `utter`.
    """
    game = BatchedGame(settings, episodes=whole_number("number of episodes", len(seeds)))
    turn = game.reset(seeds=seeds)
    player = seated(speaker, SPEAKER, game)
    datasets = list(_datasets(settings, seeds))
    uttered: dict[int, Wholes] = {}
    while not turn.done.all():
        turn = game.step(player.act(turn.speaker).message, game.answer)
        for episode in set(np.flatnonzero(turn.done).tolist()) - set(uttered):  # when this episode ends
            meanings, stimuli, _ = datasets[episode]
            uttered[episode] = player.utter(stimuli, meanings, episode)
    return [
        FrozenLanguage(int(seeds[i]), game.sizes[i], meanings, stimuli, query, uttered[i])
        for i, (meanings, stimuli, query) in enumerate(datasets)
    ]


@standard_state()
def disentanglement(
    settings: GameSettings | None = None,
    *,
    rows: int | str = 512,
    metrics: str | Iterable[str] = CODE,
    episodes: int = 5,
    seed: int = 123,
    **given: Unpack[GameOptions],
) -> "pd.DataFrame":
    """Score the disentanglement of stimuli: whether each number encodes one dimension (MetaRG22, table of SCS).

    Args:
        settings: settings of the game; or give them by name. The papers use `least=5, most=5, samples=5`.
        rows: number of stimuli to draw with replacement; or "all" stimuli of an episode, or its "support" stimuli,
            once each.
        metrics: names or wildcards.
        episodes: number of episodes.
        seed: seed of the episodes and of the draw of rows.
        **given: settings by name, see GameSettings.

    Returns:
        A row per episode, with a column per metric, and `conventions`, JSON with the conventions of each metric.

    Raises:
        IcyError: unknown names, or settings that are not accepted.
    """
    import pandas as pd

    if not isinstance(rows, int):
        require_known("choice of stimuli", rows, ROWS)
    chosen = GameSettings.of(settings, **given)
    seeds, entries = episode_seeds(seed, episodes), registry.match(metrics, "metric")
    found = []
    for place, (meanings, stimuli, query) in enumerate(_datasets(chosen, seeds)):
        which: Any = ~query if rows == "support" else slice(None)
        if isinstance(rows, int):
            streams, count = EpisodeStreams.of_seeds(seeds[[place]]), whole_number("rows", rows)
            which = streams.integers("rows", len(meanings), (count,))[0]
        codes = stimuli[which].astype(np.float64)
        scores = {entry.name: entry.load()(meanings[which], codes) for entry in entries}
        used = conventions_json({name: score.conventions for name, score in scores.items()})
        values = {name: score.value for name, score in scores.items()}
        found.append({"episode": int(seeds[place]), **values, "conventions": used})
    return pd.DataFrame(found)


def _datasets(settings: GameSettings, seeds: Wholes) -> Iterable[tuple[Wholes, NDArray[np.float32], NDArray[np.bool_]]]:
    """Yield the meanings [n, N] and stimuli [n, W] of each episode's space, and whether each is in the query, [n]."""
    streams = space_streams(settings, EpisodeStreams.of_seeds(seeds).nth(np.zeros_like(seeds)))
    spaces = Spaces.draw(streams, settings.dimensions, settings.least, settings.most)
    show = shown(settings, streams, spaces)
    query = eligible(settings, spaces)[1]
    for episode in range(len(seeds)):
        numbers = np.flatnonzero(spaces.valid[episode].repeat(settings.samples))
        stimuli = show(np.full(len(numbers), episode), numbers[:, None])[:, 0]
        place = numbers // settings.samples
        yield spaces.meanings[place], stimuli, query[episode][place]


def sections_of(settings: GameSettings, seed: int) -> Sections:
    """Return the densities and samples of the first episode of a seed."""
    streams = space_streams(settings, EpisodeStreams.of_seeds([seed]).nth([0]))
    spaces = Spaces.draw(streams, settings.dimensions, settings.least, settings.most)
    return Sections.draw(streams, spaces, settings.samples, settings.truncate)
