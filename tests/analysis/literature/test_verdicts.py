"""Verdicts on published cells that were measured again."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from icy.analysis.literature.agreement import with_distance
from icy.analysis.literature.catalogue import published
from icy.analysis.literature.verdicts import COLUMNS, Verdict, judged
from icy.records.long_table import LONG


def long_of(values: dict[str, list[float]], measure: str = "accuracy", cut: tuple[str, ...] = ()) -> pd.DataFrame:
    rows = [
        {
            "model": "sender/FC2L", "side": "sender", "representation": "soft", "hidden_size": 128, "measure": measure,
            "grammar": grammar, "seed": seed, "value": value, "failed": math.isnan(value), "cut": grammar in cut,
        }
        for grammar, numbers in values.items()
        for seed, value in enumerate(numbers)
    ]  # fmt: skip
    return pd.DataFrame(rows).reindex(columns=list(LONG))


def test_cells_are_judged_by_combined_standard_errors() -> None:
    wanted = published("perkins21/table13").query("representation == 'soft' and model == 'FC2L'")
    theirs = wanted.set_index("grammar")
    near = float(theirs.loc["rot", "mean"]) + 2.5 * float(theirs.loc["rot", "standard_error"])
    cells = judged(
        long_of({"rot": [near] * 3, "proj": [0.5, 0.5, 0.5], "shufdet": [0.77, 0.76, 0.78], "hol": [math.nan]}),
        wanted,
    )
    assert list(cells.columns) == COLUMNS
    verdicts = cells.set_index("grammar")["verdict"].to_dict()
    assert verdicts == {
        "concat": "missing", "perm": "missing", "pairsum": "missing",
        "rot": "near", "proj": "differs", "shufdet": "agrees", "hol": "failed",
    }  # fmt: skip
    assert cells.set_index("grammar").loc["rot", "distance"] == pytest.approx(2.5)
    verdict = Verdict.of(cells)
    assert (verdict.cells, verdict.measured, verdict.failed, verdict.agree) == (7, 4, 1, 1)
    assert verdict.word == "too few cells to tell"
    assert "(1 failed, 3 of 7 not measured)" in str(verdict)
    assert Verdict.of(pd.concat([cells, cells])).word == "not reproduced"


def test_chance_is_what_it_is_with_borrowed_errors() -> None:
    """Of two measurements of one thing, five runs here, five there without an error, 11.6 % lie two errors apart."""
    random = np.random.default_rng(1)
    ours, theirs = random.normal(size=(2, 4000, 5))
    cells = with_distance(
        pd.DataFrame(
            {
                "icy": ours.mean(axis=1), "icy_error": ours.std(axis=1, ddof=1) / 5**0.5, "seeds": 5,
                "published": theirs.mean(axis=1), "published_error": math.nan, "n": 5, "rounding": 0.0,
                "verdict": "agrees", "measure": "accuracy", "cut": 0,
            }
        )
    )  # fmt: skip
    outside = (cells["distance"].abs() > 2).mean()
    assert outside == pytest.approx(0.116, abs=0.015)
    assert 1 - Verdict.of(cells).expected / len(cells) == pytest.approx(outside, abs=0.015)


def test_both_cut_at_the_cap_agree() -> None:
    wanted = published("icy22/table3").query("model == 'RNNAutoReg:LSTM' and grammar == 'hol'").assign(model="FC2L")
    assert wanted["mean"].item() == 20.08
    (cell,) = judged(long_of({"hol": [20.0] * 5}, "ratio", cut=("hol",)), wanted).to_dict("records")
    assert cell["distance"] < -3
    assert cell["verdict"] == "agrees"
    (cell,) = judged(long_of({"hol": [19.0] * 5}, "ratio"), wanted).to_dict("records")
    assert cell["verdict"] == "differs"


def test_a_verdict_allows_for_chance() -> None:
    cells = pd.DataFrame(
        {
            "icy": 0.5, "published": 0.5, "icy_error": 0.01, "combined_error": math.hypot(0.01, 0.01), "seeds": 3,
            "n": 3, "freedom": 4.0, "measure": "ratio", "cut": 0, "distance": [0.0] * 17 + [2.5] * 3,
            "verdict": ["agrees"] * 17 + ["near"] * 3,
        }
    )  # fmt: skip
    verdict = Verdict.of(cells)
    assert verdict.expected == pytest.approx(20 * (1 - 0.1161), abs=0.01)  # t with 4 degrees of freedom
    assert verdict.word == "reproduced"
    assert Verdict.of(cells.assign(verdict="agrees")).word == "reproduced"
    assert Verdict.of(cells.assign(verdict=["agrees"] * 12 + ["differs"] * 8)).word == "reproduced in part"
    assert Verdict.of(cells.assign(verdict="missing")).word == "not measured"


def test_cells_cut_on_both_sides_leave_nothing_to_chance() -> None:
    about = {"combined_error": 0.1, "freedom": 4.0, "n": 3, "measure": "ratio", "icy_error": 0.0}
    cut = pd.DataFrame({**about, "icy": 20.0, "published": [20.0] * 15, "seeds": 3, "cut": 3, "distance": 0.0})
    free = pd.DataFrame({**about, "icy": 5.0, "published": [5.0] * 5, "seeds": 3, "cut": 0, "distance": 2.5})
    cells = pd.concat([cut.assign(verdict="agrees"), free.assign(verdict="near")], ignore_index=True)
    verdict = Verdict.of(cells)
    assert verdict.expected == pytest.approx(15 + 5 * (1 - 0.1161), abs=0.01)
    assert verdict.word == "reproduced in part"  # five of five outside; by chance two would be


def test_what_failed_is_not_reproduced() -> None:
    wanted = published("icy22/table3").query("model in ('FC1L', 'FC2L')")
    printed = wanted.query("model == 'FC2L'").set_index("grammar")["mean"]
    good = long_of({str(grammar): [mean - 0.1, mean + 0.1] for grammar, mean in printed.items()}, "ratio")
    failed = good.assign(model="sender/FC1L", value=math.nan, failed=True)
    verdict = Verdict.of(judged(pd.concat([good, failed]), wanted))
    assert (verdict.measured, verdict.failed, verdict.agree) == (10, 5, 5)
    assert verdict.word == "reproduced in part"
    assert "5 of 10 cells (5 failed) agree" in str(verdict)
    undecided = pd.DataFrame(
        {"verdict": ["undecided"] * 3 + ["failed"], "icy": [0.5] * 3 + [math.nan], "published": 0.5}
    )
    verdict = Verdict.of(undecided)
    assert (verdict.word, verdict.measured, verdict.failed) == ("undecided", 4, 1)
    alone = Verdict.of(judged(failed, wanted.query("model == 'FC1L'")))
    assert alone.word == "not reproduced"
    assert str(alone) == (
        "Not reproduced: 0 of 5 cells (5 failed) agree within 2 combined standard errors; none gave a result."
    )
