"""Make the jobs of a spec of games: apply the preset, create the tasks, and check them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, fields, replace
from typing import cast

from icy.core.checks import seed_list, whole_number
from icy.core.errors import require_known, unknown
from icy.core.fields import checked
from icy.core.registry import PERCEPTION, SIDES, WORLD, registry, without_choices
from icy.core.representations import options_of
from icy.core.text import names_in
from icy.core.types import Choices, Fields
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate

from .game_job import GameJob
from .game_task import GameTask, default_perception, default_word_size, require_words
from .presets import find_preset
from .settings import GamesLearningSettings
from .spec import GamesSpec
from .trial import REPRESENTATIONS, require_fitting_parts
from .turn_settings import DISTRACTOR_KINDS, TurnSettings
from .turns import Turns
from .worlds.factory import make_world
from .worlds.world import World

OWN_OPTIONS = ("rule_length", "targets", "distractors", "distractor_kind")  # settings of turns with their own options
KINDS = {"world": WORLD, "sender": SIDES[0], "receiver": SIDES[1]}  # axes of registered names


def game_jobs(spec: GamesSpec) -> list[GameJob]:
    """Return the jobs of a spec, one per combination of values.

    Raises:
        IcyError: a name is unknown, a value is not accepted, or parts do not fit together.
    """
    known = {axis: [entry.name for entry in without_choices(registry.entries(kind))] for axis, kind in KINDS.items()}
    return jobs_of_each(spec, _jobs, {**known, "representation": REPRESENTATIONS})


def _jobs(spec: GamesSpec) -> list[GameJob]:
    """Return the job of a spec that has one value per option."""
    preset, spec = str(spec.preset), with_preset(spec)
    task = _task(spec)
    options = names_in("distractor_kind", spec.distractor_kind, DISTRACTOR_KINDS)
    kinds = dict.fromkeys(task.of_turns(kind).drawn_distractors for kind in options)
    for kind in kinds:  # raises if the world has no distractors of this kind
        Turns(task.made_world, task.of_turns(kind), [0]).batch("training", 0, 1, 1)
    count = sum(weights.numel() for weights in require_fitting_parts(task).parameters())
    replicates = tuple(Replicate(kind, seed) for kind in kinds for seed in seed_list(spec.seeds))
    parameters = {"true": count, "published": count}
    return [GameJob(task, replicates=replicates, parameters=parameters, preset=preset)]


def with_preset(spec: GamesSpec) -> GamesSpec:
    """Set options that the user did not set to the values of the preset. The spec has one value per option.

    Raises:
        UnknownNameError: the preset does not exist.
    """
    preset = find_preset(str(spec.preset))
    spec = replace(spec, **{name: v for name, v in preset.items() if "." not in name and not _was_given(spec, name)})
    inner: dict[str, Choices] = {}
    for name, value in preset.items():
        place, _, option = name.partition(".")
        own = {str(spec.world): "world_options", str(spec.representation).lower(): "representation_options"}
        field = own.get(place, place)
        if option and hasattr(spec, field):
            inner.setdefault(field, {})[option] = value
    options: Choices = {field: {**values, **getattr(spec, field)} for field, values in inner.items()}
    return replace(spec, **options)


def _was_given(spec: GamesSpec, name: str) -> bool:
    (field,) = (f for f in fields(spec) if f.name == name)
    return name in spec.given or (field.default is not MISSING and getattr(spec, name) != field.default)


def _task(spec: GamesSpec) -> GameTask:
    representation = _one_of("representation", str(spec.representation).lower(), REPRESENTATIONS)
    world = registry.get(str(spec.world), WORLD).name
    made = make_world(world, **spec.world_options)
    _check_options(spec.representation_options, representation)
    turns = _turns(spec)
    levels = spec.representation_options.get("levels", 2)
    task = GameTask(
        world=world,
        world_options=dict(spec.world_options),
        turns=turns,
        representation=representation,
        representation_options=dict(spec.representation_options),
        word_size=cast("int | None", spec.word_size) or default_word_size(representation, len(made.concepts), levels),
        message_length=cast("int | None", spec.message_length) or turns.rule_length,
        sender=registry.get(str(spec.sender), SIDES[0]).name,
        receiver=registry.get(str(spec.receiver), SIDES[1]).name,
        perception=_perception(spec.perception, made),
        learning=GamesLearningSettings(**checked(GamesLearningSettings, spec.settings, "setting of games")),
        steps=whole_number("number of updates", spec.updates),
        sender_sees=_one_of("value of sender_sees", spec.sender_sees, ("targets", "both")),
        sender_hidden=whole_number("hidden size of the sender", spec.sender_hidden),
        receiver_hidden=whole_number("hidden size of the receiver", spec.receiver_hidden),
        sender_options=dict(spec.sender_options),
        receiver_options=dict(spec.receiver_options),
        perception_options=dict(spec.perception_options),
    )
    require_words(task)
    return task


def _turns(spec: GamesSpec) -> TurnSettings:
    settings = checked(TurnSettings, spec.game, "setting of turns", OWN_OPTIONS)
    targets = cast(int, spec.targets)
    count = targets if spec.distractors is None else whole_number("number of distractors", spec.distractors)
    return TurnSettings(rule_length=cast(int, spec.rule_length), targets=targets, distractors=count, **settings)


def _one_of(kind: str, name: str, known: Collection[str]) -> str:
    require_known(kind, name, known)
    return name


def _check_options(options: Fields, representation: str) -> None:
    for name in options:
        if name not in options_of(representation):
            raise unknown(f"attribute of the representation '{representation}'", name, list(options_of(representation)))


def _perception(name: str | None, world: World) -> str:
    return registry.get(default_perception(world) if name is None else name, PERCEPTION).name
