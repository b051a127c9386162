"""Provenance of results: versions, revision, device, date."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from icy.core.text import counted
from icy.version import __version__

LIBRARIES = ("torch", "numpy")
SOFTWARE = ("icy", "python", *LIBRARIES)  # keys of `software`


@functools.cache
def software() -> dict[str, str]:
    """Return the versions of icy, Python and the libraries that can change numbers."""
    libraries = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"icy": __version__, "python": platform.python_version(), **libraries}


@functools.cache
def git_revision() -> str | None:
    """Return the commit of a checkout of icy, with "+changes" if files were changed; None without a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        revision = _git(root, "rev-parse", "HEAD")
        return revision + ("+changes" if _git(root, "--no-optional-locks", "status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def device_name(device: str) -> str:
    """Return the name of a GPU, or the architecture and number of cores of a CPU."""
    if device.startswith("cuda"):
        import torch

        # Failures on a cluster are recorded on another machine, possibly without a GPU.
        return torch.cuda.get_device_name(device) if torch.cuda.is_available() else device
    return f"{platform.machine()} CPU, {counted(usable_cores(), 'core')}"


def usable_cores() -> int:
    """Return the number of cores that this process may use, which may be fewer in a container or with Slurm."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


def now() -> str:
    """Return the time in UTC, with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def circumstances(records: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the first and last day of records (`made`), their `versions`, and their `devices`."""
    days = sorted(str(record["finished"])[:10] for record in records)
    return {
        "made": [days[0], days[-1]],
        "versions": sorted({f"icy {r['versions'].get('icy')}, torch {r['versions'].get('torch')}" for r in records}),
        "devices": sorted({str(r.get("device_name") or r.get("device")) for r in records}),
    }
