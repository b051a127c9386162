"""Representations: the outputs of senders, and the losses that train them (Perkins21 section 2.8, Icy22, CBM24).

A model always returns scores. Its samples are a function of the scores and the noise of the update (`icy.core.noise`).
So a sender's feedback loop, the loss, and the receiver of the message all use the same sample.

Every loss keeps leading axes, so that the same call works for one model or a stack: scores `[..., batch, place,
choice]` give losses `[...]`, one per model.
"""

from dataclasses import fields, is_dataclass, replace

from icy.core.errors import InvalidSettingError, unknown

from .codes import COMMITMENT, Codebook, LearnedCodebook, Quantized
from .ending import LAZY_DIVISOR, LAZY_POWER, Ending, EndingDiscrete, with_ends
from .losses import (
    INSIDE_LOG,
    SMALLEST_DEVIATION,
    VOCABULARY,
    WITH_START,
    Answered,
    Answering,
    Losses,
    Meanings,
    Representation,
    Scores,
    Sent,
    SpokenSymbols,
    StepScores,
    Symbols,
    Targets,
    WithoutParameters,
    Words,
    advantage,
    cross_entropy,
    entropy,
    largest,
    one_hot,
    relaxed,
    sampled,
    squared_error,
    straight_through,
    without_start,
)
from .symbols import ANSWERS, DISCRETE, SOFT, TEMPERATURE, Discrete, Gumbel, GumbelSoftmax, Soft

__all__ = [
    "ANSWERS",
    "COMMITMENT",
    "DISCRETE",
    "INSIDE_LOG",
    "LAZY_DIVISOR",
    "LAZY_POWER",
    "REPRESENTATIONS",
    "SMALLEST_DEVIATION",
    "SOFT",
    "TEMPERATURE",
    "VOCABULARY",
    "WITH_START",
    "Answered",
    "Answering",
    "Codebook",
    "Discrete",
    "Ending",
    "EndingDiscrete",
    "Gumbel",
    "GumbelSoftmax",
    "LearnedCodebook",
    "Losses",
    "Meanings",
    "Quantized",
    "Representation",
    "Scores",
    "Sent",
    "Soft",
    "SpokenSymbols",
    "StepScores",
    "Symbols",
    "Targets",
    "WithoutParameters",
    "Words",
    "advantage",
    "cross_entropy",
    "entropy",
    "get_representation",
    "largest",
    "one_hot",
    "options_of",
    "relaxed",
    "sampled",
    "squared_error",
    "straight_through",
    "with_ends",
    "without_start",
]

REPRESENTATIONS: dict[str, Representation] = {
    r.name: r for r in (SOFT, Gumbel(), Discrete(), GumbelSoftmax(), Quantized(), Codebook())
}


def get_representation(name: str, **options: object) -> Representation:
    """Return the representation called `name`.

    Args:
        name: "soft", "gumb", "discr", "gs", "qt" or "cb", in any case.
        **options: values of its attributes; other options are ignored.

    Returns:
        The representation, which is immutable, so callers may share it.

    Raises:
        InvalidSettingError: `name` is not text.
        UnknownNameError: no representation has this name.
    """
    if not isinstance(name, str):
        raise InvalidSettingError(f"A representation must be a name, such as 'soft', not {type(name).__name__}.")
    representation = REPRESENTATIONS.get(name.lower())
    if representation is None:
        raise unknown("representation", name, list(REPRESENTATIONS))
    own = {key: value for key, value in options.items() if key in options_of(representation.name)}
    return replace(representation, **own) if own else representation  # type: ignore[type-var]


def options_of(name: str) -> tuple[str, ...]:
    """Return the attributes of a representation that can be set."""
    representation = REPRESENTATIONS[name]
    return tuple(f.name for f in fields(representation)) if is_dataclass(representation) else ()
