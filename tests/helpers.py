"""What tests in several folders share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest

from icy.records.load import load_records
from icy.records.long_table import LONG
from icy.records.record import Record, record_key

TINY: dict[str, Any] = {
    "meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 2, "target": 0.6, "settings": {"check_every": 20},
}  # fmt: skip
"""Arguments of a probe that takes a second."""

SMALL: dict[str, Any] = {
    "model": ["sender/FC1L", "sender/HierZero:RNN"], "grammar": "perm", "quick": True, "settings": {"check_every": 20},
    "target": 0.6, "cap": 3,
}  # fmt: skip
"""Arguments of a sweep over two models."""

NUMBERS = (
    "model",
    "representation",
    "protocol",
    "hidden_size",
    "grammar",
    "seed",
    "steps",
    "accuracy",
    "curve",
    "reason",
)
"""Fields of a record that depend on its configuration alone."""


def mark_others(mark: str, cases: Iterable[Any], in_default: Callable[[Any], bool]) -> list[Any]:
    """Return cases for `parametrize`. All cases outside the default suite carry a mark, such as "native"."""

    def case(values: Any) -> Any:
        marks = [] if in_default(values) else [getattr(pytest.mark, mark)]
        return pytest.param(*(values if isinstance(values, tuple) else (values,)), marks=marks)

    return [case(values) for values in cases]


VARYING = ("seconds", "cpu_seconds", "finished", "filed", "git")
"""Fields of a record that differ from run to run. Each process asks git by itself: files may change in between."""


def all_numbers(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a folder without what differs from run to run, sorted."""
    found = [{n: v for n, v in record.items() if n not in VARYING} for record in load_records(folder)]
    return sorted(found, key=lambda record: record["key"])


def numbers(records: Any) -> list[dict[str, Any]]:
    """Return the fields in `NUMBERS` of every record, sorted."""
    return sorted(({n: r.get(n) for n in NUMBERS} for r in records), key=lambda r: json.dumps(r, sort_keys=True))


def record(grammar: str, seed: int, ratio_steps: int | None, baseline: int = 100, **changes: Any) -> dict[str, Any]:
    """A record as the store holds it, for an acquisition ratio of steps / baseline."""
    made = {
        "key": f"{grammar}{seed}", "model": "sender/FC2L", "side": "sender", "grammar": grammar, "seed": seed,
        "representation": "soft", "meanings": "5x10", "vocab_size": 4, "word_length": 4, "hidden_size": 128,
        "protocol": "acquire", "target": 0.8, "cap": 20, "preset": "default", "measure": "ratio", "reason": "target",
        "failed": False, "error": None, "steps": ratio_steps, "baseline_steps": baseline, "accuracy": 0.81, "curve": [],
        "parameters": {"true": 10, "published": 12}, "seconds": 1.0,
        "config": {"grammar": grammar, "seed": seed, "settings": {"round_ratio": False}, "options": {}},
    }  # fmt: skip
    return {**made, **changes}


def on_file(grammar: str = "rot", seed: int = 123, **changes: Any) -> Record:
    """A record that can be read from a file.

    Args:
        grammar: and
        seed: as of `record`.
        **changes: further fields; those of the configuration are changed there too, and `versions` are added to.
    """
    options, settings = changes.pop("options", {}), {"round_ratio": False, "check_every": 50}
    made = {**record(grammar, seed, 150), **changes}
    return readable({**made, "config": {"settings": settings, "options": options}})


def readable(record: Any) -> Record:
    """A record with all that one on file has: its key is that of its configuration and versions."""
    own = {"model": "1", "grammar": "1", "protocol": "1", **record.get("versions", {})}
    config = {**record["config"], **{name: record[name] for name in CONFIGURATION}}
    config.pop("key", None)
    made = {"finished": "2026-01-01T00:00:00+00:00", **record, "config": config}
    about = {"icy": "0.2", "python": "3.11"}
    key = record_key(config, {name: version for name, version in own.items() if name not in about})
    return cast(Record, {**made, "key": key, "versions": {**about, **own}})


CONFIGURATION = (
    *("model", "grammar", "seed", "meanings", "vocab_size", "word_length", "hidden_size", "representation"),
    *("protocol", "target", "cap"),
)

SETTING = {
    "representation": "soft", "meanings": "5x10", "vocab_size": 4, "word_length": 4, "hidden_size": 128,
    "protocol": "budget", "target": 0.99, "cap": 1.0, "preset": "default", "settings": "", "options": "",
    "measure": "accuracy", "censored": False, "failed": False, "parameters": 100, "parameters_published": 120,
    "steps": 500,
}  # fmt: skip


def long(values: dict[str, dict[str, Any]], **changes: Any) -> pd.DataFrame:
    """A long table of models, grammars, and values over seeds from 123 on."""
    rows = []
    for model, grammars in values.items():
        for grammar, numbers in grammars.items():
            for seed, value in enumerate(numbers if isinstance(numbers, list) else [numbers], start=123):
                about = {"model": f"sender/{model}", "role": "sender", "grammar": grammar, "seed": seed, "value": value}
                rows.append({**SETTING, **about, "key": f"{model}{grammar}{seed}{changes}", **changes})
    return pd.DataFrame(rows).reindex(columns=list(LONG))


THREE: dict[str, dict[str, Any]] = {
    "A": {"concat": 1.0, "rot": [0.5, 0.7], "shufdet": 0.9, "perm": 1.0},
    "B": {"concat": 1.0, "rot": [0.8, 0.8], "shufdet": 0.95, "perm": 0.9},
    "C": {"concat": 1.0, "rot": [0.4, 0.4], "shufdet": 0.8, "perm": 0.8},
}
APART = {  # THREE with two seeds each, so that all models differ significantly
    model: {
        grammar: [mean - 0.005, mean + 0.005]
        for grammar, value in grammars.items()
        for mean in [sum(value) / 2 if isinstance(value, list) else value]
    }
    for model, grammars in THREE.items()
}
