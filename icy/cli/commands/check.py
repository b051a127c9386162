"""`icy check` and `icy doctor`: the contract of plug-ins, and icy's environment."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.text import Text

from icy.cli.exit_codes import DONE, FAILED
from icy.cli.options import REPRESENTATIONS, FilePath, ListFormat, Quiet, Several, command, plugin_option
from icy.cli.output import print_rows, stdout
from icy.core import native
from icy.core.machine import available_memory, git_revision, usable_cores
from icy.core.registry import ENTRY_KINDS, ENTRY_POINT_GROUP, SIDES, Entry, registry
from icy.core.text import counted
from icy.models.creation import cannot_use
from icy.training.combinations import along
from icy.version import __version__

if TYPE_CHECKING:
    from icy.testing import CheckResult


# -- check -------------------------------------------------------------------------------------------------------------


@command("check")
@plugin_option
def check_command(
    names: Annotated[tuple[str, ...], {"metavar": "NAME...", "completes": "checkable"}],
    *,
    representation: Annotated[str | None, {"cls": Several, "metavar": f"{'|'.join(REPRESENTATIONS)}|all[,...]"}] = None,
    quiet: Annotated[Quiet, {"help": "Print only failures, and one line per name."}] = False,
) -> int:
    """Check that models, cells, grammars, metrics, players, text models, cores, worlds and perceptions keep their
    contract: shapes, seeds, gradients, and so on.

    Each check passes, fails with the reason, or is excused because it does not apply. Exits with 1 if any failed. The
    checks run on one thread.

    Args:
        representation: representation in which models are trained; by default the first that each model supports.

    Examples:
      icy check sender/FC2L
      icy check MyModel --plugin mine.py
      icy check 'HierZero:*' rot --quiet
      icy check cell/GRU metric/topsim speaker/posdis
      icy check all --representation all --quiet

    icy.testing.parametrize_with_checks makes each check a test of pytest.
    """
    from icy.core.representations import get_representation  # imports torch
    from icy.testing.contracts import matching

    console = stdout()
    entries = matching(names)
    representations = along("representation", representation, REPRESENTATIONS) if representation is not None else []
    for name in representations:
        get_representation(name)  # an unknown name is an error that lists the known names
    if len(entries) == 1 and not _used(entries[0], representations):
        raise cannot_use(entries[0], str(representation))
    passed = True
    for entry in entries:
        for one in _used(entry, representations):
            passed &= _check(entry, one, console, quiet)
    return DONE if passed else FAILED


def _used(entry: Entry, names: Sequence[str]) -> Sequence[str | None]:
    """Return the representations to check an entry in; None for the entry's own choice."""
    if entry.kind not in SIDES or not names:
        return [None]
    return [name.lower() for name in names if entry.works_with(name.lower())]


def _check(entry: Entry, representation: str | None, console: Console, quiet: bool) -> bool:
    """Run and print the checks of one plug-in in one representation, and return whether all passed."""
    from icy.testing import check
    from icy.testing.contracts import message_or_reference

    failures: dict[str, str] = {}
    label = entry.qualified if representation is None else f"{entry.qualified} ({representation})"

    def report(result: CheckResult) -> None:
        message = result.message
        if not result.passed:
            failures[result.name] = message
            message = message_or_reference(failures, result.name)
        if not (quiet and result.passed):
            console.print(_line(result, message))

    if not quiet:
        console.print(Text.assemble((entry.qualified, "bold"), "  ", entry.description))
    setting: dict[str, Any] = {} if representation is None else {"representation": representation}
    with console.status(Text(label)):  # on a terminal
        count = counted(len(check(entry, raise_on_failure=False, report=report, **setting)), "check")
    if failures:
        console.print(Text(f"{label} fails {len(failures)} of {count}.", "bold red"))
    else:
        console.print(Text(f"{label} keeps its contract: {count}.", "green"))
    return not failures


