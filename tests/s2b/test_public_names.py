"""The public names of icy.s2b."""

from __future__ import annotations

import pytest

import icy.s2b


def test_icy_s2b_offers_what_it_says() -> None:
    assert {getattr(icy.s2b, name) is not None for name in icy.s2b.__all__} == {True}
    assert set(icy.s2b.__all__) <= set(dir(icy.s2b))
    with pytest.raises(AttributeError):
        _ = icy.s2b.evaluat
