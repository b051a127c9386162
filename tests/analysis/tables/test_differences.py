"""Comparison of two results."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from icy.analysis import compare
from icy.analysis.plots.error_bars import differences
from icy.core.errors import IncompatibleError

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
