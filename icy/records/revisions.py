"""Results as they stood in an earlier commit of a git repository."""

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
    """Split `PATH@REVISION`; what exists under the whole name has no revision.

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
    """Write a file or folder, as it was committed, to a temporary folder; yield its path there.

    Args:
        path: a file or folder within a checkout, which need not exist any more.
        revision: a commit, branch or tag, as git names it.

    Raises:
        StoreError: there is no git or no repository, no such revision, or nothing of that name in it.
    """
    path = Path(path).absolute()
    folder = next(parent for parent in path.parents if parent.is_dir())
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch, "archive.tar")
        inside = path.relative_to(folder).as_posix()
        # A revision must not be taken for an option, nor a name for a pattern.
        given = ["archive", "--format=tar", f"--output={archive}", "--end-of-options", revision]
        command = ["git", "-C", str(folder), "--literal-pathspecs", *given, inside]
        try:
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise StoreError(
                f"Results at a revision are read with git, which is not here ({error.strerror})."
            ) from error
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["git said nothing"])[-1].removeprefix("fatal: ")
            raise StoreError(f"There is no {path.name} at the revision {revision}: {said}.")
        with tarfile.open(archive) as tar:
            tar.extractall(scratch, filter="data")
        yield Path(scratch, inside)
