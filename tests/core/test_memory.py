"""Available memory."""

from __future__ import annotations

import pytest

from icy.core import machine as memory


def test_available_memory_is_plausible(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 10**6 < memory.available_memory() < 10**15

    def no_such_file(*args: object, **options: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", no_such_file)  # as on a system without /proc
    assert 10**6 < memory.available_memory() < 10**15
    monkeypatch.delattr("os.sysconf")  # as on Windows
    assert memory.available_memory() == memory.FALLBACK_MEMORY
