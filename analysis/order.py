"""The order of grammars, models and other values in tables and plots."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import pandas as pd

from icy.core.registry import SIDES
from icy.core.text import counted, listed, natural
from icy.languages.names import is_language, short_name
from icy.records.long_table import EXTRA, ROW, option_columns
from icy.training.combinations import SAME_FOR_RECEIVERS

Facts: TypeAlias = dict[str, Any]  # values of several types by name: arguments, or the parts of a JSON object
Row: TypeAlias = Mapping[Any, Any]  # values of a row by column, as in `DataFrame.to_dict("records")`
Series: TypeAlias = "pd.Series[Any]"  # a row or a column of a DataFrame
SortKey: TypeAlias = tuple[Any, ...]


ORDER = ("concat", "perm", "proj", "pairsum", "rot", "shuf", "shufdet", "hol")  # grammars, as in the papers' tables
# Grammars that an architecture with a compositional bias learns well, and badly (arrows of Perkins21's tables 9 to 11).
COMPOSITIONAL = ("shuf", "shufdet")
NOISE = ("rot", "pairsum", "proj")
# The order of values of columns; other columns are in alphabetical order.
ORDERED = {
    "representation": ("soft", "gumb", "discr", "gs", "qt", "cb"),
    "role": SIDES,
    "preset": ("default", "published"),
}


def in_order(grammars: Iterable[str]) -> list[str]:
    """Return the distinct grammars: first in the order of the papers' tables, then others in alphabetical order."""
    return sorted(set(grammars), key=lambda g: (ORDER.index(g) if g in ORDER else len(ORDER), g))


_models: ContextVar[Sequence[str]] = ContextVar("_models", default=())


@contextmanager
def models_in_order(models: Iterable[str]) -> Iterator[None]:
    """Plot models in this order within a `with` block; other models follow, sorted by name."""
    before = _models.set(list(dict.fromkeys(models)))
    try:
        yield
    finally:
        _models.reset(before)


def place_of_model(model: str) -> SortKey:
    """Return a sort key for a model in plots: its place in `models_in_order`, else its name."""
    models = _models.get()
    return models.index(model) if model in models else len(models), natural(model)


def without_hashes(results: pd.DataFrame) -> pd.DataFrame:
    """Shorten the names of languages and of tables of meanings for a plot: "emerged@1a2b3c4d5e6f7081" to "emerged".

    A name keeps its hash if another language or a grammar, or another table, has the same short name.

    Args:
        results: the long table, or curves.
    """
    labels = _labels(set(results["grammar"]), ORDER)
    shown = results.assign(grammar=results["grammar"].replace(labels)) if labels else results
    tables = option_columns(results).get("existing", pd.Series(dtype=object)).dropna()
    for name, label in _labels(set(tables), ()).items():
        shown = shown.assign(options=shown["options"].str.replace(name, label, regex=False))
    return shown


def _labels(names: Collection[str], others: Sequence[str]) -> dict[str, str]:
    """Return the short names of languages or tables that no other name shares."""
    uses = Counter([*map(short_name, names), *others])
    return {name: short_name(name) for name in names if is_language(name) and uses[short_name(name)] == 1}


def place_of(name: str, value: Any) -> tuple[int, str]:
    """Return a sort key for a value of a column: by ORDERED, then text in alphabetical order.

    Args:
        name: column of the long table.
        value: value in this column.
    """
    usual = ORDERED.get(name, ())
    return usual.index(value) if value in usual else len(usual), value if isinstance(value, str) else ""


# -- names of columns of the long table, and their values, as text for titles, labels and axes -------------------------


SHARED = {"meanings": "meanings {}", "representation": "{}", "preset": "preset {}", "settings": "{}", "options": "{}"}
LETTERS = {"vocab_size": "V", "word_length": "w", "hidden_size": "E"}  # the papers' letters for sizes


def heading(name: str) -> str:
    """Return the name of a column with spaces, as in "word length"."""
    return name.replace("_", " ")


def text_of(value: Any, missing: str = "-") -> str:
    """Return a setting as text: floats without trailing zeros, `missing` for missing or empty values."""
    return missing if pd.isna(value) or value == "" else f"{value:g}" if isinstance(value, float) else str(value)


def setting(long: pd.DataFrame, varying: Sequence[str] | None = None) -> str:
    """Return as text the meanings, sizes and other settings that all rows share.

    Args:
        long: rows with the columns of ROW, such as the long table, or curves.
        varying: columns in which rows differ; by default determined from `long`.
    """
    first = long.iloc[0]
    if varying is None:
        varying = [name for name in ROW if name not in long or long[name].nunique(dropna=False) > 1]
    known = {name: str(first[name]) for name in ROW if name not in varying and not pd.isna(first[name])}
    shown = {name: text for name, text in known.items() if text}
    meanings, *rest = [text.format(shown[name]) if name in shown else "" for name, text in SHARED.items()]
    sizes = ", ".join(f"{letter}={shown[name]}" for name, letter in LETTERS.items() if name in shown)
    return "; ".join(filter(None, [meanings, sizes, *rest]))


def range_text(values: pd.Series[int]) -> str:
    """Return the range of counts as text, such as "3-5", or "3" if all are equal."""
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}-{high}"


# -- runs that repeat others, because they differ only in a factor that their model does not have ----------------------


log = logging.getLogger(__name__)
FACTORS = ("hidden_size", "representation")


def without_repeats(results: pd.DataFrame) -> pd.DataFrame:
    """Return a long table without rows that trained the network of another row, with a warning.

    A model without a hidden layer has the same number of parameters and the same results at every hidden size, and a
    receiver has the same results under several representations. Other tables are returned as they are.
    """
    if not {"model", "grammar", "seed", "parameters", "steps", *FACTORS} <= set(results):
        return results
    names = [name for name in (*ROW, "role", "grammar", "seed", "parameters", "steps", "value", "accuracy", *EXTRA)
             if name in results and name != "hidden_size"]  # fmt: skip
    facts = results[names].astype(object)
    receivers = results["model"].astype(str).str.startswith("receiver/")
    facts["representation"] = facts["representation"].mask(
        receivers & facts["representation"].isin(SAME_FOR_RECEIVERS), SAME_FOR_RECEIVERS[0]
    )
    repeated = facts.duplicated() & ~results.duplicated([*names, "hidden_size"])
    if repeated.any():
        log.warning(
            "%s of %s left out: they repeat other runs, as their hidden size or representation has no effect.",
            *(counted(int(repeated.sum()), "run"), listed(sorted(set(results["model"][repeated].astype(str))))),
        )
    return results[~repeated]
