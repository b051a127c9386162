"""Filters that select the games of a report: by score, attention or degenerate language.

The attention rules were fixed before data collection. They do not affect pay; `icy study review` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icy.core.checks import real_number

from .measures import EXACT, GAME, HELD_OUT, MEASURES

if TYPE_CHECKING:
    import pandas as pd

MOST_ALIKE = 0.8  # a game fails if more than this share of its answers are identical
LEAST_MS = 1000  # a game fails if the median time from picture to answer is shorter, in milliseconds
MOST_STRANGE = 0.2  # a game fails if more than this share of its answers use letters that no code of the game has
GAME_OF = ["agent_kind", "agent", "protocol", "preset", "dataset", "grammar", "instance", "person"]
PLAYERS = ("human", "simulated")  # values of agent_kind with a score and attention measures; senders have neither
PUBLISHED = "published"  # rows that summarize many games; filters always keep them


@dataclass(frozen=True)
class Filter:
    """Conditions that the games of a report must meet.

    Attributes:
        least_score: lowest score of a person or simulated player; Icy22 reports games with 50 points or more.
        attention: whether games of people and simulated players must pass the attention rules.
        degenerate: whether games may be in a degenerate language; see `icy.study.game.is_degenerate`.
    """

    least_score: float = 0.0
    attention: bool = False
    degenerate: bool = True

    def __post_init__(self) -> None:
        real_number("least score", self.least_score)

    def select(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Select the rows of games that pass the filter, in their order.

        Published rows always pass.

        Args:
            rows: rows of the study table, see `icy.study.rows`.
        """
        numbers = _numbers(rows)
        is_player = numbers.index.get_level_values("agent_kind").isin(PLAYERS)
        out = is_player & (numbers["score"] < self.least_score)
        if self.attention:
            out |= is_player & inattentive(numbers)
        if not self.degenerate:
            out |= numbers["degenerate"] == 1
        left_out = set(numbers.index[out])
        keys = zip(*(rows[name].astype(str) for name in GAME_OF), strict=True)
        return rows[[key not in left_out for key in keys]]


def inattentive(numbers: pd.DataFrame) -> pd.Series:
    """Return which games fail an attention rule. Missing numbers do not fail.

    Args:
        numbers: a row per game with the columns `identical`, `reaction_ms` and `strange`.
    """
    return (
        (numbers["identical"] > MOST_ALIKE) | (numbers["reaction_ms"] < LEAST_MS) | (numbers["strange"] > MOST_STRANGE)
    )


def _numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a row per game, and a column per number that filters use (NaN if missing).

    Published games are left out.
    """
    names = ("score", "identical", "reaction_ms", "strange", "degenerate")
    of_games = rows[(rows["split"] == GAME) & (rows["agent_kind"] != PUBLISHED)]
    keys = of_games[GAME_OF].astype(str)
    wide = of_games.assign(**{name: keys[name] for name in GAME_OF}).pivot_table(
        index=GAME_OF, columns="metric", values="value", aggfunc="first", sort=False
    )
    numbers = wide.reindex(columns=[MEASURES[name].metric for name in names]).astype(float)
    return numbers.set_axis(list(names), axis=1)


FILTERS: Mapping[str, Filter] = {
    "all games": Filter(),
    "score of 50 and more": Filter(least_score=50),
    "score of 100 and more": Filter(least_score=100),
    "attention": Filter(attention=True),
    "no degenerate languages": Filter(degenerate=False),
    "attention, no degenerate languages": Filter(attention=True, degenerate=False),
}
"""The filters of the sensitivity table, by name."""


def sensitivity(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy on held-out items under every filter.

    A row is an agent, protocol, preset, dataset and filter. The other columns are `games`, the number of games that
    pass, and a column per grammar with the accuracy; NaN if no game passes.

    Args:
        rows: rows of the study table.
    """
    import pandas as pd

    by = ["dataset", "agent", "protocol", "preset"]
    parts = []
    for name, one in FILTERS.items():
        kept = one.select(rows)
        exact = kept[(kept["metric"] == EXACT) & (kept["split"] == HELD_OUT) & (kept["agent_kind"] != PUBLISHED)]
        exact = exact.assign(value=exact["value"].astype(float))
        means = exact.pivot_table(index=by, columns="grammar", values="value", sort=False)
        counts = exact.groupby(by, sort=False).size().rename("games")
        parts.append(means.join(counts).reset_index().assign(filter=name))
    found = pd.concat(parts, ignore_index=True)
    grammars = sorted(str(name) for name in found if name not in (*by, "filter", "games"))
    place = {name: n for n, name in enumerate(FILTERS)}
    order = found.assign(place=found["filter"].map(place)).sort_values([*by, "place"], kind="stable")
    return order[[*by, "filter", "games", *grammars]].reset_index(drop=True)
