"""S2B as tables: scores of players and of trained agents, metrics of their languages and of stimuli."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from icy.analysis.literature.catalogue import published
from icy.analysis.table_cells import SPREADS, TableCell, cell_of, cell_of_values, checked_spread
from icy.config.settings import OLD_PRESETS
from icy.core.text import counted
from icy.records.load import Results

from .by_setting import (
    frame_table,
    results_in,
    setting_labels,
    spread_note,
    table_of_scores,
    updates_note,
    with_options,
)
from .printed_table import BiasTable, Line

QUERY, DEAF = "query", "deaf"
HEADINGS = {  # headings of the measures of `icy.s2b.Evaluation.table`
    "zsct": QUERY,
    "deaf": DEAF,
    "support": "support",
    "yes": "says yes",
    "kept": "is yes",
}


def evaluation_table(
    rows: pd.DataFrame,
    labels: Mapping[str, str],
    spread: str = "sd",
    notes: Sequence[str] = (),
    shares: Mapping[str, str] = HEADINGS,
    means: Mapping[str, str] | None = None,
    further: Sequence[Line] = (),
    title: str = "games",
) -> BiasTable:
    """Make a table with a row per pair of players and game, and a column per measure, over seeds.

    Args:
        rows: one row per seed, with the measures of `icy.s2b.Evaluation.table`, the columns of
            `icy.s2b.never_listening` that `with_deaf` adds, and the columns of `labels`.
        labels: columns that identify rows of the table, and their headings.
        spread: "sd", "sem" or "ci95".
        notes: sentences below the table.
        shares: measures that are shown in percent, and their headings.
        means: measures that are shown as they are, and their headings.
        further: rows to add at the end, such as published values.
        title: title of the table.

    Raises:
        InvalidSettingError: an unknown spread.
    """
    checked_spread(spread)

    def cell(part: pd.DataFrame, name: str) -> TableCell:
        return cell_of_values((100 if name in shares else 1) * part[name], spread)

    query = (
        "query: zero-shot compositional test accuracy (ZSCT), %; says yes, is yes: how often in the query the listener"
    )
    legend = [
        f"{query} said that it saw the target's meaning, and how often it did",
        f"{DEAF}: query accuracy of the best listener that ignores all messages, in the same games",
        f"mean ± {SPREADS[spread][0]}, of means over episodes",
    ]
    columns = {**shares, **(means or {})}
    table = frame_table(title, rows, labels, cell, columns, [*legend, *notes], decimals=1)
    return replace(table, rows=[*table.rows, *further])


def with_deaf(rows: pd.DataFrame, floors: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of `floors`, by seed, and as `deaf` the column with the best mean over seeds.

    `floors` has scores of listeners that ignore all messages, such as from `icy.s2b.never_listening`.
    """
    merged = rows.merge(floors, on="seed", how="left")
    names = [name for name in floors.columns if name != "seed" and merged[name].notna().any()]
    best = merged[names].mean().idxmax() if names else None
    return merged.assign(deaf=math.nan if best is None else merged[best])


def published_text_models(games: Sequence[tuple[int, int]], form: str) -> list[Line]:
    """Return rows of the published text models for games (shots S, samples O); see `evaluation_table`.

    Their labels are model, S, O, K, form of the prompt and the number of seeds; spreads are standard deviations.
    """
    return _published("metarg24/llm", "zsct", games, ["0", form])


def published_acquisition(games: Sequence[tuple[int, int]]) -> list[Line]:
    """Return rows of the published ease of acquisition, as query accuracy, for games (shots S, samples O).

    Their labels are the agent that learned to speak, S, O and the number of seeds; spreads are standard deviations.
    """
    return _published("metarg24/marl", "ease_of_acquisition", games)


def _published(name: str, measure: str, games: Sequence[tuple[int, int]], labels: Sequence[str] = ()) -> list[Line]:
    """Return the rows of a published table of MetaRG24, with further labels after S and O."""
    table = published(name)
    table = table[table["measure"] == measure]
    rows = table[[pair in set(games) for pair in zip(table["shots"], table["samples"], strict=True)]]
    return [
        (
            [f"{row['agent']} (MetaRG24)", str(row["shots"]), str(row["samples"]), *labels, str(row["n"])],
            {QUERY: TableCell(row["mean"], row["error"], row["n"], censored=0, failed=0)},
        )
        for row in rows.to_dict("records")
    ]


TRAINED = {  # columns of the long table of trained agents, in percent, and their headings
    "value": QUERY,
    "floor": DEAF,
    "support": "support",
}
ACQUIRED = "ease_of_acquisition"
LEARNED = {  # columns of metrics of learned languages, and their headings
    **{name: name for name in ("topsim", "posdis", "bosdis", "distinct")},
    ACQUIRED: "EoA",
}
RECONSTRUCTED = "reconstructed"
GAME = {"values": "V", "shots": "S", "samples": "O", "distractors": "K"}


