"""Placing a row in the atlas: ranks and neighbours."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from icy.analysis.atlas.atlas import Atlas
from icy.analysis.atlas.placement import plot_placements
from icy.core.errors import InvalidSettingError
from tests.analysis.atlas.helpers import ABOUT, ATLAS, ZOO, long
from tests.analysis.plots.helpers import all_text


def test_ranks_are_among_the_others() -> None:
    placed = ATLAS.place(long({"New": {"concat": 1.0, "rot": 3.0, "shufdet": 2.0}}))
    assert placed.ranks.to_numpy().tolist() == [
        ["sender/New", "rot", 3.0, 3, 3, 3, 5, 3.0],  # after A and D; the median of 2, 4, 16, 2
        ["sender/New", "shufdet", 2.0, 1, 1, 3, 4, 2.0],  # equals share the better rank; D has none
    ]
    same = ATLAS.place(long({"A": {"concat": 1.0, "rot": 3.0}})).ranks
    assert same[["rank", "of"]].to_numpy().tolist() == [[2, 4]]  # D is better; it is not ranked against itself


def spread(values: dict[str, tuple[float, float]], **changes: Any) -> pd.DataFrame:
    """Two runs of each model on rot."""
    rows = long({name: {"rot": 1.0} for name in values}, **changes)
    return rows.assign(value=[one for pair in values.values() for one in pair])


ZOO_OF_TWO = {"A": (1.0, 1.1), "B": (2.0, 2.2), "C": (2.1, 2.3), "D": (9.0, 9.9)}


def test_ranks_have_the_interval_that_the_seeds_allow() -> None:
    (row,) = Atlas(spread(ZOO_OF_TWO), ABOUT).place(spread({"New": (2.05, 2.25)})).ranks.to_dict("records")
    assert [row[name] for name in ("rank", "low", "high", "of")] == [3, 2, 4, 5]  # B and C may be better or worse
    accuracies = {name: (1 - one / 10, 1 - other / 10) for name, (one, other) in ZOO_OF_TWO.items()}
    atlas = Atlas(spread(accuracies, protocol="budget", measure="accuracy"), ABOUT)
    new = spread({"New": (1 - 0.205, 1 - 0.225)}, protocol="budget", measure="accuracy")
    (row,) = atlas.place(new).ranks.to_dict("records")
    assert [row[name] for name in ("rank", "low", "high")] == [3, 2, 4]
    text = repr(atlas.place(new))
    assert " 2-4 " in text
    assert "95 %: ranks that the seeds allow" in text
    (row,) = Atlas(spread(ZOO_OF_TWO).query("seed == 123"), ABOUT).place(new_of_one()).ranks.to_dict("records")
    assert row["rank"] == 3
    assert pd.isna(row["low"])
    assert pd.isna(row["high"])


def new_of_one() -> pd.DataFrame:
    return spread({"New": (2.05, 2.25)}).query("seed == 123")


def test_a_model_that_was_cut_has_no_rank_and_no_best_rank() -> None:
    mine = spread({"New": (2.05, 20.0)})
    mine["censored"] = mine["value"].eq(20)
    placed = Atlas(spread(ZOO_OF_TWO), ABOUT).place(mine)
    (row,) = placed.ranks.to_dict("records")
    assert pd.isna(row["rank"])
    assert (row["low"], row["high"]) == (4, 5)  # D may be better or worse: its true ratio is larger than the mean
    assert " - 4-5 " in " ".join(repr(placed).split())
    assert "-: no rank, because a run of the model was cut" in repr(placed)
    zoo = spread({**ZOO_OF_TWO, "E": (0.5, 0.55)})
    other = Atlas(zoo.assign(censored=zoo["model"].eq("sender/E")), ABOUT).place(spread({"New": (2.05, 2.25)}))
    (row,) = other.ranks.to_dict("records")
    assert (row["low"], row["high"]) == (2, 5)  # E may be worse, although its cut ratio is smaller


def test_senders_and_receivers_are_drawn_one_below_the_other() -> None:
    rows = pd.concat([spread(ZOO_OF_TWO), spread(ZOO_OF_TWO, role="receiver", model="receiver/A")], ignore_index=True)
    mine = pd.concat([spread({"New": (2.0, 2.2)}), spread({"New": (2.0, 2.2)}, role="receiver", model="receiver/N")])
    placements = Atlas(rows, ABOUT).places(mine)
    figure = plot_placements(placements)
    assert [ax.get_title(loc="left").partition(" of ")[0] for ax in figure.axes] == [
        "Among 4 senders",
        "Among 1 receivers",
    ]
    assert "error bars: geometric standard deviation over seeds" in all_text(figure)
    assert len(plot_placements(placements[:1]).axes) == 1


def test_accuracies_rank_the_other_way() -> None:
    atlas = Atlas(long(ZOO, protocol="budget", measure="accuracy"), ABOUT)
    placed = atlas.place(long({"New": {"rot": 3.0}}, protocol="budget", measure="accuracy"))
    assert placed.ranks["rank"].tolist() == [3]


def test_neighbours_are_by_the_logarithm_of_the_ratio() -> None:
    near = ATLAS.place(long({"New": {"concat": 1.0, "rot": 4.0, "shufdet": 4.0}})).neighbors
    assert near["neighbour"].tolist() == ["sender/B", "sender/A", "sender/C"]  # D has one grammar in common only
    assert near["distance"].tolist() == pytest.approx([math.sqrt(1 / 2), 1.0, math.sqrt((4 + 1) / 2)])
    assert near["grammars"].tolist() == [2, 2, 2]


def test_complete_rows_are_the_first_neighbours() -> None:
    zoo = {"Far": {"rot": 8.0, "shufdet": 8.0, "proj": 8.0}, "Thin": {"rot": 4.0, "shufdet": 4.0}}
    near = Atlas(long(zoo), ABOUT).place(long({"New": {"rot": 4.0, "shufdet": 4.0, "proj": 4.0}})).neighbors
    assert near[["neighbour", "grammars"]].to_numpy().tolist() == [["sender/Far", 3], ["sender/Thin", 2]]


def test_a_ratio_of_nothing_has_a_place() -> None:
    """Under the preset `published`, a grammar that is learned by the first evaluation takes 0 steps."""
    zoo = Atlas(long({"Same": {"rot": 0.0, "perm": 1.0}, "Other": {"rot": 1.0, "perm": 1.0}}), ABOUT)
    near = zoo.place(long({"New": {"rot": 0.0, "perm": 1.0}})).neighbors
    assert near["neighbour"].tolist() == ["sender/Same", "sender/Other"]
    assert near["distance"].tolist() == pytest.approx([0, math.log2(100) / math.sqrt(2)])


def test_only_rows_with_the_same_setting_are_compared() -> None:
    other = pd.concat([long(ZOO), long({"E": {"rot": 1.0}}, meanings="5x10")], ignore_index=True)
    placed = Atlas(other, ABOUT).place(long({"New": {"rot": 3.0}}))
    assert placed.ranks["of"].tolist() == [5]
    with pytest.raises(InvalidSettingError, match=r"no senders under acquire to 0.8, gumb, meanings 3x4"):
        ATLAS.place(long({"New": {"rot": 3.0}}, representation="gumb"))
    both = pd.concat([long({"New": {"rot": 3.0}}), long({"New": {"rot": 3.0}}, target=0.9)])
    with pytest.raises(InvalidSettingError, match="several settings"):
        ATLAS.place(both)
    with pytest.raises(InvalidSettingError, match="nothing to place"):
        ATLAS.place(long({"New": {"rot": math.nan}}, failed=True))


def test_rows_of_several_sizes_say_so() -> None:
    mine = pd.concat([long({"New": {"rot": 3.0}}), long({"New": {"rot": 2.0}}, hidden_size=64)], ignore_index=True)
    assert list(ATLAS.place(mine).mine.index) == ["sender/New (E=32)", "sender/New (E=64)"]


def test_a_row_of_another_size_is_another_row() -> None:
    twins = pd.concat([long({"A": {"rot": 2.0}}, hidden_size=32), long({"A": {"rot": 2.0}}, hidden_size=64)])
    placed = ATLAS.place(twins)
    assert list(placed.mine.index) == ["sender/A (E=32)", "sender/A (E=64)"]
    of = placed.ranks.set_index("model")["of"]
    assert of.to_dict() == {"sender/A (E=32)": 4, "sender/A (E=64)": 5}  # the first is in the atlas itself
    assert "sender/A (E=32)" not in placed.neighbors.query("model == 'sender/A (E=32)'")["neighbour"].tolist()


def test_nothing_in_common_has_no_neighbours() -> None:
    placed = ATLAS.place(long({"New": {"concat": 1.0}}))
    assert placed.neighbors.empty
    assert placed.ranks.empty


def test_it_shows_itself() -> None:
    placed = ATLAS.place(long({"New": {"concat": 1.0, "rot": 4.0, "shufdet": 4.0}}))
    text = repr(placed)
    assert text.startswith("sender/New among 4 of the atlas: acquire to 0.8, soft, meanings 3x4, V=4, w=2")
    assert "not every model has every grammar: shufdet (3 of 4)" in text
    assert "<td>sender/B</td>" in placed._repr_html_()


def ends(figure: Figure) -> dict[int, tuple[float, float]]:
    """Where the error bars end, by column."""
    (container,) = figure.axes[0].containers
    segments = container.lines[2][0].get_segments()  # type: ignore[attr-defined]
    return {round(low[0]): (low[1], high[1]) for low, high in segments}


def test_new_rows_have_error_bars() -> None:
    mine = long({"New": {"concat": 1.0, "rot": 4.0, "shufdet": 16.0}})
    mine.loc[mine["seed"].eq(123), "value"] = [1.0, 2.0, 20.0]
    placed = ATLAS.place(mine)
    figure = placed.plot()
    factors = [math.exp(math.log(ratio) / math.sqrt(2)) for ratio in (4 / 2, 20 / 16)]
    assert ends(figure)[0] == pytest.approx((math.sqrt(8) / factors[0], math.sqrt(8) * factors[0]))
    assert ends(figure)[1] == pytest.approx((math.sqrt(320) / factors[1], 20))  # no further than the cap
    assert "error bars: geometric standard deviation over seeds" in all_text(figure)
    single = ATLAS.place(mine[mine["seed"].eq(123)]).plot()
    assert ends(single)[0] == (2.0, 2.0)
    assert "error bars" not in all_text(single)


@pytest.mark.parametrize(("grammar", "said"), [("hol", False), ("rot", True)])
def test_cuts_are_noted_only_where_a_compared_ratio_was_cut(grammar: str, said: bool) -> None:
    table = long({"A": {"concat": 1.0, "rot": 2.0, "hol": 20.0}, "B": {"concat": 1.0, "rot": 20.0, "hol": 20.0}})
    others = Atlas(table.assign(censored=table["grammar"].eq(grammar)), ABOUT)
    placement = others.place(long({"mine": {"concat": 1.0, "rot": 3.0}}))
    assert any("ratios were cut" in note for note in placement.notes()) is said
