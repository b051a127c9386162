"""Commands and functions give what the golden files have; `python -m tests.golden` writes them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.core import errors
from tests.golden import FILES, rewritten, sections
from tests.helpers import mark_others

SLOW = [file.stem for file in FILES if file.read_text().startswith("# Slow")]


@pytest.mark.parametrize("name", mark_others("slow", (file.stem for file in FILES), lambda name: name not in SLOW))
def test_golden_files_are_as_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = (file for file in FILES if file.stem == name)
    monkeypatch.chdir(tmp_path)
    assert rewritten(file.read_text()).splitlines() == file.read_text().splitlines()


def test_errors_are_one_sentence() -> None:
    for head, body in (section for file in FILES for section in sections(file.read_text())):
        if head.startswith("$") and body and body[-1] in ("[1]", "[2]"):
            assert all(line.startswith("!") for line in body[:-1]), head
            assert sum(line.startswith("! Error: ") for line in body) == 1, head
        if head.startswith(">>>") and body and body[0].startswith("! "):
            assert len(body) == 1, head
            assert hasattr(errors, kind := body[0][2:].partition(":")[0]) or kind == "ValueError", head
