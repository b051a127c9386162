"""Contracts of all kinds of plug-ins, and how their checks run."""

from __future__ import annotations

import gc
from traceback import format_exception
from typing import Any

import pytest
import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from icy import testing
from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.registry import Entry, registry
from icy.core.representations import REPRESENTATIONS
from icy.languages.meanings import MeaningSpace
from icy.models.base import Sender
from icy.models.layers import Linear, flat_one_hot
from icy.testing import (
    CONTRACTS,
    BoundCheck,
    ContractError,
    NotApplicable,
    Unsupported,
    bound_checks,
    checks_of,
    parametrize_with_checks,
)
from icy.testing.contracts import matching
from icy.testing.models import ModelCase
from icy.testing.modules import learns_by_gradient
from tests.testing import test_cells, test_cores, test_games, test_metrics, test_players
from tests.testing.helpers import Plain, Unused
from tests.testing.mistakes import EVERY, Kind
from tests.testing.other_loops import LOOPS

# -- the contract over the whole registry ------------------------------------------------------------------------------


# The default suite checks each family with one cell. It checks each cell in one sender and one receiver as well. The
# checks that train longest leave out the latter, families of two layers and families that sample. `-m contract` checks
# the rest.
ONE_CELL = ("", "GRU")
WITH_ALL_CELLS = ("sender/HierZero", "receiver/RNN1L")
LONG = (*("learns", "stacked_equals_separate", "goes_on", "examples_independent"),)
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


def long_tests(*kinds: str) -> list[Any]:
    """Return the entries of some kinds for tests that take minutes for all of them."""
    return [
        pytest.param(e, marks=pytest.mark.contract if e.qualified in COMPILED else pytest.mark.stress, id=e.qualified)
        for e in registry.entries(*kinds)
    ]


@pytest.mark.parametrize("entry", long_tests("sender", "receiver", "cell", "perception"))
def test_other_training_loops(entry: Entry) -> None:
    for name, run in LOOPS.items():
        try:
            run(CONTRACTS[entry.kind](entry))
        except Unsupported:
            if (entry.qualified, name) not in NOT_SUPPORTED:
                raise
        except NotApplicable:
            pass


@pytest.mark.parametrize("entry", long_tests("sender", "receiver"))
def test_models_train_in_distributed_data_parallel(entry: Entry) -> None:
    """Without `find_unused_parameters`: the second pass fails if a parameter got no gradient in the first."""
    case = ModelCase(entry)
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
def test_models_keep_the_contract_in_a_space_without_a_grid(name: str) -> None:
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
def test_the_whole_contract_in_further_representations(entry: Entry, name: str) -> None:
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


# -- running checks: by name or class, reports, excused failures, and the pytest decorator -----------------------------


class Mine(Sender):
    """Knows its side."""

    broadcasts = True

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int, gain: int) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.out, self.gain = Linear(space.attributes * space.values, message_length * self.symbols), gain

    def forward(self, meanings: Tensor) -> Tensor:
        return self.shaped(self.out(self.gain * flat_one_hot(meanings, self.space.values, self.out.weight.dtype)))


@pytest.mark.contract
def test_side_options_and_registration_are_found() -> None:
    assert all(r.passed for r in testing.check(Mine, options={"gain": 2}))
    entry = Entry("sender", "mine", Mine, "", "", defaults={"gain": 1}, origin=__name__, aliases=("my_own",))
    with registry.holding(entry):
        results = {r.name: r for r in testing.check(Mine)}
        assert not results["made_by_name"].excused
        testing.check("my_own", options={"gain": 3})
    with pytest.raises(UnknownNameError):
        testing.check("mine")
    with pytest.raises(InvalidSettingError, match="Plain has no kind; give one"):
        testing.check(Plain)
    with pytest.raises(UnknownNameError, match="No kind of plug-ins is called 'speakers'; did you mean speaker"):
        testing.check(Plain, "speakers")
    with pytest.raises(UnknownNameError, match="No setting of checks of a cell is called 'width'"):
        testing.check("GRU", width=3)
    with pytest.raises(InvalidSettingError, match="'sender/FC\\*' matches 2 plug-ins"):
        testing.check("sender/FC*")
    with pytest.raises(UnknownNameError, match="sender/FC2L or receiver/FC2L"):
        testing.check("FC2L")


def test_all_failures_are_reported_at_once() -> None:
    seen = []
    with pytest.raises(ContractError) as caught:
        testing.check(Unused, "sender", report=seen.append)
    assert "sender/Unused fails 1 of" in str(caught.value)
    assert "gradients_reach_parameters: No gradient reaches spare; leave" in str(caught.value)
    assert seen == caught.value.results
    assert isinstance(caught.value, AssertionError)


def test_the_line_to_mend_is_named() -> None:
    class Broken(Plain):
        def forward(self, meanings: Tensor) -> Tensor:
            raise ZeroDivisionError("my own fault")

    results = {r.name: r for r in testing.check(Broken, "sender", raise_on_failure=False)}
    assert results["output_shape"].message.startswith("ZeroDivisionError: my own fault (line ")
    assert "test_contracts.py" in results["output_shape"].message


