"""Meanings that users pass: a space, or a table of the meanings that exist, and their frequencies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from icy.config.specs import EndToEndSpec, ProbeSpec
from icy.languages.frequencies import EQUAL, Frequencies, is_meanings_file, read_meanings

S = TypeVar("S", ProbeSpec, EndToEndSpec)


def with_space(spec: S) -> tuple[S, Frequencies | None]:
    """Return a spec with the space of its table of meanings, if it has one, and the frequencies of the meanings.

    Args:
        spec: a spec with one value along each axis.

    Returns:
        The spec, and the frequencies; None if all meanings exist and are drawn equally often.

    Raises:
        StoreError: the table cannot be read.
        InvalidSettingError: the table has no meanings, or the law of frequencies is not known.
    """
    law, found = spec.frequencies, Frequencies()
    if is_meanings_file(spec.meanings):
        space, found = read_meanings(cast(str | Path, spec.meanings))
        spec = replace(spec, meanings=space).with_given(spec.given)
    if law is not None:
        found = found.with_law(str(law))
    return spec, None if found in (Frequencies(), Frequencies(EQUAL)) else found
