"""The notebooks as they are kept, and (`pytest -m notebooks`) as they run today; the latter takes some minutes."""

import base64
import importlib.util
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 400_000  # bytes
PATH = re.compile(r"(?<![\w.>/<])/(?:tmp|home|root|usr|var|opt|work|Users|private|mnt)/|\b[A-Za-z]:\\|file://")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")  # carriage returns, escape sequences of terminals


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def texts(cell: dict[str, Any]) -> list[str]:
    """Everything in a cell's outputs that is text."""
    found = []
    for output in cell["outputs"]:
        shown = [value for kind, value in output.get("data", {}).items() if kind != "image/png"]
        found += ["".join(text) for text in [*shown, output.get("text", "")]]
    return found


def test_there_are_eight() -> None:
    names = [
        "bias-and-emergence",
        "emergent-language",
        "first-probe",
        "grammars-and-metrics",
        "in-context",
        "iterated-learning",
        "plug-in",
        "reproduce-a-row",
    ]
    assert [path.stem for path in NOTEBOOKS] == names


def test_the_first_cell_says_what_it_shows_and_how_long_it_takes(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.name):
            first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
            title, _, sentence = "".join(first["source"]).partition("\n\n")
            assert first["cell_type"] == "markdown"
            assert title.startswith("# ")
            assert re.search(
                r"takes\s+(about|less than)\s+[\w\s]+(seconds|minutes?)\s+on", sentence.partition("\n\n")[0]
            )


def test_it_was_run_from_top_to_bottom(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.name):
            counts = [cell["execution_count"] for cell in code_cells(path)]
            assert counts == list(range(1, len(counts) + 1))


def test_it_has_outputs_and_no_errors(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.name):
            outputs = [output for cell in code_cells(path) for output in cell["outputs"]]
            assert outputs
            assert [output for output in outputs if output["output_type"] == "error"] == []
            assert [output for output in outputs if output.get("name") == "stderr"] == []


def test_figures_are_pictures_of_a_readable_size(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.name):
            data = [output.get("data", {}) for cell in code_cells(path) for output in cell["outputs"]]
            for one in data:
                assert ("image/png" in one) == ("Figure size" in "".join(one.get("text/plain", "")))
            for one in data:
                if "image/png" in one:
                    width, height = struct.unpack(">II", base64.b64decode(one["image/png"])[16:24])
                    assert 300 <= width <= 1300
                    assert 150 <= height <= 1000


def test_outputs_hold_no_paths_and_no_terminal_control(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.name):
            for cell in code_cells(path):
                for text in texts(cell):
                    assert PATH.search(text) is None
                    assert CONTROL.search(text) is None


def test_it_is_small(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.name):
            assert path.stat().st_size <= LARGEST


def test_the_pattern_of_paths() -> None:
    paths = ["in /tmp/tmpab12/x", "'/" + "home/me/icy'", "C:\\icy", "file:///x"]
    others = ["<td>1</td>", "</table>", "sender/tmp/x", "icy22/table3", "1.00±0.00"]
    assert list(filter(PATH.search, paths + others)) == paths


@pytest.mark.notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path) -> None:
    """In an empty folder; every cell that shows something kept shows something of the same kind."""
    kept = code_cells(path)
    ran = [cell for cell in _execute().executed(path).cells if cell.cell_type == "code"]
    for before, now in zip(kept, ran, strict=True):
        assert [_kind(output) for output in now.outputs] == [_kind(output) for output in before["outputs"]]


def _execute() -> Any:
    """The module that runs notebooks, which is in no package."""
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _kind(output: dict[str, Any]) -> tuple[str, list[str]]:
    return output.get("name", ""), sorted(output.get("data", {}))
