"""Written by `python -m tests.stubs`; change the specs and settings instead."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from icy.config.settings import (
    Draws,
    Engine,
    Grammars,
    Numbers,
    OrderName,
    Paths,
    Presets,
    Protocols,
    Representations,
    Rerun,
    RunnerName,
    SamplerName,
    SideName,
    Spaces,
    SplitName,
    SymbolsName,
    TrackerName,
)

class RunOptions(TypedDict, total=False):
    quick: bool
    device: str
    workers: int | None
    runner: RunnerName
    per_gpu: int
    engine: Engine
    out: str | Path
    rerun: Rerun
    initial_results: Paths
    keep_models: bool
    plugin: Paths
    track: TrackerName | Iterable[TrackerName]

class ProbeOptions(RunOptions, total=False):
    word_length: Numbers
    frequencies: str | Iterable[str] | None
    seeds: Numbers
    word_seeds: Numbers | None
    symbols: SymbolsName | None
    meanings: Spaces
    vocab_size: Numbers
    representation: Representations
    draws: Draws
    hidden: Numbers
    preset: Presets
    protocol: Protocols
    target: float | None
    cap: float | None
    max_updates: int | None
    held_out: float
    split: SplitName
    settings: Mapping[str, Any]
    options: Mapping[str, Any]

class SweepOptions(RunOptions, total=False):
    sender: str | Iterable[str]
    receiver: str | Iterable[str]
    pretrain: Grammars
    pretrained: str | Path | None
    frequencies: str | Iterable[str] | None
    seeds: Numbers
    symbols: SymbolsName | None
    meanings: Spaces
    vocab_size: Numbers
    word_length: Numbers
    representation: Representations
    draws: Draws
    hidden: Numbers
    preset: Presets
    senders: Numbers
    receivers: Numbers
    replace_every: Numbers
    replacement: str | Iterable[str]
    max_length: Numbers | None
    length_cost: float | str | Iterable[float | str]
    updates: int | None
    cap: float | None
    most: int
    target: float | None
    pretrain_representation: Representations
    report_every: int
    settings: Mapping[str, Any]
    sender_options: Mapping[str, Any]
    receiver_options: Mapping[str, Any]
    grammar: Grammars
    word_seeds: Numbers | None
    protocol: Protocols
    max_updates: int | None
    held_out: float
    split: SplitName
    options: Mapping[str, Any]
    side: SideName | None
    kind: str
    parts: Sequence[Mapping[str, Any]]
    shard: str | None
    retries: int
    order: OrderName

class SearchOptions(RunOptions, total=False):
    grammar: Grammars
    word_length: Numbers
    frequencies: str | Iterable[str] | None
    seeds: Numbers
    word_seeds: Numbers | None
    symbols: SymbolsName | None
    meanings: Spaces
    vocab_size: Numbers
    representation: Representations
    draws: Draws
    hidden: Numbers
    preset: Presets
    protocol: Protocols
    target: float | None
    cap: float | None
    max_updates: int | None
    held_out: float
    split: SplitName
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    side: SideName | None
    space: Mapping[str, Any]
    minimize: str | Iterable[str]
    maximize: str | Iterable[str]
    trials: int
    sampler: SamplerName
    sampler_seed: int
    batch: int
    rungs: Sequence[Mapping[str, Any]]
    keep: float
    finalists: int
    new_seeds: int
    larger: Mapping[str, Any]
    baselines: str | Iterable[str] | None
    people: str | Path
    instances: int
    winner: str

class EndToEndOptions(RunOptions, total=False):
    pretrained: str | Path | None
    frequencies: str | Iterable[str] | None
    seeds: Numbers
    symbols: SymbolsName | None
    meanings: Spaces
    vocab_size: Numbers
    word_length: Numbers
    representation: Representations
    draws: Draws
    hidden: Numbers
    preset: Presets
    senders: Numbers
    receivers: Numbers
    replace_every: Numbers
    replacement: str | Iterable[str]
    max_length: Numbers | None
    length_cost: float | str | Iterable[float | str]
    updates: int | None
    cap: float
    most: int
    target: float
    pretrain_representation: Representations
    report_every: int
    settings: Mapping[str, Any]
    sender_options: Mapping[str, Any]
    receiver_options: Mapping[str, Any]

class ChainOptions(RunOptions, total=False):
    receiver: str | Iterable[str]
    chains: Numbers
    bottleneck: float | str | Iterable[float]
    scheme: str | None
    meanings: Spaces
    vocab_size: Numbers
    word_length: Numbers
    representation: Representations
    draws: Draws
    hidden: Numbers
    preset: Presets
    generations: int
    transmission: Literal["greedy", "sampled"] | Literal["all"] | Iterable[Literal["greedy", "sampled"]]
    target: float | str
    updates: int
    interaction: Numbers
    population: Numbers
    replacement: Literal["simultaneous", "gradual"] | Literal["all"] | Iterable[Literal["simultaneous", "gradual"]]
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    receiver_options: Mapping[str, Any]

class ReproduceOptions(RunOptions, total=False):
    grammar: str | Iterable[str]
    representation: Representations
    seeds: Numbers | None
    observations: int | None
    settings: Mapping[str, Any]
