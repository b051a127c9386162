"""Networks as players: choices equal those of actors, partners see each other's choices, and games of other sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b import BatchedGame, GameSettings, evaluate, probe_language
from icy.s2b.agents.memories.attention import MemoryListener, MemoryPlayer
from icy.s2b.agents.memories.dealt_learning import read
from icy.s2b.agents.networks.network import (
    Network,
    NetworkPlayer,
    NetworkSettings,
    ReconstructionHead,
    ReconstructionSettings,
)
from icy.s2b.agents.networks.observations import Actions
from icy.s2b.agents.r2d2.r2d2_learning import R2D2Learning, R2D2Settings
from icy.s2b.evaluation import play
from icy.s2b.players.interface import seated

GAME = GameSettings(dimensions=2, most=2)
SMALL = NetworkSettings.preset("near32", stimulus=(8,), message=(8,), options={"sizes": (8,)})
SETTINGS = R2D2Settings(
    network=SMALL, actors=3, learning_starts=0, length=8, overlap=4, burn_in=4, capacity=3000, epsilon=0.0
)


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
def test_a_player_makes_the_choices_of_an_actor_that_does_not_explore(settings: R2D2Settings) -> None:
    """The choices are compared step by step over several episodes with autoreset."""
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


def test_partners_see_the_last_choice_and_never_the_present_choice() -> None:
    learning = R2D2Learning(GAME, replace(SETTINGS, players="both", sad=True))
    speaker, listener = learning.speaker(), learning.listener()
    assert isinstance(speaker, NetworkPlayer)
    extras: dict[str, list[Any]] = {SPEAKER: [], LISTENER: []}
    for player in (speaker, listener):
        player._observe = _watched(player, extras[player.role])  # type: ignore[method-assign]
    choices: dict[str, list[Any]] = {SPEAKER: [], LISTENER: []}
    game = BatchedGame(GAME, episodes=2)

    def watch(*_: Any) -> None:
        for player in (speaker, listener):
            choices[player.role].append(player.choices[player.steps])

    play(game, speaker, listener, [1, 2], watch)
    width = learning.agents[0].actions.width
    for role, other in ((SPEAKER, LISTENER), (LISTENER, SPEAKER)):
        assert not extras[role][0].any()
        assert len(extras[role]) > 10
        for step in range(1, len(extras[role])):
            assert extras[role][step][:, :width].argmax(-1).tolist() == choices[other][step - 1][:, 0].tolist()
            assert extras[role][step][:, width:].tolist() == [[0.0, 1.0]] * 2


def _watched(player: NetworkPlayer, into: list[Any]) -> Any:
    observed = player._observe

    def watch(seen: Any) -> Any:
        found = observed(seen)
        into.append(found.extra)
        return found

    return watch


def test_without_its_partner_a_player_gets_zeros() -> None:
    learning = R2D2Learning(GAME, replace(SETTINGS, players="both", sad=True))
    listener = learning.listener()
    extras: list[Any] = []
    listener._observe = _watched(listener, extras)  # type: ignore[method-assign]
    evaluate(learning.speaker(), listener, GAME, episodes=4, seeds=1)
    assert all(extra.any() for extra in extras[1:])
    extras.clear()
    evaluate("posdis", listener, GAME, episodes=4, seeds=1)
    assert len(extras) > 10
    assert not any(extra.any() for extra in extras)


def test_read_equals_evaluate() -> None:
    learning = R2D2Learning(GAME, SETTINGS)
    found = evaluate("posdis", learning.listener(), GAME, episodes=30, seeds=[5]).table()
    assert learning.read(30, seed=5) == {"zsct": found["zsct"][0], "support": found["support"][0]}


def test_reconstruction_is_measured_on_whole_episodes() -> None:
    network = Network(Actions(GAME), SMALL)
    predictor = ReconstructionHead(network.core.latent_width, GAME, ReconstructionSettings(near=3.0))
    player = NetworkPlayer(network, LISTENER, predictor)
    game = BatchedGame(GAME, episodes=5)
    play(game, "posdis", player, range(5))
    assert player.reconstructed == 1.0  # everything is within 3 of anything
    longest = int((game.games == game.games.max()).sum())
    assert player._count == 3 * int(game.games.sum()) - longest  # players do not act when all episodes have ended


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
def test_a_memory_with_enough_tokens_plays_with_more_values() -> None:
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
def test_a_game_with_other_sizes_raises_an_error(role: str, changes: dict[str, Any], said: str) -> None:
    player = NetworkPlayer(Network(Actions.of_role(GAME, role), SMALL), role)
    game = BatchedGame(**{"dimensions": 2, "most": 2, **changes})
    game.reset(seed=1)
    with pytest.raises(IncompatibleError, match=said):
        seated(player, role, game)


def test_utter_returns_the_next_message_and_keeps_the_state() -> None:
    """`utter` for the stimulus of the next game equals the message that the speaker then sends."""
    torch.manual_seed(0)
    player = NetworkPlayer(Network(Actions.of_role(GAME, SPEAKER), SMALL), SPEAKER)
    for weight in player.network.parameters():
        weight.data *= 4  # so that its messages differ
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
