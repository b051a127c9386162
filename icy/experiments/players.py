"""Players of S2B in one or several games: their scores, their languages, and how easily these are acquired."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.checks import parse_whole, seed_list
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.fields import changed_fields
from icy.core.registry import LISTENER, SPEAKER, registry
from icy.core.surroundings import standard_state
from icy.core.text import counted, words
from icy.core.types import Fields
from icy.s2b.agents.acquisition import AcquisitionSettings, ease_of_acquisition
from icy.s2b.evaluation import evaluate, never_listening
from icy.s2b.game import BatchedGame
from icy.s2b.language_probe import LANGUAGE, probe_language, sections_of
from icy.s2b.players.interface import Player, seated
from icy.s2b.settings import GameSettings

from .measuring import Finished, Measurement, joined

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from icy.analysis.tables.printed_table import BiasTable
    from icy.s2b.agents.saved_networks import SavedAgent

SWEPT = ("shots", "samples", "distractors")  # settings of the game that may have several values
LABELS = {"shots": "S", "samples": "O", "distractors": "K"}  # their headings
PUBLISHED = {"dimensions": 3, "least": 2, "most": 5, "distractors": 0}  # in the tables of MetaRG24
CHANCE = 0.5  # of a listener without memory, also if it hears nothing
log = logging.getLogger(__name__)
Names = str | Iterable[str]  # of players, or files of trained agents


# -- players, and the games that they play -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ChosenPlayer:
    """A player by its name or its file.

    Attributes:
        label: name in tables.
        player: registered name, or a trained player.
        role: "speaker" or "listener".
        game: the game in which a trained player learned; None for a registered player.
        partner: the speaker that a trained listener learned with; None for other players.
    """

    label: str
    player: str | Player
    role: str
    game: GameSettings | None = None
    partner: str | None = None


Table = tuple[tuple[ChosenPlayer, ...], GameSettings]  # players, and the game that they play


def players_of(names: Names, role: str, where: Fields | None = None) -> list[ChosenPlayer]:
    """Return players of a role: registered players by name or wildcard, and trained players from their files.

    Args:
        names: names of registered players, or results folders or files of trained agents.
        role: "speaker" or "listener".
        where: use only trained agents with these values of their records' fields.

    Raises:
        IcyError: an unknown name, or files without players of this role.
    """
    found: dict[str, ChosenPlayer] = {}
    for name in words(names):
        if _is_saved(name, role):
            from icy.s2b.agents.saved_networks import SavedAgent

            for agent in SavedAgent.find(name, **(where or {})):
                label = agent.label if agent.label not in found else f"{agent.label}, {name}"
                found[label] = _trained(agent, role, label)
        else:
            found |= {entry.name: ChosenPlayer(entry.name, entry.name, role) for entry in registry.match([name], role)}
    return list(found.values())


def player_of(name: str, role: str, where: Fields | None = None) -> ChosenPlayer:
    """Return the player with this name or file; arguments as for `players_of`. Several players are an error."""
    if not _is_saved(name, role):
        return ChosenPlayer(name, name, role)
    from icy.s2b.agents.saved_networks import one_agent

    agent = one_agent(name, **(where or {}))
    return _trained(agent, role, agent.label)


def _trained(agent: SavedAgent, role: str, label: str) -> ChosenPlayer:
    partner = agent.card["grammar"] if role == LISTENER else None
    return ChosenPlayer(label, agent.player(role), role, agent.game, partner)


def _is_saved(name: str, role: str) -> bool:
    """Return whether a name is the path of trained agents, existing or not, and not a registered player."""
    path = Path(name)
    is_path = path.is_absolute() or name.startswith((".", "~")) or path.suffix in (".safetensors", ".parquet")
    return registry.find(role, name) is None and (is_path or path.is_dir())


def games_of(given: Fields, learned: GameSettings | None = None) -> list[GameSettings]:
    """Return the games of all combinations of the settings in SWEPT.

    Args:
        given: settings of the game by name; those in SWEPT may have several values, as in "1,2".
        learned: the game in which an agent learned; its settings replace the usual defaults.

    Raises:
        IcyError: settings that are not accepted.
    """
    lists = {name: _numbers(name, given[name]) for name in SWEPT if name in given}
    made = GameSettings.of if learned is None else learned.changed
    return [made(**{**given, **dict(zip(lists, one, strict=True))}) for one in product(*lists.values())]


def _numbers(name: str, given: object) -> list[int]:
    numbers = [parse_whole(word) for word in words(given)]
    if None in numbers or not numbers:
        raise InvalidSettingError(f"--{name} must be a whole number, or several (1,2,4), not '{given}'.")
    return [number for number in numbers if number is not None]


def tables_of(groups: Iterable[tuple[ChosenPlayer, ...]], given: Fields) -> list[Table]:
    """Return the players of each table and their game: the game of a trained player, with the user's changes.

    The listener's game has precedence over the speaker's. Registered players play the games of all trained players.
    If a trained player learned in a different game, a warning names the differences.

    Args:
        groups: groups of players that play together.
        given: settings of the game by name, as for `games_of`.

    Raises:
        IncompatibleError: a player cannot play this game.
        InvalidSettingError: settings that are not accepted.
    """
    groups = list(groups)
    own = [next((one.game for one in reversed(group) if one.game is not None), None) for group in groups]
    all_games: list[GameSettings | None] = [game for game in dict.fromkeys(own) if game is not None]
    found: list[Table] = []
    for group, learned in zip(groups, own, strict=True):
        bases = all_games or [None] if learned is None else [learned]
        found += [(group, game) for game in dict.fromkeys(game for base in bases for game in games_of(given, base))]
    for group, game in found:
        for player in group:
            _require_playable(player, game)
    for sentence in dict.fromkeys(text for group, game in found for text in _differences(group, game)):
        log.warning("%s", sentence)
    return found


def _require_playable(player: ChosenPlayer, game: GameSettings) -> None:
    """Raise an error if a player cannot play a game, by seating the player at an episode of the game."""
    table = BatchedGame(game)
    table.reset(seeds=[0])
    try:
        seated(player.player, player.role, table)
    except IncompatibleError as error:
        if player.game is None:  # the error names the needs of a registered player
            raise
        raise IncompatibleError(f"{player.label} cannot play this game. {error}") from error


def _differences(group: tuple[ChosenPlayer, ...], game: GameSettings) -> Iterator[str]:
    """Yield the differences between a game and the games in which its trained players learned."""
    for player in group:
        if player.game is not None and player.game != game:
            now, then = (
                ", ".join(f"{name}={value}" for name, value in changed_fields(one, other).items())
                for one, other in ((game, player.game), (player.game, game))
            )
            yield f"{player.label} learned with {then}; this game has {now}."
    speaker, listener = group[0], group[-1]
    together = speaker.game is not None and speaker.label == listener.label  # when they learned
    if listener.partner is not None and listener.partner != speaker.player and not together:
        yield f"{listener.label} learned with the speaker '{listener.partner}', and hears '{speaker.label}' here."


def varying(tables: Sequence[Table]) -> list[str]:
    """Return the settings, apart from SWEPT, that differ between the games of some tables."""
    games = [game for _, game in tables]
    names = [field.name for field in fields(GameSettings) if field.name not in SWEPT]
    return [name for name in names if len({getattr(game, name) for game in games}) > 1]


def as_published(games: Iterable[GameSettings]) -> list[tuple[int, int]]:
    """Return the shots S and samples O of the games that have the settings of MetaRG24's tables."""
    same = [g for g in games if all(getattr(g, name) == value for name, value in PUBLISHED.items())]
    return [(g.shots, g.samples) for g in same]


