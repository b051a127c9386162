"""The replicate engine: the same readings in any company, and every replicate ends when it should."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from icy.config.settings import settings_for
from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.grammars import make_language
from icy.languages.meanings import MeaningSpace
from icy.languages.splits import SPLITS, Split
from icy.training import engine
from icy.training.batches import Batches
from icy.training.engine import train
from icy.training.job import Outcome, Reading, Replicate
from icy.training.language_job import LanguageJob
from icy.training.learners import Learner, make_learner
from icy.training.lockstep import Lockstep
from icy.training.probe_settings import ProbeSettings
from icy.training.task_models import make_model
from tests.cores import both_engines
from tests.helpers import mark_others
from tests.training.helpers import (
    CPU,
    MODELS,
    SEEDS,
    SETTINGS,
    SMALL,
    Plain,
    holding_out,
    job,
    outcomes,
    plug_in,
    task,
)

# -- a stack equals separate runs --------------------------------------------------------------------------------------


@pytest.mark.slow
@both_engines
@pytest.mark.parametrize("model", MODELS)
def test_a_seed_reads_the_same_alone_and_in_company(model: str, how: str) -> None:
    grammars, baselines = ("rot", "perm", "shufdet"), {seed: 20 + 10 * (seed % 3) for seed in SEEDS}
    together = outcomes(job(model, [(g, s) for g in grammars for s in SEEDS], baselines=baselines, engine=how))
    five_seeds = outcomes(job(model, [("rot", s) for s in SEEDS], baselines=baselines, engine=how))
    for seed in SEEDS[:2]:
        alone = outcomes(job(model, [("rot", seed)], baselines=baselines, engine=how))["rot", seed]
        for other in (together["rot", seed], five_seeds["rot", seed]):
            assert (other.curve, other.accuracy, other.steps) == (alone.curve, alone.accuracy, alone.steps)
    assert len({tuple(o.curve) for o in together.values()}) == len(together)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("model", MODELS)
def test_a_gpu_gives_the_same_readings_to_tolerance(model: str) -> None:
    replicates, baselines = [(g, s) for g in ("rot", "perm") for s in SEEDS[:2]], {1: 20, 2: 30}
    cpu = outcomes(job(model, replicates, baselines=baselines))
    gpu = outcomes(job(model, replicates, baselines=baselines, device="cuda"))
    for key, outcome in cpu.items():
        assert [steps for steps, _ in gpu[key].curve] == [steps for steps, _ in outcome.curve]
        assert gpu[key].accuracy == pytest.approx(outcome.accuracy, abs=0.02)


# -- initial weights and draws -----------------------------------------------------------------------------------------


def test_all_grammars_of_a_seed_start_from_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[nn.Module]] = []

    def spy(models: list[nn.Module], *rest: Any) -> Learner:
        seen.append(copy.deepcopy(models))
        return make_learner(models, *rest)

    monkeypatch.setattr(engine, "make_learner", spy)
    outcomes(job("sender/FC2L", [("rot", 1), ("perm", 2), ("perm", 1)], baselines={1: 10, 2: 10}))
    (models,) = seen
    states = [nn.utils.parameters_to_vector(model.parameters()) for model in models]
    assert torch.equal(states[0], states[2])
    assert not torch.equal(states[0], states[1])
    alone = make_model(task("sender/FC2L"), 1, SETTINGS)
    assert torch.equal(states[0], nn.utils.parameters_to_vector(alone.parameters()))


def test_making_a_model_leaves_the_random_state() -> None:
    before = torch.random.get_rng_state()
    make_model(task("sender/RNNZero:GRU"), 1, SETTINGS)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_published_models_have_the_published_defects() -> None:
    of = task("receiver/Hier:GRU")
    assert make_model(of, 1, settings_for("published")).shared_gate
    assert not make_model(of, 1, settings_for("default")).shared_gate
    assert not make_model(task("receiver/Hier:GRU", shared_gate=False), 1, settings_for("published")).shared_gate


# -- held-out meanings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SPLITS)
def test_held_out_meanings_are_never_trained_on(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a whole run, with replicates leaving it one by one."""
    seen: dict[tuple[str, int], set[int]] = {}
    original = Batches.batches

    def spy(
        draws: Batches, purpose: str, first: int, count: int, size: int, which: list[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        meanings, messages = original(draws, purpose, first, count, size, which)
        seeds = draws._seed_of if which is None else draws._seed_of[torch.tensor(which)]
        for i, seed in enumerate(seeds.tolist()):  # of the seeds in order
            numbers = SMALL.index(meanings[:, i].flatten(0, 1).numpy())
            seen.setdefault((purpose, (1, 2)[seed]), set()).update(numbers.tolist())
        return meanings, messages

    monkeypatch.setattr(Batches, "batches", spy)
    split = Split(kind, 0.3)
    ended = outcomes(holding_out("sender/FC2L", [(g, s) for g in ("concat", "hol") for s in (1, 2)], split))
    assert {o.reason for o in ended.values()} <= {"target", "cap"}
    for seed in (1, 2):
        held_out = set(split.held_out(SMALL, seed).tolist())
        assert seen["report", seed] == held_out
        for purpose in ("training", "check", "report on training"):
            assert seen[purpose, seed] == set(range(9)) - held_out


@pytest.mark.slow
@both_engines
@pytest.mark.parametrize("model", ["sender/FC2L", "receiver/Hier:GRU"])
def test_generalise_reads_the_same_alone_and_in_company(model: str, how: str) -> None:
    split, grammars = Split("random", 0.3), ("concat", "rot", "perm")
    together = outcomes(holding_out(model, [(g, s) for g in grammars for s in (1, 2, 3)], split, engine=how))
    alone = outcomes(holding_out(model, [("concat", 3), ("rot", 3)], split, engine=how))
    for place, outcome in alone.items():
        other = together[place]
        assert (other.curve, other.accuracy, other.steps) == (outcome.curve, outcome.accuracy, outcome.steps)
        assert other.extra == outcome.extra
    assert all(o.extra["train_accuracy"] > 0.9 for o in together.values() if o.reason == "target")


def test_a_memory_model_knows_its_examples_and_guesses_the_rest() -> None:
    """An unseen meaning scores zero everywhere, and the argmax of that is the symbol 0."""
    split = Split("random", 0.3)
    of = holding_out("sender/Hashtable", [(g, 1) for g in ("concat", "hol")], split)
    for (grammar, _), outcome in outcomes(of).items():
        assert outcome.reason == "target"
        assert outcome.extra["train_accuracy"] == 1
        language = make_language(grammar, SMALL, 4, 2, 1)
        _, messages = Batches([language], [1], CPU, split).batches("report", outcome.steps, 1, SETTINGS.evaluation_size)
        assert outcome.accuracy == pytest.approx((messages == 0).double().mean().item())
        assert outcome.accuracy < 0.7


def test_generalise_stops_at_the_target_or_the_cap_and_reports_both_accuracies(play: Any) -> None:
    script = {("concat", 1): crosses(20), ("rot", 1): crosses(35, 0.995), ("hol", 1): crosses(999)}
    ended, _ = play(script, protocol="generalise", cap=3)
    assert told(ended) == {
        ("concat", 1): ("target", 20, 20),
        ("rot", 1): ("target", 40, 20),
        ("hol", 1): ("cap", 60, 20),
    }
    assert [o.extra for o in ended] == [{"train_accuracy": pytest.approx(x)} for x in (1, 0.995, 0.1)]


def test_a_stopping_reading_uses_training_meanings_and_diverged_replicates_have_none(play: Any) -> None:
    script = {("concat", 1): crosses(20), ("rot", 1): crosses(15, math.nan)}
    ended, _ = play(script, protocol="generalise", training=replace(SETTINGS, fresh_reading=False))
    assert {o.replicate.condition: o.extra for o in ended} == {"concat": {"train_accuracy": 1.0}, "rot": {}}


# -- when replicates end -----------------------------------------------------------------------------------------------

Script = Mapping[tuple[str, int], Callable[[int], float]]


def crosses(at: int, then: float = 1.0) -> Callable[[int], float]:
    """Reads 0.1 until so many updates have been made."""
    return lambda updates: then if updates >= at else 0.1


class Scripted:
    """A stand-in for a learner and for `accuracy`: accuracies and losses of replicates come from a script."""

    engine = "scripted"

    def __init__(self, replicates: Sequence[Replicate], script: Script) -> None:
        self.active, self.script = list(replicates), script
        self.updates = 0
        self.sizes: list[int] = []

    def update(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        assert len(inputs) == len(targets) == len(self.active)
        self.updates += 1
        self.sizes.append(len(self.active))

    def train(self, inputs: Tensor, targets: Tensor, keys: Tensor) -> None:
        for batch in zip(inputs, targets, keys, strict=True):
            self.update(*batch)

    def readings(self, _: Any = None, __: Any = None, ___: Any = None, which: list[int] | None = None) -> Tensor:
        read = [self.script[r.condition, r.seed](self.updates) for r in self.active]
        return torch.tensor(read if which is None else [read[i] for i in which])

    def losses(self) -> Tensor:
        return self.readings()  # NaN where the script says so

    def keep(self, which: list[int]) -> None:
        self.active = [self.active[i] for i in which]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Outcome], Scripted]]:
    def run(script: Script, **changes: Any) -> tuple[list[Outcome], Scripted]:
        of = job("sender/FC2L", list(script), **changes)
        learner = Scripted(of.replicates, script)
        monkeypatch.setattr(engine, "make_learner", lambda *_: learner)
        monkeypatch.setattr(engine, "accuracy", learner.readings)
        return list(train(of)), learner

    return run


