"""Published games: their rows, jobs that train them again, and claims."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from icy.analysis import published
from icy.analysis.literature.retraining import (
    GAMES,
    MEASURES,
    WHICH,
    claims,
    game_parts,
    games_of_results,
    judge_games,
    references,
    with_names,
)
from icy.games.spec import GamesSpec


def cells(table: str) -> pd.DataFrame:
    return with_names(published(table), table)


@pytest.mark.parametrize(("table", "rows"), [("cbm24/table1", 8), ("cbm24/table3", 16)])
def test_rows_have_names_of_their_own(table: str, rows: int) -> None:
    names = cells(table)["row"]
    assert names.nunique() == rows
    assert (names.value_counts() == len(names) // rows).all()
    assert len(references(table)) == rows
    assert set(cells(table).query("row.str.startswith('thing-qt-l4')")["rule_length"]) == {4}


@pytest.mark.parametrize("table", list(GAMES))
def test_parts_are_arguments_of_the_kind_of_job(table: str) -> None:
    parts = game_parts(table, cells(table))
    assert [GamesSpec.asked(**part).seeds for part in parts] == [3] * len(parts)
    assert {(p["representation"], p["word_size"]) for p in parts} >= {("gs", 17 if table.endswith("1") else 8)}
    assert all(p["targets"] == (20 if table.endswith("1") else 8) for p in parts)
    assert game_parts(table, cells(table).head(1), seeds=5)[0]["seeds"] == 5


def long_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    about = {"world": "thing", "representation": "qt", "rule_length": 1.0, "vocab_size": 6, "message_length": 1.0}
    return pd.DataFrame([{**about, "failed": False, "seed": n, **row} for n, row in enumerate(rows)])


def test_cells_are_judged_by_their_row() -> None:
    long = long_of(
        [{"accuracy": 0.90, "cbm": 0.7}, {"accuracy": 0.93, "cbm": 0.75}, {"accuracy": 0.92, "failed": True}]
    )
    wanted = cells("cbm24/table1").query("row in ('thing-qt-l1', 'thing-gs-l1')")
    found = judge_games("cbm24/table1", long, wanted).set_index(["model", "measure"])
    cell = found.loc[("thing-qt-l1", "accuracy")]
    assert (cell["icy"], cell["published"], cell["seeds"], cell["verdict"]) == (pytest.approx(0.915), 0.92, 2, "agrees")
    assert found.loc[("thing-gs-l1", "accuracy"), "verdict"] == "missing"
    assert found.loc[("thing-qt-l1", "topsim"), "verdict"] == "missing"
    assert judge_games("cbm24/table1", long.head(0), wanted)["verdict"].eq("missing").all()


def test_the_printed_numbers_bear_out_every_claim() -> None:
    games = pd.concat([cells(t).pivot_table("mean", list(WHICH), "measure").reset_index() for t in GAMES])
    found = claims(games.reindex(columns=[*WHICH, *MEASURES]))
    assert found["claim"].tolist() == list("abcdefgh")
    assert found["verdict"].tolist() == ["holds"] * 8
    assert "thing l=1: QT 0.920, GS 0.860" in found["found"].iloc[0]
    assert found["found"].iloc[6] == (
        "shape: Pearson's correlation 0.80 over 4 games; thing: Pearson's correlation 0.88 over 4 games"
    )
    assert "gs thing l=4: ambiguous 0.76, paraphrases 0.00" in found["found"].iloc[7]


def test_claims_on_results() -> None:
    base = {"ami": 0.5, "cbm": 0.3, "paraphrase_rate": 0.0, "unmatched_rate": 0.0, "unique_words": 40}
    rows = [
        {**base, "representation": "qt", "accuracy": 0.8},
        {**base, "representation": "gs", "accuracy": 0.9, "vocab_size": 50},
        {**base, "representation": "gs", "accuracy": 0.7, "vocab_size": 50, "failed": True},
    ]
    found = claims(games_of_results(long_of(rows))).set_index("claim")["verdict"]
    assert found.to_dict() == {
        "a": "does not hold", "b": "not measured", "c": "holds in part", "d": "holds in part", "e": "not measured",
        "f": "not measured", "g": "not measured", "h": "not measured",
    }  # fmt: skip


def test_labels_identify_rows() -> None:
    for table in GAMES:
        assert not cells(table).duplicated([*WHICH, "measure"]).any()
