"""Reviews: unusual games are marked, researchers decide, and payments are files."""

from __future__ import annotations

import csv
import io
import stat
from pathlib import Path

import pytest

from icy.core.errors import InvalidSettingError, StoreError, UnknownNameError
from icy.study.game import Event
from icy.study.service import Study
from icy.study.service.persons import Person, enter
from icy.study.service.platforms import Visit
from icy.study.service.play import act
from icy.study.service.review import APPROVE, REJECT, bonus_cents, decide, export_payments, money, review_games
from tests.study.service.helpers import answer, finish, loaded, on, rows, started, study, write


def play_well(of: Study, who: Person, reaction: int = 4000) -> None:
    """Answer all items correctly."""
    while True:
        game = loaded(of, who.id)
        act(of, who.id, Event("answer", game.state.trial.code), game.trial, reaction)
        if on(of, who).saved.is_closed:
            return


def test_unusual_games_are_marked(tmp_path: Path) -> None:
    of = study(tmp_path, people={"most_bonus_cents": 100})
    play_well(of, started(of))
    finish(of, started(of), "redred")
    hasty = started(of)
    act(of, hasty.id, Event("paste"))
    act(of, hasty.id, Event("blur"))
    play_well(of, hasty, 200)
    unfinished = started(of)
    found = review_games(of)
    assert [one.odd for one in found] == ["", "same answer", "very fast"]
    assert [one.decision for one in found] == ["", "", ""]
    assert [(one.pastes, one.blurs) for one in found] == [(0, 0), (0, 0), (1, 1)]
    assert found[0].reaction_ms == 4000
    assert found[1].reaction_ms is None
    assert found[1].alike == 1
    assert unfinished.id not in [one.person for one in found]


def test_letters_that_no_code_has_are_counted(tmp_path: Path) -> None:
    of = study(tmp_path, conditions={"dataset": ["synth"], "grammar": ["concat"]})
    who = started(of)
    for text in ("q", "r", "s", "t", "u", "v"):
        answer(of, who, text)
        on(of, who)
    (found,) = review_games(of)
    assert (found.strange, found.odd) == (6, "other letters")


@pytest.mark.slow
def test_low_scores_are_marked_only_in_games_of_50_items(tmp_path: Path) -> None:
    of = study(tmp_path, conditions={"game": {"examples": 50, "held_out_at": [29, 39, 49]}})
    who = started(of)
    for n in range(50):
        answer(of, who, "redgnbluym"[n % 10])
        on(of, who)
    assert review_games(of)[0].odd == "score below 100"


@pytest.mark.slow
def test_a_bonus_is_capped_and_only_for_finished_games(tmp_path: Path) -> None:
    of = study(tmp_path, people={"most_bonus_cents": 3}, conditions={"game": {"cents_per_ten": 20}})
    who = started(of)
    with of.database.reading() as connection:
        game = connection.execute("SELECT * FROM game").fetchone()
    with pytest.raises(StoreError, match="finished game"):
        bonus_cents(of, game)
    play_well(of, who)
    (found,) = review_games(of)
    assert found.score > 5
    assert found.bonus_cents == 3
    write(of, "UPDATE game SET score = 1")
    assert review_games(of)[0].bonus_cents == 2
    assert money(305, "GBP") == "3.05 GBP"


def test_decisions_can_change_until_they_are_paid(tmp_path: Path) -> None:
    of = study(tmp_path)
    who = started(of)
    finish(of, who)
    with pytest.raises(InvalidSettingError, match="needs a reason"):
        decide(of, who.id, REJECT, " ")
    assert decide(of, who.id[:20].lower(), REJECT, "the same everywhere") == who.id
    decide(of, who.id, APPROVE)
    assert review_games(of)[0].decision == "approve"
    export_payments(of, tmp_path / "pay")
    with pytest.raises(InvalidSettingError, match="was exported already"):
        decide(of, who.id, REJECT, "too late")
    with pytest.raises(UnknownNameError, match="No person with a finished game"):
        decide(of, "nobody", APPROVE)


def test_there_must_be_something_to_pay(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="nothing to pay"):
        export_payments(study(tmp_path), tmp_path)


