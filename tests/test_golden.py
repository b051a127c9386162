"""Commands and functions give what the golden files have; `python -m tests.golden` writes them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.core import errors
from icy.core.registry import ENTRY_KINDS, registry
from tests.golden import FILES, rewritten, sections


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_golden_files_are_as_written(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "plugin_files", [])  # other tests load some
    registry.entries(*ENTRY_KINDS)  # loads all of icy's
    own = {key: entry for key, entry in registry._entries.items() if entry.origin.startswith("icy.")}
    monkeypatch.setattr(registry, "_entries", own)
    assert rewritten(file.read_text()).splitlines() == file.read_text().splitlines()


def test_errors_are_one_sentence() -> None:
    for head, body in (section for file in FILES for section in sections(file.read_text())):
        if head.startswith("$") and body and body[-1] in ("[1]", "[2]"):
            assert all(line.startswith("!") for line in body[:-1]), head
            assert sum(line.startswith("! Error: ") for line in body) == 1, head
        if head.startswith(">>>") and body and body[0].startswith("! "):
            assert len(body) == 1, head
            assert hasattr(errors, kind := body[0][2:].partition(":")[0]) or kind == "ValueError", head
