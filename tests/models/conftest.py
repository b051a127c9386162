"""Nets of SRUs, scanned and step by step."""

from __future__ import annotations

import pytest

from icy.models.cells import SRUCell


@pytest.fixture(params=[True, False], ids=["scan", "step"])
def scanning(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nets of SRUs over the whole sequence at once, and step by step."""
    assert SRUCell.scans
    monkeypatch.setattr(SRUCell, "scans", request.param)
