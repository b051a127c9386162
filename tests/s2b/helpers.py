"""Games that several tests play, and the accuracy of a pair of players."""

from __future__ import annotations

from typing import Any

GAMES: dict[str, dict[str, Any]] = {
    "default": {},
    "object-centric": {"samples": 4, "shots": 2},
    "distractors": {"distractors": 3, "samples": 2},
    "partial": {"distractors": 2, "view": "partial"},
    "no feedback": {"feedback": False, "rounds": 2},
    "both speak": {"listener_messages": True, "rounds": 2, "length": 2},
    "near32": {"compat": "near32", "distractors": 2},
    "one-hot": {"representation": "ohe", "descriptive": False, "distractors": 1},
    "common": {"kind": "common", "games": 4, "split": "all", "distractors": 1},
}
