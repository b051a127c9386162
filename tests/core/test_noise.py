"""Noise: the definition of the generator, independence of keys and indices, and the distribution of samples."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from icy.core import noise as noise_module
from icy.core.noise import Noise, counter_hash, current_noise, drawing_from, shift
from icy.core.streams import stream_key

ANY = st.integers(-(2**63), 2**63 - 1)

ALL_BITS = 2**64 - 1


def key(number: int) -> Noise:
    return Noise(torch.tensor(number))


def splitmix64(state: int) -> int:
    """The published finalizer, on unsigned integers."""
    z = state & ALL_BITS
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & ALL_BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & ALL_BITS
    return z ^ (z >> 31)


def unsigned(x: Tensor) -> int:
    return int(x.item()) & ALL_BITS


# -- the generator -----------------------------------------------------------------------------------------------------


def test_the_hash_is_the_published_splitmix64() -> None:
    found = counter_hash(torch.tensor(1234567), torch.arange(1, 6))
    published = [
        *(6457827717110365317, 3203168211198807973, 9817491932198370423),
        *(4593380528125082431, 16408922859458223821),
    ]
    assert [unsigned(x) for x in found] == published


@settings(deadline=None, max_examples=50)
@given(ANY, ANY)
def test_the_hash_wraps_as_unsigned_integers_do(a_key: int, counter: int) -> None:
    found = counter_hash(torch.tensor(a_key), torch.tensor(counter))
    assert unsigned(found) == splitmix64(a_key + counter * 0x9E3779B97F4A7C15)


@settings(deadline=None, max_examples=50)
@given(ANY, st.integers(1, 63))
def test_shift_fills_with_zeros(x: int, bits: int) -> None:
    assert shift(torch.tensor(x), bits).item() == (x & ALL_BITS) >> bits


# -- indices -----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(ANY, st.integers(1, 5), st.integers(1, 6), st.integers(1, 6))
def test_noise_of_a_step_equals_its_part_of_all_steps(a_key: int, batch: int, steps: int, choices: int) -> None:
    like = torch.zeros(batch, steps, choices)
    together = key(a_key).gumbels(like)
    assert together.shape == like.shape
    for t in range(steps):
        assert torch.equal(key(a_key).gumbel(like[:, t], t), together[:, t])


@settings(deadline=None, max_examples=25)
@given(st.lists(ANY, min_size=1, max_size=4), st.integers(0, 3))
def test_noise_of_a_stack_equals_noise_of_single_keys(keys: list[int], step: int) -> None:
    stack, like = Noise(torch.tensor(keys)), torch.zeros(len(keys), 3, 4, 2)
    for i, alone in enumerate(map(key, keys)):
        assert torch.equal(stack.gumbels(like)[i], alone.gumbels(like[i]))
        assert torch.equal(stack.gumbel(like[:, :, 0], step)[i], alone.gumbel(like[i, :, 0], step))
        assert torch.equal(stack.stream(1).gumbels(like)[i], alone.stream(1).gumbels(like[i]))


def test_keys_streams_steps_and_examples_have_independent_noise() -> None:
    like = torch.zeros(50, 20, 5)
    sources = [key(1), key(2), key(1).stream(0), key(1).stream(1), key(1).stream(1).stream(1)]
    drawn = [source.gumbels(like).flatten() for source in sources]
    for i, a in enumerate(drawn):
        for b in drawn[:i]:
            assert abs(torch.corrcoef(torch.stack([a, b]))[0, 1]) < 4 / math.sqrt(like.numel())
    assert len(drawn[0].unique()) > 0.999 * like.numel()  # all different, up to collisions of 23 bits


def test_noise_has_the_dtype_of_the_scores() -> None:
    like = torch.zeros(3, 2, 4, dtype=torch.float64)
    assert key(0).gumbels(like).dtype == key(0).gumbel(like[:, 0], 0).dtype == torch.float64
    assert key(0).gumbel(like[:, 0], 0, torch.float32).dtype == torch.float32
    torch.testing.assert_close(key(0).gumbels(like).float(), key(0).gumbels(like.float()))


@pytest.mark.parametrize(("bits", "uniform"), [(0, 2.0**-24), (-1, 1 - 2.0**-24)])
def test_extreme_noise_is_finite(bits: int, uniform: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_module, "counter_hash", lambda key, place: torch.full_like(key + place, bits))
    found = key(0).gumbel(torch.zeros(1, 1), 0).item()
    assert found == pytest.approx(-math.log(-math.log(uniform)), rel=1e-5)


# -- the distribution --------------------------------------------------------------------------------------------------


def test_noise_is_gumbel_distributed() -> None:
    drawn = key(7).gumbels(torch.zeros(400, 50, 10)).double().flatten()
    mean, variance, error = 0.5772156649, math.pi**2 / 6, 1 / math.sqrt(drawn.numel())
    assert drawn.mean().item() == pytest.approx(mean, abs=4 * error * math.sqrt(variance))
    assert drawn.var().item() == pytest.approx(variance, abs=4 * error * variance * math.sqrt(4.4))  # kurtosis 5.4
    for at in (-1.0, 0.0, 1.0, 3.0):
        below = math.exp(-math.exp(-at))
        assert (drawn < at).double().mean().item() == pytest.approx(below, abs=4 * error * 0.5)


@pytest.mark.parametrize("step", [0, 3])
def test_argmax_with_noise_samples_from_the_softmax(step: int) -> None:
    scores, draws = torch.tensor([2.0, 0.0, -1.0, 1.0, -4.0]), 40_000
    chosen = (scores + key(11).gumbel(scores.expand(draws, -1), step)).argmax(-1)
    shares = chosen.bincount(minlength=5) / draws
    expected = scores.softmax(-1)
    error = (expected * (1 - expected) / draws).sqrt()
    assert ((shares - expected).abs() < 4 * error).all()


# -- current noise -----------------------------------------------------------------------------------------------------


def test_blocks_nest_and_end() -> None:
    outer, inner, cpu = key(1), key(2), torch.device("cpu")
    with drawing_from(outer):
        with drawing_from(inner):
            assert current_noise(cpu) is inner
        assert current_noise(cpu) is outer
        with pytest.raises(ZeroDivisionError), drawing_from(inner):
            raise ZeroDivisionError
        assert current_noise(cpu) is outer


def test_noise_outside_of_blocks_is_from_the_global_generator() -> None:
    torch.manual_seed(3)
    first, second = (current_noise(torch.device("cpu")).keys for _ in range(2))
    torch.manual_seed(3)
    with drawing_from(None):
        assert torch.equal(current_noise(torch.device("cpu")).keys, first)
    assert not torch.equal(first, second)


# -- initial weights and draws -----------------------------------------------------------------------------------------


def test_counter_hash_is_splitmix64() -> None:
    golden = 0x9E3779B97F4A7C15
    keys, counters = [0, 1, 1_234_567, 2**63 - 1, stream_key(3, "y")], [0, 1, 2, 3, 4, 5, 10**9, 2**40 + 7]
    found = counter_hash(torch.tensor(keys)[:, None], torch.tensor(counters)).tolist()
    expected = [[splitmix64(key + counter * golden) for counter in counters] for key in keys]
    assert [[value % 2**64 for value in row] for row in found] == expected
    # The published first outputs for the seed 1234567.
    assert expected[2][1:4] == [6457827717110365317, 3203168211198807973, 9817491932198370423]
