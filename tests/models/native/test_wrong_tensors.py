"""Nothing unchecked reaches native code: wrong arrays are refused, or converted to the right ones.

The same tests run under AddressSanitizer and UBSan in test_sanitizers.py, where a wrong read would end the process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from icy.config.settings import TrainingSettings
from icy.core.errors import IncompatibleError
from icy.core.native import address
from icy.core.noise import Noise, drawing_from
from icy.core.representations import SOFT
from icy.metrics.topographic import native as pairs
from icy.models.native import calls
from icy.models.native.calls import NativeModule
from icy.training.learners import supervised_loss
from icy.training.native import NativeLearner
from tests.cores import needs_native
from tests.helpers import mark_others
from tests.models.native.helpers import inputs_of, make

pytestmark = needs_native

REFUSED = (IncompatibleError, RuntimeError, ValueError, TypeError, IndexError)
REPLICATES, UPDATES, BATCH = 2, 3, 5


def misaligned(right: Tensor) -> Tensor:
    """Return the same numbers at an address that is not a multiple of their size."""
    if not right.numel():
        return right
    size = right.element_size()
    room = torch.zeros(right.numel() * size + 1, dtype=torch.uint8)
    array = np.frombuffer(room.numpy()[1:].data, dtype=right.numpy().dtype).reshape(right.shape)
    array[...] = right.numpy()
    return torch.from_numpy(array)


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "double": lambda x: x.double(),
    "half": lambda x: x.half(),
    "32-bit": lambda x: x.int(),
    "boolean": lambda x: x.bool(),
    "complex": lambda x: x.to(torch.complex64),
    "fewer": lambda x: x[..., :-1],
    "more": lambda x: torch.cat([x, x], -1),
    "empty": lambda x: x[..., :0],
    "half of it": lambda x: x[: len(x) // 2],
    "scalar": lambda x: x.flatten()[0],
    "another order": lambda x: x.transpose(0, -1),
    "every other": lambda x: torch.stack([x, x], -1)[..., 0],
    "expanded": lambda x: x.flatten()[:1].expand(x.shape),
    "misaligned": misaligned,
    "on meta": lambda x: x.to("meta"),
    "sparse": lambda x: x.to_sparse(),
    "huge": lambda x: torch.full_like(x, 2**40 if x.dtype == torch.int64 else 1),
    "negative": lambda x: -1 - x if x.dtype == torch.int64 else x,
}


KEPT = ("double", "half", "32-bit", "every other", "misaligned")  # changes that keep small whole numbers


def try_each(call: Callable[..., Any], arguments: list[Any], change: Callable[[Any], Any], same: bool = False) -> None:
    """Call a function with each of its arguments changed in turn; every call is refused, or ends.

    Args:
        call: the function.
        arguments: right ones.
        change: of an argument.
        same: whether the change keeps the numbers, so that a call that ends returns what the right one does.
    """
    right = call(*arguments) if same else None
    for which in range(len(arguments)):
        with contextlib.suppress(*REFUSED):  # also where such a change is not possible
            found = call(*(change(x) if i == which else x for i, x in enumerate(arguments)))
            assert not same or alike(found, right)


def alike(one: Any, other: Any) -> bool:
    """Return whether two results hold the same numbers."""
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, (Tensor, np.ndarray)):
        return bool(np.array_equal(np.asarray(one), np.asarray(other)))
    return bool(one == other)


def learner() -> NativeLearner:
    models = [make("sender", "HierZero:GRU") for _ in range(REPLICATES)]
    sample = inputs_of("sender")[None].expand(REPLICATES, -1, -1)
    loss = supervised_loss(SOFT, "sender")
    return NativeLearner(models, loss, TrainingSettings(), torch.device("cpu"), sample)


def training_batches(of: NativeLearner) -> list[Tensor]:
    one = inputs_of("sender")[:BATCH]
    inputs = one.expand(UPDATES, REPLICATES, *one.shape).contiguous()
    targets = torch.zeros(UPDATES, REPLICATES, len(one), of._training.places, dtype=torch.long)
    return [inputs, targets, torch.zeros(UPDATES, REPLICATES, dtype=torch.long)]


@pytest.mark.parametrize("change", CHANGES)
def test_training(change: str) -> None:
    of = learner()
    try_each(of.train, training_batches(of), CHANGES[change])


@pytest.mark.parametrize("what", ["_parameters", "_moments"])
@pytest.mark.parametrize("change", ["double", "half", "fewer", "half of it", "another order", "on meta"])
def test_parameters_of_a_learner(what: str, change: str) -> None:
    of = learner()
    data, inputs = training_batches(of), training_batches(of)[0][0]
    held = getattr(of, what)
    wrong = [CHANGES[change](x) for x in held] if isinstance(held, list) else CHANGES[change](held)
    setattr(of, what, wrong)
    with pytest.raises(REFUSED):
        of.train(*data)
    if what == "_parameters":
        with pytest.raises(REFUSED):
            of.scores(inputs)


@pytest.mark.parametrize("change", CHANGES)
def test_scores_and_counts(change: str) -> None:
    of = learner()
    inputs, targets, _ = (x[0] for x in training_batches(of))
    try_each(of.scores, [inputs], CHANGES[change], change in KEPT)
    try_each(of.right, [inputs, targets], CHANGES[change], change in KEPT)


def test_tokens_that_the_model_does_not_have() -> None:
    of = learner()
    inputs = training_batches(of)[0][0]
    with pytest.raises(IncompatibleError, match="Tokens must be 0 to"):
        of.scores(inputs + 100)


@pytest.mark.parametrize("side", mark_others("native", ["sender", "receiver"], lambda side: side == "receiver"))
@pytest.mark.parametrize("change", mark_others("native", CHANGES, lambda change: change in ("double", "fewer")))
def test_a_module_and_its_way_back(side: str, change: str) -> None:
    inputs = inputs_of(side)
    module = NativeModule(make(side, "HierZero:GRU" if side == "sender" else "Hier:GRU"), [inputs])

    def run(given: Tensor) -> None:
        with drawing_from(Noise(torch.zeros(1, dtype=torch.long))):
            module(given).sum().backward()

    try_each(run, [inputs], CHANGES[change])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_module_of_another_precision(dtype: torch.dtype) -> None:
    module = NativeModule(make("receiver", "Hier:GRU"), [inputs_of("receiver")]).to(dtype)
    with pytest.raises(IncompatibleError, match="float32"), drawing_from(Noise(torch.zeros(1, dtype=torch.long))):
        module(inputs_of("receiver"))


DRAWN = 9, 3, 2, 7, torch.tensor([3, 3])  # symbols, first batch, batches, meanings in each, values of each attribute


@pytest.mark.parametrize("change", CHANGES)
def test_draws(change: str) -> None:
    keys, rows = torch.arange(REPLICATES), torch.arange(REPLICATES) * 9
    tables = torch.zeros(18, 4, dtype=torch.uint8)

    def draw(*given: Any) -> None:
        calls.draw(calls.Drawing(*given, *DRAWN))

    try_each(draw, [keys, rows, tables], CHANGES[change], change in KEPT)


TABLES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "equal_columns": (pairs.equal_columns, [np.ones((5, 3), np.uint8), np.ones((7, 3), np.uint8)]),
    "levenshtein": (
        lambda *given: pairs.levenshtein(*given, 9),
        [
            *(np.ones((5, 3), np.uint16), np.full(5, 3, np.int32)),
            *(np.ones((7, 3), np.uint16), np.full(7, 3, np.int32)),
        ],
    ),
    "count_keys": (lambda keys: pairs.count_keys(keys, 9), [np.ones((5, 7), np.uint16)]),
    "count_permuted": (
        lambda y, orders, starts, others, x: pairs.PermutedCounts(y, orders, 9).count(3, starts, others, x),
        [
            *(np.ones((5, 5), np.uint8), np.ones((4, 5), np.int32)),
            *(np.array([0, 2, 7]), np.ones(7, np.int32), np.ones(7, np.uint16)),
        ],
    ),
}
OF_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "double": lambda x: x.astype(float),
    "64-bit": lambda x: x.astype(np.int64),
    "other bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "fewer": lambda x: x[..., :-1],
    "fewer rows": lambda x: x[:-1],
    "empty": lambda x: x[:0],
    "every other": lambda x: np.stack([x, x], -1)[..., 0],
    "another order": lambda x: np.asfortranarray(x),
    "descending": lambda x: -np.sort(-x.astype(np.int64)).astype(x.dtype),
    "largest": lambda x: np.full_like(x, np.iinfo(x.dtype).max),
    "least": lambda x: np.full_like(x, np.iinfo(x.dtype).min),
    "expanded": lambda x: np.broadcast_to(x.reshape(-1)[:1], x.shape) if x.ndim == 1 else x,
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("change", OF_ARRAYS)
def test_tables_of_pairs(name: str, change: str) -> None:
    same = change in ("double", "64-bit", "other bytes", "every other", "another order")
    try_each(*TABLES[name], OF_ARRAYS[change], same)


@pytest.mark.parametrize(
    ("first", "starts"), [(-1, [0, 7]), (5, [0, 7]), (0, [1, 7]), (0, [0, 8]), (0, [0, 9, 7]), (0, []), (0, [0] * 7)]
)
def test_pairs_of_rows_that_are_not_there(first: int, starts: list[int]) -> None:
    counts = pairs.PermutedCounts(np.ones((5, 5), np.uint8), np.ones((4, 5), np.int32), 9)
    with pytest.raises(IncompatibleError):
        counts.count(first, np.array(starts, np.int64), np.ones(7, np.int32), np.ones(7, np.uint16))


def test_the_sentence_says_what_is_needed() -> None:
    with pytest.raises(
        IncompatibleError, match=r"takes 'keys' as 4 contiguous numbers of int64 .*shape \[3\] of int32"
    ):
        address(torch.zeros(3, dtype=torch.int32), "int64", 4, "keys")
