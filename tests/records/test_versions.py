"""Tables show the version in the plan, otherwise the version that was saved last."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

import icy
from icy.core.entry import Entry
from icy.core.errors import StoreError
from icy.core.registry import registry
from icy.experiments.results import ProbeResult
from icy.records.long_table import write_tables
from icy.records.record import Record
from icy.records.store import Store
from icy.records.versions import at_revision, newest, registered_version, revision_of, versions_of
from tests.helpers import on_file

MINE = ("model", "sender", "sender/Mine")


def of_version(version: str, **changes: object) -> Record:
    return on_file(model="sender/Mine", versions={"model": version}, **changes)


def shown(records: list[Record], asked: str | None = None) -> list[str]:
    return [r["versions"]["model"] for r in newest(records, {} if asked is None else {MINE: asked})]


def test_plan_versions_are_preferred_to_the_last_saved_version() -> None:
    records = [of_version("1", filed=3), of_version("2", filed=1), of_version("3", filed=2, failed=True)]
    assert shown(records) == ["1"]
    assert shown(records, "2") == ["2"]
    assert shown(records, "3") == ["1"]  # a failure does not replace a result
    assert shown(records[2:], "1") == ["3"]  # there is no other record
    assert shown(records, "4") == ["1"]


def test_registered_versions_are_preferred_to_the_last_saved_version() -> None:
    records = [of_version("1", filed=3), of_version("2", filed=1)]
    with registry.holding(Entry("sender", "Mine", None, "", "", version=2)):
        assert registered_version(MINE) == "2"
        assert shown(records) == ["2"]
        assert shown(records, "1") == ["1"]
    assert registered_version(MINE) is None
    assert shown(records) == ["1"]


def test_registered_versions_equal_versions_of_jobs(tiny: icy.ProbeResult) -> None:
    """Also for pairs, chains, protocols, and kinds of jobs."""
    old = ProbeResult.load(Path(__file__).parent / "version-0.1")
    for record in (*tiny.records, *(r for r in old.records if r["side"] == "pair")):
        for part, version in versions_of(record).items():
            assert version is None or registered_version(part) == version, part
    assert registered_version(("grammar", "rot+perm")) == "1+1"
    assert registered_version(("probe", "sender", "sender/FC1L")) == registry.get("probe", "job").full_version
    nothing = ("model", "pair", "FC1L"), ("grammar", "rot+"), ("grammar", "none"), ("protocol", "x"), ("x", "y", "z")
    for part in nothing:
        assert registered_version(part) is None


def test_an_edited_plug_in_is_shown_independently_of_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an edit with the clock set back a year, and after undoing it, tables show the results of the probe."""
    words = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "target": 0.5, "workers": 1}
    now = time.time_ns()

    def probe(version: int, clock: int) -> set[str]:
        entry = registry.get("FC1L", "sender")
        monkeypatch.setattr(time, "time_ns", lambda: clock)
        monkeypatch.setattr("icy.training.job.now", lambda: datetime.fromtimestamp(clock / 1e9, UTC).isoformat())
        with registry.holding(replace(entry, name="Mine", aliases=(), version=version)):
            found = icy.probe("sender/Mine", "perm", **words, out=tmp_path)  # type: ignore[arg-type]
            keys = {r["key"] for r in found.records}
            assert len(keys) == 2
            for table in (pd.read_csv(tmp_path / "results.csv"), pd.read_parquet(tmp_path / "results.parquet")):
                assert set(table["key"]) == keys
            assert {r["key"] for r in ProbeResult.load(tmp_path).records} == keys
        return keys

    first = probe(1, now)
    second = probe(2, now - 365 * 24 * 3600 * 10**9)
    assert {r["key"] for r in ProbeResult.load(tmp_path).records} == second  # also without a registered plug-in
    assert probe(1, now) == first != second  # nothing was trained, and the tables match the shown results


def test_tables_show_plan_versions(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for version in "12":
        store.put(of_version(version))
    store.plan_versions = {MINE: "1"}
    csv, parquet = write_tables(store)
    assert pd.read_csv(csv)["key"].tolist() == pd.read_parquet(parquet)["key"].tolist() == [of_version("1")["key"]]


# -- results from an earlier commit ------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a file and a folder that were committed twice, and changed afterwards."""
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(tmp_path)]
    subprocess.run([*run, "init", "-q"], check=True)
    (tmp_path / "results").mkdir()
    for text in ("one", "two"):
        (tmp_path / "table.csv").write_text(text)
        (tmp_path / "results" / "a [1].json").write_text(text)
        subprocess.run([*run, "add", "-A"], check=True)
        subprocess.run([*run, "commit", "-qm", text], check=True)
    (tmp_path / "table.csv").write_text("three")
    return tmp_path


def test_files_and_folders_are_read_at_a_revision(checkout: Path) -> None:
    for revision, text in (("HEAD", "two"), ("HEAD~1", "one")):
        with at_revision(checkout / "table.csv", revision) as path:
            assert (path.name, path.read_text()) == ("table.csv", text)
        with at_revision(checkout / "results", revision) as path:
            assert [one.read_text() for one in path.iterdir()] == [text]
    assert (checkout / "table.csv").read_text() == "three"


@pytest.mark.parametrize(
    ("name", "revision", "said"),
    [
        ("table.csv", "HEAD~7", "table.csv does not exist at the revision HEAD~7"),
        ("nothing.csv", "HEAD", "nothing.csv does not exist at"),
        ("*.csv", "HEAD", "\\*.csv does not exist at"),
        ("table.csv", "--remote=elsewhere", "table.csv does not exist at the revision --remote"),
    ],
)
def test_missing_files_and_revisions_give_an_error(checkout: Path, name: str, revision: str, said: str) -> None:
    with pytest.raises(StoreError, match=said), at_revision(checkout / name, revision):
        pass


def test_a_name_that_exists_has_no_revision(tmp_path: Path) -> None:
    odd = tmp_path / "a@b"
    odd.touch()
    assert revision_of(str(odd)) == (str(odd), None)
    assert revision_of("a@b") == ("a", "b")
    assert revision_of("plain") == ("plain", None)
    assert revision_of("@b") == ("@b", None)
