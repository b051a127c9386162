"""The contract over the whole registry: every check of icy.testing on everything that is registered."""

from __future__ import annotations

from typing import Any

import pytest

from icy.core.errors import UnknownNameError
from icy.core.registry import Entry, registry
from icy.core.representations import REPRESENTATIONS
from icy.testing import (
    MODEL_CHECKS,
    BoundCheck,
    Unsupported,
    bound_checks,
    check_model,
    parametrize_with_checks,
)
from icy.testing.contracts import CHECKS
from icy.testing.other_loops import OTHER_LOOP_CHECKS
from icy.testing.registered import matching

# A representation changes what a sender is fed back, which its family does and not its cell, and the loss. So where a
# model is checked in a second one, gradients are looked at for every model, and the rest tried with one cell a family.
# What neither touches (shapes, copies, counts) is left to the first; `-m contract` runs all checks in all of them.
IN_EVERY_REPRESENTATION = "gradients_reach_parameters"
WITH_ONE_CELL = {
    *(
        "keep",
        "goes_on",
        "learns",
        "stacked_equals_separate",
        "deterministic",
        "random_state_untouched",
        "batch_of_one",
    ),
    *("examples_independent", "pickles", "deepcopy"),
}
ONE_CELL = ("", "GRU")
# Receivers do not depend on the channel, and most senders do in their loss alone: of every kind of feedback, one.
CHANNELS = ("gs", "qt", "cb")
OVER_CHANNELS = {f"sender/{n}" for n in ("FC2L", "RNNAutoReg:GRU", "HierAutoReg:GRU", "TransDecSoft", "Transformer")}
OF_CHANNELS = {IN_EVERY_REPRESENTATION, "learns", "stacked_equals_separate"}

# The default suite checks each family with one cell. It checks each cell in one sender and one receiver as well. The
# checks that train longest leave out the latter, and families of two layers. `-m contract` checks the rest.
WITH_ALL_CELLS = ("sender/HierZero", "receiver/RNN1L")
LONG = (
    *("learns", "stacked_equals_separate", "goes_on", "keep", "examples_independent"),
    *("autocast", "bfloat16", "second_derivatives", "func_grad", "vmap"),
)
LONGEST = ("compile", "export", "distributed")  # `contract` for one cell of each family, `stress` for the others
NOT_SUPPORTED = {("receiver/Transformer", "second_derivatives"), ("receiver/Hashtable", "export")}


def contract() -> list[Any]:
    """Return every check of everything registered. Checks outside the default suite carry the mark `contract`."""
    return [marked(parameter, parameter.id) for parameter in parametrize_with_checks("all").mark.args[1]]


def marked(parameter: Any, name: str, further: bool = False) -> Any:
    """Return a parameter under another name, with the mark `contract` if its check is not in the default suite.

    Args:
        parameter: a parameter of `parametrize_with_checks`.
        name: its new id.
        further: whether the check runs in a representation other than the model's first.
    """
    (check,) = parameter.values
    family, _, cell = check.label.partition(":")
    is_long = check.name in LONG
    of_one_cell = cell in ONE_CELL and not family.endswith("2L")
    in_default = cell in ONE_CELL and (of_one_cell or not is_long)
    in_default |= family in WITH_ALL_CELLS and not is_long and not further
    if further:
        in_default &= check.name == IN_EVERY_REPRESENTATION
    in_default &= check.name not in LONGEST
    mark = pytest.mark.stress if check.name in LONGEST and not of_one_cell else pytest.mark.contract
    marks = [*parameter.marks, *([] if in_default else [mark])]
    return pytest.param(check, id=name, marks=marks)


@pytest.mark.parametrize("check", contract())
def test_contract(check: BoundCheck) -> None:
    try:
        check()
    except Unsupported as lack:
        if (check.label, check.name) not in NOT_SUPPORTED:
            pytest.fail(str(lack))
        raise


MODELS = ["sender/*", "receiver/*"]
FURTHER = [  # models and the representations beyond the one that test_contract checks them in
    (entry, name)
    for entry in registry.entries("sender", "receiver")
    for name in REPRESENTATIONS
    if entry.works_with(name) and name != (entry.representations or ("soft",))[0]
]


