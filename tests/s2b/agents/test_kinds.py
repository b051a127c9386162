"""Trainings of agents as jobs: they are resumed, swept and saved, and saved agents play."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import icy
from icy.core.errors import IcyError, IncompatibleError, StoreError, UnknownNameError
from icy.core.registry import LISTENER, SPEAKER, registry
from icy.experiments.plan import make_plan
from icy.experiments.players import players_of
from icy.experiments.results import ProbeResult
from icy.experiments.sweep import make_sweep, sweep_request
from icy.experiments.sweep_file import read_sweep
from icy.records.kinds import job_kind
from icy.records.store import CHECKPOINTS
from icy.s2b import AcquisitionSettings, GameSettings, ease_of_acquisition, evaluate, never_listening
from icy.s2b.agents.agent_run import Agents
from icy.s2b.agents.kinds import AgentRequest, AgentSettings
from icy.s2b.agents.learners import LEARNERS, learners_called, make_r2d2
from icy.s2b.agents.r2d2.r2d2_learning import R2D2Settings
from icy.s2b.agents.saved_networks import FILE, FittedPlayer, SavedAgent, fitted, one_agent
from icy.training.combinations import jobs_of
from icy.training.job import Job
from icy.training.weights import card_of
from tests.helpers import all_numbers
from tests.training.resuming import kill_at_checkpoint

TINY: dict[str, Any] = {
    "most": 2, "updates": 4, "episodes": 20, "seeds": 2, "workers": 1, "progress": False, "report_every": 2,
}  # fmt: skip
FEW: dict[str, Any] = {"episodes": 4}  # in a batch
SHORT = {"batch": 4, "length": 4, "burn_in": 1, "overlap": 2, "capacity": 64}  # sequences of the replay buffer
BY_VALUES: dict[str, Any] = {"actors": 2, "learning_starts": 0, "observations_per_update": 10}  # first update after 40


def train(out: Path, **given: Any) -> ProbeResult:
    settings = {**FEW, **given.pop("settings", {})}
    return icy.train("s2b", out=out, settings=settings, **{**TINY, **given})


def rows_of(request: AgentRequest) -> Sequence[Job]:
    return jobs_of(job_kind("s2b"), request)


def of_length(learner: str, updates: int) -> dict[str, Any]:
    """Return options for a training with a learner, a core that it can train, and this number of updates."""
    core = "pairs" if learners_called("s2b", learner)[0].memories else "LSTM"
    if learner in ("r2d2", "vdn"):
        return {"learner": learner, "core": core, "observations": 30 + 10 * updates, "settings": BY_VALUES}
    return {"learner": learner, "core": core, "updates": updates, "settings": FEW}


# -- a spec ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("core", ["pairs", "LSTM"])
def test_the_default_entropy_is_higher_with_distractors(core: str) -> None:
    def entropies(**given: Any) -> list[tuple[float, bool]]:
        jobs = rows_of(AgentRequest(core=core, distractors=[0, 3], **given))
        shown = [job.config(job.replicates[0])["options"] for job in jobs]
        return [(job.settings.learning.entropy, "entropy" in options) for job, options in zip(jobs, shown, strict=True)]

    assert entropies() == [(0.01, False), (0.1, False)]  # listed only if it is not the default of the game
    assert entropies(settings={"entropy": 0.1}) == [(0.1, True), (0.1, False)]
    assert entropies(settings={"entropy": 0.01}) == [(0.01, False), (0.01, True)]


# -- a run -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("learner", list(dict.fromkeys(one.name for one in LEARNERS["s2b"])))
def test_every_learner_trains_evaluates_and_plays(learner: str, tmp_path: Path) -> None:
    how = of_length(learner, 2)
    core = how["core"]
    tiny = {name: value for name, value in TINY.items() if name != "updates"}
    (record,) = icy.train("s2b", out=tmp_path, keep_models=True, **{**tiny, **how, "seeds": 1}).records
    assert not record["failed"], record.get("error")
    assert record["model"] == f"{core}+{learner}"
    both = learners_called("s2b", learner)[0].both
    assert record["grammar"] == ("learned" if both else "posdis")
    assert record["steps"] == 2
    assert [point[0] for point in record["curve"]] == [0, 2]
    game = AgentSettings.of_config(record["config"]["settings"]["setup"]).game
    agent = one_agent(tmp_path)
    speaker: Any = agent.player(SPEAKER) if both else "posdis"
    played = evaluate(speaker, agent.player(LISTENER), game, episodes=20, seeds=1).table()
    assert record["accuracy"] == pytest.approx(float(played["zsct"][0]), abs=1e-6)
    assert record["support"] == pytest.approx(float(played["support"][0]), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["ppo", "supervised", "r2d2"])
@pytest.mark.parametrize("core", ["LSTM-512", "DCEM", "PairMemory"])
def test_cores_of_all_learners_are_selected_by_name(core: str, learner: str, tmp_path: Path) -> None:
    how = {**of_length(learner, 1), "core": core.lower(), "options": {"heads": 1} if core == "PairMemory" else {}}
    preset = {"preset": "near32", "settings": {**BY_VALUES, **SHORT}}
    tiny = {name: value for name, value in TINY.items() if name != "updates"}
    of = preset if learner == "r2d2" else {}
    (record,) = icy.train("s2b", out=tmp_path, keep_models=True, **{**tiny, **how, **of, "seeds": 1}).records
    assert not record["failed"], record.get("error")
    assert record["model"] == f"{core}+{learner}"
    assert (
        evaluate("posdis", one_agent(tmp_path).player(LISTENER), most=2, episodes=2, seeds=1)
        .table()["zsct"]
        .notna()
        .all()
    )


def test_a_record_has_the_configuration_and_the_results(tmp_path: Path) -> None:
    result = train(tmp_path, samples=2, game={"query": "tss"}, options={"heads": 1})
    record = result.records[0]
    assert (record["kind"], record["seed"], record["config"]["values"]) == ("s2b", 123, "2-2")
    assert record["config"]["options"] == {"game.query": "tss", "heads": 1, "updates": 4, "episodes": 4}
    floors = never_listening(GameSettings(most=2, samples=2, query="tss"), episodes=20, seeds=1)
    assert record["floor"] == pytest.approx(float(floors[["novelty", "novelty-meaning", "order"]].iloc[0].max()))
    assert record["constant_floor"] == pytest.approx(float(floors[["always-yes", "always-no"]].iloc[0].max()))
    updates, _, _, observations, reconstructed = zip(*record["curve"], strict=True)
    assert set(reconstructed) == {None}  # trained without the reconstruction loss
    assert updates == (0, 2, 4)
    assert observations[0] == 0 < observations[1] < observations[2] == record["observations"]
    long = result.to_dataframe()
    assert long["samples"].tolist() == [2, 2]
    assert set(long["options"]) == {
        "distractors=0, episodes=4, game.query=tss, heads=1, samples=2, shots=1, updates=4, values=2-2"
    }
    assert "pairs+ppo" in result.table()
    assert "deaf" in result.table()


@pytest.mark.slow
def test_the_reconstruction_accuracy_is_recorded(tmp_path: Path) -> None:
    how = {**of_length("r2d2", 2), "options": {"sizes": [4]}, "most": 2, "episodes": 2, "seeds": 1, "workers": 1}
    how["settings"] = {**BY_VALUES, "reconstruction": {"hidden": 4}}
    (record,) = icy.train("s2b", out=tmp_path, **how).records
    assert record["points"] == ["steps", "accuracy", "support", "observations", "reconstructed"]
    assert all(0 <= point[-1] <= 1 for point in [*record["curve"], (record["reconstructed"],)])


@pytest.mark.slow
def test_observations_end_a_training(tmp_path: Path) -> None:
    (record,) = train(tmp_path, observations=100, updates=50, seeds=1).records
    assert (record["reason"], record["steps"]) == ("budget", 1)
    assert record["observations"] >= 100


@pytest.mark.process
def test_a_pool_gives_the_same_numbers(tmp_path: Path) -> None:
    train(tmp_path / "serial", seeds=3)
    train(tmp_path / "pool", seeds=3, workers=2)
    assert all_numbers(tmp_path / "pool") == all_numbers(tmp_path / "serial")


@pytest.mark.slow
def test_the_record_of_a_pair_has_language_metrics(tmp_path: Path) -> None:
    (record,) = train(tmp_path, learner="pair", seeds=1, settings={"warmup": 2}).records
    for name in ("topsim", "posdis", "bosdis", "distinct"):
        assert -1 <= record[name] <= 1  # type: ignore[literal-required]
    assert "ease_of_acquisition" not in record
    assert "distinct" in ProbeResult.load(tmp_path).table()


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["pair", "pair-gumbel", "vdn"])
def test_ease_of_acquisition_of_a_pair_is_measured_if_requested(
    learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quickly = partial(ease_of_acquisition, settings=AcquisitionSettings(epochs=2))
    monkeypatch.setattr("icy.s2b.agents.agent_run.ease_of_acquisition", quickly)
    tiny = {name: value for name, value in TINY.items() if name != "updates"}
    how = {**tiny, **of_length(learner, 1), "seeds": 1, "most": 3, "episodes": 4}
    result = icy.train("s2b", out=tmp_path, eoa=2, keep_models=True, **how)
    (record,) = result.records
    assert {"topsim", "posdis", "bosdis", "distinct"} <= set(record)
    speaker = one_agent(tmp_path).player(SPEAKER)
    alone = quickly(speaker, GameSettings(most=3), episodes=2, seed=123)
    assert record["ease_of_acquisition"] == pytest.approx(alone["zsct"].mean())  # type: ignore[typeddict-item]
    assert "EoA" in result.table()


@pytest.mark.slow
def test_a_training_without_ease_of_acquisition_still_has_a_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    small = {"dimensions": 2}  # so that the query has a single meaning
    (record,) = train(tmp_path, learner="pair", seeds=1, game=small, eoa=1).records
    assert not record["failed"]
    assert "ease_of_acquisition" not in record
    assert "fewer than two meanings" in caplog.text


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["pairs+ppo"]),
        ({"deaf": True}, ["pairs+ppo", "pairs+ppo (deaf)"]),
        ({"hearing": False}, ["pairs+ppo (deaf)"]),
        ({"hearing": False, "deaf": True}, ["pairs+ppo (deaf)"]),
    ],
)
def test_twins_of_an_agent(options: dict[str, bool], names: list[str]) -> None:
    assert [job.name for job in rows_of(AgentRequest(most=2, **options))] == names


@pytest.mark.slow
def test_every_agent_gets_a_deaf_twin(tmp_path: Path) -> None:
    result = train(tmp_path, deaf=True, seeds=1, keep_models=True)
    assert [r["model"] for r in result.records] == ["pairs+ppo", "pairs+ppo (deaf)"]
    scores = [
        evaluate(speaker, one_agent(tmp_path, model="pairs+ppo (deaf)").player(LISTENER), most=2, seeds=1).table()
        for speaker in ("posdis", "random")
    ]
    assert scores[0]["zsct"].tolist() == scores[1]["zsct"].tolist()  # messages make no difference


def test_nested_settings_are_listed_if_they_differ_from_defaults(tmp_path: Path) -> None:
    own = {**BY_VALUES, "reconstruction": {"hidden": 8}}
    (row,) = make_plan(
        AgentRequest.asked(out=str(tmp_path), core="LSTM", learner="vdn", most=2, observations=60, settings=own)
    ).rows
    options = row.job.config(row.job.replicates[0])["options"]
    stored = {"actors": 2, "least": 0, "observations_per_update": 10}
    assert options == {**stored, "observations": 60, "reconstruction": {"hidden": 8}}


# -- resumed -----------------------------------------------------------------------------------------------------------


UPDATES = 40  # enough that a kill at the first checkpoint comes before the end
SMALL = {"ppo": {"heads": 1}, "pair": {"heads": 1}, "r2d2": {"sizes": [8]}}  # options of the core


@pytest.mark.process
@pytest.mark.parametrize("learner", ["ppo", "pair", "r2d2"])
def test_killed_and_resumed_equals_uninterrupted(learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill in the middle of a training does not change its results and weights, to the bit."""
    out = tmp_path / "killed"
    whole = of_length(learner, UPDATES) | {"most": 2, "seeds": 1, "episodes": 20, "workers": 1}
    whole |= {"keep_models": True, "report_every": 10, "options": SMALL[learner]}
    whole["settings"] = whole["settings"] | (SHORT if learner == "r2d2" else {})
    (state,) = kill_at_checkpoint('icy.train("s2b", ', out, whole)
    reached = state["updates"]
    assert 0 < reached < UPDATES
    assert load_records_or_none(out) == []
    seen: list[int] = []
    real = Agents.read
    monkeypatch.setattr(Agents, "read", lambda course: seen.append(course.updates) or real(course))
    icy.train("s2b", out=out, progress=False, **whole)
    assert seen[0] >= reached  # resumed from the checkpoint
    assert not (out / CHECKPOINTS).exists()
    icy.train("s2b", out=tmp_path / "whole", progress=False, **whole)
    assert all_numbers(out) == all_numbers(tmp_path / "whole")
    weights = [next((folder / "models").iterdir()).read_bytes() for folder in (out, tmp_path / "whole")]
    assert weights[0] == weights[1]


