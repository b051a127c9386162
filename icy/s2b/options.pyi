"""Written by `python -m tests.stubs`; change the specs and settings instead."""

from typing import Literal, TypedDict

from icy.s2b.environments.adapter import RenderMode
from icy.s2b.environments.spaces import ActionsName, MessagesName, ObservationsName
from icy.s2b.settings import Compat, Query
from icy.s2b.targets import Stimuli, Truncation

class GameOptions(TypedDict, total=False):
    compat: Compat | None
    kind: Literal["meta", "common"]
    dimensions: int
    least: int
    most: int
    shots: int
    samples: int
    distractors: int
    rounds: int
    vocab_size: int
    length: int
    descriptive: bool
    ratio: float | None
    view: Literal["full", "partial"]
    feedback: bool
    permutation: bool
    listener_messages: bool
    query: Query
    query_order: Literal["random", "index"]
    query_of: Literal["listener", "speaker"]
    truncate: Truncation
    representation: Stimuli
    threshold: int
    masks: Literal["paper", "near32"]
    distinct: bool
    games: int
    split: Literal["support", "query", "all"]
    space_seed: int

class ParallelOptions(GameOptions, total=False):
    actions: ActionsName
    messages: MessagesName
    latents: bool
    observations: ObservationsName
    observe_mask: bool
    render_mode: RenderMode | None

class RecallOptions(TypedDict, total=False):
    compat: Compat | None
    dimensions: int
    least: int
    most: int
    shots: int
    representation: Stimuli
    truncate: Truncation
    split: Literal["all", "support"]
    replacement: bool
    games_per_shot: int | None
    right: float
    wrong: float

class RecallEnvOptions(RecallOptions, total=False):
    latents: bool
    observations: ObservationsName
    observe_mask: bool
    render_mode: RenderMode | None
