"""Results from an earlier commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from icy.core.errors import StoreError
from icy.records.versions import at_revision, revision_of


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
