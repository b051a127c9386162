"""Play episodes with a speaker and a listener; score the pair over episodes and seeds, or record every game."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from jaxtyping import Int64

from icy.core.checks import seed_list, whole_number
from icy.core.errors import InvalidSettingError
from icy.core.progress import progress_to
from icy.core.registry import LISTENER, SPEAKER
from icy.core.surroundings import standard_state
from icy.core.text import counted
from icy.s2b.players.interface import Action, Player, name_of, seated
from icy.version import __version__

from .episode_streams import Wholes
from .game import BatchedGame, Scores, Turn
from .options import GameOptions
from .settings import GameSettings
from .transcript import PHASES

if TYPE_CHECKING:
    import pandas as pd


# -- play episodes with a speaker and a listener, and score the pair over episodes and seeds ---------------------------


AT_ONCE = 1024  # episodes in one batch at most
MOST_AT_ONCE = 10_000_000  # stimuli in the spaces of one batch at most
MOST_EPISODES = 1_000_000  # episodes per seed at most
NEVER_LISTENING = ("novelty", "novelty-meaning", "order")  # listeners, for games with feedback
CONSTANT = ("always-yes", "always-no")  # listeners with one answer; the second is for descriptive games
SCORE_NAMES = ("zsct", "support", "yes", "kept")
ProgressCallback = Callable[[int, int], None]  # called with the number of episodes played, and their total
# Called before each step with the game, its turn, and the actions of the speaker and the listener.
StepCallback = Callable[[BatchedGame, Turn, Action, Action], None]


@standard_state()
def play(
    game: BatchedGame,
    speaker: str | Player,
    listener: str | Player,
    seeds: Iterable[int],
    watcher: StepCallback | None = None,
) -> Scores:
    """Play one episode in every slot of a game to its end, and return the scores.

    Args:
        game: a game without autoreset.
        speaker: name of a registered speaker, or a `Player`.
        listener: name of a registered listener, or a `Player`.
        seeds: seed of each episode.
        watcher: callback, called before each step with the game, its turn, and the actions of the speaker and the
            listener.

    Returns:
        The scores of the episodes, arrays [B] in the order of `seeds`. Accuracies are shares from 0 to 1.

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


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of a speaker and a listener, over episodes and seeds.

    Attributes:
        settings: settings of the game.
        speaker: name of the speaker.
        listener: name of the listener.
        episodes: number of episodes per seed.
        seeds: the seeds.
        scores: scores of all episodes, seed by seed.
    """

    settings: GameSettings
    speaker: str
    listener: str
    episodes: int
    seeds: tuple[int, ...]
    scores: Scores

    def table(self) -> "pd.DataFrame":
        """Return a row per seed, with means over its episodes.

        Columns are `seed`; `zsct`, the accuracy in the query; `support`, the accuracy in the support; `yes`, the share
        of query games in which the listener said that it saw the target's meaning; `kept`, the share in which it did
        see it; and `illegal`, the number of illegal actions of both players per episode.
        """
        import pandas as pd

        rows: dict[str, object] = {"seed": list(self.seeds)}
        for name in SCORE_NAMES:
            by_seed = getattr(self.scores, name).reshape(len(self.seeds), self.episodes)
            there = np.isfinite(by_seed)
            total = np.where(there, by_seed, 0.0).sum(1)
            rows[name] = np.where(there.any(1), total / np.maximum(there.sum(1), 1), np.nan)
        rows["illegal"] = self.scores.illegal.sum(1).reshape(len(self.seeds), self.episodes).mean(1)
        return pd.DataFrame(rows)

    def summary(self) -> "pd.DataFrame":
        """Return a row per measure with its mean and standard deviation over seeds (NaN for one seed)."""
        table = self.table().drop(columns="seed")
        return table.agg(["mean", "std"]).T.rename_axis("measure")

    def __repr__(self) -> str:
        parts = []
        for name, row in self.summary().loc[list(SCORE_NAMES[:3])].iterrows():
            spread = "" if np.isnan(row["std"]) else f" ± {row['std']:.3f}"
            parts.append(f"{name} {row['mean']:.3f}{spread}")
        return f"Evaluation({self.speaker} and {self.listener}, {counted(len(self.seeds), 'seed')}: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        return str(self.summary().to_html(float_format="{:.3f}".format))


@standard_state()
def evaluate(
    speaker: str | Player = "posdis",
    listener: str | Player = "binding",
    settings: GameSettings | None = None,
    *,
    episodes: int = 64,
    seeds: int | str | Iterable[int] = 5,
    progress: ProgressCallback | None = None,
    **given: Unpack[GameOptions],
) -> Evaluation:
    """Evaluate a speaker and a listener: play episodes of several seeds and score them (ZSCT; MetaRG22, MetaRG24).

    Args:
        speaker: name of a registered speaker (`icy list players`), or a `Player`.
        listener: name of a registered listener, or a `Player`.
        settings: settings of the game; or give them by name.
        episodes: number of episodes per seed.
        seeds: number of seeds, starting at 123, or the seeds. Episode i of seed s is the episode of seed s * 1,000,000
            + i.
        progress: callback, called after each batch with the number of episodes played and their total.
        **given: settings by name, see GameSettings.

    Returns:
        The scores of every episode. `table()` has a row per seed and `summary()` the mean and the standard deviation
        over seeds; accuracies are shares from 0 to 1.

    Raises:
        IcyError: unknown names, settings that are not accepted, or players that cannot play this game.

    Example:
        >>> from icy.s2b import evaluate
        >>> evaluate("posdis", "binding", samples=4, episodes=32, seeds=2)
        Evaluation(posdis and binding, 2 seeds: zsct 1.000 ± 0.000, support 0.928 ± 0.003, yes 0.502 ± 0.013)
    """
    chosen = GameSettings.of(settings, **given)
    numbers = seed_list(seeds)
    todo = np.concatenate([episode_seeds(seed, episodes) for seed in numbers])
    parts: list[Scores] = []
    for game, batch in batches(chosen, todo, progress):
        parts.append(play(game, speaker, listener, batch))
    return Evaluation(chosen, name_of(speaker), name_of(listener), episodes, tuple(numbers), Scores.join(parts))


@standard_state()
def never_listening(
    settings: GameSettings | None = None,
    *,
    episodes: int = 64,
    seeds: int | str | Iterable[int] = 5,
    **given: Unpack[GameOptions],
) -> "pd.DataFrame":
    """Return the query accuracy of listeners that ignore messages: a baseline for scores, like chance.

    The schedule of a game (`query_of`) may reveal answers without any message. A listener that ignores messages but
    remembers its stimuli then scores above chance. So may a constant answer, in the episodes of a small evaluation.

    Args:
        settings: settings of the game; or give them by name.
        episodes: number of episodes per seed; the same episodes as in `evaluate`.
        seeds: number of seeds, or the seeds.
        **given: settings by name, see GameSettings.

    Returns:
        A row per seed, with the column `seed` and one for each of NEVER_LISTENING and CONSTANT; NaN for listeners that
        cannot play the game.

    Example:
        >>> from icy.s2b import never_listening
        >>> never_listening(query_of="speaker", seeds=1).round(2).to_dict("records")
        [{'seed': 123, 'novelty': 0.86, 'novelty-meaning': 0.86, 'order': 0.55, 'always-yes': 0.49, 'always-no': 0.51}]
    """
    import pandas as pd

    chosen = GameSettings.of(settings, **given)
    rows: dict[str, Any] = {"seed": seed_list(seeds)}
    for name in (*NEVER_LISTENING, *CONSTANT):
        if chosen.descriptive if name == "always-no" else chosen.feedback or name in CONSTANT:
            rows[name] = evaluate("random", name, chosen, episodes=episodes, seeds=rows["seed"]).table()["zsct"]
        else:
            rows[name] = np.nan
    return pd.DataFrame(rows)


def batches(
    settings: GameSettings, seeds: Int64[Wholes, " episode"], progress: ProgressCallback | None = None
) -> Iterator[tuple[BatchedGame, Int64[Wholes, " batch"]]]:
    """Yield games for all episodes, with the seeds of each game's episodes.

    A game plays up to 1,024 episodes at once, and fewer if their spaces are large.

    Args:
        settings: settings of the games.
        seeds: seed of each episode.
        progress: callback, called after each batch with the number of episodes played and their total.
    """
    stimuli = settings.space.size * settings.samples
    at_once = max(1, min(AT_ONCE, MOST_AT_ONCE // stimuli))
    with progress_to(progress, "episodes") as report:
        for first in range(0, len(seeds), at_once):
            batch = seeds[first : first + at_once]
            yield BatchedGame(settings, episodes=len(batch)), batch
            report(first + len(batch), len(seeds))


def episode_seeds(seed: int, episodes: int) -> Int64[Wholes, "batch={episodes}"]:
    """Return the seeds of the episodes that belong to one seed of an evaluation, [episodes].

    Raises:
        InvalidSettingError: more than 1,000,000 episodes.
    """
    if whole_number("number of episodes", episodes) > MOST_EPISODES:
        raise InvalidSettingError(f"A seed has at most {MOST_EPISODES:,} episodes; take more seeds.")
    whole_number("seed", seed, least=0)
    return seed * MOST_EPISODES + np.arange(episodes)


# -- record episodes as a table with a row per game, for other tools and `icy metrics` ---------------------------------


class Recorder:
    """A callback of `icy.s2b.play` that records every game of a batch of episodes."""

    def __call__(self, game: BatchedGame, turn: Turn, said: Action, heard: Action) -> None:
        """Record the actions of a step, before the game plays it."""
        self.game, dealt, settings = game, game.dealt, game.settings
        if turn.speaker.fresh.all():
            self.said = np.zeros((len(dealt.query), settings.rounds * settings.length), dtype=np.int64)
            self.decision = np.zeros(len(dealt.query), dtype=np.int64)
        message, decision, _ = game.taken(said.message, heard.decision)
        at, asked = dealt.first + game.game_number, turn.listener.may_decide
        for place in range(settings.rounds):
            now = turn.speaker.round == place
            self.said[at[now], place * settings.length : (place + 1) * settings.length] = message[now]
        self.decision[at[asked]] = decision[asked]

    def table(self) -> "pd.DataFrame":
        """Return the recorded games; see `record` for the columns."""
        import pandas as pd

        dealt, samples, dimensions = self.game.dealt, self.game.settings.samples, range(self.game.settings.dimensions)
        episode, meanings = np.repeat(np.arange(len(dealt)), dealt.games), self.game.settings.space.all()
        spoken = meanings[dealt.speaker_numbers[:, 0] // samples]
        said = {"said": self.said, "heard": np.take_along_axis(dealt.heard[episode], self.said, axis=1)}
        texts = {name: [" ".join(map(str, row)) for row in rows.tolist()] for name, rows in said.items()}
        lists = {
            "speaker_sees": dealt.speaker,
            "listener_sees": dealt.listener,
            "listener_meanings": meanings[dealt.listener_numbers // samples],
        }
        return pd.DataFrame({
            "episode": dealt.seeds[episode],
            "game": np.arange(len(episode)) - dealt.first[episode],
            "phase": np.array(PHASES)[dealt.query.astype(np.int64)],
            "decision": self.decision,
            "answer": dealt.answer,
            "correct": self.decision == dealt.answer,
            **{f"values_{i}": dealt.sizes[episode, i] for i in dimensions},
            **{f"meaning_{i}": spoken[:, i] for i in dimensions},
            "sample": dealt.speaker_numbers[:, 0] % samples,
            **texts,
            **{name: list(rows.reshape(len(rows), -1)) for name, rows in lists.items()},
        })  # fmt: skip


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