def told(ended: Sequence[Outcome]) -> dict[tuple[str, int], tuple[str, int, int | None]]:
    return {(o.replicate.condition, o.replicate.seed): (o.reason, o.steps, o.baseline_steps) for o in ended}


def test_budget_stops_every_grammar_with_its_own_concat(play: Any) -> None:
    script = {
        ("rot", 1): crosses(10),
        ("concat", 1): crosses(30),
        ("concat", 2): crosses(45),
        ("rot", 2): crosses(999),
        ("perm", 1): crosses(999),
    }
    ended, learner = play(script)
    assert told(ended) == {
        ("rot", 1): ("budget", 30, 30),
        ("concat", 1): ("target", 30, 30),
        ("perm", 1): ("budget", 30, 30),
        ("concat", 2): ("target", 50, 50),  # the first check at or after 45
        ("rot", 2): ("budget", 50, 50),
    }
    assert learner.sizes == [5] * 30 + [2] * 20  # finished replicates cost nothing
    assert next(o for o in ended if o.replicate == Replicate("rot", 2)).curve == [
        (steps, pytest.approx(0.1)) for steps in (10, 20, 30, 40, 50)
    ]


def test_acquire_stops_at_the_target_or_the_cap(play: Any) -> None:
    script = {
        ("concat", 1): crosses(20),
        ("perm", 1): crosses(20),
        ("rot", 1): crosses(35),
        ("hol", 1): crosses(999),
    }
    ended, learner = play(script, protocol="acquire", cap=3)
    assert told(ended) == {
        ("concat", 1): ("target", 20, 20),
        ("perm", 1): ("target", 20, 20),
        ("rot", 1): ("target", 40, 20),
        ("hol", 1): ("cap", 60, 20),
    }
    assert learner.sizes == [4] * 20 + [2] * 20 + [1] * 20


