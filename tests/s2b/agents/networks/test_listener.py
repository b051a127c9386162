"""Networks on dealt episodes: observations and decisions equal those of play step by step."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from icy.core.errors import IncompatibleError
from icy.core.registry import CORE, SPEAKER, registry
from icy.s2b import BatchedGame, GameSettings, evaluate
from icy.s2b.agents.cores.core import State
from icy.s2b.agents.dealt import DealtGames, deal_games
from icy.s2b.agents.memories.dealt_learning import read
from icy.s2b.agents.networks.listener import DEFAULTS, CoreListener
from icy.s2b.agents.networks.network import NetworkSettings
from icy.s2b.agents.networks.observations import Observation, observe
from icy.s2b.players.interface import seated

SEEDS = range(40, 44)
GAMES: list[dict[str, Any]] = [
    {"most": 3},
    {"most": 2, "rounds": 2, "length": 2, "distractors": 1, "query": "tss"},
    {"most": 2, "distractors": 2, "view": "partial", "descriptive": False, "samples": 2, "query": "tss"},
]


def listener(game: GameSettings, own: bool, **given: Any) -> CoreListener:
    """Return a listener in double precision with varied decisions."""
    torch.manual_seed(3)
    made = CoreListener(game, NetworkSettings.preset("near32", head="policy", **given), own).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(2)
    return made


def doubled(games: DealtGames) -> DealtGames:
    return replace(games, stimuli=games.stimuli.double(), feedback=games.feedback.double())


@torch.no_grad()
def stepped(model: CoreListener) -> tuple[list[Observation], list[torch.Tensor], list[torch.Tensor], torch.Tensor]:
    """Play in the game; return observations, scores, decisions and masks of the episodes that have not ended."""
    game, network = BatchedGame(model.game, episodes=len(SEEDS)), model.network
    turn = game.reset(seeds=SEEDS)
    speaker = seated("posdis", SPEAKER, game)
    state: State = network.start(len(SEEDS))
    chosen, earned = None, None
    seen, scores, decided, going = [], [], [], []
    while not turn.done.all():
        now = observe(turn.listener, "listener", network.actions, chosen, earned)
        now = replace(now, **{f.name: getattr(now, f.name).double() for f in fields(now) if
                              getattr(now, f.name).is_floating_point()})  # fmt: skip
        now = now if model.own else now.without_own()
        scored, state = network.step(now, state)
        chosen = network.actions.best(scored.scores, now.legal)
        seen.append(now)
        scores.append(scored.scores)
        going.append(torch.as_tensor(~turn.done))
        if turn.listener.may_decide.any():
            decided.append(chosen[:, 0].clone())
        turn = game.step(speaker.act(turn.speaker).message, network.actions.taken(chosen.numpy())[1])
        earned = turn.reward
    return seen, scores, decided, torch.stack(going)


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("given", GAMES)
def test_observations_of_dealt_games_equal_those_of_play(given: dict[str, Any], own: bool) -> None:
    game = GameSettings(**given)
    model = listener(game, own)
    seen, _, decided, going = stepped(model)
    games = doubled(deal_games(game, SEEDS))
    chosen = torch.stack(decided, 1).masked_fill(~games.there, 0)
    assert len(chosen.unique()) > 1
    found, met = model.observations(replace(games, decided=chosen)), Observation.stack(seen)
    for field in fields(Observation):
        one, other = (getattr(x, field.name) for x in (found, met))
        assert one.shape == other.shape, field.name
        assert torch.equal(one[going].double(), other[going].double()), field.name
    assert not found.fresh[1:].any()


@pytest.mark.contract
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("core", [entry.name for entry in registry.entries(CORE)])
def test_decisions_of_every_core_on_dealt_episodes_equal_those_of_play(core: str, own: bool) -> None:
    game = GameSettings(most=2)
    model = listener(game, own, core=core, capacity=64)
    _, scores, decided, _ = stepped(model)
    games = doubled(deal_games(game, SEEDS))
    every = torch.stack(scores[1::3], 1)[..., :2]
    with torch.no_grad():
        logits, played = model(games), model.play(games)
        given = model(replace(games, decided=torch.stack(decided, 1)))
    for found in (logits, played[0][..., :-1], given):
        assert torch.allclose(found[games.there], every[games.there], atol=1e-9)
    assert torch.equal(played[1][games.there], torch.stack(decided, 1)[games.there])


@pytest.mark.slow
def test_only_a_listener_with_own_sees_its_sampled_decisions() -> None:
    game = GameSettings(most=3)
    games = doubled(deal_games(game, SEEDS))
    for own in (False, True):
        model = listener(game, own)
        with torch.no_grad():
            scores, decided = model.play(games, torch.Generator().manual_seed(1))
            again = model.scored(replace(games, decided=decided))
            others = model.scored(replace(games, decided=1 - decided))
        assert torch.allclose(scores[games.there], again[games.there], atol=1e-9)
        assert torch.allclose(again[:, 0], others[:, 0], atol=1e-9)
        assert torch.allclose(again[games.there], others[games.there], atol=1e-9) is not own


@pytest.mark.slow
@pytest.mark.parametrize(("own", "hold"), [(False, False), (True, False), (True, True)])
def test_accuracies_on_dealt_episodes_equal_those_of_play(own: bool, hold: bool) -> None:
    game = GameSettings(most=3)
    model = listener(game, own, hold=hold).float()
    for name, value in read(model, game, episodes=20, seed=5).items():
        played = evaluate("posdis", model.player(), game, episodes=20, seeds=[5]).table()[name][0]
        assert value == pytest.approx(float(played), abs=1e-6)
        assert 0.1 < value < 0.9


def test_with_hold_the_message_is_repeated_at_the_feedback() -> None:
    game = GameSettings(most=2, rounds=2, length=2)
    games = doubled(deal_games(game, SEEDS))
    silent, held = (listener(game, False, hold=hold).observations(games).message for hold in (False, True))
    assert not silent[3::4].any()  # rounds 0, 1, 2, and feedback
    assert torch.equal(held[3::4].transpose(0, 1), games.messages[:, :-1, 2:])
    assert held[3::4].any()
    for place in range(3):
        assert torch.equal(held[place::4], silent[place::4])


def test_games_and_networks_that_cannot_be_dealt_raise_errors() -> None:
    with pytest.raises(IncompatibleError, match="take masks 'paper'"):
        CoreListener(GameSettings(masks="near32"))
    with pytest.raises(IncompatibleError, match="extra=0"):
        CoreListener(GameSettings(), replace(DEFAULTS, extra=3))
    with pytest.raises(IncompatibleError, match="created for 4 tokens, and the game has 6"):
        evaluate("posdis", CoreListener(GameSettings(most=3)).player(), GameSettings(), episodes=2)