def test_wrong_arguments_are_reported_once() -> None:
    class Bare(Plain):
        def __init__(self, meanings: MeaningSpace) -> None: ...

    (result,) = testing.check(Bare, "sender", raise_on_failure=False)
    assert result.name == "signature"
    assert result.message == (
        "Bare takes (meanings), and a sender must take (space, message_length, vocab_size, hidden_size, **options). "
        "No other check can run."
    )


def test_one_failure_of_many_checks_is_reported_once() -> None:
    class Stops(Plain):
        def __init__(self, *sizes: Any) -> None:
            raise ValueError("no such size")

    with pytest.raises(ContractError) as caught:
        testing.check(Stops, "sender")
    first, *others = str(caught.value).splitlines()[1:]
    assert "  made_by_name: sender/Stops cannot be made: ValueError: no such size" in first
    assert {line.partition(": ")[2] for line in others} == {"as made_by_name"}
    assert len(others) == sum(not r.passed for r in caught.value.results) - 1 > 10


@pytest.mark.contract
def test_expected_failures_are_declared_with_a_reason() -> None:
    reason = {"gradients_reach_parameters": "a spare layer, kept to match a published total"}
    for declared, model in ((reason, Unused), (None, type("Declares", (Unused,), {"expected_failures": reason}))):
        results = {r.name: r for r in testing.check(model, "sender", expected_failures=declared)}
        result = results["gradients_reach_parameters"]
        assert result.passed
        assert result.excused
        assert "published total" in result.message
    results = {r.name: r for r in testing.check(Plain, "sender", expected_failures=reason)}
    assert results["gradients_reach_parameters"].message.endswith("but it holds")
    with pytest.raises(UnknownNameError, match="did you mean pickles"):
        testing.check(Plain, "sender", expected_failures={"pickle": "no such check"})


def test_decorator_names_and_marks_each_check() -> None:
    mark = parametrize_with_checks(["sender/FC1L", "rot"], expected_failures=None).mark
    ids = [parameter.id for parameter in mark.args[1]]
    assert "sender/FC1L-pickles" in ids
    assert "grammar/rot-chains" in ids
    assert len(ids) == sum(len(checks_of(CONTRACTS[kind])) for kind in ("sender", "grammar"))
    (marked,) = (
        p
        for p in parametrize_with_checks("sender/FC1L", {"pickles": "why not"}).mark.args[1]
        if p.id.endswith("pickles")
    )
    assert [m.kwargs["reason"] for m in marked.marks] == ["why not"]


# -- the contract of every kind ----------------------------------------------------------------------------------------


KINDS = [module.KIND for module in (test_cells, test_cores, test_metrics, test_players, test_players, test_players)]
KINDS += [test_games.WORLD, test_games.PERCEPTION]


def marked(kind: Kind, *values: Any) -> Any:
    """Return a parameter for a test of a kind, with the mark of its suite."""
    marks = [getattr(pytest.mark, kind.mark)] if kind.mark else []
    return pytest.param(kind, *values, id="-".join([kind.name, *values]), marks=marks)


EACH_KIND = pytest.mark.parametrize("kind", [marked(kind) for kind in KINDS])


@pytest.mark.parametrize(("kind", "check"), [marked(kind, check) for kind in KINDS for check in kind.wrong])
def test_a_wrong_plug_in_fails_its_check(kind: Kind, check: str) -> None:
    plugin: Any = kind.wrong[check]
    role = "speaker" if getattr(plugin, "token", None) else kind.name
    entry = Entry(role, plugin.__name__, plugin, "", "", origin=__name__, weighted=check == "weights")
    with registry.holding(entry):
        results = testing.check(entry, raise_on_failure=False)
    failed = {r.name: r.message for r in results if not r.passed}
    assert failed.get(check)
    assert kind.also.get(check) is EVERY or failed.keys() <= {check, *kind.also.get(check, ())}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_check_has_a_plug_in_that_fails_it(kind: Kind) -> None:
    assert set(kind.wrong) == kind.checks


@EACH_KIND
def test_a_strangers_plug_in_passes(kind: Kind) -> None:
    results = {r.name: r for r in testing.check(kind.plain, kind.name)}
    assert set(results) == kind.checks
    assert results["made_by_name"].message.endswith(" is not registered")
    assert {name: results[name].message for name in kind.messages} == kind.messages


@EACH_KIND
def test_registered_plug_ins_are_found(kind: Kind) -> None:
    name = kind.plain.__name__
    entry = Entry(kind.name, name, kind.plain, "", "", origin=__name__, aliases=("my_own",))
    with registry.holding(entry):
        for given in ("my_own", kind.plain):
            assert not {r.name: r for r in testing.check(given, kind.name)}["made_by_name"].excused
    with pytest.raises(UnknownNameError, match=rf"No {kind.name} is called '{name}'.*`icy list "):
        testing.check(name, kind.name)


@pytest.mark.parametrize("kind", ["core", "world", "metric"])
def test_failures_are_raised_unless_they_are_expected(kind: str) -> None:
    (found,) = (found for found in KINDS if found.name == kind)
    check = next(check for check in found.wrong if check != "made_by_name" and check not in found.also)
    with pytest.raises(ContractError, match=f"{kind}/.* fails 1 of"):
        testing.check(found.wrong[check], kind)
    assert all(r.passed for r in testing.check(found.wrong[check], kind, expected_failures={check: "on purpose"}))
