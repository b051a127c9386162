"""The columns of the study's data, as columns.toml declares them, and the measures of one game."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from .game import GameState, StudyGame, Trial, distinct_codes, is_degenerate

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
