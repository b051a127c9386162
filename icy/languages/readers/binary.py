"""Files of icy, NumPy, Arrow and PyTorch: saved languages, arrays, columns, tensors, and interactions of EGG."""

from __future__ import annotations

import pickle
import re
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.text import counted, listed, natural
from icy.languages.language import Language
from icy.languages.rule import Array, Container, Values, unpacked
from icy.languages.storage import CSV_HEAD, PARQUET_KEY, reading

from .files import File, Found
from .tables import OPTIONS, require_distinct

# -- languages that icy saved ------------------------------------------------------------------------------------------


def read_own(file: File) -> Language | None:
    """Read a language that icy saved; None for other files.

    Raises:
        StoreError: the file is damaged.
    """
    suffix = file.path.suffix.lower()
    if suffix == ".csv":
        own = bool(file.lines) and file.text.startswith(CSV_HEAD)
    elif suffix == ".parquet":
        own = file.head.startswith(b"PAR1") and _has_card(file)
    else:
        own = suffix == ".npz" and "card.npy" in file.members
    return Language.load(file.path) if own else None


def _has_card(file: File) -> bool:
    import pyarrow.parquet

    try:
        return PARQUET_KEY in (pyarrow.parquet.read_schema(file.path).metadata or {})
    except (OSError, ValueError):  # a damaged file; the reader of tables reports it
        return False


# -- arrays of NumPy: npz and npy files --------------------------------------------------------------------------------


OBJECTS = (
    "The file holds Python objects, which are not read, because that may run code; save lists of different lengths as "
    'JSON lines, as in {"meaning": [0, 1], "message": [3, 4, 5]}, or fill them up to an array of numbers.'
)


def read_arrays(file: File) -> Found | None:
    """Read arrays of one length; names or options choose them, and a single array holds messages without meanings.

    Raises:
        InvalidSettingError: an array holds Python objects, or no rows.
    """
    single = file.head.startswith(b"\x93NUMPY")
    if not single and not any(name.endswith(".npy") for name in file.members) and file.path.suffix.lower() != ".npz":
        return None
    try:
        if single:
            return of_array(np.load(file.path, allow_pickle=False))
        with np.load(file.path, allow_pickle=False) as arrays:
            return Found({name: arrays[name] for name in arrays.files}, "arrays of NumPy")
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        raise InvalidSettingError(OBJECTS) from error


def of_array(array: Array, what: str = "an array of NumPy") -> Found:
    """Return the columns of a structured array, or the messages that an array or a tensor holds.

    Raises:
        InvalidSettingError: the array has no rows.
    """
    if names := getattr(array.dtype, "names", None):
        return Found({name: array[name] for name in names}, what)
    if array.ndim == 0 or len(array) == 0:
        raise InvalidSettingError(f"The file holds {what} of shape {tuple(array.shape)}, which has no rows.")
    return Found({"messages": array}, what, meanings=(), messages=("messages",), remarks=["messages without meanings"])


# -- columns of parquet, feather and streams of Arrow; their entries may be lists, structs and maps --------------------


INDEX = re.compile(r"__index_level_\d+__")  # written by pandas
MAGIC = {b"PAR1": "parquet", b"ARRO": "feather", b"FEA1": "feather", b"\xff\xff\xff\xff": "stream"}


def read_arrow(file: File) -> Found | None:
    """Read a parquet or feather file, a stream of Arrow, or a folder with parts; None for other files and folders.

    A folder may be a partitioned table of parquet, or written by `save_to_disk` of Hugging Face's datasets.

    Raises:
        StoreError: the file is damaged.
        InvalidSettingError: no rows, a name shared by several columns, or a folder of several data sets.
    """
    parts = [file.path]
    kind = MAGIC.get(file.head[:4], "parquet" if file.path.suffix.lower() == ".parquet" else "")
    if file.path.is_dir():
        streams = sorted(file.path.rglob("data*.arrow"), key=lambda path: natural(path.name))
        suffixes = {path.suffix for path in file.path.rglob("[!._]*") if path.is_file()}
        kind = "stream" if streams else "parquet" if suffixes == {".parquet"} else ""
        parts = streams or parts
    if not kind:
        return None
    if len(folders := sorted({f"'{part.parent}'" for part in parts})) > 1:
        raise InvalidSettingError(f"'{file.path}' holds {len(folders)} data sets; choose one: {listed(folders, 'or')}.")
    table = _arrow_table(kind, parts)
    require_distinct(table.column_names, "in its schema")
    names = [name for name in table.column_names if not INDEX.fullmatch(name)]
    if kind == "parquet" and file.path.is_file():  # pandas writes its index after the columns
        index = (table.schema.pandas_metadata or {}).get("index_columns", ())
        names.sort(key=lambda name: name not in index)
    return Found({name: _entries(table[name]) for name in names})


def _arrow_table(kind: str, parts: list[Path]) -> Container:
    import pyarrow.feather
    import pyarrow.parquet

    if kind == "parquet":
        return pyarrow.parquet.read_table(*parts)
    tables = [
        pyarrow.ipc.open_stream(part.read_bytes()).read_all()
        if MAGIC.get(File(part).head[:4]) == "stream"
        else pyarrow.feather.read_table(part)
        for part in parts
    ]
    return pyarrow.concat_tables(tables)


def _entries(column: Container) -> Values:
    entries = column.to_pylist()
    if str(column.type).startswith("map<"):
        return [None if pairs is None else dict(pairs) for pairs in entries]
    return [entry.strip() or None if isinstance(entry, str) else entry for entry in entries]


# -- files of torch.save -----------------------------------------------------------------------------------------------


