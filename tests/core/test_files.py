"""Writing files: whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from icy.core.errors import StoreError
from icy.core.files import free_name, is_inside, require_room, write_atomically


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(StoreError, match="The disk is full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_folder_without_room_is_told(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, or a used-up share of it, takes the empty file that a bare test would write."""
    require_room(tmp_path)
    assert not list(tmp_path.iterdir())

    def sync(handle: int) -> None:
        if os.fstat(handle).st_size:
            raise OSError(number, "No space left on device")

    monkeypatch.setattr(os, "fsync", sync)
    write_atomically(tmp_path / "empty", b"")
    with pytest.raises(StoreError, match="The disk is full"):
        require_room(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize(
    "place", ["/etc/passwd", "../a", "a/../../b", "C:\\a", "\\\\host\\a", "a\\..\\b", "C:a", "a\0", ""]
)
def test_what_is_not_inside(place: str) -> None:
    assert not is_inside(place)
    assert is_inside("models/a..b.safetensors")


def test_free_names_are_counted(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        path = free_name(tmp_path / "a.json", "odd")
        path.touch()
        names.append(path.name)
    assert names == ["a.json.odd", "a.json.odd1", "a.json.odd2"]
