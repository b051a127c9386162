"""The study's data: its columns, as columns.toml declares them; measures of games; rows of its table; and filters."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rapidfuzz.distance import Levenshtein

from icy.core.checks import real_number
from icy.core.entry import STUDY_PLAYER
from icy.core.errors import InvalidSettingError
from icy.core.files import read_csv_table
from icy.core.registry import registry
from icy.core.text import listed
from icy.languages.storage import reading
from icy.records.long_table import option_columns
from icy.records.record import Record
from icy.version import __version__

from .game import GameState, StudyGame, Trial, distinct_codes, is_degenerate

if TYPE_CHECKING:
    import pandas as pd


# -- the columns of the study's data, as columns.toml declares them ----------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        type: type and constraints in SQL; "" for a column that the export computes. In the study table, "text" or
            "number".
        meaning: meaning of the column in the export; "" if exports leave it out.
    """

    type: str
    meaning: str = ""


Columns = Mapping[str, Column]


def _columns(declared: Mapping[str, list[str]]) -> Columns:
    return {name: Column(*column) for name, column in declared.items()}


DECLARED = tomllib.loads(Path(__file__).with_name("columns.toml").read_text(encoding="utf-8"))
"""The content of columns.toml."""

DATABASE: Mapping[str, Columns] = {table: _columns(columns) for table, columns in DECLARED["database"].items()}
"""The tables of the database."""

STUDY_TABLE, IDS = _columns(DECLARED["rows"]), _columns(DECLARED["ids"])
"""The columns of the study table, and the further columns of games in an export with ids."""


def exported_columns(part: str) -> dict[str, str]:
    """Return the columns of a part of the export, and their meanings."""
    tables = {**DATABASE, "ids": IDS, "rows": STUDY_TABLE}
    named = DECLARED["export"][part].get("tables", ())
    return {name: one.meaning for table in named for name, one in tables[table].items() if one.meaning}


# -- measures of one game, the same for people, simulated players and senders of the zoo -------------------------------


HELD_OUT, GAME = "held-out", "game"
EXACT = "exact"


@dataclass(frozen=True)
class Measure:
    """A measure of a game: a column in the long table of records, and a row per game in the study table.

    Attributes:
        metric: name of the metric.
        split: the items over which the measure is averaged; "game" for a measure of the whole game.
        items: name of the column with the number of these items; "" for a measure of the whole game.
        meaning: description.
    """

    metric: str
    split: str
    items: str
    meaning: str


MEASURES: Mapping[str, Measure] = {name: Measure(*declared) for name, declared in DECLARED["measures"].items()}


