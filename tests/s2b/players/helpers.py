"""A helper for the accuracy of a speaker and a listener."""

from __future__ import annotations

from typing import Any

from icy.s2b import evaluate


def accuracy(speaker: str, listener: str, phase: str = "zsct", episodes: int = 150, **given: Any) -> float:
    return float(evaluate(speaker, listener, episodes=episodes, seeds=1, **given).table()[phase][0])