def in_further_representations() -> list[Any]:
    """Of the checks in a second representation and further ones, those that every run of the tests makes."""
    wanted = {(entry.qualified, name) for entry, name in FURTHER}
    found = []
    for name in REPRESENTATIONS:
        for parameter in parametrize_with_checks(MODELS, representation=name).mark.args[1]:
            check: BoundCheck = parameter.values[0]
            if (check.label, name) in wanted and is_run_in(name, check):
                found.append(marked(parameter, f"{name}-{parameter.id}", further=True))
    return found


def is_run_in(representation: str, check: BoundCheck) -> bool:
    """Whether every run of the tests makes a check in a representation that is not the model's first."""
    if representation in CHANNELS:
        return check.label in OVER_CHANNELS and check.name in OF_CHANNELS
    with_one = check.name in WITH_ONE_CELL and check.label.partition(":")[2] in ONE_CELL
    return check.name == IN_EVERY_REPRESENTATION or with_one


@pytest.mark.parametrize("check", in_further_representations())
def test_contract_in_further_representations(check: BoundCheck) -> None:
    check()


@pytest.mark.contract
@pytest.mark.parametrize(("entry", "name"), [pytest.param(e, n, id=f"{n}-{e.qualified}") for e, n in FURTHER])
def test_the_whole_contract_in_further_representations(
    entry: Entry, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for check in OTHER_LOOP_CHECKS:  # which train nothing, and so depend on no representation
        monkeypatch.delitem(MODEL_CHECKS, check, raising=False)
    check_model(entry, representation=name)


def test_the_whole_registry_is_checked() -> None:
    labels = {check.label for check in bound_checks("all")}
    assert labels == {entry.qualified for entry in registry.entries(*CHECKS)}
    assert {"sender/HierZero:GRU", "receiver/kNN", "grammar/shufdet", "cell/SRU", "metric/tre"} <= labels
    assert {"speaker/posdis", "listener/binding"} <= labels


def test_names_stand_for_every_kind() -> None:
    assert [e.qualified for e in matching(["cell/GRU", "topsim", "*/nearest"])] == [
        *("cell/GRU", "metric/topsim", "listener/nearest")
    ]
    assert {"cell/GRU", "cell/minGRU", "sender/RNNZero:GRU"} < {e.qualified for e in matching("*GRU")}
    assert [e.qualified for e in matching("holistic")] == ["grammar/hol"]  # as before speakers had a contract
    assert [e.qualified for e in matching("speaker/holistic")] == ["speaker/holistic"]
    with pytest.raises(UnknownNameError, match="several things; write metric/posdis or speaker/posdis or listener/"):
        matching("posdis")
    with pytest.raises(UnknownNameError, match="exists on both sides; write speaker/random or listener/random"):
        matching(["rot", "random"])
    with pytest.raises(UnknownNameError, match="did you mean topsim"):
        matching("topsym")


def test_the_whole_registry_is_checked_in_every_representation() -> None:
    checked = [(check.label, check.case.task.representation) for check in bound_checks(MODELS)]  # type: ignore[union-attr]
    for parameter in in_further_representations():
        (check,) = parameter.values
        checked.append((check.label, check.case.task.representation))
    assert set(checked) == {
        (entry.qualified, name)
        for entry in registry.entries("sender", "receiver")
        for name in REPRESENTATIONS
        if entry.works_with(name) and (name not in CHANNELS or entry.qualified in OVER_CHANNELS)
    }
    assert {name for label, name in checked if label == "sender/RNNSampling:LSTM"} == {"discr"}
    assert {name for label, name in checked if label == "receiver/RNN2L:SRU"} == {"soft", "gumb", "discr"}
    assert {name for label, name in checked if label == "sender/HierAutoReg:GRU"} == set(REPRESENTATIONS)
    assert (WITH_ONE_CELL | OF_CHANNELS | {IN_EVERY_REPRESENTATION}) <= set(MODEL_CHECKS)


def test_every_check_says_what_it_proves() -> None:
    for function in (check.function for check in bound_checks(["sender/FC1L", "rot", "GRU", "ami", "nearest"])):
        assert (function.__doc__ or "").rstrip().endswith(".")
