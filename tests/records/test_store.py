"""Results on disk: atomic writes, and keys from configurations and versions."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from icy.core.errors import StoreError
from icy.experiments.results import ProbeResult
from icy.records.load import load_records
from icy.records.long_table import write_tables
from icy.records.record import Record
from icy.records.store import Store, _last, keys_to_train
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


def as_folder(path: Path) -> None:
    path.mkdir()


def as_pipe(path: Path) -> None:
    os.mkfifo(path)  # reading it would never end


def as_device(path: Path) -> None:
    path.symlink_to("/dev/zero")  # reading it would fill the memory


def as_loop(path: Path) -> None:
    path.symlink_to(path.name)


def test_a_broken_link_gives_a_warning_without_error_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = Store(tmp_path).path(on_file()["key"])
    path.parent.mkdir()
    path.symlink_to("nothing")
    assert Store(tmp_path).all_records() == []
    assert caplog.messages == [f"{path} is not a readable result and is left out: No such file or directory."]


@pytest.mark.skipif(os.name != "posix", reason="no pipes among the files, and links need rights")
@pytest.mark.parametrize("make", [as_folder, as_pipe, as_device, as_loop])
def test_only_regular_files_are_records(make: Callable[[Path], None], tmp_path: Path) -> None:
    store, record = Store(tmp_path), on_file("perm")
    Store(tmp_path).put(good := on_file())
    make(path := store.path(record["key"]))
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
