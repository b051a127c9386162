"""Networks on dealt episodes: observations and decisions equal those of play step by step."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from icy.core.errors import IcyError, IncompatibleError
from icy.core.registry import CORE, SPEAKER, registry
from icy.s2b import BatchedGame, GameSettings, evaluate
from icy.s2b.agents.cores.core import State
from icy.s2b.agents.dealt import DealtGames, deal_games
from icy.s2b.agents.memories.dealt_learning import DealtLearning, DealtLearningSettings, read
from icy.s2b.agents.networks.listener import (
    DEFAULTS,
    CoreLearning,
    CoreListener,
)
from icy.s2b.agents.networks.network import NetworkSettings
from icy.s2b.agents.networks.observations import Observation, observe
from icy.s2b.game import REWARDS
from icy.s2b.players.interface import seated
from tests.helpers import mark_others
from tests.s2b.helpers import stacked

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
    found, met = model.observations(replace(games, decided=chosen)), stacked(seen)
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


# -- learning of listeners with a core ---------------------------------------------------------------------------------


SMALL: dict[str, Any] = {"updates": 4, "episodes": 8, "minibatch": 4}
NETWORK = NetworkSettings.preset("near32", head="policy", core="LSTM", options={"sizes": (16,)})


def learning(own: bool = False, **given: Any) -> CoreLearning:
    torch.manual_seed(3)
    game = GameSettings(most=2)
    model = CoreListener(game, NETWORK, own)
    return CoreLearning(model, game, DealtLearningSettings(**{**SMALL, **given}), seed=7)


@pytest.mark.parametrize(("distractors", "entropy"), [(0, 0.01), (3, 0.1)])
def test_default_settings_depend_on_the_game(distractors: int, entropy: float) -> None:
    game = GameSettings(most=2, distractors=distractors)
    assert CoreLearning(CoreListener(game, NETWORK), game).settings == DealtLearningSettings(entropy=entropy)
    assert DealtLearning(CoreListener(game, NETWORK), game).settings == DealtLearningSettings(entropy=entropy)


@pytest.mark.parametrize("own", mark_others("slow", [False, True], bool))
@pytest.mark.parametrize(
    "given", [{"learner": "ppo"}, {"learner": "supervised"}, {"learner": "ppo", "baseline": "value"}]
)
def test_resumed_equals_uninterrupted(own: bool, given: dict[str, Any]) -> None:
    whole, part, other = (learning(own, **given) for _ in range(3))
    before = {name: value.clone() for name, value in whole.model.state_dict().items()}
    whole.run(4)
    part.run(2)
    other.load(part.state())
    other.run(9)
    assert whole.done
    assert other.done
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, other.model.state_dict()[name]), name
    assert any(not torch.equal(value, before[name]) for name, value in whole.model.state_dict().items())


@pytest.mark.parametrize("learner", ["ppo", "supervised"])
def test_core_learning_without_own_decisions_equals_dealt_learning(learner: str) -> None:
    """A listener that does not see its own decisions is a model for DealtLearning, with the same result."""
    cores = learning(learner=learner)
    torch.manual_seed(3)
    model = CoreListener(cores.game, NETWORK)
    plain = DealtLearning(model, cores.game, DealtLearningSettings(**SMALL, learner=learner), seed=7)
    if learner == "supervised":
        assert plain.run(4) == pytest.approx(cores.run(4), abs=1e-6)
    else:
        games = plain.batch(0)
        one, other = plain._sample(games), cores._sample(games)
        assert torch.equal(one.drawn[games.there], other.drawn[games.there])
        assert torch.allclose(one.log[games.there], other.log[games.there], atol=1e-6)


@pytest.mark.parametrize("own", [False, True])
def test_values_are_learned_and_subtracted_from_returns(own: bool) -> None:
    found = learning(own, baseline="value", entropy=0.0, discount=0.5, trace=1.0)
    games = found.batch(0)
    sampled = found._sample(games)
    with torch.no_grad():
        values = found.model.scored(replace(games, decided=sampled.drawn))[..., -1]
        loss = float(found._loss(games, sampled))
    paid = torch.tensor(REWARDS)[games.query.long(), (sampled.drawn == games.answers).long()] * games.there
    later = [
        [0.5 ** (there - here) * (there >= here) for here in range(paid.shape[1])] for there in range(paid.shape[1])
    ]
    returned = paid @ torch.tensor(later)
    assert torch.allclose(sampled.returned[games.there], returned[games.there], atol=1e-5)  # type: ignore[attr-defined]
    gain = (returned - values)[games.there]
    assert torch.allclose(sampled.gain[games.there], (gain - gain.mean()) / gain.std(), atol=1e-4)
    # before the first step every ratio is 1, and normalised gains cancel: the loss is the error of the values
    assert loss == pytest.approx(0.5 * float(gain.square().mean()), abs=1e-5)


def test_the_listener_plays() -> None:
    found = learning()
    found.run(1)
    assert 0 <= float(evaluate("posdis", found.listener(), found.game, episodes=4).table()["zsct"][0]) <= 1


@pytest.mark.stress
@pytest.mark.parametrize("baseline", ["phase", "value"])
def test_recurrent_ppo_learns_an_easy_game_and_a_deaf_core_does_not(baseline: str) -> None:
    """Tokens are not permuted here, so a core only has to learn fixed meanings."""
    game = GameSettings(most=2, permutation=False)
    for deaf, least, most in ((False, 0.8, 1.0), (True, 0.4, 0.6)):
        torch.manual_seed(1)
        model = CoreListener(game, replace(NETWORK, deaf=deaf, options={"sizes": (64,)}), own=baseline == "value")
        settings = DealtLearningSettings(updates=200, episodes=32, epochs=4, baseline=baseline)
        found = CoreLearning(model, game, settings)
        found.run(200)
        assert least <= read(model, game, episodes=300)["zsct"] <= most


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"baseline": "mean"}, "baseline"),
        ({"discount": 2}, "discount must be .* at most 1"),
        ({"value_weight": -1}, "value_weight"),
        ({"discount": 0.5}, "later rewards"),
    ],
)
def test_settings_that_are_not_accepted_raise_errors(given: dict[str, Any], why: str) -> None:
    with pytest.raises(IcyError, match=why):
        DealtLearningSettings(**given)
