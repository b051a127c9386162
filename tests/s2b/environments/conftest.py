"""Warnings are errors in the tests of environments."""

from __future__ import annotations

import warnings
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _strict() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*None decorators or wrappers.*")
        yield
