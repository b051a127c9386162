"""Messages that a sender may end early: their largest length, the cost of a symbol, and measures of their lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from icy.core.checks import real_number, whole_number
from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language

# Costs of Rita et al. 2020 by name: whether the sender is lazy, and whether the receiver is impatient.
PRESETS = {"lazy": (True, False), "impatient": (False, True), "lazimpa": (True, True)}


@dataclass(frozen=True)
class Lengths:
    """The lengths of a pair's messages.

    Attributes:
        max_length: most symbols of a message that the sender may end early; None for messages of a fixed length.
        length_cost: cost of a symbol before the end token, or one of PRESETS; 0 for none.

    Raises:
        InvalidSettingError: a length or a cost that is not possible, or a cost of messages of a fixed length.
    """

    max_length: int | None = None
    length_cost: float | str = 0.0

    def __post_init__(self) -> None:
        if self.max_length is not None:
            object.__setattr__(self, "max_length", whole_number("maximum length", self.max_length))
        object.__setattr__(self, "length_cost", _checked_cost(self.length_cost))
        if self.length_cost and self.max_length is None:
            raise InvalidSettingError(
                f"length_cost={self.length_cost} needs messages that the sender may end: give max_length too."
            )

    @property
    def vary(self) -> bool:
        """Whether the sender may end messages early."""
        return self.max_length is not None

    @property
    def costs(self) -> tuple[float, bool, bool]:
        """The cost of a symbol, whether the sender is lazy, and whether the receiver is impatient."""
        if isinstance(self.length_cost, str):
            return 0.0, *PRESETS[self.length_cost]
        return self.length_cost, False, False

    @property
    def readings(self) -> int:
        """How many prefixes of a message the receiver reads in training."""
        return self.max_length if self.max_length is not None and self.costs[2] else 1

    def config(self) -> Choices:
        """Return the settings that can change numbers; empty for messages of a fixed length."""
        if not self.vary:
            return {}
        return {"max_length": self.max_length, **({"length_cost": self.length_cost} if self.length_cost else {})}

    def facts(self) -> dict[str, str]:
        """Return the settings that can change numbers, as texts; empty for messages of a fixed length."""
        cost = self.length_cost if isinstance(self.length_cost, str) else f"{self.length_cost:g}"
        texts = {
            "max_length": f"at most {counted(self.max_length or 0, 'token')}",
            "length_cost": f"length cost {cost}",
        }
        return {name: texts[name] for name in self.config()}

    @classmethod
    def of(cls, config: Fields) -> Lengths:
        """Return the lengths of a configuration."""
        return cls(**{f.name: config[f.name] for f in fields(cls) if f.name in config})


def _checked_cost(given: float | str) -> float | str:
    if isinstance(given, str) and given in PRESETS:
        return given
    try:
        return real_number("length cost", float(given))
    except (TypeError, ValueError):  # InvalidSettingError is a ValueError
        raise InvalidSettingError(
            f"length_cost must be a number of at least 0, lazy, impatient or lazimpa, not {quoted(given)}."
        ) from None


def length_measures(languages: Sequence[Language], frequencies: Frequencies | None, seed: int) -> Choices:
    """Measure the lengths of the messages of one or several senders.

    Args:
        languages: the language of each sender, with an end token.
        frequencies: which meanings exist, and how often; by default all, equally often.
        seed: seed of the pair.

    Returns:
        `mean_length`, the mean number of symbols before the end token over meanings, weighted by their frequencies, and
        over senders; and, if frequencies differ, `length_by_rank`: Spearman's correlation of length with the rank of
        the meaning, 1 for the most frequent; None if all lengths are equal. Positive if frequent meanings have shorter
        messages (Zipf's law of abbreviation). A mean over the senders for which it is defined.
    """
    space = languages[0].space
    numbers, weights = (frequencies or Frequencies()).of_seed(space, seed)
    lengths = [language.lengths[numbers] for language in languages]
    relative = weights / weights.max()  # exactly 1 if all are equal
    means = [float(np.average(of_one, weights=relative)) for of_one in lengths]
    found: Choices = {"mean_length": float(np.mean(means))}
    if np.ptp(weights) > 0:
        from scipy.stats import spearmanr

        rhos = [float(spearmanr(of_one, -weights).statistic) for of_one in lengths if np.ptp(of_one) > 0]
        found["length_by_rank"] = float(np.mean(rhos)) if rhos else None
    return found
