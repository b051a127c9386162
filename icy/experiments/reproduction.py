"""Reproduction: a published table measured again, with a verdict on every cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from icy.analysis.literature.verdicts import cells_as_text, model_name
from icy.config.settings import checks_text
from icy.core.machine import circumstances
from icy.core.text import markdown_table
from icy.version import __version__

from .results import ProbeResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from icy.analysis.literature.catalogue import PublishedTable
    from icy.analysis.literature.verdicts import Exactness, Verdict
    from icy.analysis.tables.printed_table import BiasTable


AGENTS = {"model": "agent", "grammar": "game"}  # headings that replace "model" and "grammar"
GAMES = {"model": "row", "grammar": ""}


# -- the page ----------------------------------------------------------------------------------------------------------


def page(done: Reproduction, remark: str = "") -> str:
    """Render a reproduction as Markdown: the verdict, every cell, how it was made, and a remark."""
    source = done.source
    settings = set() if done.cell_by_cell else set(done.result.to_dataframe()["settings"])
    changed = settings if len(settings) == 1 else ()  # the heading shows only settings that all rows share
    lines = [f"# {', '.join(filter(None, [source.id, *changed]))}, measured again", ""]
    lines += [f"{source.title}: {source.measured}.", "", f"**{done.verdict}**", ""]
    lines += [f"Of the published numbers: {source.caveats}", ""] if source.caveats else []
    lines += [_provenance(done), "", *([remark, ""] if remark else [])]
    if done.of_languages:
        return "\n".join([*lines, _markdown(done.shown())]) + "\n"
    lines += [
        "Means ± standard errors; the distance is in combined standard errors. The last column is the outcome of two "
        "one-sided tests of a difference of 20 % of the published value, for accuracies of its distance from chance."
    ]
    for representation, part in done.cells.groupby("representation", sort=False):
        measured = part[part["verdict"] != "missing"]
        lines += ["", f"## {representation}", ""]
        shown = [_markdown(with_headings(cells_as_text(measured), done.headings))] if len(measured) else []
        missing = _missing(part)
        lines += [*shown, *([""] if shown and missing else []), *missing]
    lines += _about_games(done) if done.of_games else []
    return "\n".join(lines) + "\n"


def _about_games(done: Reproduction) -> list[str]:
    """Return the sections about the claims on games and about chance scores."""
    claims, floors = done.claims(), done.floors()
    names = {"row": "row", "printed": "printed", "chance": "its chance", "holistic": "its holistic"}
    ours = {"icy": "icy", "icy_chance": "its chance", "icy_holistic": "its holistic"}
    shown = floors[[*names, *ours]].map(lambda x: x if isinstance(x, str) else "-" if pd.isna(x) else f"{x:.2f}")
    return [
        "",
        "## Claims",
        "",
        markdown_table(["claim", "measured", "verdict"], claims[["said", "found", "verdict"]].to_numpy().tolist()),
        "",
        "## CBM and chance",
        "",
        "The floors of languages of random words, with as many words as were printed or said: chance, where every word "
        "is drawn again, and holistic, where a phrase has one random message.",
        "",
        markdown_table([*names.values(), *ours.values()], shown.to_numpy().tolist(), range(1, 7)),
    ]


def _missing(cells: pd.DataFrame) -> list[str]:
    """Return a sentence that names the models that were not measured, or only on some grammars."""
    labels = []
    for (model, hidden), part in cells.groupby(["model", "hidden_size"], sort=False):
        missing = part[part["verdict"] == "missing"]
        which = "" if len(missing) == len(part) else f" ({', '.join(dict.fromkeys(missing['grammar']))})"
        labels += [f"{model_name(str(model), int(str(hidden)))}{which}"] if len(missing) else []
    return [f"Not measured: {', '.join(labels)}."] if labels else []


def _markdown(table: pd.DataFrame) -> str:
    numbers = [i for i, name in enumerate(table) if name in ("icy", "seeds", "published", "distance")]
    return markdown_table(table, table.to_numpy().tolist(), numbers)


def with_headings(table: pd.DataFrame, headings: Mapping[str, str]) -> pd.DataFrame:
    """Return a table with other headings, and without columns with the heading ""."""
    left_out = [name for name, heading in headings.items() if not heading]
    return table.drop(columns=left_out).rename(columns=dict(headings))


def _provenance(done: Reproduction) -> str:
    """Return a sentence on the settings, dates, versions and devices of the measurement."""
    if done.of_languages:
        return f"Made by icy {__version__}, on the authors' languages of seeds {', '.join(map(str, done.seeds))}."
    records = done.result.records
    if not records:
        return "Nothing has been measured."
    about = circumstances(records)
    if done.of_agents:
        how = _learned_from(done)
    elif done.of_games:
        updates = sorted({record["steps"] for record in records})
        span = " to ".join(f"{n:,}" for n in dict.fromkeys((updates[0], updates[-1])))
        how = f"under the preset `published`, with {span} updates"
    else:
        checks = sorted({checks_text(record["config"]["settings"]) for record in records})
        how = f"under the preset `published` ({', '.join(checks)})"
    return (
        f"Made by icy {how}, {' to '.join(dict.fromkeys(about['made']))}, "
        f"with {' and '.join(about['versions'])}, on {' and '.join(about['devices'])}."
    )


def _learned_from(done: Reproduction) -> str:
    """Return the number of observations per agent, here and in the paper."""
    ours = done.result.to_dataframe()["observations"].astype(float).mean()
    theirs = " or ".join(f"{count:,}" for count in done.wanted["observations"].dropna().unique())
    return f"from {ours:,.0f} observations an agent, where the paper's had {theirs}"


@dataclass(frozen=True)
class Reproduction:
    """A published table measured again.

    A notebook displays the verdict and a row per cell.

    Attributes:
        source: the published table.
        result: the measured results.
        wanted: the requested cells of the published table.
        seeds: seeds of the languages in a table of metrics; empty for a table of models.
    """

    source: PublishedTable
    result: ProbeResult
    wanted: pd.DataFrame
    seeds: tuple[int, ...] = ()

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Every requested cell, with the columns of `icy.analysis.literature.verdicts.COLUMNS`: icy's mean and error,
        the published mean and error, their distance in combined standard errors, the verdict, and the numbers behind
        these; of languages, the columns of `judge_languages`."""
        from icy.analysis.literature.retraining import judge_agents, judge_games, judge_steps
        from icy.analysis.literature.verdicts import judge_cells, judge_languages

        if self.of_agents:
            return judge_agents(self.source.id, self.result.to_dataframe(), self.wanted)
        if self.of_games:
            return judge_games(self.source.id, self._games(), self.wanted)
        if self.of_languages:
            return judge_languages(self.wanted, self.seeds)
        if self.of_steps:
            return judge_steps(self.result.to_dataframe(), self.wanted)
        return judge_cells(self.result.to_dataframe(), self.wanted)

    @property
    def verdict(self) -> Verdict | Exactness:
        """Verdict on all cells."""
        from icy.analysis.literature.verdicts import Exactness, Verdict

        return Exactness.of(self.cells) if self.of_languages else Verdict.of(self.cells)

    @property
    def of_agents(self) -> bool:
        """Whether the table is about agents, which have no grammars."""
        return "agent" in self.wanted

    @property
    def of_games(self) -> bool:
        """Whether the table is about multi-target games. Rows of these tables have names."""
        return "row" in self.wanted

    @property
    def of_steps(self) -> bool:
        """Whether the numbers of the table are updates to a target."""
        return self.source.reproduce == "steps"

    @property
    def of_languages(self) -> bool:
        """Whether the table is about languages, without training."""
        return self.source.reproduce == "metrics"

    @property
    def headings(self) -> Mapping[str, str]:
        """Headings that replace "model" and "grammar"; "" removes the column."""
        return AGENTS if self.of_agents else GAMES if self.of_games else {}

    def shown(self) -> pd.DataFrame:
        """Return every cell as text; in tables of updates, with the meaning space of each cell."""
        from icy.analysis.literature.verdicts import cells_as_text

        if self.of_languages:
            column = "search" if "search" in self.wanted else "meaning"
            return self.cells.drop(columns=["representation", "measure"]).rename(columns={"model": column})
        table, spaces = with_headings(cells_as_text(self.cells), self.headings), self.cells["representation"]
        return table.assign(meanings=spaces)[["meanings", *table]] if self.of_steps else table

    def _games(self) -> pd.DataFrame:
        from icy.analysis.tables.games import with_settings

        return with_settings(self.result.to_dataframe())

    def claims(self) -> pd.DataFrame:
        """Return the claims of the paper about its games, with a verdict on each."""
        from icy.analysis.literature.retraining import claims, games_of_results

        return claims(games_of_results(self._games()))

    def floors(self) -> pd.DataFrame:
        """Return the scores of concept best matching in games, published and measured, next to chance scores."""
        from icy.analysis.literature.retraining import rows_of

        floors, long = printed_floors(self.wanted), self._games()
        firsts = self.wanted.groupby("row", sort=False).first()
        own = [rows_of(long, firsts.loc[name].to_dict()) for name in floors["row"]]
        measures = {"icy": "cbm", "icy_chance": "cbm_floor", "icy_holistic": "cbm_holistic"}
        return floors.assign(
            **{
                name: [part[m].astype(float).mean() if len(part) else math.nan for part in own]
                for name, m in measures.items()
            }
        )

    def table(self, spread: str = "sem") -> BiasTable:
        """Return the table of the results; with published values, except for tables of agents, updates or languages.

        Args:
            spread: "sem", the standard error, as in the published tables, "sd" or "ci95".
        """
        if self.of_agents or self.cell_by_cell:
            return self.result.bias_table(spread)
        return self.result.bias_table(spread, compare=self.source.id)

    def page(self, remark: str = "") -> str:
        """Return the reproduction as a page in Markdown, with a remark.

        Args:
            remark: a paragraph to add; "" for none.
        """
        return page(self, remark)

    def __repr__(self) -> str:
        text = self.shown().to_string(index=False) if self.cell_by_cell else self.table().render("text")
        return f"{text}\n\n{self.verdict}"

    @property
    def cell_by_cell(self) -> bool:
        """Whether to show a line per cell, because `table` does not show published numbers of updates or languages."""
        return self.of_steps or self.of_languages

    def _repr_html_(self) -> str:
        return f"<p>{self.source.id}: {self.verdict}</p>{self.shown().to_html(index=False)}"


