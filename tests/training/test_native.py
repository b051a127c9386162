"""The learner of native cores: the numbers of PyTorch up to rounding, and the same bits in every stack."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import icy
from icy.config.settings import TrainingSettings
from icy.core.errors import IncompatibleError
from icy.core.representations import SOFT, Gumbel, Soft, get_representation
from icy.models.layers import Linear
from icy.training.gradient import GradientLearner
from icy.training.learners import Learner, accuracy, make_learner, supervised_loss
from icy.training.probe_settings import ProbeSettings
from icy.training.task_models import make_model
from tests.cores import needs_native
from tests.helpers import mark_others
from tests.training.helpers import CPU, SETTINGS, SPACE, Plain, assert_same_bits, weights
from tests.training.test_stack import NATIVE

pytestmark = needs_native

SEEDS = (1, 2, 3)
SIDES = ("sender/FC2L", "sender/HierZero:GRU", "receiver/RNN1L:LSTM", "receiver/CNN")
Batches = tuple[Tensor, Tensor, Tensor]


def task(model: str, representation: str = "soft") -> ProbeSettings:
    """A task with sizes that are not multiples of a vector's length."""
    return ProbeSettings.of_model(model, SPACE, 4, 2, 20, representation)


def batches(side: str, updates: int, replicates: int = 3, size: int = 70) -> Batches:
    """Inputs, targets and noise keys of some updates, [update, replicate, ...]."""
    made = torch.Generator().manual_seed(7)
    meanings = torch.randint(4, (updates, replicates, size, 3), generator=made)
    messages = torch.randint(4, (updates, replicates, size, 6), generator=made)
    keys = torch.randint(2**60, (updates, replicates), generator=made)
    return (meanings, messages, keys) if side == "sender" else (messages, meanings, keys)


def learner(
    of: ProbeSettings,
    how: str = "native",
    seeds: Sequence[int] = SEEDS,
    settings: TrainingSettings = SETTINGS,
    **options: Any,
) -> Learner:
    representation = get_representation(of.representation, **options)
    models = [make_model(of, seed, settings) for seed in seeds]
    sample = batches(of.side, 1, len(seeds), 2)[0][0]
    found = make_learner(models, seeds, supervised_loss(representation, of.side), settings, CPU, sample, how)
    assert found.engine == how
    return found


def some(data: Batches, updates: slice, places: Sequence[int]) -> Batches:
    inputs, targets, keys = (x[updates][:, list(places)] for x in data)
    return inputs, targets, keys


# -- PyTorch's numbers -------------------------------------------------------------------------------------------------

CASES: list[tuple[str, str, dict[str, Any]]] = [
    *(("soft", model, {}) for model in (*SIDES, "sender/RNNAutoReg:GRU", "sender/TransDecSoft", "receiver/Hier:SRU")),
    *(("gumb", model, {}) for model in (*SIDES, "sender/RNNAutoReg:GRU", "sender/HierAutoReg:dgsend")),
    ("gumb", "sender/FC2L", {"temperature": 0.5}),
    ("gumb", "receiver/RNN1L:GRU", {"least_squares": True}),
    *(("discr", model, {}) for model in (*SIDES, "sender/RNNSampling:GRU", "sender/TransDecSampling")),
    ("discr", "sender/FC2L", {"reward_weight": 0.5, "entropy_weight": 0.3}),
]


@pytest.mark.parametrize("clip", mark_others("native", [None, 0.05], bool), ids=["unclipped", "clipped"])
@pytest.mark.parametrize(
    ("representation", "model", "options"), mark_others("native", CASES, lambda case: case[1] in SIDES or case[2])
)
def test_ten_updates_equal_pytorchs(
    representation: str, model: str, options: dict[str, Any], clip: float | None
) -> None:
    settings = replace(SETTINGS, clip_norm=clip, learning_rate=1e-3)
    assert_ten_updates_equal_pytorchs(task(model, representation), settings, **options)


