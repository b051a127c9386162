"""`icy study review`: review finished games, decide on them, and write the files that platforms need for payment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.output import format_option, note, print_rows
from icy.core.errors import InvalidSettingError
from icy.core.text import counted, listed

from .opened import opened, study_argument

if TYPE_CHECKING:
    from icy.study.service.studies import Study

EPILOG = """\b
Examples:
  icy study review spy-codes
  icy study review spy-codes --approve all
  icy study review spy-codes --approve 5F0C --reject "91AB=the same answer to every shape"
  icy study review spy-codes --pay payments

\b
PERSON is the opaque name of a person, or its first letters; "all" means all undecided people without oddities.
Check odd games yourself: icy never rejects a game by itself and never moves money. --pay writes files for the
platform, with ids of people; some days later, as the settings say, these ids are deleted from the database.
"""
HEADINGS = (
    *("person", "condition", "score", "bonus", "minutes", "same", "median ms", "odd letters", "left", "pasted"),
    *("odd", "decision"),
)
NAME_LETTERS = 8  # letters of a person's name
MOST_NAMES = 5  # names in a sentence


@command("review", epilog=EPILOG)
@study_argument
@click.option("--approve", multiple=True, metavar="PERSON|all", help="Approve a finished game; repeatable.")
@click.option("--reject", multiple=True, metavar="PERSON=REASON", help="Reject a game, with a reason; repeatable.")
@click.option("--pay", type=click.Path(), metavar="FOLDER", help="Write files to pay the people with a decision.")
@format_option
def review_command(study: str, approve: tuple[str, ...], reject: tuple[str, ...], pay: str | None, format_: str) -> int:
    """List finished games with their oddities; approve, reject, and write payments."""
    from icy.study.service.pay import money
    from icy.study.service.review import export_payments, review_games

    found = opened(study)
    _decide(found, approve, reject)
    rows = [
        [
            *(one.person[:NAME_LETTERS], one.cell, str(one.score), money(one.bonus_cents, found.plan.people.currency)),
            *(f"{one.minutes:.1f}", f"{one.alike:.0%}", "-" if one.reaction_ms is None else f"{one.reaction_ms:.0f}"),
            *(str(one.strange), str(one.blurs), str(one.pastes), one.odd or "-", one.decision or "-"),
        ]
        for one in review_games(found)
    ]
    print_rows(HEADINGS, rows, format_)
    if pay:
        files = export_payments(found, Path(pay))
        note(f"Written: {', '.join(map(str, files))}. They hold ids of people; delete them after payment.")
    return DONE


def _decide(study: Study, approve: tuple[str, ...], reject: tuple[str, ...]) -> None:
    """Save the decisions of a command line."""
    from icy.study.service.review import APPROVE, REJECT, decide

    for given in reject:
        person, equals, reason = given.partition("=")
        if not equals:
            raise InvalidSettingError(f'A rejection needs a reason, as in --reject "{given}=why".')
        decide(study, person.strip(), REJECT, reason)
    for given in approve:
        names = _undecided(study) if given == "all" else [given]
        for name in names:
            decide(study, name, APPROVE)
        if names:
            note(f"Approved: {counted(len(names), 'game')}.")


def _undecided(study: Study) -> list[str]:
    """Return undecided people without oddities; if there are none, print the reason."""
    from icy.study.service.review import review_games

    games = review_games(study)
    left = [one for one in games if not one.decision]
    odd = [one for one in left if one.odd]
    if len(odd) == len(left):
        if not games:
            why = "No game is finished." if study.is_pilot else "No game outside the pilot is finished."
        elif not left:
            why = f"{counted(len(games), 'finished game', 'have')} been decided already."
        else:
            names = listed([one.person[:NAME_LETTERS] for one in odd[:MOST_NAMES]])
            more = f" and {len(odd) - MOST_NAMES} others" if len(odd) > MOST_NAMES else ""
            why = f"{counted(len(odd), 'undecided game', 'are')} odd: decide on {names}{more} by name."
        note(f"Approved: 0 games. {why}")
    return [one.person for one in left if not one.odd]
