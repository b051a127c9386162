"""The script that makes the atlas: which runs come into it."""

from __future__ import annotations

import pandas as pd
import pytest

from results.atlas import __main__ as atlas

pytestmark = pytest.mark.slow

ROW = {"representation": "soft", "meanings": "5x10", "word_length": 4, "protocol": "acquire"}


def runs(model: str, settings: str | None, **seeds: list[int]) -> list[dict[str, object]]:
    about = {**ROW, "model": model, "settings": settings}
    return [{**about, "grammar": grammar, "seed": seed} for grammar, found in seeds.items() for seed in found]


def test_a_grammar_with_seeds_still_to_come_is_left_out() -> None:
    rows = [
        *runs("slow", None, concat=[1, 2, 3], perm=[1, 2, 3], rot=[1, 3]),
        *runs("slow", "cap=9", concat=[1, 2], rot=[2, 1]),
        *runs("begun", None, concat=[1, 2, 3], rot=[3]),
    ]
    kept = atlas.finished(pd.DataFrame(rows))
    found = kept.groupby(["model", kept["settings"].fillna(""), "grammar"])["seed"].apply(sorted).to_dict()
    assert found == {
        ("slow", "", "concat"): [1, 2, 3],
        ("slow", "", "perm"): [1, 2, 3],
        ("slow", "cap=9", "concat"): [1, 2],
        ("slow", "cap=9", "rot"): [1, 2],
    }
