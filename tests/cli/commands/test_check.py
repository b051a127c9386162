"""`icy check` and `icy doctor`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from icy.core import native
from icy.testing import CONTRACTS, checks_of
from tests.cli.helpers import assert_one_sentence, run

# -- `icy check` -------------------------------------------------------------------------------------------------------


def test_check_reports_every_check(plugin: str) -> None:
    good = run("check", "rot")
    assert good.exit_code == 0
    assert "grammar/rot keeps its contract" in good.stdout
    bad = run("check", "CliBad", "--plugin", plugin, "--quiet")
    assert bad.exit_code == 1
    assert "FAIL  " in bad.stdout
    assert "sender/CliBad fails" in bad.stdout
    assert_one_sentence(run("check", "rott"), "rot")


@pytest.mark.contract
def test_check_in_every_representation() -> None:
    result = run("check", "receiver/FC1L", "sender/RNNSampling:RNN", "--representation", "all", "--quiet")
    assert result.exit_code == 0
    for label in ("receiver/FC1L (soft)", "receiver/FC1L (gumb)", "sender/RNNSampling:RNN (discr)"):
        assert f"{label} keeps its contract" in result.stdout
    assert "RNNSampling:RNN (soft)" not in result.stdout


@pytest.mark.contract
def test_check_every_kind() -> None:
    result = run("check", "cell/minGRU", "topsim", "speaker/posdis", "listener/nearest", "--representation", "gumb")
    assert result.exit_code == 0
    for line in (
        f"cell/minGRU keeps its contract: {len(checks_of(CONTRACTS['cell']))} checks.",
        "pass  documented_range  from -1 to 1",
        "speaker/posdis keeps its contract: 11 checks.",
        "skip  utters  does not apply: only speakers have `utter`",
        "listener/nearest  Gives a number the value of the nearest known",
    ):
        assert line in result.stdout
    assert_one_sentence(run("check", "posdis"), "metric/posdis or speaker/posdis or listener/posdis")


@pytest.mark.usefixtures("forgetting")
def test_wrong_arguments_and_repeated_failures_are_reported_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import icy\nfrom torch import nn\n"
        "@icy.register_sender('Bare')\nclass Bare(nn.Module):\n    def __init__(self, meanings): ...\n"
        "@icy.register_sender('Stops')\nclass Stops(nn.Module):\n"
        "    def __init__(self, space, message_length, vocab_size, hidden_size): raise ValueError('no such size')\n"
    )
    result = run("check", "sender/Bare", "--plugin", str(file))
    assert result.exit_code == 1
    assert "Bare takes (meanings), and a sender must take (space, message_length" in " ".join(result.stdout.split())
    assert result.stdout.count("must take") == result.stdout.count("FAIL") == 1
    result = run("check", "sender/Stops", "--plugin", str(file))
    assert result.stdout.count("no such size") == 1
    assert result.stdout.count("as made_by_name") == result.stdout.count("FAIL") - 1 > 10


@pytest.mark.slow
def test_options_in_names_are_printed() -> None:
    lines = run("check", "sender/Composed[cell=RNN]").stdout.splitlines()
    assert lines[0].startswith("sender/Composed[cell=RNN]  ")
    assert lines[-1].startswith("sender/Composed[cell=RNN] keeps its contract")


# -- `icy doctor` ------------------------------------------------------------------------------------------------------


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
    monkeypatch.setattr("icy.core.gpu.names", list)
    assert "cells on a GPU" not in run(*command).stdout
    monkeypatch.setattr("icy.core.gpu.names", lambda: ["cuda:0"])
    monkeypatch.setattr("icy.core.gpu.description", lambda name: "Some GPU, 64 GiB, CUDA 13.0")
    monkeypatch.setenv("ICY_TRITON", "off")
    assert "PyTorch, Triton switched off by ICY_TRITON=off" in run(*command).stdout


def test_doctor_survives_what_it_reports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = run("doctor", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "unknown: " in result.stdout
