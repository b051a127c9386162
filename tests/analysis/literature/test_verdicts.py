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
from icy.analysis.literature.verdicts import (
    COLUMNS,
    FISHER_COVARIANCE,
    Verdict,
    cells_as_text,
    combined_p,
    judge_cells,
    mean_difference_p,
    with_verdicts,
)
from icy.records.long_table import LONG


def long_of(values: dict[str, list[float]], measure: str = "accuracy", cut: tuple[str, ...] = ()) -> pd.DataFrame:
    rows = [
        {
            "model": "sender/FC2L", "role": "sender", "representation": "soft", "hidden_size": 128, "measure": measure,
            "grammar": grammar, "seed": seed, "value": value, "failed": math.isnan(value), "censored": grammar in cut,
        }
        for grammar, numbers in values.items()
        for seed, value in enumerate(numbers)
    ]  # fmt: skip
    return pd.DataFrame(rows).reindex(columns=list(LONG))


def test_cells_are_judged_by_intervals_of_students_t() -> None:
    wanted = published("perkins21/table13").query("representation == 'soft' and model == 'FC2L'")
    theirs = wanted.set_index("grammar")
    near = float(theirs.loc["rot", "mean"]) + 6 * float(theirs.loc["rot", "standard_error"])  # t of 2: 4.3 and 9.9
    cells = judge_cells(
        long_of({"rot": [near] * 3, "proj": [0.5, 0.5, 0.5], "shufdet": [0.77, 0.76, 0.78], "hol": [math.nan]}), wanted
    )
    assert list(cells.columns) == COLUMNS
    verdicts = cells.set_index("grammar")["verdict"].to_dict()
    assert verdicts == {
        "concat": "missing", "perm": "missing", "pairsum": "missing",
        "rot": "near", "proj": "differs", "shufdet": "agrees", "hol": "failed",
    }  # fmt: skip
    assert cells.set_index("grammar").loc["rot", "distance"] == pytest.approx(
        6, rel=1e-3
    )  # less, by the error of a reading
    verdict = Verdict.of(cells)
    assert (verdict.cells, verdict.measured, verdict.failed, verdict.agree) == (7, 4, 1, 1)
    assert verdict.word == "too few cells"
    assert "(1 failed, 3 of 7 not measured)" in str(verdict)
    assert Verdict.of(pd.concat([cells, cells])).word == "difference found"


@pytest.mark.parametrize(("runs", "borrowed", "expected"), [(5, True, 0.95), (5, False, 0.9558), (3, False, 0.9649)])
def test_chance_levels(runs: int, borrowed: bool, expected: float) -> None:
    """Of two measurements of one thing without an error in the paper, 5 % of the intervals miss 0; with few runs in
    both, less, as Welch's are wide."""
    random = np.random.default_rng(1)
    ours, theirs = random.normal(10, 1, size=(2, 4000, runs))
    cells = with_distance(
        pd.DataFrame(
            {
                "icy": ours.mean(axis=1), "icy_error": ours.std(axis=1, ddof=1) / runs**0.5, "seeds": runs,
                "published": theirs.mean(axis=1), "n": runs, "rounding": 0.0,
                "published_error": math.nan if borrowed else theirs.std(axis=1, ddof=1) / runs**0.5,
                "measure": "topsim", "censored": 0, "grammar": "rot", "representation": "soft", "role": "pair",
                "hidden_size": 128, "model": range(4000),
            }
        )
    )  # fmt: skip
    assert (~cells["within"]).mean() == pytest.approx(1 - expected, abs=0.01)
    verdict = Verdict.of(with_verdicts(cells, np.where(cells["within"], "agrees", "near").tolist())[:400])
    assert verdict.together > 0.05


