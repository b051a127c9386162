"""Learning of listeners with a core: exact resumption, values equal hand-computed ones, and listeners learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from icy.core.errors import IcyError
from icy.s2b import GameSettings, evaluate
from icy.s2b.agents.memories.dealt_learning import DealtLearning, DealtLearningSettings, read
from icy.s2b.agents.networks.listener import CoreLearning, CoreLearningSettings, CoreListener, SupervisedCoreSettings
from icy.s2b.agents.networks.network import NetworkSettings
from icy.s2b.game import REWARDS
from tests.helpers import mark_others

SMALL: dict[str, Any] = {"updates": 4, "episodes": 8, "minibatch": 4}
NETWORK = NetworkSettings.preset("near32", head="policy", core="LSTM", options={"sizes": (16,)})


def learning(own: bool = False, **given: Any) -> CoreLearning:
    torch.manual_seed(3)
    game = GameSettings(most=2)
    model = CoreListener(game, NETWORK, own)
    return CoreLearning(model, game, CoreLearningSettings(**{**SMALL, **given}), seed=7)


@pytest.mark.parametrize(("distractors", "entropy"), [(0, 0.01), (3, 0.1)])
def test_default_settings_depend_on_the_game(distractors: int, entropy: float) -> None:
    game = GameSettings(most=2, distractors=distractors)
    assert CoreLearning(CoreListener(game, NETWORK), game).settings == CoreLearningSettings(entropy=entropy)
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
        games = plain._batches[0][0]
        one, other = plain._sample(games), cores._sample(games)
        assert torch.equal(one.drawn[games.there], other.drawn[games.there])
        assert torch.allclose(one.log[games.there], other.log[games.there], atol=1e-6)


@pytest.mark.parametrize("own", [False, True])
def test_values_are_learned_and_subtracted_from_returns(own: bool) -> None:
    found = learning(own, baseline="value", entropy=0.0, discount=0.5, trace=1.0)
    games = found._batches[0][0]
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


def test_supervised_settings_have_their_own_defaults() -> None:
    made = SupervisedCoreSettings(updates=7)
    assert (made.learner, made.updates, made.episodes, made.minibatch) == ("supervised", 7, 16, 16)
    with pytest.raises(IcyError, match="updates"):
        SupervisedCoreSettings(updates=0)


@pytest.mark.stress
@pytest.mark.parametrize("baseline", ["phase", "value"])
def test_recurrent_ppo_learns_an_easy_game_and_a_deaf_core_does_not(baseline: str) -> None:
    """Tokens are not permuted here, so a core only has to learn fixed meanings."""
    game = GameSettings(most=2, permutation=False)
    for deaf, least, most in ((False, 0.8, 1.0), (True, 0.4, 0.6)):
        torch.manual_seed(1)
        model = CoreListener(game, replace(NETWORK, deaf=deaf, options={"sizes": (64,)}), own=baseline == "value")
        settings = CoreLearningSettings(updates=200, episodes=32, epochs=4, baseline=baseline)
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
        CoreLearningSettings(**given)
