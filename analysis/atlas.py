"""The atlas: the bias of the whole zoo, as icy measured it, and where a new model stands in it."""

from __future__ import annotations

import datetime
import html
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icy.errors import InvalidSettingError, StoreError
from icy.files import whole_file
from icy.reading import ATLAS_FILE, long_of

from .tables import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from icy.store import Record

FILE = ATLAS_FILE
ABOUT = b"icy atlas"  # the key of the file's own metadata
# What two rows must share for their numbers to be comparable; models, sizes of models and options are what differs.
SETTING = ["side", "representation", "protocol", "meanings", "vocab_size", "word_length", "target", "cap", "held_out",
           "split", "preset", "settings"]  # fmt: skip
ROW = ["model", "hidden_size", "options"]
NEIGHBOURS = 5
FEWEST = 2  # grammars that two rows must have in common, beside concat, to be near or far
NAMES = {"vocab_size": "V", "word_length": "w"}


@dataclass(frozen=True)
class Atlas:
    """Results of many models under the same settings.

    Attributes:
        table: a row per replicate, in long form.
        about: when, with what and on what they were made.
        name: what it is called.

    Example:
        >>> import icy
        >>> atlas = icy.atlas()
        >>> sorted(atlas.table["side"].unique())
        ['receiver', 'sender']
    """

    table: pd.DataFrame
    about: dict[str, Any]
    name: str = "atlas"

    @classmethod
    def load(cls, path: str | Path = FILE) -> Atlas:
        """The atlas that comes with icy, or another that `save` wrote; a results folder serves too.

        Raises:
            StoreError: there is none.
        """
        path = Path(path)
        if path.is_dir():
            from icy.results import ProbeResult

            return cls.of(ProbeResult.load(path).records, path.name)
        import pyarrow.parquet

        try:
            found = pyarrow.parquet.read_table(path)
            about = json.loads((found.schema.metadata or {})[ABOUT])
        except FileNotFoundError as error:
            raise StoreError(f"There is no atlas {path}.") from error
        except (OSError, KeyError, ValueError) as error:
            raise StoreError(
                f"{path} is no atlas; `icy atlas --pack FOLDER --save FILE` makes one of results."
            ) from error
        return cls(found.to_pandas(), about, path.stem)

    @classmethod
    def of(cls, records: Iterable[Record], name: str = "atlas") -> Atlas:
        """The atlas of some results; failed ones are left out.

        Raises:
            StoreError: there are none of one side alone.
        """
        from icy.long_table import to_long

        kept = [r for r in records if not r["failed"] and r["side"] != "pair"]
        if not kept:
            raise StoreError("There is no result of a sender or a receiver here, of which an atlas could be made.")
        return cls(to_long(kept), _about(kept), name)

    def save(self, path: str | Path) -> Path:
        """Write it to a parquet file.

        Raises:
            StoreError: it cannot be written.
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

    def to_dataframe(self) -> pd.DataFrame:
        """A row per replicate, in long form."""
        return self.table.copy()

    def settings(self) -> pd.DataFrame:
        """What was measured under which settings: a row per setting, with the numbers of models, grammars and seeds."""
        groups = self.table.groupby(SETTING, dropna=False, sort=False)
        counts = groups.agg(
            models=("model", "nunique"),
            grammars=("grammar", "nunique"),
            seeds=("seed", "nunique"),
            runs=("seed", "size"),
        )
        return counts.reset_index().sort_values(["meanings", "protocol", "representation", "side"], kind="stable")

    def coverage(self) -> pd.DataFrame:
        """What is there and what is missing: a row per setting and model of icy's own zoo that works with its
        representation, a column per grammar, with the number of seeds."""
        from icy.registry import registry

        parts = []
        for key, part in self.table.groupby(SETTING, dropna=False, sort=False):
            about: dict[str, Any] = dict(zip(SETTING, key, strict=True))
            zoo = [e.qualified for e in registry.entries(about["side"]) if e.works_with(about["representation"])]
            counts = part.groupby(["model", "grammar"])["seed"].nunique().unstack(fill_value=0)
            counts = counts.reindex([*zoo, *(m for m in counts.index if m not in zoo)], fill_value=0)
            parts.append(counts[in_order(counts.columns)].assign(**about).reset_index())
        found = pd.concat(parts, ignore_index=True)
        grammars = in_order(str(name) for name in found if name not in ("model", *SETTING))
        found[grammars] = found[grammars].fillna(0).astype(int)
        return found[[*SETTING, "model", *grammars]]

    def alike(self, long: pd.DataFrame) -> pd.DataFrame:
        """The part of the atlas under the settings of some results.

        Raises:
            InvalidSettingError: the atlas has nothing under these settings; the sentence says what it has.
        """
        first = long.iloc[0]
        same = np.ones(len(self.table), dtype=bool)
        for name in SETTING:
            value, column = first[name], self.table[name]
            same &= (column.isna() if pd.isna(value) else column.eq(value)).to_numpy()
        if not same.any():
            raise InvalidSettingError(
                f"The {self.name} has no {first['side']}s under {_said(first)}; it has {self._offers(first['side'])}. "
                "Give these settings, or compare with a results folder of your own."
            )
        return self.table[same]

    def _offers(self, side: str) -> str:
        settings = self.settings()
        return (
            "; ".join(dict.fromkeys(_said(row) for _, row in settings[settings["side"] == side].iterrows())) or "none"
        )

    def place(self, result: Any) -> Placement:
        """Where the rows of a result stand among those of the atlas.

        Args:
            result: a ProbeResult, or its long table; of one setting.

        Raises:
            InvalidSettingError: the atlas has nothing under these settings, or the result has more than one.
        """
        long = long_of(result)
        long = long[~long["failed"].astype(bool)]
        if not len(long):
            raise InvalidSettingError("None of the runs gave a result, so there is nothing to be placed.")
        if len(long[SETTING].drop_duplicates()) > 1:
            raise InvalidSettingError(
                "Rows of several settings (sides, representations, protocols, ...) cannot be placed together: place "
                "them one setting at a time."
            )
        mine, others = _named(_wide(long), _wide(self.alike(long)))
        return Placement(mine, others, str(long["measure"].iloc[0]), _said(long.iloc[0]), self)

    def places(self, result: Any) -> list[Placement]:
        """The same for each setting that the result has; errors as for `place`."""
        long = long_of(result)
        good = long[~long["failed"].astype(bool)]
        return [self.place(part) for _, part in good.groupby(SETTING, dropna=False, sort=False)]


@cache
def shipped() -> Atlas:
    """The atlas that comes with icy."""
    return Atlas.load()


def _about(records: Sequence[Record]) -> dict[str, Any]:
    """When, with what and on what some results were made."""
    days = sorted(str(r["finished"])[:10] for r in records)
    devices = Counter(str(r.get("device_name") or r.get("device")) for r in records)
    return {
        "packed": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "made": [days[0], days[-1]],
        "versions": sorted({f"icy {r['versions'].get('icy')}, torch {r['versions'].get('torch')}" for r in records}),
        "git": sorted({str(r.get("git")) for r in records if r.get("git")}),
        "devices": dict(devices),
        "runs": len(records),
        "hours": round(sum(r.get("seconds") or 0 for r in records) / 3600, 2),
    }


def _said(row: pd.Series[Any]) -> str:
    """A setting in words."""
    parts = [f"{row['protocol']} to {row['target']:g}", str(row["representation"]), f"meanings {row['meanings']}"]
    parts += [f"{letter}={row[name]}" for name, letter in NAMES.items()]
    parts += [f"{row['held_out']:g} held out ({row['split']})"] if not pd.isna(row["held_out"]) else []
    parts += [f"preset {row['preset']}"] if row["preset"] != "default" else []
    return ", ".join([*parts, *([row["settings"]] if row["settings"] else [])])


def _wide(long: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds: a row per model, hidden size and options, a column per grammar."""
    table = long.pivot_table(index=ROW, columns="grammar", values="value", aggfunc="mean", sort=False)
    return table[in_order(table.columns)]


