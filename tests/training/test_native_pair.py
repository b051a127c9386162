"""The learner of pairs in compiled code: the numbers of PyTorch up to rounding, and the same bits in every stack."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from icy.config.protocols import SCRATCH
from icy.config.settings import TrainingSettings
from icy.core.errors import IncompatibleError
from icy.core.representations import REPRESENTATIONS, SOFT, Codebook, Soft
from icy.training.gradient import GradientLearner
from icy.training.job import Replicate
from icy.training.learners import Learner, make_learner
from icy.training.lockstep import Lockstep
from icy.training.native import NativePairLearner
from icy.training.pair_game import PairGame, _Tally, new_players
from icy.training.pair_settings import EndToEndSettings
from icy.training.task_models import Pair, make_pair
from icy.training.task_models import link_of as representation_of
from tests.cores import needs_native
from tests.helpers import mark_others
from tests.training.helpers import CPU, SETTINGS, SPACE, assert_same_bits, weights
from tests.training.pairs.helpers import pair_job, pair_task

pytestmark = needs_native

SEEDS = (1, 2, 3)
BATCH = 70  # rows in two chunks
Batches = tuple[Tensor, Tensor, Tensor]


def task(sender: str, receiver: str, representation: str) -> EndToEndSettings:
    """A task with sizes that are not multiples of a vector's length."""
    return pair_task(sender, receiver, representation, meanings=str(SPACE), hidden=20)


def batches(updates: int, replicates: int = 3) -> Batches:
    """Meanings, the same meanings as targets, and noise keys of some updates, [update, replicate, ...]."""
    made = torch.Generator().manual_seed(7)
    meanings = torch.randint(4, (updates, replicates, BATCH, 3), generator=made)
    return meanings, meanings, torch.randint(2**60, (updates, replicates), generator=made)


def some(data: Batches, updates: slice, places: Sequence[int]) -> Batches:
    meanings, targets, keys = (x[updates][:, list(places)] for x in data)
    return meanings, targets, keys


def learner(
    of: EndToEndSettings,
    how: str = "native",
    seeds: Sequence[int] = SEEDS,
    settings: TrainingSettings = SETTINGS,
    taught: bool = False,
) -> tuple[Any, _Tally]:
    pairs = [make_pair(of, seed, settings, taught) for seed in seeds]
    tally = _Tally(representation_of(of, settings), len(seeds))
    found = make_learner(pairs, seeds, tally, settings, CPU, batches(1, len(seeds))[0][0], how)
    assert isinstance(found, NativePairLearner if how == "native" else GradientLearner)
    assert found.engine == how
    return found, tally


# -- PyTorch's numbers -------------------------------------------------------------------------------------------------

ALL = tuple(REPRESENTATIONS)
CASES: list[tuple[str, str, str, dict[str, Any], bool]] = [
    *((link, "FC2L", "FC2L", {}, False) for link in ALL),
    *((link, "HierZero:GRU", "Hier:GRU", {}, False) for link in ALL),
    ("soft", "RNNAutoReg:GRU", "RNN1L:LSTM", {}, False),
    ("gumb", "RNNAutoReg:LSTM", "CNN", {}, False),
    ("soft", "TransDecSoft", "Transformer", {}, False),
    ("discr", "RNNSampling:GRU", "RNN2L:dgrecv", {}, False),
    ("gumb", "FC2L", "FC2L", {"temperature": 0.5}, False),
    ("discr", "FC2L", "FC2L", {"reward_weight": 0.5, "entropy_weight": 0.3}, False),
    ("gs", "FC2L", "FC2L", {"tau": 0.7, "straight_through": True}, False),
    ("qt", "FC2L", "FC2L", {"levels": 3}, False),
    ("cb", "FC2L", "FC2L", {"codes": 7, "commitment": 0.5}, False),
    ("cb", "FC2L", "FC2L", {"codes": 7}, True),
    ("gs", "RNNAutoReg:GRU", "RNN1L:LSTM", {}, False),
    ("gs", "TransDecSoft", "CNN", {"straight_through": True}, False),
    ("qt", "HierAutoReg:LSTM", "Hier:GRU", {"levels": 3}, False),
    ("cb", "RNNAutoReg:LSTM", "RNN1L:GRU", {"codes": 7}, False),
]
cases = pytest.mark.parametrize(
    ("link", "sender", "receiver", "options", "taught"),
    mark_others("native", CASES, lambda case: case[1] == "FC2L" and not case[3]),
)


