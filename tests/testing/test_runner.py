"""Running checks: by name or class, reports, excused failures, and the pytest decorator."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from icy import testing
from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.registry import Entry, registry
from icy.languages.meanings import MeaningSpace
from icy.models.base import Sender
from icy.models.layers import Linear, flat_one_hot
from icy.testing import CONTRACTS, ContractError, checks_of, parametrize_with_checks
from tests.testing.helpers import Plain, Unused


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
    assert "test_runner.py" in results["output_shape"].message


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