def assert_ten_updates_equal_pytorchs(of: ProbeSettings, settings: TrainingSettings, **options: Any) -> list[Learner]:
    native, pytorch = both = [learner(of, how, settings=settings, **options) for how in ("native", "broadcast")]
    before, data = weights(pytorch), batches(of.side, 10)
    for one in (native, pytorch):
        one.train(*data)
    expected = weights(pytorch)
    for name, found in weights(native).items():
        # Adam's first steps follow the sign of a gradient, which where it vanishes is that of a rounding.
        close = (found - expected[name]).abs() <= 1e-5
        assert close.double().mean() > 0.99, name
        assert (found - expected[name]).norm() <= 1e-4 * (expected[name] - before[name]).norm() + 1e-5, name
    assert any(not torch.equal(before[name], value) for name, value in expected.items())
    losses = native.losses(), pytorch.losses()
    assert losses[0] is not None
    assert losses[1] is not None
    torch.testing.assert_close(*losses, check_dtype=False, atol=1e-4, rtol=1e-4)
    return both


@pytest.mark.parametrize(
    "representation", mark_others("native", ["discr", "gumb", "soft"], lambda name: name == "discr")
)
@pytest.mark.parametrize("cell", mark_others("native", ["GRU", "RNN", "dgrecv"], lambda cell: cell == "GRU"))
def test_a_gate_that_a_batch_shares_equals_pytorchs(representation: str, cell: str) -> None:
    of = ProbeSettings.of_model(f"receiver/Hier:{cell}", SPACE, 4, 2, 20, representation, {"shared_gate": True})
    settings = replace(SETTINGS, learning_rate=1e-3, batch_size=70)
    native, pytorch = assert_ten_updates_equal_pytorchs(of, settings)
    inputs, targets, _ = (x[0] for x in batches("receiver", 1, size=130))  # in three chunks
    torch.testing.assert_close(native.scores(inputs), pytorch.scores(inputs), atol=1e-3, rtol=1e-3)
    assert torch.equal(native.right(inputs, targets), pytorch.right(inputs, targets))
    assert not torch.allclose(native.scores(inputs)[:, 1:], native.scores(inputs[:, 1:]))
    with pytest.raises(IncompatibleError, match=r"A batch has at most 96 examples here, not 97\."):
        native.train(*batches("receiver", 1, size=97))


