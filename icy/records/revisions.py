"""Read results from an earlier commit of a git repository."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from icy.core.errors import StoreError

SIGN = "@"  # between a path and a revision


def revision_of(place: str) -> tuple[str, str | None]:
    """Split `PATH@REVISION`. If a file has the whole text as its name, the revision is None.

    Example:
        >>> revision_of("records.parquet@HEAD~1")
        ('records.parquet', 'HEAD~1')
    """
    path, sign, revision = place.rpartition(SIGN)
    if not sign or not path or not revision or Path(place).exists():
        return place, None
    return path, revision


@contextmanager
def at_revision(path: str | Path, revision: str) -> Iterator[Path]:
    """Write a file or folder from a commit to a temporary folder; yield its path there.

    Args:
        path: a file or folder in a checkout, which may have been deleted since.
        revision: name of a commit, branch or tag.

    Raises:
        StoreError: git or the repository is missing, or the revision or the file in it does not exist.
    """
    path = Path(path).absolute()
    folder = next(parent for parent in path.parents if parent.is_dir())
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch, "archive.tar")
        inside = path.relative_to(folder).as_posix()
        # Do not read a revision as an option, or a path as a pattern.
        arguments = ["archive", "--format=tar", f"--output={archive}", "--end-of-options", revision]
        command = ["git", "-C", str(folder), "--literal-pathspecs", *arguments, inside]
        try:
            result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise StoreError(
                f"Reading results at a revision needs git, which cannot be run ({error.strerror})."
            ) from error
        if result.returncode:
            reason = (result.stderr.strip().splitlines() or ["git gave no reason"])[-1].removeprefix("fatal: ")
            raise StoreError(f"{path.name} does not exist at the revision {revision}: {reason}.")
        with tarfile.open(archive) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", None)  # missing before Python 3.11.4
            tar.extractall(scratch)
        yield Path(scratch, inside)
