"""`icy doctor`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from icy.core import native
from tests.cli.helpers import run


def test_doctor_reports_and_judges(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    healthy = run("doctor", "--out", str(tmp_path / "new" / "results"))
    assert healthy.exit_code == 0, healthy.output
    assert all(word in healthy.stdout for word in ("python", "torch", "cores", "memory", "plug-ins", "can be written"))
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert run("doctor", "--out", str(tmp_path / "file" / "results")).exit_code == 1


def test_doctor_says_which_code_is_in_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ICY_NATIVE", raising=False)

    def told() -> dict[str, str]:
        rows = run("doctor", "--out", str(tmp_path), "--format", "json").stdout
        return {row["what"]: row["found"] for row in json.loads(rows)}

    packages = {"cores of models": "icy.models.native", "pairs in metrics": "icy.metrics.topographic.native"}
    usual = told()
    for what, package in packages.items():
        library = native.load(package)
        if library is None:
            assert usual[what].endswith(f", native code {native.why_not(package)}")
        else:
            assert usual[what] == (f"native, {library.variant}: best for this processor of {', '.join(library.built)}")
            monkeypatch.setenv("ICY_NATIVE", library.usable[0])
            assert told()[what] == f"native, {library.usable[0]}: chosen by ICY_NATIVE"
            monkeypatch.delenv("ICY_NATIVE")
    monkeypatch.setenv("ICY_NATIVE", "off")
    assert told()["cores of models"] == "PyTorch, native code switched off by ICY_NATIVE=off"
    assert told()["pairs in metrics"] == "NumPy and RapidFuzz, native code switched off by ICY_NATIVE=off"
    monkeypatch.setenv("ICY_NATIVE", "no")
    assert "No value of ICY_NATIVE is called 'no'" in told()["native"]


def test_doctor_says_what_computes_cells_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = ("doctor", "--out", str(tmp_path))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "cells on a GPU" not in run(*command).stdout
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setenv("ICY_TRITON", "off")
    assert "PyTorch, Triton switched off by ICY_TRITON=off" in run(*command).stdout


def test_doctor_survives_what_it_reports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = run("doctor", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "unknown: " in result.stdout
