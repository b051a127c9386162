"""Packs: complete records, with their curves and files, in one compressed file with a checksum.

A results folder is for running experiments, a pack is for archiving results. A pack is small enough to commit. Commands
that read a folder also read a pack, and a run can start from a pack (`--from`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from icy.core.errors import StoreError
from icy.core.files import free_name, is_inside, whole_file
from icy.core.machine import git_revision, now, software

from .check import valid_records
from .record import Record, by_filing, is_better, rank
from .store import ODD, Store

log = logging.getLogger(__name__)
SUFFIX = ".parquet"
ABOUT = b"icy pack"  # key of the description of a pack in the metadata of the file
FORMAT = 1


@dataclass(frozen=True)
class Pack:
    """Records and their files.

    Attributes:
        records: one per replicate.
        files: content of the files that belong to records, by their path in a results folder.
        about: time of creation, versions of software, number of records, and their checksum.
        left_out: number of unreadable records in its file.
    """

    records: Sequence[Record]
    files: Mapping[str, bytes] = field(default_factory=dict)
    about: dict[str, object] = field(default_factory=dict)
    left_out: int = 0

    @classmethod
    def of(cls, records: Iterable[Record], files: Mapping[str, bytes] | None = None) -> Pack:
        """Return a pack of records, with the best record of each key (`icy.records.record.rank`)."""
        best: dict[str, Record] = {}
        for record in sorted(records, key=rank):
            best[record["key"]] = record
        ordered = sorted(best.values(), key=by_filing)
        about = {"format": FORMAT, **software(), "git": git_revision(), "made": now(), "records": len(ordered)}
        return cls(ordered, files or {}, {**about, "sha256": _checksum(map(_text, ordered))})

    @classmethod
    def read(cls, place: str | Path) -> Pack:
        """Read a pack, a results folder, or a file that `ProbeResult.save` wrote.

        Raises:
            StoreError: the file or folder does not exist, has no records, or is damaged.
        """
        path = Path(place)
        if path.is_dir():
            records = records_at(path)
            names = dict.fromkeys(name for record in records for name in files_of(record))
            return cls.of(records, _ReadLater({n: (path / n).read_bytes for n in names if (path / n).is_file()}))
        return _read(path) if path.suffix.lower() == SUFFIX else cls.of(records_at(path))

    def write(self, path: str | Path) -> Path:
        """Write the pack to a .parquet file.

        Raises:
            StoreError: the file has another suffix, or cannot be written.
        """
        import pyarrow
        import pyarrow.parquet

        file = Path(path)
        if file.suffix.lower() != SUFFIX:
            raise StoreError(f"A pack is a .parquet file, not '{file.name}'.")
        texts = [_text(record) for record in self.records]
        owners = {name: i for i, r in reversed([*enumerate(self.records)]) for name in files_of(r)}
        contents = [  # if records share a file, such as a language, the first record stores it
            [(name, self.files[name]) for name in files_of(r) if name in self.files and owners[name] == i]
            for i, r in enumerate(self.records)
        ]
        types = pyarrow.map_(pyarrow.string(), pyarrow.large_binary())  # for more than 2 GiB in total
        columns = {
            "key": pyarrow.array([record["key"] for record in self.records], pyarrow.string()),
            "record": pyarrow.array(texts, pyarrow.string()),
            "files": pyarrow.array(contents, types),
        }
        table = pyarrow.table(columns).replace_schema_metadata({ABOUT: json.dumps(self.about).encode()})
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(file) as stream:
                pyarrow.parquet.write_table(table, stream, compression="zstd", compression_level=9)
        except OSError as error:
            raise StoreError(f"Cannot write {file}: {error.strerror or error}.") from error
        return file

    def unpack(self, store: Store) -> int:
        """Write the records that a store lacks; return the number of records written."""
        folder = Store(store.folder)  # without its packed records
        missing = [record for record in self.records if is_better(record, folder.get(record["key"]))]
        for record in missing:
            store.put(record, {name: self.files[name] for name in files_of(record) if name in self.files}, number=False)
        return len(missing)


class _ReadLater(Mapping[str, bytes]):
    """Files that are read on access."""

    def __init__(self, readers: Mapping[str, Callable[[], bytes]]) -> None:
        self._readers = readers

    def __getitem__(self, name: str) -> bytes:
        return self._readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


def read_once(path: str | Path) -> Pack:
    """Read a pack; use a cached copy if the file has not changed. Errors as for `Pack.read`."""
    path = Path(path)
    return _read_at(str(path), path.stat().st_mtime_ns if path.exists() else 0)


def file_in(place: str | Path, name: str) -> bytes:
    """Return a file that belongs to a record.

    Args:
        place: results folder or pack.
        name: path of the file in the folder or pack.

    Raises:
        StoreError: the file does not exist.
    """
    place = Path(place)
    try:
        return read_once(place).files[name] if is_pack(place) else (place / name).read_bytes()
    except (OSError, KeyError) as error:
        raise StoreError(f"{place} no longer has the file {name}.") from error


@lru_cache(maxsize=8)
def _read_at(path: str, changed: int) -> Pack:
    return Pack.read(path)


def merge_packs(packs: Iterable[Pack]) -> Pack:
    """Merge packs into one; no replicate is dropped.

    Returns:
        The pack of all records, with one record per key, and their files.
    """
    all_packs = list(packs)
    whole = Pack.of(record for pack in all_packs for record in pack.records)
    kept, sources = {record["key"]: record for record in whole.records}, dict[str, Callable[[], bytes]]()
    for pack in all_packs:
        for record in pack.records:
            if record == kept[record["key"]]:  # files of this record only, not of another record with the same key
                names = [name for name in files_of(record) if name in pack.files]
                sources |= {name: partial(pack.files.__getitem__, name) for name in names}
    return replace(whole, files=_ReadLater(sources))


def add_to_pack(file: str | Path, *places: str | Path) -> Pack:
    """Add results to a pack, and return the pack. A file that already has all of these results is not changed.

    Args:
        file: the pack; it is created if it does not exist.
        *places: packs, results folders or saved results. Places that are missing or empty are skipped.

    Raises:
        StoreError: a place cannot be read, or the pack cannot be written.
    """
    file = Path(file)
    before = [Pack.read(file)] if file.exists() else []
    existing = [Path(place) for place in places if Path(place).exists()]
    others = [Pack.read(place) for place in existing if not place.is_dir() or Store(place).all_records()]
    whole = merge_packs([*before, *others])
    if not before or whole.records != before[0].records or set(whole.files) != set(before[0].files):
        keep_unreadable(file, before)
        whole.write(file)
    return whole


def keep_unreadable(file: Path, before: Iterable[Pack]) -> None:
    """Keep a copy of a pack before it is replaced, if it has unreadable records."""
    if any(pack.left_out for pack in before):
        copy = free_name(file, ODD)
        shutil.copy2(file, copy)
        log.warning("%s had unreadable records; a copy is kept as %s.", file, copy.name)


def is_pack(path: str | Path) -> bool:
    """Return whether a file is a pack, not another table."""
    import pyarrow.parquet

    path = Path(path)
    if path.suffix.lower() != SUFFIX or not path.is_file():
        return False
    try:
        return ABOUT in (pyarrow.parquet.read_schema(path).metadata or {})
    except (OSError, ValueError):
        return False


def files_of(record: Record) -> list[str]:
    """Return the paths of a record's files. Records of version 0.1 only name the file of their language."""
    names = record.get("files") or ([record["language"]] if record.get("language") else [])
    return list(filter(is_inside, names))