def settings_of(options: dict[str, Any], **more: Any) -> TrainingSettings:
    return replace(SETTINGS, learning_rate=1e-3, **options, **more)


@cases
def test_gradients_equal_pytorchs(link: str, sender: str, receiver: str, options: dict[str, Any], taught: bool) -> None:
    """Adam's first moments after one update are a tenth of the gradients."""
    of, settings = task(sender, receiver, link), settings_of(options, clip_norm=None)
    (native, _), (pytorch, _) = (learner(of, how, settings=settings, taught=taught) for how in ("native", "broadcast"))
    for one in (native, pytorch):
        one.train(*batches(1))
    torch.testing.assert_close(native.losses(), pytorch.losses(), check_dtype=False, atol=1e-5, rtol=1e-5)
    for place in range(3):
        expected = pytorch.state(place)["moments"]["exp_avg"]
        found = native.state(place)["moments"][0]
        assert found.keys() == expected.keys()
        for name, value in found.items():
            assert (value - expected[name]).norm() <= 1e-5 * expected[name].norm() + 1e-8, name


@pytest.mark.parametrize("clip", mark_others("native", [0.05, None], lambda clip: clip is not None))
@cases
def test_ten_updates_equal_pytorchs(
    link: str, sender: str, receiver: str, options: dict[str, Any], taught: bool, clip: float | None
) -> None:
    assert_ten_updates_equal_pytorchs(task(sender, receiver, link), settings_of(options, clip_norm=clip), taught)


@pytest.mark.parametrize("link", mark_others("native", ("gumb", "soft", "discr"), lambda link: link == "gumb"))
def test_a_gate_that_a_batch_shares_equals_pytorchs(link: str) -> None:
    of = replace(task("HierZero:RNN", "Hier:RNN", link), receiver_options={"shared_gate": True})
    assert_ten_updates_equal_pytorchs(of, settings_of({}, batch_size=BATCH))


def assert_ten_updates_equal_pytorchs(of: EndToEndSettings, settings: TrainingSettings, taught: bool = False) -> None:
    (native, _), (pytorch, _) = (learner(of, how, settings=settings, taught=taught) for how in ("native", "broadcast"))
    before, data = weights(pytorch), batches(10)
    for one in (native, pytorch):
        one.train(*data)
    expected = weights(pytorch)
    for name, found in weights(native).items():
        assert (found - expected[name]).norm() <= 1e-4 * (expected[name] - before[name]).norm() + 1e-5, name
    meanings, messages = data[0][0], torch.arange(3 * BATCH * 6).view(3, BATCH, 6) % 4
    for a, b in zip(native.run(meanings, messages), pytorch.run(meanings, messages), strict=True):
        torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)
    assert len(native.run(meanings)) == 2


@pytest.mark.parametrize("link", mark_others("native", [n for n in ALL if n != "cb"], lambda n: n in ("gumb", "discr")))
def test_readings_of_training_batches_equal_pytorchs(link: str) -> None:
    of, settings = task("FC2L", "FC2L", link), settings_of({}, training_readings=True)
    found = [learner(of, how, settings=settings) for how in ("native", "broadcast")]
    for one, tally in found:
        for updates in (slice(0, 3), slice(3, 5)):
            one.train(*some(batches(5), updates, range(3)))
            tally.updates += updates.stop - updates.start
    tallies = [tally for _, tally in found]
    torch.testing.assert_close(tallies[0].accuracy(), tallies[1].accuracy(), atol=1e-6, rtol=0)
    assert torch.equal(tallies[0].meanings, tallies[1].meanings)
    assert (tallies[0].messages == tallies[1].messages).double().mean() > 0.99


