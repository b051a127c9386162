"""Sweeps: many rows from lists of models, grammars, representations and more, planned as one.

A sweep is planned as the probes that it consists of; their rows are put together, the longest first, and run by the
same engine into one folder. What is on file is never done again, so that the same command resumes.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from icy.config.specs import ProbeSpec, SweepSpec, names, spell_out
from icy.core.errors import IncompatibleError, InvalidSettingError, StoreError, unknown
from icy.core.registry import SIDES
from icy.core.text import several
from icy.experiments.trackers.make import watching
from icy.records.record import RowKey
from icy.records.store import Store

from .plan import Plan, Row, planned
from .probe import LanguageKey, make_plan
from .results import ProbeResult
from .run import run_plan
from .watcher import Watcher

log = logging.getLogger(__name__)

AXES = ("protocol", "meanings", "vocab_size", "word_length", "representation", "preset")  # each one value or several
# Of the whole sweep, not of a part.
RUNNING = ("device", "workers", "runner", "per_gpu", "engine", "out", "rerun", "plugin", "quick", "track")
PARTS = "sweep"  # the name of the parts in a file: [[sweep]]


def sweep(
    model: str | Iterable[str] = (), *, file: str | Path | None = None, watcher: Watcher | None = None, **options: Any
) -> ProbeResult:
    """Probe many models under many settings.

    Args:
        model: names or wildcards of senders and receivers.
        file: a sweep in TOML or YAML; what is given here goes before what is in it.
        watcher: told of progress.
        **options: see SweepSpec.

    Returns:
        The results of all of the sweep's replicates, trained now or on file.

    Raises:
        IcyError: an unknown name, a value that cannot be, a folder that cannot be written, and the like. A row that
            fails in training is no error: it is kept as failed, and the others go on.
        KeyboardInterrupt: at Ctrl-C. What had finished is kept.

    Example:
        >>> import icy, tempfile
        >>> result = icy.sweep("*/FC1L", grammar="perm", representation=["soft", "gumb"], quick=True,
        ...                    workers=1, out=tempfile.mkdtemp())
        >>> sorted({(r["model"], r["representation"]) for r in result.records})
        [('receiver/FC1L', 'gumb'), ('receiver/FC1L', 'soft'), ('sender/FC1L', 'gumb'), ('sender/FC1L', 'soft')]
    """
    given = {**({"model": model} if model else {}), **options}
    spec = SweepSpec.asked(**(given if file is None else over(read_sweep(file), given)))
    plan = make_sweep(spec)
    return run_plan(plan, watching(watcher, spec.track, spec.out), retries=spec.retries)


spell_out(sweep, SweepSpec, ProbeResult)


def read_sweep(file: str | Path) -> dict[str, Any]:
    """The arguments in a file: TOML, or YAML by its suffix; parts of the sweep stand under [[sweep]].

    Raises:
        StoreError: it cannot be read.
        InvalidSettingError: it is not of that format, or another.
    """
    path = Path(file)
    try:
        text = path.read_text()
    except OSError as error:
        raise StoreError(f"The sweep '{path}' cannot be read: {error.strerror or error}.") from error
    try:
        found = _parsed(text, path.suffix.lower())
    except ValueError as error:
        raise InvalidSettingError(f"{path} is not of the format that its name says: {error}.") from error
    if not isinstance(found, dict):
        raise InvalidSettingError(f"{path} holds no arguments by name.")
    parts = found.pop(PARTS, ())
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, dict) for part in parts):
        raise InvalidSettingError(f"Parts of a sweep are tables, each under [[{PARTS}]].")
    return {name.replace("-", "_"): v for name, v in found.items()} | ({"parts": tuple(parts)} if parts else {})


def over(of_file: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given before what is in a file, its parts too.

    Example:
        >>> over({"seeds": 5, "parts": ({"model": "FC1L", "hidden": 8},)}, {"hidden": 16})
        {'seeds': 5, 'parts': ({'model': 'FC1L'},), 'hidden': 16}
    """
    parts = tuple(
        {n: v for n, v in part.items() if n.replace("-", "_") not in given} for part in of_file.get("parts", ())
    )
    return {**of_file, **({"parts": parts} if parts else {}), **given}


def _parsed(text: str, suffix: str) -> Any:
    if suffix == ".toml":
        return tomllib.loads(text)
    if suffix in (".yaml", ".yml"):
        try:
            import yaml
        except ImportError as error:
            raise InvalidSettingError("YAML needs the package pyyaml: pip install pyyaml; or write TOML.") from error
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(str(error).partition("\n")[0]) from error
    raise InvalidSettingError(f"A sweep is a .toml, .yaml or .yml file, not '{suffix or 'a file without a suffix'}'.")


# -- the plan ----------------------------------------------------------------------------------------------------------


