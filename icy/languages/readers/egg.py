"""Interactions that EGG saves: by InteractionSaver, one file per GPU, or by torch.save."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from icy.core.errors import InvalidSettingError
from icy.core.text import listed, natural
from icy.languages.containers import Array, Entries, Values, unpacked
from icy.languages.storage import reading

from .columns import of_equal_length, opened
from .found import File, Found
from .torch_files import interaction_module, is_pickle, load

KIND = "interactions of EGG"
SAVED = "interaction_gpu[0-9]*"  # files of InteractionSaver
MOST_LISTED = 8
PROBABLY = 0.02  # largest distance of 8-bit numbers from a sum of 1
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
        if not isinstance(held, _Interaction):
            raise InvalidSettingError(f"'{own.path}' holds a {type(held).__name__}; save one Interaction in a file.")
        parts.append(opened(vars(held)))
    if not parts:
        return None
    with reading(f"'{file.path}' cannot be read as {KIND}"):
        tensors = {name: _joined([part.get(name) for part in parts]) for name in parts[0]}
        meanings, messages = file.meaning_columns or ("sender_input",), file.message_columns or ("message",)
        named = File(file.path, meanings, messages)
        found = of_equal_length(named, {n: t for n, t in tensors.items() if t is not None}, KIND, "tensor")
        remarks = [f"{len(files)} files joined: {listed([own.path.name for own in files])}"] if len(files) > 1 else []
        columns = dict(found.columns)
        for name in messages:
            columns[name], notes = _tokens(columns[name], tensors.get("message_length"))
            remarks += notes
    return Found(columns, KIND, meanings, messages, remarks=[*remarks, *found.remarks])


def _files_of_epoch(folder: Path) -> list[Path]:
    """Return the files of a folder, which must be of one epoch, in the order of GPUs."""
    saved = list(folder.glob(SAVED)) or list(folder.rglob(SAVED))
    folders = sorted({path.parent for path in saved}, key=lambda path: natural(str(path)))
    if len(folders) > 1:
        more = [f"{len(folders) - MOST_LISTED} more"] if len(folders) > MOST_LISTED else []
        choices = listed([*(f"'{path}'" for path in folders[:MOST_LISTED]), *more], "or")
        raise InvalidSettingError(f"'{folder}' holds {KIND} of {len(folders)} epochs; choose one: {choices}.")
    return sorted(saved, key=lambda path: natural(path.name))


def _joined(parts: Values) -> Entries | None:
    """Return a field of several files; None if one of the files holds no tensor."""
    if not all(getattr(part, "ndim", 0) for part in parts):
        return None
    arrays = [unpacked(part, "Tensors") for part in parts]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _tokens(messages: Entries, lengths: Entries | None) -> tuple[Entries, list[str]]:
    """Convert messages of EGG to tokens, cut at their lengths if these are known; also return remarks."""
    if not isinstance(messages, np.ndarray):
        return messages, []  # with missing values
    messages, relaxed = discrete(messages)
    remarks = [RELAXED] if relaxed else []
    if lengths is None or messages.dtype.kind not in "iu":
        ended = messages.dtype.kind in "iu" and messages.size and (messages == 0).any(1).all()
        note = [UNHEARD] if has_tokens_after_end(messages) else [ENDS] if ended else []
        return messages, remarks + note
    whole = np.floor(np.asarray(lengths, dtype=float) + 1e-3)  # lengths may be sums of probabilities, such as 2.999999
    if whole.shape != (len(messages),) or not np.all((whole >= 0) & (whole <= messages.shape[1])):
        raise InvalidSettingError(
            f"message_length, of shape {whole.shape}, does not give the length of each of the {len(messages)} messages "
            f"of up to {messages.shape[1]} tokens."
        )
    rounded = " rounded down" if np.any(lengths - whole > 1e-3) else ""  # as EGG does
    return [row[: int(n)] for row, n in zip(messages, whole, strict=True)], [*remarks, f"{CUT}{rounded}"]


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
