"""Atlases for tests of the explorer."""

from __future__ import annotations

import pandas as pd

import icy
from icy.analysis.atlas.atlas import Atlas


def trained_otherwise() -> Atlas:
    """Senders of the small space, with ratios twice as large under check_every=50, and with GUMB only so."""
    whole = icy.atlas()
    setting = {"role": "sender", "protocol": "acquire", "representation": "soft", "meanings": "3x4", "settings": ""}
    usual = whole.table[(whole.table[list(setting)] == pd.Series(setting)).all(axis=1)]
    otherwise = usual.assign(settings="check_every=50", value=2 * usual["value"])
    gumb = otherwise.assign(representation="gumb")
    return Atlas(pd.concat([usual, otherwise, gumb], ignore_index=True), whole.about)