def test_a_grammar_learned_before_concat_waits_for_its_baseline(play: Any) -> None:
    script = {("concat", 1): crosses(30), ("perm", 1): crosses(10)}
    ended, _ = play(script, protocol="acquire")
    assert told(ended) == {("perm", 1): ("target", 10, 30), ("concat", 1): ("target", 30, 30)}
    script = {("concat", 1): crosses(999), ("perm", 1): crosses(10)}
    ended, _ = play(script, protocol="acquire", training=replace(SETTINGS, max_steps=40))
    assert told(ended) == {("perm", 1): ("no_baseline", 0, None), ("concat", 1): ("max_steps", 40, None)}
    assert all(o.failed for o in ended)


@pytest.mark.parametrize("protocol", ["budget", "acquire"])
def test_without_a_baseline_replicates_fail(play: Any, protocol: str) -> None:
    script = {
        ("concat", 1): crosses(999),
        ("rot", 1): crosses(999),
        ("concat", 2): crosses(20),
        ("rot", 2): crosses(20),
    }
    ended, _ = play(script, protocol=protocol, training=replace(SETTINGS, max_steps=30))
    assert told(ended)["concat", 1] == ("max_steps", 30, None)
    assert told(ended)["rot", 1] == ("no_baseline", 0, None)
    assert [o.replicate.seed for o in ended if not o.failed] == [2, 2]


