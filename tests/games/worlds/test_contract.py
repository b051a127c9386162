"""The worlds of icy keep the contract."""

from __future__ import annotations

from typing import Any

from icy.testing import parametrize_with_checks


@parametrize_with_checks("world/*")
def test_worlds_of_icy_keep_the_contract(check: Any) -> None:
    check()
