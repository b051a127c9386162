"""Events of workers: lines on the disk arrive, and a full disk does not raise."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.training.runners.base import EventLog

FULL = Path("/dev/full")


def test_events_after_an_incomplete_line_arrive(tmp_path: Path) -> None:
    mail = EventLog(tmp_path)
    EventLog.path(tmp_path, 3).write_text('["read", [1')
    with EventLog.writing(tmp_path, 3) as write:
        write("filed", "é")
        assert list(mail.collect()) == [(3, "filed", "é")]
        write("log", {"msg": "a\nb"})
    assert list(mail.collect()) == [(3, "log", {"msg": "a\nb"})]


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
def test_a_full_disk_and_a_missing_folder_are_ignored(tmp_path: Path) -> None:
    EventLog.path(tmp_path, 0).symlink_to(FULL)
    for folder in (tmp_path, tmp_path / "gone"):
        with EventLog.writing(folder, 0) as write:
            write("read", [])
    assert not list(EventLog(tmp_path / "gone").collect())
