"""Progress over pairs."""

from __future__ import annotations

import pytest

import icy
from icy.metrics import topsim


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    language = icy.make_language("rot", "2x4", 3, 3, 1)
    told: list[tuple[int, int]] = []
    values = [
        topsim(language, progress=p).value for p in (None, True, False, lambda done, all_: told.append((done, all_)))
    ]
    assert len(set(values)) == 1
    assert told == [(256, 256)]
