"""Verdicts on published cells that were measured again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icy.analysis.literature.agreement import with_distance
from icy.analysis.literature.catalogue import published
from icy.analysis.literature.verdicts import COLUMNS, Verdict, judged, shown
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


def test_cells_are_judged_by_intervals_of_students_t() -> None:
    wanted = published("perkins21/table13").query("representation == 'soft' and model == 'FC2L'")
    theirs = wanted.set_index("grammar")
    near = float(theirs.loc["rot", "mean"]) + 6 * float(theirs.loc["rot", "standard_error"])  # t of 2: 4.3 and 9.9
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
    assert cells.set_index("grammar").loc["rot", "distance"] == pytest.approx(6)
    verdict = Verdict.of(cells)
    assert (verdict.cells, verdict.measured, verdict.failed, verdict.agree) == (7, 4, 1, 1)
    assert verdict.word == "too few cells to tell"
    assert "(1 failed, 3 of 7 not measured)" in str(verdict)
    assert Verdict.of(pd.concat([cells, cells])).word == "not reproduced"


def test_chance_is_what_it_is_with_borrowed_errors() -> None:
    """Of two measurements of one thing, five runs here, five there without an error, 5 % of the intervals miss 0."""
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
    outside = (~cells["within"]).mean()
    assert outside == pytest.approx(0.05, abs=0.01)
    assert Verdict.of(cells).expected == pytest.approx(0.95 * len(cells))
    assert Verdict.of(cells).together > 0.05


def test_what_both_cut_say_is_not_agreement() -> None:
    wanted = published("icy22/table3").query("model == 'RNNAutoReg:LSTM' and grammar == 'hol'").assign(model="FC2L")
    assert wanted["mean"].item() == 20.08
    (cell,) = judged(long_of({"hol": [20.0] * 5}, "ratio", cut=("hol",)), wanted).to_dict("records")
    assert cell["distance"] < -3
    assert cell["verdict"] == "cut in both"
    (cell,) = judged(long_of({"hol": [19.0] * 5}, "ratio"), wanted).to_dict("records")
    assert cell["verdict"] == "differs"


def test_a_cell_cut_in_one_never_agrees() -> None:
    """The published runs of FC1L on shufdet took 11.00±3.43 times concat's steps; icy's are > 20."""
    wanted = published("icy22/table3").query("model == 'FC1L' and grammar == 'shufdet'")
    assert wanted["mean"].item() == 11.0
    (cell,) = judged(
        long_of({"shufdet": [20.0] * 5}, "ratio", cut=("shufdet",)).assign(model="sender/FC1L"), wanted
    ).to_dict("records")
    assert cell["p"] > 0.05  # as if 20 were the mean
    assert cell["verdict"] == "cut in one"
    assert shown(pd.DataFrame([cell]))["icy"].item() == "20.00±0.00†"
    narrow = wanted.assign(mean=2.0, standard_error=0.1)
    cells = judged(long_of({"shufdet": [20.0] * 5}, "ratio", cut=("shufdet",)).assign(model="sender/FC1L"), narrow)
    assert cells["verdict"].tolist() == ["differs"]  # beyond 20 it only differs more
    theirs = published("icy22/table3").query("model == 'RNNAutoReg:LSTM' and grammar == 'hol'").assign(model="FC2L")
    ours = long_of({"hol": [16.0, 20.0, 19.0, 20.1, 19.9]}, "ratio").assign(cap=20.0)
    assert judged(ours, theirs)["verdict"].tolist() == ["cut in one"]


def test_one_seed_reproduces_nothing() -> None:
    """`icy reproduce icy22/table3 --quick`: FC1L, one seed, of which 5 of 5 cells were once said to agree."""
    wanted = published("icy22/table3").query("model == 'FC1L'")
    printed = wanted.set_index("grammar")["mean"]
    quick = long_of({str(g): [min(20.0, m)] for g, m in printed.items()} | {"shufdet": [20.0]}, "ratio").assign(
        model="sender/FC1L", cap=20.0
    )
    quick["cut"] = quick["value"] == 20
    cells = judged(quick, wanted)
    assert set(cells["verdict"]) == {"one seed", "cut in both"}
    verdict = Verdict.of(cells)
    assert (verdict.word, verdict.measured, verdict.decided, verdict.agree) == ("undecided", 5, 0, 0)
    assert "of 5 cells none can be told: 3 of one seed, 2 cut at the cap in both" in str(verdict)
    assert "eproduced" not in str(verdict)


def test_ratios_of_a_stopped_run_are_not_judged() -> None:
    """The seeds that learn fast end first, so that the mean of those is too low."""
    wanted = published("icy22/table3").query("model == 'FC1L' and grammar in ('perm', 'rot')")
    printed = wanted.set_index("grammar")["mean"]

    def verdicts(rot: list[float], measure: str = "ratio") -> dict[str, str]:
        long = long_of({"concat": [1.0] * 3, "perm": [printed["perm"]] * 3, "rot": rot}, measure)
        cells = judged(long.assign(model="sender/FC1L"), wanted.assign(measure=measure))
        return dict(zip(cells["grammar"], cells["verdict"], strict=True))

    mean = float(printed["rot"])
    whole = verdicts([mean - 0.1, mean, mean + 0.1])
    assert whole == {"perm": "agrees", "rot": "agrees"}
    assert verdicts([mean - 0.1, mean]) == whole | {"rot": "unfinished"}
    assert verdicts([mean]) == whole | {"rot": "unfinished"}
    assert verdicts([mean - 0.1, mean, math.nan]) == whole  # one failed, none is to come
    assert verdicts([mean - 0.1, mean], "accuracy") == whole  # all runs are as long, so that none comes first


def cells_of(distance: list[float], **changes: Any) -> pd.DataFrame:
    """Cells with these distances, of four degrees of freedom."""
    p = 2 * stats.t.sf(np.abs(distance), 4)
    words = ["agrees" if one >= 0.05 else "near" if one >= 0.01 else "differs" for one in p]
    about = {"icy": 0.5, "published": 0.5, "combined_error": 0.01, "freedom": 4.0, "seeds": 3, "p": p, "verdict": words}
    return pd.DataFrame({**about, "measure": "ratio", "distance": distance}).assign(**changes)


def test_a_verdict_allows_for_chance() -> None:
    alike = (0.9 * stats.t.ppf((np.arange(17) + 0.5) / 17, 4)).tolist()  # as chance has it
    cells = cells_of([*alike[:16], 3.0, 3.5, -3.2, -2.9])
    verdict = Verdict.of(cells)
    assert verdict.expected == pytest.approx(0.95 * 20)
    assert verdict.shows == pytest.approx(2.776 * 0.01, abs=1e-4)
    assert verdict.agree == 16
    assert verdict.together > 0.05
    assert verdict.word == "reproduced in part"  # by chance one would lie outside, seldom four
    assert Verdict.of(cells_of([*alike, 3.0])).word == "reproduced"
    assert Verdict.of(cells_of([*alike, 30.0])).word == "reproduced in part"
    assert Verdict.of(cells.assign(verdict="missing")).word == "not measured"


def test_cells_that_all_lie_somewhat_away_are_not_reproduced() -> None:
    verdict = Verdict.of(cells_of([2.2] * 15))  # p of 0.09 each
    assert verdict.agree == 15
    assert verdict.together < 0.05
    assert verdict.word == "reproduced in part"
    assert "further away than chance allows (Fisher's p" in str(verdict)


def test_what_cannot_be_told_counts_neither_for_nor_against() -> None:
    cut = cells_of([0.0] * 15, verdict="cut in both")
    free = cells_of([0.1, -0.5, 1.0, 0.3, 3.5])
    verdict = Verdict.of(pd.concat([cut, free], ignore_index=True))
    assert (verdict.measured, verdict.decided, verdict.agree) == (20, 5, 4)
    assert verdict.word == "reproduced"
    assert verdict.phrase == "reproduced as far as can be told"
    assert "4 of 5 cells that can be told agree" in str(verdict)
    assert "not to be told: 15 cut at the cap in both" in str(verdict)
    assert Verdict.of(pd.concat([cut, free[:4]], ignore_index=True)).word == "too few cells to tell"


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
        "Not reproduced: 0 of 5 cells (5 failed) agree by the 95 % interval of the difference; none gave a result."
    )