def load_records_or_none(folder: Path) -> list[Any]:
    return list((folder / "records").glob("*.json"))


@pytest.mark.slow
def test_a_training_that_cannot_save_a_checkpoint_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("icy.training.lockstep.SECONDS", 0.0)
    monkeypatch.setattr("icy.training.lockstep.SHARE", math.inf)
    (tmp_path / CHECKPOINTS).write_text("no folder")
    train(tmp_path, seeds=1)
    assert "No checkpoint of pairs+ppo on posdis, seed 123" in caplog.text
    train(tmp_path / "whole", seeds=1)
    assert all_numbers(tmp_path) == all_numbers(tmp_path / "whole")


# -- planned -----------------------------------------------------------------------------------------------------------


def rows(**given: Any) -> list[tuple[str, str, dict[str, Any]]]:
    found = make_plan(AgentRequest.asked(out="nowhere", seeds=1, **given)).rows
    return [(row.name, row.job.replicates[0].condition, row.job.config(row.job.replicates[0])) for row in found]


def test_options_with_several_values_give_one_row_per_combination() -> None:
    found = rows(core=["pairs", "joint"], learner="ppo,pair", speaker=["posdis", "bosdis"], samples="1,4", most=[2, 3])
    games = 4
    assert len(found) == 2 * games * (2 + 1)  # a pair trains its own speaker, so it has one row for both
    assert {name for name, _, _ in found} == {"pairs+ppo", "joint+ppo", "pairs+pair", "joint+pair"}
    assert {(c["values"], c["samples"]) for _, _, c in found} == {("2-2", 1), ("2-2", 4), ("2-3", 1), ("2-3", 4)}


