"""The numbers that were published, as far as minutes allow; benchmarks/published.py measures many more."""

from pathlib import Path

import pytest

import icy
from icy.analysis.published import agreement


@pytest.mark.slow
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
