"""Jobs: which protocols take a split."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icy.core.errors import InvalidSettingError
from icy.languages.splits import Split
from icy.training.job import Replicate
from tests.training.helpers import GENERALISE, holding_out, job, outcomes


def test_other_protocols_know_nothing_of_splits() -> None:
    with pytest.raises(InvalidSettingError, match="'generalise' needs a split"):
        job("sender/FC2L", [("concat", 1)], protocol=GENERALISE)
    with pytest.raises(InvalidSettingError, match="'budget' holds out no meanings"):
        job("sender/FC2L", [("concat", 1)], split=Split())
    plain, split = job("sender/FC2L", [("concat", 1)]), holding_out("sender/FC2L", [("concat", 1)], Split())
    assert split.config(Replicate("concat", 1)).keys() - plain.config(Replicate("concat", 1)).keys() == {
        "held_out",
        "split",
    }
    assert outcomes(replace(plain, baselines={1: 10}))["concat", 1].extra == {}
