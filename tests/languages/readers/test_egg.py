"""Interactions of EGG: files, and folders of InteractionSaver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.languages.readers import File, Found, egg, read_table, torch_files
from tests.languages.helpers import GRID, SYMBOLS, Save


def read(path: Path, *meanings: str) -> Found:
    found = egg.read(File(path, meanings))
    assert found is not None
    return found


def rows(messages: Any) -> list[list[int]]:
    return [[int(token) for token in row] for row in messages]


@pytest.mark.parametrize("old", [False, True])  # before PyTorch 1.6
@pytest.mark.parametrize("module", ["egg.core.interaction", "interaction", "mine.egg.interactions"])  # copies of EGG
def test_fields_are_columns(save: Save, old: bool, module: str) -> None:
    held = {"aux_input": {"attributes": torch.tensor(GRID)}, "aux": {"acc": torch.ones(9), "loss": 0.5}}
    path = save("saved", module, old=old, **held, receiver_output=torch.zeros(9, 2))
    found = read(path)
    assert list(found.columns) == ["sender_input", "aux_input.attributes", "message", "receiver_output", "aux.acc"]
    assert (found.meanings, found.messages) == (("sender_input",), ("message",))
    assert found.columns["sender_input"].tolist() == GRID
    assert read(path, "aux_input.attributes").meanings == ("aux_input.attributes",)
    assert torch_files.read(File(path)) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_relaxed_symbols_become_tokens(save: Save, dtype: torch.dtype) -> None:
    soft = torch.nn.functional.one_hot(SYMBOLS, 7).to(dtype) * 4
    found = read(save(message=soft.softmax(-1)))
    assert rows(found.columns["message"]) == SYMBOLS.tolist()
    assert found.remarks == [egg.RELAXED, egg.ENDS]
    one_symbol = read(save(message=soft[:, 1].softmax(-1), message_length=torch.ones(9)))
    assert rows(one_symbol.columns["message"]) == SYMBOLS[:, 1:2].tolist()


def test_vectors_that_are_no_symbols_stay(save: Save) -> None:
    vectors = torch.randn(9, 4)  # of continuous communication, where EGG gives lengths of 1
    assert read(save(message=vectors, message_length=torch.ones(9))).columns["message"].shape == (9, 4)
    assert rows(read(save(message=SYMBOLS.float())).columns["message"]) == SYMBOLS.tolist()
    assert rows(read(save(message=SYMBOLS[:, 0])).columns["message"]) == SYMBOLS[:, :1].tolist()


@pytest.mark.parametrize("short", [0.0, 1e-6])  # lengths of relaxed symbols are sums of probabilities
def test_messages_end_at_their_lengths(save: Save, short: float) -> None:
    lengths = torch.arange(9) % 3 + 1
    found = read(save(message_length=lengths - short))
    assert rows(found.columns["message"]) == [row[:n] for row, n in zip(SYMBOLS.tolist(), lengths, strict=True)]
    assert found.remarks == ["messages end at message_length"]
    assert read(save(message_length=lengths - 0.4)).remarks == ["messages end at message_length rounded down"] or short
    assert read(save(message=SYMBOLS.roll(1, 1))).remarks == [egg.UNHEARD]


def test_tensors_of_all_kinds(save: Save) -> None:
    for tensor in (
        torch.tensor(GRID).to_sparse(),
        torch.tensor(GRID, dtype=torch.float).requires_grad_(),
        torch.nn.Parameter(torch.tensor(GRID, dtype=torch.half)),
        torch.tensor(GRID, dtype=torch.uint8),
        torch.tensor(GRID).T.contiguous().T,
    ):
        assert read(save(sender_input=tensor)).columns["sender_input"].tolist() == GRID


def test_files_of_an_epoch_are_joined_in_the_order_of_gpus(save: Save) -> None:
    for gpu in (10, 2, 0):
        path = save(f"interactions/train/epoch_50/interaction_gpu{gpu}", sender_input=torch.full((9, 2), gpu))
    for folder in path.parents[:3]:
        found = read(folder)
        assert found.columns["sender_input"][:, 0].tolist() == [0] * 9 + [2] * 9 + [10] * 9
        assert rows(found.columns["message"]) == SYMBOLS.tolist() * 3
        assert found.remarks[0] == "3 files joined: interaction_gpu0, interaction_gpu2 and interaction_gpu10"
    assert len(read(path).columns["message"]) == 9  # one of them alone
    save("interactions/train/epoch_50/interaction_gpu1", sender_input=None, receiver_input=torch.tensor(GRID))
    with pytest.raises(InvalidSettingError, match="no tensor 'sender_input'"):
        read(path.parent)


def test_several_epochs_are_choices(save: Save, tmp_path: Path) -> None:
    for place in ("train/epoch_50", "train/epoch_9", "validation/epoch_50"):
        save(f"interactions/{place}/interaction_gpu0")
    with pytest.raises(InvalidSettingError, match=r"of 3 epochs; choose one: .*epoch_9', .*epoch_50' or .*validation"):
        read(tmp_path)
    (tmp_path / "empty").mkdir()
    assert egg.read(File(tmp_path / "empty")) is None
    with pytest.raises(StoreError):
        read_table(tmp_path / "empty")


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ({"message": None}, "no tensor 'message', but sender_input"),
        ({"sender_input": None}, "no tensor 'sender_input', but .* --meaning-columns"),
        ({"message": torch.tensor(3)}, "no tensor 'message'"),
        ({"message": SYMBOLS[:4]}, r"sender_input \(9 rows\) and message \(4 rows\)"),
        ({"message": SYMBOLS[:0], "sender_input": torch.zeros(0, 2)}, "no rows"),
        ({"message_length": torch.ones(5)}, "message_length, of shape .*5.* 9 messages of up to 3"),
        ({"message_length": torch.full((9,), 4)}, "of up to 3 tokens"),
        ({"message_length": torch.full((9,), float("nan"))}, "of up to 3 tokens|message_length"),
        ({"aux": {"path": Path("x")}}, "more than tensors, arrays and plain values, which icy never runs"),
    ],
)
def test_inconsistent_fields_are_refused_in_a_sentence(save: Save, held: dict[str, Any], why: str) -> None:
    with pytest.raises(IcyError, match=why) as told:
        read(save(**held))
    assert "\n" not in str(told.value)


def test_files_that_are_no_interactions(tmp_path: Path, save: Save) -> None:
    whole = save().read_bytes()
    for content in (whole[:300], whole[:-30], b"\x80\x02", b"PK\x03\x04"):
        (tmp_path / "interaction_gpu7").write_bytes(content)
        with pytest.raises(StoreError, match="cannot be read"):
            read_table(tmp_path / "interaction_gpu7")
