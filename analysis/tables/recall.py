"""The recall task as a table: accuracies of trained agents next to what agents without memory score."""

from __future__ import annotations

from typing import Any

from icy.analysis.cells import SPREADS, cell_of, checked_spread
from icy.core.errors import InvalidSettingError
from icy.core.text import counted
from icy.records.load import Results, long_of

from .bias import failures
from .options import shown_settings, told_options, whole_text
from .table import BiasTable, Line

MEASURES = {  # columns of the long table, in per cent, and their headings
    "value": "second shot",
    "first_shot": "first shot",
    "chance": "chance",
    "no_memory": "no memory",
    "one_game": "one game",
    "reconstructed": "reconstructed",
}


def recall_table(results: Results, spread: str = "sd", *, compare: Any = None, compared: str = "") -> BiasTable:
    """Make a table with a row per agent and representation of stimuli, and a column per measure, over seeds.

    Args:
        results: of trainings in the recall task (`icy s2b recall`).
        spread: "sd", "sem" or "ci95".
        compare: None, as there is nothing to compare with.
        compared: likewise.

    Raises:
        InvalidSettingError: another spread, or something to compare with.
    """
    checked_spread(spread)
    if compare is not None:
        raise InvalidSettingError("Agents of the recall task are compared with nothing; leave out compare (--compare).")
    long = long_of(results, empty=True)
    long = long.assign(further=[", ".join(shown_settings(told_options(str(text)))) for text in long["options"]])
    labels = {"model": "agent", "grammar": "stimuli"}
    labels |= {"preset": "preset"} if long["preset"].nunique() > 1 else {}
    labels |= {"further": "settings"} if (long["further"] != "").any() else {}
    headings = {name: said for name, said in MEASURES.items() if name in long and long[name].notna().any()}
    lines: list[Line] = []
    for key, part in long.groupby(list(labels), sort=False, dropna=False):
        cells = {
            said: cell_of(part.assign(value=100 * part[name].astype(float)), spread) for name, said in headings.items()
        }
        lines.append(([*map(whole_text, key), str(part["seed"].nunique())], cells))
    notes = [
        "second shot, first shot: accuracy, %, means over episodes; chance: of all answers at random",
        "no memory: an agent that always gives the answer that is right most often; one game: an agent that remembers "
        "the present stimulus alone (in episodes of the same evaluation)",
        "stimuli: ohe, one-hot; scs, continuous",
    ]
    if long["seed"].nunique() > 1:
        notes.append(f"mean ± {SPREADS[spread][0]}")
    played = long[~long["failed"].astype(bool)]
    for name, part in played.groupby("model", sort=False):
        updates, seen = int(part["steps"].max()), part["observations"].mean()
        notes.append(f"{name}: {counted(updates, 'update')}, {seen:.0f} observations on average")
    return BiasTable(
        "recall", [*labels.values(), "seeds"], list(headings.values()), lines, [*notes, *failures(long)], decimals=1,
        spread=spread,
    )  # fmt: skip