floors = functools.cache(never_listening)  # the same for all players of a game


def chance_text(rows: pd.DataFrame) -> str:
    """Return a sentence with the chance level of the games in `rows` and the number of episodes."""
    chance = ", ".join(f"{100 / n:.1f} % with {counted(n, 'answer')}" for n in sorted(rows["decisions"].unique()))
    return f"chance: {chance}; {counted(rows['episodes'].iloc[0], 'episode')} per seed"


# -- measurements ------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class PlayersMeasurement(Measurement):
    """Rows of players and their games; `parts` has the players and the game of each table row.

    Attributes:
        episodes: number of episodes per seed.
        seeds: the seeds.
    """

    parts: Sequence[Table]
    episodes: int
    seeds: Sequence[int]

    @property
    def further(self) -> list[str]:
        """Settings of the game, apart from SWEPT, that differ between rows."""
        return varying(self.parts)

    def settings(self, game: GameSettings) -> dict[str, Any]:
        """Return the settings of a game that identify a row."""
        return {name: getattr(game, name) for name in (*SWEPT, *self.further)}


class PlayerScores(PlayersMeasurement):
    """Scores of pairs of players."""

    def measure_part(self, part: Table) -> pd.DataFrame:
        """Return a row per seed."""
        from icy.analysis.tables.s2b import with_deaf

        (speaker, listener), game = part
        found = evaluate(speaker.player, listener.player, game, episodes=self.episodes, seeds=self.seeds).table()
        rows = found.assign(speaker=speaker.label, listener=listener.label, **self.settings(game))
        rows = rows.assign(decisions=game.decisions, episodes=self.episodes)
        return with_deaf(rows, floors(game, episodes=self.episodes, seeds=tuple(self.seeds)))

    def bias_table(self, spread: str = "sd") -> BiasTable:
        """Return a table with a row per pair and game."""
        from icy.analysis.tables.s2b import evaluation_table

        labels = {"speaker": "speaker", "listener": "listener", **LABELS, **{name: name for name in self.further}}
        rows = self.rows
        notes = [chance_text(rows)]
        if rows["illegal"].any():
            notes.append(f"illegal actions in an episode: {rows['illegal'].mean():.2f} on average")
        return evaluation_table(rows, labels, spread, notes)


