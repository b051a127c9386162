"""Writing files atomically."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from icy.core.errors import StoreError
from icy.core.files import free_name, is_inside, require_room, write_atomically
from icy.grammars import make_language
from icy.records.long_table import write_tables
from icy.records.store import Store


def test_a_failed_write_keeps_the_old_file_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_full_disk_gives_an_error(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk or quota still has room for an empty file, so an empty file is not a test."""
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
def test_paths_outside_a_folder(place: str) -> None:
    assert not is_inside(place)
    assert is_inside("models/a..b.safetensors")


def test_free_names_have_numbers(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        path = free_name(tmp_path / "a.json", "odd")
        path.touch()
        names.append(path.name)
    assert names == ["a.json.odd", "a.json.odd1", "a.json.odd2"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no umask")
@pytest.mark.parametrize(
    ("mask", "file", "folder"), [(0o022, 0o644, 0o755), (0o002, 0o664, 0o775), (0o077, 0o600, 0o700)]
)
def test_files_and_folders_honor_the_umask(tmp_path: Path, mask: int, file: int, folder: int) -> None:
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "a" / "b" / "open", b"")
        write_atomically(tmp_path / "a" / "private", b"", private=True)
        written = write_tables(Store(tmp_path / "store"))
        assert make_language("rot", "3x4").save(tmp_path / "rot.csv").stat().st_mode & 0o777 == file
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a" / "b" / "open", *written)} == {file}
    assert (tmp_path / "a" / "private").stat().st_mode & 0o777 == 0o600
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "store")} == {folder}
