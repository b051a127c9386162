"""Settings, requests and presets of multi-target games.

This module does not import torch, which `icy --help` does not need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from icy.config.kinds import Settings, request_of
from icy.config.requests import RunRequest
from icy.config.settings import Departure, Numbers
from icy.core.checks import real_number
from icy.core.errors import InvalidSettingError, require_known
from icy.core.fields import CheckedFields, changed_fields, check_fields, checked, setting, stored_names
from icy.core.registry import PERCEPTION, SIDES, WORLD, Entry, registry, without_choices
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.records.kinds import JobKind

if TYPE_CHECKING:
    from .worlds.world import World

# -- settings of learning and of evaluation in multi-target games ------------------------------------------------------


TOPSIM_OF = ("phrase", "targets", "embedding")
UNMATCHED = ("matched", "assigned")
RATES = ("ambiguity_rate", "paraphrase_rate", "unmatched_rate", "precision", "recall")
UNIQUE = ("unique_words", "unique_messages", "unique_phrases", "unique_concepts")
COUNTS = ("total", "good", "ambiguous", "paraphrase", "concept_tokens", "unmatched_concepts")  # of CBM24 table 3
MEASURES = ("cbm", "cbm_floor", "cbm_holistic", *RATES, "ami", "topsim", *UNIQUE, *COUNTS)
"""Scores of a language, in the order of tables; see `icy.games.evaluation.language_scores`."""


@dataclass(frozen=True)
class GamesLearningSettings(CheckedFields):
    """Settings of learning and evaluation.

    Attributes:
        batch_size: number of turns per update.
        learning_rate: learning rate of Adam. Adam's other settings are PyTorch's defaults.
        clip_norm: largest norm of a replicate's gradient; None: no clipping.
        epoch: number of updates between evaluations. The weights of the best evaluation are the result.
        turns: number of turns per evaluation.
        selected_on: turns that select the best evaluation: "validation", or "test", the turns of the reported scores.
        topsim_of: meaning that topsim compares with messages: "phrase"; "targets", the mean of their one-hot vectors;
            or "embedding", the sender's embedding of the turn.
        unmatched: which concepts do not count as unmatched; see `icy.metrics.cbm`.
        reserved_end: whether one symbol of GS is reserved for the end of messages with several words, and never used
            within a message.
        tf32: whether a GPU multiplies matrices in TF32.
    """

    batch_size: int = setting(10, "batch size", least=1)
    learning_rate: float = setting(5e-4, "learning rate", above=0)
    clip_norm: float | None = setting(None, "clipping norm", above=0)
    epoch: int = setting(2000, "number of updates of an epoch", least=1)
    turns: int = setting(1000, "number of turns of an evaluation", least=2)
    selected_on: str = setting("validation", "choice of turns", among=("validation", "test"))
    topsim_of: str = setting("phrase", "object of topsim", among=TOPSIM_OF)
    unmatched: str = setting("matched", "reading of unmatched", among=UNMATCHED)
    reserved_end: bool = False
    tf32: bool = False


def game_conventions(config: Fields) -> dict[str, dict[str, Any]]:
    """Return the conventions of each metric in a record of a game, from the configuration of the record."""
    learning = config.get("settings", {}).get("setup", {}).get("learning", {})
    topsim_of = learning.get("topsim_of", GamesLearningSettings.topsim_of)
    return {
        "cbm": {
            "words": "tokens",
            "concepts": "items",
            "repeats": "counted",
            "unmatched": learning.get("unmatched", GamesLearningSettings.unmatched),
        },
        "ami": {"average": "max"},
        "topsim": {
            "correlation": "spearman",
            "meaning": "cosine",
            "message": "levenshtein",
            "pairs": "all",
            "normalise": "none",
            "of": topsim_of,
        },
    }


# -- settings of the turns of a multi-target game ----------------------------------------------------------------------


DISTRACTOR_KINDS = ("auto", "nearest", "near", "uniform", "groups")
MOST_CANDIDATES = 10_000


@dataclass(frozen=True)
class TurnSettings:
    """Settings of the turns of a game.

    Attributes:
        rule_length: number of concepts in a rule, l, each of a different attribute.
        targets: number of objects that obey the rule, T. They are drawn with replacement.
        distractors: number of objects that do not obey the rule, D. They are drawn with replacement.
        distractor_kind: method of drawing distractors. "uniform": uniformly from all objects that do not obey the rule.
            "near": first the number of concepts to lack, uniformly from 1 to l, and then these concepts. "nearest": a
            single concept to lack. "groups": the set of concepts to lack, uniformly from all sets (Mu & Goodman).
            "auto": uniform for rules of one concept, near for longer rules.
        rule_sampling: method of drawing rules. "attribute-first": first the attributes, uniformly, and then their
            values. "uniform": all rules with equal probability. "type-first": first the type of a formula, then the
            formula.
        held_out: share of the rules to hold out from training. The default is 0 for rules of one concept; for longer
            rules it is an eighth, or a tenth if there are a thousand rules or more, as the counts of CBM24 suggest.
        same_objects: whether the receiver sees the sender's objects; otherwise it sees other objects of the same rule.
        repeat_target: whether one object replaces all targets.
        rules: "conjunctions" of concepts, or the "formulas" of Mu & Goodman, for which `rule_length` is 1.
    """

    rule_length: int = setting(1, "rule length", least=1)
    targets: int = setting(20, "number of targets", least=1, most=MOST_CANDIDATES)
    distractors: int = setting(20, "number of distractors", least=1, most=MOST_CANDIDATES)
    distractor_kind: str = setting("auto", "kind of distractors", among=DISTRACTOR_KINDS)
    rule_sampling: str = setting(
        "attribute-first", "way to draw rules", among=("attribute-first", "type-first", "uniform")
    )
    held_out: float | None = None
    same_objects: bool = True
    repeat_target: bool = False
    rules: str = setting("conjunctions", "kind of rules", among=("conjunctions", "formulas"))

    def __post_init__(self) -> None:
        check_fields(self)
        if self.held_out is not None and real_number("share of rules held out", self.held_out, most=1.0) == 1.0:
            raise InvalidSettingError("The share of rules held out must be below 1: training needs some rules.")
        if self.rules == "formulas" and self.rule_length != 1:
            raise InvalidSettingError("Formulas do not have a rule length; leave it at 1.")

    @property
    def drawn_distractors(self) -> str:
        """Kind of distractors: `distractor_kind`, with "auto" resolved."""
        if self.distractor_kind != "auto":
            return self.distractor_kind
        if self.rules == "formulas":
            return "groups"
        return "uniform" if self.rule_length == 1 else "near"


# -- settings of a row: the agents and their game ----------------------------------------------------------------------


IMAGE_AXES = 3  # axes of an image
CONVOLUTIONS = 4  # time per operation relative to matrix products, measured with conv4 on one core
POOLED = 10  # pixels per use of a weight of conv4, approximately; later layers have fewer positions
REPRESENTATIONS = ("gs", "qt", "cb", "soft", "gumb")  # representations through which gradients pass
# Names in records and of earlier versions.
OLD_NAMES = {"channel": "representation", "channel_options": "representation_options", "steps": "updates"}
OWNERS = ("world", "representation", "perception", "sender", "receiver")  # parts with options


def _registered(kind: str) -> list[str]:
    return [entry.name for entry in without_choices(registry.entries(kind))]


@dataclass(frozen=True, kw_only=True)
class GamesSettings(Settings):
    """The agents of a row and their game. A request may have several values of some of these; each is a row.

    Attributes:
        world: names of worlds, of `icy list worlds`.
        representation: form of messages: "gs", symbols by a Gumbel-softmax that is relaxed in training; "qt", binary
            words; "cb", words of a learned codebook; or "soft" or "gumb".
        sender: names of senders, of `icy list models`.
        receiver: names of receivers.
        turns: settings of turns. Each replicate has its own kind of distractors.
        word_size: size of a word, d: number of symbols for gs and cb, number of bits for qt; by default enough for all
            concepts.
        message_length: number of words in a message; by default the number of concepts in a rule.
        sender_hidden: hidden size of the sender, and size of the vectors of its perception.
        receiver_hidden: hidden size of the receiver, and size of the vectors of its perception.
        sender_sees: "targets", or "both" for targets and distractors.
        perception: name of the perception of both agents, of `icy list perceptions`; by default one that suits the
            world.
        updates: number of updates; the best evaluation among them is the result.
        preset: "default"; "published", the settings behind the printed numbers of CBM24; or a game of Mu & Goodman
            2021, as in "mugoodman21/concept". `icy list presets` describes them.
        world_options: arguments of the world.
        representation_options: attributes of the representation.
        sender_options: further arguments of the sender.
        receiver_options: further arguments of the receiver.
        perception_options: further arguments of the perception.
        learning: settings of learning and evaluation.
    """

    kind = "games"
    old_names: ClassVar[Mapping[str, str]] = MappingProxyType(OLD_NAMES)

    world: str = setting("thing", axis=True, every=partial(_registered, WORLD))
    representation: str = setting("qt", axis=True, every=lambda: REPRESENTATIONS)
    sender: str = setting("RNNAutoReg:LSTM", axis=True, every=partial(_registered, SIDES[0]))
    receiver: str = setting("RNN1L:LSTM", axis=True, every=partial(_registered, SIDES[1]))
    turns: TurnSettings = setting(TurnSettings(), asked=False)
    word_size: int = setting(called="word size", least=1)
    message_length: int = setting(called="message length", least=1)
    sender_hidden: int = setting(60, "hidden size of the sender", least=1)
    receiver_hidden: int = setting(40, "hidden size of the receiver", least=1)
    sender_sees: str = setting("targets", "value of sender_sees", among=("targets", "both"))
    perception: str = "mlp"
    updates: int = setting(20_000, "number of updates", least=1, quick=300)
    preset: str = setting("default", axis=True)
    world_options: Fields = setting({})
    representation_options: Fields = setting({})
    sender_options: Fields = setting({})
    receiver_options: Fields = setting({})
    perception_options: Fields = setting({})
    learning: GamesLearningSettings = setting(GamesLearningSettings(), asked=False)

    # -- identity ------------------------------------------------------------------------------------------------------

    @classmethod
    def of_setup(cls, setup: Fields) -> Self:
        """Create settings from the dictionary that `setup` returns.

        Raises:
            IcyError: another version of icy wrote the dictionary.
        """
        inner = {"turns": TurnSettings, "learning": GamesLearningSettings}
        made = {n: of(**checked(of, setup[n], "setting")) for n, of in inner.items() if n in setup}
        rest = {n: value for n, value in setup.items() if n not in inner}
        return cls(**{**checked(cls, rest, "part of a training"), **made})

    def setup(self) -> Choices:
        """Return the settings that can change numbers as JSON-compatible values, without the kind of distractors."""
        found = stored_names(type(self), asdict(self))
        found.pop("preset")
        found["turns"].pop("distractor_kind")
        return found

    def config(self) -> Choices:
        """Return the entries of the configuration of a record.

        `options` has the settings that differ from the preset, and `settings` all of them.
        """
        preset, nothing = find_preset(self.preset), object()
        tables = preset_tables(preset, self.world, self.representation)
        prefixes = {"world_options": "world.", "representation_options": "channel."}
        usual = preset | {prefixes.get(t, "") + name: v for t, own in tables.items() for name, v in own.items()}
        return {
            "representation": self.representation,
            "vocab_size": self.word_size,
            "hidden_size": self.sender_hidden,
            "world": self.world,
            **self.sizes,
            "options": {name: v for name, v in self.changes().items() if usual.get(name, nothing) != v},
            "settings": {"setup": self.setup()},
        }

    def changes(self) -> Choices:
        """Return the settings without a table column that differ from the defaults, by name of the option."""
        turns = changed_fields(self.turns, TurnSettings(rule_length=self.turns.rule_length))
        shown = {"targets", "distractors", "distractor_kind"}
        options = stored_names(type(self), {one: getattr(self, f"{one}_options") for one in OWNERS})
        sizes = ("sender_hidden", "receiver_hidden", "sender_sees")
        return {
            **{f"{one}.{n}": value for one, own in options.items() for n, value in own.items()},
            **{name: getattr(self, name) for name in sizes if getattr(self, name) != getattr(GamesSettings, name)},
            **({"perception": self.perception} if self.perception != default_perception(self.made_world) else {}),
            **{name: value for name, value in turns.items() if name not in shown},
            **changed_fields(self.learning, GamesLearningSettings()),
        }

    def facts(self) -> dict[str, str]:
        """Return the settings that distinguish rows with the same name, as texts by heading."""
        return {name: str(value) for name, value in self.config().items() if name not in ("options", "settings")}

    @property
    def registered(self) -> dict[str, Entry]:
        """Registry entries of the world, the agents and the perception, by kind."""
        return {
            WORLD: registry.get(self.world, WORLD),
            **{side: registry.get(getattr(self, side), side) for side in SIDES},
            PERCEPTION: registry.get(self.perception, PERCEPTION),
        }

    @property
    def entries(self) -> list[Entry]:
        """Registry entries of the world, the agents, their cells and the perception."""
        found = list(self.registered.values())
        return [*found, *(entry.cell for entry in found if entry.cell is not None)]

    def versions(self, condition: str, seed: int) -> dict[str, str]:
        """Return the versions of the world and the parts of the agents."""
        return {kind: entry.full_version for kind, entry in self.registered.items()}

    # -- derived values ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Names of sender and receiver."""
        return f"{self.sender}+{self.receiver}"

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the game that are columns of tables."""
        sizes = {name: getattr(self.turns, name) for name in ("rule_length", "targets", "distractors")}
        return sizes | {"message_length": self.message_length}

    @property
    def words(self) -> int:
        """Size of a word of the sender: one symbol fewer if one is reserved for the end."""
        reserved = self.learning.reserved_end and self.representation == "gs" and self.message_length > 1
        return self.word_size - 1 if reserved else self.word_size

    def word_name(self, word: int) -> str:
        """Return the name of a word: its digits with QT, otherwise its number."""
        if self.representation != "qt":
            return str(word)
        levels, rest, digits = self.representation_options.get("levels", 2), word % 2**64, []
        for _ in range(self.words):
            rest, digit = divmod(rest, levels)
            digits.append(str(digit))
        return "".join(reversed(digits))

    @cached_property
    def made_world(self) -> World:
        """The world."""
        from .worlds.world import make_world

        return make_world(self.world, **self.world_options)

    @property
    def parts(self) -> int:
        """Number of vectors in the sender's input per turn: of targets, and of distractors if it sees them."""
        return 2 if self.sender_sees == "both" else 1

    def of_turns(self, distractor_kind: str) -> TurnSettings:
        """Return the settings of turns with a kind of distractors."""
        return replace(self.turns, distractor_kind=distractor_kind)

    # -- course and texts ----------------------------------------------------------------------------------------------

    def length(self, baseline: float | None) -> int:
        """Return the number of updates."""
        return self.updates

    def work(self) -> float:
        """Return the relative work of an update: objects (x positions, for images)."""
        turns, shape = self.turns, self.made_world.shape
        positions = CONVOLUTIONS * math.prod(shape[1:]) / POOLED if len(shape) == IMAGE_AXES else 1
        return positions * (turns.targets + turns.distractors) * self.learning.batch_size

    def conditions_text(self, conditions: Sequence[str]) -> str | None:
        """Return the kinds of distractors as a sentence."""
        return f"Distractors: {' and '.join(sorted(conditions))}." if conditions else None

    def summary(self, record: Fields) -> str:
        """Return a short text with the result of a replicate."""
        return (
            f"accuracy {record['accuracy']:.3f}, CBM {record['cbm']:.2f} (chance {record['cbm_floor']:.2f}) after "
            f"{counted(record['steps'], 'update')}"
        )


