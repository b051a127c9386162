"""The speaker that learns: its memory, its tokens and its language."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.registry import SPEAKER
from icy.s2b import BatchedGame, GameSettings, probe_language
from icy.s2b.agents.dealt import deal_games
from icy.s2b.agents.memories.speaker import MemorySpeaker, SpeakerSettings, TrainedSpeaker, pick
from icy.s2b.players.interface import seated

GAME = GameSettings(most=3)
SEEDS = [7, 8, 9]


def made(seed: int = 0, game: GameSettings = GAME, **given: Any) -> MemorySpeaker:
    torch.manual_seed(seed)
    return MemorySpeaker(game, SpeakerSettings(**given))


def test_positions_share_two_thousand_parameters() -> None:
    by_length = [sum(p.numel() for p in made(game=GameSettings(most=3, length=n)).parameters()) for n in (3, 6)]
    assert by_length[0] == pytest.approx(2100, rel=0.03)
    assert by_length[1] - by_length[0] == 3 * 3  # the alignment only


@pytest.mark.parametrize("attention", ["distance", "near", "square", "dot"])
def test_whole_episodes_equal_play_game_by_game(attention: str) -> None:
    """The log-probabilities of a whole episode equal those that its tokens were sampled from."""
    speaker = made(attention=attention)
    games = deal_games(GAME, range(4), None)
    count = games.there.shape[1]
    random = torch.Generator().manual_seed(1)
    dimensions = torch.tensor([[0, 1, 2], [2, 1, 0], [1, 1, 1], [0, 0, 2]])
    recall = speaker.recall(games.shown, dimensions)
    uniform = torch.rand(4, 3, count, generator=random)
    tokens = speaker.speak(recall, uniform)
    logs = speaker.log_chances(recall, tokens)
    assert torch.allclose(logs.exp().sum(-1), torch.ones(4, 3, count), atol=1e-5)
    assert torch.equal(pick(logs.exp(), uniform), tokens)
    noise = torch.zeros(4, 3, count, GAME.vocab_size).scatter_(-1, tokens.unsqueeze(-1), 1e3)
    said, straight = speaker.speak_straight(recall, noise)
    assert torch.equal(said.argmax(-1), tokens)
    assert torch.allclose(straight, logs, atol=1e-4)


def test_tokens_depend_on_earlier_games_only() -> None:
    speaker = made()
    games = deal_games(GAME, [1], None)
    dimensions = torch.tensor([[0, 1, 2]])
    whole = speaker.speak(speaker.recall(games.shown, dimensions))
    for count in (1, 5):
        assert torch.equal(speaker.speak(speaker.recall(games.shown[:, :count], dimensions)), whole[..., :count])


def test_a_repeated_number_gets_the_same_token() -> None:
    """This holds before training, because the distance of equal numbers is 0."""
    speaker = made(attention="near")
    numbers = torch.tensor([0.5, -0.5, 0.5, -0.5, 0.5, -0.5])
    stimuli = numbers.view(1, -1, 1).expand(1, -1, 3)
    said = torch.tensor([0, 1, 0, 1, 0, 1]).expand(1, 3, -1)
    logs = speaker.log_chances(speaker.recall(stimuli, torch.tensor([[0, 1, 2]])), said)
    assert logs[0, 0, -1].argmax() == 1
    assert logs[0, 0, -2].argmax() == 0


def test_dimensions_are_sampled_from_the_alignment() -> None:
    speaker = made()
    with torch.no_grad():
        speaker.alignment.copy_(torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]]).log())
    drawn = speaker.draw_dimensions(torch.rand(4000, 3, generator=torch.Generator().manual_seed(2)))
    shares = torch.nn.functional.one_hot(drawn, 3).double().mean(0)
    assert torch.allclose(shares, speaker.alignment.detach().exp().double(), atol=0.03)
    assert speaker.likeliest_dimensions(1).tolist() == [[0, 2, 2]]
    logs = speaker.dimension_log_chances(torch.tensor([[1, 2, 0]]))
    assert logs.item() == pytest.approx(np.log(0.1) + np.log(0.2), abs=1e-4)
    assert made(alignment="fixed").draw_dimensions(torch.rand(1, 3)).tolist() == [[0, 1, 2]]


def test_choices_are_sampled_with_their_probabilities() -> None:
    chances = torch.tensor([0.25, 0.0, 0.75]).expand(4, -1)
    assert pick(chances, torch.tensor([0.0, 0.24, 0.26, 0.999999])).tolist() == [0, 0, 2, 2]


def test_utter_returns_the_next_message() -> None:
    network = made()
    game = BatchedGame(GAME, episodes=3)
    turn = game.reset(seeds=SEEDS)
    speaker = seated(TrainedSpeaker(network), SPEAKER, game)
    while not turn.done.all():
        turn = game.step(speaker.act(turn.speaker).message)
    games = deal_games(GAME, SEEDS, None)
    for episode in range(3):
        shown = games.shown[episode, games.there[episode]]
        uttered = speaker.utter(shown.numpy(), np.zeros((len(shown), 3), dtype=np.int64), episode)
        next_ = torch.cat([shown.expand(len(shown), -1, -1), shown[:, None]], 1)
        tokens = network.speak(network.recall(next_, network.likeliest_dimensions(len(shown))))
        assert np.array_equal(uttered, tokens[:, :, -1] + 1)


def test_the_language_of_the_speaker_can_be_probed() -> None:
    table = probe_language(TrainedSpeaker(made()), GAME, metrics=["topsim", "posdis", "bosdis"], episodes=3)
    some = table[table["messages"] > 1]  # metrics need at least two messages
    assert len(some)
    assert np.isfinite(some[["topsim", "posdis", "bosdis"]].to_numpy()).all()


@pytest.mark.parametrize(
    "given", [{"length": 2}, {"vocab_size": 2}, {"representation": "ohe"}, {"rounds": 2, "length": 3}]
)
def test_games_that_the_speaker_cannot_play_raise_errors(given: dict[str, Any]) -> None:
    with pytest.raises(IncompatibleError):
        made(game=GameSettings(most=3, **given))


def test_unknown_or_incompatible_settings_raise_errors() -> None:
    with pytest.raises(UnknownNameError, match="distance"):
        SpeakerSettings(attention="distant")
    with pytest.raises(InvalidSettingError, match="whole"):
        SpeakerSettings(kind="whole", attention="near")


def test_a_game_with_another_vocabulary_raises_an_error() -> None:
    with pytest.raises(IncompatibleError, match="3 tokens from a vocabulary of 4"):
        probe_language(TrainedSpeaker(made()), GameSettings(most=5), metrics=["posdis"], episodes=1)


def test_the_default_attention_depends_on_the_samples_per_meaning() -> None:
    assert MemorySpeaker(GameSettings()).settings.attention == "distance"
    assert MemorySpeaker(GameSettings(samples=4)).settings.attention == "square"
    assert MemorySpeaker(GameSettings(samples=4), SpeakerSettings(kind="whole")).settings.attention == "distance"
    assert MemorySpeaker(GameSettings(samples=4), SpeakerSettings(attention="near")).settings.attention == "near"
