"""Stub files of the arguments that functions take by name: `python -m tests.stubs` writes them from the specs.

Type checkers run no code, so they cannot see that `**options` of `icy.probe` are the fields of ProbeRequest.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import icy
from icy.config.requests import ReproduceRequest, RunRequest
from icy.core.importing import load_object
from icy.experiments.requests import SearchRequest, SweepRequest
from icy.experiments.results import ProbeResult
from icy.records.kinds import job_kinds
from icy.s2b.environments.adapter import GameAdapter, RecallAdapter
from icy.s2b.recall import RecallSettings
from icy.s2b.settings import GameSettings
from icy.training.chain_settings import ChainRequest
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest

ROOT = Path(icy.__file__).parent
IMPORTS: dict[str, tuple[str, ...]] = {  # the modules of names in annotations
    "collections.abc": ("Iterable", "Mapping", "Sequence"),
    "pathlib": ("Path",),
    "typing": ("Any", "Literal", "TypedDict", "Unpack", "overload"),
    "icy.config.options": ("ChainOptions", "EndToEndOptions", "ProbeOptions", "RunOptions"),
    "icy.config.settings": (
        *("Draws", "Engine", "Grammars", "Numbers", "OrderName", "Paths", "Presets", "Protocols", "Rerun"),
        *("Representations", "RunnerName", "SamplerName", "SideName", "Spaces", "SplitName", "SymbolsName"),
        "TrackerName",
    ),
    "icy.s2b.environments.adapter": ("RenderMode",),
    "icy.s2b.environments.spaces": ("ActionsName", "MessagesName", "ObservationsName"),
    "icy.s2b.settings": ("Compat", "Query"),
    "icy.s2b.targets": ("Stimuli", "Truncation"),
    "icy.experiments.progress": ("Watcher",),
    "icy.experiments.results": ("EndToEndResult", "ProbeResult"),
}
NAMES = {  # of types
    getattr(import_module(origin), name): name for origin in IMPORTS if origin != "icy.config.options"
    for name in IMPORTS[origin]
}  # fmt: skip
HEAD = '"""Written by `python -m tests.stubs`; change the specs and settings instead."""'
PAIR = ["sender", "receiver", "pretrain"]
COMPAT = {"compat": "Compat | None"}  # an argument of WithCompat.of


def annotations(of: type) -> dict[str, str]:
    """Return the annotation of every field of a dataclass, as its source has it."""
    return {f.name: source_of(f.type) for f in fields(of)}  # type: ignore[arg-type]


def keyword_annotations(function: Any) -> dict[str, str]:
    """Return the annotation of every argument that a function takes by name only, as its source has it."""
    arguments = inspect.signature(function).parameters.values()
    return {one.name: source_of(one.annotation) for one in arguments if one.kind is one.KEYWORD_ONLY}


def source_of(hint: Any) -> str:
    """Return the source of a type, by its name in IMPORTS if it has one; annotations are source."""
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, str) or hint in NAMES:
        return NAMES.get(hint, hint)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    if NoneType in parts:
        return f"{source_of(Union[tuple(part for part in parts if part is not NoneType)])} | None"  # noqa: UP007
    if origin in (Union, UnionType):
        return " | ".join(map(source_of, parts))
    return f"{origin.__name__}[{', '.join(map(source_of, parts))}]" if parts else str(hint.__name__)


def typed_dict(name: str, types: Mapping[str, str], without: Iterable[str] = (), base: str = "TypedDict") -> str:
    """Return the source of a TypedDict without required keys."""
    lines = [f"    {key}: {value}" for key, value in types.items() if key not in set(without)]
    return "\n".join([f"class {name}({base}, total=False):", *lines, ""])


def module(*parts: str) -> str:
    """Return the source of a stub file, with the imports that its parts need."""
    source = "\n".join(parts)
    names = set(re.findall(r"\w+", source)) - set(re.findall(r"class (\w+)", source))
    needed = {origin: sorted(names.intersection(those)) for origin, those in IMPORTS.items()}
    imports = [f"from {origin} import {', '.join(those)}" for origin, those in needed.items() if those]
    local = [line for line in imports if line.startswith("from icy")]
    return "\n".join([HEAD, "", *(line for line in imports if line not in local), "", *local, "", *parts])


def overload(kind: str, options: str, result: str) -> str:
    """Return the source of the overload of `icy.train` for a kind of job."""
    return (
        f"@overload\ndef train(kind: {kind}, *, watcher: Watcher | None = None, progress: bool | None = None, "
        f"**options: {options}) -> {result}: ...\n"
    )


def stubs() -> dict[Path, str]:
    """Return the source of every stub file by its path."""
    run, pair = annotations(RunRequest), annotations(EndToEndRequest)
    arguments, overloads = [], []
    own = {
        ProbeRequest: ("ProbeOptions", ["model", "grammar"]),
        EndToEndRequest: ("EndToEndOptions", PAIR),
        ChainRequest: ("ChainOptions", ["model", "grammar"]),
    }
    for kind in job_kinds():
        name, spec = f"{re.sub('(Spec|Request)$', '', kind.request_class().__name__)}Arguments", kind.request_class()
        base, first = own.get(spec, ("RunOptions", annotations(spec).keys() - run.keys()))
        types = {key: type_ for key, type_ in annotations(spec).items() if key in first}
        arguments.append(typed_dict(name, types, base=base))
        result = load_object(kind.result or ProbeResult).__name__
        overloads.append(overload(f'Literal["{kind.name}"]', f"Unpack[{name}]", result))
    of_plugins = overload("str", "Any", "ProbeResult")
    return {
        ROOT / "experiments" / "train.pyi": module(*arguments, *overloads, of_plugins),
        ROOT / "config" / "options.pyi": module(
            typed_dict("RunOptions", run),
            typed_dict("ProbeOptions", annotations(ProbeRequest), ["model", "grammar", *run], "RunOptions"),
            typed_dict("SweepOptions", pair | annotations(SweepRequest), ["model", *run], "RunOptions"),
            typed_dict("SearchOptions", annotations(SearchRequest), ["model", *run], "RunOptions"),
            typed_dict("EndToEndOptions", pair, [*PAIR, *run], "RunOptions"),
            typed_dict("ChainOptions", annotations(ChainRequest), ["model", "grammar", *run], "RunOptions"),
            typed_dict("ReproduceOptions", annotations(ReproduceRequest), ["table", "only", *run], "RunOptions"),
        ),
        ROOT / "s2b" / "options.pyi": module(
            typed_dict("GameOptions", COMPAT | annotations(GameSettings)),
            typed_dict("ParallelOptions", keyword_annotations(GameAdapter.__init__), base="GameOptions"),
            typed_dict("RecallOptions", COMPAT | annotations(RecallSettings)),
            typed_dict("RecallEnvOptions", keyword_annotations(RecallAdapter.__init__), base="RecallOptions"),
        ),
    }


def formatted(source: str) -> str:
    """Return source in the format of the repository."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "stub.pyi", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True, cwd=ROOT.parent).stdout


if __name__ == "__main__":
    for path, source in stubs().items():
        path.write_text(formatted(source))
