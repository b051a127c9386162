"""The table of end-to-end runs (Perkins21 tables 6 and 17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from icy.analysis.order import heading, in_order, setting, text_of
from icy.analysis.table_cells import TableCell, cell_of, conventions_of, undefined_notes, with_reason
from icy.config.settings import OPEN
from icy.core.errors import InvalidSettingError
from icy.records.load import Results
from icy.records.long_table import ROW, option_columns

from .bias import compared_notes
from .by_setting import failures, results_in, spread_note, updates_note
from .printed_table import BiasTable
from .references import numbered, pair_references

MEASURES = {  # columns of the long table in the order of rows, each with a note if it has values
    "sender_accuracy": "sender and receiver accuracy: on the language of pre-training",
    "receiver_accuracy": "",
    "end_to_end_accuracy": "",
    "worst_accuracy": "end-to-end accuracy of populations: mean over all pairings of a sender and a receiver",
    "sender_agreement": "sender agreement: mean share of equal tokens in the messages of two senders",
    "mean_length": "mean length: tokens before the end token, which is the start symbol; over meanings by frequency",
    "length_by_rank": "length by rank: Spearman's correlation of length with frequency rank; positive if frequent "
    "meanings have shorter messages",
    "topsim_before": "topsim before: before the game, of untrained models or after pre-training",
    "topsim": "",  # `_topsim_notes`
}
LABELS = {"end_to_end_accuracy": "end-to-end accuracy", "worst_accuracy": "worst pairing"}  # others have their heading


def end_to_end_table(results: Results, spread: str = "sd", *, compare: object = None, compared: str = "") -> BiasTable:
    """Make a table with a row per pair and measure, and a column per grammar of pre-training ("none" from scratch).

    Args:
        results: an EndToEndResult, or a DataFrame in long form as `icy.records.long_table.to_long` makes.
        spread: "sd", "sem" or "ci95".
        compare: "published", or the name of a published table, to print its values below each cell.
        compared: heading of published values.

    Returns:
        The table, with the mean and the spread over seeds in each cell.

    Raises:
        InvalidSettingError: an unknown spread, or `compare` is not a name.
        UnknownNameError: an unknown published table.
    """
    if not isinstance(compare, str | None):
        raise InvalidSettingError("End-to-end runs are compared only with published values.")
    long = numbered(results_in(results, spread))
    references = {} if compare is None else pair_references(long, compare)
    varying = [name for name in ROW if name != "model" and long[name].nunique(dropna=False) > 1]
    alike = columns_alike(long, varying)
    rows: list[tuple[list[str], dict[str, TableCell]]] = []
    row_numbers: list[int] = []
    for _, group in long.groupby(["model", *varying], sort=False, dropna=False):
        first = group.iloc[0]
        about = [str(first["model"]), *(text_of(first[name]) for name in alike), str(group["seed"].nunique())]
        used = conventions_of(group, "e2e")
        for measure in MEASURES:
            if (measure in group and group[measure].notna().any()) or measure == "end_to_end_accuracy":
                cells = {
                    str(g): replace(
                        with_reason(cell_of(part.assign(value=part[measure]), spread), part, measure),
                        reference=references.get((int(first["row"]), str(g), measure)),
                    )
                    for g, part in group.groupby("grammar", sort=False)
                }
                label, metric = LABELS.get(measure, heading(measure)), used.get(measure.removesuffix("_before"))
                rows.append(([*about, label if metric is None else metric.heading(label)], cells))
                row_numbers.append(int(first["row"]))
    labels = ["model", *(heading(name) for name in alike), "seeds", "measure"]
    return BiasTable(
        f"end to end: {setting(long, varying)}" if len(long) else "No results.",
        labels,
        in_order(long["grammar"]),
        rows,
        [*_notes(long, spread), *_companions(long, alike), *compared_notes(compare, references.values(), spread)],
        decimals=3,
        compared=compared or "published",
        row_numbers=row_numbers,
    )


def columns_alike(long: pd.DataFrame, names: Sequence[str]) -> dict[str, list[str]]:
    """Group columns that divide the rows in the same way; return the other columns of each group by its first.

    Example:
        >>> long = pd.DataFrame({"target": [0.8, 0.99, 0.8], "cap": [20, 9, 20], "most": [1, 1, 2]})
        >>> columns_alike(long, list(long))
        {'target': ['cap'], 'most': []}
    """
    groups: dict[bytes, list[str]] = {}
    for name in names:
        groups.setdefault(pd.factorize(long[name], use_na_sentinel=False)[0].tobytes(), []).append(name)
    return {first: others for first, *others in groups.values()}


def _companions(long: pd.DataFrame, alike: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note per value of the first column of a group (`columns_alike`), with the values of the others."""
    notes = []
    for name, others in alike.items():
        for _, first in long.drop_duplicates(name).iterrows() if others else ():
            texts = [f"{heading(other)} {text_of(first[other])}" for other in others if text_of(first[other]) != "-"]
            notes.append(f"{heading(name)} {text_of(first[name])}: {', '.join(texts)}")
    return notes


def _symbols_notes(long: pd.DataFrame) -> list[str]:
    """Return a note on the symbols that agents can say, if these may include the start symbol as another token."""
    ending = option_columns(long).get("max_length", pd.Series(None, long.index))
    played = long[long["representation"].isin(OPEN) & ending.isna()]
    sizes = sorted(set(played["vocab_size"].dropna().astype(int)))
    if not sizes:
        return []
    alone = option_columns(played, "settings").get("symbols", pd.Series("", played.index)).eq("V")
    if alone.all():
        return ["agents can say the V tokens, but not the start symbol (--symbols V)"]
    count = f"{sizes[0] + 1} symbols: {sizes[0]} tokens" if len(sizes) == 1 else "V + 1 symbols: V tokens"
    number = f" (number {sizes[0]})" if len(sizes) == 1 else ""
    where = ", except in rows with symbols=V" if alone.any() else ""
    return [f"agents can say {count} and the start symbol{number}{where}; --symbols V excludes the start symbol"]


def _topsim_notes(long: pd.DataFrame) -> list[str]:
    """Return notes on the conventions of topsim, and on the command that computes the same value."""
    used = conventions_of(long, "e2e").get("topsim")
    if used is None:
        return []
    populations = long.get("worst_accuracy", pd.Series(dtype=float)).notna()
    if populations.any():
        return [f"{used.note()}, of up to 512 meanings of the last evaluation; of populations, mean over senders"]
    if used.values.get("pairs") != "all":
        return [f"{used.note()}, of the messages of the last training batch (preset published)"]
    existing = " that exist" if "existing" in option_columns(long) else ""
    return [
        f"{used.note()}, of up to 512 meanings of the last evaluation",
        "the same topsim: icy metrics FOLDER -m topsim --as-reported, with --permutations 1000 also chance and p; "
        f"without --as-reported: by edit distance, of all meanings{existing}",
    ]


def _notes(long: pd.DataFrame, spread: str) -> list[str]:
    notes = [*spread_note(long, spread), *updates_note(long), *_symbols_notes(long)]
    for name, note in sorted(MEASURES.items(), key=lambda item: item[0] == "topsim_before"):
        known = long[name].notna() if name in long else pd.Series(dtype=bool)
        if known.any():
            notes += _topsim_notes(long) if name == "topsim" else [note] if note else []
        if name == "mean_length" and "soft" in set(long.loc[known[known].index, "representation"]):
            notes.append("with soft messages the receiver reads probabilities, so greedy messages may be shorter")
    return [*notes, *undefined_notes(long), *failures(long)]
