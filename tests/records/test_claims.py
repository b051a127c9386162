"""Claims of runs that share a folder: unique keys, released by ended runs, without leftover files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import filelock
import pytest

from icy.core.processes import Owner
from icy.records import store
from icy.records.store import Claims

HERE = Owner.here()
GONE = replace(HERE, pid=2**22 + 1)  # larger than process numbers of Linux
REUSED = replace(HERE, began=HERE.began + 1)
ELSEWHERE = replace(HERE, space="0" * 8)


def left_by(owner: Owner, folder: Path, *keys: str, age: float = 0.0) -> Path:
    """The file of another run."""
    path = folder / "claims" / f"{owner}-00ff.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"pid": owner.pid, "host": "node7", "since": 0.0, "keys": keys}))
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))
    return path


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Claims]:
    with Claims(tmp_path) as made:
        yield made


def test_claimed_keys_are_not_claimed_again(tmp_path: Path, mine: Claims) -> None:
    with Claims(tmp_path) as other:
        assert other.take("abc") == set("abc")
        assert mine.take("bcd") == {"d"}
        assert mine.take("d") == {"d"}  # its own file is known
        other.drop("b")
        assert mine.take("abc") == {"b"}
        other.done("c")
        other.take("a")
        assert mine.take("abc") == {"b", "c"}
        (claim,) = mine.others()
        assert claim.keys == {"a"}
        assert claim.pid == os.getpid()
    assert mine.take("abc") == set("abc")
    assert mine.others() == []


@pytest.mark.skipif(sys.platform != "linux", reason="it needs /proc")
@pytest.mark.parametrize("owner", [GONE, REUSED])
def test_the_claims_of_a_killed_run_are_free_at_once(tmp_path: Path, mine: Claims, owner: Owner) -> None:
    path = left_by(owner, tmp_path, "a", "b")
    assert mine.take("ab") == set("ab")
    assert not path.exists()


def test_the_claims_of_another_machine_hold_while_its_file_is_touched(tmp_path: Path, mine: Claims) -> None:
    path = left_by(ELSEWHERE, tmp_path, "a", age=store.SILENT_SECONDS - 30)
    assert mine.take("ab") == {"b"}
    assert "on node7" in str(mine.others()[0])
    left_by(ELSEWHERE, tmp_path, "a", age=store.SILENT_SECONDS + 30)
    assert mine.take("ab") == set("ab")
    assert not path.exists()


def test_a_run_touches_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched, real = threading.Event(), os.utime

    def touch(path: Path, *times: float) -> None:
        real(path, *times)  # type: ignore[arg-type]
        if path.suffix == ".json":
            touched.set()

    monkeypatch.setattr(store, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(os, "utime", touch)
    with Claims(tmp_path) as made:
        made.take("a")
        assert touched.wait(300)


SAYS_NOTHING = [
    *("", "[1]", '{"pid": 1}', '{"pid": "x", "host": 1, "since": [], "keys": 3}', "\x00", "[" * 200_000),
    '{"pid": 1e999, "host": "h", "since": 0, "keys": ["a"]}',
    '{"pid": 1, "host": "h", "since": -1e300, "keys": ["a"]}',
]


@pytest.mark.parametrize("text", SAYS_NOTHING)
def test_an_unreadable_claim_file_is_ignored(tmp_path: Path, mine: Claims, text: str) -> None:
    left_by(HERE, tmp_path).write_text(text)
    assert mine.take("a") == {"a"}


def test_the_last_run_removes_the_folder(tmp_path: Path) -> None:
    one, other = Claims(tmp_path), Claims(tmp_path)
    with one:
        with other:
            one.take("a")
            other.take("b")
            (tmp_path / "claims" / ".x.json.abc.tmp").touch()  # of a run that was killed during a write
            other.take("c")
        assert (tmp_path / "claims").exists()
    assert not list(tmp_path.iterdir())


def test_files_of_killed_runs_are_removed_without_claims(tmp_path: Path) -> None:
    left_by(GONE, tmp_path, "a")
    store.sweep_claims(tmp_path)
    assert not list(tmp_path.iterdir())
    path = left_by(ELSEWHERE, tmp_path, "a")
    store.sweep_claims(tmp_path)
    assert path.exists()
    store.sweep_claims(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_run_that_claims_nothing_writes_nothing(tmp_path: Path) -> None:
    with Claims(tmp_path / "results"):
        pass
    assert not list(tmp_path.iterdir())


def test_without_locks_all_keys_are_free_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no locks available")

    left_by(HERE, tmp_path, "a")
    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with Claims(tmp_path) as made:
        assert made.take("a") == {"a"}
        assert made.take("b") == {"b"}
    assert caplog.text.count("no locks available") == 1


HAMMER = """
import random, sys, time
from icy.records.store import Claims
folder, mine = sys.argv[1], []
for turn in range(8):
    with Claims(folder) as claims:
        for _ in range(4):
            keys = random.sample([f"{turn}-{i}" for i in range(12)], 3)
            got = claims.take(keys)
            with open(folder + "/log", "a") as file:
                file.writelines(f"+{key}\\n" for key in got)
            time.sleep(random.uniform(0, 0.003))
            with open(folder + "/log", "a") as file:
                file.writelines(f"-{key}\\n" for key in got)
            claims.drop(got)
"""


@pytest.mark.process
def test_concurrent_processes_never_claim_the_same_key(tmp_path: Path) -> None:
    """Each process also removes the folder if it is the last."""
    command = [sys.executable, "-c", HAMMER, str(tmp_path)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    held: set[str] = set()
    for line in (tmp_path / "log").read_text().split():
        assert (line[1:] in held) == (line[0] == "-"), line
        (held.add if line[0] == "+" else held.discard)(line[1:])
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
