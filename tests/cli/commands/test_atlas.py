"""`icy atlas`."""

from __future__ import annotations

from pathlib import Path

import icy
from tests.cli.helpers import run


def test_command(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    shown = run("atlas")
    assert shown.exit_code == 0
    assert "acquire" in shown.stdout
    file = tmp_path / "mine.parquet"
    packed = run("atlas", "--pack", str(tiny_folder), "--save", str(file))
    assert packed.exit_code == 0, packed.output
    models = run("atlas", str(file), "--models", "--format", "csv")
    assert "sender/FC2L" in models.stdout
    assert run("atlas", "--pack", str(tiny_folder)).exit_code == 2
    assert run("table", "atlas", "-m", "sender/FC2L").exit_code == 0
