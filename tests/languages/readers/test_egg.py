"""Interactions of EGG: files, and folders of InteractionSaver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.languages.readers import File, Found, egg, find, read_table
from icy.languages.readers.tables import _opened as opened
from icy.languages.table import Table
from icy.languages.tokens import PAD
from tests.languages.helpers import GRID, SYMBOLS, Save


def read(path: Path) -> Found:
    found = find(File(path))
    assert isinstance(found, Found)
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
    assert read_table(path, meaning_columns="aux_input.attributes").meanings.tolist() == GRID


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
    file = save(message_length=lengths - short)
    messages = [row[row >= 0].tolist() for row in read_table(file).messages]
    assert messages == [row[:n] for row, n in zip(SYMBOLS.tolist(), lengths, strict=True)]
    assert read(file).remarks == ["messages end at message_length"]
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
    with pytest.raises(InvalidSettingError, match="'sender_input' is not one of them"):
        read_table(path.parent)


def test_several_epochs_are_choices(save: Save, tmp_path: Path) -> None:
    for place in ("train/epoch_50", "train/epoch_9", "validation/epoch_50"):
        save(f"interactions/{place}/interaction_gpu0")
    with pytest.raises(InvalidSettingError, match=r"of 3 epochs; choose one: .*epoch_9', .*epoch_50' or .*validation"):
        read(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError):
        read_table(tmp_path / "empty")


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ({"message": None}, "has the column sender_input; 'message' is not one of them"),
        ({"sender_input": None}, "'sender_input' is not one of them; choose by --meaning-columns"),
        ({"message": torch.tensor(3)}, "'message' is not one of them"),
        ({"message": SYMBOLS[:4]}, r"sender_input \(9 rows\) and message \(4 rows\)"),
        ({"message": SYMBOLS[:0], "sender_input": torch.zeros(0, 2)}, "no rows"),
        ({"message_length": torch.ones(5)}, r"message \(9 rows\) and message_length \(5 rows\)"),
        ({"message_length": torch.full((9,), 4)}, "of up to 3 tokens"),
        ({"message_length": torch.full((9,), float("nan"))}, "of up to 3 tokens|message_length"),
        ({"aux": {"path": Path("x")}}, "more than tensors, arrays and plain values, which icy never runs"),
    ],
)
def test_inconsistent_fields_are_refused_in_a_sentence(save: Save, held: dict[str, Any], why: str) -> None:
    with pytest.raises(IcyError, match=why) as told:
        read_table(save(**held))
    assert "\n" not in str(told.value)


def test_files_that_are_no_interactions(tmp_path: Path, save: Save) -> None:
    whole = save().read_bytes()
    for content in (whole[:300], whole[:-30], b"\x80\x02", b"PK\x03\x04"):
        (tmp_path / "interaction_gpu7").write_bytes(content)
        with pytest.raises(StoreError, match="cannot be read"):
            read_table(tmp_path / "interaction_gpu7")


LENGTHS = [3, 2, 1, 3, 3, 2, 3, 3, 2]
FIELDS: dict[str, Any] = {
    "sender_input": torch.tensor(GRID),
    "receiver_input": torch.rand(9, 2),
    "labels": torch.tensor(GRID).flip(1),
    "aux_input": {"game": torch.arange(9)},
    "message": SYMBOLS,
    "receiver_output": torch.rand(9, 3),
    "message_length": torch.tensor(LENGTHS),
    "aux": {"acc": torch.ones(9)},
}


def written(path: Path, fields: dict[str, Any]) -> Path:
    """Write fields of an Interaction into a dictionary, arrays or columns, by the suffix of the file."""
    plain = {n: v.numpy() if hasattr(v, "numpy") else v for n, v in opened(fields).items() if v is not None}
    lists = {n: v.tolist() for n, v in plain.items()}
    frame = pd.DataFrame(lists)
    if path.suffix == ".pt":
        torch.save(fields, path)
    elif path.name.endswith("batches.pth"):
        torch.save([{n: v[:4] for n, v in plain.items()}, {n: v[4:] for n, v in plain.items()}], path)
    elif path.suffix == ".npz":
        np.savez(path, **plain)
    elif path.suffix == ".json":
        path.write_text(json.dumps({**dict.fromkeys(fields), **lists}))
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps({**dict.fromkeys(fields), **row}) for row in frame.to_dict("records")))
    elif path.suffix == ".csv":
        spaces = frame["message"].map(lambda row: " ".join(map(str, row)))
        frame.assign(message=frame["message"] if "lists" in path.name else spaces).to_csv(path)
    else:
        frame.to_parquet(path)
    return path


NAMES = ("a.pt", "batches.pth", "a.npz", "a.json", "a.jsonl", "a.csv", "lists.csv", "a.parquet")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("absent", [(), ("sender_input",), ("sender_input", "aux_input", "receiver_output", "aux")])
def test_fields_in_other_containers_are_read_like_an_interaction(
    save: Save, tmp_path: Path, name: str, absent: tuple[str, ...]
) -> None:
    fields = {field: None if field in absent else value for field, value in FIELDS.items()}
    of_class = read_table(save(**{**fields, "aux": fields["aux"] or {}}))
    table = read_table(written(tmp_path / name, fields))
    assert (
        table.meanings.tolist()
        == of_class.meanings.tolist()
        == (FIELDS["labels"] if absent else torch.tensor(GRID)).tolist()
    )
    assert table.messages.tolist() == of_class.messages.tolist()
    assert table.lengths.tolist() == LENGTHS
    assert table.read_as.endswith("messages end at message_length")


@pytest.mark.parametrize("name", NAMES)
def test_lengths_are_no_attribute_next_to_own_names(tmp_path: Path, name: str) -> None:
    columns = {"size": torch.tensor(GRID)[:, 0], "hue": torch.tensor(GRID)[:, 1]}
    held = {**columns, "message": SYMBOLS, "message_length": FIELDS["message_length"]}
    table = read_table(written(tmp_path / name, held))
    assert table.attribute_names == ("size", "hue")
    assert table.lengths.tolist() == LENGTHS
    alone = read_table(written(tmp_path / name, {"message": SYMBOLS, "message_length": FIELDS["message_length"]}))
    assert (alone.attributes, alone.lengths.tolist()) == (0, LENGTHS)


@pytest.mark.parametrize("name", ["a.pt", "batches.pth", "a.npz", "a.json", "a.parquet"])
def test_relaxed_symbols_of_a_dictionary_become_tokens(tmp_path: Path, name: str) -> None:
    soft = (torch.nn.functional.one_hot(SYMBOLS, 7) * 9.0).softmax(-1)
    table = read_table(written(tmp_path / name, {**FIELDS, "message": soft}))
    assert table.lengths.tolist() == LENGTHS
    assert table.messages[0].tolist() == SYMBOLS[0].tolist()


def test_lengths_in_python() -> None:
    table = Table.of(GRID, SYMBOLS, lengths=FIELDS["message_length"])
    assert table.lengths.tolist() == LENGTHS
    gaps = Table.of([[0, None], [1, 1], [2, 0]], [[1, 2], [3, 4], [5, 6]], lengths=[2, 1, 2], missing="drop")
    assert gaps.messages.tolist() == [[3, PAD], [5, 6]]
    with pytest.raises(InvalidSettingError, match=r"message_length, of shape .2,., does not give the length"):
        Table.of(GRID, SYMBOLS, lengths=[1, 2])


# -- text that EGG's programs print ------------------------------------------------------------------------------------


NAMESPACE = "Namespace(lr=0.01, device=device(type='cpu'), values=[3, 3])\n"
EPOCH = '{"loss": 0.5, "acc": 0.25, "length": 3.0, "mode": "test", "epoch": 1}\n'
EXTERNAL = "0.0 1.0;9 9 0;3;0\n1.0 0.0;9 0;9;1\n"
OBJECTS = (
    f"{NAMESPACE}4.0,-1.0 -> 4.0,-1.0; 3.0,2.0 -> 3,0 -> 0 (label=0)\n1.0,3.0 -> 4.0,5.0; 1.0,3.0 -> 5 -> 1 (label=1)\n"
    "\nUnique target vectors seen by sender: 2\nUnique messages produced by sender: 2\n"
    "Messagses: 'msg' : msg_count: [('3,0', 1), ('5', 1)]\n\nAccuracy: 0.5"
)
CHANNEL = (
    f"the probs are:  [0.6 0.4]\n{EPOCH}input: 0 -> message: 4,3,0 -> output: 1\ninput: 1 -> message: 0 -> output: 0\n"
)
EVENTS = (
    "INPUTS\n[[0.0, 1.0], [1.0, 0.0]]\nLABELS\n[[1], [0]]\nMESSAGES\n[[4, 0, 2], [3, 1, 0]]\n"
    "OUTPUTS\n[[nan, -inf], [0.25, 0.75]]\n"
)


def read_log(folder: Path, text: str, name: str = "out.txt") -> Found:
    (folder / name).write_text(text)
    found = find(File(folder / name))
    assert isinstance(found, Found)
    return found


@pytest.mark.parametrize("before", ["", NAMESPACE, f"Launching game with parameters: {NAMESPACE}{EPOCH}# loading\n"])
def test_lines_of_external_game(tmp_path: Path, before: str) -> None:
    found = read_log(tmp_path, before + EXTERNAL)
    columns = {
        "input": [[0.0, 1.0], [1.0, 0.0]],
        "message": [[9, 9, 0], [9, 0]],
        "output": [[3], [9]],
        "label": [[0], [1]],
    }
    assert found.columns == columns
    first = before.count("\n") + 1
    assert (found.meanings, found.messages, found.places) == (("input",), ("message",), [first, first + 1])
    table = read_table(tmp_path / "out.txt", eos=0)
    assert table.messages.tolist() == [[9, 9], [9, -1]]


def test_a_table_with_a_header_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"m0;message;m1;score\n{EXTERNAL}")
    assert egg.read(File(tmp_path / "t.csv")) is None
    assert read_table(tmp_path / "t.csv", eos=0).attribute_names == ("m0", "m1")


def test_files_of_objects_game(tmp_path: Path) -> None:
    found = read_log(tmp_path, OBJECTS, "messages_[5, 5]_vocab_6.msg")
    assert found.columns["input"] == [[4.0, -1.0], [1.0, 3.0]]
    assert found.columns["message"] == [[3, 0], [5]]
    assert found.columns["candidates"] == [[[4.0, -1.0], [3.0, 2.0]], [[4.0, 5.0], [1.0, 3.0]]]
    assert found.places == [2, 3]


def test_lines_of_channel(tmp_path: Path) -> None:
    found = read_log(tmp_path, CHANNEL)
    assert found.columns == {"input": [[0], [1]], "message": [[4, 3, 0], [0]], "output": [[1], [0]]}


def test_validation_events(tmp_path: Path) -> None:
    found = read_log(tmp_path, f"{NAMESPACE}{EPOCH}{EVENTS}")
    assert found.columns["inputs"] == [[0.0, 1.0], [1.0, 0.0]]
    assert found.columns["messages"].tolist() == [[4, 0, 2], [3, 1, 0]]
    assert found.remarks == [egg.UNHEARD]
    assert read_table(tmp_path / "out.txt", meaning_columns="labels").meanings.tolist() == [[1], [0]]
    relaxed = EVENTS.replace("[[4, 0, 2], [3, 1, 0]]", "[[[0.1, 0.9], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]")
    found = read_log(tmp_path, f"{EPOCH}{EVENTS}{EPOCH}{relaxed}")
    assert found.columns["messages"].tolist() == [[1, 0], [1, 1]]
    assert found.remarks == [egg.RELAXED, "the last of 2 validations"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{EXTERNAL}1 0;3\n", "Line 3 does not have the form of EGG's external_game"),
        (f"{EXTERNAL}1 0;3 a;1;1\n", "Line 3 does not have"),
        (OBJECTS.replace("5 -> 1 (label=1)", "5 -> 1"), "Line 3 does not have the form of EGG's objects_game"),
        (f"{CHANNEL}input: 2 -> message: ", "Line 5 does not have the form of EGG's channel"),
        (EVENTS[:60], "Line 6 holds an incomplete list of MESSAGES"),
        (
            f"{EVENTS}MESSAGES\n[[1]]\n",
            r"same number of rows, but .* messages \(1 row\)",
        ),
        (f"{EVENTS}INPUTS\n[[1]]\n", "'messages' is not one of them"),
    ],
)
def test_damaged_logs_are_refused_by_their_lines(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "out.txt").write_text(text)
    with pytest.raises(InvalidSettingError, match=why):
        read_table(tmp_path / "out.txt")


@pytest.mark.parametrize("text", ["", "a;b;message\n1;2;ab\n", '{"a": 1}\n', "a -> b\n", "MESSAGES\n[[1]]\n"])
def test_other_texts(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.txt").write_text(text)
    assert egg.read(File(tmp_path / "t.txt")) is None