# -- the geometric grid ------------------------------------------------------------------------------------------------

GEOMETRIC = replace(SETTINGS, check_every=None, check_growth=0.05, max_steps=5000)


def rises(per_update: float) -> Callable[[int], float]:
    """Reads this much more with every update."""
    return lambda updates: min(1.0, per_update * updates)


def test_the_step_of_the_target_is_interpolated(play: Any) -> None:
    script = {("concat", 1): rises(0.8 / 33.3), ("rot", 1): rises(0.8 / 101.7), ("perm", 1): rises(0.8 / 7.25)}
    ended, _ = play(script, protocol="acquire", training=GEOMETRIC)
    found = {o.replicate.condition: o for o in ended}
    assert {name: o.crossing for name, o in found.items()} == pytest.approx(
        {"concat": 33.3, "rot": 101.7, "perm": 7.25}
    )
    assert {name: o.steps for name, o in found.items()} == {"concat": 34, "rot": 106, "perm": 8}
    for outcome in ended:
        assert outcome.baseline_crossing == pytest.approx(33.3)
        assert outcome.baseline_steps == 34
    assert found["rot"].curve[0][0] == 1


def test_a_crossing_beyond_the_cap_is_cut(play: Any) -> None:
    # The cap is at 3 * 33.3 = 99.9, between the checks after 97 and 101 updates.
    settings = replace(GEOMETRIC, max_steps=97 + 4)
    script = {("concat", 1): rises(0.8 / 33.3), ("rot", 1): rises(0.8 / 99.5), ("hol", 1): rises(0.8 / 100.5)}
    ended, _ = play(script, protocol="acquire", cap=3, training=settings)
    found = {o.replicate.condition: (o.reason, o.crossing) for o in ended}
    assert found["rot"] == ("target", pytest.approx(99.5))
    assert found["hol"] == ("cap", None)


def test_the_budget_is_the_check_at_which_concat_stopped(play: Any) -> None:
    script = {("concat", 1): rises(0.99 / 33.3), ("rot", 1): rises(0.001)}
    ended, _ = play(script, training=GEOMETRIC)
    assert told(ended) == {("concat", 1): ("target", 34, 34), ("rot", 1): ("budget", 34, 34)}
    ended, _ = play({("rot", 1): rises(0.001)}, training=GEOMETRIC, baselines={1: 33.3})
    assert told(ended) == {("rot", 1): ("budget", 34, 34)}  # the same from a record of concat


def test_by_the_clock_every_grammar_ends_at_the_check_after_concats(play: Any) -> None:
    clock = replace(SETTINGS, clock=True, check_growth=0.5)
    script = {("concat", 1): crosses(31), ("rot", 1): crosses(999)}
    ended, learner = play(script, training=clock)
    assert told(ended) == {("concat", 1): ("target", 45, 45), ("rot", 1): ("budget", 67, 45)}
    assert [steps for steps, _ in ended[1].curve] == [10, 20, 30, 45, 67]
    assert learner.sizes == [2] * 45 + [1] * 22
    ended, _ = play({("rot", 1): crosses(999)}, training=clock, baselines={1: 45})
    assert told(ended) == {("rot", 1): ("budget", 67, 45)}


def test_readings_of_training_batches_are_means_since_the_last_check(play: Any) -> None:
    """Each batch is read before its update, so the mean of updates 11 to 20 is that of 10 to 19 updates."""
    script = {("concat", 1): rises(0.01), ("rot", 1): rises(0.001)}
    settings = replace(SETTINGS, training_readings=True, fresh_reading=False)
    ended, _ = play(script, training=settings, target=0.4)
    assert [o.curve for o in ended] == [
        [(n, pytest.approx(rate * (n - 5.5))) for n in (10, 20, 30, 40, 50)] for rate in (0.01, 0.001)
    ]
    assert told(ended)["concat", 1] == ("target", 50, 50)
    assert ended[0].accuracy == pytest.approx(0.445)


