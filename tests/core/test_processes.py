"""Owners of files, and temporary folders."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icy.core.errors import StoreError
from icy.core.processes import Owner, scratch_folder, sweep_scratch

# -- owners of files: whether the process that made a file is still running --------------------------------------------


HERE = Owner.here()
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="it needs /proc")
posix = pytest.mark.skipif(os.name != "posix", reason="Windows is not supported")


def ended() -> Owner:
    """A process that has ended."""
    script = "from icy.core.processes import Owner; print(Owner.here())"
    found = Owner.in_name(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout)
    assert found is not None
    return found


def test_this_process_is_running() -> None:
    assert HERE.pid == os.getpid()
    assert not HERE.gone()


@posix
def test_an_ended_process_is_gone() -> None:
    assert ended().space == HERE.space
    assert ended().gone()


@only_linux
def test_a_reused_process_number_is_another_process() -> None:
    assert replace(HERE, began=HERE.began - 1).gone()


@only_linux
def test_a_zombie_process_is_gone() -> None:
    script = "import sys; from icy.core.processes import Owner; print(Owner.here(), flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        owner = Owner.in_name(process.stdout.readline().decode())
        assert owner is not None
        assert not owner.gone()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has waited for it
        assert owner.gone()


def test_processes_of_other_machines_are_unknown() -> None:
    other = replace(ended(), space="00000000")
    assert not other.local
    assert not other.gone()


def test_the_name_of_a_file_contains_its_owner() -> None:
    assert Owner.in_name(f"icy-pool-{HERE}-x_9abc") == HERE
    assert Owner.in_name("icy-results") is None
    assert Owner.in_name("icy-pool-8f_2k1") is None


# -- temporary folders: only folders of ended processes are removed ----------------------------------------------------


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