@standard_state()
def evaluate_players(
    speaker: Names = "posdis",
    listener: Names = "binding",
    *,
    where: Fields | None = None,
    episodes: int = 64,
    seeds: int | str | Iterable[int] = 5,
    finished: Finished | None = None,
    **game: Any,
) -> PlayerScores:
    """Evaluate every pair of some speakers and listeners of S2B, in one or several games (ZSCT; MetaRG22, MetaRG24).

    `icy.s2b.evaluate` evaluates one pair in one game.

    Args:
        speaker: names of registered speakers, or results folders or files of trained agents.
        listener: names of registered listeners, or results folders or files of trained agents.
        where: use only trained agents with these values of their records' fields, as in {"seed": 124}.
        episodes: number of episodes per seed.
        seeds: number of seeds, from 123, or the seeds.
        finished: callback, called with the rows at the end, also after an interruption or an error.
        **game: settings of the game, see icy.s2b.GameSettings; shots, samples and distractors may have several values.

    Returns:
        The scores. `rows` has a row per pair, game and seed, with the columns of `icy.s2b.evaluate(...).table()` and of
        `icy.s2b.never_listening`, and as `deaf` the best of the latter; accuracies are shares from 0 to 1. `table()`
        has a row per pair and game, in percent.

    Raises:
        IcyError: unknown names, settings that are not accepted, or players that cannot play a game.

    Example:
        >>> import icy
        >>> scores = icy.evaluate_players(listener=["oracle", "random"], samples=[1, 2], episodes=8, seeds=1)
        >>> scores.rows[["listener", "samples", "zsct"]].head(2).to_numpy().tolist()
        [['oracle', 1, 1.0], ['oracle', 2, 1.0]]
    """
    pairs = product(players_of(speaker, SPEAKER, where), players_of(listener, LISTENER, where))
    return PlayerScores(tables_of(pairs, game), episodes, seed_list(seeds)).measure(finished)


@dataclass(eq=False, repr=False)
class SpeakerScores(PlayersMeasurement):
    """Metrics of speakers' languages.

    Attributes:
        metrics: names of the metrics.
        permutations: number of permutations for a test of every metric, or None.
    """

    metrics: Sequence[str]
    permutations: int | None = None

    def measure_part(self, part: Table) -> pd.DataFrame:
        """Return a row per episode."""
        (player,), game = part
        how: dict[str, Any] = {"metrics": self.metrics, "permutations": self.permutations}
        rows = probe_language(player.player, game, episodes=self.episodes, seed=self.seeds[0], **how)
        facts = [f"{name}={getattr(game, name)}" for name in self.further]
        return rows.assign(speaker=", ".join([player.label, *facts]))

    def bias_table(self, spread: str = "sd") -> BiasTable:
        """Return a table with a row per speaker."""
        from icy.analysis.tables.s2b import scores_table

        return scores_table(self.rows, "speaker", self.metrics, spread, "languages of frozen speakers")


@standard_state()
def probe_speakers(
    speaker: Names = "posdis",
    *,
    where: Fields | None = None,
    metrics: Names = LANGUAGE,
    episodes: int = 20,
    seed: int = 123,
    permutations: int | None = None,
    finished: Finished | None = None,
    **game: Any,
) -> SpeakerScores:
    """Score the languages of some speakers of S2B, each frozen at the end of an episode (MetaRG24).

    `icy.s2b.probe_language` scores one speaker.

    Args:
        speaker: names of registered speakers, or results folders or files of trained agents.
        where: use only trained agents with these values of their records' fields.
        metrics: names or wildcards, see `icy.metrics.evaluate`.
        episodes: number of episodes.
        seed: seed of the episodes.
        permutations: number of permutations for a test of every metric; None for no test.
        finished: callback, called with the rows at the end, also after an interruption or an error.
        **game: settings of the game, see icy.s2b.GameSettings.

    Returns:
        The scores. `rows` has a row per speaker and episode, with the columns of `icy.s2b.probe_language`, and
        `table()` a row per speaker.

    Raises:
        IcyError: unknown names, settings that are not accepted, or a speaker that has no language.

    Example:
        >>> import icy
        >>> icy.probe_speakers(["posdis", "holistic"], metrics="posdis", episodes=2).rows["posdis"].head(2).tolist()
        [1.0, 1.0]
    """
    names = [entry.name for entry in registry.match(metrics, "metric")]
    tables = tables_of([(one,) for one in players_of(speaker, SPEAKER, where)], game)
    return SpeakerScores(tables, episodes, [seed], names, permutations).measure(finished)


