"""Commands print what the golden files have; `python -m tests.golden` writes these again after a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import FILES, rewritten, sections


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_commands_print_what_their_file_has(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rewritten(file.read_text()).splitlines() == file.read_text().splitlines()


def test_errors_are_one_sentence() -> None:
    for file in FILES:
        for head, body in sections(file.read_text()):
            if body and body[-1] in ("[1]", "[2]"):
                assert len(body) == 2, head
                assert body[0].startswith("! Error: "), head