def _line(result: CheckResult, message: str) -> Text:
    word, style = ("pass", "green") if result.passed else ("FAIL", "bold red")
    if result.passed and result.excused:
        word, style = "skip", "yellow"
    line = Text.assemble("  ", (word, style), f"  {result.name}")
    return line.append(f"  {message}", style="dim" if result.passed else "") if message else line


# -- doctor: missing or broken parts must not stop the report ----------------------------------------------------------

LIBRARIES = (
    "torch", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "matplotlib", "joblib", "click", "rich",
    "jaxtyping", "rapidfuzz",
)  # fmt: skip
OPTIONAL = ("triton", "ray", "gymnasium", "pettingzoo", "tensorboard", "mlflow", "wandb")

Fact = tuple[str, str, bool]  # name, value, whether it is fine


@command("doctor")
def doctor_command(
    *, out: Annotated[str | None, {"flags": ("-o", "--out"), "type": FilePath()}] = None, format_: ListFormat = "table"
) -> int:
    """Report versions, devices, threads, memory, plug-ins, and whether results can be written.

    The exit code is 1 if something that icy needs is missing.

    Args:
        out: results folder to check; by default the folder of icy probe.

    Examples:
      icy doctor
      icy doctor --out /scratch/results --format markdown
    """
    groups = (_versions, _devices, _processor, _native, _memory, _plugins, partial(_folder, out))
    facts = [fact for group in groups for fact in _safely(group)]
    print_rows(["what", "found", ""], [[what, found, "" if good else "!"] for what, found, good in facts], format_)
    return DONE if all(good for _, _, good in facts) else FAILED


def _safely(group: Callable[[], Iterable[Fact]]) -> list[Fact]:
    """Return the facts of a group; after an error, the facts before the error."""
    facts: list[Fact] = []
    try:
        facts.extend(group())
    except Exception as error:  # doctor's task is to report a broken driver or library
        name = getattr(group, "__name__", "results").strip("_")
        facts.append((name, f"unknown: {type(error).__name__}: {error}", False))
    return facts


def _versions() -> Iterable[Fact]:
    revision = git_revision()
    yield "icy", __version__ + (f" ({revision[:10]}{'+changes' if '+' in revision else ''})" if revision else ""), True
    yield "python", f"{platform.python_version()} on {platform.platform()}", sys.version_info >= (3, 11)
    for name in (*LIBRARIES, *OPTIONAL):
        try:
            yield name, importlib.metadata.version(name), True
        except importlib.metadata.PackageNotFoundError:
            yield name, "not installed" + " (optional)" * (name in OPTIONAL), name in OPTIONAL


def _devices() -> Iterable[Fact]:
    from icy.core import gpu  # imports torch

    if not (there := gpu.names()):
        yield "GPU", "torch cannot use any", True
    for name in there:
        yield name, gpu.description(name), True
    if there:
        from icy.models.kernels import triton_steps

        yield "cells on a GPU", triton_steps.in_use(), True
        yield "measure it", "in a clone of icy: python -m benchmarks.gpu (at most 15 minutes)", True
    yield "--device auto", gpu.resolve("auto"), True


def _processor() -> Iterable[Fact]:
    import torch

    cores, workers = usable_cores(), counted(usable_cores(), "worker")
    yield "cores", f"{cores} usable of {os.cpu_count()}; icy probe runs {workers} with one thread each", True
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
            package = f"{point.dist.name} {point.dist.version}" if point.dist else "package unknown"
            yield f"plug-in {point.name}", f"{point.value}, {package}", True
        except Exception as error:  # a plug-in may raise anything
            yield f"plug-in {point.name}", f"{point.value} cannot be loaded: {type(error).__name__}: {error}", False
    counts = ", ".join(f"{len(registry.entries(kind))} {kind}s" for kind in ENTRY_KINDS)
    yield "registered", counts, True


def _folder(given: str | None) -> Iterable[Fact]:
    """Check that the results folder, or the place for a new folder, is writable; leave no files."""
    from icy.training.probe_settings import ProbeRequest

    out = Path(given or ProbeRequest.out)
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
