"""Published games: jobs that retrain their agents, and comparison with the printed numbers and claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pandas as pd

from icy.analysis.row_types import Facts, Row
from icy.analysis.table_cells import Reference, TableCell
from icy.records.long_table import SYNONYMS

from .catalogue import find_table, published
from .verdicts import judge_runs

GameKey = tuple[str, str, int, int, int]  # world, representation, rule length, word size, message length
SEEDS = 3  # the table's rows were trained once
WHICH = ("world", "representation", "rule_length", "word_size", "message_length")


@dataclass(frozen=True)
class GameTable:
    """How the agents of a published table of games are trained.

    Attributes:
        arguments: arguments of the kind of job "games" that all rows share.
        by_size: whether the names of rows contain the size of words.
    """

    arguments: Facts = field(default_factory=dict)
    by_size: bool = False


GAMES = MappingProxyType(
    {
        "cbm24/table1": GameTable({"targets": 20}),
        "cbm24/table3": GameTable({"targets": 8, "steps": 200_000}, by_size=True),  # its best epochs are 100 at most
    }
)


def with_names(cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Add the column `row`, the name of the game as in "thing-qt-l4", to a published table of games.

    Example:
        >>> from icy.analysis import published
        >>> with_names(published("cbm24/table3"), "cbm24/table3")["row"].iloc[0]
        'shape-gs-l1-d8'
    """
    if "message_length" not in cells:
        cells = cells.assign(message_length=cells["rule_length"])
    names = cells["world"] + "-" + cells["representation"] + "-l" + cells["rule_length"].astype(str)
    if GAMES[table].by_size:
        names += "-d" + cells["word_size"].astype(str)
    return cells.assign(row=names)


def game_parts(table: str, reference: pd.DataFrame, seeds: object = None) -> list[Facts]:
    """Return the arguments of the jobs ("games") that retrain published agents, a dict per row of the table.

    Args:
        table: id of the table, one of GAMES.
        reference: cells of the table from `with_names`.
        seeds: seeds; by default SEEDS.
    """
    parts = []
    for _, rows in reference.groupby("row", sort=False):
        first = rows.iloc[0]
        own = {name: first[name] if name in ("world", "representation") else int(first[name]) for name in WHICH}
        parts.append({**GAMES[table].arguments, **own, "seeds": SEEDS if seeds is None else seeds})
    return parts


# -- values side by side -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublishedRow:
    """The published values of a row, by measure."""

    values: Mapping[str, float]
    table: str

    def with_reference(self, measure: str, cell: TableCell) -> TableCell:
        """Add the published value of a measure to a cell, if there is one."""
        if measure not in self.values or not cell.seeds:
            return cell
        value = self.values[measure]
        error = cell.spread / math.sqrt(cell.seeds) if cell.seeds > 1 else math.nan
        distance = (cell.mean - value) / error if error else math.nan
        return replace(cell, reference=Reference(value, math.nan, distance, source=self.table))


def references(table: str) -> dict[GameKey, PublishedRow]:
    """Return the rows of a published table of games, by the columns of WHICH.

    Raises:
        UnknownNameError: an unknown table of games.
    """
    found = find_table(table)
    if found.id not in GAMES:
        from icy.core.errors import unknown

        raise unknown("published table of games", table, list(GAMES))
    cells = with_names(published(found.id), found.id)
    return {
        _row(rows.iloc[0].to_dict()): PublishedRow(dict(zip(rows["measure"], rows["mean"], strict=True)), found.id)
        for _, rows in cells.groupby("row", sort=False)
    }


def _row(cell: Row) -> GameKey:
    numbers = (int(cell[name]) for name in WHICH[2:])
    return (str(cell["world"]), str(cell["representation"]), *numbers)  # type: ignore[return-value]


