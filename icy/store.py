"""Results on disk: one JSON file per finished replicate, written whole or not at all, and tables rebuilt from them.

A replicate (one model, one grammar, one seed) is filed under a hash of everything that determines its numbers: the
merged configuration and the versions of model, grammar and protocol. Work that is on file is not done again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from icy.errors import InvalidSettingError, StoreError
from icy.files import whole_file

log = logging.getLogger(__name__)
RECORDS = "records"
STALE_SECONDS = 3600
REQUIRED = {"key", "config", "failed", "finished"}
RERUN = {
    "missing": "run what has no record (the default)",
    "failed": "run what has no record, and what failed",
    "always": "run everything again",
    "never": "run nothing, and show what is on file",
}
Record = dict[str, Any]


def record_key(config: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """The name a result is filed under: a hash of its configuration and of the versions that determine its numbers."""
    text = config_text({"config": config, "versions": versions})
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _canonical(value: Any) -> Any:
    """The same with whole numbers as int, so that 20 and 20.0 are one configuration."""
    if isinstance(value, Mapping):
        return {name: _canonical(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def write_atomically(path: Path, content: bytes) -> None:
    """Write under a temporary name, then rename, so that a reader or a crash never meets half a file.

    Raises:
        StoreError: the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(content)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            sentence = f"The disk is full, so {path} was not written; what had finished before is kept."
            raise StoreError(f"{sentence} Free some space and run the same command again.") from error
        reason = error.strerror or error
        raise StoreError(f"Cannot write {path}: {reason}. Choose another folder with --out.") from error


class Store:
    """A results folder.

    Args:
        folder: made when the first result is written.

    Example:
        >>> import tempfile
        >>> store = Store(tempfile.mkdtemp())
        >>> store.put({"key": "abc", "model": "sender/FC2L", "config": {}, "failed": False, "finished": ""})
        >>> store.get("abc")["model"]
        'sender/FC2L'
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def prepare(self) -> None:
        """Make the folder and prove that it can be written, before hours are spent.

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
        """Where the record of a key is, or would be."""
        return self.folder / RECORDS / f"{key}.json"

    def put(self, record: Record) -> None:
        """File a record under its key."""
        write_atomically(self.path(record["key"]), json.dumps(record, indent=1, allow_nan=False).encode())

    def get(self, key: str) -> Record | None:
        """The record of a key, or None."""
        return _read(self.path(key)) if self.path(key).exists() else None

    def records(self) -> list[Record]:
        """What tables show of the records in the folder: the newest of each configuration, as of `newest`."""
        return sorted(newest(self.all_records()), key=_order)

    def all_records(self) -> list[Record]:
        """All records in the folder, in the order they were finished.

        A file that is not a record is left out, with a warning.
        """
        found = []
        for path in (self.folder / RECORDS).glob("*.json"):
            try:
                found.append(_read(path))
            except StoreError as error:
                log.warning("%s", error)
        return sorted(found, key=_order)


def newest(records: Sequence[Record]) -> list[Record]:
    """Of each configuration the last in order; of models, grammars and protocols the newest version with a result.

    Results of different versions are not comparable. The others stay on file.
    """
    version: dict[tuple[str, ...], Any] = {}
    for record in sorted(records, key=lambda r: (not r["failed"], *_order(r))):
        version.update(_versions(record))
    current = [r for r in records if all(version[what] == found for what, found in _versions(r).items())]
    return list({config_text(record["config"]): record for record in current}.values())


def _versions(record: Record) -> dict[tuple[str, ...], Any]:
    """The versions that it was measured with: of its model, its grammar and its protocol."""
    names = {"model": ("side", "model"), "grammar": ("grammar",), "protocol": ("protocol",)}
    found = record.get("versions", {})
    return {(what, *(str(record.get(name)) for name in parts)): found.get(what) for what, parts in names.items()}


def _order(record: Record) -> tuple[str, str]:
    return str(record.get("finished")), str(record.get("key"))


def config_text(config: Mapping[str, Any]) -> str:
    """A configuration as text, the same however its parts are ordered."""
    return json.dumps(_canonical(config), sort_keys=True)


def _read(path: Path) -> Record:
    try:
        record: Record = json.loads(path.read_text())
        if not isinstance(record, dict) or not record.keys() >= REQUIRED:
            raise ValueError("parts are missing")
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is not a readable result ({error}); move it away to measure it again.") from error
    return record


def to_run(keys: Iterable[str], store: Store, rerun: str) -> set[str]:
    """Which of the keys are to be measured now.

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
        if record is None or (rerun == "failed" and record["failed"]):
            wanted.add(key)
    return wanted