def decided(folder: Path, platform: str, **kept: str) -> Study:
    """A study of a platform with one approved and one rejected game."""
    of = study(folder, platform={"name": platform}, people={"most_bonus_cents": 100, "base_cents": 250})
    for name, decision in (("W-good", APPROVE), ("W-bad", REJECT)):
        who = enter(of, Visit(name, kept), "computer", "2026-11-23T08:59:00.000Z")
        assert isinstance(who, Person)
        write(of, "UPDATE person SET stage = 'game'")
        act(of, who.id, Event("start"))
        play_well(of, who)
        decide(of, who.id, decision, "=why" if decision == REJECT else "")
    write(of, "UPDATE review SET bonus_cents = 123")
    return of


def files(of: Study, folder: Path) -> dict[str, str]:
    """The payment files; only their owner may read them."""
    found = export_payments(of, folder / "pay")
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in found)
    return {path.name: path.read_text() for path in found}


def test_prolific_gets_its_files(tmp_path: Path) -> None:
    assert files(decided(tmp_path, "prolific"), tmp_path) == {
        "pilot-prolific-approve.txt": "W-good\n",
        "pilot-prolific-bonus.txt": "W-good,1.23\n",
        "pilot-prolific-reject.csv": "participant_id,reason\nW-bad,'=why\n",
    }


def test_mturk_gets_its_file(tmp_path: Path) -> None:
    (text,) = files(decided(tmp_path, "mturk", assignment="AS", hit="HI"), tmp_path).values()
    good, bad = csv.DictReader(io.StringIO(text))
    assert good == {
        "AssignmentId": "AS",
        "WorkerId": "W-good",
        "HITId": "HI",
        "Approve": "x",
        "Reject": "",
        "BonusAmount": "1.23",
        "EarlierAssignments": "",
    }
    assert (bad["Approve"], bad["Reject"]) == ("", "'=why")


STRANGE = ("a,b", 'say "hi"', "two\u2028lines", "semi;colon", "tab\there")


@pytest.mark.parametrize("platform", ["prolific", "mturk", "link"])
def test_strange_ids_stay_one_cell_of_one_line(platform: str, tmp_path: Path) -> None:
    """Current versions refuse these ids, but an old database may have them, or a study's pattern may accept them."""
    of = decided(tmp_path, platform)
    write(of, "UPDATE review SET decision = 'approve'")
    for strange in STRANGE:
        write(of, "UPDATE external_id SET external = ? WHERE external LIKE 'W-%'", strange)
        for name, text in files(of, tmp_path).items():
            cells = [*csv.reader(io.StringIO(text))]
            assert len({len(row) for row in cells}) == 1, (name, text)
            ids = {row[1 if platform == "mturk" else 0] for row in cells}
            assert "reject" in name or " ".join(strange.split()) in ids, (name, text)
        write(of, "UPDATE external_id SET external = 'W-' || person")


def test_several_assignments_of_a_worker_are_marked(tmp_path: Path) -> None:
    of = decided(tmp_path, "mturk", assignment="AS", hit="HI")
    assert [one.odd for one in review_games(of)] == ["assignment of another worker"] * 2
    write(
        of,
        """UPDATE external_id SET kept_json = '{"assignment": "B", "hit": "H", "earlier": ["A", "C"]}'
              WHERE external = 'W-good'""",
    )
    assert [one.odd for one in review_games(of)] == ["3 assignments", ""]
    (text,) = files(of, tmp_path).values()
    good, bad = csv.DictReader(io.StringIO(text))
    assert (good["AssignmentId"], good["HITId"], good["EarlierAssignments"]) == ("B", "H", "A C")
    assert bad["EarlierAssignments"] == ""


def test_other_platforms_get_codes_and_amounts(tmp_path: Path) -> None:
    of = decided(tmp_path, "link")
    (text,) = files(of, tmp_path).values()
    good, bad = csv.DictReader(io.StringIO(text))
    assert (good["id"], good["base"], good["bonus"], good["currency"]) == ("W-good", "2.50", "1.23", "GBP")
    assert (bad["base"], bad["bonus"]) == ("0.00", "0.00")
    assert good["completion_code"] in [row["completion_code"] for row in rows(of, "SELECT * FROM game")]
