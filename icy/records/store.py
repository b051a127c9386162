"""The store: one JSON file per finished replicate, written whole or not at all.

A replicate (one model, one grammar, one seed) is filed under a hash of everything that determines its numbers: the
merged configuration and the versions of model, grammar and protocol. Work that is on file is not done again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import write_atomically

from .record import REQUIRED, Record, _order, is_better, model_file, newest

log = logging.getLogger(__name__)
RECORDS = "records"
STALE_SECONDS = 3600
RERUN = {
    "missing": "run what has no record (the default)",
    "failed": "run what has no record, and what failed",
    "always": "run everything again",
    "never": "run nothing, and show what is on file",
}


class Store:
    """A results folder.

    Args:
        folder: made when the first result is written.
        packed: further records by key, which are not in the folder yet.

    Example:
        >>> import tempfile
        >>> store = Store(tempfile.mkdtemp())
        >>> store.put({"key": "abc", "model": "sender/FC2L", "config": {}, "failed": False, "finished": ""})
        >>> store.get("abc")["model"]
        'sender/FC2L'
    """

    def __init__(self, folder: str | Path, packed: Mapping[str, Record] | None = None) -> None:
        self.folder, self._packed = Path(folder), packed or {}

    def prepare(self) -> None:
        """Make the folder and check that it can be written, before hours are spent.

        Half-written files of a process that was killed are swept out, once they are too old to be someone's work.

        Raises:
            StoreError: it cannot.
        """
        probe = self.folder / RECORDS / ".writable"
        write_atomically(probe, b"")
        probe.unlink(missing_ok=True)
        for path in (self.folder / RECORDS).glob(".*.tmp"):
            with contextlib.suppress(OSError):  # another process may be sweeping too
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()

    def path(self, key: str) -> Path:
        """Return the file of a key."""
        return self.folder / RECORDS / f"{key}.json"

    def put(self, record: Record, files: Mapping[str, bytes] | None = None) -> None:
        """Store a record under its key, after the files that belong to it, given by their path in the folder."""
        for place, content in (files or {}).items():
            if Path(place).is_absolute() or ".." in Path(place).parts:
                raise StoreError(f"'{place}' is no path within the results folder {self.folder}.")
            write_atomically(self.folder / place, content)
        write_atomically(self.path(record["key"]), json.dumps(record, indent=1, allow_nan=False).encode())

    def get(self, key: str) -> Record | None:
        """Return the record of a key, or None."""
        here, packed = _read(self.path(key)) if self.path(key).exists() else None, self._packed.get(key)
        return packed if packed is not None and is_better(packed, here) else here

    def lacks_model(self, record: Record) -> bool:
        """Whether the model of a result was not kept, or is no longer there."""
        if record["failed"]:
            return False
        file = model_file(record)
        in_a_pack = self._packed.get(record["key"]) == record
        return file is None or not ((self.folder / file).is_file() or in_a_pack)

    def records(self) -> list[Record]:
        """Return the records that tables show: the newest of each configuration (see `newest`)."""
        return sorted(newest(self.all_records()), key=_order)

    def all_records(self) -> list[Record]:
        """Return all records in the folder, in the order they were finished.

        A file that is not a record is left out, with a warning.
        """
        found = []
        for path in (self.folder / RECORDS).glob("*.json"):
            try:
                found.append(_read(path))
            except StoreError as error:
                log.warning("%s", error)
        return sorted(found, key=_order)


def _read(path: Path) -> Record:
    try:
        record: Record = json.loads(path.read_text())
        if not isinstance(record, dict) or not record.keys() >= REQUIRED:
            raise ValueError("parts are missing")
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is not a readable result ({error}); move it away to measure it again.") from error
    return record


def to_run(keys: Iterable[str], store: Store, rerun: str, keep_models: bool = False) -> set[str]:
    """Return the keys to be trained now; with `keep_models`, also of what is on file without its model.

    Raises:
        InvalidSettingError: `rerun` is not one of the words of RERUN.
    """
    if rerun not in RERUN:
        raise InvalidSettingError(f"--rerun takes {', '.join(RERUN)}; not '{rerun}'.")
    if rerun == "never":
        return set()
    if rerun == "always":
        return set(keys)
    wanted = set()
    for key in keys:
        record = store.get(key)
        if record is None or (keep_models and store.lacks_model(record)) or (rerun == "failed" and record["failed"]):
            wanted.add(key)
    return wanted
