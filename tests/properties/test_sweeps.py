"""Sweep files of any names and values: what fits is read as it stands, and all else is a sentence with its line."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from icy.config.requests import names
from icy.core.errors import IcyError
from icy.experiments.requests import SweepRequest
from icy.experiments.sweep import expand, read_sweep, sweep_request
from tests.properties.helpers import JSON, unless_refused

TEXTS = st.sampled_from(["sender/FC1L", "perm", "soft,gumb", "3x4", "x"])
NUMBERS = st.integers(1, 99)
FITS: dict[str, st.SearchStrategy[Any]] = {
    "model": TEXTS | st.lists(TEXTS, max_size=2),
    "grammar": TEXTS | st.lists(TEXTS, max_size=2),
    "representation": TEXTS | st.lists(TEXTS, max_size=2),
    "meanings": TEXTS | st.lists(TEXTS, max_size=2),
    "seeds": NUMBERS | st.lists(NUMBERS, max_size=3) | st.just("1-3"),
    "hidden": NUMBERS | st.lists(NUMBERS, max_size=3) | st.just("8,16"),
    "vocab-size": NUMBERS | st.lists(NUMBERS, max_size=3) | st.just("4,5"),
    "target": st.floats(0, 1) | st.integers(0, 1),
    "quick": st.booleans(),
    "retries": NUMBERS,
    "workers": NUMBERS,
    "out": TEXTS,
    "rerun": TEXTS,
    "set": st.dictionaries(st.sampled_from(["check_every", "learning_rate"]), st.integers(1, 9)),
}
WRONG: dict[str, st.SearchStrategy[Any]] = {
    "model": st.integers() | st.booleans() | st.just([1]) | st.just({"a": 1}),
    "grammar": st.integers() | st.booleans() | st.just([["perm"]]),
    "seeds": st.booleans() | st.floats(allow_nan=False) | st.just({"a": 1}) | st.just([True]),
    "hidden": st.booleans() | st.just([1.5]),
    "target": st.booleans() | TEXTS | st.just([0.5]),
    "workers": st.booleans() | TEXTS | st.floats(0.5, 0.75),
    "quick": TEXTS | st.integers(),
    "retries": TEXTS | st.booleans(),
    "out": st.integers() | st.just(["a"]),
    "rerun": st.just([1]) | st.booleans(),
    "settings": TEXTS | st.integers() | st.just([1]),
    "options": TEXTS | st.integers(),
    "plugin": st.integers() | st.just([5]),
    "kind": st.integers() | st.just(["e2e"]),
}


def toml(table: dict[str, Any]) -> str:
    """A table as lines of TOML; JSON is TOML, but for its tables."""
    return "".join(f"{name} = {_value(value)}\n" for name, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_value(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def some(strategies: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=strategies)


def read(text: str, suffix: str) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        file = Path(folder, f"sweep{suffix}")
        file.write_text(text, encoding="utf-8")
        return read_sweep(file)


@given(whole=some(FITS), parts=st.lists(some({n: s for n, s in FITS.items() if n in ("model", "seeds")}), max_size=2))
def test_what_fits_is_read_as_it_stands(whole: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    expected = {{"set": "settings"}.get(name, name.replace("-", "_")): value for name, value in whole.items()}
    expected |= {"parts": tuple(parts)} if parts else {}
    of_parts = "".join(f"[[sweep]]\n{toml(part)}" for part in parts)
    assert read(toml(whole) + of_parts, ".toml") == expected
    assert read(yaml.safe_dump(whole | ({"sweep": parts} if parts else {})), ".yaml") == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
@given(data=st.data())
def test_what_does_not_fit_is_told_with_its_line(name: str, data: st.DataObject) -> None:
    before, value = data.draw(some({n: s for n, s in FITS.items() if n != name})), data.draw(WRONG[name])
    before.pop("set", None) if name == "settings" else None
    for text, suffix in ((toml(before) + toml({name: value}), ".toml"), (_block({**before, name: value}), ".yaml")):
        with pytest.raises(IcyError, match=rf"sweep\{suffix}, line {len(before) + 1}: {name} must be .*, not ") as told:
            read(text, suffix)
        assert "\n" not in str(told.value)


def _block(table: dict[str, Any]) -> str:
    """A table as lines of YAML, of which JSON is a part."""
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in table.items())


@given(
    table=st.dictionaries(
        st.sampled_from([*names(SweepRequest), "sweep", "from", "shard", "sender", "steps"]) | st.text(max_size=4), JSON
    )
)
def test_names_and_values_of_any_kind(table: dict[str, Any]) -> None:
    table.pop("plugin", None)  # which would be a file to run
    found = unless_refused(lambda: read(yaml.safe_dump(table), ".yaml"))
    if found is not None:
        unless_refused(lambda: expand(sweep_request(**{"model": "sender/FC1L", **found})))
