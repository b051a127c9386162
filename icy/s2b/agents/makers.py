"""Make trainings of their setups."""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.streams import stream_key

from .learning import DealtLearning
from .memory import MemoryListener, MemorySettings
from .pair import Pair
from .setup import MEMORIES, Setup, checked
from .speaker import SpeakerSettings


def dealt(setup: Setup, seed: int) -> DealtLearning:
    """Make the training of a listener on dealt episodes."""
    if setup.speaker_options:
        raise InvalidSettingError("speaker_options are for a speaker that learns, as with the learner 'pair'.")
    settings = setup.learner_settings()
    return DealtLearning(_listener(setup, seed), setup.game_settings(), settings, seed, setup.speaker)


def pair(setup: Setup, seed: int) -> Pair:
    """Make the training of a pair that learns both sides."""
    of_speaker = checked(SpeakerSettings, setup.speaker_options, "setting of the speaker")
    players = {"speaker": SpeakerSettings(**of_speaker), "listener": _memory(setup)}
    return Pair(setup.game_settings(), replace(setup.learner_settings(), **players, seed=seed))


def _listener(setup: Setup, seed: int) -> nn.Module:
    """Return the untrained network of a listener."""
    if setup.core not in MEMORIES:
        raise IncompatibleError(f"The core '{setup.core}' is not trained by the learner '{setup.learner}' yet.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(seed, "weights") % 2**63)
        return MemoryListener(setup.game_settings(), _memory(setup))


def _memory(setup: Setup) -> MemorySettings:
    given: dict[str, Any] = checked(MemorySettings, setup.options, "option of an attention memory", ("kind", "deaf"))
    return MemorySettings(kind=setup.core, deaf=setup.deaf, **given)
