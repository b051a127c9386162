"""Presets: named sets of settings in which the authors' programs differ from their papers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OLD_PRESETS: Mapping[str, str] = {"metarg24": "near32"}
"""Current names of presets of S2B agents, by their names in older records. New records do not have the old names: the
current preset "metarg24" has the settings of the old "metarg22", and is saved under that name."""

RUN_KINDS = ("probe", "e2e")  # training of a sender or receiver alone, or of a pair


SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "ren20": {"interaction": 4000},
    "elberg25": {"interaction": 4000},
    "cheng23": {"generations": 1, "interaction": 0},
    "li19-gradual": {"population": 5, "replacement": "gradual"},
    "li19-simultaneous": {"population": 5, "replacement": "simultaneous"},
}
"""Options of `icy.iterate` as in papers, by name. The numbers of updates and the sizes of populations are icy's."""


@dataclass(frozen=True)
class Departure:
    """A change that a preset makes to the default settings, and its reason.

    Attributes:
        settings: the changed settings, by name.
        reason: why the published numbers need the change.
        kinds: kinds of training with this change.
    """

    settings: Mapping[str, Any]
    reason: str
    kinds: tuple[str, ...] = RUN_KINDS
