"""Games that several tests play, and observations of several steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch

from icy.s2b.agents.networks.observations import Observation

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


def stacked(steps: Sequence[Observation]) -> Observation:
    """Stack the observations of several steps along a new first axis."""
    return Observation(**{f.name: torch.stack([getattr(s, f.name) for s in steps]) for f in fields(Observation)})
