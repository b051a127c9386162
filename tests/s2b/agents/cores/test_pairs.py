"""The memory of pairs with the interface of cores."""

from __future__ import annotations

import pytest
import torch

from icy.core.errors import InvalidSettingError
from icy.s2b import BatchedGame, GameSettings
from icy.s2b.agents.cores import Parts
from icy.s2b.agents.cores.pairs import PairMemory
from icy.s2b.agents.networks.network import Network, NetworkSettings
from icy.s2b.agents.networks.observations import Actions, observe
from icy.s2b.players.interface import seated


def test_an_entry_joins_a_stimulus_with_the_message_of_the_step_before() -> None:
    core = PairMemory(8, Parts(4, 2, 1, stimuli=2), capacity=3)
    xs = torch.arange(16.0).view(2, 1, 8)
    _, (memory, count, heard, _) = core.unroll(xs, core.start(1))
    assert memory[0].tolist() == [[0] * 5, [0, 1, 0, 0, 6], [8, 9, 4, 5, 14]]  # first stimulus, words before, flag
    assert count.tolist() == [2]
    assert heard.tolist() == [[12, 13]]


def test_at_the_end_of_a_game_the_target_is_stored_with_its_message() -> None:
    settings = GameSettings()
    game, actions = BatchedGame(settings, episodes=3), Actions.of_role(settings, "listener")
    network = Network(actions, NetworkSettings.preset("pairs"))
    turn, state = game.reset(seed=1), network.start(3)
    speaker = seated("posdis", "speaker", game)
    said = []
    for _ in range(3):  # silence, the message, the end
        said.append(torch.as_tensor(turn.listener.message))
        target = torch.as_tensor(turn.listener.stimulus[:, 0])
        _, state = network.step(observe(turn.listener, "listener", actions), state)
        turn = game.step(speaker.act(turn.speaker).message)
    width, tokens = settings.width, settings.length * (settings.vocab_size + 1)
    numbers, words = state[0][:, -1, :width], state[0][:, -1, width : width + tokens]
    torch.testing.assert_close(numbers, target)
    assert (words.unflatten(-1, (settings.length, -1)).argmax(-1) == said[1]).all()
    assert said[1].any()


@pytest.mark.parametrize("parts", [Parts(3, 2, stimuli=2), Parts(4, 3, tokens=2), Parts(6, 4)])
def test_parts_must_fit_the_input(parts: Parts) -> None:
    with pytest.raises(InvalidSettingError, match="does not fit an input of 8 numbers"):
        PairMemory(8, parts)
