"""The numbers that were published, as far as minutes allow; results/reproduced/__main__.py measures many more."""

from pathlib import Path

import pandas as pd
import pytest

import icy
from icy.analysis.literature.agreement import agreement, end_to_end_agreement


@pytest.mark.stress
@pytest.mark.parametrize(
    ("model", "protocol", "seeds", "grammars"),
    [
        ("sender/FC2L", "acquire", 5, ["perm", "proj", "rot", "shufdet", "hol"]),
        ("receiver/kNN", "budget", 3, ["perm", "proj", "pairsum", "rot", "shuf", "shufdet", "hol"]),
    ],
)
def test_a_row_agrees(model: str, protocol: str, seeds: int, grammars: list[str], tmp_path: Path) -> None:
    """Every cell within three combined standard errors; with 3 or 5 runs each, two are often passed by chance."""
    result = icy.probe(model, grammars, protocol=protocol, seeds=seeds, preset="published", device="cpu", out=tmp_path)
    cells = agreement(result.to_dataframe())
    assert len(cells) >= len(grammars)
    assert (cells["distance"].abs() <= 3).all(), cells


def test_end_to_end_cells_stand_beside_the_published_ones() -> None:
    setting = {
        "settings": "",
        "options": "",
        "game_steps": None,
        "most": 10_000,
        "role": "pair",
        "preset": "published",
        "meanings": "5x10",
        "vocab_size": 4,
        "word_length": 4,
        "cap": 20.0,
    }
    pair = {"model": "RNNZero:GRU+RNN1L:GRU", "representation": "soft", "hidden_size": 128, "grammar": "perm"}
    rows = [
        {
            **setting,
            **pair,
            "seed": seed,
            "measure": "accuracy",
            "value": 1.0,
            "failed": False,
            "sender_accuracy": accuracy,
        }
        | {"end_to_end_accuracy": 1.0, "topsim": 0.7}
        for seed, accuracy in ((1, 0.87), (2, 0.88), (3, 0.89))
    ]
    (cell,) = end_to_end_agreement(pd.DataFrame(rows)).to_dict("records")
    assert (cell["measure"], cell["seeds"], cell["published"]) == ("sender_accuracy", 3, 0.88)
    assert cell["icy"] == pytest.approx(0.88)
    assert abs(cell["distance"]) < 1e-6
    (alone,) = end_to_end_agreement(pd.DataFrame(rows[:1])).to_dict("records")
    assert pd.isna(alone["icy_error"])
    spread = alone["published_error"] * 3**0.5  # a single run is taken to spread as the paper's three
    assert alone["distance"] == pytest.approx((0.87 - 0.88) / (spread**2 + alone["published_error"] ** 2) ** 0.5)
    short = pd.DataFrame([{**row, "most": 100} for row in rows])
    assert not len(end_to_end_agreement(short))  # a game that the paper did not play
    changed = pd.DataFrame([*rows, *({**row, "settings": "learning_rate=0.1", "sender_accuracy": 0.1} for row in rows)])
    assert end_to_end_agreement(changed)["icy"].tolist() == pytest.approx([0.88, 0.1])