def test_the_first_crossing_counts(play: Any) -> None:
    """If a grammar is trained beyond the target, later accuracies do not matter."""
    script = {
        ("concat", 1): rises(0.99 / 33.3),
        ("rot", 1): crosses(10),
        ("perm", 1): lambda n: 1.0 if n != 20 else 0.2,
    }
    ended, _ = play(script, training=GEOMETRIC)
    assert {o.replicate.condition: (o.reason, o.steps) for o in ended} == {
        "concat": ("target", 34), "rot": ("budget", 34), "perm": ("budget", 34),
    }  # fmt: skip


def test_a_fixed_grid_interpolates_nothing(play: Any) -> None:
    ended, _ = play({("concat", 1): rises(0.8 / 33.3), ("rot", 1): rises(0.8 / 51)}, protocol="acquire")
    assert told(ended) == {("concat", 1): ("target", 40, 40), ("rot", 1): ("target", 60, 40)}
    assert [(o.crossing, o.baseline_crossing) for o in ended] == [(None, None)] * 2


def test_baselines_on_file_give_the_same_ratio_as_baselines_in_the_stack() -> None:
    both = job(
        "sender/FC2L", [("concat", 1), ("perm", 1)], protocol="acquire", training=replace(GEOMETRIC, batch_size=64)
    )
    together = outcomes(both)
    known = both.baselines_in([both.record(together["concat", 1])])
    assert known == {1: together["concat", 1].crossing}
    apart = outcomes(replace(both, replicates=(Replicate("perm", 1),), baselines=known))["perm", 1]
    assert (apart.crossing, apart.baseline_crossing) == (together["perm", 1].crossing, known[1])


def test_diverging_replicates_end_at_once(play: Any) -> None:
    script = {
        ("concat", 1): crosses(30),
        ("rot", 1): crosses(15, math.nan),
        ("concat", 2): crosses(15, math.inf),
        ("rot", 2): crosses(999),
    }
    ended, learner = play(script)
    assert told(ended) == {
        ("rot", 1): ("diverged", 20, 30),
        ("concat", 2): ("diverged", 20, None),
        ("rot", 2): ("no_baseline", 0, None),
        ("concat", 1): ("target", 30, 30),
    }
    assert all(math.isnan(o.accuracy) for o in ended if o.reason == "diverged")
    assert learner.sizes == [4] * 20 + [1] * 10


def test_a_failed_baseline_leaves_the_same_record_whenever_it_became_known(play: Any) -> None:
    script = {("concat", 1): crosses(999), ("perm", 1): crosses(10), ("rot", 1): crosses(20, math.nan)}
    settings = replace(SETTINGS, max_steps=40)
    beside, _ = play(script, protocol="acquire", training=settings)
    after = [
        play({(name, 1): script[name, 1]}, protocol="acquire", training=settings, baselines={1: "max_steps"})[0][0]
        for name in ("perm", "rot")
    ]
    found = {o.replicate.condition: replace(o, seconds=0, accuracy=0) for o in beside}
    assert found.pop("concat").reason == "max_steps"
    assert found == {o.replicate.condition: replace(o, seconds=0, accuracy=0) for o in after}
    assert {(o.reason, o.steps, tuple(o.curve)) for o in found.values()} == {("no_baseline", 0, ())}


def test_known_baselines_need_no_concat(play: Any) -> None:
    script = {("rot", 1): crosses(999), ("rot", 2): crosses(999)}
    ended, _ = play(script, baselines={1: 20, 2: "max_steps"})
    assert told(ended) == {("rot", 1): ("budget", 20, 20), ("rot", 2): ("no_baseline", 0, None)}
    with pytest.raises(InvalidSettingError, match="Seed 2 has no run of concat"):
        list(train(job("sender/FC2L", [("rot", 1), ("rot", 2)], baselines={1: 20})))


def test_published_steps_count_from_zero(play: Any) -> None:
    script = {("concat", 1): crosses(25), ("rot", 1): crosses(999)}
    ended, learner = play(script, training=replace(SETTINGS, steps_from_zero=True))
    assert told(ended) == {("concat", 1): ("target", 30, 30), ("rot", 1): ("budget", 30, 30)}
    assert [steps for steps, _ in ended[0].curve] == [0, 10, 20, 30]
    assert learner.updates == 31


