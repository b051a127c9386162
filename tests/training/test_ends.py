"""Training on messages of different lengths, and senders that are restricted to the vocabulary."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import icy
from icy.config.settings import TrainingSettings, settings_for
from icy.core.errors import IncompatibleError, UnknownNameError
from icy.core.noise import Noise
from icy.core.representations import get_representation
from icy.core.representations.samples import UNCOUNTED, counted
from icy.experiments.e2e import pair_jobs
from icy.experiments.plan import make_plan
from icy.experiments.probe import probe_jobs
from icy.languages.meanings import MeaningSpace
from icy.training.engine import Probes
from icy.training.language_job import LanguageJob
from icy.training.learners import accuracy, supervised_loss
from icy.training.lockstep import Lockstep
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest, ProbeSettings
from icy.training.task_models import make_model
from tests.cores import needs_native
from tests.helpers import mark_others
from tests.training.helpers import job, outcomes

# -- training on messages of different lengths: what follows the end token does not count ------------------------------


REPRESENTATIONS = ("soft", "gumb", "discr")
END = 2  # with two tokens
TARGETS = torch.tensor([[0, 1, END, END], [END] * 4, [1, 0, 0, 1]])  # 3 + 1 + 4 positions count
NOISE = Noise(torch.tensor(7))


def ending(model: str, replicates: list[tuple[str, int]], **changes: Any) -> LanguageJob:
    """A job with words of 1 or 2 tokens."""
    return job(model, replicates, protocol="acquire", word_lengths="1-2", **changes)


def test_the_first_end_token_counts() -> None:
    assert counted(TARGETS, END).sum(-1).tolist() == [3, 1, 4]


def test_the_loss_by_hand() -> None:
    scores = torch.zeros(3, 4, 3)
    scores[0, 0, 0] = 1.0  # the first token of the first message is likely
    scores[0, 3, 0] = 50.0  # after the end
    expected = (7 * math.log(3) - math.log(math.e / (math.e + 2))) / 8
    assert get_representation("soft").ended_loss(scores, TARGETS).item() == pytest.approx(expected)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_what_follows_the_end_has_no_effect_and_no_gradient(name: str) -> None:
    loss = supervised_loss(get_representation(name), "sender", ends=True)
    scores = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
    changed = scores.detach() + 9.0 * ~counted(TARGETS, END)[..., None] * torch.tensor([1.0, 0.0, 0.0])
    assert torch.equal(loss(scores, TARGETS, NOISE), loss(changed, TARGETS, NOISE))
    (gradient,) = torch.autograd.grad(loss(scores, TARGETS, NOISE).sum(), scores)
    counts = counted(TARGETS, END)
    assert not gradient[~counts].any()
    assert gradient[counts].any()


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_without_ends_it_is_the_plain_loss(name: str) -> None:
    representation = get_representation(name)
    scores = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(1))
    targets = torch.tensor([[0, 1, 0, END], [1, 1, 1, 1], [1, 0, 0, 1]])
    found = (supervised_loss(representation, "sender", ends)(scores, targets, NOISE) for ends in (True, False))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(("name", "options"), [("qt", {}), ("gs", {}), ("cb", {}), ("soft", {"symbols": "V"})])
def test_senders_that_do_not_emit_the_start_symbol_cannot_end(name: str, options: dict[str, str]) -> None:
    representation = get_representation(name, **options)
    with pytest.raises(IncompatibleError, match="cannot end messages"):
        supervised_loss(representation, "sender", ends=True)
    assert supervised_loss(representation, "receiver", ends=True) == representation.receiver_loss


def test_accuracy_is_over_positions_that_count() -> None:
    class Always:
        def right(self, inputs: Tensor, targets: Tensor, which: Any = None) -> Tensor:
            return (targets == 0).flatten(1).sum(1)

    targets = torch.tensor([[[0, 1, UNCOUNTED]], [[0, UNCOUNTED, UNCOUNTED]]])
    assert accuracy(Always(), targets, targets).tolist() == [0.5, 1.0]  # type: ignore[arg-type]


@needs_native
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_native_code_computes_the_same(representation: str) -> None:
    found = []
    for engine in ("native", "broadcast"):
        of = ending("sender/FC2L", [("concat", 1), ("rot", 2)], representation=representation, engine=engine)
        course = Probes(replace(of, baselines={1: 1, 2: 1}))
        Lockstep(course).advance(5)
        assert course.learner.engine == engine
        found.append((course.learner.losses(), course._read("check", 64), *course.learner.weights(1).values()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(torch.as_tensor(one).double(), torch.as_tensor(other).double(), atol=1e-5, rtol=1e-5)


def test_alone_equals_in_a_stack() -> None:
    replicates = [(grammar, seed) for seed in (1, 2) for grammar in ("concat", "perm")]
    together = outcomes(ending("sender/FC2L", replicates))
    alone = outcomes(ending("sender/FC2L", [("concat", 2), ("perm", 2)]))
    for key, one in alone.items():
        assert (one.accuracy, one.curve, one.steps) == (
            together[key].accuracy,
            together[key].curve,
            together[key].steps,
        )


# -- senders that are restricted to the vocabulary, and keys of results that are not -----------------------------------


SIZES: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1}
SENDERS = [
    (name, representation)
    for name in ("FC2L", "RNNAutoReg:GRU", "RNNSampling:GRU", "HierSampling:RNN", "TransDecSampling", "Transformer")
    for representation in (["discr"] if "Sampling" in name else ["soft", "gumb", "discr"])
]
IN_DEFAULT = [("FC2L", "soft"), ("RNNAutoReg:GRU", "gumb"), ("RNNSampling:GRU", "discr"), ("Transformer", "soft")]


@pytest.mark.parametrize(("name", "representation"), mark_others("slow", SENDERS, lambda case: case in IN_DEFAULT))
def test_the_start_symbol_is_not_used_and_training_is_finite(name: str, representation: str) -> None:
    space, settings = MeaningSpace(2, 3), TrainingSettings(symbols="V")
    task = ProbeSettings.of_model(f"sender/{name}", space, 2, 2, 8, representation)
    model = make_model(task, 1, settings)
    with torch.no_grad():
        for parameter in model.parameters():  # so that the start symbol would be said
            if parameter.shape[-1:] == (3,):
                parameter[..., -1] += 9.0
    meanings = torch.tensor(space.meanings(range(9)))
    for training in (True, False):
        scores = model.train(training)(meanings)
        assert (scores[..., -1] == -torch.inf).all()
        assert torch.isfinite(scores[..., :-1]).all()
        assert (scores.argmax(-1) < 2).all()


def test_losses_are_finite_and_give_gradients() -> None:
    scores = torch.randn(5, 4, 3).masked_fill(torch.arange(3) == 2, -torch.inf).requires_grad_()
    for name in ("soft", "gumb", "discr"):
        representation = get_representation(name, symbols="V")
        noise = Noise(torch.tensor(7))
        loss = representation.sender_loss(scores, torch.randint(0, 2, (5, 4)), noise)
        (gradient,) = torch.autograd.grad(loss.sum(), scores)
        assert torch.isfinite(loss).all()
        assert torch.isfinite(gradient).all()
        assert (gradient[..., -1] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("representation", ["soft", "gumb", "discr"])
def test_a_language_of_one_token(tmp_path: Path, representation: str) -> None:
    """With a vocabulary of one token every message is the same, unless senders can say the start symbol."""
    given: dict[str, Any] = {**SIZES, "vocab_size": 1, "steps": 3, "workers": 1, "representation": representation}
    restricted = icy.end_to_end("RNNAutoReg:GRU", "RNN1L:GRU", symbols="V", out=tmp_path / "a", progress=False, **given)
    assert restricted.language().messages.max() == 0
    assert restricted.to_dataframe()["settings"][0] == "symbols=V"
    assert "agents can say the V tokens, but not the start symbol" in restricted.table()
    usual = icy.end_to_end("RNNAutoReg:GRU", "RNN1L:GRU", out=tmp_path / "b", progress=False, **given)
    assert "agents can say 2 symbols: 1 tokens and the start symbol (number 1); --symbols V excludes" in usual.table()


@pytest.mark.slow
@needs_native
@pytest.mark.parametrize("name", ["FC2L", "RNNAutoReg:GRU", "Composed[embedding=onehot]"])
def test_native_cores_train_it_as_pytorch_does_under_soft(tmp_path: Path, name: str) -> None:
    given: dict[str, Any] = {**SIZES, "workers": 1, "progress": False, "symbols": "V"}
    short = {**given, "max_updates": 60, "settings": {"check_every": 5}}
    by_native, by_pytorch = (
        icy.probe(f"sender/{name}", "perm", protocol="acquire", out=tmp_path / engine, engine=engine, **short).records
        for engine in ("native", "broadcast")
    )
    assert [r["engine"] for r in by_native] == ["native"] * 2
    assert [[p[1] for p in r["curve"]] for r in by_native] == [
        pytest.approx([p[1] for p in r["curve"]], abs=0.002) for r in by_pytorch
    ]
    with pytest.raises(IncompatibleError, match=r"its sender excludes the start symbol \(symbols=V\)"):
        icy.probe(f"sender/{name}", "perm", out=tmp_path, representation="gumb", engine="native", **given)


def test_keys_of_other_runs_stay() -> None:
    (usual,) = pair_jobs(EndToEndRequest.asked(sender="FC2L", receiver="FC1L", **SIZES))
    (named,) = pair_jobs(EndToEndRequest.asked(sender="FC2L", receiver="FC1L", symbols="V+1", **SIZES))
    (other,) = pair_jobs(EndToEndRequest.asked(sender="FC2L", receiver="FC1L", symbols="V", **SIZES))
    (same,) = pair_jobs(EndToEndRequest.asked(sender="FC2L", receiver="FC1L", settings={"symbols": "V"}, **SIZES))
    keys = [job.key(job.replicates[0]) for job in (usual, named, other, same)]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert "symbols" not in usual.config(usual.replicates[0])["settings"]
    asked = [ProbeRequest.asked(model="sender/FC2L", symbols=s, grammar="perm", **SIZES) for s in (None, "V+1", "V")]
    probes = [probe_jobs(spec)[0] for spec in asked]
    keys = [job.key(job.replicates[0]) for job in probes]
    assert keys[0] == keys[1] != keys[2]


def test_other_values_raise() -> None:
    with pytest.raises(UnknownNameError, match="V\\+1, V"):
        settings_for("default", symbols="4")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "sender/FC2L", "representation": "gs", "symbols": "V"}, "does nothing in a probe under 'gs'"),
        ({"model": "receiver/FC2L", "symbols": "V"}, "does nothing in receivers"),
        ({"model": "sender/FC2L", "symbols": "V"}, ""),
        ({"model": "sender/FC2L", "symbols": "V+1"}, ""),
    ],
)
def test_settings_without_effect_warn(
    given: dict[str, Any], said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_plan(ProbeRequest.asked(**given, grammar="perm", out=tmp_path, **SIZES))
    assert said in caplog.text
    assert ("does nothing" in caplog.text) is bool(said)
