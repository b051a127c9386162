"""Multi-target games as tables: trained agents, and agents that were evaluated side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from icy.analysis.literature.retraining import game_key, references
from icy.analysis.table_cells import (
    SPREADS,
    Reference,
    TableCell,
    cell_of,
    cell_of_values,
    checked_spread,
    undefined_notes,
    with_reason,
)
from icy.core.errors import InvalidSettingError
from icy.records.load import Results
from icy.records.long_table import SYNONYMS

from .by_setting import frame_table, results_in, setting_labels, spread_note, updates_note, with_options
from .printed_table import BiasTable

SCORES = {  # columns of the long table, and their headings
    "accuracy": "accuracy",
    "soft_accuracy": "soft",
    "seen_accuracy": "seen",
    "cbm": "CBM",
    "cbm_floor": "chance",
    "cbm_holistic": "holistic",
    "ambiguity_rate": "amb",
    "paraphrase_rate": "para",
    "unmatched_rate": "unm",
    "ami": "AMI",
    "topsim": "topsim",
    "unique_words": "words",
    "unique_messages": "messages",
}
LABELS = {  # columns that identify rows, and their headings
    "model": "agents",
    "world": "world",
    "representation": "representation",
    "rule_length": "l",
    "vocab_size": "d",
    "message_length": "words said",
    "targets": "T",
    "distractors": "D",
    "grammar": "distractors",
}
TRAINED = ("representation", "word_size", "message_length", "steps", "settings")  # shown where they differ
EVALUATED = ("agents", "game", "world", *TRAINED, "rule_length", "targets", "distractors", "distractor_kind")
OTHERS = {"steps": "updates"}  # headings of columns that are not in LABELS
ALWAYS = ("world", "representation", "rule_length")  # labels that are shown even if all rows agree
NOTES = (
    "accuracy: share of candidates judged correctly, on held-out phrases if there are any; soft: the same with "
    "messages as in training; seen: on phrases of training",
    "CBM: concept best matching, with its rates of ambiguous words, paraphrases and unmatched concepts; chance: CBM "
    "of random words; holistic: CBM of a random message for every phrase",
)
CHANCE_NOTE = "the command icy metrics FOLDER --permutations 1000 gives chance and p of every metric of these languages"
DECIMALS = 2


def games_table(results: Results, spread: str = "sd", *, compare: object = None, compared: str = "") -> BiasTable:
    """Make a table with a row per game and pair of agents, and a column per score, over seeds.

    Args:
        results: results of training in games (`icy games train`).
        spread: "sd", "sem" or "ci95".
        compare: None, or the name of a published table of games, to show its values below each cell.
        compared: not used; the heading is the name of the published table.

    Raises:
        InvalidSettingError: an unknown spread, or `compare` is not a name.
        UnknownNameError: an unknown published table of games.
    """
    if compare is not None and not isinstance(compare, str):
        raise InvalidSettingError("Games are compared only with a published table (--compare cbm24/table1).")
    long = with_settings(results_in(results, spread))
    labels = _labels(long)
    held_out = bool((long["rule_length"] > 1).any())  # else all phrases are seen
    columns = {name: text for name, text in SCORES.items() if (held_out if name == "seen_accuracy" else name in long)}
    printed = references(compare) if compare else {}

    def cell(part: pd.DataFrame, name: str) -> TableCell:
        found = with_reason(cell_of(part.assign(value=part[name]), spread), part, name)
        first = part.iloc[0].to_dict() if printed and found.seeds else {}
        row = printed.get(game_key({**first, "word_size": first["vocab_size"]}), {}) if first else {}
        if name not in row:
            return found
        error = found.spread / math.sqrt(found.seeds) if found.seeds > 1 else math.nan
        distance = (found.mean - row[name]) / error if error else math.nan
        return replace(found, reference=Reference(row[name], math.nan, distance, source=str(compare)))

    notes = [*NOTES, CHANCE_NOTE, *undefined_notes(long), *spread_note(long, spread)]
    best = long.loc[~long["failed"].astype(bool), "best_step"].astype(float).mean()
    notes += [f"{n}; scores of the best evaluation, on average after {best:.0f}" for n in updates_note(long)]
    table = frame_table(
        "agents of multi-target games", long, labels, cell, columns, notes, DECIMALS, spread, kind="games"
    )
    return replace(table, compared=compare or compared or "other")


def with_settings(long: pd.DataFrame) -> pd.DataFrame:
    """Add options of games as columns to a long table: `world`, and `further` for options without a column."""
    return with_options(long, ["world"], LABELS)


def _labels(long: pd.DataFrame) -> dict[str, str]:
    varies = {name for name in LABELS if long[name].nunique(dropna=False) > 1} | {*ALWAYS, "message_length"}
    if (long["targets"] == long["distractors"]).all():
        varies -= {"distractors"}
    if (long["message_length"] == long["rule_length"]).all():  # as many words as concepts
        varies -= {"message_length"}
    return {name: heading for name, heading in LABELS.items() if name in varies} | setting_labels(long)


def evaluation_tables(rows: pd.DataFrame, spread: str = "sd", notes: Sequence[str] = ()) -> list[BiasTable]:
    """Make a table per game; see `evaluation_table`. If there are several games, each title names its game."""
    parts = [part for _, part in rows.groupby("game", sort=False)]
    tables = [evaluation_table(part, spread, notes) for part in parts]
    if len(parts) < 2:
        return tables
    return [replace(table, title=f"games: {part['game'].iloc[0]}") for table, part in zip(tables, parts, strict=True)]


def evaluation_table(rows: pd.DataFrame, spread: str = "sd", notes: Sequence[str] = ()) -> BiasTable:
    """Make one table of agents that were evaluated together: a row per agent and game, over seeds.

    If agents play different games, a column names the games.

    Args:
        rows: rows of `icy.games.compare`.
        spread: "sd", "sem" or "ci95".
        notes: sentences below the table.

    Raises:
        InvalidSettingError: an unknown spread.
    """
    checked_spread(spread)
    rows = rows.assign(agents=rows["agents"].str.partition(", seed ")[0])
    trained = rows[rows["representation"] != ""]  # agents that know the rules have none
    varying = {name for name in TRAINED if trained[name].nunique() > 1}
    varying |= {"game"} if "game" in rows and rows["game"].nunique() > 1 else set()
    names = [name for name in EVALUATED if name not in (*TRAINED, "game") or name in varying]
    labels = {name: LABELS.get(SYNONYMS.get(name, name), OTHERS.get(name, name)) for name in names}
    shown = {name: heading for name, heading in SCORES.items() if rows[name].notna().any()}

    def cell(part: pd.DataFrame, name: str) -> TableCell:
        return cell_of_values(part[name], spread)

    table = frame_table("games", rows, labels, cell, shown, (), DECIMALS, spread, kind="games")
    averaged = any(cell.seeds > 1 for _, cells in table.rows for cell in cells.values())
    several = [f"mean ± {SPREADS[spread][0]}"] if averaged else []
    return replace(table, notes=[*NOTES, *several, *notes])
