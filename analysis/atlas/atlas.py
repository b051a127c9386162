"""The atlas: results of many models, and the placement of new results among them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from icy.analysis.order import LETTERS, Facts, Series, in_order
from icy.analysis.tables.references import equal_rows
from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.core.files import whole_file
from icy.core.machine import circumstances, now
from icy.core.registry import SIDES
from icy.core.text import counted
from icy.records.kinds import kind_of
from icy.records.load import ATLAS_FILE, Results, load_records, long_of, with_current_names
from icy.records.long_table import to_long
from icy.records.pack import is_pack

from .placement import Placement

if TYPE_CHECKING:
    from icy.records.record import Record


FILE = ATLAS_FILE  # file of the atlas that comes with icy
ABOUT = b"icy atlas"  # key of `Atlas.about` in the metadata of a file
# SETTING: columns in which rows must agree for their values to be comparable. MODEL: columns that identify a row of a
# setting.
SETTING = ["role", "representation", "protocol", "meanings", "vocab_size", "word_length", "target", "cap",
           "max_updates", "held_out", "split", "preset", "settings"]  # fmt: skip
MODEL = ["model", "hidden_size", "options"]


@dataclass(frozen=True, repr=False)
class Atlas:
    """Results of many models, which can be compared if their settings agree.

    Attributes:
        table: a row per replicate, in long form.
        about: dates, versions and devices of the runs.
        name: name of the atlas in tables and errors.

    Example:
        >>> import icy
        >>> atlas = icy.atlas()
        >>> sorted(atlas.table["role"].unique())
        ['receiver', 'sender']
    """

    table: pd.DataFrame
    about: Facts
    name: str = "atlas"

    @classmethod
    def load(cls, path: str | Path | None = None) -> Atlas:
        """Load an atlas.

        Args:
            path: a file that `save` wrote, a results folder or a pack; by default the atlas that comes with icy.

        Raises:
            StoreError: the file does not exist, or is not an atlas.
        """
        path = FILE if path is None else Path(path)
        if path.is_dir() or is_pack(path):
            return cls.of(load_records(path), path.stem)
        import pyarrow.parquet

        try:
            found = pyarrow.parquet.read_table(path)
            about = json.loads((found.schema.metadata or {})[ABOUT])
        except FileNotFoundError as error:
            raise StoreError(f"The atlas {path} does not exist.") from error
        except (OSError, KeyError, ValueError) as error:
            raise StoreError(
                f"{path} is not an atlas; `icy atlas --pack FOLDER --out FILE` makes an atlas of results."
            ) from error
        return cls(with_current_names(found.to_pandas()), about, path.stem)

    @classmethod
    def of(cls, records: Iterable[Record], name: str = "atlas") -> Atlas:
        """Make an atlas from records.

        Args:
            records: records of senders and receivers; failed runs and pairs are left out.
            name: name of the atlas, for tables and errors.

        Raises:
            StoreError: no record is a result of a sender or receiver.
        """
        probes = [r for r in records if not r["failed"] and kind_of(r).name == "probe"]
        if not probes:
            raise StoreError("An atlas needs results of senders or receivers; these records have none.")
        return cls(to_long(probes), _about(probes), name)

    def save(self, path: str | Path) -> Path:
        """Write the atlas to a parquet file.

        Args:
            path: the .parquet file.

        Raises:
            StoreError: the file cannot be written.
        """
        import pyarrow
        import pyarrow.parquet

        path = Path(path)
        table = pyarrow.Table.from_pandas(self.table, preserve_index=False)
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), ABOUT: json.dumps(self.about).encode()})
        try:
            with whole_file(path) as file:
                pyarrow.parquet.write_table(table, file, compression="zstd")
        except OSError as error:
            raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error
        return path

    def __post_init__(self) -> None:
        if missing := [name for name in SETTING if name not in self.table]:  # written by an older version of icy
            object.__setattr__(self, "table", self.table.assign(**dict.fromkeys(missing, math.nan)))

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row per replicate, in long form."""
        return self.table.copy()

    def __repr__(self) -> str:
        counts = f"{counted(len(self.table), 'run')} of {counted(self.table['model'].nunique(), 'model')}"
        return f"{self.name}: {counts}\n\n{self._overview().to_string(index=False)}"

    def _repr_html_(self) -> str:
        return self._overview().to_html(index=False)

    def _overview(self) -> pd.DataFrame:
        found = self.settings()
        return found.loc[
            :, [name for name in found if found[name].notna().any() and name not in ("settings", "preset")]
        ]

    def settings(self) -> pd.DataFrame:
        """Return a row per setting, with its numbers of models, grammars, seeds and runs."""
        groups = self.table.groupby(SETTING, dropna=False, sort=False)
        counts = groups.agg(
            models=("model", "nunique"),
            grammars=("grammar", "nunique"),
            seeds=("seed", "nunique"),
            runs=("seed", "size"),
        )
        return counts.reset_index().sort_values(["meanings", "protocol", "representation", "role"], kind="stable")

    def coverage(self) -> pd.DataFrame:
        """Return the number of seeds per setting and model (rows) and grammar (columns).

        A cell is missing if the side cannot use the grammar. Each setting has a row for every model of icy that works
        with its representation, measured or not, except families with options in their names.
        """
        from icy.core.registry import registry, without_choices

        parts = []
        for key, part in self.table.groupby(SETTING, dropna=False, sort=False):
            about: Facts = dict(zip(SETTING, key, strict=True))
            models = without_choices(registry.entries(about["role"]))
            zoo = [e.qualified for e in models if e.works_with(about["representation"])]
            counts = part.groupby(["model", "grammar"])["seed"].nunique().unstack(fill_value=0)
            counts = counts.reindex([*zoo, *(m for m in counts.index if m not in zoo)], fill_value=0)
            parts.append(counts[in_order(counts.columns)].assign(**about).reset_index())
        found = pd.concat(parts, ignore_index=True)
        grammars = in_order(str(name) for name in found if name not in ("model", *SETTING))
        found[grammars] = found[grammars].fillna(0).astype("Int64")
        for grammar in grammars:
            found[grammar] = found[grammar].where(found["role"].isin(_sides(grammar)) | found[grammar].gt(0))
        return found[[*SETTING, "model", *grammars]]

    def alike(self, long: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of the atlas that have the same setting as some results.

        Args:
            long: results in long form, of one setting.

        Raises:
            InvalidSettingError: the atlas has no results under this setting; the message lists its settings.
        """
        first = long.iloc[0]
        same = equal_rows(self.table, first, SETTING)
        if not same.any():
            side, settings = first["role"], self.settings()
            known = dict.fromkeys(_setting(row) for _, row in settings[settings["role"] == side].iterrows())
            raise InvalidSettingError(
                f"The {self.name} has no {side}s under {_setting(first)}; it has {'; '.join(known) or 'none'}. "
                "Use one of these settings, or compare with your own results folder."
            )
        return self.table[same]

    def place(self, result: Results) -> Placement:
        """Compare a result with the models of the atlas: its ranks and its nearest neighbors.

        Args:
            result: a ProbeResult, or its long table, of one setting.

        Raises:
            InvalidSettingError: the atlas has no results under this setting, or the result has several settings.
        """
        long = long_of(result)
        long = long[~long["failed"].astype(bool)]
        if not len(long):
            raise InvalidSettingError("All runs failed, so there is nothing to place.")
        if len(long[SETTING].drop_duplicates()) > 1:
            raise InvalidSettingError(
                "Rows of several settings (sides, representations, protocols, ...) cannot be placed together: place "
                "one setting at a time."
            )
        alike, measure = self.alike(long), str(long["measure"].iloc[0])
        long, alike = _labeled(long, alike)
        mine, others = _wide(long), _wide(alike)
        ratio, shared = measure == "ratio", [name for name in mine if name in others]
        cut = ratio and any(table.loc[table["grammar"].isin(shared), "censored"].any() for table in (long, alike))
        cap = float(long["cap"].iloc[0]) if ratio and long["cap"].notna().all() else math.inf
        about = _setting(long.iloc[0]), self.name, self.about
        return Placement(mine, others, measure, *about, cut, cap, long, alike)

    def places(self, result: Results) -> list[Placement]:
        """Return a placement for each setting of a result; see `place`.

        Args:
            result: a ProbeResult, or its long table.
        """
        long = long_of(result)
        good = long[~long["failed"].astype(bool)]
        return [self.place(part) for _, part in good.groupby(SETTING, dropna=False, sort=False)]


def atlas(path: str | Path | None = None) -> Atlas:
    """Load the atlas that comes with icy, or your own atlas (`Atlas.load`).

    Args:
        path: a file that `Atlas.save` wrote; by default the atlas that comes with icy.

    Returns:
        The atlas; its attribute `table` has a row per replicate.
    """
    return Atlas.load(path)


def _about(records: Sequence[Record]) -> Facts:
    """Return the dates, versions and devices of records."""
    return {
        **circumstances(records),
        "packed": now()[:10],
        "git": sorted({str(r.get("git")) for r in records if r.get("git")}),
        "runs": len(records),
        "hours": round(sum(r.get("seconds") or 0 for r in records) / 3600, 2),
    }


def _sides(grammar: str) -> tuple[str, ...]:
    """Return the sides that can use a grammar; both for an unknown grammar, such as a plug-in's."""
    from icy.grammars import grammar_sides

    try:
        return grammar_sides(grammar)
    except IcyError:
        return SIDES


def _setting(row: Series) -> str:
    """Return a setting as text."""
    parts = [f"{row['protocol']} to {row['target']:g}"]
    parts += [] if pd.isna(row["max_updates"]) else [f"{row['max_updates']} updates of each grammar"]
    parts += [str(row["representation"]), f"meanings {row['meanings']}"]
    parts += [f"{LETTERS[name]}={row[name]}" for name in ("vocab_size", "word_length")]
    parts += [f"{row['held_out']:g} held out ({row['split']})"] if not pd.isna(row["held_out"]) else []
    parts += [f"preset {row['preset']}"] if row["preset"] != "default" else []
    return ", ".join([*parts, *([row["settings"]] if row["settings"] else [])])


def _wide(long: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds: a row per label of a model (`_labeled`), a column per grammar."""
    table = long.pivot_table(index="label", columns="grammar", values="value", sort=False)
    return table[in_order(table.columns)].rename_axis("model")


def _labeled(*tables: pd.DataFrame) -> list[pd.DataFrame]:
    """Add the column `label`: the model with its options, and with the hidden size if it varies."""
    sizes = len({hidden for table in tables for hidden in table["hidden_size"]}) > 1
    found = []
    for table in tables:
        models = table[MODEL].itertuples(index=False)
        found.append(table.assign(label=[model_label(model, hidden, more, sizes) for model, hidden, more in models]))
    return found


def model_label(model: str, hidden: object, options: str, sizes: bool) -> str:
    """Return the name of a model with its options, and with its hidden size if `sizes`."""
    more = ", ".join([f"E={hidden}"] * sizes + [options] * bool(options))
    return f"{model} ({more})" if more else str(model)
