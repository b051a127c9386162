"""Representations: the outputs of senders, and the losses that train them (Perkins21 section 2.8, Icy22, CBM24).

A model always returns scores. Its samples are a function of the scores and the noise of the update (`icy.core.noise`).
So a sender's feedback loop, the loss, and the receiver of the message all use the same sample.

Every loss keeps leading axes, so that the same call works for one model or a stack: scores `[..., batch, place,
choice]` give losses `[...]`, one per model.
"""

from dataclasses import fields, is_dataclass, replace

from icy.core.errors import InvalidSettingError, unknown

from .codes import COMMITMENT as COMMITMENT
from .codes import Codebook as Codebook
from .codes import LearnedCodebook as LearnedCodebook
from .codes import Quantized as Quantized
from .ending import LAZY_DIVISOR as LAZY_DIVISOR
from .ending import LAZY_POWER as LAZY_POWER
from .ending import Ending as Ending
from .ending import EndingDiscrete as EndingDiscrete
from .ending import with_ends as with_ends
from .losses import INSIDE_LOG as INSIDE_LOG
from .losses import SMALLEST_DEVIATION as SMALLEST_DEVIATION
from .losses import VOCABULARY as VOCABULARY
from .losses import WITH_START as WITH_START
from .losses import Answering as Answering
from .losses import SpokenSymbols as SpokenSymbols
from .losses import Symbols as Symbols
from .losses import WithoutParameters as WithoutParameters
from .losses import advantage as advantage
from .losses import cross_entropy as cross_entropy
from .losses import entropy as entropy
from .losses import squared_error as squared_error
from .samples import Answered as Answered
from .samples import Losses as Losses
from .samples import Meanings as Meanings
from .samples import Representation as Representation
from .samples import Scores as Scores
from .samples import Sent as Sent
from .samples import StepScores as StepScores
from .samples import Targets as Targets
from .samples import Words as Words
from .samples import largest as largest
from .samples import one_hot as one_hot
from .samples import relaxed as relaxed
from .samples import sampled as sampled
from .samples import straight_through as straight_through
from .samples import without_start as without_start
from .symbols import ANSWERS as ANSWERS
from .symbols import DISCRETE as DISCRETE
from .symbols import SOFT as SOFT
from .symbols import TEMPERATURE as TEMPERATURE
from .symbols import Discrete as Discrete
from .symbols import Gumbel as Gumbel
from .symbols import GumbelSoftmax as GumbelSoftmax
from .symbols import Soft as Soft

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
