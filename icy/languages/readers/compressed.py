"""Compressed files, and files of known formats that icy does not read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from icy.core.errors import IcyError, StoreError
from icy.core.processes import scratch_folder
from icy.languages.storage import reading

from .found import File

ARRAYS = (".npy", "data.pkl", "/version")  # in the zip archives of NumPy and PyTorch
UNREAD = {  # the first bytes of other formats
    rb"Obj\x01": "an Avro file",
    rb"\x89HDF|CDF[\x01\x02\x05]": "a file of HDF5 or NetCDF",
    rb"\xd0\xcf\x11\xe0": "an old file of Excel or SPSS",
    rb"SQLite format 3": "a database of SQLite",
    rb"ORC": "an ORC file",
    rb"MATLAB 5": "a file of MATLAB",
    rb"\$FL[23]": "a file of SPSS",
    rb"RD[AX][23]\n|X\n\x00\x00": "a file of R",
    rb"<stata_dta>": "a file of Stata",
    rb"(?s).{257}ustar": "an archive of tar",
}


def _zstandard(path: Path) -> IO[Any]:
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), "zstd")  # type: ignore[no-any-return]


OPENERS: dict[bytes, Callable[[Path], Any]] = {
    rb"\x1f\x8b": gzip.GzipFile,
    rb"BZh[1-9]1AY&SY": bz2.BZ2File,
    rb"\xfd7zXZ\x00": lzma.LZMAFile,
    rb"\x28\xb5\x2f\xfd": _zstandard,
}
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")


def require_read(file: File) -> None:
    """Raise StoreError if a file has a known format that icy does not read."""
    kinds = (what for start, what in UNREAD.items() if re.match(start, file.head))
    archive = "a file of Excel" if "xl/workbook.xml" in file.members else "an archive" if file.members else ""
    if what := next(kinds, archive):
        raise StoreError(
            f"'{file.path}' is {what}, which icy does not read; save the table as csv, parquet or JSON lines."
        )


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """Give the path of a file, or of a temporary copy without compression: gzip, bz2, xz, zstd, or zip of one file.

    Raises:
        StoreError: the file is damaged, or has a known format that icy does not read.
    """
    file = File(path)
    with reading(f"'{path}' cannot be read"):
        opener = next((one for start, one in OPENERS.items() if re.match(start, file.head)), None)
        members = [name for name in file.members if not name.endswith("/")]
    name = path.stem if path.suffix.lower() in SUFFIXES else path.name
    if opener is None and len(members) == 1 and not members[0].endswith(ARRAYS):
        name, opener = Path(members[0]).name, lambda path: zipfile.Path(path, members[0]).open("rb")
    if opener is None:
        yield path
        return
    folder = scratch_folder("table")
    plain = folder / name
    try:
        with reading(f"'{path}' cannot be read"), opener(path) as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target)
        with plain_file(plain) as inner:
            yield inner
    except IcyError as error:
        raise type(error)(str(error).replace(str(plain), str(path))) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
