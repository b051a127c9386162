"""Versions of models, grammars, protocols and kinds of jobs: choose the version to show.

Results of different versions are not comparable, so only one version of each part is shown. The version in the running
plan is preferred to the version that was saved last. Clocks do not matter, except for records of older versions of icy,
which lack the number `filed`.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from icy.config.protocols import PAIRS, PROTOCOLS
from icy.core.entry import JOB, SIDES
from icy.core.errors import IcyError, StoreError
from icy.core.registry import registry

from .record import Record, by_filing, config_text

# -- read results from an earlier commit of a git repository -----------------------------------------------------------


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


Part: TypeAlias = tuple[str, ...]  # something with versions: ("model", side, name), ("grammar", name), ...
Versions: TypeAlias = Mapping[Part, str]
NONE: Versions = MappingProxyType({})
DIGEST = r"(?<=-)[0-9a-f]{8}"  # of code, in a version
Rank: TypeAlias = tuple[bool, tuple[int, str]]  # whether there is a result, and the sort key of the last record


def newest(records: Sequence[Record], plan_versions: Versions = NONE) -> list[Record]:
    """Return the last record of each configuration, with only one version of each model, grammar and protocol.

    If several versions have results, the version in the running plan is chosen; otherwise the version that is
    registered now; otherwise the version that was saved last. Records of other versions are not deleted. Models of
    users with other code or behavior are other models, even if they have the same name and the same version number.

    Args:
        records: records of any versions.
        plan_versions: versions in the running plan.
    """
    ranks_of: dict[Part, dict[str | None, Rank]] = {}
    for record in records:
        rank = not record["failed"], by_filing(record)
        for part, version in versions_of(record).items():
            ranks = ranks_of.setdefault(part, {})
            ranks[version] = max(rank, ranks.get(version, rank))
    shown = {part: _shown(part, ranks, plan_versions) for part, ranks in ranks_of.items()}
    current = [r for r in records if all(version in shown[part] for part, version in versions_of(r).items())]
    return list({identity_of(record): record for record in current}.values())


def identity_of(record: Record) -> tuple[str, str, str]:
    """Return what distinguishes a record from others of its plan: its configuration, and code and behavior of users."""
    return config_text(record["config"]), *code_of(record)


def code_of(record: Record) -> tuple[str, str]:
    """Return the digests in the version of the model of a record, and the name of its behavior; "" for icy's models.

    Example:
        >>> code_of({"versions": {"model": "1-3f2a1b4c+1", "behavior": "0c1d2e3f"}})
        ('3f2a1b4c', '0c1d2e3f')
    """
    versions = record.get("versions", {})
    return "+".join(re.findall(DIGEST, versions.get("model", ""))), versions.get("behavior", "")


def versions_of(record: Mapping[str, Any]) -> dict[Part, str | None]:
    """Return the versions of model, grammar, protocol and kind of job of a record."""
    names = {"model": ("side", "model"), "grammar": ("grammar",), "protocol": ("protocol",)}
    if kind := record.get("kind"):
        names[kind] = ("side", "model")  # jobs of other kinds have the version of their kind
    versions = record.get("versions", {})
    return {(what, *(str(record.get(name)) for name in parts)): versions.get(what) for what, parts in names.items()}


def _shown(part: Part, ranks: Mapping[str | None, Rank], plan_versions: Versions) -> set[str | None]:
    """Return the versions of a part to show, from the versions with records: one, or more of a model of a user."""
    if len(ranks) == 1:
        return {*ranks}
    preferred = plan_versions.get(part) or registered_version(part)

    def rank(version: str | None) -> tuple[bool, bool, Rank]:
        return ranks[version][0], version == preferred, ranks[version]

    best = max(ranks, key=rank)
    if part[0] != "model" or best is None:
        return {best}
    number = re.sub(DIGEST, "", best)
    others = {v for v, (has_result, _) in ranks.items() if has_result and v and re.sub(DIGEST, "", v) == number}
    return {best, *others}


def registered_version(part: Part) -> str | None:
    """Return the registered version of a part; None if its name is not registered.

    Example:
        >>> registered_version(("grammar", "rot")), registered_version(("model", "sender", "sender/NoSuchModel"))
        ('1', None)
    """
    from icy.grammars import grammar_version  # imported here because it is rarely needed

    what, *names = part
    try:
        match what, names:
            case "model", [side, model]:
                sides = SIDES if side == "pair" else (side,)
                models = model.split("+") if side == "pair" else [model]
                entries = [registry.get(name, of) for name, of in zip(models, sides, strict=True)]
                return "+".join(entry.full_version for entry in entries)
            case "grammar", [grammar]:
                return grammar_version(grammar)
            case "protocol", [protocol]:
                return "1" if protocol == PAIRS else str(PROTOCOLS[protocol].version)
            case _:
                return registry.get(what, JOB).full_version
    except (IcyError, KeyError, ValueError):  # of a plug-in that is not loaded
        return None
