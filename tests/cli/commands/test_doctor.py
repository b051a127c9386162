"""`icy doctor`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.helpers import run


def test_doctor_reports_and_judges(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    healthy = run("doctor", "--out", str(tmp_path / "new" / "results"))
    assert healthy.exit_code == 0, healthy.output
    assert all(word in healthy.stdout for word in ("python", "torch", "cores", "memory", "plug-ins", "can be written"))
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert run("doctor", "--out", str(tmp_path / "file" / "results")).exit_code == 1


def test_doctor_survives_what_it_reports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = run("doctor", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "cannot tell" in result.stdout