# -- floors of published games -----------------------------------------------------------------------------------------

TURNS, BATCH = 1000, 100


def printed_floors(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the chance scores ("floors") of the rows of a published table of games.

    Args:
        cells: the cells, with the names of their rows (`icy.analysis.literature.retraining.with_names`).

    Returns:
        A row for each row of the published table that has cbm and the number of words. The columns are: `row`, the name
        of the row; `printed`, the published cbm; `chance`, the cbm of random words; and `holistic`, the cbm if every
        phrase has a random message.
    """
    rows = []
    for name, row in cells.groupby("row", sort=False):
        first = row.iloc[0]
        printed = dict(zip(row["measure"], row["mean"], strict=True))
        if {"cbm", "unique_words"} <= set(printed):
            sizes = int(first["rule_length"]), int(printed["unique_words"]), int(first["message_length"])
            rows.append({"row": name, "printed": printed["cbm"], **_floors(str(first["world"]), *sizes)})
    return pd.DataFrame(rows)


@cache
def _floors(world: str, rule_length: int, words: int, length: int) -> dict[str, Any]:
    from icy.games.evaluation import cbm_floor

    phrases = _phrases(world, rule_length)
    chance = cbm_floor(phrases, words, length, unmatched="assigned")["cbm"]
    holistic = cbm_floor(phrases, words, length, "phrase", unmatched="assigned")["cbm"]
    return {"chance": chance, "holistic": holistic}


@cache
def _phrases(world: str, rule_length: int) -> Any:
    """Return the phrases of an evaluation, with silent messages."""
    import torch

    from icy.games import Turns, TurnSettings, make_world
    from icy.games.playing import batches, make_spoken

    turns = Turns(make_world(world), TurnSettings(rule_length=rule_length, targets=1, distractors=1), [0])
    numbers = torch.cat([batch.numbers[0, 0] for batch in batches(turns, "test", TURNS, BATCH)])
    return make_spoken(turns, numbers, torch.zeros(len(numbers), 1, dtype=torch.long, device="cpu"))