def judge_games(table: str, long: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare results with the published numbers of games; see `icy.analysis.literature.verdicts.judge_cells`.

    Args:
        table: id of the table, one of GAMES.
        long: results of the kind of job "games" in long form, with the column `world`.
        reference: cells of the table from `with_names`.

    Returns:
        The table of `judge_cells`: the column `representation` holds the world, and `model` the name of the row.
    """
    runs = [_runs(long, cell) for cell in reference.to_dict("records")]
    cells = reference.rename(columns={"row": "model"}).assign(representation=reference["world"].str.title(), grammar="")
    return judge_runs(cells, runs)


def _runs(long: pd.DataFrame, cell: Row) -> pd.DataFrame:
    """Return the columns `value` and `failed` of the runs of a published cell."""
    rows = rows_of(long, cell)
    return (
        rows[[cell["measure"], "failed"]].set_axis(["value", "failed"], axis=1) if cell["measure"] in rows else rows[:0]
    )


def rows_of(long: pd.DataFrame, cell: Row) -> pd.DataFrame:
    """Return the results of the game that a published cell belongs to."""
    if not len(long):
        return long
    same = pd.Series(True, index=long.index)
    for name in WHICH:
        same &= long[SYNONYMS.get(name, name)].eq(cell[name])
    return long[same]


# -- claims of CBM24 that its numbers support --------------------------------------------------------------------------

MEASURES = ("accuracy", "cbm", "ami", "ambiguity_rate", "paraphrase_rate", "unmatched_rate", "unique_words")
FEWEST = 3  # least number of games of a world for a correlation
HOLDS, FAILS, IN_PART, UNKNOWN = "holds", "does not hold", "holds in part", "not measured"
PRINTED = "rule_length == message_length and representation in ('gs', 'qt')"  # a word per concept, as in table 1


def _pairs(*same: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that pairs games with equal columns; columns of the second game end with `_other`."""

    def pair(games: pd.DataFrame) -> pd.DataFrame:
        own = games[games["rule_length"].eq(games["message_length"])].dropna(subset="accuracy")
        return own.merge(own, on=list(same), suffixes=("", "_other"))

    return pair


def _correlations(games: pd.DataFrame) -> pd.DataFrame:
    """Return the correlation of AMI and accuracy over the games of each world with enough games."""
    groups = games.query(PRINTED).dropna(subset=["ami", "accuracy"]).groupby("world", sort=False)
    rows = [(world, len(own), own["ami"].corr(own["accuracy"])) for world, own in groups]
    return pd.DataFrame(rows, columns=["world", "games", "correlation"]).query(f"games >= {FEWEST}")


@dataclass(frozen=True)
class GameClaim:
    """A claim about games, tested on every row of a table that follows from the games.

    Attributes:
        text: the claim.
        shown: template of the text of a row.
        holds: condition of a row that supports the claim, as for `pd.DataFrame.eval`.
        which: condition of the rows to test.
        table: function from games to the table.
    """

    text: str
    shown: str
    holds: str
    which: str = PRINTED
    table: Callable[[pd.DataFrame], pd.DataFrame] = pd.DataFrame.copy


CLAIMS = {
    "a": GameClaim(
        "QT is above GS in accuracy.",
        "{world} l={rule_length}: QT {accuracy:.3f}, GS {accuracy_other:.3f}",
        "accuracy > accuracy_other",
        "representation == 'qt' and representation_other == 'gs'",
        _pairs("world", "rule_length"),
    ),
    "b": GameClaim(
        "Longer rules lower accuracy.",
        "{world} {representation}: l=1 {accuracy:.3f}, l={rule_length_other} {accuracy_other:.3f}",
        "accuracy > accuracy_other",
        "rule_length == 1 and rule_length_other != 1",
        _pairs("world", "representation"),
    ),
    "c": GameClaim(
        "GS leaves words unused, so that concepts are unmatched; QT leaves none unmatched.",
        "{representation} {world}: {unique_words:.0f} words, {unmatched_rate:.2f} unmatched",
        "(representation == 'qt' and unmatched_rate <= 0.01)"
        " or (representation == 'gs' and unique_words < word_size and unmatched_rate > 0.01)",
        f"rule_length == 1 and {PRINTED}",
    ),
    "d": GameClaim(
        "QT has paraphrases, GS nearly none.",
        "{representation} {world} l={rule_length}: {paraphrase_rate:.2f}",
        "(representation == 'qt' and paraphrase_rate > 0.01) or (representation == 'gs' and paraphrase_rate <= 0.015)",
    ),
    "e": GameClaim(  # the paper has .03 and .05
        "AMI collapses with rules of four concepts in Thing.",
        "{representation}: {ami:.2f}",
        "ami < 0.1",
        "rule_length == 4 and message_length == 4 and world == 'thing'",
    ),
    "f": GameClaim(  # the paper has .97 and .99, .01 and .01
        "Words of 64 bits give nearly perfect accuracy and CBM of about 0.",
        "{world}: accuracy {accuracy:.3f}, CBM {cbm:.3f}",
        "accuracy > 0.95 and cbm < 0.1",
        "rule_length == 1 and representation == 'qt' and word_size == 64",
    ),
    "g": GameClaim(
        "AMI rises with accuracy over the games of a world.",
        "{world}: Pearson's correlation {correlation:.2f} over {games} games",
        "correlation > 0",
        "correlation == correlation",  # it is a number
        _correlations,
    ),
    "h": GameClaim(
        "The score falls short of 1 by ambiguity more than by paraphrases.",
        "{representation} {world} l={rule_length}: ambiguous {ambiguity_rate:.2f}, paraphrases {paraphrase_rate:.2f}",
        "ambiguity_rate > paraphrase_rate",
    ),
}


def claims(games: pd.DataFrame) -> pd.DataFrame:
    """Test the claims in CLAIMS on measured games.

    Args:
        games: a row per game with the columns WHICH and MEASURES; see `games_of_results`.

    Returns:
        A row per claim, with the columns `claim` (a letter), `said` (its text), `found` (comparisons) and `verdict`.
    """
    rows = []
    for letter, claim in CLAIMS.items():
        table = claim.table(games).query(claim.which)
        table = table.dropna(subset=[name for name in MEASURES if f"{{{name}" in claim.shown])
        found = [claim.shown.format_map(row) for row in table.to_dict("records")]
        right = len(table.query(claim.holds))
        verdict = UNKNOWN if not found else HOLDS if right == len(found) else IN_PART if right else FAILS
        rows.append({"claim": letter, "said": claim.text, "found": "; ".join(found), "verdict": verdict})
    return pd.DataFrame(rows)


def games_of_results(long: pd.DataFrame) -> pd.DataFrame:
    """Return the means over seeds of each game in a long table with the column `world`; failed runs are left out."""
    good = long[~long["failed"].astype(bool)].rename(columns={"vocab_size": "word_size"})
    good = good.reindex(columns=[*WHICH, *MEASURES]).astype(dict.fromkeys(MEASURES, float))
    return good.astype(dict.fromkeys(WHICH[2:], int)).groupby(list(WHICH), sort=False).mean().reset_index()
