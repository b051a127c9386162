"""Jobs of a request of games: presets, rows, and checks before training."""

from __future__ import annotations

from typing import Any

import pytest

from icy.core.errors import IcyError, InvalidSettingError
from icy.experiments.plan import make_plan
from icy.experiments.sweep import make_sweep, sweep_request
from icy.games.settings import PRESETS, GamesRequest, GamesSettings, find_preset
from icy.records.long_table import to_long
from icy.training.job import Job, Outcome

from .helpers import TINY, jobs


def only(**given: Any) -> Job:
    (job,) = jobs(**given)
    return job


def test_the_default_game_equals_the_paper() -> None:
    setup = only().settings
    assert (setup.world, setup.representation, setup.word_size, setup.message_length) == ("thing", "qt", 6, 1)
    assert (setup.turns.targets, setup.turns.distractors, setup.learning.batch_size) == (20, 20, 10)
    assert (setup.sender_hidden, setup.receiver_hidden, setup.learning.learning_rate) == (60, 40, 5e-4)
    assert setup.changes() == {}
    assert only(representation="gs", rule_length=4).settings.word_size == 50


@pytest.mark.slow
def test_combinations_are_rows_and_seeds_and_distractors_are_one_stack() -> None:
    found = jobs(
        representation=["gs", "qt"], rule_length="1,4", targets=[5, 8], distractor_kind=["near", "auto", "uniform"]
    )
    assert len(found) == 8
    rows = [(job.settings.representation, job.settings.turns) for job in found]
    assert {(channel, turns.rule_length, turns.targets) for channel, turns in rows} == {
        (channel, length, targets) for channel in ("gs", "qt") for length in (1, 4) for targets in (5, 8)
    }
    assert all(turns.distractors == turns.targets for _, turns in rows)
    for job in found:
        kinds = [r.condition for r in job.replicates]
        assert kinds == ["near"] * 3 + ["uniform"] * 3
        assert [r.seed for r in job.replicates] == [123, 124, 125] * 2


def test_settings_are_rebuilt_from_its_configuration() -> None:
    job = only(**{n: v for n, v in TINY.items() if n != "workers"}, settings={"epoch": 5}, game={"held_out": 0.25})
    config = job.config(job.replicates[0])
    again = GamesSettings.of_setup(config["settings"]["setup"])
    assert again == job.settings
    assert config["options"] == {
        "world.attributes": 3, "world.values": 4, "sender_hidden": 8, "receiver_hidden": 8, "held_out": 0.25,
        "epoch": 5,
    }  # fmt: skip
    assert (config["representation"], config["rule_length"], config["world"]) == ("qt", 2, "thing")


def test_a_record_has_a_row_in_the_long_table() -> None:
    job = only(**{n: v for n, v in TINY.items() if n != "workers"})
    extra = dict.fromkeys(("cbm", "cbm_floor", "ami"), 0.5) | job.settings.sizes
    record = job.record(Outcome(job.replicates[0], "steps", 12, 0.75, [[0, 0.5, None, 0.1, 0.2, 3]], extra=extra))
    long = to_long([record])
    assert long[["value", "cbm", "rule_length", "targets", "vocab_size"]].iloc[0].tolist() == [0.75, 0.5, 2, 3, 4]
    assert "world=thing" in long["options"].iloc[0]


# -- presets -----------------------------------------------------------------------------------------------------------


def test_the_preset_published_changes_only_what_applies() -> None:
    gs, qt = jobs(preset="published", representation=["gs", "qt"], rule_length=4)
    assert (gs.settings.updates, gs.settings.word_size, gs.settings.words) == (400_000, 50, 49)
    assert gs.settings.representation_options == {}
    assert qt.settings.representation_options == {"normalise": "batch"}
    learning = qt.settings.learning
    assert (qt.settings.words, learning.selected_on, learning.unmatched) == (6, "test", "assigned")
    assert qt.config(qt.replicates[0])["options"] == {}  # all settings are from the preset
    assert (
        only(preset="published", representation="gs").settings.words == 50
    )  # a message of one word does not reserve an end


def test_options_override_the_preset() -> None:
    options = {
        "preset": "published",
        "representation_options": {"normalise": "sigmoid"},
        "settings": {"unmatched": "matched"},
    }
    setup = only(**options, steps=50, rule_length=4).settings
    assert (setup.updates, setup.representation_options, setup.learning.unmatched) == (
        50,
        {"normalise": "sigmoid"},
        "matched",
    )
    assert only(preset="mugoodman21/concept", steps=20_000, targets=20, quick=False).settings.turns.targets == 20


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("mugoodman21/")])
def test_the_games_of_mu_and_goodman(name: str) -> None:
    given = {"world_options": {"canvas": 16}, "sender_hidden": 8, "receiver_hidden": 8}
    setup = only(preset=name, **given).settings
    assert (setup.world, setup.representation, setup.words, setup.message_length) == ("shape", "gs", 14, 5)
    assert (setup.turns.targets, setup.sender_sees, setup.learning.batch_size) == (10, "both", 128)
    assert setup.turns.same_objects == (name != "mugoodman21/concept")
    assert setup.turns.repeat_target == (name == "mugoodman21/reference")
    assert setup.turns.rules == ("conjunctions" if name == "mugoodman21/reference" else "formulas")
    assert setup.made_world.attributes == ("shape", "colour")


def test_presets_have_names_and_reasons() -> None:
    assert all(departure.reason and departure.settings for found in PRESETS.values() for departure in found.values())
    with pytest.raises(IcyError, match="did you mean published"):
        find_preset("publisht")


# -- rejected values ---------------------------------------------------------------------------------------------------


def test_old_names_of_options_are_accepted_and_records_keep_them() -> None:
    new = only(representation="gs", representation_options={"tau": 0.5})
    assert only(channel="gs", channel_options={"tau": 0.5}) == new
    config = new.config(new.replicates[0])
    assert (config["representation"], config["options"]) == ("gs", {"channel.tau": 0.5})
    setup = config["settings"]["setup"]
    assert (setup["channel"], setup["channel_options"]) == ("gs", {"tau": 0.5})
    assert GamesSettings.of_setup(setup) == new.settings


# -- plans -------------------------------------------------------------------------------------------------------------


def test_sweeps_expand_and_are_sharded() -> None:
    given = {"kind": "games", "channel": ["gs", "qt"], "rule_length": [1, 2], "seeds": 1, "out": "nowhere"}
    whole = make_sweep(sweep_request(**given)).rows
    assert len(whole) == 4
    shares = [make_sweep(sweep_request(**given, shard=f"{i}/2")).rows for i in (1, 2)]
    assert {row.job.row for share in shares for row in share} == {row.job.row for row in whole}


def test_quick_is_small() -> None:
    (row,) = make_plan(GamesRequest.asked(quick=True, out="nowhere")).rows
    assert (row.job.settings.updates, len(row.job.replicates)) == (300, 2)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"word_size": 0}, "word size must be a whole number, at least 1, not 0"),
        ({"word_size": "few"}, "word size must be a whole number, at least 1, not 'few'"),
        ({"message_length": "few"}, "message length must be a whole number, at least 1, not 'few'"),
        ({"targets": "few"}, "number of targets must be a whole number, at least 1, not 'few'"),
        ({"distractors": "few"}, "number of distractors must be a whole number, at least 1, not 'few'"),
    ],
)
def test_sizes_are_numbers(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        jobs(**given)
