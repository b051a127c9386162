"""Tests of contracts leave out the longest checks, unless they are marked `contract`."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _without_long_checks(without_long_checks: None) -> None:
    pass