SUFFIXES = (".pt", ".pth")
PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))  # the start of a pickle
INTERACTION = re.compile(rb"c([\w.]+)\nInteraction\n")  # the name of EGG's class in a pickle
SAVED = "interaction_gpu[0-9]*"  # files of EGG's InteractionSaver
MOST_LISTED = 8


class _Interaction:
    """Stand-in for EGG's class Interaction; its fields become attributes."""


def read_torch(file: File) -> Found | None:
    """Read tensors of a file, or the interactions of EGG in all files of an epoch, in the order of GPUs.

    A tensor of an Interaction is a column: `sender_input`, `message`, `aux_input.attributes` and so on.

    Raises:
        InvalidSettingError: a file holds no tensors, or a folder holds several epochs.
        StoreError: a file is damaged, or holds more than tensors and plain values.
    """
    folder = file.path.is_dir()
    files = [File(path) for path in _files_of_epoch(file.path)] if folder else [file]
    if not files or not (folder or _is_pickle(file)):
        return None
    held = [load(own.path, (_Interaction, f"{_interaction_module(own)}.Interaction")) for own in files]
    batches = [one for part in held for one in (part if isinstance(part, list) else [part])]
    if folder or any(isinstance(one, _Interaction) for one in batches):
        if not all(isinstance(one, _Interaction) for one in batches):
            raise InvalidSettingError("Each file of interactions must hold one Interaction of EGG, or a list of them.")
        fields = _joined([vars(one) for one in batches])
        usual = "labels" if fields.get("sender_input") is None is not fields.get("labels") else "sender_input"
        remarks = [f"{len(files)} files joined: {listed([own.path.name for own in files])}"] if len(files) > 1 else []
        present = {name: tensor for name, tensor in fields.items() if tensor is not None}
        return Found(present, "interactions of EGG", (usual,), ("message",), remarks=remarks)
    whole, what = held[0], "a file of PyTorch"
    if isinstance(whole, Sequence) and whole and all(isinstance(one, Mapping) for one in whole):
        whole = _joined(whole)
    elif isinstance(whole, Sequence) and len(whole) == 2 and not isinstance(whole, str):
        whole = dict(zip(("meanings", "messages"), whole, strict=True))
    if isinstance(whole, Mapping):
        return Found(whole, what)
    if hasattr(whole, "ndim"):
        return of_array(whole, "a tensor")
    size = f" of {counted(len(whole), 'entry')}" if isinstance(whole, Sequence) else ""
    raise InvalidSettingError(
        f"The file holds an object of type {type(whole).__name__}{size}; save a dictionary of tensors, as in "
        f"torch.save({{'meanings': x, 'messages': y}}, file), where other names are chosen by {OPTIONS}."
    )


def _files_of_epoch(folder: Path) -> list[Path]:
    """Return EGG's files in a folder, which must be of one epoch, in the order of GPUs."""
    saved = list(folder.glob(SAVED)) or list(folder.rglob(SAVED))
    folders = sorted({path.parent for path in saved}, key=lambda path: natural(str(path)))
    if len(folders) > 1:
        choices = listed([f"'{path}'" for path in folders], "or", MOST_LISTED)
        raise InvalidSettingError(
            f"'{folder}' holds interactions of EGG of {len(folders)} epochs; choose one: {choices}."
        )
    return sorted(saved, key=lambda path: natural(path.name))


def _joined(parts: Sequence[Mapping[str, Container]]) -> dict[str, Container]:
    """Join the tensors of several files or batches; an entry that is not a tensor in all of them becomes None."""
    tensors: dict[str, Container] = {}
    for name, first in parts[0].items():
        held = [part.get(name) for part in parts]
        if isinstance(first, Mapping):
            tensors[name] = _joined([one or {} for one in held])
            continue
        arrays = [unpacked(one, "Tensors") for one in held if getattr(one, "ndim", 0)]
        if len(arrays) < len(held):
            tensors[name] = None
        else:
            tensors[name] = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return tensors


def _is_pickle(file: File) -> bool:
    """Return whether torch.save or pickle wrote a file, or its name says so."""
    if file.members or file.head[:2] in PICKLES:
        return not file.members or any(name.endswith("data.pkl") for name in file.members)
    cut_short = file.head.startswith(b"PK") and file.path.name.startswith("interaction")
    return cut_short or file.path.suffix.lower() in SUFFIXES


def _interaction_module(file: File) -> str:
    """Return the module of EGG's class Interaction if the file holds an object of this class; "" otherwise."""
    content = file.head
    for name in file.members:
        if name.endswith("data.pkl"):
            with zipfile.ZipFile(file.path) as archive:
                content = archive.read(name)
    found = INTERACTION.search(content)
    return found[1].decode("ascii") if found else ""


def load(path: Path, *classes: tuple[type, str]) -> Any:
    """Load a file of torch.save on the CPU, without running code from the file.

    Args:
        path: path of the file.
        classes: further allowed classes, each with its name in the file.

    Raises:
        StoreError: the file is damaged, or holds objects of other classes.
    """
    import torch

    rebuild = np.empty(0).__reduce__()[0]
    kinds: list[Any] = [type(np.dtype(code)) for code in "?bBhHiIlLqQefdU"]
    arrays: list[Any] = [np.ndarray, np.dtype, *kinds]
    arrays += [(rebuild, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")]
    allowed = torch.serialization.safe_globals([*classes, *arrays])
    unread = f"'{path}' cannot be read as a file of PyTorch"
    with reading(unread), allowed, warnings.catch_warnings(action="ignore"):  # warnings on versions of pickles
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, AttributeError, KeyError, IndexError) as error:  # torch advises to run code
            raise StoreError(
                f"{unread}: it is damaged, or holds more than tensors, arrays and plain values, which icy never runs; "
                "save a dictionary of tensors by torch.save."
            ) from error
