"""Pages of benchmarks state the version of icy that made their numbers, the ledger lists it, and the index the page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs" / "_ext"))

from measured import measured_pages  # noqa: E402  (found only now)

STATED = re.compile(r"icy (\d+\.\d+\.\d+\S*?)(?:,| \((\w{7})\S*, ([\d-]{10})\))")


def table_of(page: str) -> dict[str, list[str]]:
    """Return the rows of a page whose first cell is a link, by the text of the link."""
    lines = (ROOT / page).read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| [")]
    return {row[0][1:].partition("]")[0]: row for row in rows}


def test_every_page_states_the_icy_that_made_it_and_the_ledger_agrees() -> None:
    listed = table_of("CONTRIBUTING.md")
    assert set(listed) == set(table_of("docs/benchmarks/index.md"))
    pages = {Path(name).stem: path for path, name in measured_pages().items()}
    assert set(listed) <= set(pages)
    for name, path in pages.items():
        stated = STATED.findall(path.read_text())
        assert stated, f"{path.name} does not state which version of icy made it"
        if name in listed:
            _, versions, at, _ = listed[name]
            assert ", ".join(sorted({version for version, _, _ in stated})) == versions, name
            text = "".join(line for line in path.read_text().splitlines(True) if not line.startswith("|"))
            assert {f"{commit}, {day}" for _, commit, day in STATED.findall(text) if commit} <= {at}, name
        else:
            assert re.match(r"(icy22|perkins21|cbm24)-table", name), f"{name} is not in the ledger of CONTRIBUTING.md"
