"""Make the jobs of a spec of games: apply the preset, create the tasks, and check them."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import cast

import torch
from torch import Tensor, nn

from icy.core.checks import seed_list, whole_number
from icy.core.errors import IncompatibleError, InvalidSettingError, require_known, unknown
from icy.core.fields import checked
from icy.core.registry import PERCEPTION, SIDES, WORLD, Entry, registry, without_choices
from icy.core.representations import options_of
from icy.core.text import counted, names_in
from icy.core.types import Choices, Fields
from icy.records.record import Record
from icy.training.combinations import jobs_of_each
from icy.training.job import Job, Replicate

from .model import IMAGE_AXES, GameModel, GameTask, behaviors, default_perception, default_word_size, make_game_model
from .settings import DISTRACTOR_KINDS, GamesLearningSettings, GamesSpec, TurnSettings, find_preset, preset_changes
from .turns import Turns
from .worlds.world import make_world

# -- jobs that train agents in multi-target games ----------------------------------------------------------------------


CONVOLUTIONS = 4  # time per operation relative to matrix products, measured with conv4 on one core
POOLED = 10  # pixels per use of a weight of conv4, approximately; later layers have fewer positions


@dataclass(frozen=True)
class GameJob(Job):
    """A job that trains one task as a stack of replicates, each with a seed and a kind of distractors.

    Attributes:
        task: the agents and their game.
    """

    task: GameTask
    checkpoints: bool = field(default=True, kw_only=True)

    kind = "games"

    @property
    def name(self) -> str:
        """Names of sender and receiver."""
        return self.task.model

    @property
    def entries(self) -> list[Entry]:
        """Registry entries of the world, the perception, the sender and the receiver."""
        entries = list(self.task.entries.values())
        return [*super().entries, *entries, *(entry.cell for entry in entries if entry.cell is not None)]

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the game that are columns of tables."""
        sizes = {name: getattr(self.task.turns, name) for name in ("rule_length", "targets", "distractors")}
        return sizes | {"message_length": self.task.message_length}

    def config(self, replicate: Replicate) -> Choices:
        """Return the configuration of a replicate: all settings that can change its numbers.

        `options` has the settings that differ from the preset, and `settings` all of them.
        """
        task = self.task
        return {
            "model": self.name,
            "grammar": replicate.condition,
            "seed": replicate.seed,
            "representation": task.representation,
            "vocab_size": task.word_size,
            "hidden_size": task.sender_hidden,
            "world": task.world,
            **self.sizes,
            "options": self._options(),
            "settings": {"setup": task.config()},
        }

    def _options(self) -> Choices:
        """Return the settings that differ from the preset, except those with their own record field."""
        usual = preset_changes(self.preset, self.task.world, self.task.representation)
        nothing = object()
        return {name: value for name, value in self.task.changes().items() if usual.get(name, nothing) != value}

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the kind of job, the world, and the parts of the agents."""
        return super().versions(replicate) | {kind: e.full_version for kind, e in self.task.entries.items()}

    def behavior(self) -> dict[str, Fields]:
        """Return the behavior of the world and the parts of the agents that are code of users."""
        return behaviors(self.task)

    def length(self, baseline: float | None) -> int | None:
        """Return the number of updates."""
        return self.task.steps

    @property
    def update_cost(self) -> float:
        """Relative cost of an update: parameters x objects (x positions, for images)."""
        turns, shape = self.task.turns, self.task.made_world.shape
        positions = CONVOLUTIONS * math.prod(shape[1:]) / POOLED if len(shape) == IMAGE_AXES else 1
        return super().update_cost * positions * (turns.targets + turns.distractors) * self.task.learning.batch_size

    def conditions_text(self) -> str | None:
        """Return the kinds of distractors as a sentence."""
        kinds = sorted({r.condition for r in self.replicates})
        return f"Distractors: {' and '.join(kinds)}." if kinds else None

    def summary(self, record: Record) -> str:
        """Return a short text with the result of a replicate."""
        scores = cast("Choices", record)
        return (
            f"accuracy {scores['accuracy']:.3f}, CBM {scores['cbm']:.2f} (chance {scores['cbm_floor']:.2f}) after "
            f"{counted(scores['steps'], 'update')}"
        )


# -- check that the parts of a game's agents fit together, before training ---------------------------------------------


REPRESENTATIONS = ("gs", "qt", "cb", "soft", "gumb")  # representations through which gradients pass
TURNS = 2  # turns of the check


@torch.no_grad()
def require_fitting_parts(task: GameTask) -> GameModel:
    """Create the agents of a game, run each part once as a check, and return the agents.

    Raises:
        InvalidSettingError: no gradient passes through the representation, or it has too many words.
        IncompatibleError: a part does not learn by gradient, fails on its input, or has an output of the wrong shape.
    """
    if task.representation.lower() not in REPRESENTATIONS:
        raise InvalidSettingError(
            f"Gradients do not pass through the representation '{task.representation}', and agents need them to learn; "
            f"choose {', '.join(REPRESENTATIONS[:-1])} or {REPRESENTATIONS[-1]}."
        )
    entries = {side: task.entries[side] for side in SIDES}
    for entry in entries.values():
        if not entry.works_with(task.representation.lower()):
            own = " or ".join(entry.representations)
            raise IncompatibleError(
                f"{entry.qualified} works with the representation {own} only; it cannot play with "
                f"{task.representation}."
            )
    model = make_game_model(task, 0).eval()
    model.channel.word_count(task.words)  # raises if there are too many words to number
    for side, entry in entries.items():
        if not getattr(getattr(model, side), "learns_by_gradient", True):
            raise IncompatibleError(
                f"{entry.qualified} stores examples and does not learn by gradient, so it cannot play; choose another "
                f"{side}."
            )
    objects = torch.rand(TURNS, *task.made_world.shape, dtype=torch.float32, device="cpu")
    seen = _checked_output(f"{PERCEPTION}/{task.perception}", model.sender_sees, objects, (task.sender_hidden,))
    described = torch.cat([seen] * task.parts, -1).unsqueeze(-2)
    takes = f"the input of a sender is weights over values, of shape {tuple(described.shape)}"
    expected = (task.message_length, task.words + 1)
    scores = _checked_output(entries["sender"].qualified, model.sender, described, expected, takes)
    message = model.channel.message(scores, None)
    takes = f"the input of a receiver is weights over symbols, of shape {tuple(message.shape)}"
    _checked_output(entries["receiver"].qualified, model.receiver, message, (1, task.receiver_hidden), takes)
    return model


def _checked_output(name: str, part: nn.Module, inputs: Tensor, expected: tuple[int, ...], takes: str = "") -> Tensor:
    """Run a part. Raise an error if it fails, or if its output has the wrong shape."""
    try:
        output: Tensor = part(inputs)
    except Exception as error:
        requirement = takes or f"its input is objects of shape {tuple(inputs.shape)}"
        why = str(error).strip().partition("\n")[0].rstrip(".")
        raise IncompatibleError(f"{name} cannot play: {requirement}, and it failed ({why}).") from error
    if tuple(output.shape) != (TURNS, *expected):
        raise IncompatibleError(f"{name} has an output of shape {tuple(output.shape)}, not {(TURNS, *expected)}.")
    return output


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
    changed = {f.name for f in fields(spec) if f.default is not MISSING and getattr(spec, f.name) != f.default}
    given = changed | set(spec.given)
    spec = replace(spec, **{name: v for name, v in preset.items() if "." not in name and name not in given})
    inner: dict[str, Choices] = {}
    for name, value in preset.items():
        place, _, option = name.partition(".")
        own = {str(spec.world): "world_options", str(spec.representation).lower(): "representation_options"}
        field = own.get(place, place)
        if option and hasattr(spec, field):
            inner.setdefault(field, {})[option] = value
    options: Choices = {field: {**values, **getattr(spec, field)} for field, values in inner.items()}
    return replace(spec, **options)


def _task(spec: GamesSpec) -> GameTask:
    representation = str(spec.representation).lower()
    require_known("representation", representation, REPRESENTATIONS)
    require_known("value of sender_sees", spec.sender_sees, ("targets", "both"))
    known = options_of(representation)
    if wrong := [name for name in spec.representation_options if name not in known]:
        raise unknown(f"attribute of the representation '{representation}'", wrong[0], list(known))
    world = registry.get(str(spec.world), WORLD).name
    made = make_world(world, **spec.world_options)
    settings = checked(TurnSettings, spec.game, "setting of turns", OWN_OPTIONS)
    targets = cast(int, spec.targets)
    count = targets if spec.distractors is None else whole_number("number of distractors", spec.distractors)
    turns = TurnSettings(rule_length=cast(int, spec.rule_length), targets=targets, distractors=count, **settings)
    levels = spec.representation_options.get("levels", 2)
    options = ("world", "representation", "sender", "receiver", "perception")
    task = GameTask(
        world=world,
        turns=turns,
        representation=representation,
        word_size=cast("int | None", spec.word_size) or default_word_size(representation, len(made.concepts), levels),
        message_length=cast("int | None", spec.message_length) or turns.rule_length,
        sender=registry.get(str(spec.sender), SIDES[0]).name,
        receiver=registry.get(str(spec.receiver), SIDES[1]).name,
        perception=registry.get(spec.perception or default_perception(made), PERCEPTION).name,
        learning=GamesLearningSettings(**checked(GamesLearningSettings, spec.settings, "setting of games")),
        steps=whole_number("number of updates", spec.updates),
        sender_sees=spec.sender_sees,
        sender_hidden=whole_number("hidden size of the sender", spec.sender_hidden),
        receiver_hidden=whole_number("hidden size of the receiver", spec.receiver_hidden),
        **{f"{one}_options": dict(getattr(spec, f"{one}_options")) for one in options},
    )
    task.require_words()
    return task
