"""`icy doctor`: report icy's environment. Missing or broken parts must not stop the report."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from icy.cli.exit_codes import DONE, FAILED
from icy.cli.groups import command
from icy.cli.output import format_option, print_rows
from icy.core import native
from icy.core.machine import available_memory, git_revision, usable_cores
from icy.core.registry import ENTRY_KINDS, ENTRY_POINT_GROUP, registry
from icy.core.text import counted
from icy.version import __version__

LIBRARIES = (
    "torch", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "matplotlib", "joblib", "click", "rich",
    "jaxtyping", "rapidfuzz",
)  # fmt: skip
OPTIONAL = ("triton", "ray", "gymnasium", "pettingzoo", "tensorboard", "mlflow", "wandb")

Fact = tuple[str, str, bool]  # name, value, whether it is fine
EPILOG = """\b
Examples:
  icy doctor
  icy doctor --out /scratch/results --format markdown
"""


@command("doctor", epilog=EPILOG)
@click.option("--out", "-o", help="Results folder to check; by default the folder of icy probe.")
@format_option
def doctor_command(out: str | None, format_: str) -> int:
    """Report versions, devices, threads, memory, plug-ins, and whether results can be written.

    The exit code is 1 if something that icy needs is missing.
    """
    facts = [fact for group in (_versions, _devices, _processor, _native, _memory, _plugins) for fact in _safely(group)]
    facts += _safely(lambda: _folder(out))
    print_rows(["what", "found", ""], [[what, found, "" if good else "!"] for what, found, good in facts], format_)
    return DONE if all(good for _, _, good in facts) else FAILED


def _safely(group: Callable[[], Iterable[Fact]]) -> list[Fact]:
    """Return the facts of a group; after an error, the facts before the error."""
    facts: list[Fact] = []
    try:
        facts.extend(group())
    except Exception as error:  # doctor's task is to report a broken driver or library
        facts.append((group.__name__.strip("_<>"), f"unknown: {type(error).__name__}: {error}", False))
    return facts


def _versions() -> Iterable[Fact]:
    revision = git_revision()
    yield "icy", __version__ + (f" ({revision[:10]}{'+changes' if '+' in revision else ''})" if revision else ""), True
    yield "python", f"{platform.python_version()} on {platform.platform()}", sys.version_info >= (3, 11)
    for name in LIBRARIES:
        version = _version(name)
        yield name, version or "not installed", version is not None
    for name in OPTIONAL:
        yield name, _version(name) or "not installed (optional)", True


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _devices() -> Iterable[Fact]:
    import torch

    if not torch.cuda.is_available():
        yield "GPU", "torch cannot use any", True
    for i in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(i)
        yield f"cuda:{i}", f"{about.name}, {about.total_memory / 2**30:.0f} GiB", True
    if torch.cuda.is_available():
        from icy.models.kernels import triton_steps

        yield "cells on a GPU", triton_steps.in_use(), True
    yield "--device auto", "cuda" if torch.cuda.is_available() else "cpu", True


def _processor() -> Iterable[Fact]:
    import torch

    cores = usable_cores()
    yield (
        "cores",
        f"{cores} usable of {os.cpu_count()}; icy probe runs {counted(cores, 'worker')} with one thread each",
        True,
    )
    yield "torch threads", str(torch.get_num_threads()), True


def _native() -> Iterable[Fact]:
    yield "cores of models", native.in_use("icy.models.native", "PyTorch"), True
    yield "pairs in metrics", native.in_use("icy.metrics.topographic.native", "NumPy and RapidFuzz"), True


def _memory() -> Iterable[Fact]:
    yield "memory", f"{available_memory() / 2**30:.1f} GiB available", True


def _plugins() -> Iterable[Fact]:
    """Load each installed plug-in separately, so that a broken plug-in does not hide the others."""
    points = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    if not points:
        yield "plug-ins", "none installed", True
    for point in points:
        try:
            point.load()
            yield f"plug-in {point.name}", f"{point.value}, {_package(point)}", True
        except Exception as error:  # a plug-in may raise anything
            yield f"plug-in {point.name}", f"{point.value} cannot be loaded: {type(error).__name__}: {error}", False
    counts = ", ".join(f"{len(registry.entries(kind))} {kind}s" for kind in ENTRY_KINDS)
    yield "registered", counts, True


def _package(point: importlib.metadata.EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "package unknown"


def _folder(given: str | None) -> Iterable[Fact]:
    """Check that the results folder, or the place for a new folder, is writable; leave no files."""
    from icy.config.specs import ProbeSpec

    out = Path(given or ProbeSpec.out)
    there = next(p for p in (out.absolute(), *out.absolute().parents) if p.exists())
    state = "exists" if there == out.absolute() else "would be created"
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        yield f"results in {out}", f"cannot be written: {error.strerror or error}", False
        return
    count = len(list((out / "records").glob("*.json")))
    yield f"results in {out}", f"{state}, can be written, {counted(count, 'record')}", True
