"""Settings of the game, and the differences between the authors' program and their papers."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Self, cast

from icy.config.requests import names
from icy.config.settings import Departure
from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, quoted, unknown
from icy.core.fields import check_fields, setting
from icy.core.text import counted
from icy.languages.meanings import MeaningSpace

from .episode_streams import checked_seed
from .targets import TEST_VALUES, Stimuli, Truncation

Query = Literal["all", "tss"]
Compat = Literal["near32"]
MOST_MEANINGS = 1_000_000
MOST_SHOTS = 1000

# Differences between the authors' program and their papers.
NEAR32: dict[str, Departure] = {
    "samples": Departure({"truncate": "none"}, "samples may leave their section (about seven in ten thousand do)"),
    "schedule": Departure(
        {"query_of": "speaker"},
        "the query schedules the speaker's stimuli, as in the papers; where the answer is no, the listener sees "
        "another stimulus, often one that it has seen before, so novelty alone reveals the answer",
    ),
    "query": Departure(
        {"query": "tss", "query_order": "index"},
        "the query shows as many meanings as it takes to show every value S times, or all of them in order where "
        "there are few",
    ),
    "ratio": Departure({"ratio": None}, "all answers are equally often right: the target is kept in 1 of K + 2 games"),
    "masks": Departure({"masks": "near32"}, "the speaker may speak at every step; the listener only when it decides"),
    "duplicates": Departure(
        {"distinct": False},
        "distractors may share the meaning of the target, or of the stimulus in its place; samples are drawn again "
        "when they are shown, so the listener may see the speaker's own sample",
    ),
}
COMPATS: dict[str, dict[str, Departure]] = {"near32": NEAR32}


@dataclass(frozen=True)
class Sizes:
    """Sizes of a player's observations and actions: all that a network knows of a game. GameSettings has them too.

    The defaults describe a task for one agent: it sees one stimulus at a time, acts in the step after it, and gets
    messages of one token from an empty vocabulary, which are always empty.

    Attributes:
        width: length of a stimulus, W.
        decisions: number of decisions.
        representation: representation of stimuli: "scs" or "ohe".
        slots: number of stimuli that the player sees.
        rounds: number of messages before the decision, N.
        length: number of tokens in a message, L.
        vocab_size: number of tokens, without the end token, V.
        listener_messages: whether the player sends messages as well.
    """

    width: int
    decisions: int
    representation: Stimuli
    slots: int = 1
    rounds: int = 1
    length: int = 1
    vocab_size: int = 0
    listener_messages: bool = False


class WithCompat:
    """Base of settings dataclasses that can take the authors' program's choices as defaults (`compat`).

    Attributes:
        called: name of the game or task with these settings, for error messages.
        compats: differences from the defaults, by name of the compat.
    """

    called: ClassVar[str]
    compats: ClassVar[Mapping[str, Mapping[str, Departure]]]

    dimensions: int
    least: int
    most: int
    representation: Stimuli

    @property
    def space(self) -> MeaningSpace:
        """The largest space of an episode. Its numbers identify the meanings of all episodes."""
        return MeaningSpace(self.dimensions, self.most)

    @property
    def width(self) -> int:
        """Length of a stimulus, W."""
        return self.dimensions * (self.most if self.representation == "ohe" else 1)

    def check_space(self) -> None:
        """Raise an error if the smallest number of values is above the largest."""
        if self.most < self.least:
            raise InvalidSettingError(
                f"The smallest number of values, least={self.least}, must not be above the largest, most={self.most}."
            )

    @classmethod
    def of(cls, settings: Self | None = None, *, compat: str | None = None, **given: Any) -> Self:
        """Return settings from an instance or from keyword arguments, with the defaults of `compat`.

        Args:
            settings: an instance, which is returned unchanged.
            compat: "near32" to use the authors' program's choices as defaults.
            **given: settings by name.

        Raises:
            UnknownNameError: an unknown setting or compat.
            InvalidSettingError: both an instance and settings by name, or settings that are not accepted.
        """
        if settings is not None:
            if given or compat:
                raise InvalidSettingError(f"Give either {cls.__name__} or settings by name, not both.")
            if not isinstance(settings, cls):
                raise InvalidSettingError(f"settings must be {cls.__name__}, not {quoted(settings)}.")
            return settings
        known = names(cls)
        for name in given:
            if name not in known:
                raise unknown(f"setting of {cls.called}", name, [*known, "compat"])
        if compat is not None and not (isinstance(compat, str) and compat in cls.compats):
            raise unknown("compat", str(compat), list(cls.compats))
        return cls(**{**(cls._of_compat(compat, given) if compat else {}), **given})

    def changed(self, *, compat: str | None = None, **given: Any) -> Self:
        """Return a copy with the given settings, and with those of `compat` for the others. Errors as for `of`."""
        if compat is not None and compat not in self.compats:
            raise unknown("compat", str(compat), list(self.compats))
        own = asdict(cast(Any, self))
        return self.of(**{**own, **(self._of_compat(compat, {**own, **given}) if compat else {}), **given})

    @classmethod
    def _of_compat(cls, compat: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a compat, which may depend on the given settings."""
        return {name: value for d in cls.compats[compat].values() for name, value in d.settings.items()}


