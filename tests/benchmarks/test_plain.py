"""The ordinary modules that icy's speed is compared with."""

from __future__ import annotations

import pytest

import icy
from benchmarks import plain, speed, transformer
from benchmarks.courses import make_job

pytestmark = pytest.mark.slow

WITHOUT_EFFECT = 2 * 3 * 128  # biases of queries, keys and values after a layer norm with a bias of its own, two layers


@pytest.mark.parametrize("name", speed.PROBES)
def test_a_plain_model_has_icys_parameters_and_only_others_without_effect(name: str) -> None:
    side, _, short = name.partition("/")
    ours = (icy.create_sender if side == "sender" else icy.create_receiver)(short, "3x4", 12)
    made = plain.make(name, icy.make_language("rot", "3x4"))
    extra = sum(p.numel() for p in made.parameters()) - ours.parameter_count("true")
    assert 0 <= extra <= max(ours.inert_parameters(), WITHOUT_EFFECT if short == "Transformer" else 0)


@pytest.mark.parametrize("name", speed.PROBES)
def test_a_plain_model_learns(name: str) -> None:
    training = plain.Training(name, icy.make_language("concat", "2x3"), 0)
    before = {key: value.clone() for key, value in training.model.state_dict().items()}
    training.update()
    buffers = {key for key, _ in training.model.named_buffers()}
    moved = [key for key, value in training.model.state_dict().items() if not value.equal(before[key])]
    unmoved = set(before) - set(moved) - buffers
    # What multiplies zeros (the input of a cell without one) or a constant of all keys cannot move.
    assert moved
    assert all(key.split(".")[-1].startswith(("weight_ih", "in_proj")) for key in unmoved), unmoved


def test_it_is_evaluated_where_asked() -> None:
    readings = plain.train("sender/FC2L", icy.make_language("concat", "2x3"), 0, 60, {1: 64, 60: 512})
    assert len(readings) == 2
    assert readings[1] > readings[0]


def test_the_transformer_benchmark_trains_a_plain_model() -> None:
    transformer.plain_update(1, "cpu")()


@pytest.mark.parametrize("name", [*speed.PAIRS[:2], *speed.GAMES[2:], *speed.PUBLISHED[1:], *speed.AGENTS])
def test_a_plain_pair_game_or_learner_learns(name: str) -> None:
    training = plain.make_training(name, 0)
    optimizer = training.optimizer
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    before = [weight.detach().clone() for weight in weights]
    training.update()
    moved = [not weight.equal(was) for weight, was in zip(weights, before, strict=True)]
    assert all(moved)


NONE = 128 + 1  # weights of the option "none", which the environment does not have


@pytest.mark.parametrize(("name", "fewer"), list(zip(speed.AGENTS, (NONE, 0), strict=True)))
def test_a_plain_learner_has_icys_parameters(name: str, fewer: int) -> None:
    learner, core = name.split("/")[1:]
    (ours,) = make_job("s2b", learner=learner, core=core, seeds=[1]).settings.training(1).networks().values()
    groups = plain.make_training(name, 0).optimizer.param_groups
    assert sum(w.numel() for g in groups for w in g["params"]) == sum(w.numel() for w in ours.parameters()) - fewer
