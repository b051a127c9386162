"""Mail of workers: what a disk takes arrives, and what it does not take is no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.training.runners.events import EventLog

FULL = Path("/dev/full")


def test_what_is_written_arrives_after_an_unfinished_line(tmp_path: Path) -> None:
    mail = EventLog(tmp_path)
    EventLog.path(tmp_path, 3).write_text('["read", [1')
    with EventLog.writing(tmp_path, 3) as write:
        write("filed", "é")
        assert list(mail.collect()) == [(3, "filed", "é")]
        write("log", {"msg": "a\nb"})
    assert list(mail.collect()) == [(3, "log", {"msg": "a\nb"})]


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
def test_a_full_disk_or_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    EventLog.path(tmp_path, 0).symlink_to(FULL)
    for folder in (tmp_path, tmp_path / "gone"):
        with EventLog.writing(folder, 0) as write:
            write("read", [])
    assert not list(EventLog(tmp_path / "gone").collect())
