"""Pages of benchmarks state the version of icy that made their numbers, and the index lists it."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"
STATED = re.compile(r"icy (\d+\.\d+\.\d+\S*?)(?:,| \((\w{7})\S*, ([\d-]{10})\))")


def test_every_page_states_the_icy_that_made_it_and_the_index_agrees() -> None:
    lines = (DOCS / "index.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| [")]
    listed = {row[0][1:].partition("]")[0]: row for row in rows}
    assert set(listed) <= {path.stem for path in DOCS.glob("*.md")}
    for path in DOCS.glob("*.md"):
        if path.stem == "index":
            continue
        included = DOCS / path.read_text().split("{include} ")[1].split()[0]
        stated = STATED.findall(included.read_text())
        assert stated, f"{included.name} does not state which version of icy made it"
        if path.stem in listed:
            _, _, versions, at, *_ = listed[path.stem]
            assert ", ".join(sorted({version for version, _, _ in stated})) == versions, path.name
            text = "".join(line for line in included.read_text().splitlines(True) if not line.startswith("|"))
            assert {f"{commit}, {day}" for _, commit, day in STATED.findall(text) if commit} <= {at}, path.name
        else:
            assert re.match(r"(icy22|perkins21)-table", path.stem), f"{path.name} is not in the table of index.md"
