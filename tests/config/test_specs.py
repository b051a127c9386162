"""Specifications: what `quick` changes."""

from __future__ import annotations

from icy.config.specs import ProbeSpec


def test_quick_only_changes_options_that_are_not_given() -> None:
    spec = ProbeSpec.asked(model="x", quick=True, hidden=128)
    assert (spec.meanings, spec.word_length, spec.hidden) == ("3x4", 2, 128)
    assert ProbeSpec.asked(model="x").meanings == "5x10"
