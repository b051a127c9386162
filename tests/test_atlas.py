"""The atlas: what it holds, how it is kept, and where a row stands in it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from pandas.testing import assert_frame_equal

import icy
from icy.analysis.atlas.atlas import SETTING, Atlas
from icy.cli import main
from icy.core.errors import InvalidSettingError, StoreError
from icy.records.long_table import LONG, to_long

SOFT = {
    "side": "sender", "representation": "soft", "protocol": "acquire", "meanings": "3x4", "vocab_size": 4,
    "word_length": 2, "target": 0.8, "cap": 20.0, "preset": "default", "settings": "", "options": "", "hidden_size": 32,
    "measure": "ratio", "failed": False, "cut": False,
}  # fmt: skip
ABOUT = {
    "runs": 0,
    "made": ["2026-01-01", "2026-01-02"],
    "versions": ["icy 1"],
    "devices": ["cpu"],
    "git": [],
    "hours": 1,
}


def long(values: dict[str, dict[str, float]], **changes: Any) -> pd.DataFrame:
    rows = [
        {**SOFT, "model": f"sender/{model}", "grammar": grammar, "seed": seed, "value": value, **changes}
        for model, grammars in values.items()
        for grammar, value in grammars.items()
        for seed in (123, 124)
    ]
    return pd.DataFrame(rows).reindex(columns=list(LONG))


ZOO = {
    "A": {"concat": 1.0, "rot": 2.0, "shufdet": 2.0},
    "B": {"concat": 1.0, "rot": 4.0, "shufdet": 2.0},
    "C": {"concat": 1.0, "rot": 16.0, "shufdet": 8.0},
    "D": {"concat": 1.0, "rot": 2.0},
}
ATLAS = Atlas(long(ZOO), ABOUT)


def test_ranks_are_among_the_others() -> None:
    placed = ATLAS.place(long({"New": {"concat": 1.0, "rot": 3.0, "shufdet": 2.0}}))
    assert placed.ranks.to_numpy().tolist() == [
        ["sender/New", "rot", 3.0, 3, 5, 3.0],  # after A and D; the median of 2, 4, 16, 2
        ["sender/New", "shufdet", 2.0, 1, 4, 2.0],  # equals share the better rank; D has none
    ]
    same = ATLAS.place(long({"A": {"concat": 1.0, "rot": 3.0}})).ranks
    assert same[["rank", "of"]].to_numpy().tolist() == [[2, 4]]  # D is better; it is not ranked against itself


def test_accuracies_rank_the_other_way() -> None:
    atlas = Atlas(long(ZOO, protocol="budget", measure="accuracy"), ABOUT)
    placed = atlas.place(long({"New": {"rot": 3.0}}, protocol="budget", measure="accuracy"))
    assert placed.ranks["rank"].tolist() == [3]


def test_neighbours_are_by_the_logarithm_of_the_ratio() -> None:
    near = ATLAS.place(long({"New": {"concat": 1.0, "rot": 4.0, "shufdet": 4.0}})).neighbours
    assert near["neighbour"].tolist() == ["sender/B", "sender/A", "sender/C"]  # D has one grammar in common only
    assert near["distance"].tolist() == pytest.approx([math.sqrt(1 / 2), 1.0, math.sqrt((4 + 1) / 2)])
    assert near["grammars"].tolist() == [2, 2, 2]


def test_complete_rows_are_the_first_neighbours() -> None:
    zoo = {"Far": {"rot": 8.0, "shufdet": 8.0, "proj": 8.0}, "Thin": {"rot": 4.0, "shufdet": 4.0}}
    near = Atlas(long(zoo), ABOUT).place(long({"New": {"rot": 4.0, "shufdet": 4.0, "proj": 4.0}})).neighbours
    assert near[["neighbour", "grammars"]].to_numpy().tolist() == [["sender/Far", 3], ["sender/Thin", 2]]


def test_a_ratio_of_nothing_has_a_place() -> None:
    """Under the preset `published` what is learnt at the first check takes 0 steps."""
    zoo = Atlas(long({"Same": {"rot": 0.0, "perm": 1.0}, "Other": {"rot": 1.0, "perm": 1.0}}), ABOUT)
    near = zoo.place(long({"New": {"rot": 0.0, "perm": 1.0}})).neighbours
    assert near["neighbour"].tolist() == ["sender/Same", "sender/Other"]
    assert near["distance"].tolist() == pytest.approx([0, math.log2(100) / math.sqrt(2)])


def test_only_what_was_measured_alike_is_compared() -> None:
    other = pd.concat([long(ZOO), long({"E": {"rot": 1.0}}, meanings="5x10")], ignore_index=True)
    placed = Atlas(other, ABOUT).place(long({"New": {"rot": 3.0}}))
    assert placed.ranks["of"].tolist() == [5]
    with pytest.raises(InvalidSettingError, match=r"no senders under acquire to 0.8, gumb, meanings 3x4"):
        ATLAS.place(long({"New": {"rot": 3.0}}, representation="gumb"))
    both = pd.concat([long({"New": {"rot": 3.0}}), long({"New": {"rot": 3.0}}, target=0.9)])
    with pytest.raises(InvalidSettingError, match="several settings"):
        ATLAS.place(both)
    with pytest.raises(InvalidSettingError, match="nothing to be placed"):
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
    assert "sender/A (E=32)" not in placed.neighbours.query("model == 'sender/A (E=32)'")["neighbour"].tolist()


def test_nothing_in_common_has_no_neighbours() -> None:
    placed = ATLAS.place(long({"New": {"concat": 1.0}}))
    assert placed.neighbours.empty
    assert placed.ranks.empty


def test_it_shows_itself() -> None:
    placed = ATLAS.place(long({"New": {"concat": 1.0, "rot": 4.0, "shufdet": 4.0}}))
    text = repr(placed)
    assert text.startswith("sender/New among 4 of the atlas: acquire to 0.8, soft, meanings 3x4, V=4, w=2")
    assert "not every model has every grammar: shufdet (3 of 4)" in text
    assert "<td>sender/B</td>" in placed._repr_html_()


def test_it_is_kept_whole(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    atlas = Atlas.of(tiny.records, "mine")
    again = Atlas.load(atlas.save(tmp_path / "mine.parquet"))
    assert again.about == atlas.about
    assert again.name == "mine"
    assert_frame_equal(again.table, atlas.table, check_dtype=False)
    assert atlas.about["runs"] == len(tiny.records)
    assert set(Atlas.load(tiny_folder).table["key"]) == set(atlas.table["key"])
    assert atlas.place(tiny).ranks.empty  # nothing but itself
    failed = [{**r, "failed": True} for r in tiny.records]
    with pytest.raises(StoreError, match="no result"):
        Atlas.of(failed)
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(StoreError, match="icy atlas --pack"):
        Atlas.load(tmp_path / "no.parquet")
    with pytest.raises(StoreError, match="There is no atlas"):
        Atlas.load(tmp_path / "none.parquet")


def test_coverage_says_what_is_missing() -> None:
    coverage = (
        Atlas(long({"FC2L": {"concat": 1.0, "rot": 2.0}, "Mine": {"rot": 2.0}}), ABOUT).coverage().set_index("model")
    )
    assert coverage.loc["sender/FC2L", ["concat", "rot"]].tolist() == [2, 2]
    assert coverage.loc["sender/HierZero:GRU", "rot"] == 0
    assert coverage.loc["sender/Mine", "concat"] == 0
    both = Atlas(pd.concat([ATLAS.table, long({"FC": {"shuf": 1.0}}, side="receiver", model="receiver/FC")]), ABOUT)
    shuf = both.coverage().set_index("model")["shuf"]
    assert pd.isna(shuf["sender/FC2L"])  # no sender can be trained on it, so nothing is missing
    assert (shuf["receiver/FC"], shuf["receiver/CNN"]) == (2, 0)
    assert "sender/RNNSampling:GRU" not in coverage.index  # works with DISCR only
    assert not any(name.startswith("receiver/") for name in coverage.index)


def test_the_shipped_atlas_is_sound() -> None:
    atlas = icy.atlas()
    assert not atlas.table["failed"].any()
    assert set(atlas.table["preset"]) == {"default"}
    assert set(atlas.table["settings"]) == {""}
    assert atlas.table["key"].is_unique
    assert atlas.about["runs"] == len(atlas.table)
    concat = atlas.table[(atlas.table["grammar"] == "concat") & (atlas.table["measure"] == "ratio")]
    assert (concat["value"] == 1).all()
    per_row = atlas.table.groupby([*SETTING, "model", "hidden_size", "options", "grammar"], dropna=False)["seed"]
    assert per_row.nunique().eq(per_row.size()).all()
    known = {name for side in ("sender", "receiver") for name in icy.list_models(f"{side}/*")}
    assert set(atlas.table["model"]) <= known
    assert {"sender", "receiver"} == set(atlas.table["side"])


def test_a_new_model_is_placed_from_the_command_line(tmp_path: Path) -> None:
    words = ["probe", "-m", "sender/FC1L", "-g", "perm", "--quick", "--compare", "atlas", "--workers", "1"]
    done = CliRunner().invoke(main, [*words, "-o", str(tmp_path / "r")])
    assert done.exit_code == 0, done.output
    assert "sender/FC1L among" in done.stdout
    assert "Nearest in bias space" in done.stdout
    result = icy.ProbeResult.load(tmp_path / "r")
    theirs = icy.atlas().table
    both = to_long(result.records).merge(theirs, on="key", suffixes=("", "_atlas"))
    assert len(both) == 4  # filed under the same keys as in the atlas
    assert ((both["steps"] - both["steps_atlas"]).abs() <= 100).all()  # two checks, for another processor's last bits


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--compare", "atlas", "--meanings", "7x3"], "it has acquire to 0.8"),
        (["--plot", "x.png"], "give --compare atlas"),
        (["--compare", "atlas", "--quick", "--format", "json"], "prints for readers"),
        (["--compare", "atlas", "--quick", "-m", "receiver/FC2L", "--plot", "x.png"], "a plot of each"),
        (["--compare", "nowhere.parquet"], "There is no atlas"),
        (["--compare", "icy22/table333"], "No published table"),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(words: list[str], sentence: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["probe", "-m", "sender/FC2L", "-g", "rot", "-o", str(tmp_path / "r"), *words])
    assert done.exit_code in (1, 2)
    assert sentence in done.stderr
    assert not (tmp_path / "r").exists()


def test_command(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["atlas"])
    assert shown.exit_code == 0
    assert "acquire" in shown.stdout
    file = tmp_path / "mine.parquet"
    packed = CliRunner().invoke(main, ["atlas", "--pack", str(tiny_folder), "--save", str(file)])
    assert packed.exit_code == 0, packed.output
    models = CliRunner().invoke(main, ["atlas", str(file), "--models", "--format", "csv"])
    assert "sender/FC2L" in models.stdout
    assert CliRunner().invoke(main, ["atlas", "--pack", str(tiny_folder)]).exit_code == 2
    assert CliRunner().invoke(main, ["table", "atlas", "-m", "sender/FC2L"]).exit_code == 0