def default_perception(world: World) -> str:
    """Return the name of the default perception of a world: conv4 for images, otherwise mlp."""
    return "conv4" if len(world.shape) == IMAGE_AXES else "mlp"


def default_word_size(representation: str, concepts: int, levels: int = 2) -> int:
    """Return the smallest size of a word that can name every concept.

    Example:
        >>> default_word_size("gs", 50), default_word_size("qt", 50), default_word_size("qt", 17)
        (50, 6, 5)
    """
    return next(d for d in count(1) if levels**d >= concepts) if representation == "qt" else concepts


# -- requests: several rows, each with replicates ---------------------------------------------------------------------


@request_of(GamesSettings)
class GamesRequest(RunRequest):
    """Agents to train in multi-target games. Options with several values are combined; each combination is a row.

    Attributes:
        rule_length: number of concepts in a rule, l; one or several values.
        targets: number of objects that obey the rule, T; one or several values.
        distractors: number of objects that do not obey the rule, D; by default as many as targets.
        distractor_kind: how distractors are drawn: "near", lacking a random number of the concepts; "nearest", lacking
            one; "uniform", from all objects; "groups", lacking random concepts; or "auto", uniform for rules of one
            concept and near for longer rules. Several kinds are trained together.
        seeds: how many, counted from 123, or which: [1, 2], "1,2", "123-127".
        game: further settings of turns, as in rule_sampling=uniform; see icy.games.TurnSettings.
        settings: changes to the settings of learning and evaluation, as in learning_rate=0.001; see
            icy.games.GamesLearningSettings.
        quick: use few seeds and updates where these are not given, to try things out; the agents are saved.
    """

    function = "icy games train"
    job_kind = "games"
    small = MappingProxyType({"seeds": 2, "keep_models": True})
    axes = ("rule_length", "targets", "word_size", "message_length")
    old_names = MappingProxyType({**RunRequest.old_names, **OLD_NAMES})

    rule_length: Numbers = 1
    targets: Numbers = 20
    distractors: int | None = None
    distractor_kind: str | Iterable[str] = "auto"
    word_size: Numbers | None = None
    message_length: Numbers | None = None
    perception: str | None = None
    seeds: Numbers = 3
    game: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


