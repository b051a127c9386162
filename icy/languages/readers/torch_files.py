"""Files of torch.save: dictionaries of tensors, pairs of meanings and messages, a tensor of messages."""

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
from icy.core.text import counted
from icy.languages.storage import reading

from .arrays import of_array
from .columns import OPTIONS, joined, of_equal_length, opened
from .found import File, Found

SUFFIXES = (".pt", ".pth")
PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))  # the start of a pickle
INTERACTION = re.compile(rb"c([\w.]+)\nInteraction\n")  # the name of EGG's class in a pickle


def read(file: File) -> Found | None:
    """Read tensors of one length; names or options choose them, and a pair holds meanings and messages.

    Raises:
        InvalidSettingError: tensors do not fit.
        StoreError: the file is damaged, or holds more than tensors and plain values.
    """
    if not is_pickle(file) or interaction_module(file):
        return None
    held, what = load(file.path), "a file of PyTorch"
    if isinstance(held, Sequence) and held and all(isinstance(one, Mapping) for one in held):
        with reading(f"'{file.path}' cannot be read as batches"):
            held = joined([opened(one) for one in held])
    if isinstance(held, Mapping):
        return of_equal_length(file, held, what, "tensor")
    if hasattr(held, "ndim"):
        return of_array(file, held, "a tensor")
    if isinstance(held, Sequence) and len(held) == 2 and not isinstance(held, str):
        return of_equal_length(file, dict(zip(("meanings", "messages"), held, strict=True)), what, "tensor")
    size = f" of {counted(len(held), 'entry')}" if isinstance(held, Sequence) else ""
    raise InvalidSettingError(
        f"The file holds an object of type {type(held).__name__}{size}; save a dictionary of tensors, as in "
        f"torch.save({{'meanings': x, 'messages': y}}, file), where other names are chosen by {OPTIONS}."
    )


def is_pickle(file: File) -> bool:
    """Return whether torch.save or pickle wrote a file, or its name says so."""
    if file.members or file.head[:2] in PICKLES:
        return not file.members or any(name.endswith("data.pkl") for name in file.members)
    cut_short = file.head.startswith(b"PK") and file.path.name.startswith("interaction")
    return cut_short or file.path.suffix.lower() in SUFFIXES


def interaction_module(file: File) -> str:
    """Return the module of EGG's class Interaction if the file holds an object of this class; "" otherwise."""
    content = file.head
    for name in file.members:
        if name.endswith("data.pkl"):
            with reading(f"'{file.path}' cannot be read"), zipfile.ZipFile(file.path) as archive:
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