def records_at(path: Path) -> list[Record]:
    """Return the records of a results folder, or of a file that `ProbeResult.save` wrote.

    Unreadable records are left out, with a warning.

    Raises:
        StoreError: the folder or file does not exist, cannot be read, or has no records.
    """
    if path.is_dir():
        if records := Store(path).all_records():
            return records
        raise StoreError(f"The folder {path} has no results; `icy probe ... -o {path}` makes some.")
    try:
        content = json.loads(path.read_bytes())["records"]
        if not isinstance(content, list):
            raise TypeError("its records are not a list")
    except FileNotFoundError as error:
        raise StoreError(f"The file or folder {path} does not exist.") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{path} is not a results folder, a pack, or a file written by `save`.") from error
    if records := _readable(path, content):
        return records
    raise StoreError(f"The file {path} has no results.")


def _readable(path: Path, records: Iterable[object]) -> list[Record]:
    return valid_records((f"Record {number} of {path}", one) for number, one in enumerate(records, start=1))


def _read(path: Path) -> Pack:
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        about = json.loads((table.schema.metadata or {})[ABOUT])
        texts = table["record"].to_pylist()
        files = {name: content for of_one in table["files"].to_pylist() for name, content in of_one}
        whole = _checksum(texts) == about.get("sha256")
    except FileNotFoundError as error:
        raise StoreError(f"The pack {path} does not exist.") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if is_pack(path):
            raise StoreError(f"The pack {path} is damaged: a part of it cannot be read.") from error
        raise StoreError(f"{path} is not a pack; `icy pack FOLDER -o FILE` makes one.") from error
    if not whole:
        raise StoreError(f"The pack {path} is damaged: its records do not match its checksum.")
    records = _readable(path, texts)
    return Pack(records, files, about, left_out=len(texts) - len(records))


def _text(record: Record) -> str:
    return json.dumps(record, sort_keys=True, allow_nan=False)


def _checksum(texts: Iterable[str]) -> str:
    """Return the hash of the texts of records, independent of their order."""
    parts = sorted(hashlib.sha256(text.encode()).hexdigest() for text in texts)
    return hashlib.sha256("".join(parts).encode()).hexdigest()
