"""Written by `python -m tests.stubs`; change the specs and settings instead."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Unpack, overload

from icy.config.options import ChainOptions, EndToEndOptions, ProbeOptions, RunOptions
from icy.config.settings import Grammars, Numbers, SideName, Spaces
from icy.experiments.progress import Watcher
from icy.experiments.results import EndToEndResult, ProbeResult

class ChainArguments(ChainOptions, total=False):
    model: str | Iterable[str]
    grammar: Grammars

class ContextArguments(RunOptions, total=False):
    model: str | Iterable[str]
    grammar: str | Iterable[str]
    seeds: Numbers
    meanings: Spaces
    vocab_size: Numbers
    word_length: Numbers
    temperature: float
    top_p: float
    top_k: int | None
    repetition_penalty: float | None
    key_variable: str | None
    timeout: float
    retries: int
    backoff: float
    concurrency: int
    role: SideName | Literal["all"] | Iterable[SideName]
    protocol: Literal["acquire", "generalise"] | Literal["all"] | Iterable[Literal["acquire", "generalise"]]
    form: str | Iterable[str]
    answers: Literal["text", "choices"] | Literal["all"] | Iterable[Literal["text", "choices"]]
    target: float
    most: int | None
    held_out: int
    batch: int
    max_tokens: int
    cache: str | Path
    max_requests: int | None
    price_prompt: float
    body: Mapping[str, object]

class EndToEndArguments(EndToEndOptions, total=False):
    sender: str | Iterable[str]
    receiver: str | Iterable[str]
    pretrain: Grammars

class GamesArguments(RunOptions, total=False):
    rule_length: Numbers
    targets: Numbers
    distractors: int | None
    distractor_kind: str | Iterable[str]
    word_size: Numbers | None
    message_length: Numbers | None
    perception: str | None
    seeds: Numbers
    world: str | Iterable[str]
    representation: str | Iterable[str]
    sender: str | Iterable[str]
    receiver: str | Iterable[str]
    sender_hidden: int
    receiver_hidden: int
    sender_sees: str
    updates: int
    preset: str | Iterable[str]
    game: Mapping[str, Any]
    settings: Mapping[str, Any]
    world_options: Mapping[str, Any]
    representation_options: Mapping[str, Any]
    sender_options: Mapping[str, Any]
    receiver_options: Mapping[str, Any]
    perception_options: Mapping[str, Any]

class ProbeArguments(ProbeOptions, total=False):
    model: str | Iterable[str]
    grammar: Grammars

class RecallArguments(RunOptions, total=False):
    stimuli: str | Iterable[str]
    compat: str
    seeds: Numbers
    updates: int | None
    core: str | Iterable[str]
    preset: str | Iterable[str]
    observations: int | None
    report_every: int | None
    episodes: int
    task: Mapping[str, Any]
    settings: Mapping[str, Any]
    options: Mapping[str, Any]

class AgentArguments(RunOptions, total=False):
    shots: Numbers
    samples: Numbers
    distractors: Numbers
    most: Numbers
    least: int
    deaf: bool
    hearing: bool
    seeds: Numbers
    updates: int | None
    core: str | Iterable[str]
    learner: str | Iterable[str]
    speaker: str | Iterable[str]
    preset: str | Iterable[str]
    observations: int | None
    report_every: int | None
    episodes: int
    eoa: int
    game: Mapping[str, Any]
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    speaker_options: Mapping[str, Any]

class StudyArguments(RunOptions, total=False):
    player: str | Iterable[str]
    dataset: str | Iterable[str]
    grammar: str | Iterable[str]
    instances: int
    protocol: (
        Literal["played", "converged", "yoked"] | Literal["all"] | Iterable[Literal["played", "converged", "yoked"]]
    )
    list_seed: int
    preset: Literal["clean", "published"] | Literal["all"] | Iterable[Literal["clean", "published"]]
    yoked_to: str
    hidden: int
    representation: str | Iterable[str]
    updates: int
    most: int
    settings: Mapping[str, Any]
    game: Mapping[str, Any]
    options: Mapping[str, Any]

@overload
def train(
    kind: Literal["chain"],
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[ChainArguments],
) -> ProbeResult: ...
@overload
def train(
    kind: Literal["context"],
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[ContextArguments],
) -> ProbeResult: ...
@overload
def train(
    kind: Literal["e2e"],
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[EndToEndArguments],
) -> EndToEndResult: ...
@overload
def train(
    kind: Literal["games"],
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[GamesArguments],
) -> ProbeResult: ...
@overload
def train(
    kind: Literal["probe"],
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[ProbeArguments],
) -> ProbeResult: ...
@overload
def train(
    kind: Literal["recall"],
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[RecallArguments],
) -> ProbeResult: ...
@overload
def train(
    kind: Literal["s2b"],
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[AgentArguments],
) -> ProbeResult: ...
@overload
def train(
    kind: Literal["study"],
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[StudyArguments],
) -> ProbeResult: ...
@overload
def train(
    kind: str, *, watcher: Watcher | None = None, progress: bool | None = None, **options: Any
) -> ProbeResult: ...
