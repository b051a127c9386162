"""Presets: named departures of the authors' programs from their papers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OLD_PRESETS: Mapping[str, str] = {"metarg24": "near32"}
"""Presets of agents of S2B as older records name them, and their names today. New records name no preset so: those of
"metarg24" as it is printed are filed under "metarg22", which is printed with the same settings."""

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