def _named(*tables: pd.DataFrame) -> list[pd.DataFrame]:
    """The same with a name for each row, which says its hidden size where these differ in any, and its options."""
    sizes = len({hidden for table in tables for _, hidden, _ in table.index}) > 1
    found = []
    for table in tables:
        names = []
        for model, hidden, options in table.index:
            more = ", ".join([*([f"E={hidden}"] if sizes else []), *([options] if options else [])])
            names.append(f"{model} ({more})" if more else str(model))
        found.append(table.set_axis(pd.Index(names, name="model")))
    return found


@dataclass(frozen=True)
class Placement:
    """Where some rows stand among those of an atlas.

    In a notebook it shows itself as tables.

    Attributes:
        mine: means of the rows that are placed, a column per grammar.
        others: those of the atlas under the same settings.
        measure: "ratio", "accuracy" or "held_out".
        setting: the settings, in words.
        atlas: the atlas.
    """

    mine: pd.DataFrame
    others: pd.DataFrame
    measure: str
    setting: str
    atlas: Atlas

    @property
    def grammars(self) -> list[str]:
        """The grammars that are compared: those of both, less concat, to which the others are relative."""
        return [g for g in self.mine.columns if g in self.others.columns and g != "concat"]

    def rest(self, name: str) -> pd.DataFrame:
        """The rows of the atlas less the one that is placed."""
        return self.others.drop(index=name, errors="ignore")

    @property
    def ranks(self) -> pd.DataFrame:
        """A row per model and grammar: value; rank, 1 for the one that learns it most easily, and equals share the
        better; of, how many are ranked, itself among them; and the atlas's median."""
        rows = []
        for name, values in self.mine.iterrows():
            for grammar in self.grammars:
                others = self.rest(str(name))[grammar].dropna()
                value = values[grammar]
                if pd.isna(value) or not len(others):
                    continue
                better = int((others < value).sum() if self.measure == "ratio" else (others > value).sum())
                rows.append([name, grammar, float(value), better + 1, len(others) + 1, float(others.median())])
        return pd.DataFrame(rows, columns=["model", "grammar", "value", "rank", "of", "median"])

    @property
    def neighbours(self) -> pd.DataFrame:
        """The nearest rows of the atlas in bias space, the nearest first: model, neighbour, distance, grammars.

        The distance is the root mean square over the grammars that both have of the difference in accuracy, or in the
        binary logarithm of the ratio, of which 1 is twice as many steps.
        """
        rows = []
        for name in self.mine.index:
            own, rest = self._space(self.mine.loc[[name]]), self._space(self.rest(str(name)))
            gaps = rest - own.iloc[0]
            common = gaps.notna().sum(axis=1)
            distance = np.sqrt((gaps**2).mean(axis=1))[common >= max(1, min(FEWEST, len(self.grammars)))]
            for neighbour, value in distance.sort_values(kind="stable").head(NEIGHBOURS).items():
                rows.append([name, neighbour, float(value), int(common[neighbour])])
        return pd.DataFrame(rows, columns=["model", "neighbour", "distance", "grammars"])

    def _space(self, table: pd.DataFrame) -> pd.DataFrame:
        values = table[self.grammars].astype(float)
        return values.apply(np.log2) if self.measure == "ratio" else values

    def plot(self, axes: Axes | None = None) -> Figure:
        """A column per grammar with a dot per model of the atlas, and the new rows among them."""
        from .plots.placement import plot_placement

        return plot_placement(self, axes)

    def _tables(self) -> list[tuple[str, pd.DataFrame]]:
        """For each row, a sentence, its ranks and its neighbours."""
        found = []
        for name in self.mine.index:
            ranks = self.ranks.query("model == @name").drop(columns="model")
            near = self.neighbours.query("model == @name").drop(columns="model")
            how = "fewest steps" if self.measure == "ratio" else "highest accuracy"
            among = f"{name} among {len(self.rest(str(name)))} of the {self.atlas.name}"
            found.append((f"{among}: {self.setting}; rank 1 is the {how}", ranks))
            found.append((f"Nearest in bias space ({self._unit()})", near))
        return found

    def _unit(self) -> str:
        return "root mean square of log2 of the ratios" if self.measure == "ratio" else "root mean square of accuracies"

    def notes(self) -> list[str]:
        """What a reader must know of the atlas."""
        about = self.atlas.about
        lacking = self.others[self.grammars].isna().sum()
        thin = [f"{g} ({len(self.others) - n} of {len(self.others)})" for g, n in lacking.items() if n]
        made = f"{self.atlas.name}: {about['runs']} runs, {' to '.join(dict.fromkeys(about['made']))}"
        return [made, *([f"not every model has every grammar: {', '.join(thin)}"] if thin else [])]

    def __repr__(self) -> str:
        parts = [f"{said}\n\n{_plain(table)}" for said, table in self._tables()]
        return "\n\n".join([*parts, "\n".join(self.notes())])

    def _repr_html_(self) -> str:
        parts = [f"<p>{html.escape(said)}</p>{_shown(table).to_html(index=False)}" for said, table in self._tables()]
        return "".join([*parts, *(f"<p>{html.escape(note)}</p>" for note in self.notes())])


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{n: table[n].map("{:.2f}".format) for n in ("value", "median", "distance") if n in table})


def _plain(table: pd.DataFrame) -> str:
    return str(_shown(table).to_string(index=False))
