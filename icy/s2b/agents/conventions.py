"""Conventions of the metrics that trainings of agents report."""

from collections.abc import Mapping
from typing import Any


def language_conventions(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conventions of each metric of a language that agents learned: the defaults of icy."""
    return {
        "topsim": {
            "correlation": "spearman",
            "meaning": "hamming",
            "message": "levenshtein",
            "pairs": "all",
            "normalise": "none",
        },
        "posdis": {"constant": "skip"},
        "bosdis": {"constant": "skip"},
    }
