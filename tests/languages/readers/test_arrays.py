"""Arrays of NumPy in npz and npy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icy.core.errors import InvalidSettingError, StoreError
from icy.languages.readers import File, Found, find, read_table

MEANINGS, MESSAGES = np.array([[0, 1], [1, 0]]), np.array([[3, 4, 5], [5, 4, 3]])


def read(path: Path, meanings: tuple[str, ...] = (), messages: tuple[str, ...] = ()) -> Found:
    found = find(File(path, meanings, messages))
    assert isinstance(found, Found)
    return found


@pytest.mark.parametrize("name", ["said.npz", "said"])
def test_arrays_of_one_length(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        np.savez_compressed(file, messages=MESSAGES, meanings=MEANINGS, seed=np.array(3))
    found = read(tmp_path / name)
    assert {name: column.tolist() for name, column in found.columns.items()} == {
        "messages": MESSAGES.tolist(),
        "meanings": MEANINGS.tolist(),
    }
    assert found.remarks == ["not used: seed"]


def test_named_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "said.npz", MEANINGS, MESSAGES, np.ones(5))
    with pytest.raises(InvalidSettingError, match=r"arr_0 \(2 rows\), arr_1 .* --meaning-columns and"):
        read(tmp_path / "said.npz")
    found = read(tmp_path / "said.npz", ("arr_0",), ("arr_1",))
    assert {name: column.tolist() for name, column in found.columns.items()} == {
        "arr_0": MEANINGS.tolist(),
        "arr_1": MESSAGES.tolist(),
    }
    table = read_table(tmp_path / "said.npz", meaning_columns="arr_0", message_columns="arr_1")
    assert table.messages.tolist() == MESSAGES.tolist()


def test_arrays_of_three_dimensions_stay(tmp_path: Path) -> None:
    np.savez(tmp_path / "said.npz", meanings=MEANINGS, messages=np.eye(6)[MESSAGES])
    assert read(tmp_path / "said.npz").columns["messages"].shape == (2, 3, 6)
    assert read_table(tmp_path / "said.npz").messages.tolist() == MESSAGES.tolist()


def test_a_structured_array_has_columns(tmp_path: Path) -> None:
    rows = np.array([("red", 3, "ab"), ("blue", 4, "ba")], dtype=[("hue", "U5"), ("size", int), ("message", "U2")])
    np.save(tmp_path / "said.npy", rows)
    assert list(read(tmp_path / "said.npy").columns) == ["hue", "size", "message"]
    assert read_table(tmp_path / "said.npy").attribute_names == ("hue", "size")


@pytest.mark.parametrize("messages", [MESSAGES, np.array(["ab", "ba"])])
def test_an_array_alone_holds_messages(tmp_path: Path, messages: Any) -> None:
    np.save(tmp_path / "said.npy", messages)
    np.savez(tmp_path / "said.npz", messages=messages)
    for name in ("said.npy", "said.npz"):
        assert read(tmp_path / name).columns["messages"].tolist() == messages.tolist()
        assert read_table(tmp_path / name).attributes == 0


def test_python_objects_are_refused(tmp_path: Path) -> None:
    ragged = np.array([[1], [2, 3]], dtype=object)
    np.save(tmp_path / "said.npy", ragged, allow_pickle=True)
    np.savez(tmp_path / "said.npz", meanings=MEANINGS, messages=ragged)
    for name in ("said.npy", "said.npz"):
        with pytest.raises(InvalidSettingError, match=r"holds Python objects.* as JSON lines, as in"):
            read(tmp_path / name)


@pytest.mark.parametrize("array", [np.array(3), np.zeros((0, 2))])
def test_arrays_without_rows(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "said.npy", array)
    np.savez(tmp_path / "said.npz", messages=array)
    for name in ("said.npy", "said.npz"):
        with pytest.raises(InvalidSettingError):
            read(tmp_path / name)


def test_damaged_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "said.npz", meanings=MEANINGS, messages=MESSAGES)
    np.save(tmp_path / "said.npy", MESSAGES)
    for name in ("said.npz", "said.npy"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) * 2 // 3])
        with pytest.raises(StoreError, match="cannot be read"):
            read(tmp_path / name)
