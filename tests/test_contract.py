"""The contract over the whole registry: every check of icy.testing on every model and grammar, and the checks' own
teeth: each one fails for a model or grammar that is wrong in the way it looks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.registry import Entry, registry
from icy.core.representations import REPRESENTATIONS
from icy.grammars import Corruption
from icy.languages.meanings import MeaningSpace
from icy.models.base import MemoryModel, Receiver, Sender
from icy.models.layers import Linear, flat_one_hot
from icy.testing import (
    GRAMMAR_CHECKS,
    MODEL_CHECKS,
    BoundCheck,
    ContractError,
    bound_checks,
    check_grammar,
    check_model,
    parametrize_with_checks,
)

torch.set_num_threads(1)


# A representation changes what a sender is fed back, which its family does and not its cell, and the loss. So where a
# model is checked in a second one, gradients are looked at for every model, and the rest tried with one cell a family.
# What neither touches (shapes, copies, counts) is left to the first; all of it in all of them runs as `-m slow`.
IN_EVERY_REPRESENTATION = "gradients_reach_parameters"
WITH_ONE_CELL = {
    *("keep", "learns", "stacked_equals_separate", "deterministic", "random_state_untouched", "batch_of_one"),
    *("examples_independent", "pickles", "deepcopy"),
}
ONE_CELL = ("", "GRU")
# Learning takes longest, and hangs on the family more than on the cell: of every run of the tests one cell a family.
LONG = "learns"


def contract() -> list[Any]:
    """Every check of everything registered; those that take long, of most cells, as `-m slow`."""
    found = []
    for parameter in parametrize_with_checks("all").mark.args[1]:
        check: BoundCheck = parameter.values[0]
        slow = check.name == LONG and check.label.partition(":")[2] not in ONE_CELL
        marks = [*parameter.marks, *([pytest.mark.slow] if slow else [])]
        found.append(pytest.param(check, id=parameter.id, marks=marks))
    return found


@pytest.mark.parametrize("check", contract())
def test_contract(check: BoundCheck) -> None:
    check()


MODELS = ["sender/*", "receiver/*"]
FURTHER = [  # models and the representations beyond the one that test_contract checks them in
    (entry, name)
    for entry in registry.entries("sender", "receiver")
    for name in REPRESENTATIONS
    if entry.works_with(name) and name != (entry.representations or ("soft",))[0]
]


def in_further_representations() -> list[Any]:
    """Of the checks in a second and third representation, those that every run of the tests makes."""
    wanted = {(entry.qualified, name) for entry, name in FURTHER}
    found = []
    for name in REPRESENTATIONS:
        for parameter in parametrize_with_checks(MODELS, representation=name).mark.args[1]:
            check: BoundCheck = parameter.values[0]
            with_one = check.name in WITH_ONE_CELL and check.label.partition(":")[2] in ONE_CELL
            if (check.label, name) in wanted and (check.name == IN_EVERY_REPRESENTATION or with_one):
                found.append(pytest.param(check, id=f"{name}-{parameter.id}", marks=parameter.marks))
    return found


@pytest.mark.parametrize("check", in_further_representations())
def test_contract_in_further_representations(check: BoundCheck) -> None:
    check()


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "name"), [pytest.param(e, n, id=f"{n}-{e.qualified}") for e, n in FURTHER])
def test_the_whole_contract_in_further_representations(entry: Entry, name: str) -> None:
    check_model(entry, representation=name)


def test_the_whole_registry_is_checked() -> None:
    labels = {check.label for check in bound_checks("all")}
    assert labels == {entry.qualified for entry in registry.entries("sender", "receiver", "grammar")}
    assert {"sender/HierZero:GRU", "receiver/kNN", "grammar/shufdet"} <= labels


def test_the_whole_registry_is_checked_in_every_representation() -> None:
    checked = [(check.label, check.case.task.representation) for check in bound_checks(MODELS)]  # type: ignore[union-attr]
    for parameter in in_further_representations():
        (check,) = parameter.values
        checked.append((check.label, check.case.task.representation))
    assert set(checked) == {
        (entry.qualified, name)
        for entry in registry.entries("sender", "receiver")
        for name in REPRESENTATIONS
        if entry.works_with(name)
    }
    assert {name for label, name in checked if label == "sender/RNNSampling:LSTM"} == {"discr"}
    assert {name for label, name in checked if label == "receiver/RNN2L:SRU"} == {"soft", "gumb", "discr"}
    assert (WITH_ONE_CELL | {IN_EVERY_REPRESENTATION}) <= set(MODEL_CHECKS)


def test_every_check_says_what_it_proves() -> None:
    for function in (*MODEL_CHECKS.values(), *GRAMMAR_CHECKS.values()):
        assert (function.__doc__ or "").rstrip().endswith(".")


# -- wrong models, each in one way -----------------------------------------------------------------------------------


class Plain(nn.Module):
    """A sender as a stranger would write it: a plain module that knows nothing of icy."""

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.values, self.shape = space.values, (message_length, vocab_size + 1)
        self.hidden = nn.Linear(space.attributes * space.values, hidden_size)
        self.out = nn.Linear(hidden_size, message_length * (vocab_size + 1))

    def forward(self, meanings: Tensor) -> Tensor:
        one_hot = flat_one_hot(meanings, self.values, self.out.weight.dtype)
        scores: Tensor = self.out(self.hidden(one_hot).tanh()).unflatten(-1, self.shape)
        return scores


class PlainReceiver(nn.Module):
    """A receiver as a stranger would write it, with the library's embedding."""

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.shape = (space.attributes, space.values)
        self.embed = nn.Embedding(vocab_size + 1, hidden_size)
        self.out = nn.Linear(message_length * hidden_size, space.attributes * space.values)

    def forward(self, message: Tensor) -> Tensor:
        if message.is_floating_point():
            raise IncompatibleError("PlainReceiver takes tokens only.")
        scores: Tensor = self.out(self.embed(message).flatten(1)).unflatten(-1, self.shape)
        return scores


