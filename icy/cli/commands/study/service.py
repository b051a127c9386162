"""`icy study new`, `serve`, `status`, `review`, `export`, `check` and `forget`: a study with people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from icy.cli.exit_codes import DONE, FAILED
from icy.cli.options import FILE, FilePath, ListFormat, command
from icy.cli.output import note, print_rows
from icy.core.errors import InvalidSettingError
from icy.core.text import counted, listed

if TYPE_CHECKING:
    from icy.study.service.studies import Study

StudyName = Annotated[str, {"type": click.Path(), "metavar": "STUDY"}]
PILOT = "Use the data of the pilot, or of the main study; by default, the current state of the study decides."
Pilot = Annotated[bool | None, {"help": PILOT}]


def opened(given: str) -> Study:
    """Return a study that has run, by its name or settings file, to read its data.

    Raises:
        IcyError: the study does not exist, or has not run.
    """
    from icy.study.service import read_plan
    from icy.study.service.studies import look_at_study

    return look_at_study(read_plan(given))


# -- new ---------------------------------------------------------------------------------------------------------------


@command("new")
def new_command(
    file: Annotated[str, {"type": click.Path(), "metavar": "FILE"}],
    *,
    platform: Annotated[str, {"metavar": "NAME"}] = "link",
    language: Annotated[str, {"metavar": "CODE"}] = "en",
) -> int:
    """Write the files of a new study.

    Args:
        platform: where people will come from: link, kiosk, prolific, mturk or sona.
        language: language of the texts: en or de.

    Examples:
      icy study new pilot.toml
      icy study new spy-codes --platform prolific --language de

    Writes the settings, and texts of information and debriefing for you to complete. `icy study serve` runs the study.
    """
    from icy.study.service.plan import new_study

    paths = new_study(file, platform, language)
    note(f"Written: {', '.join(map(str, paths))}.")
    note(f"Try it with `icy study serve {paths[0]}`; write the texts marked TODO before the study opens.")
    return DONE


# -- serve -------------------------------------------------------------------------------------------------------------


@command("serve")
def serve_command(
    study: Annotated[tuple[str, ...], {"type": click.Path()}],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    base_url: Annotated[str, {"metavar": "URL"}] = "",
    root_path: Annotated[str, {"metavar": "PATH"}] = "",
    behind_proxy: bool = False,
    researcher: bool = False,
    skip_link_test: bool = False,
) -> int:
    """Run one or more studies as a web service, until Ctrl-C.

    Args:
        host: address of this machine to listen at.
        port: port to listen at.
        base_url: address that people use, as in https://study.example.
        root_path: path before the study in this address, as in /spy.
        behind_proxy: trust the client addresses from a proxy on this machine.
        researcher: serve a page with the progress of every condition.
        skip_link_test: open studies without a test of the platform's link.

    Examples:
      icy study serve pilot
      icy study serve pilot --researcher
      icy study serve spy-codes --behind-proxy --base-url https://study.example --root-path /spy

    STUDY is a settings file of `icy study new`, or its name. Without --host only this machine can reach the service.
    Put it behind a proxy with TLS to let people in. The page of the researcher is at STUDY/researcher, for this machine
    only, or with the password in the variable ICY_STUDY_PASSWORD.

    A study that requires ids admits nobody until its link is tested: give the platform the printed test link, open the
    study there, and confirm the received id. --skip-link-test marks the link as tested instead.
    """
    from icy.study.service import app_of, listening, open_study, read_plan, serve
    from icy.study.service.links import link_to_test, needs_test, pass_test
    from icy.study.service.network import Serving

    serving = Serving(
        host=host,
        port=port,
        base_url=base_url,
        root_path=root_path,
        behind_proxy=behind_proxy,
        researcher=researcher,
        password=os.environ.get("ICY_STUDY_PASSWORD", ""),
    )
    studies = [open_study(read_plan(one)) for one in study]
    app, at = app_of(studies, serving), listening(serving)
    for one in studies:
        note(f"{one.name} ({one.plan.state}): {serving.address(one.name)}")
        if serving.researcher:
            note(f"Progress: {serving.address(one.name)}/researcher")
        if needs_test(one):
            if skip_link_test:
                pass_test(one)
            else:
                link = link_to_test(one, serving.address(one.name))
                note(f"Nobody can take part in {one.name} until its link is tested. Put this link into the platform,")
                note(f"open the study there, and confirm the received id: {link}")
    serve(app, serving, at)
    note("Stopped; all recorded data is saved.")
    return DONE


# -- status ------------------------------------------------------------------------------------------------------------


STATUS_HEADINGS = ("condition", "wanted", "finished", "playing", "given up", "mean score", "median minutes")


@command("status")
def status_command(study: StudyName, *, pilot: Pilot = None, format_: ListFormat = "table") -> int:
    """Show how many people have finished, by condition.

    Examples:
      icy study status pilot
      icy study status spy-codes --format csv
    """
    from icy.study.service.links import progress
    from icy.study.service.studies import readable

    found = progress(opened(study), pilot)
    rows = [
        [
            *(cell.name, str(cell.quota or "any"), str(cell.finished), str(cell.active), str(cell.dropped)),
            "-" if cell.score is None else f"{cell.score:.0f}",
            "-" if cell.minutes is None else f"{cell.minutes:.1f}",
        ]
        for cell in found.cells
    ]
    print_rows(STATUS_HEADINGS, rows, format_)
    note(
        f"{counted(found.consented, 'person', 'have')} agreed to take part, {found.finished} finished, "
        f"{found.screened} failed the questions, {found.withdrawn} withdrew; "
        f"last action: {readable(found.last) if found.last else 'none'}."
    )
    for warning in found.link.warnings:
        note(f"Warning: {warning}")
    return DONE


# -- review ------------------------------------------------------------------------------------------------------------


REVIEW_HEADINGS = (
    *("person", "condition", "score", "bonus", "minutes", "same", "median ms", "odd letters", "left", "pasted"),
    *("odd", "decision"),
)
NAME_LETTERS = 8  # letters of a person's name
MOST_NAMES = 5  # names in a sentence


@command("review")
def review_command(
    study: StudyName,
    *,
    approve: Annotated[tuple[str, ...], {"metavar": "PERSON|all"}] = (),
    reject: Annotated[tuple[str, ...], {"metavar": "PERSON=REASON"}] = (),
    pay: Annotated[str | None, {**FILE, "metavar": "FOLDER"}] = None,
    format_: ListFormat = "table",
) -> int:
    """List finished games with their oddities; approve, reject, and write payments.

    Args:
        approve: approve a finished game; repeatable.
        reject: reject a game, with a reason; repeatable.
        pay: write files to pay the people with a decision.

    Examples:
      icy study review spy-codes
      icy study review spy-codes --approve all
      icy study review spy-codes --approve 5F0C --reject "91AB=the same answer to every shape"
      icy study review spy-codes --pay payments

    PERSON is the opaque name of a person, or its first letters; "all" means all undecided people without oddities.
    Check odd games yourself: icy never rejects a game by itself and never moves money. --pay writes files for the
    platform, with ids of people; some days later, as the settings say, these ids are deleted from the database.
    """
    from icy.study.service.review import export_payments, money, review_games

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
    print_rows(REVIEW_HEADINGS, rows, format_)
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


# -- export ------------------------------------------------------------------------------------------------------------


@command("export")
def export_command(
    study: StudyName,
    *,
    out: Annotated[str | None, {"flags": ("--out", "-o"), "type": FilePath(), "metavar": "FOLDER|FILE.zip"}] = None,
    format_: Annotated[Literal["csv", "parquet", "json"], {"flags": ("--format",)}] = "csv",
    pilot: Pilot = None,
    with_ids: bool = False,
    backup: Annotated[str | None, FILE] = None,
) -> int:
    """Write the data of a study, in long form, with a codebook.

    Args:
        out: path to write; by default STUDY-data.
        format_: format of the tables.
        with_ids: also write ids of people and completion codes, for payment only.
        backup: write a copy of the whole database instead; this also works while the study runs.

    Examples:
      icy study export pilot -o pilot-data
      icy study export spy-codes -o spy-codes.zip --format parquet
      icy study export spy-codes --backup copy.sqlite

    Writes games, trials, events, answers to surveys, remarks, and rows for `icy study report --rows`; a codebook; the
    settings with the text that people agreed to; and the log of every finished game, for `icy study simulate
    --yoked-to`. Ids of people and completion codes are left out unless --with-ids asks for them.
    """
    from icy.study.service.export import export

    found = opened(study)
    if backup:
        found.database.backup(Path(backup))
        note(f"Written: {backup}, with all studies of {found.plan.database_path.name}. It holds ids of people.")
        return DONE
    target = Path(out or f"{found.name}-data")
    names = export(found, target, format_, pilot, with_ids)
    note(f"Written: {target}, with {', '.join(names)}.")
    return DONE


# -- check -------------------------------------------------------------------------------------------------------------


@command("check")
def check_command(study: StudyName, *, format_: ListFormat = "table") -> int:
    """Recompute every answer, point and score, and play every game again from its log.

    Examples:
      icy study check pilot

    The exit code is 1 if the saved data has any error.
    """
    from icy.study.service.export import audit

    found = audit(opened(study))
    if found.faults:
        print_rows(["person", "fault"], [[one.person or "-", one.what] for one in found.faults], format_)
        return FAILED
    games, trials = counted(found.games, "game"), counted(found.trials, "item")
    click.echo(f"{games} and {trials}: no errors.")
    return DONE


# -- forget ------------------------------------------------------------------------------------------------------------


@command("forget")
def forget_command(study: StudyName, person: str, *, data: bool = False) -> int:
    """Erase the ids of a person; --data erases all recorded data too.

    Args:
        data: also delete the game, answers and remarks.

    Examples:
      icy study forget spy-codes 5F0C11
      icy study forget spy-codes 60a1c9d5e8 --data

    PERSON is the opaque name, its first letters, or the id of the platform. You have to change copies that you made
    (exports, backups) yourself.
    """
    from icy.study.service.persons import forget

    name = forget(opened(study), person, data)
    note(f"Erased the ids {'and the data ' if data else ''}of {name}.")
    return DONE