def training_table(results: Results, spread: str = "sd", *, compare: object = None, compared: str = "") -> BiasTable:
    """Make a table with a row per trained agent and game, and a column per measure, over seeds.

    Args:
        results: results of training agents (`icy s2b train`).
        spread: "sd", "sem" or "ci95".
        compare: must be None, as reference values do not exist yet.
        compared: not used.

    Raises:
        InvalidSettingError: an unknown spread, or `compare` is not None.
    """
    long = results_in(results, spread, compare, "Trained agents have no reference values yet")
    long = long.assign(floor=long.reindex(columns=["floor", "constant_floor"]).max(axis=1))  # older records lack one
    shown = {name: heading for name, heading in GAME.items() if name == "values" or long[name].notna().any()}
    long = with_options(long.assign(preset=long["preset"].replace(dict(OLD_PRESETS))), ["values"], GAME)
    labels = {"model": "agent", "grammar": "speaker", **shown, **setting_labels(long)}
    further = {RECONSTRUCTED: RECONSTRUCTED, **LEARNED}
    headings = TRAINED | {name: label for name, label in further.items() if name in long and long[name].notna().any()}
    notes = _training_notes(long, list(headings), spread)
    cell = partial(_percent, spread=spread)
    return frame_table("trained agents", long, labels, cell, headings, notes, 1, spread, kind="s2b")


def _percent(part: pd.DataFrame, name: str, spread: str) -> TableCell:
    return cell_of(part.assign(value=100 * part[name].astype(float)), spread)


def _training_notes(long: pd.DataFrame, shown: Sequence[str], spread: str) -> list[str]:
    """Return notes on the columns of trained agents, and on the length of their training."""
    notes = [
        f"{QUERY}: zero-shot compositional test accuracy (ZSCT), %; {DEAF}: ZSCT of the best listener that ignores all "
        f"messages, {_of_constants(long)}, in some of the same episodes"
    ]
    if RECONSTRUCTED in shown:
        notes.append(f"{RECONSTRUCTED}: stimulus components that are predicted from the core's state to within 0.05, %")
    if learned := [name for name in LEARNED if name in shown]:
        names = ", ".join(LEARNED[name] for name in learned)
        notes.append(f"{names}: times 100; distinct: share of meanings with a message that no other meaning has")
        notes.append("chance and p of a saved speaker: icy s2b language --speaker FOLDER --permutations 1000")
        if ACQUIRED in learned:
            notes.append(
                f"{LEARNED[ACQUIRED]}: ease of acquisition, the query accuracy of new listeners of the language"
            )
    notes += [*spread_note(long, spread), *updates_note(long)]
    played = long.loc[~long["failed"].astype(bool), "observations"]
    return notes + [f"observations: {played.mean():.0f} on average"] * bool(len(played))


def _of_constants(long: pd.DataFrame) -> str:
    """Return whether constant answers are among the listeners that ignore messages; in older records they are not."""
    known = long.loc[~long["failed"].astype(bool)].reindex(columns=["constant_floor"])["constant_floor"].notna()
    if known.all():
        return "constant answers included"
    return f"constant answers included for {known.sum()} of {counted(len(known), 'agent')}"


RECALL_SCORES = {  # columns of the long table of agents of the recall task, in percent, and their headings
    "value": "second shot",
    "first_shot": "first shot",
    "chance": "chance",
    "no_memory": "no memory",
    "one_game": "one game",
    "reconstructed": "reconstructed",
}


def recall_table(results: Results, spread: str = "sd", *, compare: object = None, compared: str = "") -> BiasTable:
    """Make a table with a row per agent and representation of stimuli, and a column per measure, over seeds.

    Args:
        results: results of training in the recall task (`icy s2b recall`).
        spread: "sd", "sem" or "ci95".
        compare: must be None, as reference values do not exist.
        compared: not used.

    Raises:
        InvalidSettingError: an unknown spread, or `compare` is not None.
    """
    refusal = "Agents of the recall task have no reference values"
    long = with_options(results_in(results, spread, compare, refusal))
    labels = {"model": "agent", "grammar": "stimuli", **setting_labels(long)}
    headings = {name: label for name, label in RECALL_SCORES.items() if name in long and long[name].notna().any()}
    notes = [
        "second shot, first shot: accuracy, %, means over episodes; chance: accuracy of random answers",
        "no memory: an agent that always gives the answer that is right most often; one game: an agent that remembers "
        "only the present stimulus (in episodes of the same evaluation)",
        "stimuli: ohe, one-hot; scs, continuous",
        *spread_note(long, spread),
    ]
    played = long[~long["failed"].astype(bool)]
    for name, part in played.groupby("model", sort=False):
        updates, observations = int(part["steps"].max()), part["observations"].mean()
        notes.append(f"{name}: {counted(updates, 'update')}, {observations:.0f} observations on average")
    return frame_table("recall", long, labels, partial(_percent, spread=spread), headings, notes, 1, spread)


def scores_table(
    rows: pd.DataFrame, label: str, metrics: Sequence[str], spread: str = "sd", title: str = ""
) -> BiasTable:
    """Make a table with a row per speaker, or kind of stimuli, and a column per metric, over episodes.

    Args:
        rows: one row per episode, as `icy.s2b.probe_language` returns, with the column `label`.
        label: column with the names of speakers or kinds of stimuli.
        metrics: columns to show.
        spread: "sd", "sem" or "ci95".
        title: title of the table.

    Raises:
        InvalidSettingError: an unknown spread.
    """
    checked_spread(spread)
    table = table_of_scores(rows, {label: label}, metrics, spread, "episodes", "episodes")
    means = f"mean ± {SPREADS[spread][0].replace('seeds', 'episodes')}"
    return replace(table, title=title, notes=[means, *table.notes])
