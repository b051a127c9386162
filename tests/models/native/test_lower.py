"""Lowering models that are not icy's: each is computed correctly, or refused in a sentence."""

from __future__ import annotations

import pytest
import torch

from icy.models.native.builder import NotNativeError
from icy.models.native.program import Program
from tests.cores import needs_native
from tests.models.native.helpers import assert_same_pass, inputs_of, make
from tests.models.native.strange import ALL, Strange

REFUSED = {
    "stack_last": "it does not give one row of scores per place",
    "places_and_choices_swapped": "it transposes examples",
    "reversed_places": "it calls TensorBase.flip",
    "words": "it calls flat_one_hot with rows that it has cut differently",
    "reshaped_tokens": "it calls flat_one_hot with rows that it has cut differently",
    "column": "it calls TensorBase.add with rows that it has cut differently",
    "cat_by_name": "its scores are not a product",
    "cat_of_named": "its calls cannot be recorded (tuple index out of range)",
    "rows_cut": "with rows that it has cut differently",
    "rows_cut_for_a_layer": "it calls linear with rows that it has cut differently",
    "joined_places": "it calls linear with rows that it has cut differently",
    "places_mixed": "it reshapes a sequence into another",
    "examples_turned": "it takes something other than columns of examples",
    "first_example": "it takes something other than columns of examples",
    "softmax_over_examples": "a softmax that is not over the symbols of each example",
    "batch_norm": "it takes a mean over examples or columns",
    "mean_over_columns": "it calls TensorBase.mean differently from icy's models",
    "shifted_tokens": "it calls Tensor.__floordiv__",
    "constant_per_example": "it uses constants that differ between examples",
    "scaled_and_negated": "it calls TensorBase.neg",
    "alpha": "it calls _VariableFunctionsClass.add",
    "rounded_division": "it calls _VariableFunctionsClass.div",
    "in_place": "it overwrites a tensor (add_)",
    "relu_in_place": "it overwrites a tensor (relu)",
    "written_over": "it overwrites a tensor (__setitem__)",
    "mixed_by_scores": "it calls _VariableFunctionsClass.sigmoid",
    "two_chunks": "it splits something other than a sequence",
    "sees_twice": "an attention that reads the same rows twice",
    "learnt_start": "one row for all examples",
    "clamped_in_place": "it overwrites a tensor (clamp_)",
    "masked_in_place": "it overwrites a tensor (__setitem__)",
    "noise_of_its_own": "it draws its own random numbers",
}


@needs_native
@pytest.mark.parametrize("name", sorted(ALL.keys() - REFUSED))
def test_accepted_models_are_computed_correctly(name: str) -> None:
    assert_same_pass(Strange(ALL[name]), inputs_of("sender"))


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_models_are_refused_in_a_sentence(name: str) -> None:
    model = Strange(ALL[name])
    model(inputs_of("sender"))  # is a model
    with pytest.raises(NotNativeError) as error:
        Program(model, inputs_of("sender"), training=True, gradient=True)
    assert REFUSED[name] in str(error.value)


def test_a_gate_that_a_batch_shares_is_refused() -> None:
    """The published receivers use the gate of the first example for all examples."""
    model = make("receiver", "Hier:GRU", shared_gate=True)
    with pytest.raises(NotNativeError, match="it takes something other than columns of examples"):
        Program(model, inputs_of("receiver"), training=True, gradient=True)


@needs_native
@pytest.mark.parametrize("frozen", ["embed.weight", "net.layers.0.weight_hh", "out.bias", "feedback.embed.weight"])
def test_frozen_parameters_have_no_gradient_and_those_below_them_do(frozen: str) -> None:
    model = make("sender", "RNNAutoReg:GRU")
    model.get_parameter(frozen).requires_grad_(False)
    assert_same_pass(model, inputs_of("sender"))


@needs_native
def test_parameters_that_nothing_reads_have_no_gradient() -> None:
    model = Strange(ALL["residual"])
    assert {name for name, p in model.named_parameters() if p.shape == torch.Size([1, 40])} == {"row"}
    assert_same_pass(model, inputs_of("sender"))