# -- presets of the games ----------------------------------------------------------------------------------------------

# A departure sets arguments of `GamesRequest`, settings of turns (`game.repeat_target`), settings of learning
# (`settings.epoch`), and options of a representation or world by its name (`qt.normalise`).


_departs = partial(Departure, kinds=("games",))
PUBLISHED: dict[str, Departure] = {
    "long training": _departs({"updates": 400_000}, "200 epochs of 2,000 updates, an epoch as long as Mu & Goodman's"),
    "sizes": _departs({"shape.sizes": "published"}, "figures may be as small as in Mu & Goodman's images"),
    "batch min-max": _departs(
        {"qt.normalise": "batch"},
        "the released layer subtracts the smallest score of a batch and divides by the largest, so that a message "
        "depends on the other messages of its batch",
    ),
    "reserved end": _departs(
        {"settings.reserved_end": True},
        "a symbol of GS ends messages and never occurs within messages of several words, as the printed counts of "
        "words and the library suggest",
    ),
    "assigned concepts": _departs(
        {"settings.unmatched": "assigned"},
        "the released program counts a concept as matched even if its assigned word never occurs with it",
    ),
    "selection": _departs(
        {"settings.selected_on": "test"}, "the best epoch is chosen by the accuracy on the reported turns"
    ),
}