# -- the same bits in any company --------------------------------------------------------------------------------------

COMPANY = [
    *((link, "FC2L", "FC2L") for link in ALL),
    ("soft", "HierZero:GRU", "Hier:GRU"),
    ("discr", "RNNSampling:GRU", "CNN"),
]
company = pytest.mark.parametrize(
    ("link", "sender", "receiver"), mark_others("native", COMPANY, lambda case: case[:2] in (("gumb", "FC2L"),))
)


def trained(of: EndToEndSettings, places: Sequence[int], updates: int = 7) -> Learner:
    """Train some pairs of a stack of three without the others."""
    one, _ = learner(of, seeds=[SEEDS[i] for i in places])
    one.train(*some(batches(updates), slice(None), places))
    return cast(Learner, one)


@company
def test_a_pair_alone_is_the_one_in_any_stack(link: str, sender: str, receiver: str) -> None:
    of, meanings = task(sender, receiver, link), batches(1)[0][0]
    whole: Any = trained(of, [0, 1, 2])
    for places in ([0], [1], [2, 0]):
        part: Any = trained(of, places)
        for at, place in enumerate(places):
            assert_same_bits(part, at, whole, place)
            for a, b in zip(part.run(meanings[list(places)]), whole.run(meanings), strict=True):
                assert torch.equal(a[at], b[place])


@company
def test_cuts_resuming_and_those_that_leave_change_nothing(link: str, sender: str, receiver: str) -> None:
    of, data = task(sender, receiver, link), batches(7)
    (whole, _), (part, _), (single, _) = (learner(of) for _ in range(3))
    whole.train(*data)
    for update in range(7):
        single.update(*(x[update] for x in data))
    part.train(*some(data, slice(3), range(3)))
    other, _ = learner(of, seeds=(4, 5, 6))
    other.resume([part.state(place) for place in range(3)])
    other.keep([2, 0])
    other.train(*some(data, slice(3, 7), [2, 0]))
    for at, place in enumerate([2, 0]):
        assert_same_bits(other, at, whole, place)
        assert_same_bits(single, place, whole, place)
    assert torch.equal(other.losses(), whole.losses()[[2, 0]])


def test_a_state_of_another_engine_is_refused() -> None:
    of = task("FC2L", "FC2L", "soft")
    (native, _), (pytorch, _) = learner(of), learner(of, "broadcast")
    for one, other in ((native, pytorch), (pytorch, native)):
        with pytest.raises(IncompatibleError, match="another engine saved it"):
            one.resume([other.state(place) for place in range(3)])


@pytest.mark.parametrize("link", mark_others("native", ALL, lambda link: link == "gumb"))
def test_a_diverging_pair_does_not_change_the_others(link: str) -> None:
    of, data = task("FC2L", "FC2L", link), batches(3)
    (calm, _), (broken, _) = learner(of), learner(of)
    broken._layout.views(broken._parameters)["sender.out.bias"][1] = torch.nan
    for one in (calm, broken):
        one.train(*data)
    assert torch.isfinite(broken.losses()).tolist() == [True, False, True]
    for place in (0, 2):
        assert_same_bits(broken, place, calm, place)


@pytest.mark.parametrize("link", mark_others("native", ("soft", "gumb", "discr"), lambda link: link == "soft"))
@pytest.mark.parametrize("how", ["native", "broadcast"])
def test_frozen_parameters_stay(link: str, how: str) -> None:
    of = task("FC2L", "FC2L", link)
    pairs = [make_pair(of, seed, SETTINGS) for seed in SEEDS]
    for pair in pairs:
        pair.receiver.get_parameter("embed.weight").requires_grad_(False)
    found = make_learner(pairs, SEEDS, _Tally(representation_of(of, SETTINGS), 3), SETTINGS, CPU, batches(1)[0][0], how)
    before = weights(found)
    found.train(*batches(3))
    for name, value in weights(found).items():
        assert torch.equal(value, before[name]) == (name == "receiver.embed.weight"), name


