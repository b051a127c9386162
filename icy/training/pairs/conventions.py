"""Conventions of the metrics that end-to-end runs report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HAMMING = {"correlation": "spearman", "meaning": "hamming", "message": "hamming"}


def pair_conventions(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conventions of topsim in a record of a pair, by the configuration of the record."""
    published = config.get("settings", {}).get("training_readings", False)
    return {"topsim": {**HAMMING, "pairs": "ordered" if published else "all"}}