_AGENTS = {
    "representation": "gs",
    "gs.straight_through": True,
    "word_size": 14,
    "message_length": 5,
    "sender": "RNNAutoReg:GRU",
    "receiver": "RNN1L:GRU",
    "sender_hidden": 1024,
    "receiver_hidden": 1024,
    "sender_sees": "both",
}
_LEARNING = {
    "updates": 16_000,
    "settings.batch_size": 128,
    "settings.learning_rate": 1e-4,
    "settings.clip_norm": 100.0,
    "settings.epoch": 160,
}
_COMMON: dict[str, Departure] = {
    "world": _departs(
        {"world": "shape", "shape.positions": 0, "shape.sizes": "published"}, "shapes and colors, anywhere in the image"
    ),
    "turns": _departs(
        {"targets": 10, "distractors": 10, "distractor_kind": "groups", "game.held_out": 0.2},
        "10 targets and 10 distractors, which lack a random choice of concepts; a fifth of the rules held out",
    ),
    "agents": _departs(_AGENTS, "GRUs of 1024 that see targets and distractors, and messages of 5 of 14 symbols"),
    "learning": _departs(_LEARNING, "100 epochs of 20,000 games in batches of 128"),
}
_FORMULAS = _departs(
    {"game.rules": "formulas", "game.rule_sampling": "type-first"},
    "concepts, their negations, and pairs of these joined by 'and' or 'or'",
)
_PAIRS = _departs({"rule_length": 2}, "a shape and a color")
PRESETS: dict[str, Mapping[str, Departure]] = {
    "default": {},
    "published": PUBLISHED,
    "mugoodman21/reference": {
        **_COMMON,
        "rules": _PAIRS,
        "one target": _departs({"game.repeat_target": True}, "one image replaces all targets"),
    },
    "mugoodman21/set-reference": {**_COMMON, "rules": _FORMULAS},
    "mugoodman21/concept": {
        **_COMMON,
        "rules": _FORMULAS,
        "other objects": _departs({"game.same_objects": False}, "the receiver sees other objects of the same rule"),
    },
}