# -- games -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", mark_others("native", ["soft", "gumb", "discr"], lambda link: link == "gumb"))
def test_games_give_the_same_readings_with_both_engines(link: str, tmp_path: Path) -> None:
    readings = []
    for how in ("native", "broadcast"):
        of, replicates = pair_task("FC2L", "FC2L", link), [Replicate(SCRATCH, seed) for seed in SEEDS]
        job = pair_job(tmp_path, replicates, of, engine=how)
        game = PairGame(job, [new_players(job, replicate) for replicate in replicates])
        Lockstep(game).advance(30)
        assert isinstance(game.learner, NativePairLearner) == (how == "native")
        readings.append(torch.tensor([row[:4] for row in game._read("check")]))
    torch.testing.assert_close(*readings, atol=0.02, rtol=1e-2)


# -- what compiled code does not support -------------------------------------------------------------------------------


class Sharper(Soft):
    """A representation that is not icy's."""


class Shared(nn.Module):
    """A side that shares a parameter of another side."""

    def __init__(self, own: nn.Module, other: nn.Module) -> None:
        super().__init__()
        self.own, self.other = own, other

    def forward(self, inputs: Tensor) -> Tensor:
        scores: Tensor = self.own(inputs)
        return scores


def changed(**changes: Any) -> Pair:
    """A pair with other parts."""
    pair = make_pair(task("FC2L", "FC2L", "soft"), 1, SETTINGS)
    for name, value in changes.items():
        setattr(pair, name, value)
    return pair


def ask(pair: Pair, representation: Any = SOFT, settings: TrainingSettings = SETTINGS) -> Learner:
    return make_learner([pair], [1], _Tally(representation, 1), settings, CPU, batches(1, 1)[0][0], "native")


def test_what_is_not_supported_runs_in_part_by_pytorch(caplog: pytest.LogCaptureFixture) -> None:
    """With native cores for both sides, and a reason."""
    batch = replace(SETTINGS, normalise="batch")
    readings = replace(SETTINGS, training_readings=True)
    shared = changed()
    shared.receiver = Shared(shared.receiver, shared.sender)
    asked: list[tuple[Pair, Any, TrainingSettings, str]] = [
        (
            make_pair(task("FC2L", "FC2L", "qt"), 1, batch),
            representation_of(task("FC2L", "FC2L", "qt"), batch),
            batch,
            "representation qt",
        ),
        (
            make_pair(task("FC2L", "FC2L", "cb"), 1, readings),
            Codebook(),
            readings,
            "representation of training readings",
        ),
        (changed(link=Sharper()), Sharper(), SETTINGS, "representation soft"),
        (changed(), Sharper(), SETTINGS, "does not support the loss"),
        (shared, SOFT, SETTINGS, "its sides share parameters"),
        (changed(), SOFT, replace(SETTINGS, optimizer="sgd"), "the optimizer sgd"),
    ]
    for pair, representation, settings, why in asked:
        with caplog.at_level(logging.INFO, "icy.training.learners"):
            caplog.clear()
            found = ask(pair, representation, settings)
        assert isinstance(found, GradientLearner), why
        assert found.engine == "native"
        assert why in caplog.text
        found.train(*batches(1, 1))


def test_a_side_that_no_core_supports_is_refused() -> None:
    class Strange(nn.Module):
        def forward(self, meanings: Tensor) -> Tensor:
            return torch.fft.fft(own(meanings)).real

    own = make_pair(task("FC2L", "FC2L", "soft"), 1, SETTINGS).sender
    strange = Strange()
    strange.own = own
    with pytest.raises(IncompatibleError, match=r"The engine 'native' cannot run FC2L\+FC2L \(it calls .*fft"):
        ask(changed(sender=strange))


def test_other_meanings_are_refused() -> None:
    found, _ = learner(task("FC2L", "FC2L", "soft"))
    meanings, _, keys = batches(1)
    for wrong, why in (
        (meanings + 9, "Tokens must be"),
        (meanings[:, :2], "parameters"),
        (meanings[..., :2], "inputs"),
    ):
        with pytest.raises(IncompatibleError, match=why):
            found.train(wrong, wrong, keys)
