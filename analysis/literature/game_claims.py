"""Claims of CBM24 that its numbers support, and tests of these claims on measured games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from .games import WHICH

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
        right, found = table.eval(claim.holds).sum(), [claim.shown.format(**row) for row in table.to_dict("records")]
        verdict = UNKNOWN if not found else HOLDS if right == len(found) else IN_PART if right else FAILS
        rows.append({"claim": letter, "said": claim.text, "found": "; ".join(found), "verdict": verdict})
    return pd.DataFrame(rows)


def games_of_results(long: pd.DataFrame) -> pd.DataFrame:
    """Return the means over seeds of each game in a long table with the column `world`; failed runs are left out."""
    good = long[~long["failed"].astype(bool)].rename(columns={"vocab_size": "word_size"})
    good = good.reindex(columns=[*WHICH, *MEASURES]).astype(dict.fromkeys(MEASURES, float))
    return good.astype(dict.fromkeys(WHICH[2:], int)).groupby(list(WHICH), sort=False).mean().reset_index()
