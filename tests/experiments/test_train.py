"""`icy.train`: any registered kind of job."""

from __future__ import annotations

from pathlib import Path

import icy


def test_a_probe_by_its_kind_is_the_probe(tmp_path: Path) -> None:
    given = {"model": "sender/FC1L", "grammar": "perm", "quick": True, "seeds": 1, "workers": 1, "progress": False}
    one = icy.train("probe", out=tmp_path, **given)
    other = icy.probe(out=tmp_path, rerun="never", **given)  # type: ignore[arg-type]
    assert [r["key"] for r in one.records] == [r["key"] for r in other.records]
