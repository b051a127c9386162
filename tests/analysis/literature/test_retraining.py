"""Published agents and games that are trained again."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from icy.analysis import published, published_tables
from icy.analysis.literature.retraining import (
    AGENTS,
    GAMES,
    MEASURES,
    WHICH,
    agent_parts,
    claims,
    game_parts,
    games_of_results,
    judge_agents,
    judge_games,
    references,
    with_names,
)
from icy.analysis.literature.verdicts import Verdict, cells_as_text
from icy.games.settings import GamesRequest

# -- published agents: jobs that train them again, and verdicts on their cells -----------------------------------------


RECALL = "metarg24/figure8"  # of the kind of job "recall"
TABLES = [table.id for table in published_tables() if table.reproduce == "s2b"]


def long(**changed: Any) -> pd.DataFrame:
    """Return results of three seeds of the LSTM at S = 2, O = 4."""
    rows = [
        {"model": "LSTM+r2d2", "shots": 2, "samples": 4, "seed": seed, "failed": False, "value": value,
         "options": "values=2-5, shots=2, samples=4"}
        for seed, value in zip((1, 2, 3), (0.61, 0.62, 0.66), strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**changed)


def test_a_table_of_agents_is_known() -> None:
    assert sorted(AGENTS) == sorted([*TABLES, RECALL])


def test_recall_is_planned_with_both_stimuli_and_measured_by_them() -> None:
    cells = published(RECALL)
    (part,) = agent_parts(RECALL, cells)
    assert part == {
        "core": "LSTM", "stimuli": ["ohe", "scs"], "preset": "metarg24", "seeds": 3, "observations": 1_000_000,
        "settings": {"reconstruction": {}},
    }  # fmt: skip
    results = pd.DataFrame(
        [
            {"model": model, "grammar": stimuli, "seed": seed, "failed": False, "value": value, "options": ""}
            for model, stimuli, seed, value in [
                ("LSTM+r2d2", "ohe", 1, 0.8), ("LSTM+r2d2", "ohe", 2, 0.9), ("LSTM+r2d2", "scs", 1, 0.3),
                ("pairs+ppo", "scs", 1, 1.0),
            ]
        ]
    )  # fmt: skip
    found = judge_agents(RECALL, results, cells)
    assert found[["model", "grammar", "icy", "seeds", "verdict"]].to_numpy().tolist() == [
        ["LSTM", "ohe", pytest.approx(85), 2, "drawn"], ["LSTM", "scs", pytest.approx(30), 1, "drawn"],
    ]  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_every_cell_of_an_agent_that_learns_is_planned_once(table: str) -> None:
    cells = published(table)
    planned = [
        (part["core"], shots, samples, "reconstruction" in part["settings"])
        for part in agent_parts(table, cells)
        for shots in part["shots"]
        for samples in part["samples"]
    ]
    learned = cells[cells["observations"].notna()].to_dict("records")
    with_loss = [row.get("reconstruction") != "without" for row in learned]
    wanted = {(row["agent"], row["shots"], row["samples"], own) for row, own in zip(learned, with_loss, strict=True)}
    assert sorted(planned) == sorted(wanted)


def test_jobs_that_train_the_listener_of_the_table() -> None:
    (part,) = agent_parts("metarg22/listener", published("metarg22/listener"))
    assert part == {
        "core": "LSTM", "learner": "r2d2", "preset": "metarg22", "least": 2, "most": 5, "game": {"compat": "near32"},
        "seeds": 6, "observations": 5_000_000, "settings": {"reconstruction": {}}, "shots": [1, 2, 4],
        "samples": [1, 4, 16],
    }  # fmt: skip
    (fewer,) = agent_parts("metarg22/listener", published("metarg22/listener").head(2), "1-2", 1000)
    assert (fewer["seeds"], fewer["observations"], fewer["shots"], fewer["samples"]) == ("1-2", 1000, [1, 2], [1])


def test_cells_that_are_no_grid_are_several_parts() -> None:
    cells = published("metarg22/listener").query("samples != 4 or shots == 1")
    parts = agent_parts("metarg22/listener", cells)
    assert [(part["shots"], part["samples"]) for part in parts] == [([1, 2, 4], [1, 16]), ([1], [4])]


def test_the_figure_of_the_reconstruction_loss() -> None:
    parts = agent_parts("metarg24/figure9", published("metarg24/figure9"))
    loss = {"reconstruction": {}}
    assert [(part["core"], part["seeds"], part["distractors"], part["settings"]) for part in parts] == [
        ("LSTM", 5, 3, {}), ("LSTM", 2, 3, loss), ("DNC", 5, 3, {}), ("DNC", 2, 3, loss)
    ]  # fmt: skip
    without = long(samples=1, distractors=3, options="values=2-5", reconstructed=math.nan)
    given = without.assign(options="reconstruction={}, values=2-5", value=0.7, reconstructed=[0.8, 0.9, 1.0])
    found = judge_agents("metarg24/figure9", pd.concat([without, given]), published("metarg24/figure9"))
    cells = found.set_index(["model", "measure"])
    assert cells.loc[("LSTM, without reconstruction", "zsct"), "icy"] == pytest.approx(63.0)
    assert cells.loc[("LSTM, with reconstruction", "zsct"), "icy"] == pytest.approx(70.0)
    assert cells.loc[("LSTM, with reconstruction", "reconstructed"), "icy"] == pytest.approx(90.0)
    assert found["verdict"].tolist() == ["drawn"] * 3 + ["missing"] * 3
    assert set(found["grammar"]) == {"S=2, O=1, K=3"}
    assert str(Verdict.of(found)) == "Measured: 3 that the paper draws without numbers (3 of 6 not measured)."


def test_a_cell_is_compared_in_per_cent() -> None:
    wanted = published("metarg22/listener")
    cells = judge_agents("metarg22/listener", long(), wanted).set_index("grammar")
    cell = cells.loc["S=2, O=4"]
    assert (cell["icy"], cell["seeds"]) == (pytest.approx(63.0), 3)
    assert cell["icy_error"] == pytest.approx(100 * math.sqrt(0.0014 / 2 / 3))
    assert cell["published"] == 62.55
    assert cell["verdict"] == "agrees"
    assert cells["verdict"].value_counts().to_dict() == {"missing": 8, "agrees": 1}
    assert cells["representation"].unique().tolist() == ["V 2-5"]


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"options": "values=2-3, shots=2, samples=4"}, "missing"),
        ({"model": "ESBN+r2d2"}, "missing"),
        ({"value": 0.99}, "differs"),
        ({"failed": True}, "failed"),
        ({"shots": 4}, "missing"),
    ],
)
def test_other_results_are_not_of_the_cell(changed: dict[str, Any], verdict: str) -> None:
    wanted = published("metarg22/listener").query("shots == 2 and samples == 4")
    (cell,) = judge_agents("metarg22/listener", long(**changed), wanted).to_dict("records")
    assert cell["verdict"] == verdict


def test_measures_of_a_language_are_their_own_columns() -> None:
    wanted = published("metarg24/marl").query("measure in ('topsim', 'ease_of_acquisition')")
    results = long(model="LSTM+vdn", topsim=[0.2, 0.25, 0.3], ease_of_acquisition=0.5)
    cells = judge_agents("metarg24/marl", results, wanted).set_index(["measure", "grammar"])
    assert cells.loc[("topsim", "S=2, O=4"), "icy"] == pytest.approx(25.0)
    assert cells.loc[("ease_of_acquisition", "S=2, O=4"), "icy"] == pytest.approx(50.0)
    assert cells.loc[("ease_of_acquisition", "S=1, O=4"), "verdict"] == "missing"
    assert cells.loc[("topsim", ""), "verdict"] == "missing"  # of the speaker that does not learn


# -- published games: their rows, jobs that train them again, and claims -----------------------------------------------


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
    assert [GamesRequest.asked(**part).seeds for part in parts] == [3] * len(parts)
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
    assert cells_as_text(found.reset_index())["published"].iloc[0] == "50.000"


def test_cells_of_several_measures_have_no_mean_difference() -> None:
    long = long_of([{"accuracy": value, "unique_words": 40 + n} for n, value in enumerate((0.90, 0.93, 0.92))])
    verdict = Verdict.of(judge_games("cbm24/table1", long, cells("cbm24/table1").query("row == 'thing-qt-l1'")))
    assert (verdict.shift, verdict.measured) == ("-", 2)
    assert str(verdict).endswith("its cells are of several measures.")


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
