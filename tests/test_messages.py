"""Messages use the singular where a count is one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

import icy
from icy.analysis.atlas.atlas import Atlas
from icy.analysis.plots import curves, heat
from icy.analysis.tables.bias import bias_table
from icy.core.errors import IcyError
from icy.experiments.results import ProbeResult
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.languages.table import Table, names_of_attributes
from icy.records.load import long_of
from tests.analysis.atlas.helpers import ABOUT
from tests.analysis.plots.helpers import record

ONE_RUN = ProbeResult([record("sender/FC2L", "rot", 1, curve=None)])
ONE_FAILED = ProbeResult([{**ONE_RUN.records[0], "failed": True, "accuracy": None, "error": None}])


MESSAGES: list[tuple[str, Callable[[], object]]] = [
    (", but 1 meaning and 2 messages were given", lambda: icy.metrics.posdis([[0]], [[0], [1]])),
    (
        "1 attribute needs as many names; 2 names were given",
        lambda: names_of_attributes(Table.of([[0], [1]], [[0], [1]]), ["a", "b"]),
    ),
    ("1 result has no learning curve (0 failed)", lambda: curves(ONE_RUN)),
    (
        "This plot has 1 panel (all results), and 2 axes were given",
        lambda: heat(ONE_RUN, axes=Figure().subplots(1, 2)),
    ),
    ("1 of 1 run failed", lambda: bias_table(long_of(ONE_FAILED))),
    ("atlas: 1 run of 1 model\n", lambda: Atlas(long_of(ONE_RUN), ABOUT)),
    ("messages of 1 token, vocabulary 4", lambda: icy.make_language("concat", "1x4", vocab_size=4, word_length=1)),
    ("has 1 attribute value; the given", lambda: MeaningSpace(1, 4).index(np.zeros((2, 3), dtype=int))),
    ("1 meaning is missing and 1 row repeats a meaning", lambda: Language.from_table([[0], [2], [2]], [[0], [1], [1]])),
]


def test_one_is_singular(subtests: pytest.Subtests) -> None:
    for expected, make in MESSAGES:
        with subtests.test(expected):
            try:
                shown = repr(make())
            except IcyError as error:
                shown = str(error)
            assert expected in shown
