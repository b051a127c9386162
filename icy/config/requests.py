"""Requests: all options of each function of the library, as a dataclass.

The fields of a request are the arguments of the function and, with `-` for `_`, the options of the command; the text
under "Attributes" is their help. The metadata of a field has the differences of the command line: `flags` in place of
`--name`; `metavar`; `help`; `completes`, a function of `icy.cli.groups`; `names` in place of the names in its type;
`minimum` of a number; `exponents` for numbers such as 1e6; and `brackets`, False for no brackets around names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from icy.core.errors import require_known
from icy.core.fields import current_names, described, setting, spell_out_arguments

from .settings import (
    STACKINGS,
    Engine,
    Numbers,
    Paths,
    Representations,
    Rerun,
    RunnerName,
    TrackerName,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


RETRIES = 2


def option(default: Any = MISSING, **shown: object) -> Any:
    """Declare a field with its metadata for the command line, and its default; without a default it must be given."""
    return setting(default, metadata=shown)


# How options of several requests appear on the command line.
MODELS = MappingProxyType({"flags": ("--model", "-m"), "metavar": "NAME", "completes": "models"})
DRAWS = MappingProxyType({"metavar": "icy|authors[,...]"})
SEEDS = MappingProxyType(
    {"metavar": "N|N,N,...", "help": "how many, counted from 123 as in the papers, or which: 1,2 or 123-127."}
)
CHANGES = MappingProxyType(
    {
        "flags": ("--set",),
        "help": "a change to the preset's training settings, as in learning_rate=0.002 or learning_rate=0.001,0.004.",
    }
)


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """How and where to run: the arguments that all functions share.

    Attributes:
        quick: use small values for options that are not given, to try things out.
        device: "cpu", "cuda", or "auto" for a GPU if there is one.
        workers: number of processes. By default one per core on a CPU, one on a GPU, and on a Ray cluster one per core
            or, with `per_gpu`, per share of a GPU.
        runner: where to run: "local", this machine; or "ray", a Ray cluster, which needs the extra `ray`.
        per_gpu: on a Ray cluster, processes that share one GPU.
        engine: how replicates are trained: "native", one after another by compiled code, or stacked by PyTorch:
            "broadcast", "vmap" or "loop"; "auto", the first of these that the model and the machine allow; and on a
            GPU, how updates are issued: "auto+graph", one CUDA graph per update, or "auto+plain".
        out: the results folder.
        rerun: "missing", "failed", "always" or "never"; see icy.records.store.RERUN.
        initial_results: packs, results folders or saved results (of `icy pack`) to start from: their records are copied
            into the results folder and not trained again.
        keep_models: save the weights of every replicate in the results folder, as safetensors; `ProbeResult.model`
            loads the modules. Replicates with a record but without weights are trained again.
        plugin: files that register models, grammars or kinds of jobs.
        track: also show each result, as soon as it is recorded, in "tensorboard", "mlflow" or "wandb", or several; all
            of them local. See icy.experiments.trackers.
    """

    function: ClassVar[str]  # name of the function, for errors
    job_kind: ClassVar[str]  # kind of job of the plan
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({})  # the values of `quick`
    axes: ClassVar[tuple[str, ...]] = ()  # fields that may have several values in a sweep
    old_names: ClassVar[Mapping[str, str]] = MappingProxyType({"start": "initial_results"})  # old name: field
    settings_class: ClassVar[type | None] = None  # class of the settings of its rows; see `icy.config.kinds`
    given: ClassVar[frozenset[str]] = frozenset()  # fields that were requested, in a request that `asked` made

    quick: bool = False
    device: str = "auto"
    workers: int | None = option(None, minimum=1)
    runner: RunnerName = option("local", brackets=False)
    per_gpu: int = option(1, minimum=1)
    engine: Engine = option(
        "auto",
        metavar=f"{'|'.join(STACKINGS)}[+plain|+graph]",
        help="how replicates are trained; +graph: one CUDA graph per update; +plain: none.",
    )
    out: str | Path = option("icy-results", flags=("--out", "-o"), metavar="FOLDER")
    rerun: Rerun = option("missing", brackets=False)
    initial_results: Paths = option((), flags=("--from",), metavar="PACK")
    keep_models: bool = False
    plugin: Paths = option((), metavar="FILE")
    track: TrackerName | Iterable[TrackerName] = option(
        (), help="show every result in these trackers too, in files under FOLDER/tracking."
    )

    if TYPE_CHECKING:  # fields that `icy.config.kinds.request_of` adds

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def asked(cls, **given: Any) -> Self:
        """Return the request of these options; with `quick`, the other options get small values.

        Raises:
            UnknownNameError: an argument that the function does not take.
        """
        known = names(cls)
        given = {name: tuple(value) if isinstance(value, Iterator) else value for name, value in given.items()}
        if "grammar" in known and "grammars" in given:  # a common name for a list of grammars
            given["grammar"] = given.pop("grammars")
        given = current_names(cls, given)
        for name in given:
            require_known(f"option of {cls.function}", name, known)
        return cls(**({**cls.small, **given} if given.get("quick") else given)).with_given(given)

    def with_given(self, names: Iterable[str]) -> Self:
        """Return the request, with these fields marked as set by the user."""
        object.__setattr__(self, "given", frozenset(names))
        return self

    @property
    def start_files(self) -> list[str | Path]:
        """The packs to start from as a list."""
        return [found] if isinstance(found := self.initial_results, (str, Path)) else list(found)


def set_symbols(request: Any) -> None:
    """Add the symbols that senders can use, if given, to the training settings of a request."""
    if request.symbols is not None:
        object.__setattr__(request, "settings", {**request.settings, "symbols": request.symbols})


RUNNING = tuple(f.name for f in fields(RunRequest))


def names(request: type) -> list[str]:
    """Return the names of a request's fields: first its own, then the fields of RunRequest."""
    dataclass: type[DataclassInstance] = request
    found = [f.name for f in fields(dataclass)]
    return sorted(found, key=lambda name: name in RUNNING)