def test_records_have_one_name_for_equal_presets_and_old_names_are_read() -> None:
    (job,) = rows_of(AgentRequest(core="LSTM", learner="r2d2", preset="metarg24", most=2))
    assert job.preset == job.settings.preset == "metarg22"
    assert "metarg24" not in str(job.config(job.replicates[0]))
    later = replace(job.settings, preset="near32", learning=R2D2Settings.preset("near32", sad=False))
    old = {**later.setup(), "preset": "metarg24"}  # of a record with the old name
    assert AgentSettings.of_config(old, report_every=later.report_every) == later


def test_records_keep_the_old_names_of_settings_and_files_may_have_either() -> None:
    names = {"rate": "learning_rate", "least": "learning_starts", "explore": "epsilon", "clip": "max_grad_norm"}
    old = dict(zip(names, (0.01, 0, 0.5, 1.0), strict=True))
    one, other = (
        rows_of(AgentRequest(core="LSTM", learner="r2d2", observations=10_000, settings=settings))[0]
        for settings in (old, {names[name]: value for name, value in old.items()})
    )
    config = one.config(one.replicates[0])
    assert config == other.config(other.replicates[0])
    assert {name: config["settings"]["setup"]["settings"][name] for name in names} == old
    assert {name: config["options"][name] for name in names} == old
    settings = AgentSettings.of_config(config["settings"]["setup"]).learning
    assert [getattr(settings, name) for name in names.values()] == list(old.values())


