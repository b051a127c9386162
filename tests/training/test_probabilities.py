"""A model that outputs probabilities instead of scores causes one warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import icy
from icy.core.entry import Entry
from icy.core.registry import registry
from icy.training.learners import are_probabilities
from tests.testing.helpers import Plain, PlainReceiver


class Softmax(Plain):
    def forward(self, meanings: Tensor) -> Tensor:
        return super().forward(meanings).softmax(-1)


class SoftmaxReceiver(PlainReceiver):
    def forward(self, message: Tensor) -> Tensor:
        return super().forward(message.argmax(-1) if message.is_floating_point() else message).softmax(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_softmax_is_recognised(dtype: torch.dtype) -> None:
    scores = torch.randn(8, 3, 5, generator=torch.Generator().manual_seed(1), dtype=dtype)
    assert are_probabilities(scores.softmax(-1))
    assert are_probabilities(torch.nn.functional.one_hot(scores.argmax(-1), 5).to(dtype))
    assert not are_probabilities(scores)
    assert not are_probabilities(scores.log_softmax(-1))
    assert not are_probabilities(scores.sigmoid())
    assert not are_probabilities(scores / scores.sum(-1, keepdim=True))  # sums of 1, but not all from 0 to 1
    spoilt = scores.softmax(-1)
    spoilt[0, 0, 0] += 0.01
    assert not are_probabilities(spoilt)  # one row is enough


def test_sizes_without_a_choice_are_no_probabilities() -> None:
    assert not are_probabilities(torch.ones(3, 2, 1))
    assert not are_probabilities(torch.ones(0, 2, 4))


@pytest.mark.slow
def test_a_probe_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"meanings": "2x3", "quick": True, "cap": 20, "workers": 1, "out": tmp_path}
    with registry.holding(Entry("sender", "Softmax", Softmax, "", "")):
        icy.probe(["sender/Softmax", "sender/FC1L"], "rot", hidden=[4, 8], **options)
    (warning,) = (r.getMessage() for r in caplog.records if "probabilities" in r.getMessage())
    assert warning.startswith("sender/Softmax outputs probabilities (each row sums to 1). It should output scores")


@pytest.mark.slow
def test_a_pair_warns_of_each_side(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        registry.holding(Entry("sender", "SoftmaxToo", Softmax, "", "")),
        registry.holding(Entry("receiver", "SoftmaxToo", SoftmaxReceiver, "", "")),
    ):
        icy.end_to_end("SoftmaxToo", "SoftmaxToo", meanings="2x3", quick=True, cap=20, workers=1, out=tmp_path)
    warned = [r.getMessage().partition(" outputs")[0] for r in caplog.records if "probabilities" in r.getMessage()]
    assert sorted(warned) == ["receiver/SoftmaxToo", "sender/SoftmaxToo"]
