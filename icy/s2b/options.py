"""Types of the settings that the functions and environments of S2B take by name, for type checkers and editors.

They repeat the fields of GameSettings and RecallSettings, and the names in their tables; the tests compare them, as for
`icy.config.options`.
"""

from typing import Literal, TypedDict

GameKind = Literal["meta", "common"]
Query = Literal["all", "tss"]
QueryOrder = Literal["random", "index"]
QueryOf = Literal["listener", "speaker"]
View = Literal["full", "partial"]
Masks = Literal["paper", "near32"]
GameSplit = Literal["support", "query", "all"]
RecallSplit = Literal["all", "support"]
Stimuli = Literal["scs", "ohe"]
Truncation = Literal["resample", "clip", "none"]
Compat = Literal["near32"]
Actions = Literal["factored", "flat", "role"]
Messages = Literal["one-hot", "tokens"]
Observations = Literal["dict", "box"]
RenderMode = Literal["ansi", "rgb_array"]


class GameOptions(TypedDict, total=False):
    """Settings of a game by name; see GameSettings."""

    compat: Compat | None
    kind: GameKind
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
    view: View
    feedback: bool
    permutation: bool
    listener_messages: bool
    query: Query
    query_order: QueryOrder
    query_of: QueryOf
    truncate: Truncation
    representation: Stimuli
    threshold: int
    masks: Masks
    distinct: bool
    games: int
    split: GameSplit
    space_seed: int


class ParallelOptions(GameOptions, total=False):
    """Arguments of `parallel_env` by name."""

    actions: Actions
    messages: Messages
    latents: bool
    observations: Observations
    observe_mask: bool
    render_mode: RenderMode | None


class RecallOptions(TypedDict, total=False):
    """Settings of the recall task by name; see RecallSettings."""

    compat: Compat | None
    dimensions: int
    least: int
    most: int
    shots: int
    representation: Stimuli
    truncate: Truncation
    split: RecallSplit
    replacement: bool
    games_per_shot: int | None
    right: float
    wrong: float
