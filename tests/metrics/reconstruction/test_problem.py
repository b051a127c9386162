"""What is to be reconstructed: the published vocabulary."""

from __future__ import annotations

from icy.metrics import Table
from icy.metrics.reconstruction_solvers import make_target
from tests.metrics.reconstruction.helpers import TWO, XOR


def test_the_published_vocabulary() -> None:
    """V + 2 symbols, used or not, of which the end of a message is one."""
    for messages, symbols in ((XOR, 4), ([(0, 9), (1,), (0,), (1, 1)], 12)):
        target = make_target(Table.of(TWO, messages), published=True)
        assert target.symbols == symbols
        assert target.tokens.max() < symbols
