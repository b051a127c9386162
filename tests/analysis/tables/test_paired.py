"""Paired comparisons of models and of results."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icy.analysis import compare
from icy.analysis.plots.error_bars import differences
from icy.analysis.statistics import pairs_needed
from icy.analysis.tables.bias import difference_table
from icy.analysis.tables.paired import paired_tests, seeds_needed
from icy.core.errors import IncompatibleError, InvalidSettingError
from tests.helpers import long

# -- paired comparison of results, seed by seed ------------------------------------------------------------------------


RATIO = {"protocol": "acquire", "measure": "ratio", "cap": 20.0, "target": 0.8}
MODELS = {
    "A": {"concat": [1.0] * 4, "rot": [2.0, 3.0, 4.0, 5.0], "hol": [20.0] * 4, "shufdet": [1.5, 1.7, 1.6, 1.4]},
    "B": {"concat": [1.0] * 4, "rot": [1.0, 1.4, 2.2, 2.4], "hol": [20.0] * 4, "shufdet": [1.4, 1.8, 1.6, 1.3]},
    "C": {"concat": [1.0] * 4, "rot": [20.0, 20.0, 9.0, 9.5], "hol": [20.0] * 4, "shufdet": [2.8, 3.5, 3.1, 2.9]},
}


def pilot() -> pd.DataFrame:
    table = long(MODELS, **RATIO)
    return table.assign(censored=table["value"].eq(20))


def test_models_are_compared_seed_by_seed_and_corrected_for_their_number() -> None:
    table = paired_tests(pilot(), "A").set_index(["model", "grammar"])
    rot = table.loc[("sender/B", "rot")]
    expected = stats.ttest_rel(*([math.log(v) for v in MODELS[m]["rot"]] for m in "BA"))
    assert (rot["test"], rot["p"]) == ("t", pytest.approx(expected.pvalue))
    assert rot["effect"] == pytest.approx(
        math.prod(b / a for a, b in zip(MODELS["A"]["rot"], MODELS["B"]["rot"], strict=True)) ** 0.25
    )
    assert rot["low"] < rot["effect"] < rot["high"] < 1
    assert table.loc[("sender/C", "rot"), ["test", "p", "bound", "one_censored"]].tolist() == ["sign", 0.125, ">", 2]
    assert table.loc[("sender/B", "hol"), "p_holm"] != table.loc[("sender/B", "hol"), "p_holm"]  # both cut: NaN
    assert table["p"].notna().sum() == 4
    assert table["p_holm"].min() == pytest.approx(4 * table["p"].min())
    assert "concat" not in table.index.get_level_values("grammar")


@pytest.mark.slow
def test_every_model_against_every_other() -> None:
    table = paired_tests(pilot())
    assert list(dict.fromkeys(table["model"])) == ["sender/A - B", "sender/A - C", "sender/B - C"]
    turned = paired_tests(pilot(), "A").set_index(["model", "grammar"])
    one = table.set_index(["model", "grammar"]).loc[("sender/A - B", "rot")]
    assert one["effect"] == pytest.approx(1 / turned.loc[("sender/B", "rot"), "effect"])


def test_accuracies_are_compared_by_plain_differences() -> None:
    both = long({"A": {"rot": [0.5, 0.6, 0.7]}, "B": {"rot": [0.4, 0.4, 0.6]}})
    (found,) = paired_tests(both).to_dict("records")
    assert found["effect"] == pytest.approx(0.4 / 3)
    assert found["p"] == pytest.approx(stats.ttest_rel([0.5, 0.6, 0.7], [0.4, 0.4, 0.6]).pvalue)


def test_the_table_of_differences_tests_them() -> None:
    table = difference_table(pilot(), "A")
    ((_, lines),) = table.groups()
    assert [line[0] for line in lines] == [
        "sender/B",
        "  quotient",
        "  p (Holm)",
        "sender/C",
        "  quotient",
        "  p (Holm)",
    ]
    assert lines[0][-3] == "-1.75±0.66"
    assert lines[1][-3] == "0.50×/1.07"
    assert lines[4][-3] == "> 4.11"
    assert lines[2][-1] == ""  # hol: cut in both
    assert "p (Holm): paired t-test on log ratios, corrected for 4 tests by Holm's method" in table.notes
    assert "pairs with one cut run: sign test of the directions; pairs with two cut runs: left out" in table.notes
    assert table.notes[0].startswith("differences, seed by seed, from sender/A")
    p = table.to_dataframe()[("rot", "p")]
    assert p.tolist() == pytest.approx(paired_tests(pilot(), "A").query("grammar == 'rot'")["p_holm"].tolist())


def test_results_of_the_same_models_are_tested_too() -> None:
    ours, theirs = long({"A": {"rot": [0.5, 0.7, 0.8]}}), long({"A": {"rot": [0.4, 0.5, 0.7]}}, preset="published")
    table = difference_table(ours, theirs, "wide")
    expected = stats.ttest_rel([0.5, 0.7, 0.8], [0.4, 0.5, 0.7]).pvalue
    assert table.rows[0][1]["rot"].p == pytest.approx(expected)
    assert list(table.below) == ["p (Holm)"]


def test_seeds_needed_are_those_of_the_pilots_effect_and_spread() -> None:
    table = seeds_needed(pilot(), ["A", "B"]).set_index("grammar")
    gaps = pd.Series([math.log(a / b) for a, b in zip(MODELS["A"]["shufdet"], MODELS["B"]["shufdet"], strict=True)])
    shufdet = table.loc["shufdet"]
    assert abs(math.log(shufdet["effect"])) == pytest.approx(abs(gaps.mean()))
    assert shufdet["seeds"] == pairs_needed(gaps.mean(), gaps.std(), 0.8, 0.05)
    assert shufdet["seeds_holm"] == pairs_needed(gaps.mean(), gaps.std(), 0.8, 0.05 / 3)
    assert shufdet["seeds_cautious"] > shufdet["seeds"]
    assert shufdet["remark"] == "only 4 pairs: the spread is a poor estimate"
    assert pd.isna(table.loc["hol", "seeds"])
    assert table.loc["hol", "remark"] == "4 of 4 pairs cut in both: a higher cap is needed"
    asked = seeds_needed(pilot(), ["A", "B"], effect=1.2, power=0.9).set_index("grammar").loc["shufdet"]
    assert asked["seeds"] == pairs_needed(math.log(1.2), gaps.std(), 0.9, 0.05)


def crossed(gaps: list[list[float]], **columns: object) -> pd.DataFrame:
    """Models A and B, whose log ratios on rot differ by gaps [language, seed]."""
    rows = [
        (f"sender/{model}", f"word_seed={7 + language}", seed, math.exp(1 + size * (model == "A")))
        for model in "AB"
        for language, of in enumerate(gaps)
        for seed, size in enumerate(of)
    ]
    table = long({"A": {"rot": [1.0] * (len(rows) // 2)}, "B": {"rot": [1.0] * (len(rows) // 2)}}, **RATIO)
    found = pd.DataFrame(rows, columns=["model", "options", "seed", "value"])
    return table.assign(**{name: found[name].tolist() for name in found}, **columns)


GAPS = [[0.5, 0.8, 0.3], [0.1, 0.2, -0.1], [0.3, 0.7, 0.2]]


def test_languages_crossed_with_weights_are_separated() -> None:
    """In a balanced design, REML estimates above 0 are those of the mean squares."""
    gaps = np.array(GAPS)
    row, column = gaps.mean(1, keepdims=True) - gaps.mean(), gaps.mean(0, keepdims=True) - gaps.mean()
    rest = ((gaps - gaps.mean() - row - column) ** 2).sum() / 4
    language, weights = (3 * row**2).sum() / 2, (3 * column**2).sum() / 2
    language, weights = (language - rest) / 3, (weights - rest) / 3
    assert weights > 0
    for per_language in (1, 4):
        (one,) = seeds_needed(crossed(GAPS), effect=1.2, per_language=per_language).to_dict("records")
        spread = math.sqrt(language + (weights + rest) / per_language)
        assert one["spread"] == pytest.approx(spread, rel=1e-3)
        assert one["seeds"] == pairs_needed(math.log(1.2), spread)
        assert one["language_share"] == pytest.approx(language / (language + weights + rest), rel=1e-3)
        assert (one["pairs"], one["languages"]) == (9, 3)
        assert "options" not in one
        assert one["remark"] == "only 3 languages: the spread is a poor estimate"


def test_other_pilots_do_not_separate_them() -> None:
    (one,) = seeds_needed(crossed(GAPS[:1]), effect=1.2).to_dict("records")
    assert one["remark"].startswith("all 3 pairs share one language: the numbers hold only for it; only 3 pairs")
    assert pd.isna(one["language_share"])
    with pytest.raises(InvalidSettingError, match="need a pilot with languages crossed with seeds"):
        seeds_needed(pilot(), ["A", "B"], effect=1.2, per_language=2)
    (cut,) = seeds_needed(crossed(GAPS, censored=[True, *[False] * 17]), effect=1.2).to_dict("records")
    assert pd.isna(cut["seeds"])
    assert cut["remark"] == "1 of 9 pairs cut in one: too many cut runs"


def test_cut_pairs_need_a_sign_test() -> None:
    rot = seeds_needed(pilot(), ["A", "C"]).set_index("grammar").loc["rot"]
    assert (rot["seeds"], rot["seeds_holm"]) == (6, 7)
    assert rot["remark"] == "2 of 4 pairs cut in one: by a sign test, if all pairs have the same sign"


def test_pilots_that_are_too_small_say_so() -> None:
    (one,) = seeds_needed(long({"A": {"rot": 0.5}, "B": {"rot": 0.4}})).to_dict("records")
    assert pd.isna(one["seeds"])
    assert one["remark"] == "one pair has no spread: run more seeds"
    (same,) = seeds_needed(long({"A": {"rot": [0.5, 0.6]}, "B": {"rot": [0.4, 0.5]}})).to_dict("records")
    assert same["remark"].startswith("no spread in the pilot")


def two_settings(protocol: dict[str, object]) -> pd.DataFrame:
    """Models A and B under two settings, and C under a third."""
    more = {"A": MODELS["A"], "B": {**MODELS["B"], "shufdet": [1.0, 1.2, 1.1, 1.3]}}
    usual = long({m: MODELS[m] for m in "AB"}, **protocol)
    finer = long(more, **protocol, settings="check_every=50")
    return pd.concat([usual, finer, long({"C": MODELS["A"]}, **protocol, preset="published")], ignore_index=True)


@pytest.mark.slow
def test_models_are_paired_under_one_setting_only() -> None:
    both = two_settings(RATIO)
    both = both[both["grammar"] != "hol"].assign(censored=False)
    table = paired_tests(both)
    assert table[["model", "settings", "grammar"]].values.tolist() == [
        ["sender/A - B", settings, grammar] for settings in ("", "check_every=50") for grammar in ("rot", "shufdet")
    ]
    assert table["p_holm"].min() == pytest.approx(4 * table["p"].min())
    assert any("corrected for 4 tests" in note for note in difference_table(both, "each").notes)
    assert set(paired_tests(both, "A")["model"]) == {"sender/B"}
    with pytest.raises(IncompatibleError, match=r"same setting, grammar and seed; they differ in preset"):
        paired_tests(both[both["model"].isin(["sender/A", "sender/C"])], "A")


@pytest.mark.slow
def test_seeds_needed_separate_settings_and_correct_within_each() -> None:
    table = seeds_needed(two_settings(RATIO), ["A", "B"])
    assert table["settings"].tolist() == [""] * 3 + ["check_every=50"] * 3
    alone = seeds_needed(long({m: MODELS[m] for m in "AB"}, **RATIO), ["A", "B"])
    assert "settings" not in alone
    assert table["seeds_holm"].head(2).tolist() == alone["seeds_holm"].head(2).tolist()


@pytest.mark.slow
def test_protocols_are_corrected_each_on_its_own() -> None:
    accuracies = {"A": {"rot": [0.5, 0.6, 0.7, 0.5]}, "B": {"rot": [0.4, 0.4, 0.6, 0.2]}}
    ratios = pilot()
    both = pd.concat([ratios[ratios["model"] != "sender/C"], long(accuracies)], ignore_index=True)
    table = paired_tests(both)
    (budget,) = table[table["protocol"] == "budget"].to_dict("records")
    assert budget["p_holm"] == budget["p"]
    notes = difference_table(both, "A").notes
    assert "p (Holm) of acquire: paired t-test on log ratios, corrected for 2 tests by Holm's method" in notes
    assert "p (Holm) of budget: paired t-test on values, corrected for 1 test by Holm's method" in notes
    shown = difference_table(both, "A").to_dataframe()[("rot", "p")].dropna().tolist()
    assert sorted(shown) == pytest.approx(sorted(table.query("grammar == 'rot'")["p_holm"]))


# -- comparison of two results -----------------------------------------------------------------------------------------


SEEDS = (1, 2, 3)


def ratios(values: dict[str, list[float]], cut: bool = False, **more: object) -> pd.DataFrame:
    """Ratios of one model, three seeds a grammar."""
    rows = [(g, seed, value) for g, found in values.items() for seed, value in zip(SEEDS, found, strict=False)]
    long = pd.DataFrame(rows, columns=["grammar", "seed", "value"])
    return long.assign(
        model="sender/A", measure="ratio", protocol="acquire", censored=cut & (long["value"] >= 20), **more
    )


def test_effects_are_quotients_of_geometric_means_and_their_intervals() -> None:
    found = compare(ratios({"concat": [1, 1, 1], "rot": [1, 2, 4]}), ratios({"concat": [1, 1, 1], "rot": [2, 4, 16]}))
    (cell,) = found.cells.to_dict("records")
    assert (cell["grammar"], cell["pairs"], cell["identical"]) == ("rot", 3, 0)
    assert (cell["first"], cell["second"]) == (pytest.approx(2.0), pytest.approx(2 ** (7 / 3)))
    assert cell["effect"] == pytest.approx(2 ** (4 / 3))
    assert cell["effect"] / cell["low"] == pytest.approx(cell["high"] / cell["effect"])
    assert found.runs[["seed", "first", "second", "difference"]].to_numpy().tolist() == [
        [1, 1, 2, 1], [2, 2, 4, 2], [3, 4, 16, 12],
    ]  # fmt: skip


def test_the_other_way_round_is_the_inverse() -> None:
    one, other = ratios({"rot": [1, 2, 4], "perm": [1, 1.5, 1.2]}), ratios({"rot": [2, 3, 16], "perm": [1.2, 1.1, 2]})
    there, back = compare(one, other).cells, compare(other, one).cells
    assert (there["effect"] * back["effect"]).tolist() == pytest.approx([1, 1])
    assert there["p_holm"].tolist() == pytest.approx(back["p_holm"].tolist())


def test_equal_results_are_equal_to_the_last_digit() -> None:
    one = ratios({"rot": [1.1, 2.2, 3.3], "perm": [1, 1, 1]})
    found = compare(one, one)
    assert found.identical == len(found.runs) == 6
    assert found.lone == (0, 0)
    assert "all equal to the last digit" in found.said()[0]


def test_runs_without_a_counterpart_are_counted_on_their_side() -> None:
    found = compare(ratios({"rot": [1, 2, 3], "perm": [1, 2, 3]}), ratios({"rot": [1, 2], "proj": [5]}))
    assert found.lone == (4, 1)
    assert "4 of first and 1 of second" in " ".join(found.said())


def test_cut_runs_say_a_bound_or_nothing() -> None:
    one, other = (
        ratios({"rot": [20, 20, 20], "hol": [20, 20, 20]}, cut=True),
        ratios({"rot": [2, 4, 2], "hol": [20] * 3}, cut=True),
    )
    cells = compare(one, other).cells.set_index("grammar")
    assert cells.loc["rot", "bound"] == "<"
    assert math.isnan(cells.loc["hol", "effect"])
    heads, rows = compare(one, other).rows()
    line = dict(zip(heads, next(row for row in rows if "rot" in row), strict=True))
    assert line["first"] == "20.000†"
    assert line["second / first"].startswith("< ×")


def test_results_that_differ_in_a_column_match_with_apart() -> None:
    soft, gumb = ratios({"rot": [1, 2, 3]}, representation="soft"), ratios({"rot": [2, 4, 6]}, representation="gumb")
    with pytest.raises(IncompatibleError, match=r"grammar and seed; they differ in representation\. `icy table"):
        compare(soft, gumb)
    found = compare(soft, gumb, ("soft", "gumb"), ["representation"])
    assert found.cells["effect"].tolist() == pytest.approx([2.0])


def test_runs_that_cannot_be_paired_are_errors() -> None:
    rot = ratios({"rot": [1, 2, 3]})
    with pytest.raises(IncompatibleError, match=r"they differ in seed\. Runs are paired by grammar and seed, so"):
        compare(rot, rot.assign(seed=rot["seed"] + 100), apart=["seed"])


def test_accuracies_are_subtracted_and_concat_is_one_of_them() -> None:
    one = ratios({"concat": [0.5, 0.6, 0.7]}).assign(measure="accuracy", protocol="budget")
    (cell,) = compare(one, one.assign(value=one["value"] + [0.1, 0.2, 0.3])).cells.to_dict("records")
    assert cell["effect"] == pytest.approx(0.2)
    assert cell["low"] < 0.2 < cell["high"]


def test_many_seeds_are_counted_by_direction() -> None:
    rows = [("sender/A", "rot", seed, 0.5, "accuracy") for seed in range(8)]
    one = pd.DataFrame(rows, columns=["model", "grammar", "seed", "value", "measure"])
    heads, (row,) = compare(one, one.assign(value=[0.6] * 5 + [0.4] * 2 + [0.5])).rows()
    assert row[heads.index("by seed")] == "5 up, 2 down, 1 equal"


def test_text_and_picture_name_both_results() -> None:
    one = ratios({"rot": [1, 2, 4], "perm": [1.1, 1.2, 1.3]})
    found = compare(one, one.assign(value=one["value"] * [2.0, 2.1, 2.2, 1, 1, 1]), ("before", "after"))
    text = found.markdown()
    assert text.startswith("**after against before**\n\n- 6 pairs of runs")
    assert "| sender/A | rot | 2.000 | 4.197 | ×2.10 | ×1.86 to ×2.36 | ×2.00 ×2.10 ×2.20 |" in text
    figure = differences(found)
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["sender/A, perm", "sender/A, rot"]
    assert "after / before" in ax.get_xlabel()
