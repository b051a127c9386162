"""Fixtures of the service: a small study, and a browser that visits it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icy.study.service import Study
from tests.study.service.helpers import study
from tests.study.service.web.helpers import Browser, browsing


@pytest.fixture
def of(tmp_path: Path) -> Study:
    return study(tmp_path)


@pytest.fixture
def browser(of: Study) -> Iterator[Browser]:
    with browsing(of) as found:
        yield found
