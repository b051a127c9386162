"""Types of the options that the public functions take by name, for type checkers and editors.

Each class repeats the fields of a spec of `icy.config.specs`, less those that its function takes by position; each
Literal repeats the names in a table of icy. They cannot be computed, as a type checker runs no code; the tests compare
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

from .settings import SymbolsName

Paths = str | Path | Iterable[str | Path]
Numbers = int | str | Iterable[int]
Grammars = str | Path | Language | Iterable[str | Path | Language]
Meanings = str | MeaningSpace | tuple[int, int]

ProtocolName = Literal["budget", "acquire", "generalise"]
RepresentationName = Literal["soft", "gumb", "discr", "gs", "qt", "cb"]
PresetName = Literal["default", "published"]
Protocols = ProtocolName | Literal["all"] | Iterable[ProtocolName]
Representations = RepresentationName | Literal["all"] | Iterable[RepresentationName]
Presets = PresetName | Literal["all"] | Iterable[PresetName]
Spaces = Meanings | Iterable[Meanings]
SplitName = Literal["random", "combinations"]
SideName = Literal["sender", "receiver"]
RunnerName = Literal["local", "ray"]
Rerun = Literal["missing", "failed", "always", "never"]
TrackerName = Literal["tensorboard", "mlflow", "wandb"]
OrderName = Literal["longest", "given"]
Engine = Literal[
    "auto", "native", "broadcast", "vmap", "loop",
    "auto+plain", "broadcast+plain", "vmap+plain", "loop+plain",
    "auto+graph", "broadcast+graph", "vmap+graph", "loop+graph",
]  # fmt: skip


class RunOptions(TypedDict, total=False):
    """Options of all functions that train; see RunSpec."""

    quick: bool
    device: str
    workers: int | None
    runner: RunnerName
    per_gpu: int
    engine: Engine
    out: str | Path
    rerun: Rerun
    start: Paths
    keep_models: bool
    plugin: Paths
    track: TrackerName | Iterable[TrackerName]


class ProbeOptions(RunOptions, total=False):
    """Options of `icy.probe`; see ProbeSpec."""

    protocol: Protocols
    meanings: Spaces
    vocab_size: Numbers
    word_length: Numbers
    seeds: Numbers
    word_seeds: Numbers | None
    target: float | None
    cap: float | None
    max_updates: int | None
    held_out: float
    split: SplitName
    hidden: Numbers
    representation: Representations
    symbols: SymbolsName | None
    preset: Presets
    options: Mapping[str, Any]
    settings: Mapping[str, Any]


class SweepOptions(ProbeOptions, total=False):
    """Options of `icy.sweep`; see SweepSpec, and for the last eight, of sweeps over pairs, EndToEndSpec."""

    grammar: Grammars
    side: SideName | None
    kind: str
    parts: Sequence[Mapping[str, Any]]
    shard: str | None
    retries: int
    order: OrderName
    sender: str | Iterable[str]
    receiver: str | Iterable[str]
    pretrain: Grammars
    steps: int | None
    most: int
    pretrain_representation: Representations
    pretrained: str | Path | None
    report_every: int
    sender_options: Mapping[str, Any]
    receiver_options: Mapping[str, Any]


class EndToEndOptions(RunOptions, total=False):
    """Options of `icy.end_to_end`; see EndToEndSpec."""

    representation: Representations
    steps: int | None
    cap: float
    most: int
    target: float
    pretrain_representation: Representations
    pretrained: str | Path | None
    report_every: int
    meanings: Spaces
    vocab_size: Numbers
    word_length: Numbers
    seeds: Numbers
    hidden: Numbers
    symbols: SymbolsName | None
    preset: Presets
    sender_options: Mapping[str, Any]
    receiver_options: Mapping[str, Any]
    settings: Mapping[str, Any]


class ReproduceOptions(RunOptions, total=False):
    """Options of `icy.reproduce`; see ReproduceSpec."""

    grammar: str | Iterable[str]
    representation: Representations
    seeds: Numbers | None
    observations: int | None
    settings: Mapping[str, Any]
