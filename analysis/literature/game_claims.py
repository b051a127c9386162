"""Claims of CBM24 that its numbers support, and tests of these claims on measured games."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import pandas as pd

from .games import WHICH

NEARLY_NONE = 0.01  # largest rate of paraphrases that counts as nearly none, as printed
COLLAPSED = 0.1  # limit of the AMI of rules of four concepts in Thing; the paper has .03 and .05
WIDE = 64  # bits of a word
NEAR_PERFECT, NEAR_ZERO = 0.95, 0.1  # limits of accuracy and CBM of wide words; the paper has .97 and .99, .01 and .01
FEWEST = 3  # least number of games of a world for a correlation
HOLDS, FAILS, IN_PART, UNKNOWN = "holds", "does not hold", "holds in part", "not measured"


@dataclass(frozen=True)
class GameMeans:
    """Measures of one game, as means over seeds; or the printed numbers of one row."""

    world: str
    representation: str
    rule_length: int
    word_size: int
    message_length: int
    values: Mapping[str, float]

    @property
    def concepts(self) -> bool:
        """Whether a message has a word for every concept of its phrase, as in table 1."""
        return self.message_length == self.rule_length


Finding = tuple[str, bool]  # description of a comparison with its numbers, and whether it supports the claim
Games = list[GameMeans]


def claims(games: Games) -> pd.DataFrame:
    """Test the claims in CLAIMS on measured games.

    Args:
        games: measured games; see `games_of_results`.

    Returns:
        A row per claim, with the columns `claim` (a letter), `said` (its text), `found` (comparisons) and `verdict`.
    """
    rows = []
    for letter, (text, judge) in CLAIMS.items():
        found = list(judge(games))
        rows.append(
            {"claim": letter, "said": text, "found": "; ".join(f for f, _ in found), "verdict": _verdict(found)}
        )
    return pd.DataFrame(rows)


def _verdict(found: list[Finding]) -> str:
    if not found:
        return UNKNOWN
    right = sum(as_claimed for _, as_claimed in found)
    return HOLDS if right == len(found) else IN_PART if right else FAILS


def games_of_results(long: pd.DataFrame) -> Games:
    """Convert a long table of games, with the column `world`, to games; failed runs are left out."""
    good = long[~long["failed"].astype(bool)].rename(columns={"vocab_size": "word_size"})
    measures = [name for name in MEASURES if name in good]
    return [
        _game(part, {str(name): float(value) for name, value in part[measures].astype(float).mean().dropna().items()})
        for _, part in good.groupby(list(WHICH), sort=False)
    ]


def games_of_table(cells: pd.DataFrame) -> Games:
    """Convert a published table, from `icy.analysis.literature.games.with_names`, to games."""
    return [
        _game(rows, dict(zip(rows["measure"], rows["mean"], strict=True)))
        for _, rows in cells.groupby("row", sort=False)
    ]


def _game(rows: pd.DataFrame, values: Mapping[str, float]) -> GameMeans:
    first = rows.iloc[0].to_dict()
    length, size, words = (int(first[name]) for name in WHICH[2:])
    return GameMeans(str(first["world"]), str(first["representation"]), length, size, words, values)


MEASURES = ("accuracy", "cbm", "ami", "ambiguity_rate", "paraphrase_rate", "unmatched_rate", "unique_words")


def _pairs(
    games: Games, measure: str, same: Callable[[GameMeans], object], first: object, by: str
) -> Iterator[tuple[GameMeans, GameMeans]]:
    """Yield pairs of games with equal `same`; the attribute `by` is `first` in the first game, not in the second."""
    measured = [game for game in games if measure in game.values]
    for one, other in product(measured, measured):
        if getattr(one, by) == first and getattr(other, by) != first and same(one) == same(other):
            yield one, other


def _representations(games: Games) -> Iterator[Finding]:
    def same(game: GameMeans) -> object:
        return game.world, game.rule_length

    for qt, gs in _pairs([g for g in games if g.concepts], "accuracy", same, "qt", "representation"):
        if gs.representation == "gs":
            yield _compared(f"{_title(qt)}: QT", qt, "GS", gs)


def _lengths(games: Games) -> Iterator[Finding]:
    def same(game: GameMeans) -> object:
        return game.world, game.representation

    for short, long in _pairs([g for g in games if g.concepts], "accuracy", same, 1, "rule_length"):
        yield _compared(f"{short.world} {short.representation}: l=1", short, f"l={long.rule_length}", long)


def _compared(name: str, one: GameMeans, other_name: str, other: GameMeans) -> Finding:
    a, b = one.values["accuracy"], other.values["accuracy"]
    return f"{name} {a:.3f}, {other_name} {b:.3f}", a > b


def _title(game: GameMeans) -> str:
    return f"{game.world} l={game.rule_length}"


def _unused(games: Games) -> Iterator[Finding]:
    for game in _one_concept_games(games):
        words, missed = game.values["unique_words"], game.values["unmatched_rate"]
        text = f"{game.representation} {game.world}: {words:.0f} words, {missed:.2f} unmatched"
        if game.representation == "gs":
            yield text, words < game.word_size and missed > NEARLY_NONE
        elif game.representation == "qt":
            yield text, missed <= NEARLY_NONE


def _one_concept_games(games: Games) -> Iterable[GameMeans]:
    return [g for g in games if g.rule_length == 1 and g.concepts and "unmatched_rate" in g.values]


def _paraphrases(games: Games) -> Iterator[Finding]:
    for game in [g for g in games if g.concepts and "paraphrase_rate" in g.values]:
        rate = game.values["paraphrase_rate"]
        text = f"{game.representation} {_title(game)}: {rate:.2f}"
        if game.representation == "gs":
            yield text, rate <= NEARLY_NONE + 0.005
        elif game.representation == "qt":
            yield text, rate > NEARLY_NONE


def _collapse(games: Games) -> Iterator[Finding]:
    for game in [g for g in games if g.world == "thing" and g.rule_length == 4 and g.concepts and "ami" in g.values]:
        yield f"{game.representation}: {game.values['ami']:.2f}", game.values["ami"] < COLLAPSED


def _wide(games: Games) -> Iterator[Finding]:
    for game in [g for g in games if g.representation == "qt" and g.word_size == WIDE and g.rule_length == 1]:
        accuracy, score = game.values["accuracy"], game.values["cbm"]
        text = f"{game.world}: accuracy {accuracy:.3f}, CBM {score:.3f}"
        yield text, accuracy > NEAR_PERFECT and score < NEAR_ZERO


def _correlation(games: Games) -> Iterator[Finding]:
    for world in dict.fromkeys(game.world for game in games):
        own = [g for g in games if g.world == world and g.concepts and g.representation in PUBLISHED_REPRESENTATIONS]
        values = pd.DataFrame([g.values for g in own if {"ami", "accuracy"} <= set(g.values)])
        if len(values) >= FEWEST and values["ami"].nunique() > 1 and values["accuracy"].nunique() > 1:
            found = values["ami"].corr(values["accuracy"])
            yield f"{world}: Pearson's correlation {found:.2f} over {len(values)} games", found > 0


def _ambiguity(games: Games) -> Iterator[Finding]:
    for game in [g for g in games if g.concepts and g.representation in PUBLISHED_REPRESENTATIONS]:
        if {"ambiguity_rate", "paraphrase_rate"} <= set(game.values):
            ambiguous, paraphrases = game.values["ambiguity_rate"], game.values["paraphrase_rate"]
            text = f"{game.representation} {_title(game)}: ambiguous {ambiguous:.2f}, paraphrases {paraphrases:.2f}"
            yield text, ambiguous > paraphrases


PUBLISHED_REPRESENTATIONS = ("gs", "qt")
CLAIMS: dict[str, tuple[str, Callable[[Games], Iterable[Finding]]]] = {
    "a": ("QT is above GS in accuracy.", _representations),
    "b": ("Longer rules lower accuracy.", _lengths),
    "c": ("GS leaves words unused, so that concepts are unmatched; QT leaves none unmatched.", _unused),
    "d": ("QT has paraphrases, GS nearly none.", _paraphrases),
    "e": ("AMI collapses with rules of four concepts in Thing.", _collapse),
    "f": ("Words of 64 bits give nearly perfect accuracy and CBM of about 0.", _wide),
    "g": ("AMI rises with accuracy over the games of a world.", _correlation),
    "h": ("The score falls short of 1 by ambiguity more than by paraphrases.", _ambiguity),
}