class WrongShape(Plain):
    def forward(self, meanings: Tensor) -> Tensor:
        return super().forward(meanings)[..., :-1]


class Squeezes(Plain):
    def forward(self, meanings: Tensor) -> Tensor:
        return super().forward(meanings).squeeze(0)


class OneLength(Plain):
    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__(space, 6, vocab_size, hidden_size)


class OneSpace(Plain):
    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__(MeaningSpace(3, 4), message_length, vocab_size, hidden_size)


class Infinite(Plain):
    def forward(self, meanings: Tensor) -> Tensor:
        return super().forward(meanings) / 0


class Unseeded(Plain):
    def __init__(self, *sizes: Any) -> None:
        super().__init__(*sizes)
        nn.init.uniform_(self.out.bias, generator=torch.Generator().manual_seed(np.random.randint(2**31)))


class SameWeights(Plain):
    def __init__(self, *sizes: Any) -> None:
        super().__init__(*sizes)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)


class Noisy(Plain):
    def forward(self, meanings: Tensor) -> Tensor:
        scores = super().forward(meanings)
        return scores + torch.randn_like(scores)


class WritesInput(Plain):
    def forward(self, meanings: Tensor) -> Tensor:
        scores = super().forward(meanings)
        meanings.clamp_(max=0)
        return scores


class Mixes(Plain):
    def forward(self, meanings: Tensor) -> Tensor:
        scores = super().forward(meanings)
        return scores - scores.mean(0)


class Unused(Plain):
    def __init__(self, *sizes: Any) -> None:
        super().__init__(*sizes)
        self.spare = nn.Linear(2, 2)


class Unpicklable(Plain):
    def __init__(self, *sizes: Any) -> None:
        super().__init__(*sizes)
        self.generator = (i for i in range(3))


class SharesWeights(Plain):
    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
        return self


class Single(Plain):
    def forward(self, meanings: Tensor) -> Tensor:
        return super().forward(meanings).float()


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


class Miscounts(Plain):
    def parameter_count(self, convention: str = "true") -> int:
        return 7


