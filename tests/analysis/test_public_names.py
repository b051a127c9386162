"""The public names of icy.analysis."""

from __future__ import annotations

import pytest

import icy.analysis
from icy.analysis.literature.catalogue import DATA


def test_public_names_of_analysis() -> None:
    assert icy.analysis.__all__ == dir(icy.analysis)
    for name in icy.analysis.__all__:
        assert getattr(icy.analysis, name) is getattr(icy.analysis, name)
        assert not (DATA.parents[1] / f"{name}.py").exists()  # a submodule would take the function's place
    with pytest.raises(AttributeError, match=r"No icy\.analysis attribute publishd"):
        getattr(icy.analysis, "publishd")  # noqa: B009