def test_an_unknown_preset_is_named_as_it_was_given() -> None:
    with pytest.raises(UnknownNameError, match="No preset of this learner is called 'metarg24'; known: default"):
        rows_of(AgentRequest(core="LSTM", learner="ppo", preset="metarg24"))


def test_a_core_that_takes_parts_gets_no_joint_layers() -> None:
    (job,) = rows_of(AgentRequest(core="DCEM", learner="r2d2", preset="metarg24"))
    network = make_r2d2(job.settings, 0).agents[0].network
    assert (network.settings.stimulus, network.settings.joint) == ((512, 256, 128), ())
    assert network.core.parts.vision == 128


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"core": "pears"}, "did you mean pairs"),
        ({"learner": "ppa"}, "did you mean ppo"),
        ({"settings": {"learning_rat": 1}}, "learning_rate"),
        ({"settings": {"updates": "many"}}, "updates cannot be 'many'"),
        ({"options": {"head": 2}}, "heads"),
        ({"game": {"querry": "tss"}}, "query"),
        ({"game": {"shots": 2}}, "separate option"),
        ({"preset": "metarg23"}, "preset"),
        ({"learner": "pair", "most": 5, "game": {"vocab_size": 3}}, "token per dimension and value"),
        ({"speaker_options": {"heads": 2}}, "speaker that learns"),
        ({"core": "LSTM", "options": {"size": 3}}, "core/LSTM cannot be made"),
        ({"core": "pairs", "learner": "r2d2"}, "did you mean PairMemory"),
        ({"core": "LSTM", "learner": "r2d2", "settings": {"sad": True}}, "sad"),
        ({"core": "LSTM", "learner": "r2d2", "updates": 3}, "with `observations`"),
        ({"eoa": 2}, "speaker that learns, as"),
        ({"core": "LSTM", "learner": "r2d2", "observations": 100}, "makes no update"),
        ({"core": ""}, "core has no value"),
        ({"observations": 0}, "observations must be .* at least 1"),
        ({"updates": 3, "settings": {"updates": 2}}, "given twice"),
        ({"options": {"heads": 0}}, r"^The setting heads must be a whole number, at least 1, not 0\.$"),
        ({"core": "joint", "options": {"aligned": True}}, "has no alignment"),
        ({"game": {"feedback": False}}, "end with feedback"),
        ({"core": "LSTM", "game": {"masks": "near32"}}, r"^With masks .* take masks 'paper'\.$"),
    ],
)
def test_options_that_are_not_accepted_raise_clear_errors(given: dict[str, Any], why: str) -> None:
    with pytest.raises(IcyError, match=why):
        rows(**given)


