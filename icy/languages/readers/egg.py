"""Interactions that EGG saves: by InteractionSaver, a file for each GPU, or by torch.save."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError
from icy.core.text import counted, listed, natural
from icy.languages.storage import reading

from .found import File, Found
from .names import opened
from .torch_files import array_of, interaction_module, is_pickle, load

WHAT = "interactions of EGG"
SAVED = "interaction_gpu[0-9]*"  # files of InteractionSaver
MOST_LISTED = 8
PROBABLY = 0.02  # how far numbers of 8 bits may be from a sum of 1
RELAXED = "tokens are the largest entries of relaxed symbols (Gumbel-softmax)"
UNHEARD = "0 ends messages in EGG, and symbols after it are not heard, but are kept here unless 0 is named as eos"


class _Interaction:
    """Stand-in for EGG's class Interaction; its fields become attributes."""


def read(file: File) -> Found | None:
    """Read the interactions of a file, or of all files of an epoch, in the order of GPUs.

    A tensor is a column: `sender_input`, `message`, `aux_input.attributes` and so on. Messages end at
    `message_length`, and relaxed symbols become tokens.

    Raises:
        InvalidSettingError: fields are missing, empty or do not fit, or a folder holds several epochs.
        StoreError: a file is damaged.
    """
    folder = file.path.is_dir()
    files = [File(path) for path in _files_of_epoch(file.path)] if folder else [file]
    parts = []
    remarks: dict[str, None] = {}  # in order, without repetition
    for own in files:
        module = interaction_module(own) if is_pickle(own) else ""
        if not module and not folder:
            return None
        held = load(own.path, (_Interaction, f"{module}.Interaction"))
        with reading(f"'{own.path}' cannot be read as {WHAT}"):
            columns, said = _columns(vars(held), file)
        parts.append(columns)
        remarks |= dict.fromkeys(said)
    if not parts:
        return None
    names = [name for name in parts[0] if all(name in part for part in parts)]
    if len(parts) > 1:
        remarks[f"{len(parts)} files joined: {listed([own.path.name for own in files])}"] = None
    meanings, messages = _chosen(file)
    joined = {name: _joined([part[name] for part in parts]) for name in names}
    return Found(joined, WHAT, meanings, messages, remarks=list(remarks))


def _chosen(file: File) -> tuple[Sequence[str], Sequence[str]]:
    return file.meaning_columns or ("sender_input",), file.message_columns or ("message",)


def _files_of_epoch(folder: Path) -> list[Path]:
    """Return the files of the one epoch that is in a folder, in the order of GPUs; none if it holds none."""
    saved = list(folder.glob(SAVED)) or list(folder.rglob(SAVED))
    folders = sorted({path.parent for path in saved}, key=lambda path: natural(str(path)))
    if len(folders) > 1:
        more = [f"{len(folders) - MOST_LISTED} more"] if len(folders) > MOST_LISTED else []
        choices = listed([*(f"'{path}'" for path in folders[:MOST_LISTED]), *more], "or")
        raise InvalidSettingError(f"'{folder}' holds {WHAT} of {len(folders)} epochs; choose one: {choices}.")
    return sorted(saved, key=lambda path: natural(path.name))


def _columns(held: dict[str, Any], file: File) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of one file by name, with messages as tokens, and remarks."""
    tensors = {name: value for name, value in opened(held).items() if getattr(value, "ndim", 0)}
    meanings, messages = _chosen(file)
    there = listed(list(tensors)) or "none"
    for name in (*meanings, *messages):
        if name not in tensors:
            advice = "" if file.meaning_columns or name in messages else "; choose the one that holds the meanings by "
            advice += "--meaning-columns (in Python, meaning_columns=)" if advice else ""
            raise InvalidSettingError(f"The interactions have no tensor '{name}'; they have {there}{advice}.")
    sizes = {name: len(tensors[name]) for name in (*meanings, *messages)}
    if len(set(sizes.values())) > 1 or not all(sizes.values()):
        rows = listed([f"{name} ({counted(size, 'row')})" for name, size in sizes.items()])
        raise InvalidSettingError(f"The interactions hold no table of meanings and messages: {rows}.")
    size = sizes[messages[0]]
    columns: dict[str, Any] = {name: array_of(t) for name, t in tensors.items() if len(t) == size}
    remarks = []
    for name in messages:
        columns[name], relaxed = discrete(columns[name])
        remarks += [RELAXED] if relaxed else []
        if held.get("message_length") is not None and columns[name].dtype.kind in "iu":
            columns[name] = _cut(columns[name], array_of(held["message_length"]))
            remarks.append("messages end at message_length")
        elif has_tokens_after_end(columns[name]):
            remarks.append(UNHEARD)
    return columns, remarks


def discrete(messages: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    """Return messages of EGG as tokens [N, S], and whether they were relaxed or one-hot symbols [N, V] or [N, S, V].

    Real-valued messages are returned as they are.
    """
    if messages.dtype.kind == "f" or messages.ndim == 3:
        with np.errstate(invalid="ignore", over="ignore"):
            totals = messages.sum(-1, dtype=float)
        if (
            messages.ndim > 1 < messages.shape[-1]
            and messages.min() >= -PROBABLY
            and np.all(abs(totals - 1) < PROBABLY)
        ):
            tokens = messages.argmax(-1)
            return (tokens if tokens.ndim == 2 else tokens[:, None]), True
    if messages.dtype.kind == "f" and messages.ndim <= 2 and np.all(messages == np.floor(messages)):
        messages = messages.astype(np.int64)
    return (messages if messages.ndim > 1 else messages[:, None]), False


def has_tokens_after_end(messages: NDArray[Any]) -> bool:
    """Return whether other tokens than 0 follow a 0."""
    if messages.ndim != 2 or messages.dtype.kind not in "iu":
        return False
    return bool(np.any((messages != 0) & np.logical_or.accumulate(messages == 0, axis=1)))


def _cut(messages: NDArray[Any], lengths: NDArray[Any]) -> Any:
    """Return the first `lengths` [N] tokens of messages [N, S]: an array, or a list of arrays of several lengths."""
    whole = np.floor(lengths.astype(float) + 1e-3)  # expected lengths are sums of probabilities, such as 2.999999
    if whole.shape != (len(messages),) or not np.all((whole >= 0) & (whole <= messages.shape[1])):
        raise InvalidSettingError(
            f"message_length, of shape {lengths.shape}, does not give the length of each of the {len(messages)} "
            f"messages of up to {messages.shape[1]} tokens."
        )
    if np.all(whole == whole[0]):
        return messages[:, : int(whole[0])]
    return [row[: int(n)] for row, n in zip(messages, whole, strict=True)]


def _joined(parts: list[Any]) -> Any:
    """Return the rows of several files: an array if they have one shape, else a list."""
    if all(isinstance(part, np.ndarray) and part.shape[1:] == parts[0].shape[1:] for part in parts):
        return np.concatenate(parts)
    return parts[0] if len(parts) == 1 else [row for part in parts for row in part]
