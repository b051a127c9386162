"""Fixtures of the tests of text models."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach the stand-in directly, whatever proxy the machine has."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