def item_measures(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the measures of answered items, and the number of items of each measure; NaN without items."""

    def mean(part: Sequence[Trial], of: Callable[[Trial], float]) -> float:
        return sum(map(of, part)) / len(part) if part else math.nan

    held_out = [trial for trial in trials if trial.held_out is not None]
    parts = {
        ("accuracy", "items"): held_out,
        ("first", "first_items"): [trial for trial in held_out if trial.held_out == 0],
        ("answerable", "answerable_items"): [trial for trial in held_out if trial.answerable()],
        ("answerable_twice", "answerable_twice_items"): [trial for trial in held_out if trial.answerable(2)],
        ("trained", "trained_items"): [trial for trial in trials if trial.held_out is None],
    }
    found: dict[str, float] = {}
    for (name, count), part in parts.items():
        found |= {name: mean(part, lambda trial: trial.correct), count: len(part)}
    # Letters that are correct at their position, and edit distances, both as shares of the length.
    letters = mean(held_out, lambda t: sum(a == b for a, b in zip(t.text, t.code, strict=False)) / len(t.code))
    distance = mean(held_out, lambda t: float(Levenshtein.normalized_distance(t.text, t.code)))
    return found | {"letters": letters, "distance": distance}


def game_measures(game: StudyGame, state: GameState) -> dict[str, float]:
    """Return all measures of a game. In an unfinished game, they cover the answered items."""
    trials = [trial for trial in state.trials if trial.graded]
    texts = [trial.text for trial in trials]
    return item_measures(trials) | {
        "score": state.score,
        "cards": state.cards,
        "views": state.views,
        "added": state.added,
        "identical": max(map(texts.count, texts)) / len(texts) if texts else math.nan,
        **language_measures(game),
    }


def strange_answers(codes: Sequence[str], texts: Sequence[str]) -> int:
    """Count the answers with a letter that no code of the game contains.

    Example:
        >>> strange_answers(["abab", "baba"], ["abab", "abc", "bb"])
        1
    """
    alphabet = set("".join(codes))
    return sum(not set(text) <= alphabet for text in texts)


def language_measures(game: StudyGame) -> dict[str, float]:
    """Return measures of the language: number of distinct codes, whether it is degenerate, and chance accuracy."""
    content = game.settings.content
    return {
        "distinct": distinct_codes(game.settings, game.instance),
        "degenerate": float(is_degenerate(game.settings, game.instance)),
        "chance": float(content.vocab_size**-content.length),
    }


# -- rows of the study table: people, simulated players and senders in one long form -----------------------------------


HUMAN, SIMULATED, MODEL = "human", "simulated", "model"
ADDED = ("pilot", "settings")  # columns that files of older versions of icy lack
COLUMNS = tuple(STUDY_TABLE)
"""Columns of the study table, which `icy.study.rows` describes. A row is one measure of one game.

agent_kind is "human", "simulated", "model", or "published" for a summary of `persons` games. protocol is "played",
"converged" or "yoked". For machines, `person` is the number of the instance. `pilot` is 1 for people of the pilot of a
study; `settings` has the settings of a person's game that differ from the preset, as in "examples=12". Both are also in
`agent`, as in "people (pilot) examples=12".
"""
TEXTS = tuple(name for name, column in STUDY_TABLE.items() if column.type == "text")

Row = dict[str, object]

SENDER_COLUMNS = ("hidden_size", "representation", "most")  # long-table columns that distinguish settings of a sender
MISSING = ("nan", "<NA>", "None", "")


def rows_of_game(game: StudyGame, state: GameState, identity: Mapping[str, object], **measures: float) -> list[Row]:
    """Return the rows of one game, one per measure.

    Args:
        game: the rules of the game.
        state: the state of the game.
        identity: values of the columns agent_kind, agent and person, and optionally protocol (by default "played"),
            preset (by default "clean") and pilot. Settings that differ from the preset, and the pilot, are added to
            `agent`.
        **measures: further measures of the game, such as `minutes`.
    """
    about = {
        "protocol": "played",
        "preset": "clean",
        "dataset": game.settings.dataset,
        "grammar": game.settings.grammar,
        "instance": game.instance.number,
        **identity,
    }
    changed = game.settings.departures(str(about["preset"]))
    about["settings"] = ", ".join(f"{name}={value}" for name, value in changed.items())
    # Separate names, so that no table mixes their games with others.
    parts = [about["agent"], "(pilot)" if about.get("pilot") else "", about["settings"]]
    about["agent"] = " ".join(str(part) for part in parts if part)
    return list(_melted(about, {**game_measures(game, state), **measures}))


def _melted(about: Mapping[str, object], numbers: Mapping[str, float]) -> Iterator[Row]:
    """Yield a row per measure that has a value."""
    for name, measure in MEASURES.items():
        value = numbers.get(name)
        items = numbers.get(measure.items) if measure.items else math.nan
        if value is None or math.isnan(value):
            continue
        found = {"metric": measure.metric, "split": measure.split, "value": float(value), "items": items}
        yield {**dict.fromkeys(COLUMNS), "persons": 1, "version": __version__, **about, **found}


def frame_of(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Convert rows to a table with all COLUMNS."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def rows_of_long(long: pd.DataFrame) -> pd.DataFrame:
    """Convert the simulated games (kind of job "study") in a long table to rows of the study table.

    If a player occurs with several settings, the settings that differ are added to its name.
    """
    games = long[(long["job_kind"] == "study") & ~long["failed"].astype(bool)].reset_index(drop=True)
    columns = games.reindex(columns=[*SENDER_COLUMNS]).astype(object).map(str)
    settings = option_columns(games).sort_index(axis=1).assign(**columns.where(~columns.isin(MISSING)))
    own = settings.drop(columns=["dataset", "protocol", "preset"], errors="ignore")
    own = own.where(own.groupby(games["model"]).transform("nunique", dropna=False).gt(1))
    return frame_of(
        row
        for place, (_, game) in enumerate(games.iterrows())
        for row in _rows_of(game, settings.iloc[place].get("dataset", ""), own.iloc[place].dropna())
    )


def _rows_of(game: pd.Series, dataset: str, own: pd.Series) -> Iterator[Row]:
    """Return the rows of a game; `own` has the settings in which games of its player differ."""
    name = game["model"]
    simulated = registry.find(STUDY_PLAYER, name) is not None
    about = {
        "agent_kind": SIMULATED if simulated else MODEL,
        "agent": " ".join([name, *(f"{key}={value}" for key, value in own.items())]),
        "protocol": game["protocol"],
        "preset": game["preset"],
        "dataset": dataset,
        "grammar": game["grammar"],
        "instance": int(game["seed"]),
        "person": str(game["seed"]),
    }
    numbers = {name: game[name] for name in {*MEASURES, *(m.items for m in MEASURES.values())} & set(game.index)}
    return _melted(about, {**numbers, "accuracy": game["value"]})


def read_rows(path: str | Path) -> pd.DataFrame:
    """Read rows of the study table from a .csv or .parquet file.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: columns are missing.
    """
    import pandas as pd

    with reading(f"The rows in '{path}' cannot be read"):
        of_parquet = Path(path).suffix.lower() == ".parquet"
        found = pd.read_parquet(path) if of_parquet else read_csv_table(Path(path), TEXTS)
    missing = [name for name in COLUMNS if name not in found and name not in ADDED]
    if missing:
        raise InvalidSettingError(
            f"'{path}' is not a table of rows of a study: it lacks the columns {listed(missing)}."
        )
    return found.reindex(columns=list(COLUMNS))


def items_of_records(records: Iterable[Record]) -> pd.DataFrame:
    """Return a row per item of played games, from the curves of records."""
    import pandas as pd

    rows = [
        (record["model"], record["config"].get("dataset"), record["grammar"], record["seed"], *point)
        for record in records
        if record.get("kind") == "study" and not record["failed"] and record.get("protocol") == "played"
        for point in record.get("curve", ())
    ]
    columns = ["agent", "dataset", "grammar", "seed", "example", "correct", "cards", "held_out"]
    return pd.DataFrame(rows, columns=columns)


# -- filters that select the games of a report: by score, attention or degenerate language -----------------------------

# The attention rules were fixed before data collection. They do not affect pay; `icy study review` shows them.


MOST_ALIKE = 0.8  # a game fails if more than this share of its answers are identical
LEAST_MS = 1000  # a game fails if the median time from picture to answer is shorter, in milliseconds
MOST_STRANGE = 0.2  # a game fails if more than this share of its answers use letters that no code of the game has
GAME_OF = ["agent_kind", "agent", "protocol", "preset", "dataset", "grammar", "instance", "person"]
PLAYERS = ("human", "simulated")  # values of agent_kind with a score and attention measures; senders have neither
PUBLISHED = "published"  # rows that summarize many games; filters always keep them


@dataclass(frozen=True)
class Filter:
    """Conditions that the games of a report must meet.

    Attributes:
        least_score: lowest score of a person or simulated player; Icy22 reports games with 50 points or more.
        attention: whether games of people and simulated players must pass the attention rules.
        degenerate: whether games may be in a degenerate language; see `icy.study.game.is_degenerate`.
    """

    least_score: float = 0.0
    attention: bool = False
    degenerate: bool = True

    def __post_init__(self) -> None:
        real_number("least score", self.least_score)

    def select(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Select the rows of games that pass the filter, in their order.

        Published rows always pass.

        Args:
            rows: rows of the study table, see `icy.study.rows`.
        """
        numbers = _numbers(rows)
        is_player = numbers.index.get_level_values("agent_kind").isin(PLAYERS)
        out = is_player & (numbers["score"] < self.least_score)
        if self.attention:
            out |= is_player & inattentive(numbers)
        if not self.degenerate:
            out |= numbers["degenerate"] == 1
        left_out = set(numbers.index[out])
        keys = zip(*(rows[name].astype(str) for name in GAME_OF), strict=True)
        return rows[[key not in left_out for key in keys]]


def inattentive(numbers: pd.DataFrame) -> pd.Series:
    """Return which games fail an attention rule. Missing numbers do not fail.

    Args:
        numbers: a row per game with the columns `identical`, `reaction_ms` and `strange`.
    """
    return (
        (numbers["identical"] > MOST_ALIKE) | (numbers["reaction_ms"] < LEAST_MS) | (numbers["strange"] > MOST_STRANGE)
    )


def _numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a row per game, and a column per number that filters use (NaN if missing).

    Published games are left out.
    """
    names = ("score", "identical", "reaction_ms", "strange", "degenerate")
    of_games = rows[(rows["split"] == GAME) & (rows["agent_kind"] != PUBLISHED)]
    keys = of_games[GAME_OF].astype(str)
    wide = of_games.assign(**{name: keys[name] for name in GAME_OF}).pivot_table(
        index=GAME_OF, columns="metric", values="value", aggfunc="first", sort=False
    )
    numbers = wide.reindex(columns=[MEASURES[name].metric for name in names]).astype(float)
    return numbers.set_axis(list(names), axis=1)


FILTERS: Mapping[str, Filter] = {
    "all games": Filter(),
    "score of 50 and more": Filter(least_score=50),
    "score of 100 and more": Filter(least_score=100),
    "attention": Filter(attention=True),
    "no degenerate languages": Filter(degenerate=False),
    "attention, no degenerate languages": Filter(attention=True, degenerate=False),
}
"""The filters of the sensitivity table, by name."""


def sensitivity(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy on held-out items under every filter.

    A row is an agent, protocol, preset, dataset and filter. The other columns are `games`, the number of games that
    pass, and a column per grammar with the accuracy; NaN if no game passes.

    Args:
        rows: rows of the study table.
    """
    import pandas as pd

    by = ["dataset", "agent", "protocol", "preset"]
    parts = []
    for name, one in FILTERS.items():
        kept = one.select(rows)
        exact = kept[(kept["metric"] == EXACT) & (kept["split"] == HELD_OUT) & (kept["agent_kind"] != PUBLISHED)]
        exact = exact.assign(value=exact["value"].astype(float))
        means = exact.pivot_table(index=by, columns="grammar", values="value", sort=False)
        counts = exact.groupby(by, sort=False).size().rename("games")
        parts.append(means.join(counts).reset_index().assign(filter=name))
    found = pd.concat(parts, ignore_index=True)
    grammars = sorted(str(name) for name in found if name not in (*by, "filter", "games"))
    place = {name: n for n, name in enumerate(FILTERS)}
    order = found.assign(place=found["filter"].map(place)).sort_values([*by, "place"], kind="stable")
    return order[[*by, "filter", "games", *grammars]].reset_index(drop=True)
