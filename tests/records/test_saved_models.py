"""Records with saved models, chosen by their facts."""

from __future__ import annotations

from pathlib import Path

import pytest

import icy
from icy.core.errors import StoreError, UnknownNameError
from icy.records.saved_models import records_with_models, require_one

QUICK = {"quick": True, "workers": 1, "progress": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a probe with saved models, and of a probe without."""
    found = tmp_path_factory.mktemp("kept")
    icy.probe("sender/FC1L", "perm", seeds=2, target=0.3, keep_models=True, out=found, **QUICK)  # type: ignore[misc]
    icy.probe("sender/FC1L", "rot", seeds=1, target=0.3, out=found, **QUICK)  # type: ignore[misc]
    return found


def test_records_with_models_are_found(folder: Path) -> None:
    where, found = records_with_models(folder, "probe", "model", grammar="perm")
    assert where == folder
    assert sorted(record["seed"] for record in found) == [123, 124]
    assert len(records_with_models(folder, "probe", "model", hidden_size=32, seed=124)[1]) == 2  # concat too


def test_unmatched_choices_give_an_error(folder: Path) -> None:
    with pytest.raises(StoreError, match=r"has no model with grammar=rot"):
        records_with_models(folder, "probe", "model", grammar="rot")
    with pytest.raises(UnknownNameError, match=r"No field of the saved model is called 'sed'; did you mean seed"):
        records_with_models(folder, "probe", "model", sed=1)
    with pytest.raises(StoreError, match="with saved weights"):
        records_with_models(folder, "s2b", "agent")


def test_ambiguous_choices_name_their_differences(folder: Path) -> None:
    _, found = records_with_models(folder, "probe", "model")
    with pytest.raises(
        StoreError, match=r"4 saved models that match, .* grammar \(.*\) and seed \(123, 124\); choose one, as in gram"
    ):
        require_one(folder, found)
    _, alone = records_with_models(folder, "probe", "model", grammar="perm", seed=124)
    require_one(folder, alone)
    with pytest.raises(StoreError, match=r"with seed=9; available: seed \(123, 124\)\.$"):
        records_with_models(folder, "probe", "model", seed=9)
    assert records_with_models(folder, "probe", "model", channel="soft")[1] == found  # the name of this field in games
