"""Simulated games as jobs: rows, keys, the three protocols, resuming and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import icy
from icy.cli import main
from icy.core.errors import IcyError
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult, read_results
from icy.experiments.run import stacks_of
from icy.experiments.sweep import make_sweep, sweep_request
from icy.records.kinds import job_kind
from icy.study.players.player import Log, logs_text, play
from icy.study.players.simulated import Memoriser
from icy.study.simulate import train
from icy.study.study_job import StudyRequest
from icy.training.combinations import jobs_of
from icy.training.job import Job
from tests.study.game.helpers import game_of

SHORT: dict[str, Any] = {
    "grammar": ("concat", "perm"), "instances": 2, "hidden": 8, "updates": 3,
    "game": {"examples": 10, "held_out_at": [5, 7, 9], "interval": 2},
}  # fmt: skip


def jobs(**given: Any) -> list[Job]:
    return list(jobs_of(job_kind("study"), StudyRequest(**{**SHORT, **given})))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> ProbeResult:
    """Two players, one of them a sender, under all protocols."""
    folder = tmp_path_factory.mktemp("study") / "results"
    protocols = ["played", "converged", "yoked"]
    return icy.train("study", player=["composer", "FC2L"], dataset="synth", protocol=protocols, most=4000, workers=1,
                     out=folder, **SHORT)  # fmt: skip


def test_all_combinations_are_rows() -> None:
    both = {"dataset": ("synth", "eng"), "protocol": ("played", "yoked"), "preset": "published,clean"}
    found = jobs(player="composer,FC2L", **both)
    assert len(found) == 16
    assert len({job.row for job in found}) == 16
    assert len({job.key(r) for job in found for r in job.replicates}) == 16 * 4
    assert found[0].facts == {"dataset": "synth", "protocol": "played", "preset": "published"}


def test_keys_depend_on_what_can_change_numbers_alone() -> None:
    def key(**given: Any) -> str:
        return next(job.key(job.replicates[0]) for job in jobs(**{"player": "composer", "dataset": "synth", **given}))

    assert key() == key(updates=9) == key(most=7) == key(hidden=99)  # settings of senders
    others = [key(options={"adds": True}), key(list_seed=1), key(preset="published"), key(game={"start": 3})]
    assert len({key(), *others}) == 5
    assert key(player="FC2L") != key(player="FC2L", updates=9)
    converged = {"player": "FC2L", "protocol": "converged"}  # no updates between items
    assert key(**converged) == key(**converged, updates=9) != key(**converged, most=7)
    assert key(protocol="yoked", yoked_to="random-letters") != key(protocol="yoked")


def test_results(played: ProbeResult) -> None:
    long = played.to_dataframe()
    assert len(long) == 2 * 3 * 2 * 2
    assert not long["failed"].any()
    composer = long[(long["model"] == "composer") & (long["grammar"] == "concat")]
    assert (composer["value"] == 1).all()
    assert set(long["items"]) == {3}
    converged = long[long["protocol"] == "converged"]
    assert (converged["trained"] == 1).all()
    assert converged["score"].isna().all()
    assert (converged["trained_items"] == 6).all()
    assert (long[long["protocol"] == "played"]["trained_items"] == 7).all()
    assert long[long["protocol"] == "yoked"]["agreement"].between(0, 1).all()
    sender = long[(long["model"] == "FC2L") & (long["protocol"] == "played")]
    assert (sender["steps"] == 30).all()


def test_the_curve_is_the_items(played: ProbeResult) -> None:
    record = next(r for r in played.records if r["protocol"] == "played")
    assert [point[0] for point in record["curve"]] == list(range(1, 11))
    assert [point[3] for point in record["curve"]] == [0, 0, 0, 0, 0, 1, 0, 1, 0, 1]


def test_numbers_do_not_depend_on_company(played: ProbeResult) -> None:
    plan = make_plan(StudyRequest(player="FC2L", dataset="synth", workers=1, **SHORT))
    whole = {o.replicate: o.accuracy for o in train(plan.rows[0].job)}
    alone = {o.replicate: o.accuracy for stack in stacks_of(plan.rows[0], "cpu", 4) for o in train(stack)}
    saved = {
        (r["grammar"], r["seed"]): r["accuracy"]
        for r in played.records
        if (r["model"], r["protocol"]) == ("FC2L", "played")
    }
    assert len(stacks_of(plan.rows[0], "cpu", 4)) > 1
    assert whole == alone
    assert {(r.condition, r.seed): a for r, a in whole.items()} == saved


def test_saved_games_are_not_played_again(played: ProbeResult) -> None:
    spec = StudyRequest(player=["composer", "memoriser"], dataset="synth", out=played.folder, **SHORT)
    assert make_plan(spec).total == 4  # the games of the memoriser


def test_a_yoked_player_sees_what_the_other_saw(tmp_path: Path) -> None:
    """A memoriser yoked to a memoriser's games in a file answers ordinary items as in those games."""
    games = [game_of(dataset="eng", grammar="rot", number=n, seed=n) for n in range(2)]
    logs = [Log(str(n), game, tuple(play(game, Memoriser(), n).events)) for n, game in enumerate(games)]
    path = tmp_path / "games.jsonl"
    path.write_text(logs_text(logs))
    result = icy.train("study", player="memoriser", dataset="eng", grammar="rot", protocol="yoked", yoked_to=str(path),
                       workers=1, out=tmp_path / "results")  # fmt: skip
    long = result.to_dataframe()
    assert long["seed"].tolist() == [0, 1]
    for record, log in zip(result.records, logs, strict=True):
        theirs = [float(t.correct) for t in log.game.replay(log.events).trials if t.held_out is None]
        assert [point[1] for point in record["curve"] if not point[3]] == theirs
    with pytest.raises(IcyError, match="has no game of the dataset 'synth'"):
        jobs(player="memoriser", dataset="synth", protocol="yoked", yoked_to=str(path))