def accuracies(**changed: Any) -> pd.DataFrame:
    """Return a cell of FC2L on perm, as Icy22's table 20 prints it."""
    about = {
        "icy": 1.0, "icy_error": 0.0, "seeds": 3, "published": 0.995, "published_error": math.nan, "n": 5,
        "rounding": 0.001 / 12**0.5, "measure": "accuracy", "role": "sender", "censored": 0, "grammar": "perm",
        "representation": "soft", "hidden_size": 128, "model": "FC2L",
    }  # fmt: skip
    return pd.DataFrame([{**about, **changed}])


def test_a_reading_of_1_is_not_without_error() -> None:
    (cell,) = with_distance(accuracies()).to_dict("records")
    reading = (0.996 * 0.004 / 2048) ** 0.5
    assert reading == pytest.approx(0.0014, abs=2e-5)
    assert cell["combined_error"] == pytest.approx((reading**2 / 3 + reading**2 / 5 + 0.001**2 / 12) ** 0.5)
    assert cell["distance"] == pytest.approx(4.7, abs=0.1)  # 14.7 by the spread of icy's runs alone
    assert with_distance(accuracies(icy_error=0.01))["combined_error"].item() > 0.01
    receiver = with_distance(accuracies(role="receiver"))["combined_error"].item()
    assert receiver / cell["combined_error"] == pytest.approx(1.77, abs=0.05)
    assert with_distance(accuracies(measure="topsim", published_error=0.0))["combined_error"].item() == 0


@pytest.mark.parametrize(
    ("icy", "error", "found"),
    [
        (2.0, 0.1, "equivalent"),
        (2.1, 0.1, "equivalent"),  # 0.1 + 1.86 · 0.141 < 0.4
        (2.2, 0.1, "unclear"),
        (2.0, 0.2, "unclear"),  # agrees, but says little
        (3.0, 0.1, "further away"),
        (1.0, 0.1, "further away"),
    ],
)
def test_equivalence_is_that_of_two_one_sided_tests(icy: float, error: float, found: str) -> None:
    cells = accuracies(
        icy=icy, icy_error=error, published=2.0, published_error=error, n=5, seeds=5, measure="ratio", rounding=0.0
    )
    (cell,) = with_distance(cells).to_dict("records")
    assert (cell["margin"], cell["freedom"]) == (pytest.approx(0.4), pytest.approx(8))
    p = stats.t.sf([(0.4 - sign * (icy - 2)) / (error * 2**0.5) for sign in (1, -1)], 8)
    assert (found == "equivalent") == (p.max() <= 0.05)
    assert (found == "further away") == (p.max() >= 0.95)
    assert cell["equivalence"] == found


def test_margins_of_accuracies_count_from_chance() -> None:
    margins = [with_distance(accuracies(published=0.5, role=side))["margin"].item() for side in ("sender", "receiver")]
    assert margins == pytest.approx([0.2 * 0.25, 0.2 * 0.4])
    assert with_distance(accuracies(published=0.0, role="pair"))["equivalence"].tolist() == [""]


def test_accuracies_on_concat_and_hol_are_left_out_since_they_agree_by_design() -> None:
    names = ["concat", "hol", "perm", "rot", "proj", "shufdet", "pairsum"]
    cells = pd.concat([accuracies(grammar=name, icy=0.7, published=0.7, icy_error=0.01) for name in names])
    judged = with_verdicts(with_distance(cells.reset_index(drop=True)), ["near", *["agrees"] * 6])
    assert judged["by_design"].tolist() == [True, True, *[False] * 5]
    assert judged["equivalence"].tolist() == ["", "", *["equivalent"] * 5]
    verdict = Verdict.of(judged)
    assert (verdict.measured, verdict.by_design, verdict.decided, verdict.agree, verdict.equivalent) == (7, 2, 5, 5, 5)
    assert "left out: 2 that agree by design" in str(verdict)
    assert cells_as_text(judged)["within 20 %"].tolist() == ["left out", "left out", *["equivalent"] * 5]
    for other in ({"measure": "ratio"}, {"role": "pair"}):
        assert not with_verdicts(with_distance(cells.assign(**other)), ["agrees"] * 7)["by_design"].any()