class Constant(Plain):
    """Its weights have a gradient, but the wrong one, as after a sign slip in a hand-written backward pass."""

    def forward(self, meanings: Tensor) -> Tensor:
        scores = super().forward(meanings)
        return scores.detach() * 2 - scores


@pytest.mark.parametrize(
    ("model", "check"),
    [
        (WrongShape, "output_shape"),
        (Squeezes, "batch_of_one"),
        (OneLength, "message_lengths"),
        (OneSpace, "other_spaces"),
        (Infinite, "finite_output"),
        (Unseeded, "same_seed_same_weights"),
        (Unseeded, "random_state_untouched"),
        (SameWeights, "different_seeds_differ"),
        (Noisy, "deterministic"),
        (Noisy, "random_state_untouched"),
        (WritesInput, "inputs_unchanged"),
        (Mixes, "examples_independent"),
        (Unused, "gradients_reach_parameters"),
        (Unpicklable, "pickles"),
        (SharesWeights, "deepcopy"),
        (Single, "float64"),
        (FalselyBroadcasts, "stacked_equals_separate"),
        (Miscounts, "parameter_count"),
        (Constant, "learns"),
    ],
)
def test_a_wrong_model_is_found_out(model: Callable[..., nn.Module], check: str) -> None:
    results = {r.name: r for r in check_model(model, "sender", raise_on_failure=False)}
    assert not results[check].passed
    assert results[check].message


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
        return torch.zeros(len(message), self.space.attributes, self.space.values)


@pytest.mark.parametrize(
    ("model", "check"),
    [(ReadsTokensOtherwise, "tokens_are_one_hot_weights"), (RefusesDarkly, "soft_messages"), (Forgets, "learns")],
)
def test_a_wrong_receiver_is_found_out(model: Callable[..., nn.Module], check: str) -> None:
    results = check_model(model, "receiver", raise_on_failure=False)
    assert [r.name for r in results if not r.passed] == [check]


def test_plain_modules_pass() -> None:
    for model, side in ((Plain, "sender"), (PlainReceiver, "receiver")):
        results = {r.name: r for r in check_model(model, side)}
        assert set(results) == set(MODEL_CHECKS)
        assert results["stacked_equals_separate"].message == "trains as: vmap"
        assert results["made_by_name"].excused
    assert "tokens only" in results["soft_messages"].message


class Mine(Sender):
    """Knows its side."""

    broadcasts = True

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int, gain: int) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.out, self.gain = Linear(space.attributes * space.values, message_length * self.symbols), gain

    def forward(self, meanings: Tensor) -> Tensor:
        return self.shaped(self.out(self.gain * flat_one_hot(meanings, self.space.values, self.out.weight.dtype)))


def test_side_options_and_registration_are_found() -> None:
    assert all(r.passed for r in check_model(Mine, options={"gain": 2}))
    entry = Entry("sender", "mine", Mine, "", "", defaults={"gain": 1}, origin=__name__, aliases=("my_own",))
    with registry.holding(entry):
        results = {r.name: r for r in check_model(Mine)}
        assert not results["made_by_name"].excused
        check_model("my_own", options={"gain": 3})
    with pytest.raises(UnknownNameError):
        check_model("mine")
    with pytest.raises(InvalidSettingError, match="give side="):
        check_model(Plain)
    with pytest.raises(InvalidSettingError, match="not a side"):
        check_model(Plain, "speaker")
    with pytest.raises(UnknownNameError, match="sender/FC2L or receiver/FC2L"):
        check_model("FC2L")


def test_all_failures_are_reported_at_once() -> None:
    seen = []
    with pytest.raises(ContractError) as caught:
        check_model(Unused, "sender", report=seen.append)
    assert "sender/Unused fails 1 of" in str(caught.value)
    assert "gradients_reach_parameters: No gradient reaches spare.weight, spare.bias" in str(caught.value)
    assert seen == caught.value.results
    assert isinstance(caught.value, AssertionError)


