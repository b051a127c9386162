"""Names in the types of specs are those of icy's tables, and the stub files are current."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest

from icy.config import settings
from icy.config.protocols import PROTOCOLS
from icy.config.settings import PRESETS
from icy.core.registry import SIDES
from icy.core.representations import REPRESENTATIONS
from icy.core.representations.quantized import NORMALISATIONS
from icy.experiments.trackers import TRACKERS
from icy.languages.splits import SPLITS
from icy.records.store import RERUN
from icy.s2b.settings import COMPATS, Compat
from tests import stubs

LITERALS: list[tuple[Any, Iterable[str]]] = [
    (settings.ProtocolName, PROTOCOLS),
    (settings.RepresentationName, REPRESENTATIONS),
    (settings.PresetName, PRESETS),
    (settings.SplitName, SPLITS),
    (settings.SideName, SIDES),
    (settings.Rerun, RERUN),
    (settings.TrackerName, TRACKERS),
    (settings.NormalisationName, NORMALISATIONS),
    (Compat, COMPATS),
]


def test_literals_have_the_names_of_their_tables(subtests: pytest.Subtests) -> None:
    for literal, table in LITERALS:
        with subtests.test(str(literal)):
            assert sorted(get_args(literal)) == sorted(table)


@pytest.mark.parametrize(("path", "source"), stubs.stubs().items(), ids=lambda value: Path(value).stem[:20])
def test_stubs_are_current(path: Path, source: str) -> None:
    assert path.read_text() == stubs.formatted(source), "run `python -m tests.stubs`"
