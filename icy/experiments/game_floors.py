"""Floors of published games: scores of random words, with as many different words as in the published table."""

from __future__ import annotations

import functools
from typing import Any

import pandas as pd

TURNS, BATCH = 1000, 100
FLOOR = ["cbm", "ambiguity_rate", "paraphrase_rate", "unmatched_rate"]


def printed_floors(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the chance scores ("floors") of the rows of a published table of games.

    Args:
        cells: the cells, with the names of their rows (`icy.analysis.literature.games.with_names`).

    Returns:
        A row for each row of the published table that has cbm and the number of words. The columns are: `row`, the name
        of the row; `printed`, the published cbm; `chance`, the cbm of random words; the rates of cbm for random words;
        and `holistic`, the cbm if every phrase has a random message.
    """
    rows = []
    for name, row in cells.groupby("row", sort=False):
        first = row.iloc[0]
        printed = dict(zip(row["measure"], row["mean"], strict=True))
        if {"cbm", "unique_words"} <= set(printed):
            sizes = int(first["rule_length"]), int(printed["unique_words"]), int(first["message_length"])
            rows.append({"row": name, "printed": printed["cbm"], **_floors(str(first["world"]), *sizes)})
    return pd.DataFrame(rows)


@functools.cache
def _floors(world: str, rule_length: int, words: int, length: int) -> dict[str, Any]:
    from icy.games.floors import cbm_floor

    phrases = _phrases(world, rule_length)
    chance = cbm_floor(phrases, words, length, unmatched="assigned")
    holistic = cbm_floor(phrases, words, length, "phrase", unmatched="assigned")["cbm"]
    return {"chance": chance["cbm"], **{name: chance[name] for name in FLOOR[1:]}, "holistic": holistic}


@functools.cache
def _phrases(world: str, rule_length: int) -> Any:
    """Return the phrases of an evaluation, with silent messages."""
    import torch

    from icy.games import Turns, TurnSettings, make_world
    from icy.games.playing import batches, make_spoken

    turns = Turns(make_world(world), TurnSettings(rule_length=rule_length, targets=1, distractors=1), [0])
    numbers = torch.cat([batch.numbers[0, 0] for batch in batches(turns, "test", TURNS, BATCH)])
    return make_spoken(turns, numbers, torch.zeros(len(numbers), 1, dtype=torch.long, device="cpu"))
