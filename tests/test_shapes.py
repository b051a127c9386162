"""Tests check the shapes of arrays at every call of a public function of the packages in ROOMS."""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any, get_args, get_origin

import jaxtyping
import numpy as np
import pytest
import torch
from torch.autograd import Function

import icy
from icy.core.errors import InvalidSettingError
from icy.core.representations import cross_entropy
from icy.metrics.information import entropy
from tests.shapes import ROOMS, ShapeError, is_checked, is_private

# pandas and torch are imported when they are needed, by functions without shapes
LATE = ("pd.DataFrame", "pd.Series", "nn.Module", "torch.device", "Tensor", "csr_array")
TRITON = "icy.models.kernels.triton_kernels"  # which is imported only where Triton is
TOKENS = torch.zeros(3, 4, dtype=torch.int64)


def modules() -> list[ModuleType]:
    """Every module of the rooms."""
    rooms = [importlib.import_module(room) for room in ROOMS]
    below = [
        m.name
        for room in rooms
        for m in pkgutil.walk_packages(getattr(room, "__path__", ()), f"{room.__name__}.")
        if not m.name.endswith("._native")  # a library, not a module
        and (m.name != TRITON or find_spec("triton"))
    ]
    return rooms + [importlib.import_module(name) for name in below]


def functions() -> Iterator[tuple[str, Any]]:
    """Yield every function and method of the rooms with its name."""
    for module in modules():
        own = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
        own = [c for c in own if not issubclass(c, Function)]  # halves of autograd nodes, which torch calls
        for owner in (module, *own):
            for name, thing in vars(owner).items():
                if isinstance(thing, property):
                    thing = thing.fget
                thing = getattr(thing, "func", getattr(thing, "__func__", thing))  # a cached property; a class method
                if (
                    callable(thing)
                    and inspect.isfunction(inspect.unwrap(thing))
                    and thing.__module__ == module.__name__
                ):
                    path = f"{owner.__qualname__}.{name}" if isinstance(owner, type) else name
                    yield f"{module.__name__}.{path}", thing


def public_functions() -> dict[str, Any]:
    """Those without a private name in their path."""
    return {name: thing for name, thing in functions() if not any(map(is_private, name.split(".")))}


def bare_array(hint: Any) -> bool:
    """Whether a type is that of an array without a shape, or contains one."""
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return False
    if hint is torch.Tensor or np.ndarray in (hint, get_origin(hint)):
        return True
    return get_origin(hint) is not Callable and any(map(bare_array, get_args(hint)))


WRONG: dict[str, Callable[[], Any]] = {
    "method": lambda: icy.create_sender("FC2L", "2x3", message_length=4)(torch.zeros(3, dtype=torch.int64)),
    "function": lambda: entropy(np.zeros((3, 2), dtype=np.int64)),
    "class": lambda: icy.metrics.Table(np.zeros(3), np.zeros((3, 2), dtype=np.int64)),
    "two arguments that differ": lambda: cross_entropy(torch.zeros(3, 4, 5), TOKENS[:, :3]),
}


def test_a_wrong_shape_is_refused(subtests: pytest.Subtests) -> None:
    for name, call in WRONG.items():
        with subtests.test(name), pytest.raises(ShapeError):
            call()


def test_what_passed_once_is_checked_again_with_other_sizes() -> None:
    from icy.models.layers import rows_times

    matrix = torch.zeros(4, 5)
    for _ in range(2):
        assert rows_times(torch.zeros(3, 4), matrix).shape == (3, 5)
        with pytest.raises(ShapeError, match=r"layers.rows_times: matrix is .* not .*inputs outputs"):
            rows_times(torch.zeros(3, 6), matrix)


def test_a_wrong_result_is_refused() -> None:
    from icy.core.representations import Soft
    from icy.models.cells import SymbolFeedback

    class Summed(Soft):
        def feed_back(self, scores: Any, step: int = 0, training: bool = True) -> Any:
            return scores.sum(-1)

    scores = torch.zeros(3, 5)
    assert SymbolFeedback(5, 8, Soft()).seen(scores, 0).shape == (3, 5)
    with pytest.raises(ShapeError):
        SymbolFeedback(5, 8, Summed()).seen(scores, 0)


def test_what_users_get_wrong_is_still_answered_in_a_sentence() -> None:
    with pytest.raises(InvalidSettingError, match="message_length must be a whole number"):
        icy.create_sender("FC2L", "2x3", message_length="4")


def test_every_public_function_that_names_a_shape_is_checked() -> None:
    found = {name: thing for name, thing in public_functions().items() if is_checked(thing)}
    assert len(found) > 250
    assert {room for room in ROOMS for name in found if name.startswith(room)} == set(ROOMS)
    assert [name for name, thing in found.items() if not hasattr(thing, "__wrapped__")] == []


def test_every_public_function_with_arrays_names_their_shapes() -> None:
    public = public_functions().items()
    assert [name for name, thing in public if any(map(bare_array, thing.__annotations__.values()))] == []


def inherited(thing: Any) -> set[str]:
    """Names of the fields that the `__init__` of a dataclass has from other rooms, where annotations may be text."""
    plain = inspect.unwrap(thing)
    owner, _, method = plain.__qualname__.rpartition(".")
    made = getattr(inspect.getmodule(plain), owner, None)
    if method != "__init__" or not dataclasses.is_dataclass(made):
        return set()
    return {field.name for field in dataclasses.fields(made)} - set(vars(made).get("__annotations__", {}))


def test_no_annotation_is_text_where_it_would_be_checked() -> None:
    """Text may name a class that does not exist yet, or a type whose library is imported late."""
    from_future = [m.__name__ for m in modules() if "annotations" in vars(m)]
    assert set(from_future) <= {TRITON}  # to which Triton's interpreter adds it, when a kernel runs
    for name, thing in functions():
        text = {
            hint for n, hint in thing.__annotations__.items() if isinstance(hint, str) and n not in inherited(thing)
        }
        own = set(vars(inspect.getmodule(inspect.unwrap(thing))))
        assert [hint for hint in text - own if not hint.startswith(LATE)] == [], name
