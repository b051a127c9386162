"""Presets of the games: named changes of the defaults, as in the text or the programs of papers.

A departure sets arguments of `GamesSpec`, settings of turns (`game.repeat_target`), settings of learning
(`settings.epoch`), and options of a representation or world by its name (`qt.normalise`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icy.config.settings import Departure
from icy.core.errors import require_known

KINDS = ("games",)


def _departs(settings: Mapping[str, object], reason: str) -> Departure:
    return Departure(settings, reason, KINDS)


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
        {"world": "shape", "shape.positions": 0, "shape.sizes": "published"},
        "shapes and colors, anywhere in the image",
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


def preset_changes(name: str, world: str, representation: str) -> dict[str, object]:
    """Return the changes of a preset for a world and a representation, by name as in `GameTask.changes`."""
    changes = {}
    kinds = {world: "world.", representation: "channel.", "game": "", "settings": ""}
    for key, value in find_preset(name).items():
        where, dot, inner = key.partition(".")
        if not dot:
            changes[key] = value
        elif where in kinds:
            changes[kinds[where] + inner] = value
    return changes
