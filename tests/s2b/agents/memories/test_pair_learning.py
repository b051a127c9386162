"""Training of pairs: play equals dealt episodes, resumed trainings equal uninterrupted ones, and pairs learn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.registry import SPEAKER
from icy.s2b import BatchedGame, GameSettings, probe_language
from icy.s2b.agents.dealt import advantages, deal_games, entropy, less_phase_mean, returns, rewards
from icy.s2b.agents.memories.attention import MemoryPlayer, MemorySettings
from icy.s2b.agents.memories.pair_learning import PairLearning, PairSettings, hear, hear_straight
from icy.s2b.agents.memories.speaker import MemorySpeaker, SpeakerSettings, TrainedSpeaker, pick
from icy.s2b.episode_streams import EpisodeStreams
from icy.s2b.evaluation import episode_seeds, evaluate, play
from icy.s2b.players.interface import seated

# -- the speaker that learns: its memory, its tokens and its language --------------------------------------------------


GAME = GameSettings(most=3)
THREE = [7, 8, 9]


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
    turn = game.reset(seeds=THREE)
    speaker = seated(TrainedSpeaker(network), SPEAKER, game)
    while not turn.done.all():
        turn = game.step(speaker.act(turn.speaker).message)
    games = deal_games(GAME, THREE, None)
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


FEW = PairSettings(episodes=8, updates=40, warmup=4)
SEEDS = list(range(100, 112))
SPEAKERS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "whole": {"kind": "whole"},
    "no memory": {"memory": False},
    "near": {"attention": "near"},
    "square": {"attention": "square"},
    "dot": {"attention": "dot"},
    "soft": {"alignment": "soft"},
}


def trained(game: GameSettings = GAME, **speaker: Any) -> PairLearning:
    """Return a pair after four updates, so that its choices are no longer all the same."""
    pair = PairLearning(game, replace(FEW, speaker=SpeakerSettings(**speaker)))
    pair.run(4)
    return pair


def played(pair: PairLearning, game: GameSettings) -> tuple[Tensor, Tensor, Tensor]:
    """Play step by step; return messages sent and received, [B, G, L], and decisions, [B, G]; -1 after the end."""
    batched = BatchedGame(game, episodes=len(SEEDS))
    batched.reset(seeds=SEEDS)
    games = int(batched.games.max())
    said, heard = (torch.full((len(SEEDS), games, game.length), -1) for _ in range(2))
    decided = torch.full((len(SEEDS), games), -1)

    def watch(batched: Any, turn: Any, speaking: Any, listening: Any) -> None:
        at = batched.game_number
        for row in np.flatnonzero(~turn.done):
            if turn.speaker.round[row] == 0:
                said[row, at[row]] = torch.as_tensor(speaking.message[row])
            if turn.listener.may_decide[row]:
                heard[row, at[row]] = torch.as_tensor(turn.listener.message[row])
                decided[row, at[row]] = int(listening.decision[row])

    play(batched, TrainedSpeaker(pair.speaking), MemoryPlayer(pair.listening), SEEDS, watch)
    return said, heard, decided


@pytest.mark.slow
@pytest.mark.parametrize("speaker", list(SPEAKERS))
def test_play_step_by_step_equals_dealt_episodes(speaker: str) -> None:
    pair = trained(**SPEAKERS[speaker])
    said, heard, decided = played(pair, GAME)
    games = deal_games(GAME, SEEDS, None)
    dimensions = pair.speaking.likeliest_dimensions(len(SEEDS))
    tokens = pair.speaking.speak(pair.speaking.recall(games.shown, dimensions))
    messages = hear(tokens, games.heard)
    with torch.no_grad():
        chosen = pair.listening(replace(games, messages=messages)).argmax(-1)
    assert torch.equal(tokens.mT[games.there] + 1, said[games.there])
    assert torch.equal(messages[games.there], heard[games.there])
    assert torch.equal(chosen[games.there], decided[games.there])


@pytest.mark.slow
def test_played_and_dealt_scores_are_equal() -> None:
    pair = trained()
    games = BatchedGame(GAME, episodes=20)
    scores = play(games, pair.speaker(), pair.listener(), episode_seeds(7, 20))
    assert pair.read(20, seed=7)["zsct"] == pytest.approx(float(scores.zsct.mean()))
    assert pair.read(20, seed=7)["support"] == pytest.approx(float(scores.support.mean()))


def test_a_new_episode_begins_with_an_empty_memory() -> None:
    """With autoreset, the players forget at the first observation of an episode."""
    pair = trained()
    game = BatchedGame(GAME, episodes=2, autoreset=True)
    turn = game.reset(seed=5)
    speaker = TrainedSpeaker(pair.speaking)
    speaker.begin(seat_of(game))
    while not turn.done[0]:
        turn = game.step(speaker.act(turn.speaker).message)
    assert speaker.memory.known[0].sum() == game.games[0]
    turn = game.step(speaker.act(turn.speaker).message)  # begins the next episode
    game.step(speaker.act(turn.speaker).message)
    assert speaker.memory.known[0].sum() == 1


def seat_of(game: BatchedGame) -> Any:
    from icy.s2b.players.interface import Seat

    return Seat(game.settings, game.episodes, EpisodeStreams.of_seeds(game.seeds))


# -- dealt games and messages ------------------------------------------------------------------------------------------


def test_silent_games_equal_games_with_a_speaker_except_messages() -> None:
    games = deal_games(GAME, SEEDS, None)
    spoken = deal_games(GAME, SEEDS, "posdis")
    for name in ("stimuli", "shown", "answers", "query", "there", "sizes", "heard"):
        assert torch.equal(getattr(games, name), getattr(spoken, name))
    assert not games.messages.any()
    batched = BatchedGame(GAME, episodes=len(SEEDS))
    batched.reset(seeds=SEEDS)
    assert np.array_equal(games.heard, batched.heard_as)


def test_one_hot_messages_equal_token_messages() -> None:
    heard = deal_games(GAME, SEEDS, None).heard
    tokens = torch.randint(0, GAME.vocab_size, (len(SEEDS), 3, 7), generator=torch.Generator().manual_seed(1))
    messages = hear(tokens, heard)
    straight = hear_straight(torch.nn.functional.one_hot(tokens, GAME.vocab_size).float(), heard)
    assert messages.shape == (len(SEEDS), 7, 3)
    assert torch.equal(straight.argmax(-1), messages)
    assert (messages > 0).all()  # the end token does not occur
    pair = PairLearning(GAME, FEW)
    stimuli = torch.zeros(len(SEEDS), 7, 3)
    assert torch.allclose(pair.listening.entries(stimuli, straight), pair.listening.entries(stimuli, messages))


# -- rewards and advantages --------------------------------------------------------------------------------------------


def test_returns_are_discounted_sums_of_later_rewards() -> None:
    assert torch.allclose(returns(torch.tensor([[1.0, 0.0, -2.0]]), 0.5), torch.tensor([[0.5, -1.0, -2.0]]))


def test_errors_cost_only_in_the_query_and_padding_has_no_reward() -> None:
    games = deal_games(GAME, SEEDS, None)
    wrong, right = (rewards(torch.full_like(games.there, what), games) for what in (False, True))
    assert torch.equal(right, games.there.float())
    assert torch.equal(wrong, -2.0 * games.query)
    assert not wrong[~games.there].any()


def test_advantages_do_not_depend_on_the_number_of_games_left() -> None:
    """With the same reward in every game of a phase, advantages are the noise only."""
    games = deal_games(GAME, range(64), None)
    reward = games.there * 1.0 + games.query * 2.0
    noise = torch.randn(reward.shape, generator=torch.Generator().manual_seed(0)) * games.there
    assert not less_phase_mean(reward, games)[games.there].abs().max() > 1e-6
    noise = noise.double()  # in single precision, the error of sums of 1000s depends on the processor
    better = advantages(returns(1000 * reward + noise, 0.9), games, 0.9)[games.there]
    assert better.mean().abs() < 0.05
    assert better.std() == pytest.approx(1.0, abs=0.01)
    expected = returns(noise, 0.9)[games.there]
    assert torch.corrcoef(torch.stack([better, expected]))[0, 1] > 0.95


def test_the_entropy_of_a_uniform_distribution_is_the_log_of_its_size() -> None:
    assert entropy(torch.full((1, 4), 0.25).log()).item() == pytest.approx(np.log(4))


# -- language ----------------------------------------------------------------------------------------------------------


def test_a_language_with_two_tokens_is_compositional_and_not_distinct() -> None:
    """Every position has a token for numbers above 0 and one for the others, so three values share two tokens."""
    pair = PairLearning(GAME, replace(FEW, speaker=SpeakerSettings(memory=False, alignment="fixed")))
    with torch.no_grad():
        for weights in pair.speaking.parameters():
            weights.zero_()
        pair.speaking.guess[0].weight[0, 0] = 1.0  # of numbers above 0
        pair.speaking.guess[2].weight[1, 0] = 1.0  # another token
    found = pair.language(10)
    assert found["posdis"] == 1
    assert 0 < found["distinct"] < 1


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["reinforce", "gumbel"])
def test_killed_and_resumed_equals_uninterrupted(estimator: str, tmp_path: Path) -> None:
    settings = replace(FEW, estimator=estimator)
    whole, first, second = (PairLearning(GAME, settings) for _ in range(3))
    whole.run(6)
    first.run(3)
    torch.save(first.state(), tmp_path / "pair.pt")
    second.load(torch.load(tmp_path / "pair.pt", weights_only=True))
    second.run(3)
    assert second.updates == 6
    assert second.observations == whole.observations > first.observations
    for player in ("speaker", "listener"):
        one, other, part = (pair.networks()[player].state_dict() for pair in (whole, second, first))
        assert all(torch.equal(one[name], other[name]) for name in one)
        assert not all(torch.equal(one[name], part[name]) for name in one)


def test_a_state_of_other_settings_raises_an_error() -> None:
    with pytest.raises(IncompatibleError, match="other settings"):
        PairLearning(GAME, replace(FEW, entropy=0.5)).load(PairLearning(GAME, FEW).state())


def test_training_does_not_change_torchs_global_generator() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    PairLearning(GAME, FEW).run(1)
    assert torch.equal(torch.rand(1), expected)


def test_every_parameter_changes_in_training() -> None:
    pair = PairLearning(GAME, FEW)
    before = {n: p.clone() for who in pair.networks().values() for n, p in who.named_parameters()}
    pair.run(2)
    after = {n: p for who in pair.networks().values() for n, p in who.named_parameters()}
    assert [n for n in before if torch.equal(before[n], after[n])] == []


def test_alignment_and_memory_have_their_own_learning_rates() -> None:
    pair = PairLearning(GAME, replace(FEW, alignment_rate=7.0, memory_rate=3.0))
    times = {p: group["times"] for group in pair.optimizer.param_groups for p in group["params"]}
    assert len(times) == sum(1 for who in pair.networks().values() for _ in who.parameters())
    assert times[pair.speaking.alignment] == times[pair.listening.alignment] == 7
    assert times[pair.speaking.new] == times[pair.speaking.sharpness] == 3
    assert {times[p] for name, p in pair.listening.named_parameters() if name != "alignment"} == {1}


@pytest.mark.slow
def test_a_deaf_listener_is_at_chance_after_training() -> None:
    pair = PairLearning(GAME, replace(FEW, listener=MemorySettings(deaf=True)))
    pair.run(30)
    assert pair.read(400)["zsct"] == pytest.approx(0.5, abs=0.03)


def test_an_unknown_estimator_raises_an_error() -> None:
    with pytest.raises(UnknownNameError, match="reinforce"):
        PairSettings(estimator="reinforced")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"learning_rate": -1.0}, "above 0"),
        ({"temperature": 0.0}, "above 0"),
        ({"warmup": -2}, "at least 0"),
        ({"entropy": -1.0}, "at least 0"),
        ({"decay": 7.0}, "at most 1"),
        ({"discount": 1.1}, "at most 1"),
    ],
)
def test_settings_that_are_not_accepted_raise_errors(given: dict[str, Any], why: str) -> None:
    (name,) = given
    with pytest.raises(InvalidSettingError, match=f"{name} must be .*{why}"):
        PairSettings(**given)


@pytest.mark.parametrize("given", [{"heads": 0}, {"width": 0}, {"hidden": 0}, {"scale": -1.0}])
def test_speaker_settings_that_are_not_accepted_raise_errors(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError, match=f"{next(iter(given))} of the speaker"):
        SpeakerSettings(**given)


@pytest.mark.parametrize("given", [{"feedback": False}, {"listener_messages": True}])
def test_games_that_cannot_be_dealt_raise_errors_at_the_beginning(given: dict[str, Any]) -> None:
    with pytest.raises(IncompatibleError, match="Dealt games"):
        PairLearning(replace(GAME, **given))


@pytest.mark.stress
def test_a_pair_learns_from_rewards_only() -> None:
    torch.set_num_threads(1)
    pair = PairLearning(GAME, PairSettings(updates=900))
    pair.run(900)
    assert pair.read(500)["zsct"] > 0.9
    spoken = evaluate(TrainedSpeaker(pair.speaking), MemoryPlayer(pair.listening), GAME, episodes=200, seeds=1)
    assert float(spoken.table()["zsct"][0]) > 0.9
