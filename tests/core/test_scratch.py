"""Temporary folders: only folders of ended processes are removed."""

from __future__ import annotations

import errno
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icy.core.errors import StoreError
from icy.core.processes import Owner, scratch_folder, sweep_scratch


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_only_folders_of_ended_processes_are_removed(temporary: Path) -> None:
    mine = scratch_folder("pool")
    gone = replace(Owner.here(), pid=2**22 + 1)  # larger than process numbers of Linux
    dead = temporary / f"icy-pool-{gone}-x1"
    elsewhere = temporary / f"icy-pool-{replace(gone, space='0' * 8)}-x2"
    kept = [mine, elsewhere, temporary / "icy-results", temporary / f"other-{gone}-x3"]
    for folder in (dead, *kept[1:]):
        folder.mkdir()
        (folder / "0.jsonl").write_text("[]")
    sweep_scratch()
    assert sorted(temporary.iterdir()) == sorted(kept)


def test_a_full_folder_is_named(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(StoreError, match=f"{temporary}: No space left on device"):
        scratch_folder("pool")


def test_a_disk_with_room_for_a_folder_only_is_named(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk still has room for a folder and an empty file."""

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StoreError, match=f"{temporary}: No space left on device.*TMPDIR"):
        scratch_folder("pool")
    assert not list(temporary.iterdir())


def test_an_unused_tmpdir_gives_a_warning(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TMPDIR", str(temporary))
    scratch_folder("pool")
    assert not caplog.messages
    monkeypatch.setenv("TMPDIR", "/nowhere/at/all")
    scratch_folder("pool")
    assert [("/nowhere/at/all" in said, str(temporary) in said) for said in caplog.messages] == [(True, True)]
