"""The long table, rebuilt from the records."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import icy
from icy.config.settings import TrainingSettings
from icy.records.long_table import SHARED, crossing_uncertainty, option_columns, resolution_of, to_long, write_tables
from icy.records.record import value_of
from icy.records.store import Store
from tests.helpers import record


def test_tables_are_rebuilt_from_the_records(tiny: object, tiny_folder: Path) -> None:
    paths = write_tables(Store(tiny_folder))
    csv, parquet = pd.read_csv(paths[0]), pd.read_parquet(paths[1])
    assert len(csv) == len(parquet) == 6
    assert list(csv.columns) == list(parquet.columns)
    assert csv["value"].tolist() == parquet["value"].tolist()


def checked(grammar: str, settings: dict[str, Any], **changes: Any) -> Any:
    found = record(grammar, 1, 100, **changes)
    found["config"]["settings"] |= settings
    return found


def test_resolution_on_a_grid_is_the_spacing_of_checks() -> None:
    every = {"check_every": 50}
    # A step between 50 and 100 updates, relative to a step between 0 and 50.
    assert resolution_of(checked("rot", every, baseline=50)) == pytest.approx(math.sqrt(((25 / 75) ** 2 + 1) / 3))
    assert resolution_of(checked("rot", every, baseline=5000)) == pytest.approx(
        math.sqrt(((25 / 75) ** 2 + (25 / 4975) ** 2) / 3)
    )
    crossed = {"crossing": 100.3, "baseline_crossing": 40.5, "steps": 101, "baseline": 42}
    growing = checked("rot", {"check_growth": 0.1}, **crossed)
    # A step between 94 and 103 updates, relative to a step between 39 and 42.
    assert resolution_of(growing) == pytest.approx(math.sqrt(((9 / 197) ** 2 + (3 / 81) ** 2) / 3))
    assert value_of(growing) == pytest.approx(100.3 / 40.5)


def test_only_ratios_have_a_resolution() -> None:
    every = {"check_every": 50}
    assert resolution_of(checked("concat", every)) == 0
    for changes in ({"reason": "cap"}, {"failed": True}, {"measure": "accuracy"}, {"baseline": 0}):
        assert math.isnan(resolution_of(checked("rot", every, **changes)))
    assert math.isnan(resolution_of(checked("rot", {})))  # a kind of job with its own checks


def test_resolution_is_noise_over_slope_of_both_runs() -> None:
    """Checks between 100 and 110 updates use 128 (a power of two) of 160 meanings, of 20 tokens each."""
    about = {"crossing": 105.0, "baseline_crossing": 105.0, "steps": 110, "baseline": 110, "target": 0.8}
    steep = checked("rot", {"check_growth": 0.1}, curve=[[91, 0.5], [100, 0.7], [110, 0.9]], **about)
    noise = math.sqrt(0.8 * 0.2 / 20 / 128)
    own = math.hypot(0.5, 0.5) * noise / 0.02 / 105
    assert float(crossing_uncertainty(steep, 105, TrainingSettings())) == pytest.approx(own)
    concat = checked("concat", {"check_growth": 0.1}, curve=[[91, 0.4], [100, 0.75], [110, 0.85]], **about)
    alike = own * 2 * own  # both reach the target between the same two checks, which use the same meanings
    assert resolution_of(steep, concat) == pytest.approx(math.sqrt(own**2 + (2 * own) ** 2 - 2 * SHARED * alike))
    later = {**concat, "curve": [[110, 0.4], [121, 0.75], [133, 0.85]]}
    apart = float(crossing_uncertainty(later, 105.0, TrainingSettings()))
    assert resolution_of(steep, later) == pytest.approx(math.hypot(own, apart))
    assert resolution_of(concat) == 0
    # Without the baseline's curve, its step is only known to be between 103 and 113 updates.
    assert resolution_of(steep) == pytest.approx(math.hypot(own, 10 / 216 / math.sqrt(3)))


def test_a_flat_curve_gives_a_larger_resolution() -> None:
    """The line begins five standard deviations of a reading below the target."""
    about = {"crossing": 105.0, "baseline_crossing": 105.0, "steps": 110, "target": 0.8}
    flat = checked("rot", {}, curve=[[83, 0.5], [91, 0.755], [100, 0.79], [110, 0.81]], **about)
    noise = math.sqrt(0.8 * 0.2 / 20 / 128)
    slope = np.polyfit([91, 100, 110], [0.755, 0.79, 0.81], 1)[0]
    found = float(crossing_uncertainty(flat, 105, TrainingSettings()))
    assert found == pytest.approx(math.hypot(0.5, 0.5) * noise / slope / 105)
    receiver = {**flat, "side": "receiver", "curve": [[91, 0.5], [100, 0.79], [110, 0.81]]}  # for 5 attributes
    slope = np.polyfit([91, 100, 110], [0.5, 0.79, 0.81], 1)[0]
    found = float(crossing_uncertainty(receiver, 105, TrainingSettings()))
    assert found == pytest.approx(math.hypot(0.5, 0.5) * 2 * noise / slope / 105)
    steps = [int(30 * 1.1**n) for n in range(15)]
    levels = [0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.76, 0.765, 0.77, 0.775, 0.78, 0.785, 0.79, 0.81]
    slows = checked("rot", {}, curve=[list(point) for point in zip(steps, levels, strict=True)], **about)
    slope = np.polyfit(np.log(steps[-8:]), levels[-8:], 1)[0] / 105
    found = crossing_uncertainty(slows, 105, TrainingSettings()).readings[steps[-2]]
    assert found <= noise / slope / 105
    assert found == pytest.approx((steps[-1] - 105) / (steps[-1] - steps[-2]) * noise / slope / 105)
    fixed = TrainingSettings(check_every=10)
    spacing = 10 / 210 / math.sqrt(3)
    on_grid = math.sqrt(0.8 * 0.2 / 20 / 1024) / 0.01 / 110
    steep = checked("rot", {}, curve=[[90, 0.6], [100, 0.75], [110, 0.85]], target=0.8)
    assert float(crossing_uncertainty(steep, 110, fixed)) == pytest.approx(math.hypot(on_grid, spacing))
    assert float(crossing_uncertainty({**steep, "curve": []}, 110, fixed)) == pytest.approx(spacing)


def test_the_long_table_finds_the_concat_run_of_a_seed(tiny: icy.ProbeResult) -> None:
    pairs = {(r["model"], r["grammar"], r["seed"]): r for r in tiny.records}
    rows = to_long(tiny.records).set_index(["model", "grammar", "seed"])["resolution"]
    for (model, grammar, seed), record_ in pairs.items():
        assert rows[model, grammar, seed] == resolution_of(record_, pairs[model, "concat", seed])


def test_a_cut_ratio_is_the_cap() -> None:
    # The last check may be a few percent after the cap.
    cut = checked("rot", {"check_growth": 0.05}, reason="cap", baseline_crossing=4.9)
    assert value_of(cut) == 20
    assert to_long([cut])["censored"].tolist() == [True]


def test_settings_without_a_column_distinguish_rows() -> None:
    """Games of 20 and of 40 updates differ only in their setup. All seeds of a game share a row."""

    def played(seed: int, steps: int, **more: Any) -> dict[str, Any]:
        config: dict[str, Any] = {"grammar": "rot", "seed": seed, "options": {}}
        config["settings"] = {"round_ratio": False, "setup": {"steps": steps, **more}}
        return record("rot", seed, 150, config=config)

    apart = [played(1, 20), played(1, 40), played(2, 40)]
    assert to_long(apart)["options"].tolist() == ["steps=20", "steps=40", "steps=40"]
    assert to_long([played(1, 20), played(2, 40)])["options"].tolist() == ["", ""]
    named = [played(1, 20, game={"kind": "near", "size": 2}), played(1, 20, game={"kind": "far", "size": 2})]
    assert to_long(named)["options"].tolist() == ["kind=near", "kind=far"]
    alike = [played(1, steps, game={"steps": steps + 1}) for steps in (2, 4)]
    assert list(option_columns(to_long(alike))) == ["settings.setup.game.steps", "settings.setup.steps"]
