"""The ordinary modules that icy's speed is compared with."""

from __future__ import annotations

import pytest

import icy
from benchmarks import plain, speed, transformer

pytestmark = pytest.mark.slow

WITHOUT_EFFECT = 2 * 3 * 128  # biases of queries, keys and values after a layer norm with a bias of its own, two layers


@pytest.mark.parametrize("name", speed.ROWS)
def test_a_plain_model_has_icys_parameters_and_only_others_without_effect(name: str) -> None:
    side, _, short = name.partition("/")
    ours = (icy.create_sender if side == "sender" else icy.create_receiver)(short, "3x4", 12)
    made = plain.make(name, icy.make_language("rot", "3x4"))
    extra = sum(p.numel() for p in made.parameters()) - ours.parameter_count("true")
    assert 0 <= extra <= max(ours.inert_parameters(), WITHOUT_EFFECT if short == "Transformer" else 0)


@pytest.mark.parametrize("name", speed.ROWS)
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