@dataclass(frozen=True, kw_only=True)
class GameSettings(WithCompat):
    """Settings of a referential game, meta (MetaRG22, MetaRG24) or common (MetaRG24, algorithm 4).

    Attributes:
        kind: "meta": every episode has its own symbolic space and vocabulary, and a support phase before its query
            phase; "common": all episodes share a space, and an episode plays games of one split.
        dimensions: number of dimensions of the symbolic space, N_dim.
        least: smallest number of values of a dimension, V_min.
        most: largest number of values of a dimension, V_max.
        shots: how often the support shows each value at least, S.
        samples: number of stimuli per meaning, O; with more than one the game is object-centric.
        distractors: number of stimuli in addition to the target, K.
        rounds: number of messages in a game before the listener decides, N.
        vocab_size: number of tokens, without the end token, V; by default one more than `most`.
        length: number of tokens in a message, L; by default one per dimension.
        descriptive: whether the listener may answer that it does not see the target's meaning.
        ratio: share of games in which the listener of a descriptive game sees the target's meaning; None: 1 / (K + 2).
        view: "full": the speaker sees the distractors too; "partial": it sees only the target.
        feedback: whether the listener sees the speaker's stimuli at the end of a game.
        permutation: whether every episode renames the tokens between the players.
        listener_messages: whether the listener may send messages back.
        query: the stimuli that the query shows: "all": every meaning and sample of its split; "tss": as many as needed
            to show every value S times.
        query_order: order of query "all": "random", or by "index".
        query_of: player with the scheduled stimuli in a meta game's query. "speaker": the schedule gives the
            targets, as in the papers. If the answer is "not there", the listener sees another stimulus, and having seen
            it before reveals the answer. "listener": the schedule gives the listener's stimuli, which reveal nothing;
            the speaker describes any of them, or another stimulus.
        truncate: treatment of samples outside their section: "resample": draw them again, so that values never
            overlap; "clip": move them to the end of the section; "none": keep them.
        representation: representation of stimuli: "scs": one number per dimension; "ohe": one-hot blocks.
        threshold: smallest number of dimensions in which a meaning of the query has a test value.
        masks: rule for legal actions: the "paper"'s, or the authors' program's ("near32").
        distinct: if True, distractors never share the target's meaning, and the listener never sees the speaker's own
            sample where there is another. If False, both may happen, and samples are drawn again when they are shown.
        games: number of games in an episode of a common game.
        split: the targets of a common game: "support", "query" or "all".
        space_seed: seed of the space that the episodes of a common game share.

    Raises:
        InvalidSettingError, UnknownNameError: settings that are not accepted, or that cannot be combined.

    Example:
        >>> from icy.s2b import GameSettings
        >>> settings = GameSettings(shots=2, samples=4)
        >>> settings.vocab_size, settings.length, settings.decisions
        (6, 3, 2)
    """

    called = "the game"
    compats = COMPATS

    kind: Literal["meta", "common"] = setting("meta", "kind of game")
    dimensions: int = setting(3, least=1)
    least: int = setting(2, least=2)
    most: int = setting(5, least=1)
    shots: int = setting(1, least=1)
    samples: int = setting(1, least=1)
    distractors: int = setting(0, least=0)
    rounds: int = setting(1, least=1)
    vocab_size: int = setting(None, least=1)  # completed below
    length: int = setting(None, least=1)
    descriptive: bool = True
    ratio: float | None = 0.5
    view: Literal["full", "partial"] = "full"
    feedback: bool = True
    permutation: bool = True
    listener_messages: bool = False
    query: Query = "all"
    query_order: Literal["random", "index"] = setting("random", "order of the query")
    query_of: Literal["listener", "speaker"] = setting("listener", "player that the query schedules")
    truncate: Truncation = setting("resample", "rule for samples outside their section")
    representation: Stimuli = setting("scs", "representation of stimuli")
    threshold: int = setting(TEST_VALUES, least=1)
    masks: Literal["paper", "near32"] = "paper"
    distinct: bool = True
    games: int = setting(1, least=1)
    split: Literal["support", "query", "all"] = "support"
    space_seed: int = 0

    def __post_init__(self) -> None:
        if self.vocab_size is None:
            object.__setattr__(self, "vocab_size", whole_number("setting most", self.most) + 1)
        if self.length is None:
            object.__setattr__(self, "length", self.dimensions)
        check_fields(self)
        self._check_numbers()
        self._check_combinations()
        self._check_distractors()

    # -- derived settings ----------------------------------------------------------------------------------------------

    @property
    def decisions(self) -> int:
        """Number of decisions: one per slot, plus "not there" in a descriptive game."""
        return self.slots + self.descriptive

    @property
    def slots(self) -> int:
        """Number of stimuli that the listener sees, K + 1."""
        return self.distractors + 1

    @property
    def speaker_slots(self) -> int:
        """Number of stimuli that the speaker sees."""
        return self.slots if self.view == "full" else 1

    @property
    def kept(self) -> float:
        """Probability that the listener sees the target's meaning."""
        if not self.descriptive:
            return 1.0
        return 1 / self.decisions if self.ratio is None else float(self.ratio)

    @property
    def reach(self) -> int:
        """Length of the longest sentence that a game's messages can express: a round after the first adds a token."""
        return self.length + self.rounds - 1

    # -- checks --------------------------------------------------------------------------------------------------------

    def _check_numbers(self) -> None:
        checked_seed(self.space_seed)
        self.check_space()
        # With 2 or more values, more dimensions than this are always too many: the power may be too large to compute.
        too_many = self.dimensions >= MOST_MEANINGS.bit_length()
        if too_many or self.most**self.dimensions > MOST_MEANINGS:
            raise InvalidSettingError(
                f"A space of up to {self.most} values in {self.dimensions} dimensions has more than {MOST_MEANINGS:,} "
                "meanings; take fewer dimensions or values."
            )
        if self.shots > MOST_SHOTS:
            raise InvalidSettingError(f"shots must be at most {MOST_SHOTS:,}, not {self.shots:,}.")
        if self.ratio is not None and not (isinstance(self.ratio, (int, float)) and 0 <= self.ratio <= 1):
            raise InvalidSettingError(f"The descriptive ratio must be from 0 to 1, not {self.ratio!r}.")

    def _check_combinations(self) -> None:
        if not self.descriptive and not self.distractors:
            raise InvalidSettingError(
                "A game without distractors that is not descriptive has only one answer; take distractors, or "
                "descriptive=True."
            )
        if self.kind == "meta" and (self.games, self.split, self.space_seed) != (1, "support", 0):
            raise InvalidSettingError("games, split and space_seed are settings of common games; take kind 'common'.")
        if self.kind == "meta" and self.threshold == 1:
            raise InvalidSettingError(
                "The threshold must be at least 2: with 1, the support has no test values, and cannot show every value."
            )
        if self.threshold > self.dimensions and not (self.kind == "common" and self.split == "all"):
            raise InvalidSettingError(
                f"threshold={self.threshold} is above the number of dimensions, {self.dimensions}, so no meaning "
                "belongs to the query; take more dimensions, or a lower threshold."
            )
        even = max(self.most - self.most % 2, self.least)  # query "tss" chooses among the stimuli of large spaces
        chooses = (even // 2) ** self.dimensions * self.samples >= self.shots * self.dimensions * even
        if self.kind == "meta" and self.query == "tss" and self.threshold == self.dimensions and chooses:
            raise InvalidSettingError(
                f"With {counted(self.dimensions, 'dimension')} the query has no plain values, so query 'tss' cannot "
                "show each of them; take query 'all', or more dimensions."
            )
        if self.representation == "ohe" and self.samples > 1:
            raise InvalidSettingError("One-hot stimuli have one sample per meaning; take samples=1.")

    def _check_distractors(self) -> None:
        """Raise an error if the smallest possible space has too few stimuli for the distractors."""
        stimuli = (self._fewest_meanings() - 1) * self.samples
        # The stimulus that replaces the target, where the listener does not see its meaning, must not be a distractor.
        needed = max(self.distractors, min(self.slots, 2) if self.kept < 1 else 0)
        if stimuli < needed:
            raise InvalidSettingError(
                f"{needed} stimuli are needed in addition to the target; the smallest space, of {self.least} values "
                f"in {counted(self.dimensions, 'dimension')}, has {stimuli} in the same phase; take fewer distractors, "
                "more values or more samples."
            )

    def _fewest_meanings(self) -> int:
        """Count the meanings of the smallest phase: the support of the smallest space, or a common game's split."""
        n, plain, test = self.dimensions, (self.least + 1) // 2, self.least // 2
        everything = int(self.least**n)
        if self.threshold > n:
            return everything
        support = sum(math.comb(n, t) * test**t * plain ** (n - t) for t in range(self.threshold))
        if self.kind == "meta" or self.split == "support":
            return int(support)
        return everything - int(support) if self.split == "query" else everything
