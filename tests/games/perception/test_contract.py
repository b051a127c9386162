"""The perceptions of icy keep the contract."""

from __future__ import annotations

from typing import Any

from icy.core.registry import PERCEPTION, registry
from icy.testing import parametrize_with_checks


@parametrize_with_checks("perception/*")
def test_perceptions_of_icy_keep_the_contract(check: Any) -> None:
    check()


def test_names() -> None:
    assert [entry.name for entry in registry.entries(PERCEPTION)] == ["conv4", "mlp"]
