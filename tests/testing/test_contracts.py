"""The contract over the whole registry: every check of icy.testing on everything that is registered."""

from __future__ import annotations

import gc
from traceback import format_exception
from typing import Any

import pytest
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from icy import testing
from icy.core.errors import UnknownNameError
from icy.core.registry import Entry, registry
from icy.core.representations import REPRESENTATIONS
from icy.testing import CONTRACTS, BoundCheck, NotApplicable, Unsupported, bound_checks
from icy.testing.contracts import matching
from icy.testing.models import ModelCase
from icy.testing.modules import learns_by_gradient
from icy.testing.other_loops import OtherLoopCase
from tests.testing.mistakes import OTHER_LOOPS

# The default suite checks each family with one cell. It checks each cell in one sender and one receiver as well. The
# checks that train longest leave out the latter, families of two layers and families that sample. `-m contract` checks
# the rest.
ONE_CELL = ("", "GRU")
WITH_ALL_CELLS = ("sender/HierZero", "receiver/RNN1L")
LONG = (
    *("learns", "stacked_equals_separate", "goes_on", "examples_independent"),
    *("autocast", "bfloat16", "second_derivatives", "func_grad", "vmap"),
)
LONGEST = ("compile", "export")  # take minutes: `contract` for COMPILED, `stress` for the others
COMPILED = ("sender/FC2L", "sender/HierZero:GRU", "receiver/RNN1L:GRU", "cell/GRU", "perception/conv4")
SIBLINGS = (  # much like another core or model
    *("core/DCEM", "core/ESBN-strict", "core/LSTM-512"),
    *("sender/Composed", "receiver/Composed"),
)
NOT_SUPPORTED = {("receiver/Transformer", "second_derivatives"), ("receiver/Hashtable", "export")}

MODELS = ["sender/*", "receiver/*"]
FURTHER = [  # models and the representations beyond the one that test_contract checks them in
    (entry, name)
    for entry in registry.entries("sender", "receiver")
    for name in REPRESENTATIONS
    if entry.works_with(name) and name != (entry.representations or ("soft",))[0]
]
# A representation changes what a sender is fed back, which its family does and not its cell, and the loss. So the
# default suite looks at gradients with one cell of each family in the further representations, and over the channels
# at one model of every kind of feedback. `-m contract` runs all checks in all of them, over channels with one cell of
# each family; `-m stress` runs the rest.
CHANNELS = ("gs", "qt", "cb")
OVER_CHANNELS = {f"sender/{n}" for n in ("FC2L", "RNNAutoReg:GRU", "HierAutoReg:GRU", "TransDecSoft", "Transformer")}


def mark_of(check: BoundCheck) -> str:
    """Return the mark of the suite that runs a check, or "" for the default suite."""
    family, _, cell = check.label.partition(":")
    of_one_cell = cell in ONE_CELL and not family.endswith("2L")
    if check.label in SIBLINGS:
        return "contract"
    if check.name in LONGEST:
        return "contract" if check.label in COMPILED else "stress"
    if check.name in LONG:
        return "" if of_one_cell and "Sampling" not in family else "contract"
    return "" if cell in ONE_CELL or family in WITH_ALL_CELLS else "contract"


def contract() -> list[Any]:
    """Return the checks of everything registered, for `parametrize`: those of one thing and one suite are one test."""
    found: dict[tuple[str, str], list[BoundCheck]] = {}
    for check in bound_checks("all"):
        found.setdefault((check.label, mark_of(check)), []).append(check)
    return [
        pytest.param(
            checks, id=f"{label}-{mark}" if mark else label, marks=[getattr(pytest.mark, mark)] if mark else []
        )
        for (label, mark), checks in found.items()
    ]


def mistakes(checks: list[BoundCheck]) -> list[str]:
    """Run checks. Return a sentence for each that fails, or that holds against what is declared."""
    found = []
    for check in checks:
        try:
            check()
        except Unsupported as lack:
            if (check.label, check.name) not in NOT_SUPPORTED and not check.expected_failure:
                found.append(f"{check.name}: not supported: {lack}")
        except NotApplicable:
            pass
        except Exception as error:
            if not check.expected_failure:
                found.append(f"{check.name}: {''.join(format_exception(error))}")
        else:
            if check.expected_failure:
                found.append(f"{check.name}: declared to fail ({check.expected_failure}), but it holds")
    return found


