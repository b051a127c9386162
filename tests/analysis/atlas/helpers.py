"""A small atlas."""

from __future__ import annotations

from typing import Any

import pandas as pd

from icy.analysis.atlas.atlas import Atlas
from icy.records.long_table import LONG

SOFT = {
    "role": "sender", "representation": "soft", "protocol": "acquire", "meanings": "3x4", "vocab_size": 4,
    "word_length": 2, "target": 0.8, "cap": 20.0, "preset": "default", "settings": "", "options": "", "hidden_size": 32,
    "measure": "ratio", "failed": False, "censored": False,
}  # fmt: skip
ABOUT = {
    "runs": 0,
    "made": ["2026-01-01", "2026-01-02"],
    "versions": ["icy 1"],
    "devices": ["cpu"],
    "git": [],
    "hours": 1,
}


def long(values: dict[str, dict[str, float]], **changes: Any) -> pd.DataFrame:
    rows = [
        {**SOFT, "model": f"sender/{model}", "grammar": grammar, "seed": seed, "value": value, **changes}
        for model, grammars in values.items()
        for grammar, value in grammars.items()
        for seed in (123, 124)
    ]
    return pd.DataFrame(rows).reindex(columns=list(LONG))


ZOO = {
    "A": {"concat": 1.0, "rot": 2.0, "shufdet": 2.0},
    "B": {"concat": 1.0, "rot": 4.0, "shufdet": 2.0},
    "C": {"concat": 1.0, "rot": 16.0, "shufdet": 8.0},
    "D": {"concat": 1.0, "rot": 2.0},
}
ATLAS = Atlas(long(ZOO), ABOUT)
