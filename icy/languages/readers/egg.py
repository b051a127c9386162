"""Interactions that EGG saves: by InteractionSaver, one file per GPU, or by torch.save."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from icy.core.errors import InvalidSettingError
from icy.core.text import listed, natural
from icy.languages.containers import Array, Entries, unpacked
from icy.languages.storage import reading
from icy.languages.values import values_of

from .columns import LENGTHS, NO_ATTRIBUTES, joined, messages_by_name, of_equal_length, opened
from .found import File, Found
from .torch_files import interaction_module, is_pickle, load

KIND = "interactions of EGG"
SAVED = "interaction_gpu[0-9]*"  # files of InteractionSaver
MOST_LISTED = 8
PROBABLY = 0.02  # largest distance of 8-bit numbers from a sum of 1
LENGTH_ERROR = 1e-3  # lengths may be sums of probabilities, such as 2.999999
CUT = "messages end at message_length"
RELAXED = "tokens are the largest entries of relaxed symbols (Gumbel-softmax)"
ENDS = "0 ends messages in EGG, and counts as a token here unless eos=0 (--eos 0) leaves it out"
UNHEARD = "0 ends messages in EGG, and eos=0 (--eos 0) leaves out the symbols after it, which receivers ignore"


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
    for own in files:
        module = interaction_module(own) if is_pickle(own) else ""
        if not module and not folder:
            return None
        held = load(own.path, (_Interaction, f"{module}.Interaction"))
        batches = held if isinstance(held, list) else [held]
        if not all(isinstance(one, _Interaction) for one in batches):
            raise InvalidSettingError(f"'{own.path}' holds a {type(held).__name__}; save one Interaction in a file.")
        parts += [opened(vars(one)) for one in batches]
    if not parts:
        return None
    with reading(f"'{file.path}' cannot be read as {KIND}"):
        tensors = joined(parts)
        usual = "labels" if tensors.get("sender_input") is None is not tensors.get("labels") else "sender_input"
        meanings, messages = file.meaning_columns or (usual,), file.message_columns or ("message",)
        named = File(file.path, meanings, messages)
        found = of_equal_length(named, {n: t for n, t in tensors.items() if t is not None}, KIND, "tensor")
        remarks = [f"{len(files)} files joined: {listed([own.path.name for own in files])}"] if len(files) > 1 else []
    return with_fields(Found(found.columns, KIND, meanings, messages, remarks=[*remarks, *found.remarks]), file)


def _files_of_epoch(folder: Path) -> list[Path]:
    """Return the files of a folder, which must be of one epoch, in the order of GPUs."""
    saved = list(folder.glob(SAVED)) or list(folder.rglob(SAVED))
    folders = sorted({path.parent for path in saved}, key=lambda path: natural(str(path)))
    if len(folders) > 1:
        choices = listed([f"'{path}'" for path in folders], "or", MOST_LISTED)
        raise InvalidSettingError(f"'{folder}' holds {KIND} of {len(folders)} epochs; choose one: {choices}.")
    return sorted(saved, key=lambda path: natural(path.name))


def with_fields(found: Found, file: File) -> Found:
    """Read columns with the names of EGG's fields like the fields of an Interaction, in a file of any format.

    Relaxed symbols become tokens, and messages end at `message_length`. Other columns are returned unchanged.
    """
    fields = {name.rpartition(".")[2].lower() for name in found.columns}
    if found.lengths is not None or not (found.what == KIND or fields & {"sender_input", *NO_ATTRIBUTES}):
        return found
    columns, lengths, remarks = dict(found.columns), None, list(found.remarks)
    if found.what != KIND:  # an Interaction lacks its missing fields
        columns = {n: c for n, c in columns.items() if not isinstance(c, list) or any(e is not None for e in c)}
    for name in file.message_columns or found.messages or messages_by_name(list(columns)):
        if name not in columns:
            continue
        own = name.rpartition(".")[0]
        length = next((c for c in columns if c.rpartition(".")[0] == own and c.lower().endswith(LENGTHS)), None)
        symbols = _symbols(columns[name])
        if symbols is not None:
            symbols, relaxed = discrete(symbols)
            columns[name], remarks = symbols, [*([RELAXED] if relaxed else []), *remarks]
        if length is not None and (symbols is None or symbols.dtype.kind in "iu"):
            lengths = values_of(np.asarray(unpacked(columns[length], "Lengths")).ravel().tolist())
            fraction = any(isinstance(n, float) and n % 1 > LENGTH_ERROR and n % 1 < 1 - LENGTH_ERROR for n in lengths)
            remarks.append(f"{CUT}{' rounded down' if fraction else ''}")  # as EGG does
        elif symbols is not None and symbols.dtype.kind in "iu":
            ended = symbols.size and (symbols == 0).any(1).all()
            remarks += [UNHEARD] if has_tokens_after_end(symbols) else [ENDS] if ended else []
    return replace(found, columns=columns, lengths=lengths, remarks=remarks)


def _symbols(entries: Entries) -> Array | None:
    """Return messages as an array of numbers; None if they are texts, differ in length or have missing values."""
    held = unpacked(entries, "Messages")
    if isinstance(held, list) and any(isinstance(row, list) for row in held):
        with suppress(ValueError):
            held = np.array(held)
    return held if isinstance(held, np.ndarray) and held.dtype.kind in "iuf" else None


def discrete(messages: Array) -> tuple[Array, bool]:
    """Convert messages of EGG to tokens [N, S]; also return whether they were vectors of symbols, [N, V] or [N, S, V].

    Real-valued messages are returned unchanged.
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
    if messages.dtype.kind == "f" and messages.ndim < 3 and np.all(messages == np.floor(messages)):
        messages = messages.astype(np.int64)
    return (messages if messages.ndim > 1 else messages[:, None]), False


def has_tokens_after_end(messages: Array) -> bool:
    """Return whether tokens other than 0 follow a 0."""
    if messages.ndim != 2 or messages.dtype.kind not in "iu":
        return False
    return bool(np.any((messages != 0) & np.logical_or.accumulate(messages == 0, axis=1)))
