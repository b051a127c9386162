"""Training on messages of different lengths: what follows the end token does not count."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from icy.config.protocols import get_protocol
from icy.core.errors import IncompatibleError
from icy.core.noise import Noise
from icy.core.representations import get_representation
from icy.core.representations.samples import UNCOUNTED, counted
from icy.training.engine import Run, train
from icy.training.learners import accuracy, supervised_loss
from icy.training.probe_job import ProbeJob
from tests.cores import needs_native
from tests.training.helpers import job, outcomes
from tests.training.resuming import killed, numbers, resumed

REPRESENTATIONS = ("soft", "gumb", "discr")
END = 2  # with two tokens
TARGETS = torch.tensor([[0, 1, END, END], [END] * 4, [1, 0, 0, 1]])  # 3 + 1 + 4 positions count
NOISE = Noise(torch.tensor(7))


def ending(model: str, replicates: list[tuple[str, int]], representation: str = "soft", **changes: Any) -> ProbeJob:
    """A job with words of 1 or 2 tokens."""
    of = job(model, replicates, protocol=get_protocol("acquire"), **changes)
    return replace(of, task=replace(of.task, word_lengths="1-2", representation=representation))


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
        run = Run(replace(of, baselines={1: 1, 2: 1}))
        run.rehearse(5)
        assert run.learner.engine == engine
        found.append((run.learner.losses(), run._read("check", 64), *run.learner.weights(1).values()))
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


def test_a_killed_training_resumes_to_the_same_bits(tmp_path: Path) -> None:
    of = ending("sender/FC2L", [("concat", 1), ("rot", 1)], keep_models=True, folder=str(tmp_path))
    ended = killed(of, Run, 7)
    whole = train(replace(of, folder=str(tmp_path / "whole")))
    assert numbers(resumed(of, ended)) == numbers(list(whole))
