"""Results on disk: atomic writes, and keys from configurations and versions."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import filelock
import pytest

from icy.core.errors import StoreError
from icy.core.processes import Owner
from icy.experiments.results import ProbeResult
from icy.records import store
from icy.records.load import load_records
from icy.records.long_table import write_tables
from icy.records.record import Record
from icy.records.store import Claims, Store, _last, keys_to_train
from tests.helpers import on_file


def test_the_version_that_was_saved_last_is_shown(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for version in "12":
        store.put(on_file(model="sender/Mine", versions={"model": version}))
    store.put(on_file("perm", model="sender/Mine", versions={"model": "2"}))
    assert [(r["grammar"], r["versions"]["model"]) for r in store.records()] == [("rot", "2"), ("perm", "2")]


def test_records_of_older_versions_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    for seed, fraction in ((2, ".000002"), (1, ".000001"), (0, "")):  # older versions stored only seconds
        Store(tmp_path).put(on_file(seed=seed, finished=f"2026-01-02T10:00:00{fraction}+00:00"), number=False)
    assert [r["seed"] for r in Store(tmp_path).all_records()] == [0, 1, 2]


def test_the_order_of_records_does_not_depend_on_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are in the order of saving, independent of the clock, also in a new process."""
    year = 365 * 24 * 3600 * 10**9
    now = time.time_ns()
    for seed, clock in enumerate([now, now - year, now + year, now, now + year // 2]):
        monkeypatch.setattr(time, "time_ns", lambda clock=clock: clock)
        _last.clear()  # another process
        Store(tmp_path).put(on_file(seed=seed, finished=f"20{30 - seed}-01-01T00:00:00+00:00"))
    filed = [r["filed"] for r in Store(tmp_path).all_records()]
    assert [r["seed"] for r in Store(tmp_path).all_records()] == [0, 1, 2, 3, 4]
    assert filed == [now // 1000, now // 1000 + 1, (now + year) // 1000, *((now + year) // 1000 + n for n in (1, 2))]


def test_copied_records_keep_their_order(tmp_path: Path) -> None:
    store, old = Store(tmp_path), on_file(finished="2020-01-01T00:00:00+00:00")
    store.put(on_file("perm"))
    store.put(old, number=False)
    assert "filed" not in old
    assert [r["grammar"] for r in store.all_records()] == ["rot", "perm"]


def versioned(model: str, grammar: str, version: str, **changes: Any) -> Record:
    return on_file(grammar, model=f"sender/{model}", versions={"model": version}, **changes)


def shown(records: Iterable[Record]) -> set[tuple[str, str, str]]:
    return {(r["model"], r["grammar"], r["versions"]["model"]) for r in records}


def test_versions_of_a_model_do_not_mix(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The model was edited after rot and perm, and measured again on perm: rot is left out, with a warning."""
    old = [versioned("Mine", "rot", "1"), versioned("Mine", "perm", "1")]
    new, other = versioned("Mine", "perm", "2"), versioned("Theirs", "rot", "1")
    store = Store(tmp_path)
    for one in (*old, new, other):
        store.put(one)
    expected = {("sender/Mine", "perm", "2"), ("sender/Theirs", "rot", "1")}
    assert shown(store.records()) == expected
    assert shown(ProbeResult.load(tmp_path).records) == expected
    assert "grammar or protocol: sender/Mine on rot." in caplog.text
    assert (ProbeResult([new]) + ProbeResult(old)).records == [new]
    store.put(versioned("Mine", "rot", "3", failed=True))
    assert shown(store.records()) == expected  # a failure does not replace a result


def odd_files() -> dict[str, str]:
    """Unreadable records, by the name of their file."""
    whole = on_file()
    texts = {
        "half": json.dumps(whole)[:-1],
        "required": json.dumps({n: v for n, v in whole.items() if n in ("key", "config", "failed", "finished")}),
        "deep": "[" * 200_000,
        "name": json.dumps(whole),
    }
    return {hashlib.sha256(name.encode()).hexdigest()[:20]: text for name, text in texts.items()}


def test_a_damaged_record_does_not_affect_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path)
    store.put(good := on_file())
    for key, text in odd_files().items():
        store.path(key).write_text(text)
    assert store.records() == store.records() == load_records(tmp_path) == [good]
    assert write_tables(store)
    for key in odd_files():
        named = [line for line in caplog.messages if f"{key}.json" in line]
        assert len(named) == 2, key  # once by each of the two stores
        assert named[0].startswith(f"{store.path(key)} is not a readable result and is left out: ")


def test_a_folder_that_cannot_be_made_gives_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="--out"):
        Store(tmp_path / "file" / "results").prepare()


def test_prepare_leaves_no_files(tmp_path: Path) -> None:
    Store(tmp_path).prepare()
    assert not list((tmp_path / "records").iterdir())


def test_only_old_temporary_files_are_removed(tmp_path: Path) -> None:
    Store(tmp_path).prepare()
    old, new = tmp_path / "records" / ".a.json.x.tmp", tmp_path / "records" / ".b.json.y.tmp"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    Store(tmp_path).prepare()
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.parametrize("text", odd_files().values(), ids=["half", "required", "deep", "name"])
def test_a_damaged_record_is_kept_with_the_new_record(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, record = Store(tmp_path), on_file("perm")
    path = store.path(record["key"])
    for number in ("", "1"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        assert Store(tmp_path).get(record["key"]) is None
        assert keys_to_train({record["key"]: store.get(record["key"])}, store, "missing") == {record["key"]}
        store.put(record)
        assert path.with_name(f"{path.name}.odd{number}").read_text() == text
        assert f"{path} was not a readable result; it is kept as {path.name}.odd{number}." in caplog.text
    store.put(record)
    assert store.all_records() == [record]
    assert len(list(path.parent.iterdir())) == 3  # no copy of a valid record is kept


MADE: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "pipe": lambda path: os.mkfifo(path),  # reading it would never end
    "device": lambda path: path.symlink_to("/dev/zero"),  # reading it would fill the memory
    "loop": lambda path: path.symlink_to(path.name),
}


def test_a_broken_link_gives_a_warning_without_error_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = Store(tmp_path).path(on_file()["key"])
    path.parent.mkdir()
    path.symlink_to("nothing")
    assert Store(tmp_path).all_records() == []
    assert caplog.messages == [f"{path} is not a readable result and is left out: No such file or directory."]


@pytest.mark.skipif(os.name != "posix", reason="no pipes among the files, and links need rights")
@pytest.mark.parametrize("kind", MADE)
def test_only_regular_files_are_records(kind: str, tmp_path: Path) -> None:
    store, record = Store(tmp_path), on_file("perm")
    Store(tmp_path).put(good := on_file())
    MADE[kind](path := store.path(record["key"]))
    assert store.all_records() == [good]
    assert keys_to_train({record["key"]: store.get(record["key"])}, store, "missing") == {record["key"]}
    store.put(record)
    assert store.get(record["key"]) == record
    assert os.path.lexists(path.with_name(f"{path.name}.odd"))


@pytest.mark.parametrize("key", ["../../victim", "a/b", "*", "", ".", "a\0", "\x1b[31m"])
def test_a_key_has_only_letters_and_digits(key: str, tmp_path: Path) -> None:
    for action in (lambda: Store(tmp_path).get(key), lambda: Store(tmp_path).put({**on_file(), "key": key})):
        with pytest.raises(StoreError, match="The key of a result consists of letters and digits"):
            action()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_gives_an_error_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk has room for an empty file, but not for content."""

    def sync(handle: int) -> None:
        if os.fstat(handle).st_size:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(StoreError, match=r"The disk is full, so .*; finished results are kept"):
        Store(tmp_path).prepare()
    assert not list((tmp_path / "records").iterdir())


@pytest.mark.parametrize(
    ("rerun", "expected"),
    [("missing", {"new"}), ("failed", {"new", "bad"}), ("always", {"new", "bad", "good"}), ("never", set())],
)
def test_rerun_chooses_the_keys_to_train(tmp_path: Path, rerun: str, expected: set[str]) -> None:
    store = Store(tmp_path)
    keys = {name: on_file(seed=seed)["key"] for seed, name in enumerate(["good", "bad", "new"])}
    store.put(on_file(seed=0))
    store.put(on_file(seed=1, failed=True))
    records = {key: store.get(key) for key in keys.values()}
    assert keys_to_train(records, store, rerun) == {keys[name] for name in expected}


# -- claims of runs that share a folder --------------------------------------------------------------------------------


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
        assert touched.wait(900)


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
        _, said = process.communicate(timeout=900)
        assert process.returncode == 0, said
    held: set[str] = set()
    for line in (tmp_path / "log").read_text().split():
        assert (line[1:] in held) == (line[0] == "-"), line
        (held.add if line[0] == "+" else held.discard)(line[1:])
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
