"""`icy.train`: any registered kind of job."""

from __future__ import annotations

from pathlib import Path

import pytest

import icy
from icy.core.errors import UnknownNameError


def test_a_probe_by_its_kind_is_the_probe(tmp_path: Path) -> None:
    given = {"model": "sender/FC1L", "grammar": "perm", "quick": True, "seeds": 1, "workers": 1, "progress": False}
    one = icy.train("probe", out=tmp_path, **given)
    other = icy.probe(out=tmp_path, rerun="never", **given)  # type: ignore[arg-type]
    assert [r["key"] for r in one.records] == [r["key"] for r in other.records]


def test_unknown_kinds_and_options_raise(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean probe"):
        icy.train("prob")
    with pytest.raises(UnknownNameError, match="did you mean learner"):
        icy.train("s2b", lerner="ppo", out=tmp_path)