def spell_out(function: Callable[..., Any], request: type[RunRequest], result: type) -> None:
    """Make help() and notebooks show every option of a function with its default and its description."""
    own, options = inspect.signature(function).parameters, inspect.signature(request).parameters
    first = [options[name] for name, p in own.items() if name in options and p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p.replace(kind=p.KEYWORD_ONLY) for p in options.values() if p not in first]
    beside = [p for name, p in own.items() if name not in options and p.kind is p.KEYWORD_ONLY]
    signature = inspect.Signature([*first, *named, *beside], return_annotation=result)
    function.__signature__ = signature  # type: ignore[attr-defined]
    descriptions = described(request)
    arguments = [name for name, p in own.items() if p.kind is not p.VAR_KEYWORD]
    spell_out_arguments(function, {p.name: descriptions.get(p.name, "") for p in named if p.name not in arguments})


@dataclass(frozen=True)
class ReproduceRequest(RunRequest):
    """The arguments of `icy.reproduce`.

    Attributes:
        table: the name of a published table, as in "icy22/table3".
        only: names or wildcards of models in the table; by default all.
        grammar: names of grammars in the table; by default all. Concat is always trained.
        representation: "soft", "gumb" or "discr", if in the table; by default all.
        seeds: number of seeds, or the seeds; by default the paper's number.
        observations: for agents: number of observations that each learns from; by default the paper's number.
        settings: changes to the training settings of the preset `published`.
        quick: one seed of the row that is expected to take the least time, under one representation, to try it out.
    """

    function = "icy.reproduce"
    small = MappingProxyType({"seeds": 1})

    table: str
    only: str | Iterable[str] = option((), metavar="NAME[,NAME]", completes="models")
    grammar: str | Iterable[str] = option((), flags=("--grammar", "-g"), metavar="NAME", completes="grammars")
    representation: Representations = option((), names=("soft", "gumb", "discr"))
    seeds: Numbers | None = option(None, **SEEDS)
    observations: int | None = option(None, metavar="N", exponents=True)
    settings: Mapping[str, Any] = option(
        {}, flags=("--set",), help="a change to the settings of the preset, as in check_every=400."
    )
