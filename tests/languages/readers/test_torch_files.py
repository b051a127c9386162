"""Files of torch.save."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import InvalidSettingError, StoreError
from icy.languages.readers import File, Found, find, read_table

MEANINGS, MESSAGES = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[3, 4, 5], [5, 4, 3]])
LISTS = {"meanings": MEANINGS.tolist(), "messages": MESSAGES.tolist()}


def read(folder: Path, held: Any, meanings: tuple[str, ...] = (), messages: tuple[str, ...] = ()) -> Found:
    torch.save(held, folder / "said.pt")
    found = find(File(folder / "said.pt", meanings, messages))
    assert isinstance(found, Found)
    return found


def listed(found: Found) -> dict[str, Any]:
    return {name: getattr(column, "tolist", lambda column=column: column)() for name, column in found.columns.items()}


@pytest.mark.parametrize(
    "held",
    [
        {"meanings": MEANINGS, "messages": MESSAGES},
        {"messages": MESSAGES.numpy(), "meanings": MEANINGS.tolist(), "config": {"lr": 0.1}, "step": 3},
        (MEANINGS, MESSAGES),
        [MEANINGS, MESSAGES.tolist()],
    ],
)
def test_tensors_by_usual_names_and_pairs(tmp_path: Path, held: Any) -> None:
    found = read(tmp_path, held)
    assert listed(found) == LISTS
    assert found.remarks == (["not used: config.lr and step"] if len(held) > 2 else [])


def test_named_tensors(tmp_path: Path) -> None:
    held = {"x": MEANINGS, "out": {"y": MESSAGES}, "weights": torch.ones(7)}
    found = read(tmp_path, held, ("x",), ("out.y",))
    assert listed(found) == {"x": LISTS["meanings"], "out.y": LISTS["messages"]}
    with pytest.raises(InvalidSettingError, match=r"x \(2 rows\), out.y \(2 rows\) and weights .* --meaning-columns"):
        read(tmp_path, held)
    with pytest.raises(InvalidSettingError, match="'z' is not one of them; choose by --meaning-columns"):
        read_table(tmp_path / "said.pt", meaning_columns="z", message_columns="out.y")


def test_a_tensor_alone_holds_messages(tmp_path: Path) -> None:
    found = read(tmp_path, MESSAGES)
    assert (listed(found), found.meanings) == ({"messages": LISTS["messages"]}, ())
    assert read_table(tmp_path / "said.pt").attributes == 0


@pytest.mark.parametrize(
    "tensor",
    [
        MESSAGES.to_sparse(),
        MESSAGES.to(torch.bfloat16).requires_grad_(),
        torch.nested.nested_tensor([MESSAGES[0], MESSAGES[1]]),
    ],
)
def test_tensors_of_all_kinds(tmp_path: Path, tensor: torch.Tensor) -> None:
    read(tmp_path, {"meanings": MEANINGS, "messages": tensor})
    assert read_table(tmp_path / "said.pt").messages.tolist() == LISTS["messages"]


@pytest.mark.parametrize(
    "held", [3, "text", [MEANINGS], [1, 2, 3], {"x": torch.ones(3), "y": torch.ones(2)}, torch.tensor(3)]
)
def test_other_contents_are_refused(tmp_path: Path, held: Any) -> None:
    with pytest.raises(InvalidSettingError):
        read(tmp_path, held)


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