def find_preset(name: str) -> dict[str, Any]:
    """Return the settings of a preset.

    Raises:
        UnknownNameError: no preset has this name.
    """
    require_known("preset of games", name, PRESETS, "`icy list presets` describes them.")
    return {key: value for departure in PRESETS[name].values() for key, value in departure.settings.items()}


def preset_tables(preset: Fields, world: str, representation: str) -> dict[str, Choices]:
    """Return the settings of a preset that are options in tables of requests, for a world and a representation."""
    fields = {world: "world_options", representation: "representation_options", "game": "game", "settings": "settings"}
    tables: dict[str, Choices] = {}
    for name, value in preset.items():
        place, _, option = name.partition(".")
        if option and place in fields:
            tables.setdefault(fields[place], {})[option] = value
    return tables


# -- the kind of job. Its functions are addresses, because they import torch -------------------------------------------


GAMES = JobKind(
    "games",
    request=GamesRequest,
    settings=GamesSettings,
    rows="icy.games.jobs:rows",
    behavior="icy.games.model:behaviors",
    train="icy.games.game_stack:train",
    rehearse="icy.games.game_stack:rehearse",
    table="icy.analysis.tables.games:games_table",
    measures=(
        *("soft_accuracy", "seen_accuracy", "seen_cbm", *MEASURES),
        *("best_step", "rule_length", "targets", "distractors", "message_length"),
    ),
    curve=("steps", "accuracy", "loss", "cbm", "topsim", "words"),
    noun="agents",
    model="icy.games.jobs:kept_model",
    command="games train",
    conventions=game_conventions,
    evaluates="games eval",
)
