"""`icy atlas`."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

import icy
from icy.cli import main


def test_command(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["atlas"])
    assert shown.exit_code == 0
    assert "acquire" in shown.stdout
    file = tmp_path / "mine.parquet"
    packed = CliRunner().invoke(main, ["atlas", "--pack", str(tiny_folder), "--save", str(file)])
    assert packed.exit_code == 0, packed.output
    models = CliRunner().invoke(main, ["atlas", str(file), "--models", "--format", "csv"])
    assert "sender/FC2L" in models.stdout
    assert CliRunner().invoke(main, ["atlas", "--pack", str(tiny_folder)]).exit_code == 2
    assert CliRunner().invoke(main, ["table", "atlas", "-m", "sender/FC2L"]).exit_code == 0
