"""The atlas: saving and loading, coverage, and the shipped atlas."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import icy
from icy.analysis.atlas.atlas import SETTING, Atlas
from icy.core.errors import StoreError
from tests.analysis.atlas.helpers import ABOUT, ATLAS, long


def test_an_atlas_is_saved_and_loaded_unchanged(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    atlas = Atlas.of(tiny.records, "mine")
    again = Atlas.load(atlas.save(tmp_path / "mine.parquet"))
    assert again.about == atlas.about
    assert again.name == "mine"
    assert_frame_equal(again.table, atlas.table, check_dtype=False)
    assert atlas.about["runs"] == len(tiny.records)
    assert set(Atlas.load(tiny_folder).table["key"]) == set(atlas.table["key"])
    assert atlas.place(tiny).ranks.empty  # nothing but itself
    failed = [{**r, "failed": True} for r in tiny.records]
    with pytest.raises(StoreError, match="needs results of senders"):
        Atlas.of(failed)
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(StoreError, match="icy atlas --pack"):
        Atlas.load(tmp_path / "no.parquet")
    with pytest.raises(StoreError, match="does not exist"):
        Atlas.load(tmp_path / "none.parquet")


def test_coverage_counts_seeds_of_every_model() -> None:
    coverage = (
        Atlas(long({"FC2L": {"concat": 1.0, "rot": 2.0}, "Mine": {"rot": 2.0}}), ABOUT).coverage().set_index("model")
    )
    assert coverage.loc["sender/FC2L", ["concat", "rot"]].tolist() == [2, 2]
    assert coverage.loc["sender/HierZero:GRU", "rot"] == 0
    assert coverage.loc["sender/Mine", "concat"] == 0
    both = Atlas(pd.concat([ATLAS.table, long({"FC": {"shuf": 1.0}}, role="receiver", model="receiver/FC")]), ABOUT)
    shuf = both.coverage().set_index("model")["shuf"]
    assert pd.isna(shuf["sender/FC2L"])  # no sender can be trained on it, so nothing is missing
    assert (shuf["receiver/FC"], shuf["receiver/CNN"]) == (2, 0)
    assert "sender/RNNSampling:GRU" not in coverage.index  # works with DISCR only
    assert not any(name.startswith("receiver/") for name in coverage.index)


def test_the_shipped_atlas_is_sound() -> None:
    atlas = icy.atlas()
    assert not atlas.table["failed"].any()
    assert set(atlas.table["preset"]) == {"default"}
    assert set(atlas.table["settings"]) == {"", "check_every=50"}  # the second of before the grid was geometric
    assert atlas.table["key"].is_unique
    assert atlas.about["runs"] == len(atlas.table)
    concat = atlas.table[(atlas.table["grammar"] == "concat") & (atlas.table["measure"] == "ratio")]
    assert (concat["value"] == 1).all()
    per_row = atlas.table.groupby([*SETTING, "model", "hidden_size", "options", "grammar"], dropna=False)["seed"]
    assert per_row.nunique().eq(per_row.size()).all()
    known = {name for side in ("sender", "receiver") for name in icy.list_models(f"{side}/*")}
    assert set(atlas.table["model"]) <= known
    assert {"sender", "receiver"} == set(atlas.table["role"])
