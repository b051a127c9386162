"""The checks of models: each fails for a model that is wrong in the way it looks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from icy import testing
from icy.languages.meanings import MeaningSpace
from icy.models.base import MemoryModel, Receiver
from icy.models.layers import flat_one_hot, linear
from icy.testing import CONTRACTS, checks_of
from tests.cores import FASTEST
from tests.testing.helpers import Plain, PlainReceiver
from tests.testing.mistakes import Change, changed, shared_mistakes


class OneLength(Plain):
    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__(space, 6, vocab_size, hidden_size)


class OneSpace(Plain):
    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__(MeaningSpace(3, 4), message_length, vocab_size, hidden_size)


class Unseeded(Plain):
    def __init__(self, *sizes: Any) -> None:
        super().__init__(*sizes)
        nn.init.uniform_(self.out.bias, generator=torch.Generator().manual_seed(np.random.randint(2**31)))


class SharesWeights(Plain):
    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
        return self


class FalselyBroadcasts(Plain):
    """Takes stacked parameters without complaint, and uses the first model's for all of them."""

    broadcasts = True

    def forward(self, meanings: Tensor) -> Tensor:
        weight, bias = self.hidden.weight, self.hidden.bias
        if weight.dim() == 2:
            return super().forward(meanings)
        one_hot = flat_one_hot(meanings, self.values, weight.dtype)
        hidden = nn.functional.linear(one_hot, weight[0], bias[0]).tanh()
        scores: Tensor = nn.functional.linear(hidden, self.out.weight[0], self.out.bias[0]).unflatten(-1, self.shape)
        return scores


class FalselyBroadcastsOnly(FalselyBroadcasts):
    """The same of layers that native cores take, where each model is alone."""

    def forward(self, meanings: Tensor) -> Tensor:
        weights = [self.hidden.weight, self.hidden.bias, self.out.weight, self.out.bias]
        first, shift, second, last = (w[0] if self.hidden.weight.dim() == 3 else w for w in weights)
        hidden = linear(flat_one_hot(meanings, self.values, first.dtype), first, shift).tanh()
        scores: Tensor = linear(hidden, second, last).unflatten(-1, self.shape)
        return scores


class CountsUpdates(Plain):
    """Scales its scores by a number that is neither a parameter nor a buffer."""

    updates = 0

    def forward(self, meanings: Tensor) -> Tensor:
        self.updates += self.training
        return super().forward(meanings) * (1 + self.updates)


class Miscounts(Plain):
    def parameter_count(self, convention: str = "true") -> int:
        return 7


CHANGES: dict[str, Change] = {
    "output_shape": lambda model, given, scores: scores[..., :-1],
    "batch_of_one": lambda model, given, scores: scores.squeeze(0),
    "finite_output": lambda model, given, scores: scores / 0,
    "scores_not_probabilities": lambda model, given, scores: scores.softmax(-1),
    "deterministic": lambda model, given, scores: scores + torch.randn_like(scores),
    "random_state_untouched": lambda model, given, scores: scores + torch.randn_like(scores),
    # A wrong gradient, as after a sign slip in a hand-written backward pass:
    "learns": lambda model, given, scores: scores.detach() * 2 - scores,
    # Messages that cannot end:
    "messages_that_end": lambda model, given, scores: torch.cat([scores[..., :-1], scores[..., -1:] * 0 - 1e4], -1),
}


@pytest.mark.contract
@pytest.mark.parametrize(
    ("model", "check"),
    [
        (OneLength, "message_lengths"),
        (OneSpace, "other_spaces"),
        (Unseeded, "same_seed_same_weights"),
        (Unseeded, "random_state_untouched"),
        (SharesWeights, "deepcopy"),
        (FalselyBroadcasts, "stacked_equals_separate"),
        (FalselyBroadcastsOnly, "stacked_equals_separate"),
        (CountsUpdates, "goes_on"),
        (Miscounts, "parameter_count"),
        *((changed(Plain, change), check) for check, change in CHANGES.items()),
        *((model, check) for check, model in shared_mistakes(Plain, "sender").items()),
    ],
)
def test_a_wrong_model_is_found_out(model: Callable[..., nn.Module], check: str) -> None:
    results = {r.name: r for r in testing.check(model, "sender", raise_on_failure=False)}
    assert not results[check].passed
    assert "cannot be made" not in results[check].message


class ReadsNoEnds(PlainReceiver):
    """Fails if a message has the end token."""

    def forward(self, message: Tensor) -> Tensor:
        if not message.is_floating_point() and (message == self.embed.num_embeddings - 1).any():
            raise ValueError("the last token is not known")
        return super().forward(message)


class DeclaresNoEnds(ReadsNoEnds):
    takes_ends = False


@pytest.mark.contract
def test_a_model_that_declares_that_it_takes_no_ends_is_excused() -> None:
    found = [
        next(r for r in testing.check(model, "receiver", raise_on_failure=False) if r.name == "messages_that_end")
        for model in (PlainReceiver, ReadsNoEnds, DeclaresNoEnds)
    ]
    assert found[0].passed
    assert not found[1].passed
    assert "the last token is not known" in found[1].message
    assert "takes_ends = False" in found[2].message


class ReadsTokensOtherwise(PlainReceiver):
    def forward(self, message: Tensor) -> Tensor:
        if not message.is_floating_point():
            return super().forward(message)
        scores: Tensor = self.out((message @ self.embed.weight * 2).flatten(1)).unflatten(-1, self.shape)
        return scores


class RefusesDarkly(PlainReceiver):
    def forward(self, message: Tensor) -> Tensor:
        scores: Tensor = self.out(self.embed(message).flatten(1)).unflatten(-1, self.shape)
        return scores


class Forgets(Receiver, MemoryModel):
    def observe(self, inputs: Tensor, targets: Tensor) -> None: ...

    def forward(self, message: Tensor) -> Tensor:
        return torch.zeros(len(message), self.space.attributes, self.space.values, device=message.device)


@pytest.mark.parametrize(
    ("model", "check"),
    [(ReadsTokensOtherwise, "soft_messages"), (RefusesDarkly, "soft_messages"), (Forgets, "learns")],
)
def test_a_wrong_receiver_is_found_out(model: Callable[..., nn.Module], check: str) -> None:
    results = testing.check(model, "receiver", raise_on_failure=False)
    assert [r.name for r in results if not r.passed] == [check]


def test_plain_modules_pass() -> None:
    for model, side in ((Plain, "sender"), (PlainReceiver, "receiver")):
        results = {r.name: r for r in testing.check(model, side)}
        assert set(results) == set(checks_of(CONTRACTS[side]))
        assert results["stacked_equals_separate"].message == "trains as: vmap"
        assert results["made_by_name"].excused
    assert "tokens only" in results["soft_messages"].message


def test_a_model_of_icys_layers_is_trained_in_every_way_that_it_can_be() -> None:
    results = {r.name: r for r in testing.check("sender/FC2L")}
    ways = ["broadcast"] if FASTEST == "broadcast" else [FASTEST, "broadcast"]
    assert results["stacked_equals_separate"].message == f"trains as: {' and '.join(ways)}"


@pytest.mark.contract
def test_published_defects_are_found_out() -> None:
    results = testing.check("Hier:GRU", options={"shared_gate": True}, raise_on_failure=False)
    assert [r.name for r in results if not r.passed] == ["examples_independent"]
