"""Games and recall tasks that the libraries' checks go over."""

from __future__ import annotations

from typing import Any

GAMES: dict[str, dict[str, Any]] = {
    "default": {},
    "near32": {"compat": "near32", "distractors": 2},
    "both speak": {"listener_messages": True, "rounds": 2, "distractors": 1},
    "no feedback": {"feedback": False},
    "one-hot": {"representation": "ohe", "view": "partial", "distractors": 1},
    "common": {"kind": "common", "games": 3},
}
RECALL: dict[str, dict[str, Any]] = {
    "scs": {},
    "ohe": {"representation": "ohe"},
    "near32": {"compat": "near32"},
    "near32, ohe": {"compat": "near32", "representation": "ohe", "games_per_shot": 5},
}
VECTOR = {"vectorization_mode": "vector_entry_point"}
