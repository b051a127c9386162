"""`icy report`, and `icy atlas --html`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import run
from tests.helpers import THREE, long


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    long(THREE).to_parquet("results.parquet")
    return tmp_path


def test_results_are_written_as_a_page(folder: Path) -> None:
    done = run("report", "results.parquet", "-m", "A", "-m", "B", "--title", "Two <models>", "-o", "two.html")
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("Written: two.html (")
    text = Path("two.html").read_text()
    assert "<title>Two &lt;models&gt;</title>" in text
    assert "sender/A" in text
    assert "sender/C" not in text


def test_published_values_are_next_to_results(folder: Path) -> None:
    published = Path(__file__).parents[3] / "results" / "reproduced" / "replicates.parquet"
    words = ["-m", "FC2L", "-g", "rot", "--where", "protocol=acquire", "--compare", "icy22/table3", "--spread", "sem"]
    done = run("report", str(published), *words)
    assert done.exit_code == 0, done.output
    assert "20.00±0.00†<small>" in Path("report.html").read_text()


@pytest.mark.slow
def test_the_atlas_is_written_as_a_page(folder: Path) -> None:
    done = run("atlas", "--html", "atlas.html")
    assert done.exit_code == 0, done.output
    assert "The atlas of compositional bias" in Path("atlas.html").read_text()
