"""Records come back from a folder as they were filed, and their key from whatever order they are written in."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icy.records.record import record_key
from icy.records.store import Store
from tests.helpers import on_file

NUMBERS = st.integers(0, 10**9)
SHARES = st.floats(0, 1)
PLAIN = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
CHANGED: dict[str, st.SearchStrategy[Any]] = {
    "steps": NUMBERS,
    "accuracy": SHARES,
    "curve": st.lists(st.tuples(NUMBERS, SHARES).map(list), max_size=4),
    "baseline_steps": NUMBERS,
    "seconds": st.floats(0, 1e9),
    "error": st.none() | st.text(max_size=20),
    "versions": st.fixed_dictionaries({"model": st.text(max_size=4), "grammar": st.text(max_size=4)}),
}
CONFIGS = st.dictionaries(st.text(max_size=6), PLAIN | st.text(max_size=6), min_size=1, max_size=5)


@given(changes=st.fixed_dictionaries({}, optional=CHANGED), seed=st.integers(0, 2**40))
def test_a_record_comes_back_as_it_was_filed(changes: dict[str, Any], seed: int) -> None:
    filed = on_file("rot", seed, **{"finished": "2026-01-01T00:00:00.000001+00:00", **changes})
    with TemporaryDirectory() as folder:
        Store(Path(folder)).put(filed)
        assert Store(Path(folder)).get(filed["key"]) == filed
        assert Store(Path(folder)).all_records() == [filed]


@given(config=CONFIGS, versions=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3), data=st.data())
def test_a_key_hangs_on_what_is_configured_alone(
    config: dict[str, Any], versions: dict[str, str], data: st.DataObject
) -> None:
    key = record_key(config, versions)
    order = data.draw(st.permutations(list(config)))
    assert record_key({name: config[name] for name in order}, versions) == key
    name, other = data.draw(st.sampled_from(order)), data.draw(PLAIN | st.text(max_size=6))
    same = config[name] == other and isinstance(config[name], bool) == isinstance(other, bool)
    assert (record_key({**config, name: other}, versions) == key) == same