def test_cells_that_all_lie_to_one_side_are_a_drift() -> None:
    """Each agrees, but icy's value is larger in every row."""
    alike = 0.5 * np.abs(stats.t.ppf((np.arange(40) + 0.5) / 40, 4))
    cells = cells_of(alike.tolist(), icy=0.52, published=0.5).assign(model=[i // 5 for i in range(40)])
    verdict = Verdict.of(cells)
    assert (verdict.agree, verdict.decided, verdict.rows) == (40, 40, 8)
    assert verdict.mean_difference == pytest.approx(0.04)
    assert verdict.mean_difference_p == 2 / 2**8
    assert verdict.word == "difference found"
    assert "mean difference +4.0 % (p 0.0078, 8 rows)" in str(verdict)
    equal = Verdict.of(cells.assign(icy=0.1 + 0.2, published=0.3))  # but for rounding
    assert (equal.mean_difference, equal.mean_difference_p) == (0, 1)
    one = Verdict.of(cells.assign(model="FC2L"))
    assert math.isnan(one.mean_difference_p)
    assert "+4.0 % (no test: 1 row)" in str(one)


def test_cells_cut_in_both_do_not_agree() -> None:
    wanted = published("icy22/table3").query("model == 'RNNAutoReg:LSTM' and grammar == 'hol'").assign(model="FC2L")
    assert wanted["mean"].item() == 20.08
    (cell,) = judge_cells(long_of({"hol": [20.0] * 5}, "ratio", cut=("hol",)), wanted).to_dict("records")
    assert cell["distance"] < -3
    assert cell["verdict"] == "cut in both"
    (cell,) = judge_cells(long_of({"hol": [19.0] * 5}, "ratio"), wanted).to_dict("records")
    assert cell["verdict"] == "differs"


def test_a_cell_cut_in_one_never_agrees() -> None:
    """The published runs of FC1L on shufdet took 11.00±3.43 times concat's updates; icy's are > 20."""
    wanted = published("icy22/table3").query("model == 'FC1L' and grammar == 'shufdet'")
    assert wanted["mean"].item() == 11.0
    (cell,) = judge_cells(
        long_of({"shufdet": [20.0] * 5}, "ratio", cut=("shufdet",)).assign(model="sender/FC1L"), wanted
    ).to_dict("records")
    assert cell["p"] > 0.05  # as if 20 were the mean
    assert cell["verdict"] == "cut in one"
    assert cells_as_text(pd.DataFrame([cell]))["icy"].item() == "20.00±0.00†"
    narrow = wanted.assign(mean=2.0, standard_error=0.1)
    cells = judge_cells(long_of({"shufdet": [20.0] * 5}, "ratio", cut=("shufdet",)).assign(model="sender/FC1L"), narrow)
    assert cells["verdict"].tolist() == ["differs"]  # beyond 20 it only differs more
    theirs = published("icy22/table3").query("model == 'RNNAutoReg:LSTM' and grammar == 'hol'").assign(model="FC2L")
    ours = long_of({"hol": [16.0, 20.0, 19.0, 20.1, 19.9]}, "ratio").assign(cap=20.0)
    assert judge_cells(ours, theirs)["verdict"].tolist() == ["cut in one"]


def test_one_seed_decides_nothing() -> None:
    """`icy reproduce icy22/table3 --quick`: FC1L, one seed; once reported as 5 of 5 cells that agree."""
    wanted = published("icy22/table3").query("model == 'FC1L'")
    printed = wanted.set_index("grammar")["mean"]
    quick = long_of({str(g): [min(20.0, m)] for g, m in printed.items()} | {"shufdet": [20.0]}, "ratio").assign(
        model="sender/FC1L", cap=20.0
    )
    quick["censored"] = quick["value"] == 20
    cells = judge_cells(quick, wanted)
    assert set(cells["verdict"]) == {"one seed", "cut in both"}
    verdict = Verdict.of(cells)
    assert (verdict.word, verdict.measured, verdict.decided, verdict.agree) == ("undecided", 5, 0, 0)
    assert "of 5 cells none is decided: 3 of one seed, 2 cut at the cap in both" in str(verdict)
    assert "difference found" not in str(verdict)


def test_ratios_of_a_stopped_run_are_not_judged() -> None:
    """Seeds that learn fast end first, so their mean is too low."""
    wanted = published("icy22/table3").query("model == 'FC1L' and grammar in ('perm', 'rot')")
    printed = wanted.set_index("grammar")["mean"]

    def verdicts(rot: list[float], measure: str = "ratio") -> dict[str, str]:
        long = long_of({"concat": [1.0] * 3, "perm": [printed["perm"]] * 3, "rot": rot}, measure)
        cells = judge_cells(long.assign(model="sender/FC1L"), wanted.assign(measure=measure))
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
    row = {"representation": "soft", "role": "sender", "hidden_size": 128, "model": range(len(p)), "grammar": "rot"}
    more = {"measure": "ratio", "n": 1, "published_error": math.nan, "icy_error": 0.01, "margin": 0.1}
    judged = {"by_design": False, "equivalence": "unclear"}
    return pd.DataFrame({**about, **row, **more, **judged, "distance": distance}).assign(**changes)


def test_a_verdict_allows_for_chance() -> None:
    alike = (0.9 * stats.t.ppf((np.arange(17) + 0.5) / 17, 4)).tolist()  # as chance has it
    cells = cells_of([*alike[:16], 3.0, 3.5, -3.2, -2.9])
    assert Verdict.of(cells).agree == 16
    assert Verdict.of(cells_of([*alike, 3.0])).word == "no difference found"
    assert Verdict.of(cells_of([*alike, 300.0])).word == "difference found"
    assert Verdict.of(cells.assign(verdict="missing")).word == "not measured"


def test_many_small_distances_are_a_difference() -> None:
    verdict = Verdict.of(cells_of([2.2] * 15))  # p of 0.09 each
    assert verdict.agree == 15
    assert verdict.together < 0.05
    assert verdict.word == "difference found"
    assert "further away than chance allows (Fisher's p" in str(verdict)


def test_few_seeds_find_no_difference_and_show_no_equivalence() -> None:
    """The same means, with the errors of fewer seeds: the word stays, and the number of equivalent cells falls."""
    same = {"icy": 2.0, "published": 2.0, "n": 5, "seeds": 5, "measure": "ratio", "rounding": 0.0}
    many, few = (with_distance(accuracies(**same, icy_error=e, published_error=e)) for e in (0.1, 0.3))
    found = [Verdict.of(with_verdicts(pd.concat([one] * 5, ignore_index=True), ["agrees"] * 5)) for one in (many, few)]
    assert [one.equivalent for one in found] == [5, 0]
    assert found[1].word == "no difference found"
    assert "equivalent within 20 % are 0" in str(found[1])


def test_undecided_cells_do_not_count() -> None:
    cut = cells_of([0.0] * 15, verdict="cut in both")
    free = cells_of([0.1, -0.5, 1.0, 0.3, 3.5])
    verdict = Verdict.of(pd.concat([cut, free], ignore_index=True))
    assert (verdict.measured, verdict.decided, verdict.agree) == (20, 5, 4)
    assert verdict.word == "no difference found"
    assert verdict.phrase == "no difference found"
    assert "4 of 5 decided cells agree" in str(verdict)
    assert "undecided: 15 cut at the cap in both" in str(verdict)
    assert Verdict.of(pd.concat([cut, free[:4]], ignore_index=True)).word == "too few cells"


def test_failed_cells_are_a_difference() -> None:
    wanted = published("icy22/table3").query("model in ('FC1L', 'FC2L')")
    printed = wanted.query("model == 'FC2L'").set_index("grammar")["mean"]
    good = long_of({str(grammar): [mean - 0.1, mean + 0.1] for grammar, mean in printed.items()}, "ratio")
    failed = good.assign(model="sender/FC1L", value=math.nan, failed=True)
    verdict = Verdict.of(judge_cells(pd.concat([good, failed]), wanted))
    assert (verdict.measured, verdict.failed, verdict.agree) == (10, 5, 5)
    assert verdict.word == "difference found"
    assert "5 of 10 cells (5 failed) agree" in str(verdict)
    undecided = cells_of([math.nan] * 4, verdict=["undecided"] * 3 + ["failed"], icy=[0.5] * 3 + [math.nan])
    verdict = Verdict.of(undecided)
    assert (verdict.word, verdict.measured, verdict.failed) == ("undecided", 4, 1)
    alone = Verdict.of(judge_cells(failed, wanted.query("model == 'FC1L'")))
    assert alone.word == "no result"
    assert str(alone) == (
        "No result: 0 of 5 cells (5 failed) agree by the 95 % interval of the difference; none gave a result."
    )


# -- tests of all cells ------------------------------------------------------------------------------------------------


def test_cells_that_share_a_run_are_less_evidence() -> None:
    assert combined_p([0.1] * 6, [0] * 6) > combined_p([0.1] * 6, range(6))
    assert combined_p([0.1] * 6, range(6)) == pytest.approx(stats.combine_pvalues([0.1] * 6).pvalue)
    assert combined_p([0.0], [0]) < 1e-100
    random = np.random.default_rng(1)
    distances = random.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 200_000)
    assert np.cov((-2 * np.log(2 * stats.norm.sf(np.abs(distances)))).T)[0, 1] == pytest.approx(
        FISHER_COVARIANCE, abs=0.05
    )


def test_a_mean_difference_is_tested_by_rows() -> None:
    """Six cells of one row are one exchange, not six."""
    assert mean_difference_p([1.0] * 6, range(6)) == 2 / 2**6
    assert np.isnan(mean_difference_p([1.0] * 6, [0] * 6))
    assert np.isnan(mean_difference_p([1.0] * 30, [i % 5 for i in range(30)]))
    assert mean_difference_p([0.0] * 8, range(8)) == 1
    many = [1.0, *([0.5] * 19)]
    assert mean_difference_p(many, range(20)) == mean_difference_p(many, range(20)) < 0.001
    assert mean_difference_p([*many, *(-x for x in many)], range(40)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ratios", "concat", "spread", "most"),
    [(True, 1, 1, 0.07), (False, 1, 1, 0.08), (True, 2, 1, 0.09), (False, 1, 3, 0.1)],
)
def test_tables_with_equal_means_rarely_differ(ratios: bool, concat: float, spread: float, most: float) -> None:
    """Simulated tables that measure the same thing twice, of 8 rows of 5 cells whose runs share a run of concat.

    Ratios of 5 runs are relative to it; accuracies of 3 runs are read after as many updates. `concat` is how much
    concat varies relative to the other grammars, `spread` how much one table varies relative to the other.
    """
    random, runs, rows, cells = np.random.default_rng(3), 5 if ratios else 3, 8, 5
    names = np.repeat(np.arange(rows), cells)
    truth = random.uniform(0.4, 0.9, (rows, cells, 1))
    found = []
    for _ in range(200):
        shared, own = concat * random.normal(size=(2, rows, 1, runs)), random.normal(size=(2, rows, cells, runs))
        noise = (own - shared) * np.array([1, spread])[:, None, None, None]
        values = np.exp(truth + 0.12 * noise) if ratios else truth + 0.015 * noise
        p = stats.ttest_ind(*values, axis=-1, equal_var=False).pvalue.ravel()
        means = values.mean(-1)
        gaps = np.log(means[0] / means[1]) if ratios else means[0] - means[1]
        found.append((combined_p(p, names) < 0.05, mean_difference_p(gaps.ravel(), names) < 0.05))
    together, shift = np.mean(found, axis=0)
    assert max(together, shift) <= most
    assert shift >= 0.02
