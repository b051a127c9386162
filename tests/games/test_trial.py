"""Checks of the parts of agents before training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError
from icy.core.registry import PERCEPTION, Entry, registry
from icy.games.jobs import require_fitting_parts
from icy.games.model import GameModel
from icy.games.settings import REPRESENTATIONS, GamesSettings, TurnSettings

SETUP = GamesSettings(
    world="thing", world_options={"attributes": 1, "values": 2}, turns=TurnSettings(targets=3, distractors=2),
    message_length=3, word_size=4, sender_hidden=8, receiver_hidden=8, representation="qt",
)  # fmt: skip


def embedded(space: Any, message_length: int, vocab_size: int, hidden_size: int) -> nn.Module:
    """A sender with an embedding of values, as in many plug-ins."""
    size = message_length * (vocab_size + 1)
    return nn.Sequential(
        nn.Embedding(space.values, hidden_size), nn.Flatten(), nn.Linear(space.attributes * hidden_size, size),
        nn.Unflatten(1, (message_length, vocab_size + 1)),
    )  # fmt: skip


def too_wide(shape: tuple[int, ...], size: int) -> nn.Module:
    return nn.Linear(6, size + 1)


@pytest.fixture(autouse=True)
def strangers() -> Iterator[None]:
    with (
        registry.holding(Entry("sender", "embedded", embedded, "", "", origin=__name__)),
        registry.holding(Entry(PERCEPTION, "wide", too_wide, "", "", origin=__name__)),
    ):
        yield


def playable() -> list[tuple[str, str]]:
    """All models, with one cell each, that do not sample tokens or store examples."""
    entries = registry.entries("sender", "receiver")
    return [
        (entry.kind, entry.name)
        for entry in entries
        if entry.origin.startswith("icy.")
        and (entry.cell is None or entry.cell.name == "GRU")
        and entry.works_with("gs")
        and entry.name not in ("Hashtable", "kNN")
    ]


@pytest.mark.parametrize(("side", "name"), playable())
def test_all_that_learn_by_gradient_can_play(side: str, name: str) -> None:
    model = require_fitting_parts(replace(SETUP, **{side: name}))  # type: ignore[arg-type]
    assert isinstance(model, GameModel)
    assert model.broadcasts
    assert model(torch.rand(2, 5, 6))[0].shape == (2, 5)


@pytest.mark.parametrize("channel", REPRESENTATIONS)
def test_channels_with_gradients_can_be_trained(channel: str) -> None:
    both = replace(SETUP, representation=channel, sender_sees="both", sender="HierAutoReg:GRU", receiver="CNN")
    assert require_fitting_parts(both).channel.name == channel


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"representation": "qt", "word_size": 65}, InvalidSettingError, "too many for 64-bit numbers"),
        ({"sender": "HierSampling:GRU"}, IncompatibleError, "works with the representation discr only"),
        ({"sender": "Hashtable"}, IncompatibleError, "sender/Hashtable stores examples.*cannot play"),
        ({"receiver": "kNN"}, IncompatibleError, "receiver/kNN stores examples.*cannot play"),
        ({"sender": "embedded"}, IncompatibleError, r"embedded cannot play: .* values, of shape \(2, 1, 8\)"),
        ({"perception": "wide"}, IncompatibleError, r"perception/wide has an output of shape \(2, 9\), not \(2, 8\)"),
        ({"perception": "conv4"}, IncompatibleError, "not objects of shape"),
        ({"perception": "convv4"}, IcyError, "did you mean conv4.*icy list perceptions"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_give_an_error(change: dict[str, Any], error: type[IcyError], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        require_fitting_parts(replace(SETUP, **change))
    assert "\n" not in str(caught.value)
    assert "--representation" not in str(caught.value)