def test_a_setting_of_the_learner_overrides_quick() -> None:
    (row,) = make_plan(AgentRequest.asked(out="nowhere", quick=True, settings={"updates": 7})).rows
    assert row.job.settings.updates == 7


def test_a_sweep_is_planned_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text(
        'seeds = 1\nworkers = 1\n[[sweep]]\nkind = "s2b"\nsamples = [1, 2]\nmost = 2\nupdates = 1\nepisodes = 10\n'
        'set = {episodes = 4}\nlearner = ["ppo", "supervised"]\n'
    )
    spec = sweep_request(**read_sweep(file), out=str(tmp_path / "out"))
    plan = make_sweep(spec)
    assert {(row.name, row.facts["samples"]) for row in plan.rows} == {
        (f"pairs+{learner}", samples) for learner in ("ppo", "supervised") for samples in "12"
    }
    shares = [make_sweep(sweep_request(**read_sweep(file), out="none", shard=f"{i}/2")).rows for i in (1, 2)]
    assert [len(share) for share in shares] == [2, 2]
    file.write_text(file.read_text().replace("most = 2", "most = true"))
    with pytest.raises(IcyError, match="line 6: most"):
        read_sweep(file)


# -- saved -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_saved_agents_equal_the_trained_agents(tmp_path: Path) -> None:
    result = train(tmp_path, keep_models=True)
    found = SavedAgent.find(tmp_path)
    assert sorted(agent.label for agent in found) == ["pairs+ppo, seed 123", "pairs+ppo, seed 124"]
    with pytest.raises(StoreError, match="has 2 saved models that match, which differ in seed"):
        one_agent(tmp_path)
    with pytest.raises(StoreError, match="seed=9"):
        SavedAgent.find(tmp_path, seed=9)
    with pytest.raises(UnknownNameError, match="did you mean seed"):
        SavedAgent.find(tmp_path, sed=123)
    file = next((tmp_path / "models").glob(f"{result.records[0]['key']}*"))
    card = card_of(file.read_bytes())
    assert card["scores"]["zsct"] == result.records[0]["accuracy"]
    assert card["software"]["icy"] == icy.__version__
    alone = one_agent(file)
    from_folder = one_agent(tmp_path, seed=123)
    module = result.model("posdis", seed=123)
    assert not module.training
    scores = [
        evaluate("posdis", agent.player(LISTENER), most=2, episodes=20, seeds=1).table()["zsct"][0]
        for agent in (alone, from_folder)
    ]
    assert scores[0] == scores[1] == pytest.approx(result.records[0]["accuracy"], abs=1e-6)
    with pytest.raises(StoreError, match="posdis"):
        alone.player(SPEAKER)


