"""Results on disk: whole or not at all, found again by what they depend on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.provenance import now
from icy.experiments.results import ProbeResult
from icy.records.store import Store, to_run


def record(key: str, **changes: object) -> dict[str, object]:
    return {"key": key, "config": {"a": 1}, "failed": False, "finished": "2026-01-01", **changes}


def test_of_two_versions_the_newest_is_shown(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(record("old", finished="2026-01-01"))
    store.put(record("new", finished="2026-01-02"))
    store.put(record("other", config={"a": 2}))
    assert [r["key"] for r in store.records()] == ["other", "new"]


def test_of_two_results_within_a_second_the_later_is_the_newer(tmp_path: Path) -> None:
    first = now()
    while (second := now()) == first:
        pass
    store = Store(tmp_path)
    for key, finished in (("a", second), ("b", first), ("c", first[:19] + "+00:00")):  # icy once told only seconds
        store.put(record(key, finished=finished))
    assert [r["key"] for r in store.all_records()] == ["c", "b", "a"]
    assert [r["key"] for r in store.records()] == ["a"]


def versioned(model: str, grammar: str, version: str, finished: str) -> dict[str, object]:
    config = {"model": model, "grammar": grammar}
    about = {"side": "sender", "versions": {"model": version, "grammar": "1"}}
    return record(f"{model}{grammar}{version}", config=config, finished=finished, **config, **about)


def test_versions_of_a_model_do_not_mix(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Edited after rot and perm, and measured again on perm: rot is left out, and told."""
    old = [versioned("Mine", "rot", "1", "2026-01-01"), versioned("Mine", "perm", "1", "2026-01-01")]
    new, other = versioned("Mine", "perm", "2", "2026-01-02"), versioned("FC2L", "rot", "1", "2026-01-01")
    store = Store(tmp_path)
    for one in (*old, new, other):
        store.put(one)
    assert {str(r["key"]) for r in store.records()} == {"Mineperm2", "FC2Lrot1"}
    assert {r["key"] for r in ProbeResult.load(tmp_path).records} == {"Mineperm2", "FC2Lrot1"}
    assert "grammar or protocol: Mine on rot." in caplog.text
    assert [r["key"] for r in (ProbeResult([new]) + ProbeResult(old)).records] == ["Mineperm2"]
    store.put({**versioned("Mine", "rot", "3", "2026-01-03"), "failed": True})
    assert {r["key"] for r in store.records()} == {"Mineperm2", "FC2Lrot1"}  # what fails overrules nothing


def test_a_damaged_record_does_not_spoil_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path)
    store.put(record("good"))
    store.path("half").write_text("{half")
    store.path("alien").write_text('{"key": "alien"}')
    assert [r["key"] for r in store.records()] == ["good"]
    assert "half.json" in caplog.text
    assert "alien.json" in caplog.text


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="--out"):
        Store(tmp_path / "file" / "results").prepare()


def test_prepare_leaves_nothing_behind(tmp_path: Path) -> None:
    Store(tmp_path).prepare()
    assert not list((tmp_path / "records").iterdir())


def test_only_stale_litter_is_swept(tmp_path: Path) -> None:
    Store(tmp_path).prepare()
    old, new = tmp_path / "records" / ".a.json.x.tmp", tmp_path / "records" / ".b.json.y.tmp"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    Store(tmp_path).prepare()
    assert (old.exists(), new.exists()) == (False, True)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(record("k"))
    store.path("k").write_text("{half")
    with pytest.raises(StoreError, match=r"k\.json"):
        store.get("k")


@pytest.mark.parametrize(
    ("rerun", "expected"),
    [("missing", {"new"}), ("failed", {"new", "bad"}), ("always", {"new", "bad", "good"}), ("never", set())],
)
def test_what_is_run_again(tmp_path: Path, rerun: str, expected: set[str]) -> None:
    store = Store(tmp_path)
    store.put(record("good"))
    store.put(record("bad", failed=True))
    assert to_run(["good", "bad", "new"], store, rerun) == expected


def test_unknown_rerun(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="missing, failed, always, never"):
        to_run([], Store(tmp_path), "sometimes")
