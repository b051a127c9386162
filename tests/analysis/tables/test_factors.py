"""Which settings matter."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icy.analysis import factors
from icy.analysis.tables.factors import CUT, INTERACTIONS, SEEDS
from icy.core.errors import IncompatibleError
from tests.helpers import long

LOG2, NOISE = math.log(2), math.log(1.1)


def runs(cells: dict[tuple[str, str], list[float]], **changes: Any) -> pd.DataFrame:
    """Ratios of sender/A on grammars (the second name) with a cell (the first)."""
    about = {"protocol": "acquire", "measure": "ratio", "cap": 20.0, **changes}
    return pd.concat([long({f"A:{cell}": {grammar: values}}, **about) for (cell, grammar), values in cells.items()])


def table(results: pd.DataFrame) -> pd.DataFrame:
    return factors(results).set_index("factor")


BALANCED = runs({
    (cell, grammar): [2.0 * one * other / 1.1, 2.0 * one * other * 1.1]
    for (cell, one), (grammar, other) in product({"GRU": 1, "LSTM": 2}.items(), {"perm": 1, "rot": 4}.items())
})  # fmt: skip


def test_a_balanced_design_has_the_classical_shares_and_tests() -> None:
    squares = {"grammar": 8 * LOG2**2, "cell": 8 * (LOG2 / 2) ** 2, "seeds": 8 * NOISE**2}
    found = table(BALANCED)
    assert list(found.index) == ["grammar", "cell", INTERACTIONS, SEEDS]
    for name, one in squares.items():
        assert found.at[name, "share"] == pytest.approx(one / sum(squares.values()))
    assert found.at[INTERACTIONS, "share"] == 0
    assert found["share"].sum() == pytest.approx(1)
    raw = [stats.f.sf(squares[name] / (squares["seeds"] / 4), 1, 4) for name in ("grammar", "cell")]
    assert found["p"].tolist()[:3] == pytest.approx([*raw, 1.0])
    assert found["p_holm"].tolist()[:3] == pytest.approx([3 * raw[0], 2 * raw[1], 1.0])
    assert found.loc["cell", ["levels", "freedom", "larger", "smaller"]].tolist() == [2, 1, "LSTM", "GRU"]
    width = stats.t.ppf(0.975, 4) * math.sqrt(squares["seeds"] / 4 * 2 / 4)
    expected = [4.0, *(4 * math.exp(side * width) for side in (-1, 1))]
    assert found.loc["grammar", ["effect", "low", "high"]].tolist() == pytest.approx(expected)


def test_one_factor_is_the_usual_analysis_of_variance() -> None:
    cells = {"GRU": [0.50, 0.52, 0.57], "LSTM": [0.61, 0.63], "SRU": [0.70, 0.78, 0.73, 0.71]}
    found = table(runs({(cell, "rot"): values for cell, values in cells.items()}, measure="accuracy"))
    assert found.at["cell", "p"] == pytest.approx(stats.f_oneway(*cells.values()).pvalue)
    assert found.at["cell", "effect"] == pytest.approx(np.mean(cells["SRU"]) - np.mean(cells["GRU"]))
    pooled = math.sqrt(sum(np.var(values) * len(values) for values in cells.values()) / 6 * (1 / 3 + 1 / 4))
    width = stats.t.ppf(1 - 0.025 / 3, 6) * pooled  # three pairs of levels
    assert found.at["cell", "high"] - found.at["cell", "effect"] == pytest.approx(width)


def test_missing_combinations_do_not_shift_effects_that_add_up() -> None:
    rows = BALANCED.query("not (model == 'sender/A:LSTM' and grammar == 'rot')")
    found = table(rows)
    assert found.loc[["cell", "grammar"], "effect"].tolist() == pytest.approx([2.0, 4.0])
    assert found["share"].sum() != pytest.approx(1)
    more = table(pd.concat([BALANCED, rows.assign(hidden_size=64, parameters=50)]))
    assert more.loc[["cell", "grammar", "hidden_size"], "effect"].tolist() == pytest.approx([2.0, 4.0, 1.0])


def test_interactions_are_effects_that_do_not_add_up() -> None:
    crossed = {("GRU", "perm"): 1, ("GRU", "rot"): 4, ("LSTM", "perm"): 4, ("LSTM", "rot"): 1}
    found = table(runs({key: [2 * value, 2.2 * value] for key, value in crossed.items()}))
    assert found.loc[["cell", "grammar"], "share"].tolist() == [0, 0]
    assert found.at[INTERACTIONS, "share"] == pytest.approx(1 - found.at[SEEDS, "share"])
    assert found.at[INTERACTIONS, "p_holm"] < 0.01
    sizes = pd.concat(
        [runs({key: [2 * v, 2.2 * v] for key, v in crossed.items()}).assign(hidden_size=h) for h in (8, 9)]
    )
    assert set(table(sizes).loc[INTERACTIONS, ["larger", "smaller"]]) == {"cell", "grammar"}


def test_with_one_seed_interactions_are_the_error() -> None:
    found = table(BALANCED.query("seed == 123"))
    assert SEEDS not in found.index
    assert found.at["cell", "p"] == 0  # the effects of these factors add up exactly
    assert math.isnan(found.at[INTERACTIONS, "p"])
    lone = table(BALANCED.query("seed == 123 and grammar == 'rot'"))
    assert lone.loc["cell", ["share", "effect"]].tolist() == pytest.approx([1, 2])
    assert lone.loc["cell", ["p", "low"]].isna().all()


def test_settings_options_and_columns_are_factors_and_twins_are_one() -> None:
    changes = [{}, {"settings": "learning_rate=0.01"}, {"options": "layers=2", "hidden_size": 64, "vocab_size": 8}]
    rows = pd.concat([BALANCED.query("grammar == 'rot'").assign(**one) for one in changes])
    found = table(rows)
    assert {"cell", "learning_rate", "vocab_size, hidden_size, layers"} <= set(found.index)
    assert found.at["vocab_size, hidden_size, layers", "levels"] == 2
    assert set(found.loc["learning_rate", ["larger", "smaller"]]) == {"0.001", "0.01"}  # of the preset, and changed


def test_models_without_cells_are_one_factor_and_sides_are_apart() -> None:
    rows = long({"FC1L": {"rot": [0.5, 0.6]}, "B:GRU": {"rot": [0.7, 0.8]}})
    both = pd.concat([rows, rows.assign(role="receiver", model=rows["model"].str.replace("sender", "receiver"))])
    found = factors(both)
    assert found["role"].tolist() == ["receiver"] * 2 + ["sender"] * 2
    assert found["factor"].tolist() == ["model", "seeds"] * 2


def test_a_factor_that_cannot_be_separated_has_no_effect() -> None:
    rows = pd.concat([BALANCED, runs({("GRU", "rot"): [1.0, 1.2]}, hidden_size=64, word_length=2)])
    rows = pd.concat([rows, runs({("SRU", "rot"): [3.0, 3.2]}, hidden_size=32, word_length=2)])
    found = table(rows)  # hidden size determines the word length
    assert found.loc["word_length", ["freedom", "share"]].tolist() == [0, 0]
    assert math.isnan(found.at["word_length", "p"])
    assert found.loc["cell", ["larger", "smaller"]].tolist() == ["LSTM", "GRU"]  # SRU was only run at size 32


def test_repeated_runs_count_once(caplog: pytest.LogCaptureFixture) -> None:
    alike = runs({("none", "rot"): [5.0, 5.5]}).assign(parameters=7)
    rows = pd.concat([BALANCED, BALANCED.assign(hidden_size=64, value=BALANCED["value"] * 3, parameters=9)])
    found = table(pd.concat([rows, alike, alike.assign(hidden_size=64)]))
    assert "2 runs of sender/A:none left out" in caplog.text
    assert found.at["hidden_size", "effect"] == pytest.approx(3)  # not pulled to 1 by the repeats
    assert found.at[SEEDS, "freedom"] == 9


def cut(results: pd.DataFrame, cap: float) -> pd.DataFrame:
    """The same runs with a cap of the ratio."""
    return results.assign(censored=results["value"].gt(cap), value=results["value"].clip(upper=cap))


def test_a_bound_counts_if_the_other_combinations_do_not_exceed_it() -> None:
    below = cut(BALANCED, 10)  # LSTM on rot: a ratio of 16 follows from the others
    found = table(below)
    effects = ["larger", "smaller", "effect"]
    assert found.at["cell", "effect"] == pytest.approx(2)
    assert found.at["grammar", "effect"] == pytest.approx(4)
    assert found.loc[CUT, ["levels", "larger"]].tolist() == [1, "LSTM rot"]
    without = table(below.query("not censored"))
    names = ["cell", "grammar"]
    pd.testing.assert_frame_equal(found.loc[names, effects], without.loc[names, effects])
    assert np.isfinite(found.loc[names, "high"].astype(float)).all()
    squares = pd.concat([BALANCED.query("grammar == 'perm'"), BALANCED.query("grammar == 'rot'").assign(value=9.0)])
    held = squares["grammar"].eq("rot") & squares["model"].eq("sender/A:LSTM")
    more = table(squares.assign(censored=held))  # the others predict 18, more than the bound of 9
    assert more.at["cell", "effect"] == pytest.approx(2)
    lower = squares.assign(value=squares["value"].mask(held, 30), censored=held)
    assert table(lower).at["cell", "effect"] > 2  # the bound of 30 exceeds the prediction
    assert table(lower).at["cell", "high"] == math.inf


def test_a_level_that_is_cut_everywhere_has_a_lower_bound() -> None:
    rows = runs({("GRU", "hol"): [20.0, 20.0], ("LSTM", "hol"): [9.0, 8.0]})
    rows["censored"] = rows["value"].eq(20)
    found = table(rows)
    assert found.loc["cell", ["larger", "smaller"]].tolist() == ["GRU", "LSTM"]
    assert found.loc["cell", ["effect", "high"]].tolist() == pytest.approx([20 / math.sqrt(72), math.inf])
    assert found.at[SEEDS, "freedom"] == 1
    some = runs({("GRU", "rot"): [2.0, 2.2, 2.4, 20.0], ("LSTM", "rot"): [2.0, 2.2, 2.4, 2.6]})
    some["censored"] = some["value"].eq(20)
    assert table(some).loc["cell", ["larger", "smaller"]].tolist() == ["GRU", "LSTM"]
    with pytest.raises(IncompatibleError, match=r"Runs of 2 of 2 combinations .* train with --protocol budget"):
        factors(rows.assign(censored=True))


def test_a_contrast_is_a_bound_in_the_direction_in_which_cut_means_move_it() -> None:
    """Also if the smaller level has a cut mean, which the effect of its model absorbs."""

    def size(cap: float) -> pd.Series[Any]:
        parts = []
        for model, hidden, hol in (("A", 32, cap), ("B", 32, 9.0), ("B", 64, cap)):
            more = 0.1 * (hidden == 64)
            ratios = {
                "perm": [1.1 + more, 1.3 + more],
                "rot": [1.8 + more, 2.2 + more],
                "hol": [hol, hol * (1 if hol == cap else 1.2)],
            }
            parts.append(long({model: ratios}, protocol="acquire", measure="ratio", hidden_size=hidden))
        rows = pd.concat(parts)
        return table(rows.assign(censored=rows["value"].eq(cap))).loc["hidden_size"]

    one, other = size(20.0), size(60.0)
    assert (one["larger"], one["smaller"]) == (other["larger"], other["smaller"]) == ("64", "32")
    assert one["effect"] < other["effect"]
    assert one["high"] == other["high"] == math.inf
    assert 0 < one["low"] < one["effect"]


def test_a_smaller_level_that_is_cut_has_an_upper_bound() -> None:
    rows = runs({
        ("GRU", "perm"): [1.0, 1.1], ("GRU", "rot"): [1.0, 1.1], ("GRU", "hol"): [20.0, 20.0],
        ("LSTM", "perm"): [3.0, 3.3], ("LSTM", "rot"): [3.0, 3.3], ("LSTM", "hol"): [18.0, 19.0],
    })  # fmt: skip
    found = table(rows.assign(censored=rows["value"].eq(20))).loc["cell"]
    assert (found["larger"], found["smaller"]) == ("LSTM", "GRU")
    assert (found["low"], found["high"] < math.inf) == (0, True)


def test_failed_runs_and_the_baseline_are_left_out() -> None:
    extra = runs({("GRU", "concat"): [1.0, 1.0], ("LSTM", "concat"): [1.0, 1.0]})
    failed = runs({("GRU", "hol"): [math.nan, math.nan]}, failed=True)
    assert factors(pd.concat([BALANCED, extra, failed])).equals(factors(BALANCED))
