"""The script that makes the atlas: which runs come into it."""

from __future__ import annotations

import pandas as pd
import pytest

from .helpers import benchmark


def test_a_grammar_with_seeds_still_to_come_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    atlas = benchmark("atlas", monkeypatch)
    row = {"model": "m", "representation": "soft", "meanings": "5x10", "word_length": 4, "protocol": "acquire"}
    runs = [
        *({**row, "settings": None, "grammar": "concat", "seed": seed} for seed in (1, 2, 3)),
        *({**row, "settings": None, "grammar": "rot", "seed": seed} for seed in (1, 3)),  # 2 is slow
        *({**row, "settings": "cap=9", "grammar": g, "seed": seed} for g in ("concat", "rot") for seed in (1, 2)),
    ]
    kept = atlas.finished(pd.DataFrame(runs))
    found = kept.groupby(["settings", "grammar"], dropna=False)["seed"].apply(list).to_dict()
    assert len(found) == 3
    assert found["cap=9", "rot"] == [1, 2]
    assert "rot" not in set(kept.loc[kept["settings"].isna(), "grammar"])