def test_the_line_to_mend_is_named() -> None:
    class Broken(Plain):
        def forward(self, meanings: Tensor) -> Tensor:
            raise ZeroDivisionError("my own fault")

    results = {r.name: r for r in check_model(Broken, "sender", raise_on_failure=False)}
    assert results["output_shape"].message.startswith("ZeroDivisionError: my own fault (line ")
    assert "test_contract.py" in results["output_shape"].message


def test_expected_failures_are_declared_with_a_reason() -> None:
    reason = {"gradients_reach_parameters": "a spare layer, kept to match a published total"}
    for declared, model in ((reason, Unused), (None, type("Declares", (Unused,), {"expected_failures": reason}))):
        results = {r.name: r for r in check_model(model, "sender", expected_failures=declared)}
        result = results["gradients_reach_parameters"]
        assert result.passed
        assert result.excused
        assert "published total" in result.message
    results = {r.name: r for r in check_model(Plain, "sender", expected_failures=reason)}
    assert results["gradients_reach_parameters"].message.endswith("but it holds")
    with pytest.raises(UnknownNameError, match="did you mean pickles"):
        check_model(Plain, "sender", expected_failures={"pickle": "no such check"})


def test_published_defects_are_found_out() -> None:
    results = check_model("Hier:GRU", options={"shared_gate": True}, raise_on_failure=False)
    assert [r.name for r in results if not r.passed] == ["examples_independent"]


# -- wrong grammars ----------------------------------------------------------------------------------------------------


def global_draws(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.random.randint(vocab_size, size=(space.size, space.attributes * word_length))


def seedless(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.zeros((space.size, space.attributes * word_length), dtype=int)


def too_many_tokens(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return seedless(space, vocab_size, word_length, seed) + vocab_size


def too_long(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return seedless(space, vocab_size, word_length + 1, seed)


def one_space(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(vocab_size, size=(64, 6))


def divides(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(vocab_size, size=(space.size, space.attributes * word_length)) + 0 // (
        word_length - 1
    )


class InPlace(Corruption):
    """Writes into what it is given."""

    def apply(self, messages: Any, table: Any) -> Any:
        messages[:, 0] = 0
        return messages


class ForNobody(Corruption):
    """For neither side."""

    sides = ()

    def apply(self, messages: Any, table: Any) -> Any:
        return messages


@pytest.mark.parametrize(
    ("grammar", "check"),
    [
        (global_draws, "same_seed_same_language"),
        (global_draws, "random_state_untouched"),
        (seedless, "different_seeds_differ"),
        (too_many_tokens, "messages"),
        (too_long, "messages"),
        (one_space, "other_settings"),
        (divides, "small_vocabulary"),
        (InPlace, "base_messages_unchanged"),
        (ForNobody, "sides"),
    ],
)
def test_a_wrong_grammar_is_found_out(grammar: Callable[..., Any], check: str) -> None:
    results = {r.name: r for r in check_grammar(grammar, raise_on_failure=False)}
    assert not results[check].passed
    assert results[check].message


def test_grammars_need_no_registration_to_be_checked() -> None:
    before = registry.entries("grammar")
    results = check_grammar(seedless, expected_failures={"different_seeds_differ": "it draws nothing"})
    assert all(r.passed for r in results)
    assert registry.entries("grammar") == before
    assert {r.name: r for r in check_grammar("hol")}["chains"].message.startswith("refused")
    with pytest.raises(ContractError, match="different_seeds_differ"):
        check_grammar(seedless)


# -- the pytest decorator ----------------------------------------------------------------------------------------------


def test_decorator_names_and_marks_each_check() -> None:
    mark = parametrize_with_checks(["sender/FC1L", "rot"], expected_failures=None).mark
    ids = [parameter.id for parameter in mark.args[1]]
    assert "sender/FC1L-pickles" in ids
    assert "grammar/rot-chains" in ids
    assert len(ids) == len(MODEL_CHECKS) + len(GRAMMAR_CHECKS)
    (marked,) = (
        p
        for p in parametrize_with_checks("sender/FC1L", {"pickles": "why not"}).mark.args[1]
        if p.id.endswith("pickles")
    )
    assert [m.kwargs["reason"] for m in marked.marks] == ["why not"]
