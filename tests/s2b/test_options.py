"""Types of settings by name are those of the settings, and their names those of the tables."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from icy.s2b import GameSettings, RecallSettings, options, settings, stimuli
from icy.s2b.environments import adapter, spaces
from icy.s2b.environments.parallel import MetaReferentialGame
from icy.s2b.recall import RECALL_SPLITS


@pytest.mark.parametrize(
    ("typed", "of"), [(options.GameOptions, GameSettings), (options.RecallOptions, RecallSettings)]
)
def test_options_have_the_types_of_the_settings(typed: type, of: type) -> None:
    hints = get_type_hints(of)
    wanted = {field.name: hints[field.name] for field in fields(of)}
    assert get_type_hints(typed) == {**wanted, "compat": options.Compat | None}


def test_options_of_parallel_env_are_those_of_its_class() -> None:
    own = get_type_hints(options.ParallelOptions).keys() - get_type_hints(options.GameOptions).keys()
    assert own == inspect.signature(MetaReferentialGame).parameters.keys() - {"settings", "given"}


LITERALS: list[tuple[Any, Iterable[str]]] = [
    (options.Compat, settings.COMPATS),
    (options.GameKind, settings.GAME_KINDS),
    (options.Query, settings.QUERIES),
    (options.QueryOrder, settings.ORDERS),
    (options.QueryOf, settings.OWNERS),
    (options.View, settings.VIEWS),
    (options.Masks, settings.MASKS),
    (options.GameSplit, settings.SPLITS),
    (options.RecallSplit, RECALL_SPLITS),
    (options.Stimuli, stimuli.REPRESENTATIONS),
    (options.Truncation, stimuli.TRUNCATIONS),
    (options.Actions, spaces.FORMS),
    (options.Messages, spaces.MESSAGES),
    (options.Observations, spaces.OBSERVATIONS),
    (options.RenderMode, adapter.RENDER_MODES),
]


def test_literals_have_the_names_of_their_tables(subtests: pytest.Subtests) -> None:
    for literal, table in LITERALS:
        with subtests.test(str(literal)):
            assert set(get_args(literal)) == set(table)
