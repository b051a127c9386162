"""Make trainings of their setups."""

from dataclasses import replace
from typing import Any

import torch

from icy.core.errors import InvalidSettingError
from icy.core.fields import checked
from icy.core.registry import CORE, registry
from icy.core.streams import stream_key

from .agent_task import MEMORIES, AgentTask
from .cores.core import takes
from .memories.attention import MemoryListener, MemorySettings
from .memories.dealt_learning import DealtLearning
from .memories.pair_learning import PairLearning
from .memories.speaker import SpeakerSettings
from .networks.core_learning import CoreLearning
from .networks.listener import DEFAULTS, CoreListener
from .networks.network import NetworkSettings
from .r2d2.r2d2_learning import R2D2Learning


def make_dealt(setup: AgentTask, seed: int) -> DealtLearning:
    """Make the training of a listener on dealt episodes: an attention memory, or a network with a core."""
    _check_no_speaker_options(setup)
    game, settings = setup.game_settings(), setup.learner_settings()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(seed, "weights") % 2**63)
        if setup.core in MEMORIES:
            return DealtLearning(MemoryListener(game, memory_settings(setup)), game, settings, seed, setup.speaker)
        listener = CoreListener(game, network_settings(setup, DEFAULTS))
        return CoreLearning(listener, game, settings, seed=seed, speaker=setup.speaker)


def make_r2d2(setup: AgentTask, seed: int) -> R2D2Learning:
    """Make the training of a listener, or of both players, by R2D2."""
    _check_no_speaker_options(setup)
    settings = setup.learner_settings()
    network = network_settings(setup, settings.network)
    beside = {} if setup.how.both else {"speaker": setup.speaker}
    return R2D2Learning(setup.game_settings(), replace(settings, network=network, **beside), seed)


def make_pair(setup: AgentTask, seed: int) -> PairLearning:
    """Make the training of a pair that learns both sides."""
    of_speaker = checked(SpeakerSettings, setup.speaker_options, "setting of the speaker")
    players = {"speaker": SpeakerSettings(**of_speaker), "listener": memory_settings(setup)}
    return PairLearning(setup.game_settings(), replace(setup.learner_settings(), **players, seed=seed))


def _check_no_speaker_options(setup: AgentTask) -> None:
    if setup.speaker_options:
        raise InvalidSettingError("speaker_options are for a speaker that learns, as with the learner 'pair'.")


def network_settings(setup: AgentTask, usual: NetworkSettings) -> NetworkSettings:
    """Return the settings of a network with the core of a setup.

    Layers that its core cannot read are left out: all for a core of raw inputs, and the joint layers, which mix stimuli
    and messages, for a core that takes `parts`.
    """
    network = replace(usual, core=setup.core, options=dict(setup.options), deaf=setup.deaf)
    entry = registry.get(setup.core, CORE)
    if getattr(entry.load(), "raw", False):
        return replace(network, stimulus=(), message=(), joint=())
    return replace(network, joint=()) if takes(entry, "parts") else network


def memory_settings(setup: AgentTask) -> MemorySettings:
    given: dict[str, Any] = checked(MemorySettings, setup.options, "option of an attention memory", ("kind", "deaf"))
    return MemorySettings(kind=setup.core, deaf=setup.deaf, **given)
