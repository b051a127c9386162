"""Networks at the table: decisions as unrolled, partners that are told of each other, and games of another size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b import BatchedGame, GameSettings, evaluate, probe_language
from icy.s2b.agents.memories.attention import MemoryListener
from icy.s2b.agents.memories.dealt_learning import read
from icy.s2b.agents.memories.memory_players import MemoryPlayer
from icy.s2b.agents.networks.actions import Actions
from icy.s2b.agents.networks.network import Network, NetworkSettings
from icy.s2b.agents.networks.network_player import NetworkPlayer
from icy.s2b.agents.networks.reconstruction import ReconstructionHead, ReconstructionSettings
from icy.s2b.agents.r2d2.r2d2_learning import R2D2Learning, R2D2Settings
from icy.s2b.evaluation import play
from icy.s2b.players.interface import seated

GAME = GameSettings(dimensions=2, most=2)
SMALL = NetworkSettings.preset("near32", stimulus=(8,), message=(8,), options={"sizes": (8,)})
SETTINGS = R2D2Settings(network=SMALL, actors=3, least=0, length=8, overlap=4, burn_in=4, capacity=3000, explore=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        replace(SETTINGS, network=replace(SMALL, hold=True)),
        replace(SETTINGS, players="both", sad=True),
        replace(SETTINGS, players="both", sad=True, shared=False),
    ],
    ids=["listener", "held", "one network", "two networks"],
)
def test_a_player_plays_as_an_actor_that_does_not_explore(settings: R2D2Settings) -> None:
    """Over several episodes, with autoreset: the same choices, step by step."""
    learning = R2D2Learning(GAME, settings)
    game = BatchedGame(GAME, episodes=3, autoreset=True)
    turn = game.reset(seeds=learning._batched.seeds)
    speaker, listener = seated(learning.speaker(), SPEAKER, game), seated(learning.listener(), LISTENER, game)
    for step in range(60):
        learning.step()
        said, heard = speaker.act(turn.speaker), listener.act(turn.listener)
        held = learning.replay.state()["steps"]
        for player in (speaker, listener):
            if isinstance(player, NetworkPlayer):
                assert torch.equal(player.choices[player.steps], held[f"{player.role}.chosen"][step])
        turn = game.step(said.message, heard.decision, heard.message)
    assert game.episode_number.max() > 0
    assert game.illegal == {SPEAKER: pytest.approx(0), LISTENER: pytest.approx(0)}


def test_partners_are_told_of_the_last_choice_and_never_of_the_present_one() -> None:
    learning = R2D2Learning(GAME, replace(SETTINGS, players="both", sad=True))
    speaker, listener = learning.speaker(), learning.listener()
    assert isinstance(speaker, NetworkPlayer)
    told: dict[str, list[Any]] = {SPEAKER: [], LISTENER: []}
    for player in (speaker, listener):
        player._observe = _watched(player, told[player.role])  # type: ignore[method-assign]
    choices: dict[str, list[Any]] = {SPEAKER: [], LISTENER: []}
    game = BatchedGame(GAME, episodes=2)

    def watch(*_: Any) -> None:
        for player in (speaker, listener):
            choices[player.role].append(player.choices[player.steps])

    play(game, speaker, listener, [1, 2], watch)
    width = learning.agents[0].actions.width
    for role, other in ((SPEAKER, LISTENER), (LISTENER, SPEAKER)):
        assert not told[role][0].any()
        assert len(told[role]) > 10
        for step in range(1, len(told[role])):
            assert told[role][step][:, :width].argmax(-1).tolist() == choices[other][step - 1][:, 0].tolist()
            assert told[role][step][:, width:].tolist() == [[0.0, 1.0]] * 2


def _watched(player: NetworkPlayer, into: list[Any]) -> Any:
    observed = player._observe

    def watch(seen: Any) -> Any:
        found = observed(seen)
        into.append(found.extra)
        return found

    return watch


def test_without_its_partner_a_player_is_told_nothing() -> None:
    learning = R2D2Learning(GAME, replace(SETTINGS, players="both", sad=True))
    listener = learning.listener()
    told: list[Any] = []
    listener._observe = _watched(listener, told)  # type: ignore[method-assign]
    evaluate(learning.speaker(), listener, GAME, episodes=4, seeds=1)
    assert all(extra.any() for extra in told[1:])
    told.clear()
    evaluate("posdis", listener, GAME, episodes=4, seeds=1)
    assert len(told) > 10
    assert not any(extra.any() for extra in told)


def test_read_is_what_evaluate_says() -> None:
    learning = R2D2Learning(GAME, SETTINGS)
    found = evaluate("posdis", learning.listener(), GAME, episodes=30, seeds=[5]).table()
    assert learning.read(30, seed=5) == {"zsct": found["zsct"][0], "support": found["support"][0]}


def test_what_the_core_holds_is_judged_on_whole_episodes() -> None:
    network = Network(Actions(GAME), SMALL)
    predictor = ReconstructionHead(network.core.latent_width, GAME, ReconstructionSettings(near=3.0))
    player = NetworkPlayer(network, LISTENER, predictor)
    game = BatchedGame(GAME, episodes=5)
    play(game, "posdis", player, range(5))
    assert player.reconstructed == 1.0  # everything is within 3 of anything
    longest = int((game.games == game.games.max()).sum())
    assert player._count == 3 * int(game.games.sum()) - longest  # nobody acts once all have ended


# -- games of another size ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_network_with_enough_tokens_plays_with_more_values() -> None:
    few, many = GameSettings(most=3, vocab_size=11), GameSettings(most=10)
    assert few.vocab_size == many.vocab_size
    player = NetworkPlayer(Network(Actions(few), SMALL))
    assert evaluate("posdis", player, many, episodes=2, seeds=1).table()["illegal"].tolist() == [0.0]
    smaller = GameSettings(most=2, vocab_size=3)
    assert np.isfinite(evaluate("posdis", player, smaller, episodes=2, seeds=1).table()["zsct"]).all()


@pytest.mark.slow
def test_a_memory_with_enough_tokens_reads_more_values() -> None:
    memory = MemoryListener(GameSettings(most=3, vocab_size=11))
    many = GameSettings(most=10)
    played = evaluate("posdis", MemoryPlayer(memory), many, episodes=2, seeds=[123]).table()
    assert read(memory, many, episodes=2)["zsct"] == pytest.approx(played["zsct"][0])


@pytest.mark.parametrize(
    ("role", "changes", "said"),
    [
        (LISTENER, {"most": 3}, "4 tokens, and the game has 3|3 tokens, and the game has 4"),
        (LISTENER, {"dimensions": 3}, "stimuli of 2 numbers"),
        (LISTENER, {"length": 3}, "messages of 2 tokens"),
        (LISTENER, {"rounds": 2}, "1 round"),
        (LISTENER, {"distractors": 1}, "2 slots"),
        (SPEAKER, {"vocab_size": 2}, "created for 3 tokens"),
    ],
)
def test_a_game_that_looks_different_is_refused(role: str, changes: dict[str, Any], said: str) -> None:
    player = NetworkPlayer(Network(Actions.of_role(GAME, role), SMALL), role)
    game = BatchedGame(**{"dimensions": 2, "most": 2, **changes})
    game.reset(seed=1)
    with pytest.raises(IncompatibleError, match=said):
        seated(player, role, game)


def test_a_speaker_says_what_it_would_say_next() -> None:
    """Of the stimulus that the next game has, as it then does; and its state stays."""
    torch.manual_seed(0)
    player = NetworkPlayer(Network(Actions.of_role(GAME, SPEAKER), SMALL), SPEAKER)
    for weight in player.network.parameters():
        weight.data *= 4  # so that it does not say the same of everything
    game = BatchedGame(GAME, episodes=12)
    turn = game.reset(seed=1)
    seated(player, SPEAKER, game)
    compared = set()
    for step in range(4):
        if step == 3:
            state = tuple(part.clone() for part in player.state)
            uttered = [player.utter(turn.speaker.stimulus[e], np.zeros((1, 2), dtype=np.int64), e) for e in range(12)]
            assert all(map(torch.equal, state, player.state))
        said = player.act(turn.speaker).message
        if step == 3:
            assert np.array_equal(np.concatenate(uttered), said)
            compared |= {tuple(row) for row in said.tolist()}
        turn = game.step(said)
    assert len(compared) > 1
    found = probe_language(player, GAME, episodes=4)
    assert found["topsim"].notna().any()


def test_a_listener_has_no_language() -> None:
    player = NetworkPlayer(Network(Actions.of_role(GAME, LISTENER), SMALL), LISTENER)
    with pytest.raises(IncompatibleError, match="utter"):
        player.utter(np.zeros((1, 2)), np.zeros((1, 2), dtype=np.int64), 0)
