"""Make the jobs of a request of games: apply the preset, choose the settings, and check them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from icy.config.kinds import values_for
from icy.core.checks import seed_list
from icy.core.errors import IncompatibleError, InvalidSettingError, require_known
from icy.core.fields import checked
from icy.core.registry import PERCEPTION, SIDES, WORLD, registry
from icy.core.representations import options_of
from icy.core.text import names_in
from icy.records.record import Record
from icy.training.job import Job, Replicate

from .model import GameModel, make_game_model
from .playing import load_game_model
from .settings import (
    DISTRACTOR_KINDS,
    REPRESENTATIONS,
    GamesLearningSettings,
    GamesSettings,
    TurnSettings,
    default_perception,
    default_word_size,
    find_preset,
    preset_tables,
)
from .turns import Turns
from .worlds.world import make_world

# -- rows of the table -------------------------------------------------------------------------------------------------


OWN_OPTIONS = ("rule_length", "targets", "distractors", "distractor_kind")  # settings of turns with their own options


def rows(request: Any) -> list[Job]:
    """Return the job of a request that has one value along each axis.

    Raises:
        IcyError: a name is unknown, a value is not accepted, or parts do not fit together.
    """
    request = with_preset(request)
    settings = settings_of(request)
    options = names_in("distractor_kind", request.distractor_kind, DISTRACTOR_KINDS)
    kinds = dict.fromkeys(settings.of_turns(kind).drawn_distractors for kind in options)
    for kind in kinds:  # raises if the world has no distractors of this kind
        Turns(settings.made_world, settings.of_turns(kind), [0]).batch("training", 0, 1, 1)
    count = sum(weights.numel() for weights in require_fitting_parts(settings).parameters())
    replicates = tuple(Replicate(kind, seed) for kind in kinds for seed in seed_list(request.seeds))
    parameters = {"true": count, "published": count}
    return [Job(settings=settings, replicates=replicates, parameters=parameters, checkpoints=True)]


def with_preset(request: Any) -> Any:
    """Set options that the user did not give to the values of the preset. The request has one value per option.

    Raises:
        UnknownNameError: the preset does not exist.
    """
    preset = find_preset(str(request.preset))
    changed = {f.name for f in fields(request) if f.default is not MISSING and getattr(request, f.name) != f.default}
    given = changed | set(request.given)
    request = replace(request, **{name: v for name, v in preset.items() if "." not in name and name not in given})
    tables = preset_tables(preset, str(request.world), str(request.representation).lower())
    return replace(request, **{table: {**values, **getattr(request, table)} for table, values in tables.items()})


def settings_of(request: Any) -> GamesSettings:
    """Return the settings of a request that has one value per option.

    Raises:
        IcyError: a name is unknown, or a value is not accepted.
    """
    representation = str(request.representation).lower()
    require_known("representation", representation, REPRESENTATIONS)
    for name in request.representation_options:
        require_known(f"attribute of the representation '{representation}'", name, list(options_of(representation)))
    world = registry.get(str(request.world), WORLD).name
    made = make_world(world, **request.world_options)
    further = checked(TurnSettings, request.game, "setting of turns", OWN_OPTIONS)
    distractors = request.targets if request.distractors is None else request.distractors
    own = {"rule_length": request.rule_length, "targets": request.targets, "distractors": distractors}
    turns = TurnSettings(**own, **further)
    levels = request.representation_options.get("levels", 2)
    derived = {
        "world": world,
        "representation": representation,
        **{side: registry.get(str(getattr(request, side)), side).name for side in SIDES},
        "perception": registry.get(request.perception or default_perception(made), PERCEPTION).name,
        "word_size": default_word_size(representation, len(made.concepts), levels),
        "message_length": turns.rule_length,
        **{n: size for n in ("word_size", "message_length") if (size := getattr(request, n)) is not None},
    }
    learning = GamesLearningSettings(**checked(GamesLearningSettings, request.settings, "setting of games"))
    settings = GamesSettings(**{**values_for(GamesSettings, request), **derived}, turns=turns, learning=learning)
    if settings.words < 1 or (representation != "qt" and settings.words < 2):
        raise InvalidSettingError(
            f"A sender needs at least two different words, and word_size={settings.word_size} is too small; take a "
            "larger word_size."
        )
    if math.prod((settings.words, settings.message_length)) > 10**6:
        raise InvalidSettingError(
            f"word_size={settings.word_size} times message_length={settings.message_length} is above 1,000,000, too "
            "large for a sender; take a smaller word_size or message_length."
        )
    return settings


def kept_model(record: Record, weights: Mapping[str, Tensor]) -> GameModel:
    """Load the trained agents of a record. Raises the errors of `icy.training.weights.restore`."""
    setup = GamesSettings.of_setup(record["config"]["settings"]["setup"])
    return load_game_model(setup, record["seed"], dict(weights))


# -- check that the parts of a game's agents fit together, before training ---------------------------------------------


TURNS = 2  # turns of the check


@torch.no_grad()
def require_fitting_parts(settings: GamesSettings) -> GameModel:
    """Create the agents of a game, run each part once as a check, and return the agents.

    Raises:
        InvalidSettingError: the representation has too many words.
        IncompatibleError: a part does not learn by gradient, fails on its input, or has an output of the wrong shape.
    """
    entries = {side: settings.registered[side] for side in SIDES}
    for entry in entries.values():
        if not entry.works_with(settings.representation):
            own = " or ".join(entry.representations)
            raise IncompatibleError(
                f"{entry.qualified} works with the representation {own} only; it cannot play with "
                f"{settings.representation}."
            )
    model = make_game_model(settings, 0).eval()
    model.channel.word_count(settings.words)  # raises if there are too many words to number
    for side, entry in entries.items():
        if not getattr(getattr(model, side), "learns_by_gradient", True):
            raise IncompatibleError(
                f"{entry.qualified} stores examples and does not learn by gradient, so it cannot play; choose another "
                f"{side}."
            )
    objects = torch.rand(TURNS, *settings.made_world.shape, dtype=torch.float32, device="cpu")
    seen = _checked_output(f"{PERCEPTION}/{settings.perception}", model.sender_sees, objects, (settings.sender_hidden,))
    described = torch.cat([seen] * settings.parts, -1).unsqueeze(-2)
    takes = f"the input of a sender is weights over values, of shape {tuple(described.shape)}"
    expected = (settings.message_length, settings.words + 1)
    scores = _checked_output(entries["sender"].qualified, model.sender, described, expected, takes)
    message = model.channel.message(scores, None)
    takes = f"the input of a receiver is weights over symbols, of shape {tuple(message.shape)}"
    _checked_output(entries["receiver"].qualified, model.receiver, message, (1, settings.receiver_hidden), takes)
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