@pytest.mark.parametrize("checks", contract())
def test_contract(checks: list[BoundCheck]) -> None:
    assert not (found := mistakes(checks)), "\n".join(found)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            e.qualified, marks=pytest.mark.contract if e.qualified in COMPILED else pytest.mark.stress, id=e.qualified
        )
        for e in registry.match(MODELS)
    ],
)
def test_models_train_in_distributed_data_parallel(name: str) -> None:
    """Without `find_unused_parameters`: the second pass fails if a parameter got no gradient in the first."""
    case = ModelCase(registry.get(name))
    module, inputs = case.ready(), case.batch()
    if not learns_by_gradient(module):
        pytest.skip("it stores examples")
    alone = torch.autograd.grad(module(inputs).square().sum(), list(module.parameters()))
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        parallel = DistributedDataParallel(module)
        for _ in range(2):
            module.zero_grad()
            parallel(inputs).square().sum().backward()
        del parallel
        gc.collect()  # before the group is destroyed, or its destructor may wait forever
    finally:
        distributed.destroy_process_group()
    for expected, parameter in zip(alone, module.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.contract
@pytest.mark.parametrize(
    "name", [e.qualified for e in registry.match(MODELS) if e.qualified.partition(":")[2] in ONE_CELL]
)
def test_models_keep_the_contract_in_a_space_without_a_grid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for check in OTHER_LOOPS:
        monkeypatch.delattr(OtherLoopCase, f"check_{check}", raising=False)
    testing.check(name, space="4,2,3")


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        pytest.param(e, n, id=f"{n}-{e.qualified}")
        for e, n in FURTHER
        if (e.qualified in OVER_CHANNELS if n in CHANNELS else e.qualified.partition(":")[2] in ONE_CELL)
    ],
)
def test_gradients_in_further_representations(entry: Entry, name: str) -> None:
    checks = bound_checks(entry.qualified, representation=name)
    assert not (found := mistakes([c for c in checks if c.name == "gradients_reach_parameters"])), "\n".join(found)


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        pytest.param(
            e, n, id=f"{n}-{e.qualified}", marks=pytest.mark.stress if of_other_cells else pytest.mark.contract
        )
        for e, n in FURTHER
        for of_other_cells in [n in CHANNELS and e.qualified.partition(":")[2] not in ONE_CELL]
    ],
)
def test_the_whole_contract_in_further_representations(
    entry: Entry, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for check in OTHER_LOOPS:  # which train nothing, and so depend on no representation
        monkeypatch.delattr(OtherLoopCase, f"check_{check}", raising=False)
    testing.check(entry, representation=name)


def test_the_whole_registry_is_checked() -> None:
    labels = {check.label for check in bound_checks("all")}
    assert labels == {entry.qualified for entry in registry.entries(*CONTRACTS)}
    assert {"sender/HierZero:GRU", "receiver/kNN", "grammar/shufdet", "cell/SRU", "metric/tre"} <= labels
    assert {"speaker/posdis", "listener/binding"} <= labels


def test_names_stand_for_every_kind() -> None:
    assert [e.qualified for e in matching(["cell/GRU", "topsim", "*/nearest"])] == [
        *("cell/GRU", "metric/topsim", "listener/nearest")
    ]
    assert {"cell/GRU", "cell/minGRU", "sender/RNNZero:GRU"} < {e.qualified for e in matching("*GRU")}
    assert [e.qualified for e in matching("holistic")] == ["grammar/hol"]  # as before speakers had a contract
    assert [e.qualified for e in matching("speaker/holistic")] == ["speaker/holistic"]
    with pytest.raises(UnknownNameError, match="entries of several kinds; write metric/posdis or"):
        matching("posdis")
    with pytest.raises(UnknownNameError, match="exists on both sides; write speaker/random or listener/random"):
        matching(["rot", "random"])
    with pytest.raises(UnknownNameError, match="did you mean topsim"):
        matching("topsym")


def test_the_whole_registry_is_checked_in_every_representation() -> None:
    checked = [(check.label, check.case.task.representation) for check in bound_checks(MODELS)]  # type: ignore[union-attr]
    checked += [(entry.qualified, name) for entry, name in FURTHER]
    models = registry.entries("sender", "receiver")
    assert set(checked) == {
        (entry.qualified, name) for entry in models for name in REPRESENTATIONS if entry.works_with(name)
    }
    assert {name for label, name in checked if label == "sender/RNNSampling:LSTM"} == {"discr"}
    assert {name for label, name in checked if label == "sender/HierAutoReg:GRU"} == set(REPRESENTATIONS)


def test_every_check_says_what_it_proves() -> None:
    for function in (check.function for check in bound_checks(["sender/FC1L", "rot", "GRU", "ami", "nearest"])):
        assert (function.__doc__ or "").rstrip().endswith(".")