def test_the_published_preset_has_a_converged_protocol(tmp_path: Path) -> None:
    result = icy.train("study", player="composer", dataset="eng", grammar="concat", protocol="converged", workers=1,
                       preset="published", instances=1, out=tmp_path)  # fmt: skip
    assert result.records[0]["accuracy"] == 1.0  # magenta was seen in two other cards
    assert result.to_dataframe()["trained_items"].tolist() == [22]


def test_a_sender_that_does_not_converge_is_marked(tmp_path: Path) -> None:
    result = icy.train("study", player="FC2L", dataset="synth", protocol="converged", most=1, workers=1, out=tmp_path,
                       **SHORT)  # fmt: skip
    assert {r["reason"] for r in result.records} == {"cap"}
    assert {r["steps"] for r in result.records} == {1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"player": "composr"}, "did you mean composer"),
        ({"protocol": "joked"}, "did you mean yoked"),
        ({"preset": "clan"}, "did you mean clean"),
        ({"dataset": "english"}, "No dataset is called 'english'"),
        ({"device": "cuda"}, "play on the CPU"),
        ({"instances": 0}, "setting instances"),
        ({"game": {"exampels": 3}}, "did you mean examples"),
        ({"options": {"slop": 1}}, "composer cannot be made: .*slop"),
        ({"protocol": "yoked", "yoked_to": "nobody"}, "No study-player is called 'nobody'"),
        ({"protocol": "yoked", "yoked_to": "nowhere.jsonl"}, "cannot be read"),
        ({"player": "FC2L", "settings": {"learning_rat": 1}}, "did you mean learning_rate"),
    ],
)
def test_invalid_settings_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(IcyError, match=message):
        jobs(**given)


def test_sweeps_accept_simulated_games(tmp_path: Path) -> None:
    several = {"player": ["composer", "random-letters"], "protocol": ["played", "yoked"]}
    part = {"kind": "study", "dataset": "synth", **several, **SHORT}
    plan = make_sweep(sweep_request(parts=[part], out=tmp_path, shard="1/2"))
    assert sum(len(row.job.replicates) for row in plan.rows) in (8, 16)
    assert len(plan.rows) in (2, 4)


def test_the_command(tmp_path: Path) -> None:
    words = ["study", "simulate", "--player", "composer", "--player", "random-letters", "--dataset", "synth",
             "--instances", "1", "--grammar", "concat", "--protocol", "played", "--protocol", "converged",
             "--workers", "1", "-o", str(tmp_path / "games"), "--format", "markdown", "-q"]  # fmt: skip
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.output.count("| composer | 1 | 1.00 |") == 2  # a table per protocol
    assert len(read_results([tmp_path / "games"]).records) == 4
    listed = CliRunner().invoke(main, ["study", "simulate", "--dry-run", "--format", "json", *words[2:-3]])
    assert json.loads(listed.stdout)[0]["model"] == "composer"
