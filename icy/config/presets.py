"""Presets: named departures of the authors' programs from their papers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OLD_PRESETS: Mapping[str, str] = {"metarg24": "near32"}
"""Presets of agents of S2B by their names in older records, and their names today. New records do not have the old
names: the preset "metarg24" of today has the settings of "metarg22", and is filed under that name."""

RUN_KINDS = ("probe", "e2e")  # one side alone, or a pair


@dataclass(frozen=True)
class Departure:
    """One way in which a preset departs from the default, and why the printed numbers depend on it.

    Attributes:
        settings: what it sets.
        reason: why anyone would want it.
        kinds: of the kinds of training, those it is for.
    """

    settings: Mapping[str, Any]
    reason: str
    kinds: tuple[str, ...] = RUN_KINDS