def test_least_squares_leave_out_values_that_an_attribute_does_not_have() -> None:
    of = replace(task("receiver/RNN1L:GRU", "gumb"), meanings="4,2,3")
    inputs, meanings, keys = batches(of.side, 10)
    data = inputs, meanings % torch.tensor(of.space.sizes), keys
    native, pytorch = (learner(of, how, least_squares=True) for how in ("native", "broadcast"))
    for one in (native, pytorch):
        one.train(*data)
    losses = native.losses(), pytorch.losses()
    assert losses[0] is not None
    assert losses[0].max() < 1  # the penalty of a missing value would give 10^7
    torch.testing.assert_close(*losses, check_dtype=False, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("which", mark_others("native", [None, [2, 0]], bool))
@pytest.mark.parametrize(("representation", "model"), [(case[0], case[1]) for case in CASES[:-1] if not case[2]])
def test_scores_equal_pytorchs(representation: str, model: str, which: list[int] | None) -> None:
    of = task(model, representation)
    native, pytorch = (learner(of, how) for how in ("native", "broadcast"))
    inputs, targets, _ = (x[0] for x in batches(of.side, 1))
    if which is not None:
        inputs, targets = inputs[which], targets[which]
    torch.testing.assert_close(native.scores(inputs, which), pytorch.scores(inputs, which), atol=1e-5, rtol=1e-5)
    assert torch.equal(accuracy(native, inputs, targets, which), accuracy(pytorch, inputs, targets, which))


def test_accuracy_is_counted_as_scores_say() -> None:
    """If scores are equal, the first counts, as in argmax."""
    of = task("sender/FC2L")
    native = learner(of)
    inputs, targets, _ = (x[0] for x in batches("sender", 1))
    native._parameters.zero_()  # type: ignore[attr-defined]
    assert not native.scores(inputs).any()
    assert accuracy(native, inputs, targets).tolist() == (targets == 0).double().mean((1, 2)).tolist()


# -- the same bits in any company --------------------------------------------------------------------------------------

company = pytest.mark.parametrize(("representation", "model"), NATIVE)


def trained(of: ProbeSettings, places: Sequence[int], updates: int = 7) -> Learner:
    """Train some replicates of a stack of three without the others."""
    one = learner(of, seeds=[SEEDS[i] for i in places])
    one.train(*some(batches(of.side, updates), slice(None), places))
    return one


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@company
def test_threads_change_nothing(representation: str, model: str, threads: None) -> None:
    of, found = task(model, representation), []
    for count in (1, 2, 4):
        torch.set_num_threads(count)
        found.append(trained(of, [0, 1, 2]))
    inputs = batches(of.side, 1)[0][0]
    for other in found[1:]:
        assert torch.equal(other.scores(inputs), found[0].scores(inputs))
        for place in range(3):
            assert_same_bits(other, place, found[0], place)


@pytest.mark.native
@company
def test_cuts_of_a_block_change_nothing(representation: str, model: str) -> None:
    of, data = task(model, representation), batches(task(model).side, 7)
    whole, parts, single = (learner(of) for _ in range(3))
    whole.train(*data)
    for updates in (slice(3), slice(3, 7)):
        parts.train(*some(data, updates, range(3)))
    for update in range(7):
        single.update(*(x[update] for x in data))
    for other in (parts, single):
        for place in range(3):
            assert_same_bits(other, place, whole, place)


@company
def test_a_diverging_replicate_does_not_change_the_others(representation: str, model: str) -> None:
    of, data = task(model, representation), batches(task(model).side, 7)
    calm, broken = learner(of), learner(of)
    broken._parameters[1] = torch.nan  # type: ignore[attr-defined]
    for one in (calm, broken):
        one.train(*data)
    assert torch.isfinite(broken.losses()).tolist() == [True, False, True]  # type: ignore[arg-type]
    for place in (0, 2):
        assert_same_bits(broken, place, calm, place)


@pytest.mark.parametrize("value", [float("inf"), 1e30, 1e38])
def test_numbers_without_bound_are_seen(value: float) -> None:
    """The loss of native cores is finite where PyTorch's is finite."""
    of, data = task("sender/RNNAutoReg:GRU"), batches("sender", 3)
    found = []
    for how in ("native", "broadcast"):
        one = learner(of, how)
        views = one._parameters[1] if how == "native" else one._stack.flat  # type: ignore[attr-defined]
        if isinstance(one, GradientLearner):
            with torch.no_grad():
                one._stack.parameters["out.weight"][1].fill_(value)
        else:
            one._training.layout.views(views)["out.weight"].fill_(value)  # type: ignore[attr-defined]
        one.train(*data)
        found.append(torch.isfinite(one.losses()).tolist())  # type: ignore[arg-type]
    assert found[0] == found[1]


def test_a_run_that_diverges_ends_so(tmp_path: Any) -> None:
    result = icy.probe(
        "sender/FC2L", "perm", meanings="3x4", word_length=2, hidden=16, seeds=1, workers=1, out=tmp_path,
        settings={"learning_rate": 1e37}, engine="native",
    )  # fmt: skip
    assert {r["reason"] for r in result.records} <= {"diverged", "no_baseline"}
    assert any(r["reason"] == "diverged" for r in result.records)


# -- parameters that are not trained -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["sender/FC2L", "sender/HierZero:GRU"])
def test_frozen_parameters_stay(model: str) -> None:
    of, data = task(model), batches("sender", 6)
    frozen = {"sender/FC2L": "hidden.weight", "sender/HierZero:GRU": "stop.score.weight"}[model]
    found = []
    for how in ("native", "broadcast"):
        models = [make_model(of, seed, SETTINGS) for seed in SEEDS]
        for one in models:
            one.get_parameter(frozen).requires_grad_(False)
        found.append(make_learner(models, SEEDS, SOFT.sender_loss, SETTINGS, CPU, data[0][0][:, :2], how))
    native, pytorch = found
    before = weights(native)
    for one in found:
        one.train(*some(data, slice(3), range(3)))
        one.keep([2, 1])
        one.train(*some(data, slice(3, 6), [2, 1]))
    after, expected = weights(native), weights(pytorch)
    assert torch.equal(after[frozen], before[frozen][[2, 1]])
    for name, value in after.items():
        assert (name == frozen) == torch.equal(value, before[name][[2, 1]])
        torch.testing.assert_close(value, expected[name], atol=1e-4, rtol=0)


def test_the_weights_of_a_place_are_a_copy() -> None:
    native = learner(task("sender/FC2L"))
    taken = native.weights(1)
    before = {name: value.clone() for name, value in taken.items()}
    native.train(*batches("sender", 2))
    assert all(torch.equal(before[name], value) for name, value in taken.items())
    make_model(task("sender/FC2L"), 9, SETTINGS).load_state_dict(taken)


@pytest.mark.parametrize("kind", [torch.int32, torch.uint8])
def test_tokens_of_any_size_are_read(kind: torch.dtype) -> None:
    inputs, targets, keys = batches("sender", 3)
    found, expected = learner(task("sender/FC2L")), learner(task("sender/FC2L"))
    found.train(inputs.to(kind), targets.to(kind), keys)
    expected.train(inputs, targets, keys)
    assert_same_bits(found, 1, expected, 1)
    reading = found.right(inputs[0].to(kind), targets[0].to(torch.int32))
    assert torch.equal(reading, expected.right(inputs[0], targets[0]))


def test_a_model_in_double_precision_is_trained_in_single_as_by_pytorch() -> None:
    model, (inputs, targets, keys) = Stranger().double(), batches("sender", 3, 1)
    found, expected = ask(model), ask(model, "broadcast")
    for one in (found, expected):
        one.train(inputs, targets, keys)
    for name, value in expected.weights(0).items():
        torch.testing.assert_close(found.weights(0)[name], value, rtol=1e-4, atol=1e-6)


# -- refused models ----------------------------------------------------------------------------------------------------


class Stranger(Plain):
    """A sender of icy's layers, with a module between them that native cores may not support."""

    broadcasts = True

    def __init__(self, between: Any = nn.Identity) -> None:
        super().__init__(SPACE, 6, 4, 16, between)
        self.hidden, self.out = Linear(12, 16), Linear(16, 30)


def fft(x: Tensor) -> Tensor:
    return torch.fft.fft(x).real


def branch(x: Tensor) -> Tensor:
    return x if x.sum() > 0 else -x


class Two(Stranger):
    def forward(self, meanings: Tensor) -> Any:
        scores = super().forward(meanings)
        return scores, scores


class Flat(Stranger):
    def forward(self, meanings: Tensor) -> Tensor:
        return super().forward(meanings).flatten(-2)


class Mode(Stranger):
    """A module that calls another function in evaluation mode; native cores do not support this function."""

    def forward(self, meanings: Tensor) -> Tensor:
        scores = super().forward(meanings)
        return scores if self.training else scores.flip(-1)


class Plainly(Stranger):
    broadcasts = False


class Taught(Stranger):
    teacher_forcing = True


REFUSED: list[tuple[Any, str]] = [
    (lambda: Stranger(lambda: nn.Dropout(0.5)), "it draws its own random numbers"),
    (lambda: Stranger(lambda: fft), r"it calls .*fft"),
    (lambda: Stranger(lambda: nn.BatchNorm1d(16)), "the model has buffers"),
    (lambda: Stranger(lambda: branch), r"it reads numbers \(__bool__\)"),
    (Two, "it has several outputs"),
    (Flat, "its scores have no axis of places"),
    (Mode, "it calls .*flip"),
    (Plainly, "the model does not set `broadcasts = True`"),
    (Taught, "the model uses teacher forcing"),
]


def ask(model: nn.Module, engine: str = "native", loss: Any = SOFT.sender_loss, device: torch.device = CPU) -> Learner:
    sample = torch.zeros(1, 2, 3, dtype=torch.long)
    return make_learner([model], [1], loss, SETTINGS, device, sample, engine)


def test_a_stranger_may_be_taken(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "icy.training.learners"):
        assert ask(Stranger(), "auto").engine == "native"
    assert "Stranger: replicates train by the engine 'native', which supports all operations of the" in caplog.text


@pytest.mark.parametrize(("make", "why"), REFUSED)
def test_unsupported_models_are_refused_with_a_reason(make: Any, why: str) -> None:
    with pytest.raises(
        IncompatibleError, match=rf"^The engine 'native' cannot run \w+ \({why}.*\); choose another, or"
    ):
        ask(make())


@pytest.mark.parametrize(("make", "why"), [REFUSED[i] for i in (0, 1, 7)])
def test_auto_takes_another_engine_and_says_why(make: Any, why: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "icy.training.learners"):
        found = ask(make(), "auto")
    assert found.engine in ("broadcast", "vmap", "loop")
    assert isinstance(found, GradientLearner)
    (said,) = (r for r in caplog.records if "the engine 'native' is not used" in r.message)
    assert said.levelno == logging.INFO
    assert re.search(why, said.message)


class Sharper(Soft):
    """A representation that is not icy's."""

    def sender_loss(self, scores: Tensor, messages: Tensor, noise: Any = None) -> Tensor:
        return super().sender_loss(scores * 2, messages)


@pytest.mark.parametrize(
    "loss",
    [
        Sharper().sender_loss,
        SOFT.pair_loss,
        Gumbel().message,
        lambda scores, targets, noise: SOFT.sender_loss(scores, targets),
    ],
)
def test_a_strangers_loss_is_refused(loss: Any) -> None:
    with pytest.raises(IncompatibleError, match=r"\(the engine does not support the loss\)"):
        ask(Stranger(), loss=loss)
    assert ask(Stranger(), "auto", loss).engine == "broadcast"


CHANNELS = ("gs", "qt", "cb")


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_receiver_of_a_channel_is_one_under_soft_to_the_bit(channel: str) -> None:
    data = batches("receiver", 2)
    both = [learner(task("receiver/RNN1L:GRU", name)) for name in ("soft", channel)]
    for one in both:
        one.train(*data)
    assert torch.equal(*(one.scores(data[0][0]) for one in both))


LOSS = "the engine does not support the loss"


@pytest.mark.parametrize(
    ("channel", "sender", "why"),
    [
        *((channel, "FC2L", LOSS) for channel in CHANNELS),
        *((channel, "RNNAutoReg:GRU", LOSS) for channel in ("gs", "qt")),
        ("cb", "RNNAutoReg:GRU", "it calls emitted_unit"),
    ],
)
def test_senders_of_a_channel_train_by_pytorch(
    channel: str, sender: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    of = task(f"sender/{sender}", channel)
    with caplog.at_level(logging.INFO, "icy.training.learners"):
        loss = supervised_loss(get_representation(channel), "sender")
        assert ask(make_model(of, 1, SETTINGS), "auto", loss).engine == "broadcast"
    assert f"the engine 'native' is not used ({why}" in caplog.text


def test_a_device_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="the engine runs on the CPU only"):
        ask(Stranger(), device=torch.device("meta"))


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICY_NATIVE", "off")
    with pytest.raises(IncompatibleError, match=r"FC2L \(switched off by ICY_NATIVE=off\)"):
        ask(make_model(task("sender/FC2L"), 1, SETTINGS))
    assert ask(make_model(task("sender/FC2L"), 1, SETTINGS), "auto").engine == "broadcast"


def test_a_wrong_program_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong operation changes the scores. icy notices this because it compares scores."""
    monkeypatch.setattr("icy.models.native.lower_cells.ACTIVATIONS", {"identity": 0, "tanh": 0, "relu": 2})
    with pytest.raises(IncompatibleError, match="its traced program gives other scores"):
        ask(Stranger())


# -- variants ----------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, torch
from tests.training.test_native import batches, learner, task
for model in ("sender/HierAutoReg:SRU", "sender/TransDecSoft", "receiver/CNN", "receiver/RNN1L:LSTM"):
    one = learner(task(model))
    data = batches(task(model).side, 5)
    one.train(*data)
    print(one.scores(data[0][0]).double().flatten()[::7].tolist())
"""


@pytest.mark.native
def test_variants_give_the_same_scores() -> None:
    """The slowest variant, which runs on any processor, and the fastest variant on this processor."""
    root = str(Path(__file__).resolve().parents[2])

    def scores(**settings: str) -> Tensor:
        environment = {k: v for k, v in os.environ.items() if k != "ICY_NATIVE"} | settings | {"PYTHONPATH": root}
        words = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(words, env=environment, cwd=root, capture_output=True, text=True, timeout=900, check=True)
        return torch.cat([torch.tensor(json.loads(line)) for line in done.stdout.splitlines()])

    torch.testing.assert_close(scores(ICY_NATIVE="baseline"), scores(), atol=1e-4, rtol=1e-4)
