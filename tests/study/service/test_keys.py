"""Tokens and keys."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from icy.core.errors import StoreError
from icy.study.service import open_study
from icy.study.service.studies import KEY_BYTES, Key, look_at_study, new_token
from tests.study.service.helpers import person, study


def test_tokens_are_128_random_bits_without_small_letters() -> None:
    found = {new_token() for _ in range(1000)}
    assert len(found) == 1000
    assert all(re.fullmatch("[0-9A-F]{32}", one) for one in found)


def test_a_key_is_private_and_permanent(tmp_path: Path) -> None:
    first, again = Key.of_file(tmp_path / "a.key"), Key.of_file(tmp_path / "a.key")
    assert first == again
    assert first != Key.of_file(tmp_path / "b.key")
    assert stat.S_IMODE((tmp_path / "a.key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_damaged_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.key").write_bytes(b"short")
    with pytest.raises(StoreError, match="is not a key"):
        Key.of_file(tmp_path / "a.key")


def test_a_missing_key_is_not_created_again(tmp_path: Path) -> None:
    """With a new key, people who come again would not be recognized, and could play twice."""
    of = study(tmp_path)
    person(of, "WORKER")
    of.database.close()
    (tmp_path / "studies.key").unlink()
    for opened in (open_study, look_at_study):
        with pytest.raises(StoreError, match="is missing; restore it"):
            opened(of.plan)
    assert not (tmp_path / "studies.key").exists()


def test_marks_depend_on_their_names_and_the_key() -> None:
    key, other = Key(b"a" * KEY_BYTES), Key(b"b" * KEY_BYTES)
    assert key.mark("x", 1) == key.mark("x", 1)
    assert len({key.mark("x", 1), key.mark("x", 2), key.mark("x1"), other.mark("x", 1)}) == 4
    assert key.matches(key.mark("x", 1), "x", 1)
    assert not key.matches(other.mark("x", 1), "x", 1)
    assert not key.matches("", "x", 1)
