"""The report of the study, and the order in which people and senders learn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icy.analysis.people import STUDY_COLUMNS, cluster_bootstrap, permutation_p, printed, published_people
from icy.analysis.statistics import holm
from icy.analysis.tables.study import (
    acquisition_order,
    contrasts_table,
    order_tau,
    report_table,
    simulated_table,
    study_report,
)
from icy.core.errors import InvalidSettingError

# -- the table of the study --------------------------------------------------------------------------------------------


def rows(kind: str, agent: str, values: dict[str, list[float]], **more: Any) -> pd.DataFrame:
    """Make rows of games, one per value, of grammars."""
    found = []
    for grammar, of_grammar in values.items():
        for place, value in enumerate(of_grammar):
            about = {
                **dict.fromkeys(STUDY_COLUMNS), "agent_kind": kind, "agent": agent, "protocol": "played",
                "preset": "clean", "dataset": "eng", "grammar": grammar, "instance": place,
                "person": f"{grammar}{place}" if kind == "human" else str(place), "persons": 1,
            }  # fmt: skip
            found += [
                {**about, "metric": "exact", "split": "held-out", "value": value, "items": 3.0},
                {**about, "metric": "exact", "split": "answerable", "value": min(1, value + 1 / 3), "items": 2.0},
                {**about, "metric": "score", "split": "game", "value": 100 + place},
                {**about, "metric": "chance", "split": "game", "value": 0.001},
            ]
    return pd.DataFrame(found).assign(**more)


VALUES = {"concat": [1.0, 2 / 3, 1.0, 1 / 3, 1.0, 2 / 3], "rot": [0.0, 0.0, 1 / 3, 0.0, 0.0, 0.0],
          "perm": [1 / 3, 2 / 3, 0.0, 1 / 3, 1.0, 0.0]}  # fmt: skip


@pytest.fixture(scope="module")
def report() -> pd.DataFrame:
    parts = [rows("human", "people", VALUES), rows("simulated", "composer", VALUES), published_people()]
    return study_report(pd.concat([part.astype(object) for part in parts], ignore_index=True))


def one(report: pd.DataFrame, agent: str, grammar: str, dataset: str = "eng") -> dict[Any, Any]:
    found = report[(report["agent"] == agent) & (report["grammar"] == grammar) & (report["dataset"] == dataset)]
    assert len(found) == 1
    return dict(found.iloc[0])


def test_statistics_of_a_cell(report: pd.DataFrame) -> None:
    cell = one(report, "people", "concat")
    mean = cluster_bootstrap(VALUES["concat"], [f"concat{n}" for n in range(6)])
    assert (cell["accuracy"], cell["low"], cell["high"]) == (mean.value, mean.low, mean.high)
    assert (cell["right"], cell["items"], cell["games"], cell["persons"]) == (14, 18, 6, 6)
    assert cell["printed"] == printed(VALUES["concat"])
    assert cell["any_right"] == 1.0
    assert cell["answerable_items"] == 12
    assert cell["score"] == 102.5
    assert cell["p_chance"] < 1e-12
    assert one(report, "people", "rot")["any_right"] == pytest.approx(1 / 6)


def test_contrasts_with_concat_are_corrected_over_the_grammars(report: pd.DataFrame) -> None:
    p = [permutation_p(VALUES[g], VALUES["concat"], paired=False) for g in ("rot", "perm")]
    found = [one(report, "people", g) for g in ("rot", "perm")]
    assert [cell["p"] for cell in found] == p
    assert [cell["p_holm"] for cell in found] == holm(p)
    assert found[0]["difference"] == pytest.approx(np.mean(VALUES["rot"]) - np.mean(VALUES["concat"]))
    assert math.isnan(one(report, "people", "concat")["p"])


def test_machines_are_compared_instance_by_instance(report: pd.DataFrame) -> None:
    ours, theirs = one(report, "composer", "rot"), one(report, "people", "rot")
    assert (ours["paired"], theirs["paired"]) == (1.0, 0.0)
    assert ours["p"] == permutation_p(VALUES["rot"], VALUES["concat"], paired=True)


def test_one_person_with_several_games_is_one_cluster() -> None:
    games = rows("human", "people", VALUES)
    games["person"] = "a"
    cell = one(study_report(games), "people", "rot")
    assert (cell["games"], cell["persons"]) == (6, 1)
    assert math.isnan(cell["low"])
    assert math.isnan(cell["p"])


def test_published_people_have_their_counts(report: pd.DataFrame) -> None:
    cell = one(report, "people (Icy22)", "rot")
    assert (round(cell["right"]), cell["items"], cell["games"]) == (1, 63, 21)
    assert cell["printed"] == "0.02±0.03"
    assert math.isnan(cell["p"])
    assert report["agent_kind"].iloc[0] == "published"


def test_the_report_as_a_table(report: pd.DataFrame) -> None:
    table = report_table(report)
    assert table.grammars == ["concat", "perm", "proj", "rot", "shufdet"]
    assert [labels[:2] for labels, _ in table.rows] == [
        ["synth", "people (Icy22)"], ["eng", "people (Icy22)"], ["eng", "people"], ["eng", "composer"],
    ]  # fmt: skip
    assert table.rows[2][1]["concat"].mean == pytest.approx(7 / 9)
    assert "0.78" in table.render("markdown")
    assert report_table(report, "score").rows[2][1]["rot"].mean == 102.5


def test_contrasts_as_text(report: pd.DataFrame) -> None:
    found = contrasts_table(report)
    assert len(found) == 4
    assert set(found["agent"]) == {"people", "composer"}
    assert len(contrasts_table(study_report(published_people()))) == 0


def long_row(**changes: Any) -> dict[str, Any]:
    return {"model": "composer", "job_kind": "study", "grammar": "concat", "seed": 0, "value": 1.0, "failed": False,
            "censored": False, "measure": "accuracy", "protocol": "played", "preset": "clean", "reason": "steps",
            "options": "dataset=synth", "trained": 1.0, "error": None, **changes}  # fmt: skip


def test_simulated_games_as_they_are_filed() -> None:
    long = pd.DataFrame(
        [long_row(), long_row(seed=1, value=0.5), long_row(grammar="rot", value=0.0),
         long_row(options="dataset=eng, slip=0.5", value=0.25)]
    )  # fmt: skip
    table = simulated_table(long)
    assert [labels for labels, _ in table.rows] == [
        ["synth", "composer", "-", "2"],
        ["eng", "composer", "slip=0.5", "1"],
    ]
    assert table.rows[0][1]["concat"].mean == 0.75
    with pytest.raises(InvalidSettingError, match="icy study report"):
        simulated_table(long, compare="published")


# -- the orders in which people and senders find grammars easy ---------------------------------------------------------


EASY_FIRST = {"concat": 0.6, "shufdet": 0.5, "perm": 0.2, "proj": 0.04, "rot": 0.02}


def ratios(model: str, **by_grammar: float) -> list[dict[str, object]]:
    """Rows of acquisition ratios, of two seeds each."""
    return [
        {"model": model, "grammar": grammar, "seed": seed, "measure": "ratio", "failed": False, "value": value + seed}
        for grammar, value in by_grammar.items()
        for seed in (0, 1)
    ]


def test_tau_is_one_of_the_same_order_and_minus_one_of_the_reverse() -> None:
    hard_last = {grammar: float(place) for place, grammar in enumerate(EASY_FIRST)}
    assert order_tau(EASY_FIRST, hard_last) == pytest.approx(1.0)
    assert order_tau(EASY_FIRST, {grammar: -ratio for grammar, ratio in hard_last.items()}) == pytest.approx(-1.0)
    swapped = {**hard_last, "proj": hard_last["rot"], "rot": hard_last["proj"]}
    assert order_tau(EASY_FIRST, swapped) == pytest.approx(0.8)  # one of ten pairs
    assert math.isnan(order_tau(EASY_FIRST, {"concat": 1.0, "perm": 2.0}))


def test_senders_are_compared_with_people_of_every_dataset() -> None:
    report = study_report(published_people().astype(object))
    long = pd.DataFrame(
        [*ratios("sender/A", shufdet=1.0, perm=2.0, proj=3.0, rot=4.0, hol=9.0), *ratios("receiver/A", perm=1.0)]
    )
    found = acquisition_order(report, long)
    assert list(found["sender"]) == ["A"]
    assert found.loc[0, ["concat", "perm", "shufdet"]].to_list() == [1.0, 2.5, 1.5]
    assert "hol" not in found
    assert found.loc[0, "tau people (Icy22), eng"] == pytest.approx(0.8)  # people: shufdet before concat
    assert "tau people (Icy22), synth" in found


def test_missing_people_or_ratios_are_errors() -> None:
    report = study_report(published_people().astype(object))
    long = pd.DataFrame(ratios("receiver/A", perm=1.0))
    with pytest.raises(InvalidSettingError, match="icy probe --protocol acquire"):
        acquisition_order(report, long)
    with pytest.raises(InvalidSettingError, match="has no people"):
        acquisition_order(report[report["agent_kind"] == "human"], long)
