"""Settings of S2B's games: whatever is given, a game that can be played or a sentence."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from icy.s2b import BatchedGame, GameSettings
from icy.s2b.episodes import deal
from icy.s2b.settings import COMPATS
from tests.properties.helpers import HUGE, JSON, unless_refused

HINTS = get_type_hints(GameSettings)
SIZES = st.integers(-1, 4)
GIVEN: dict[str, st.SearchStrategy[Any]] = {
    "compat": st.sampled_from([None, *COMPATS]),
    **{name: st.sampled_from(get_args(hint)) for name, hint in HINTS.items() if get_origin(hint) is Literal},
    **dict.fromkeys(
        ("dimensions", "least", "most", "shots", "samples", "distractors", "rounds", "length", "threshold", "games"),
        SIZES,
    ),
    "vocab_size": st.integers(-1, 9),
    **dict.fromkeys(("descriptive", "feedback", "permutation", "listener_messages", "distinct"), st.booleans()),
    "ratio": st.none() | st.floats(-0.5, 1.5),
    "space_seed": st.integers(0, 3),
}


@given(chosen=st.fixed_dictionaries({}, optional=GIVEN), seed=st.integers(0, 999))
def test_settings_deal_sound_episodes_or_are_refused(chosen: dict[str, Any], seed: int) -> None:
    game = unless_refused(lambda: BatchedGame(GameSettings.of(**chosen), episodes=2))
    if game is None:
        return
    settings = GameSettings.of(**chosen)
    episodes = deal(settings, np.array([seed, seed + 1]))
    meanings = episodes.listener_numbers // settings.samples
    shown = (meanings == episodes.speaker_numbers[:, :1] // settings.samples).any(1)
    assert (episodes.answer < settings.decisions).all()
    assert (episodes.games > 0).all()
    if settings.distinct:
        assert (shown == (episodes.answer < settings.slots)).all()  # the answer is right, whatever the settings
    again = deal(settings, np.array([seed, seed + 1]))
    assert np.array_equal(again.listener_numbers, episodes.listener_numbers)


@example(chosen={"dimensions": 2**31})  # a power of it has billions of digits
@given(chosen=st.dictionaries(st.sampled_from(sorted(GIVEN)) | st.text(max_size=4), JSON | st.sampled_from(HUGE)))
def test_settings_of_any_type_are_refused_in_a_sentence(chosen: dict[str, Any]) -> None:
    unless_refused(lambda: GameSettings.of(**chosen))


WRONG = (None, [], {}, [1], "", "x", b"x", True, 1.5, -1, 0, 2**31, 2**63, float("nan"), float("inf"), object())


def test_every_setting_refuses_every_wrong_type_in_a_sentence() -> None:
    for name in sorted({*GIVEN, "compat", *(field.name for field in fields(GameSettings))}):
        for value in WRONG:
            try:
                unless_refused(lambda name=name, value=value: GameSettings.of(**{name: value}))  # type: ignore[misc]
            except Exception as error:
                raise AssertionError(f"{name}={value!r}: {error!r}") from error
