"""Models that tests of training register."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _forgetting(forgetting: None) -> None:
    """What `tests.training.helpers.plug_in` registers is forgotten."""
