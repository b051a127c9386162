"""Jobs of a spec of games: presets, combinations of what is several, and checks before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from itertools import product
from typing import Any

from icy.core.checks import seed_list, whole_number
from icy.core.errors import InvalidSettingError, unknown
from icy.core.fields import checked
from icy.core.registry import PERCEPTION, SIDES, WORLD, registry
from icy.core.representations import options_of
from icy.core.text import names_in, several
from icy.training.job import Replicate

from .job import GameJob
from .presets import find_preset
from .settings import GamesLearningSettings
from .setup import Setup, require_words, usual_perception, usual_word_size
from .spec import GamesSpec
from .trial import CHANNELS, require_fitting_parts
from .turn_settings import DISTRACTOR_KINDS, TurnSettings
from .turns import Turns
from .worlds.base import World
from .worlds.factory import make_world

OWN_OPTIONS = ("rule_length", "targets", "distractors", "distractor_kind")  # of turns, with options of their own
KINDS = {"world": WORLD, "sender": SIDES[0], "receiver": SIDES[1]}  # of the names of an argument
NAMES = {"channel": CHANNELS, "distractor_kind": DISTRACTOR_KINDS}  # names of an argument
OF_TURNS, OF_LEARNING = "game", "settings"


def game_jobs(spec: GamesSpec) -> list[GameJob]:
    """Return the jobs of a spec, one per combination of what is several.

    Raises:
        IcyError: an unknown name, a value that cannot be, or what does not go together.
    """
    asked = Asked.of(spec)
    seeds = seed_list(spec.seeds)
    jobs: dict[str, GameJob] = {}
    for setup in asked.setups():
        kinds = dict.fromkeys(setup.of_turns(kind).drawn_distractors for kind in asked.words("distractor_kind"))
        _try_turns(setup, list(kinds))
        job = GameJob(
            setup,
            replicates=tuple(Replicate(kind, seed) for kind in kinds for seed in seeds),
            parameters=_parameters(setup),
            preset=spec.preset,
        )
        jobs.setdefault(job.row, job)
    return list(jobs.values())


@dataclass(frozen=True)
class Asked:
    """What a spec asks for, with its preset.

    Attributes:
        values: of the fields of the spec.
        further: options of worlds and channels that the preset sets, as in "qt.normalise".
    """

    values: Mapping[str, Any]
    further: Mapping[str, Any]

    @classmethod
    def of(cls, spec: GamesSpec) -> Asked:
        """Put the settings of the preset in the place of what was not asked for.

        Raises:
            UnknownNameError: there is no such preset.
        """
        preset = find_preset(spec.preset)
        values = {f.name: getattr(spec, f.name) for f in fields(spec)}
        further = {}
        for name, value in preset.items():
            where, dot, inner = name.partition(".")
            if dot and where in (OF_TURNS, OF_LEARNING):
                values[where] = {inner: value, **values[where]}
            elif dot:
                further[name] = value
            elif not _was_given(spec, name):
                values[name] = value
        return cls(values, further)

    def words(self, name: str) -> list[str]:
        """Return the names that an argument gives; see `icy.core.text.names_in`."""
        known = [e.name for e in registry.entries(KINDS[name])] if name in KINDS else NAMES[name]
        return names_in(name, self.values[name], known)

    def numbers(self, name: str) -> list[int | None]:
        """Return the numbers that an argument gives; None alone if it was not given."""
        given = self.values[name]
        if given is None:
            return [None]
        found = several(given)
        if not found:
            raise InvalidSettingError(f"{name} is a whole number, or several (1,4); none was given.")
        return [whole_number(name.replace("_", " "), one) for one in found]

    def setups(self) -> Iterator[Setup]:
        """Yield the setups, in the order of the arguments."""
        names = product(*(self.words(name) for name in ("world", "channel", "sender", "receiver")))
        sizes = ("rule_length", "targets", "word_size", "message_length")
        for named, numbers in product(names, product(*(self.numbers(name) for name in sizes))):
            world, channel, sender, receiver = named
            yield self._setup(world, channel, sender, receiver, dict(zip(sizes, numbers, strict=True)))

    def _setup(self, world: str, channel: str, sender: str, receiver: str, sizes: Mapping[str, Any]) -> Setup:
        values, channel = self.values, _one_of("channel", channel.lower(), CHANNELS)
        name = registry.get(world, WORLD).name
        of_world = self._options(name, "world_options")
        made = make_world(name, **of_world)
        of_channel = self._options(channel, "channel_options")
        _check_options(of_channel, channel)
        length = sizes["rule_length"]
        levels = of_channel.get("levels", 2)
        setup = Setup(
            world=name,
            world_options=of_world,
            turns=self._turns(length, sizes["targets"]),
            channel=channel,
            channel_options=of_channel,
            word_size=sizes["word_size"] or usual_word_size(channel, len(made.concepts), levels),
            message_length=sizes["message_length"] or length,
            sender=registry.get(sender, SIDES[0]).name,
            receiver=registry.get(receiver, SIDES[1]).name,
            perception=_perception(values["perception"], made),
            learning=GamesLearningSettings(**checked(GamesLearningSettings, values[OF_LEARNING], "setting of games")),
            steps=whole_number("number of updates", values["steps"]),
            sender_sees=_one_of("what a sender sees", values["sender_sees"], ("targets", "both")),
            sender_hidden=whole_number("hidden size of the sender", values["sender_hidden"]),
            receiver_hidden=whole_number("hidden size of the receiver", values["receiver_hidden"]),
            sender_options=dict(values["sender_options"]),
            receiver_options=dict(values["receiver_options"]),
            perception_options=dict(values["perception_options"]),
        )
        require_words(setup)
        return setup

    def _options(self, of: str, name: str) -> dict[str, Any]:
        """Return the options of a world or channel: those of the preset, and those that were given."""
        preset = {key.partition(".")[2]: v for key, v in self.further.items() if key.partition(".")[0] == of}
        return {**preset, **self.values[name]}

    def _turns(self, length: int, targets: int) -> TurnSettings:
        given = checked(TurnSettings, self.values[OF_TURNS], "setting of turns", OWN_OPTIONS)
        distractors = self.values["distractors"]
        count = targets if distractors is None else whole_number("number of distractors", distractors)
        return TurnSettings(rule_length=length, targets=targets, distractors=count, **given)


def _was_given(spec: GamesSpec, name: str) -> bool:
    (field,) = (f for f in fields(spec) if f.name == name)
    return name in spec.given or (field.default is not MISSING and getattr(spec, name) != field.default)


def _one_of(what: str, given: str, known: Iterable[str]) -> str:
    if given not in known:
        raise unknown(what, str(given), list(known))
    return given


def _check_options(given: Mapping[str, Any], channel: str) -> None:
    for name in given:
        if name not in options_of(channel):
            raise unknown(f"attribute of the channel '{channel}'", name, list(options_of(channel)))


def _perception(given: str | None, world: World) -> str:
    return registry.get(usual_perception(world) if given is None else given, PERCEPTION).name


def _try_turns(setup: Setup, kinds: Iterable[str]) -> None:
    """Draw a turn of each kind of distractors.

    Raises:
        IcyError: there are no such turns.
    """
    for kind in kinds:
        Turns(setup.made_world, setup.of_turns(kind), [0]).batch("training", 0, 1, 1)


def _parameters(setup: Setup) -> dict[str, int]:
    """Count the parameters of the agents, once their parts were tried.

    Raises:
        IcyError: they cannot be made, or do not fit.
    """
    count = sum(weights.numel() for weights in require_fitting_parts(setup.of_model()).parameters())
    return {"true": count, "published": count}
