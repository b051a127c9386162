"""Text models next to networks and people."""

from __future__ import annotations

import numpy as np
import pytest

import icy
from icy.analysis.plots import side_by_side
from icy.core.errors import InvalidSettingError
from icy.records.load import select
from tests.analysis.plots.helpers import acquire

RECORDS = "results/context/records.parquet"
ONE = {"role": "sender", "word_length": 2}


def test_dots_are_the_networks_models_and_people_of_the_tables() -> None:
    figure = side_by_side(select(RECORDS, where=ONE), width=9)
    networks, models, people = figure.axes
    assert [label.get_text() for label in networks.get_xticklabels()] == ["perm", "proj", "rot", "shufdet", "hol"]
    assert [label.get_text() for label in people.get_xticklabels()] == ["concat", "perm", "proj", "rot", "shufdet"]
    long = icy.atlas().to_dataframe()
    same = long["role"].eq("sender") & long["meanings"].eq("3x4") & long["representation"].eq("soft")
    perm = long[same & long["measure"].eq("ratio") & long["grammar"].eq("perm") & ~long["failed"]]
    means = np.exp(perm.assign(log=np.log(perm["value"].astype(float))).groupby("model")["log"].mean())
    dots = networks.collections[0].get_offsets()[:, 1]
    np.testing.assert_allclose(np.sort(dots), np.sort(means))
    assert models.get_ylim() == networks.get_ylim()


def test_what_cannot_be_put_side_by_side() -> None:
    with pytest.raises(InvalidSettingError, match="`icy context` measures them"):
        side_by_side(acquire())
    with pytest.raises(InvalidSettingError, match=r"these results differ in role and word_length: choose one"):
        side_by_side(select(RECORDS))