def make_sweep(spec: SweepSpec) -> Plan:
    """What a sweep is going to do, without doing it. Errors as for `sweep`."""
    if spec.order not in ("longest", "given"):
        raise unknown("order", spec.order, ("longest", "given"))
    store = Store(spec.out)
    found: dict[RowKey, Row] = {}
    refused: list[IncompatibleError] = []
    plans = []
    tried: set[LanguageKey] = set()
    for one in expand(spec):
        try:
            plans.append(make_plan(one, tried))
        except IncompatibleError as error:  # a model that does not work in one of several representations
            refused.append(error)
            continue
        for row in plans[-1].rows:
            before = found.get(row.job.row)
            found[row.job.row] = row if before is None else _both(before, row, store, spec.rerun)
    if not found and refused:
        raise refused[0]
    for sentence in dict.fromkeys(map(str, refused)):
        log.warning("Left out: %s", sentence)
    rows = sorted(found.values(), key=cost, reverse=True) if spec.order == "longest" else list(found.values())
    return planned(spec, _share(rows, spec.shard))


def expand(spec: SweepSpec) -> list[ProbeSpec]:
    """The probes that a sweep consists of.

    Raises:
        UnknownNameError: an argument of a part that there is not.
        InvalidSettingError: no model, or a part that says how all of the sweep is run.
    """
    whole = {f.name: getattr(spec, f.name) for f in fields(spec)}
    known = [name for name in names(ProbeSpec) if name not in RUNNING] + ["side"]
    found: list[ProbeSpec] = []
    for part in spec.parts or ({},):
        own = {name.replace("-", "_"): value for name, value in part.items()}
        for name in own:
            if name in RUNNING:
                raise InvalidSettingError(f"'{name}' is for the whole sweep, and cannot be said of a part.")
            if name not in known:
                raise unknown("argument of a part of a sweep", name, known)
        found.extend(_combinations({**whole, **own}))
    return found


def _combinations(given: Mapping[str, Any]) -> Iterable[ProbeSpec]:
    models = [given["model"]] if isinstance(given["model"], str) else list(given["model"])
    if not models:
        raise InvalidSettingError("No model was given; `icy list models` shows what there is.")
    side = given["side"]
    if side is not None and side not in SIDES:
        raise unknown("side", str(side), SIDES)
    of_side = [_on_side(model, side) for model in models]
    shared = {name: given[name] for name in names(ProbeSpec)}
    for one, *values in product(of_side, *(_along(axis, given[axis]) for axis in AXES)):  # so that one may be left out
        yield ProbeSpec(**{**shared, "model": one, **dict(zip(AXES, values, strict=True))})


def _on_side(model: str, side: str | None) -> str:
    """A name or wildcard, as of one side only.

    Raises:
        InvalidSettingError: it says the other side itself.
    """
    said, slash, _ = model.partition("/")
    if side is None or (slash and said == side):
        return model
    if slash and said in SIDES:
        raise InvalidSettingError(f"'{model}' is no {side}; leave out the one or the other.")
    return f"{side}/{'*' if model == 'all' else model.removeprefix('*/')}"


def _along(axis: str, value: Any) -> list[Any]:
    """The values of an axis. A pair of numbers is one space of meanings, as for `icy.probe`."""
    pair = isinstance(value, tuple) and len(value) == 2 and all(isinstance(n, int) for n in value)
    return [value] if axis == "meanings" and pair else several(value)


def _both(one: Row, other: Row, store: Store, rerun: str) -> Row:
    """A row that two parts of a sweep name, with the replicates of both."""
    replicates = tuple(dict.fromkeys((*one.job.replicates, *other.job.replicates)))
    return Row.of(replace(one.job, replicates=replicates), store, rerun)


def cost(row: Row) -> float:
    """How long a row may take, in no unit, to begin with the longest: by measured seconds where there are any on file,
    else by the work of one update; times its replicates."""
    job = row.job
    measured = [r["seconds"] for r in row.filed if not r["failed"] and r.get("seconds")]
    if measured:
        return float(len(row.missing) * sum(measured) / len(measured))
    return len(job.replicates) * job.parameters.get("true", 0) * job.task.message_length * 1e-6


def _share(rows: Sequence[Row], shard: str | None) -> list[Row]:
    """The rows of one share: dealt by the order of their configuration, which is the same on every machine.

    Raises:
        InvalidSettingError: not of the form i/n.
    """
    if shard is None:
        return list(rows)
    index, slash, count = str(shard).partition("/")
    if not (slash and index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise InvalidSettingError(f"A shard is i/n, the i-th of n shares, as in 2/8; not '{shard}'.")
    # Not by what is on file, which other machines may be changing; alike rows are dealt to different shares.
    ordered = sorted(rows, key=lambda row: (-row.job.parameters.get("true", 0) * len(row.job.replicates), row.job.row))
    mine = {row.job.row for row in ordered[int(index) - 1 :: int(count)]}
    return [row for row in rows if row.job.row in mine]