@pytest.mark.slow
def test_a_path_without_agents_raises_an_error(tmp_path: Path) -> None:
    train(tmp_path, seeds=1)
    with pytest.raises(StoreError, match="--keep-models"):
        SavedAgent.find(tmp_path)
    (tmp_path / "a.safetensors").write_bytes(b"nothing")
    with pytest.raises(StoreError, match="damaged"):
        SavedAgent.find(tmp_path / "a.safetensors")


@pytest.mark.slow
def test_labels_distinguish_agents_of_different_games(tmp_path: Path) -> None:
    """Two agents with the same seed keep separate files."""
    train(tmp_path, samples=[1, 4], seeds=1, keep_models=True, episodes=4)
    labels = [agent.label for agent in SavedAgent.find(tmp_path)]
    assert sorted(labels) == ["pairs+ppo, seed 123, samples=1", "pairs+ppo, seed 123, samples=4"]
    assert one_agent(tmp_path, samples=4).label == "pairs+ppo, seed 123"
    assert [player.label for player in players_of([str(tmp_path)], LISTENER)] == labels


# -- the trained listener that comes with icy --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "least"),
    [
        ({"most": 3}, 0.98),
        ({}, 0.98),
        ({"most": 5, "samples": 4, "query": "tss"}, 0.97),
        ({"most": 3, "dimensions": 2}, 0.97),
        ({"most": 3, "dimensions": 4}, 0.95),
        ({"most": 3, "rounds": 2, "length": 2}, 0.95),
    ],
)
def test_the_memory_plays_games_that_it_was_not_trained_on(given: dict[str, Any], least: float) -> None:
    assert float(evaluate("posdis", "memory", episodes=40, seeds=1, **given).table()["zsct"][0]) >= least


def test_the_memory_is_at_chance_with_random_messages() -> None:
    deaf = evaluate("random", "memory", most=3, episodes=100, seeds=1).table()["zsct"][0]
    assert float(deaf) == pytest.approx(0.5, abs=0.05)


def test_games_that_the_memory_cannot_play_raise_an_error() -> None:
    for given, why in (({"representation": "ohe"}, "one number"), ({"vocab_size": 40}, "vocabulary of 32")):
        with pytest.raises(IncompatibleError, match=why):
            evaluate("posdis", "memory", episodes=2, seeds=1, **given)  # type: ignore[arg-type]


def test_the_file_is_small_and_has_a_card() -> None:
    assert FILE.stat().st_size < 100_000
    card = one_agent(FILE).card
    assert card["model"] == "pairs+ppo"
    assert card["scores"]["zsct"] > 0.98
    assert card["git"]


def test_fitted_memories_keep_weights_and_adapt_the_alignment() -> None:
    player = registry.get("memory", LISTENER).create()
    assert isinstance(player, FittedPlayer)
    assert fitted(player.trained, GameSettings()) is player.trained
    other = fitted(player.trained, GameSettings(dimensions=2, length=4))
    assert other.alignment.shape == (2, 4)
    assert other.alignment.argmax(1).tolist() == [0, 1]
    assert torch.equal(other.lookup.query.weight, player.trained.lookup.query.weight)
    rounds = fitted(player.trained, GameSettings(rounds=2, length=2))
    assert rounds.alignment.argmax(1).tolist() == [0, 1, 3]
