"""Cores are created by name, with their sizes and options. tests/testing/test_contracts.py runs their contract."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from icy.core.errors import InvalidSettingError, PluginError, UnknownNameError
from icy.core.registry import CORE, Entry, registry
from icy.s2b.agents.cores import Parts, make_core


def test_default_sizes_match_the_papers() -> None:
    outputs = {entry.name: make_core(entry.name, 20).output for entry in registry.entries(CORE)}
    assert outputs == {
        "LSTM": 128, "LSTM-512": 512, "DNC": 128, "ESBN": 256, "ESBN-strict": 512, "DCEM": 256, "Transformer": 128,
        "PairMemory": 64,
    }  # fmt: skip
    core: Any = make_core("DCEM", 245, parts=Parts(32, 32, 10))
    assert core.above.layers[0].input_size == 1009  # s2b-facts 10.5
    assert core.latent_width == 512 + 6 * 42


def test_capacity_is_passed_to_cores_with_this_argument() -> None:
    assert [m.shape[1] for m in make_core("ESBN", 6, capacity=9).start(2)[-3:-1]] == [9, 9]
    assert make_core("LSTM", 6, capacity=9).start(2)[0].shape == (2, 256)


@pytest.mark.parametrize(
    ("name", "options", "error", "said"),
    [
        ("LSTMM", {}, UnknownNameError, "did you mean LSTM.*`icy list cores`"),
        ("LSTM", {"sizes": ()}, InvalidSettingError, "at least one layer"),
        ("LSTM", {"size": 3}, PluginError, "core/LSTM cannot be made"),
        ("DNC", {"slots": 0}, InvalidSettingError, "slots"),
        ("DCEM", {"parts": Parts(4, 3)}, InvalidSettingError, "does not fit an input of 6"),
        ("DCEM", {"parts": Parts(0, 3)}, InvalidSettingError, "does not fit an input of 6"),
        ("Transformer", {"heads": 3}, InvalidSettingError, r"must be a multiple of 2 \* 3 \(heads\)"),
        ("ESBN", {"capacity": 0}, InvalidSettingError, "capacity"),
    ],
)
def test_a_core_that_cannot_be_created_raises_a_clear_error(
    name: str, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        make_core(name, 6, **options)


def test_a_factory_must_return_a_core() -> None:
    entry = Entry(CORE, "linear", lambda width: torch.nn.Linear(width, 3), "", "", origin=__name__)
    with registry.holding(entry), pytest.raises(PluginError, match="returns a Linear; derive it from"):
        make_core("linear", 6)