@pytest.mark.parametrize("fresh", [True, False])
def test_the_reading_that_stopped_a_run_is_reported_only_if_asked(monkeypatch: pytest.MonkeyPatch, fresh: bool) -> None:
    purposes: list[str] = []
    original = engine.Probes._read
    monkeypatch.setattr(
        engine.Probes, "_read", lambda run, purpose, *more: purposes.append(purpose) or original(run, purpose, *more)
    )
    settings = replace(SETTINGS, fresh_reading=fresh)
    outcome = outcomes(job("sender/FC2L", [("rot", 1)], training=settings, baselines={1: 20}))["rot", 1]
    assert purposes == ["check", "check", *(["report"] if fresh else [])]
    assert (outcome.accuracy == outcome.curve[-1][1]) == (not fresh)


def test_every_check_is_reported() -> None:
    seen: list[list[Reading]] = []
    list(train(job("sender/FC2L", [("rot", 1), ("rot", 2)], baselines={1: 20, 2: 30}), seen.append))
    assert [[(r.replicate.seed, r.steps) for r in readings] for readings in seen] == [
        [(1, 10), (2, 10)],
        [(1, 20), (2, 20)],
        [(2, 30)],
    ]
    assert all(0 <= r.accuracy <= 1 for readings in seen for r in readings)


@pytest.mark.parametrize("model", ["sender/FC2L", "receiver/FC2L", "receiver/kNN", "sender/Hashtable"])
def test_a_real_run_from_end_to_end(model: str) -> None:
    replicates = [(g, s) for g in ("concat", "perm", "hol") for s in (1, 2)]
    settings = replace(SETTINGS, max_steps=2000)
    ended = outcomes(job(model, replicates, target=0.9, training=settings))
    assert set(ended) == set(replicates)
    for (grammar, seed), outcome in ended.items():
        assert outcome.reason == ("target" if grammar == "concat" else "budget")
        assert outcome.steps == outcome.baseline_steps == ended["concat", seed].steps
        assert outcome.curve[-1][0] == outcome.steps
        assert outcome.seconds > 0
    assert ended["concat", 1].accuracy > 0.8
    if model.endswith("FC2L"):
        assert ended["hol", 1].accuracy < ended["concat", 1].accuracy


# -- plain modules as plug-ins -----------------------------------------------------------------------------------------


def test_models_that_cannot_be_trained_are_refused_in_a_sentence() -> None:
    class Still(nn.Module):
        def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
            super().__init__()
            self.shape = (message_length, vocab_size + 1)

        def forward(self, meanings: Tensor) -> Tensor:
            return torch.zeros(len(meanings), *self.shape)

    class Narrow(Plain):
        def forward(self, meanings: Tensor) -> Tensor:
            return super().forward(meanings)[..., :-1]

    with pytest.raises(IncompatibleError, match="Still has no parameters to train"):
        list(train(job(plug_in(Still), [("concat", 1)])))
    with pytest.raises(IncompatibleError, match=r"sender/plug-in outputs scores of shape \(2, 6, 4\).*\(2, 6, 5\)"):
        list(train(job(plug_in(Narrow), [("concat", 1)])))
    with pytest.raises(UnknownNameError, match="did you mean vmap"):
        list(train(job("sender/FC2L", [("concat", 1)], engine="vmaps")))


@both_engines
@pytest.mark.parametrize(
    "model",
    mark_others(
        "slow",
        ["sender/FC2L", "sender/HierZero:GRU", "sender/RNNZero2L:RNN", "sender/RNNAutoReg:LSTM", "receiver/Hier:GRU"],
        lambda model: model == "sender/FC2L",
    ),
)
def test_weights_do_not_depend_on_the_stack(model: str, how: str) -> None:
    """At the papers' size, to the last bit: alone, first of three, last of three."""
    budget = ProbeSettings.of_model(model, MeaningSpace(5, 10), protocol="budget")

    def trained(seeds: tuple[int, ...], place: int) -> Tensor:
        replicates = tuple(Replicate("concat", seed) for seed in seeds)
        course = engine.Probes(LanguageJob(settings=budget, replicates=replicates, engine=how))
        Lockstep(course).advance(3)
        return torch.cat([value.flatten() for value in course.learner.weights(place).values()])

    alone = trained((7,), 0)
    assert torch.equal(alone, trained((7, 8, 9), 0))
    assert torch.equal(alone, trained((8, 9, 7), 2))
