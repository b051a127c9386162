"""Arrays of NumPy, and files of PyTorch."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import InvalidSettingError, StoreError
from icy.languages.readers import File, Found, find, read_table

# -- arrays of NumPy in npz and npy files ------------------------------------------------------------------------------


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


# -- files of torch.save -----------------------------------------------------------------------------------------------


TENSORS, SYMBOLS_OF_TENSORS = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[3, 4, 5], [5, 4, 3]])
LISTS = {"meanings": TENSORS.tolist(), "messages": SYMBOLS_OF_TENSORS.tolist()}


def read_saved(folder: Path, held: Any, meanings: tuple[str, ...] = (), messages: tuple[str, ...] = ()) -> Found:
    torch.save(held, folder / "said.pt")
    found = find(File(folder / "said.pt", meanings, messages))
    assert isinstance(found, Found)
    return found


def listed(found: Found) -> dict[str, Any]:
    return {name: getattr(column, "tolist", lambda column=column: column)() for name, column in found.columns.items()}


@pytest.mark.parametrize(
    "held",
    [
        {"meanings": TENSORS, "messages": SYMBOLS_OF_TENSORS},
        {"messages": SYMBOLS_OF_TENSORS.numpy(), "meanings": TENSORS.tolist(), "config": {"lr": 0.1}, "step": 3},
        (TENSORS, SYMBOLS_OF_TENSORS),
        [TENSORS, SYMBOLS_OF_TENSORS.tolist()],
    ],
)
def test_tensors_by_usual_names_and_pairs(tmp_path: Path, held: Any) -> None:
    found = read_saved(tmp_path, held)
    assert listed(found) == LISTS
    assert found.remarks == (["not used: config.lr and step"] if len(held) > 2 else [])


def test_named_tensors(tmp_path: Path) -> None:
    held = {"x": TENSORS, "out": {"y": SYMBOLS_OF_TENSORS}, "weights": torch.ones(7)}
    found = read_saved(tmp_path, held, ("x",), ("out.y",))
    assert listed(found) == {"x": LISTS["meanings"], "out.y": LISTS["messages"]}
    with pytest.raises(InvalidSettingError, match=r"x \(2 rows\), out.y \(2 rows\) and weights .* --meaning-columns"):
        read_saved(tmp_path, held)
    with pytest.raises(InvalidSettingError, match="'z' is not one of them; choose by --meaning-columns"):
        read_table(tmp_path / "said.pt", meaning_columns="z", message_columns="out.y")


@pytest.mark.parametrize(
    "tensor",
    [
        SYMBOLS_OF_TENSORS.to_sparse(),
        SYMBOLS_OF_TENSORS.to(torch.bfloat16).requires_grad_(),
        torch.nested.nested_tensor([SYMBOLS_OF_TENSORS[0], SYMBOLS_OF_TENSORS[1]]),
    ],
)
def test_tensors_of_all_kinds(tmp_path: Path, tensor: torch.Tensor) -> None:
    read_saved(tmp_path, {"meanings": TENSORS, "messages": tensor})
    assert read_table(tmp_path / "said.pt").messages.tolist() == LISTS["messages"]


@pytest.mark.parametrize(
    "held", [3, "text", [TENSORS], [1, 2, 3], {"x": torch.ones(3), "y": torch.ones(2)}, torch.tensor(3)]
)
def test_other_contents_are_refused(tmp_path: Path, held: Any) -> None:
    with pytest.raises(InvalidSettingError):
        read_saved(tmp_path, held)


def test_pickles_are_never_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "touched",))

    for name in ("x", "x.pkl", "x.pt"):
        (tmp_path / name).write_bytes(pickle.dumps({"message": Evil()}))
        with pytest.raises(StoreError, match="never run"):
            find(File(tmp_path / name))
    torch.save({"messages": np.array([Evil(), 1], dtype=object)}, tmp_path / "x.pt")
    with pytest.raises(StoreError, match="never run"):
        find(File(tmp_path / "x.pt"))
    assert not (tmp_path / "touched").exists()
