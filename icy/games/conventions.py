"""Conventions of the metrics that trainings in games report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .settings import GamesLearningSettings


def game_conventions(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conventions of each metric in a record of a game, by the configuration of the record."""
    learning = config.get("settings", {}).get("setup", {}).get("learning", {})
    compared = learning.get("topsim_of", GamesLearningSettings.topsim_of)
    return {
        "cbm": {
            "words": "tokens",
            "concepts": "items",
            "repeats": "counted",
            "unmatched": learning.get("unmatched", GamesLearningSettings.unmatched),
        },
        "ami": {"average": "max"},
        "topsim": {
            "correlation": "spearman",
            "meaning": "cosine",
            "message": "levenshtein",
            "pairs": "all",
            "normalise": "none",
            "of": compared,
        },
    }
