"""The page of accuracies without messages: floors, verdicts on published cells, and its sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icy.experiments.sweep import make_sweep, sweep_request
from icy.experiments.sweep_file import read_sweep
from icy.s2b import never_listening
from results.s2b_floors import __main__ as floors


def cell(published: float, error: float, icy: float, icy_error: float, seeds: int = 6) -> dict[str, Any]:
    """Return a published accuracy of six runs, and an accuracy without messages."""
    names = ("published", "published_error", "icy", "icy_error", "seeds")
    return {**dict(zip(names, (published, error, icy, icy_error, seeds), strict=True)), "n": 6.0, "rounding": 0.0}


def test_every_published_accuracy_has_a_cell() -> None:
    found = floors.printed()
    assert found["source"].value_counts().to_dict() == {
        "metarg22/listener": 9, "metarg24/cores": 3, "metarg24/marl": 2, "metarg24/llm": 8,
    }  # fmt: skip
    assert set(found[floors.CELL].itertuples(index=False, name=None)) <= set(floors.cells())
    assert floors.DRAWN in set(floors.cells())


def test_the_floor_is_selected_in_other_episodes_and_has_the_larger_error() -> None:
    common = {"schedule": "near32", "values": "2-5", "shots": 1, "samples": 1, "episodes": 100}
    rows = [
        {"listener": "novelty", "query": 70.0, "query_sd": 6.0, "episode_sd": 2.0, "selection": 69.0},
        {"listener": "order", "query": 71.0, "query_sd": 1.0, "episode_sd": 1.0, "selection": 68.0},
        {"listener": "nearest", "query": 100.0, "query_sd": 0.0, "episode_sd": 0.0, "selection": np.nan},
    ]
    scores = pd.DataFrame([common | row for row in rows])
    (found,) = floors.floors(scores).to_dict("records")
    assert (found["listener"], found["icy"], found["seeds"]) == ("novelty", 70.0, 6)
    assert found["icy_error"] == pytest.approx(6 / 6**0.5)
    (found,) = floors.floors(scores.assign(episode_sd=300.0)).to_dict("records")
    assert found["icy_error"] == pytest.approx(300 / 600**0.5)


def test_verdicts_on_published_cells() -> None:
    cells = [
        cell(60, 1, 80, 1),  # 20 points lower
        cell(80, 1, 60, 1),  # 20 points higher
        cell(60, 0.2, 60.5, 0.2),  # half a point away, and precise
        cell(60, 3, 62, 3),  # neither is significant
        cell(60, 1, 80, 1, seeds=2),  # too few seeds
    ]
    found = floors.judge(pd.DataFrame(cells))
    assert found["verdict"].tolist() == ["below", "above", "within 5 points", "unknown", "not tested"]
    assert found["gap"].tolist() == [-20, 20, -0.5, -2, -20]
    assert found["p_holm"].iloc[0] == pytest.approx(4 * found["p"].iloc[0])  # four tests
    assert np.isnan(found["p_holm"].iloc[4])
    keys = dict.fromkeys(floors.KEY, "")
    named = found.assign(**keys | {"agent": list("abcde")})
    assert {agent for _, agent, *_ in floors.shown(named)} == {"a", "c"}
    assert floors.counts(found) == "1 below, 1 within 5 points, 1 above, 1 unknown and 1 not tested"


def test_errors_of_agents_have_the_error_of_their_evaluation() -> None:
    game = {"values": "2-5", "shots": 4, "samples": 1, floors.LENGTH: 1000}
    long = pd.DataFrame([{"model": floors.R2D2, "value": value, **game} for value in (0.5, 0.6)])
    best = pd.DataFrame([{"values": "2-5", "shots": 4, "samples": 1, "episode_sd": 500**0.5}])
    (found,) = floors.trained(long, floors.R2D2, best).to_dict("records")
    assert (found["icy"], found["seeds"]) == (pytest.approx(55), 2)
    assert found["icy_error"] == pytest.approx((5**2 + 1) ** 0.5)


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ([1, -1, 1, -1], "no difference within 5 points"),
        ([7, 8, 9, 8], "messages help"),
        ([-7, -8, -9, -8], "messages harm"),
        ([9, -9, 9, -9], "unknown"),
        ([1, -1], "not tested"),
    ],
)
def test_help_of_messages(gaps: list[float], verdict: str) -> None:
    rows = [(seed, model, 0.6 + gap / 100 * (model == floors.HEARS))
            for seed, gap in enumerate(gaps) for model in (floors.HEARS, floors.R2D2)]  # fmt: skip
    more = (9, floors.HEARS, 0.9)  # without a twin
    pairs = floors.twins(pd.DataFrame([*rows, more], columns=["seed", "model", "value"]))
    found, _, word = floors.help_of_messages(pairs)
    assert (found.pairs, word) == (len(gaps), verdict)
    assert found.effect == pytest.approx(np.mean(gaps))


def test_masks_make_no_difference_to_listeners_without_messages() -> None:
    few: dict[str, Any] = {"compat": "near32", "samples": 4, "most": 2, "episodes": 8, "seeds": 1}
    assert never_listening(**few).equals(never_listening(**few, masks="paper"))


@pytest.mark.slow
def test_the_sweep_trains_deaf_agents_in_every_cell_of_the_listeners(tmp_path: Path) -> None:
    given = read_sweep(floors.HERE / "deaf.toml")
    plan = make_sweep(sweep_request(**given, out=str(tmp_path)))
    jobs = [row.job for row in plan.rows]
    games = [job.settings.game for job in jobs if job.name == floors.TAUGHT]
    keys = {(f"{game.least}-{game.most}", game.shots, game.samples) for game in games}
    assert keys == set(floors.printed(floors.LISTENERS)[floors.CELL].itertuples(index=False, name=None))
    assert [job.name for job in jobs[:2]] == [floors.HEARS, floors.R2D2]
    assert {(job.name, job.settings.episodes) for job in jobs} == set(floors.EPISODES.items())
    assert {replicate.seed for job in jobs for replicate in job.replicates} == set(range(123, 129))