@dataclass(eq=False, repr=False)
class AcquisitionScores(PlayersMeasurement):
    """Ease of acquisition of speakers' languages.

    Attributes:
        learning: settings of the listeners' training.
    """

    learning: AcquisitionSettings

    def measure_part(self, part: Table) -> pd.DataFrame:
        """Return a row per episode."""
        (speaker,), game = part
        how: dict[str, Any] = {"episodes": self.episodes, "settings": self.learning}
        frames = [ease_of_acquisition(speaker.player, game, seed=seed, **how).assign(seed=seed) for seed in self.seeds]
        return joined(frames).assign(speaker=speaker.label, **self.settings(game), episodes=self.episodes)

    def bias_table(self, spread: str = "sd") -> BiasTable:
        """Return a table with a row per speaker and game, with published values of the same games below."""
        from icy.analysis.tables.s2b import evaluation_table, published_acquisition

        rows, further = self.rows, self.further
        labels = {"speaker": "speaker", "shots": "S", "samples": "O", **{name: name for name in further}}
        means = rows.groupby([*labels, "seed"], sort=False)[["zsct", "support", "yes"]].mean().reset_index()
        means = means.assign(deaf=CHANCE, kept=CHANCE)
        same = [] if further else published_acquisition(as_published(dict.fromkeys(game for _, game in self.parts)))
        notes = [
            "query, support: accuracy of a new listener without memory for each episode, trained on the support alone; "
            "a listener that hears nothing is right in exactly half of its games",
            f"{counted(self.episodes, 'episode')} per seed; {counted(self.learning.epochs, 'epoch')}, batches of "
            f"{self.learning.batch}, learning rate {self.learning.learning_rate:g}",
        ]
        if same:
            notes.append(
                "MetaRG24: published values of pairs that learned both sides; ± standard deviation over 3 seeds"
            )
        return evaluation_table(means, labels, spread, notes, further=same, title="ease of acquisition")


@standard_state()
def measure_acquisition(
    speaker: Names = "posdis",
    *,
    where: Fields | None = None,
    episodes: int = 20,
    seeds: int | str | Iterable[int] = 3,
    learning: AcquisitionSettings | Mapping[str, Any] | None = None,
    finished: Finished | None = None,
    **game: Any,
) -> AcquisitionScores:
    """Measure how easily new listeners acquire the languages of some speakers of S2B (EoA; MetaRG24).

    `icy.s2b.ease_of_acquisition` measures one speaker and seed.

    Args:
        speaker: names of registered speakers, or results folders or files of trained agents.
        where: use only trained agents with these values of their records' fields.
        episodes: number of episodes per seed.
        seeds: number of seeds, from 123, or the seeds.
        learning: settings of the listeners' training, or some of them by name.
        finished: callback, called with the rows at the end, also after an interruption or an error.
        **game: settings of the game, see icy.s2b.GameSettings; shots, samples and distractors may have several values.

    Returns:
        The scores. `rows` has a row per speaker, game, seed and episode, with the columns of
        `icy.s2b.ease_of_acquisition`, and `table()` a row per speaker and game, in percent.

    Raises:
        IcyError: unknown names, settings that are not accepted, or a speaker that has no language.

    Example:
        >>> import icy
        >>> scores = icy.measure_acquisition(["posdis"], episodes=2, seeds=1, learning={"epochs": 2})
        >>> scores.rows[["speaker", "seed"]].to_numpy().tolist()
        [['posdis', 123], ['posdis', 123]]
    """
    if not isinstance(learning, AcquisitionSettings):
        learning = AcquisitionSettings(**(learning or {}))
    tables = tables_of([(one,) for one in players_of(speaker, SPEAKER, where)], game)
    return AcquisitionScores(tables, episodes, seed_list(seeds), learning).measure(finished)


def draw_stimuli(seed: int = 123, **game: Any) -> Figure:
    """Draw the stimuli of an episode of S2B: the density of every value, with its samples (MetaRG22 figure 3).

    Args:
        seed: seed of the episode.
        **game: settings of the game, see icy.s2b.GameSettings.

    Returns:
        The figure, with a panel per dimension.

    Raises:
        IcyError: settings that are not accepted, or one-hot stimuli, which have no densities.
    """
    from icy.analysis.plots.games import plot_stimuli

    settings = GameSettings.of(**game)
    if settings.representation != "scs":
        raise InvalidSettingError("One-hot stimuli have no densities; take representation scs to draw densities.")
    sections = sections_of(settings, seed)
    sizes = sections.spaces.sizes[0]
    title = f"seed {seed}: {'x'.join(map(str, sizes.tolist()))} values, {counted(settings.samples, 'sample')} each"
    return plot_stimuli(sizes, sections.means[0], sections.deviations[0], sections.samples[0], title)
