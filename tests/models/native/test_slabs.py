"""Slabs, their places, and what Python and C++ must agree on."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import icy.models.native as package
from icy.models.native import calls
from icy.models.native.builder import FACTORS
from icy.models.native.lower import FINISH, MOST_CHOICES, PAIRS, RELU
from icy.models.native.lower_layers import LONGEST
from icy.models.native.program import LANES, Program
from icy.models.native.slabs import (
    BLOCK,
    NOWHERE,
    WIDTH,
    At,
    Code,
    Finish,
    LinkKind,
    Operation,
    Slab,
    Space,
    number,
    padded,
    place,
)  # fmt: skip
from icy.s2b.agents.cores.lstm import _Recurrence
from tests.models.native.helpers import inputs_of, make

SOURCES = Path(str(package.__file__)).parent

uses = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (min(pair), max(pair)))
slabs = st.builds(lambda size, used: Slab(Space.TAPE, size, used=used), st.integers(1, 200), st.none() | uses)


def meet(a: Slab, b: Slab) -> bool:
    """Whether both are in use at once, and share a number."""
    assert a.used is not None
    assert b.used is not None
    at_once = a.used[0] <= b.used[1] and b.used[0] <= a.used[1]
    return at_once and a.offset < b.offset + b.size and b.offset < a.offset + a.size


@given(st.lists(slabs, max_size=30))
def test_slabs_that_are_in_use_at_once_do_not_overlap(some: list[Slab]) -> None:
    needed = place(some)
    used = [slab for slab in some if slab.used]
    assert all(slab.offset == NOWHERE for slab in some if not slab.used)
    assert all(slab.offset >= 0 for slab in used)
    assert not any(meet(a, b) for i, a in enumerate(used) for b in used[:i])
    assert needed == max((slab.offset + slab.size for slab in used), default=0)
    at_once = [sum(s.size for s in used if s.used and s.used[0] <= time <= s.used[1]) for time in range(21)]
    assert max(at_once) <= needed <= sum(s.size for s in used)


def test_slabs_that_are_used_one_after_another_share_a_place() -> None:
    some = [Slab(Space.TAPE, 10, used=(time, time)) for time in range(5)]
    assert place(some) == 10


@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize(
    ("side", "name"),
    [("sender", "HierAutoReg:LSTM"), ("sender", "TransDecSoft2L"), ("receiver", "RNN2L:SRU"), ("receiver", "CNN")],
)
def test_slabs_of_a_program(monkeypatch: pytest.MonkeyPatch, side: str, name: str, gradient: bool) -> None:
    """Every slab that an operation touches has a place, and none is written over while it is needed."""
    seen: list[list[Slab]] = []
    monkeypatch.setattr("icy.models.native.program.place", lambda some: (seen.append(some), place(some))[1])
    program = Program(make(side, name), inputs_of(side), training=gradient, gradient=gradient)
    (tape,) = seen
    used = [slab for slab in tape if slab.used]
    assert used
    assert not any(meet(a, b) for i, a in enumerate(used) for b in used[:i])
    assert max(slab.offset + slab.size for slab in used) == program.native.tape
    if not gradient:
        assert program.native.tape < sum(slab.size for slab in used)  # nothing is kept for a way back


# -- agreements with C++ -----------------------------------------------------------------------------------------------


def source(name: str) -> str:
    return (SOURCES / name).read_text()


def body(kind: str, name: str, file: str) -> str:
    """What stands in the braces of an enumeration or a structure, without comments."""
    text = re.sub(r"//.*", "", source(file))
    found = re.search(rf"{kind} {name}\b[^{{;]*\{{(.*?)\n?\}};", text, re.DOTALL)
    assert found is not None, name
    return found[1]


def constant(name: str) -> int:
    files = [*SOURCES.glob("*.h"), *SOURCES.glob("*.cpp")]
    found = {m for file in files for m in re.findall(rf"\b{name} = (\d+);", file.read_text())}
    (value,) = found
    return int(value)


def test_codes_are_those_of_the_interpreter() -> None:
    assert re.findall(r"\w+", body("enum", "Code", "program.cpp")) == [code.name for code in Code]
    handled = re.findall(r"case (\w+):", source("program.cpp"))
    assert sorted(handled) == sorted(code.name for code in Code)


def test_kinds_of_losses_and_links_are_those_of_the_interpreter() -> None:
    names = re.findall(r"\w+", body("enum", "LossKind", "losses.h"))
    assert [getattr(calls, name) for name in names] == list(range(4))
    assert re.findall(r"\w+", body("enum", "LinkKind : int64_t", "link.h")) == [kind.name for kind in LinkKind]


def test_constants_are_those_of_the_interpreter() -> None:
    assert constant("WIDTH") == WIDTH
    assert constant("BLOCK") == BLOCK
    assert constant("LONGEST") == LONGEST
    assert constant("MOST_CHOICES") == MOST_CHOICES
    assert [constant(name) for name in ("FACTORS", "PAIRS", "FINISH")] == [FACTORS, PAIRS, FINISH]
    assert LANES % 16 == 0


def test_last_steps_of_products_are_those_of_the_interpreter() -> None:
    assert re.findall(r"\w+", body("enum", "Kind : int64_t", "products.h")) == [kind.name for kind in Finish]
    assert re.findall(r"\w+", body("enum", "Activation", "cells.h")).index("RELU") == RELU


def fields(kind: str, file: str) -> list[str]:
    """Names of the members of a structure, in order."""
    declared = [part for part in body("struct", kind, file).split(";") if part.strip() and "(" not in part]
    return [re.sub(r".*[\s*]", "", name.strip()) for part in declared for name in part.split(",")]


@pytest.mark.parametrize(
    ("kind", "file", "structure"),
    [
        ("Loss", "losses.h", calls.Loss),
        ("Optimizer", "program.cpp", calls.Optimizer),
        ("Training", "program.cpp", calls.Training),
        ("Pass", "program.cpp", calls.Pass),
        ("TurnDraws", "turns.cpp", calls.TurnDraws),
        ("Draws", "program.cpp", calls.Draws),
        ("Recurrence", "lstm.cpp", _Recurrence),
    ],
)
def test_structures_are_those_of_the_interpreter(kind: str, file: str, structure: type) -> None:
    names = [name for name, _ in structure._fields_]  # type: ignore[attr-defined]
    assert fields(kind, file) == names


def test_fields_are_numbers() -> None:
    slab = Slab(Space.GRADIENTS, 10, 7)
    assert number(None) == NOWHERE
    assert number(slab) == number(At(slab)) == (3 << 48) + 7
    assert number(At(slab, 5)) == (3 << 48) + 12
    assert [number(value) for value in (True, False, 28)] == [1, 0, 28]
    assert struct.unpack("<d", struct.pack("<q", number(0.1)))[0] == 0.1
    assert torch.tensor(number(-1.0)).dtype == torch.long


def test_an_operation_touches_the_slabs_of_its_fields_and_lists() -> None:
    one, two, three = (Slab(Space.TAPE, 10) for _ in range(3))
    operation = Operation(Code.ATTEND, None, [4, one, None, 1.0, At(two, 3), 0], [(5, [three, one])])
    assert operation.slabs() == [one, two, three, one]


def test_an_operation_writes_all_but_the_fields_that_it_only_reads() -> None:
    one, two, three = (Slab(Space.TAPE, 10) for _ in range(3))
    assert Operation(Code.LINEAR, None, [one, 4, None, False, 1, two, 4, three]).written() == [one]
    assert Operation(Code.OUTER, None, [4, 4, At(one), 4, 0, 1, two, three]).written() == [one]
    assert Operation(Code.ADD_ROWS, None, [one, 4, two]).written() == [two]
    assert Operation(Code.TURN, None, [4, one, two]).written() == [one, two]


@pytest.mark.parametrize(("columns", "whole"), [(0, 0), (1, 32), (32, 32), (33, 64)])
def test_whole_blocks(columns: int, whole: int) -> None:
    assert padded(columns) == whole
