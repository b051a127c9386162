"""The explorer of the atlas, as data."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import icy
from icy.analysis.atlas.atlas import Atlas
from icy.analysis.report.explorer import explorer_page, explorer_settings, further_choices
from icy.records.load import LONG
from tests.analysis.atlas.helpers import ABOUT, long

from .helpers import trained_otherwise


@pytest.fixture(scope="module")
def settings() -> list[dict[str, object]]:
    return explorer_settings(icy.atlas())


@pytest.mark.slow
def test_every_model_of_the_atlas_is_there_with_its_means(settings: list[dict[str, object]]) -> None:
    table = icy.atlas().table
    good = table[~table["failed"].astype(bool)]
    found = {
        (*one["setting"].values(), model["label"], grammar): mean  # type: ignore[attr-defined]
        for one in settings
        for model in one["models"]  # type: ignore[attr-defined]
        for grammar, mean in model["means"].items()
    }
    means = (
        good.dropna(subset=["value"]).groupby([*_setting(settings), "model", "grammar"], dropna=False)["value"].mean()
    )
    assert len(found) == len(means)
    assert sorted(found.values()) == pytest.approx(sorted(means))


def _setting(settings: list[dict[str, object]]) -> list[str]:
    names = list(settings[0]["setting"])  # type: ignore[call-overload]
    assert set(names) <= set(LONG)
    return names


@pytest.mark.slow
def test_principal_components_are_orthogonal_and_explain_most(settings: list[dict[str, object]]) -> None:
    first = settings[0]
    by_name = {axes["name"]: axes for axes in first["axes"]}  # type: ignore[attr-defined]
    weights = np.array(by_name["principal components"]["weights"])
    assert weights @ weights.T == pytest.approx(np.eye(2), abs=1e-9)
    published = np.array(by_name["compositional and noise"]["weights"])
    assert published.sum(1) == pytest.approx([1, 1])


@pytest.mark.slow
def test_the_page_is_one_file(settings: list[dict[str, object]]) -> None:
    text = explorer_page(icy.atlas())
    assert "src=" not in text.split("<script>")[0]
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert [one["setting"] for one in data["settings"]] == [one["setting"] for one in settings]


@pytest.mark.slow
def test_columns_of_settings_can_group_rows() -> None:
    atlas = trained_otherwise()
    settings = explorer_settings(atlas)
    assert further_choices(settings) == ["settings"]  # check_every=50 beside the default
    text = explorer_page(atlas)
    assert '<label>Training settings <select data-choice="settings">' in text
    alike = [one for one in settings if one["setting"]["settings"] == ""]
    assert further_choices(alike) == []
    numbers = [{"setting": {**alike[0]["setting"], "held_out": share}} for share in (None, 0.25)]
    assert further_choices(numbers) == ["held_out"]


@pytest.mark.slow
def test_every_model_says_where_its_architecture_is_from(settings: list[dict[str, object]]) -> None:
    found = {model["label"]: model["source"] for one in settings for model in one["models"]}  # type: ignore[attr-defined]
    assert [label for label, source in found.items() if not source] == []
    assert "Icy22" in found["sender/HierZero:GRU"]


@pytest.mark.slow
def test_default_settings_of_probe_come_first(settings: list[dict[str, object]]) -> None:
    first = [(one["setting"]["protocol"], one["setting"]["meanings"]) for one in settings]  # type: ignore[index]
    assert first[0] == ("acquire", "5x10")
    assert first.index(("acquire", "3x4")) > first.index(("acquire", "5x10"))


@pytest.mark.slow
def test_updates_are_shown_only_for_ratios() -> None:
    budget = long({"A": {"concat": 1.0, "rot": 3.0}}).assign(censored=[False] * 3 + [True], steps=[100, 90, 200, 420])
    budget["crossing"] = [95.5, 85.5, 190.5, math.nan]
    (ratios,) = explorer_settings(Atlas(budget, ABOUT))
    assert ratios["models"][0]["updates"] == {"concat": "90", "rot": "> 305"}
    (accuracies,) = explorer_settings(Atlas(budget.assign(measure="accuracy", protocol="budget"), ABOUT))
    assert accuracies["models"][0]["updates"] == {}
    assert "The updates are below" in explorer_page(Atlas(budget, ABOUT))
    (of_budget,) = explorer_settings(Atlas(budget.assign(cap=math.nan, max_updates=1000), ABOUT))
    assert of_budget["setting"]["max_updates"] == 1000
