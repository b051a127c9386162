"""Which games a report keeps: by score, by attention, and by whether the language is degenerate (spycodes-facts 11).

The rules of attention are fixed before any data are seen. They never decide on pay: `icy study review` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icy.core.checks import real_number

from .measures import EXACT, GAME, HELD_OUT, MEASURES

if TYPE_CHECKING:
    import pandas as pd

MOST_ALIKE = 0.8  # share of identical answers above which a game fails
LEAST_MS = 1000  # median milliseconds from picture to answer below which it fails
MOST_STRANGE = 0.2  # share of answers with letters that no code of the game has above which it fails
GAME_OF = ["agent_kind", "agent", "protocol", "preset", "dataset", "grammar", "instance", "person"]
PLAYERS = ("human", "simulated")  # whose score and attention are looked at; senders have neither
PUBLISHED = "published"  # rows of many games, which stay


@dataclass(frozen=True)
class Filter:
    """What a game must have to be kept.

    Attributes:
        least_score: points of a person or simulated player, at least; Icy22 kept games of 50 and more.
        attention: whether games of people and simulated players must pass the rules of attention.
        degenerate: whether games in a degenerate language stay; see `icy.study.game.is_degenerate`.
    """

    least_score: float = 0.0
    attention: bool = False
    degenerate: bool = True

    def __post_init__(self) -> None:
        real_number("least score", self.least_score)

    def kept(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of the games that are kept, in their order; rows of published numbers always are.

        Args:
            rows: in long form, as `icy.study.rows` makes them.
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
    """Return which games fail a rule of attention; what is not known of a game passes.

    Args:
        numbers: a row per game with the columns `identical`, `reaction_ms` and `strange`.
    """
    return (
        (numbers["identical"] > MOST_ALIKE) | (numbers["reaction_ms"] < LEAST_MS) | (numbers["strange"] > MOST_STRANGE)
    )


def _numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what filters look at, a column each, of games that are not published; NaN where it is not known."""
    names = ("score", "identical", "reaction_ms", "strange", "degenerate")
    of_games = rows[(rows["split"] == GAME) & (rows["agent_kind"] != PUBLISHED)]
    keys = of_games[GAME_OF].astype(str)
    wide = of_games.assign(**{name: keys[name] for name in GAME_OF}).pivot_table(
        index=GAME_OF, columns="metric", values="value", aggfunc="first", sort=False
    )
    found = wide.reindex(columns=[MEASURES[name].metric for name in names]).astype(float)
    return found.set_axis(list(names), axis=1)


FILTERS: Mapping[str, Filter] = {
    "all games": Filter(),
    "score of 50 and more": Filter(least_score=50),
    "score of 100 and more": Filter(least_score=100),
    "attention": Filter(attention=True),
    "no degenerate languages": Filter(degenerate=False),
    "attention, no degenerate languages": Filter(attention=True, degenerate=False),
}
"""The filters of the table of sensitivity, by name."""


def sensitivity(rows: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy on held-out items under every filter: a row per agent, protocol, preset, dataset and filter.

    Columns: these, `games` that are kept, and a column per grammar; NaN where no game is.

    Args:
        rows: in long form.
    """
    import pandas as pd

    by = ["dataset", "agent", "protocol", "preset"]
    parts = []
    for name, one in FILTERS.items():
        kept = one.kept(rows)
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
