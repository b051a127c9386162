"""The replicate engine: a stack equals separate runs, draws are paired, and every replicate ends when it should."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.config.protocols import decide, get_protocol
from icy.config.settings import TrainingSettings, settings_for
from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.noise import counter_hash
from icy.core.registry import Entry, registry
from icy.core.representations import SOFT
from icy.core.streams import stream_key
from icy.grammars import make_language
from icy.languages.meanings import MeaningSpace
from icy.languages.splits import SPLITS, Split
from icy.models.cells import GRUCell
from icy.models.layers import flat_one_hot
from icy.training import engine, learners
from icy.training.batches import Draws, Pool, draw_meanings
from icy.training.engine import make_model, train
from icy.training.job import Job, Outcome, Reading, Replicate, Task
from icy.training.learners import GradientLearner, Learner, accuracy, make_learner, supervised_loss

torch.set_num_threads(1)

SPACE = MeaningSpace(3, 4)
CPU = torch.device("cpu")
SETTINGS = TrainingSettings(batch_size=16, learning_rate=0.01, check_every=10, evaluation_size=64, max_steps=200)
MODELS = ["sender/FC2L", "sender/HierZero:GRU", "sender/RNNAutoReg:LSTM", "receiver/Hier:GRU"]
SEEDS = (1, 2, 3, 4, 5)


def task(model: str | Entry, **options: Any) -> Task:
    entry = registry.get(model) if isinstance(model, str) else model
    return Task(entry, SPACE, vocab_size=4, word_length=2, hidden_size=16, options=options)


def job(model: str | Entry, replicates: Sequence[tuple[str, int]], **changes: Any) -> Job:
    defaults = {"protocol": get_protocol("budget"), "settings": SETTINGS}
    return Job(task(model), replicates=tuple(Replicate(*r) for r in replicates), **{**defaults, **changes})


def outcomes(of: Job) -> dict[tuple[str, int], Outcome]:
    return {(o.replicate.grammar, o.replicate.seed): o for o in train(of)}


def batches(side: str, count: int, seed: int = 0, size: int = 8) -> tuple[Tensor, Tensor]:
    """Inputs and targets [replicate, batch, ...], different for each replicate."""
    generator = torch.Generator().manual_seed(seed)
    meanings = torch.randint(4, (count, size, 3), generator=generator)
    messages = torch.randint(4, (count, size, 6), generator=generator)
    return (meanings, messages) if side == "sender" else (messages, meanings)


def step(learner: Learner, inputs: Tensor, targets: Tensor) -> None:
    """An update of every replicate, under the same noise."""
    learner.update(inputs, targets, torch.zeros(len(inputs), dtype=torch.long))


def stacked(
    of: Task, seeds: Sequence[int], settings: TrainingSettings = SETTINGS, how: str = "auto", loss: Any = None
) -> Learner:
    models = [make_model(of, seed, settings) for seed in seeds]
    sample = batches(of.side, len(seeds))[0]
    return make_learner(models, seeds, loss or supervised_loss(SOFT, of.side), settings, CPU, sample, how)


def weights(learner: Learner) -> dict[str, Tensor]:
    assert isinstance(learner, GradientLearner)
    return {name: p.detach() for name, p in learner._stack.parameters.items()}


# -- a stack equals separate runs --------------------------------------------------------------------------------------


def plain_loop(model: nn.Module, side: str, data: Sequence[tuple[Tensor, Tensor]], settings: TrainingSettings) -> None:
    """Training as anyone would write it."""
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    for inputs, targets in data:
        optimiser.zero_grad()
        scores = model(inputs)
        loss = F.cross_entropy(scores.flatten(0, -2), targets.flatten())  # over all tokens or attribute values
        if side == "receiver":
            loss = loss * targets.shape[-1]
        loss.backward()  # type: ignore[no-untyped-call]
        if settings.clip_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        optimiser.step()


@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("model", [*MODELS, "sender/HierAutoReg:dgsend", "receiver/RNN2L:dgrecv"])
def test_a_stack_trains_as_plain_loops_do(model: str, clip: float | None) -> None:
    of, settings, seeds = task(model), replace(SETTINGS, clip_norm=clip, learning_rate=1e-3), SEEDS[:3]
    learner = stacked(of, seeds, settings)
    data = [batches(of.side, len(seeds), update) for update in range(5)]
    for inputs, targets in data:
        step(learner, inputs, targets)
    for i, seed in enumerate(seeds):
        alone = make_model(of, seed, settings)
        before = copy.deepcopy(alone.state_dict())
        plain_loop(alone, of.side, [(x[i], y[i]) for x, y in data], settings)
        for name, parameter in alone.named_parameters():
            assert not torch.equal(parameter, before[name])
            torch.testing.assert_close(weights(learner)[name][i], parameter.detach(), atol=2e-5, rtol=0)
        inputs, _ = data[0]
        with torch.no_grad():
            torch.testing.assert_close(learner.scores(inputs)[i], alone(inputs[i]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_a_seed_reads_the_same_alone_and_in_company(model: str) -> None:
    grammars, baselines = ("rot", "perm", "shufdet"), {seed: 20 + 10 * (seed % 3) for seed in SEEDS}
    together = outcomes(job(model, [(g, s) for g in grammars for s in SEEDS], baselines=baselines))
    five_seeds = outcomes(job(model, [("rot", s) for s in SEEDS], baselines=baselines))
    for seed in SEEDS[:2]:
        alone = outcomes(job(model, [("rot", seed)], baselines=baselines))["rot", seed]
        for other in (together["rot", seed], five_seeds["rot", seed]):
            assert (other.curve, other.accuracy, other.steps) == (alone.curve, alone.accuracy, alone.steps)
    assert len({tuple(o.curve) for o in together.values()}) == len(together)


@pytest.mark.parametrize(("model", "how"), [("sender/FC2L", "vmap"), *((model, "loop") for model in MODELS)])
def test_all_engines_give_the_same_numbers(model: str, how: str) -> None:
    of, seeds = task(model), SEEDS[:2]
    one, other = stacked(of, seeds), stacked(of, seeds, how=how)
    assert (one.engine, other.engine) == ("broadcast", how)
    for update in range(4):
        for learner in (one, other):
            step(learner, *batches(of.side, 2, update))
    inputs, _ = batches(of.side, 2, 9)
    torch.testing.assert_close(one.scores(inputs), other.scores(inputs), atol=1e-4, rtol=1e-4)
    losses = one.losses(), other.losses()
    assert losses[0] is not None
    assert losses[1] is not None
    torch.testing.assert_close(*losses)


def test_leaving_one_out_keeps_the_optimisers_state_of_the_others() -> None:
    of = task("sender/HierZero:GRU")
    whole, part = stacked(of, SEEDS), stacked(of, SEEDS)
    for learner in (whole, part):
        for update in range(3):
            step(learner, *batches("sender", 5, update))
    part.keep([4, 0, 2])
    for update in range(3, 6):
        inputs, targets = batches("sender", 5, update)
        step(whole, inputs, targets)
        step(part, inputs[[4, 0, 2]], targets[[4, 0, 2]])
    for name, value in weights(part).items():
        torch.testing.assert_close(value, weights(whole)[name][[4, 0, 2]], atol=1e-5, rtol=0)
    assert part.losses().shape == (3,)  # type: ignore[union-attr]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("model", MODELS)
def test_a_gpu_gives_the_same_readings_to_tolerance(model: str) -> None:
    replicates, baselines = [(g, s) for g in ("rot", "perm") for s in SEEDS[:2]], {1: 20, 2: 30}
    cpu = outcomes(job(model, replicates, baselines=baselines))
    gpu = outcomes(job(model, replicates, baselines=baselines, device="cuda"))
    for key, outcome in cpu.items():
        assert [steps for steps, _ in gpu[key].curve] == [steps for steps, _ in outcome.curve]
        assert gpu[key].accuracy == pytest.approx(outcome.accuracy, abs=0.02)


# -- clipping ----------------------------------------------------------------------------------------------------------


def scaled(by: Sequence[float]) -> Callable[[Tensor, Tensor], Tensor]:
    """A loss with a factor of its own for each replicate."""
    return lambda scores, targets, noise: SOFT.sender_loss(scores, targets) * torch.tensor(by)


def gradient_norms(learner: Learner) -> Tensor:
    assert isinstance(learner, GradientLearner)
    rows = [gradient.flatten(1) for gradient in learner._stack.gradients.values()]
    return torch.linalg.vector_norm(torch.cat(rows, 1), dim=1)


def test_clipping_acts_on_each_replicate_alone() -> None:
    of, seeds = task("sender/FC2L"), SEEDS[:3]
    calm, exploding = stacked(of, seeds, loss=scaled([1, 1, 1])), stacked(of, seeds, loss=scaled([1, 1e6, 1]))
    for update in range(3):
        for learner in (calm, exploding):
            step(learner, *batches("sender", 3, update))
    assert (gradient_norms(calm) < 1).all()
    assert gradient_norms(exploding)[1].item() == pytest.approx(5, rel=1e-4)
    for name, value in weights(exploding).items():
        assert torch.equal(value[[0, 2]], weights(calm)[name][[0, 2]])
        assert not torch.equal(value[1], weights(calm)[name][1])


def test_a_replicate_that_diverges_leaves_the_others_alone() -> None:
    of, seeds = task("sender/FC2L"), SEEDS[:3]
    calm, exploding = stacked(of, seeds, loss=scaled([1, 1, 1])), stacked(of, seeds, loss=scaled([1, math.inf, 1]))
    for update in range(2):
        for learner in (calm, exploding):
            step(learner, *batches("sender", 3, update))
    assert torch.isfinite(exploding.losses()).tolist() == [True, False, True]  # type: ignore[arg-type]
    for name, value in weights(exploding).items():
        assert torch.equal(value[[0, 2]], weights(calm)[name][[0, 2]])


def test_the_published_preset_does_not_clip() -> None:
    settings = settings_for("published")
    assert settings.clip_norm is None
    learner = stacked(task("sender/FC2L"), [1], settings, loss=scaled([1e6]))
    step(learner, *batches("sender", 1))
    assert gradient_norms(learner).item() > 1000


# -- initial weights and draws -----------------------------------------------------------------------------------------


def draws(grammars: Sequence[str], seeds: Sequence[int]) -> Draws:
    return Draws([make_language(g, SPACE, 4, 2, s) for g, s in zip(grammars, seeds, strict=True)], list(seeds), CPU)


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


def test_grammars_of_a_seed_see_the_same_meanings_and_their_own_messages() -> None:
    grammars, seeds = ["concat", "rot", "rot"], [7, 7, 8]
    meanings, messages = draws(grammars, seeds).batches("training", 0, 4, 16)
    assert meanings.shape == (4, 3, 16, 3)
    assert messages.shape == (4, 3, 16, 6)
    assert torch.equal(meanings[:, 0], meanings[:, 1])
    assert not torch.equal(meanings[:, 1], meanings[:, 2])
    for i, (grammar, seed) in enumerate(zip(grammars, seeds, strict=True)):
        language = make_language(grammar, SPACE, 4, 2, seed)
        expected = language.messages[SPACE.index(meanings[:, i].numpy())]
        np.testing.assert_array_equal(messages[:, i].numpy(), expected)


def test_draws_do_not_depend_on_the_packing_or_on_the_cutting() -> None:
    alone, packed = draws(["rot"], [7]), draws(["concat", "rot", "rot"], [9, 8, 7])
    for a, b in zip(alone.batches("check", 3, 2, 8), packed.batches("check", 3, 2, 8), strict=True):
        assert torch.equal(a[:, 0], b[:, 2])
    whole, _ = alone.batches("training", 0, 5, 8)
    later, _ = alone.batches("training", 3, 2, 8)
    assert torch.equal(whole[3:], later)
    packed.keep([2, 0])
    assert torch.equal(packed.batches("training", 0, 5, 8)[0][:, 0], whole[:, 0])
    assert not torch.equal(packed.batches("training", 0, 5, 8)[0][:, 1], whole[:, 0])


def test_purposes_have_streams_of_their_own() -> None:
    of = draws(["rot"], [7])
    drawn = [of.batches(purpose, 0, 1, 32)[0] for purpose in ("training", "check", "report")]
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[1], drawn[2])


@pytest.mark.parametrize("values", [3, 4, 10])
def test_meanings_are_uniform_and_independent(values: int) -> None:
    space, count = MeaningSpace(2, values), 40_000
    drawn = draw_meanings(space, torch.tensor([stream_key(1, "x"), stream_key(2, "x")]), 5, 2, count // 2)
    assert drawn.shape == (2, 2, count // 2, 2)
    for meanings in drawn.flatten(1, 2):
        cells = torch.bincount(meanings[:, 0] * values + meanings[:, 1], minlength=values**2).double()
        expected = count / values**2
        degrees = values**2 - 1
        chi_square = ((cells - expected) ** 2 / expected).sum().item()
        assert abs(chi_square - degrees) < 5 * math.sqrt(2 * degrees)
    agreement = (drawn[0] == drawn[1]).double().mean().item()
    assert agreement == pytest.approx(1 / values, abs=0.02)
    assert (drawn[0, 0, 1:] == drawn[0, 0, :-1]).double().mean().item() == pytest.approx(1 / values, abs=0.02)


def splitmix64(state: int) -> int:
    """The finaliser of Steele, Lea and Flood (2014), in whole numbers without a sign."""
    mask = 2**64 - 1
    z = state & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_counter_hash_is_splitmix64() -> None:
    golden = 0x9E3779B97F4A7C15
    keys, counters = [0, 1, 1_234_567, 2**63 - 1, stream_key(3, "y")], [0, 1, 2, 3, 4, 5, 10**9, 2**40 + 7]
    found = counter_hash(torch.tensor(keys)[:, None], torch.tensor(counters)).tolist()
    expected = [[splitmix64(key + counter * golden) for counter in counters] for key in keys]
    assert [[value % 2**64 for value in row] for row in found] == expected
    # The published first outputs for the seed 1234567.
    assert expected[2][1:4] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


# -- held-out meanings -------------------------------------------------------------------------------------------------

GENERALISE, SMALL = get_protocol("generalise"), MeaningSpace(2, 3)


def holding_out(model: str, replicates: Sequence[tuple[str, int]], split: Split, **changes: Any) -> Job:
    """A job of `generalise` in a space of nine meanings."""
    settings = replace(SETTINGS, max_steps=2000)
    of = job(model, replicates, protocol=GENERALISE, settings=settings, split=split)
    return replace(of, **{"task": replace(of.task, space=SMALL, hidden_size=16), **changes})


def drawn_numbers(draws: Draws, purpose: str, place: int) -> set[int]:
    meanings, _ = draws.batches(purpose, 3, 5, 64)
    return set(SMALL.index(meanings[:, place].flatten(0, 1).numpy()).tolist())


@pytest.mark.parametrize("kind", SPLITS)
def test_what_is_held_out_is_drawn_for_the_report_and_nothing_else_is(kind: str) -> None:
    seeds, split = [1, 2, 2], Split(kind, 0.4)
    languages = [make_language(g, SMALL, 4, 2, s) for g, s in zip(("rot", "rot", "hol"), seeds, strict=True)]
    of = Draws(languages, seeds, CPU, split)
    for place, (seed, language) in enumerate(zip(seeds, languages, strict=True)):
        held_out = set(split.held_out(SMALL, seed).tolist())
        assert drawn_numbers(of, "report", place) == held_out
        for purpose in ("training", "check", "report on training"):
            assert drawn_numbers(of, purpose, place) == set(range(9)) - held_out
        meanings, messages = of.batches("training", 0, 2, 8)
        expected = language.messages[SMALL.index(meanings[:, place].numpy())]
        np.testing.assert_array_equal(messages[:, place].numpy(), expected)


@pytest.mark.parametrize("kind", SPLITS)
def test_held_out_meanings_are_never_trained_on(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a whole run, with replicates leaving it one by one."""
    seen: dict[tuple[str, int], set[int]] = {}
    original = Draws.batches

    def spy(draws: Draws, purpose: str, *place: int) -> tuple[Tensor, Tensor]:
        meanings, messages = original(draws, purpose, *place)
        for i, which in enumerate(draws._seed_of.tolist()):  # of the seeds in order
            numbers = SMALL.index(meanings[:, i].flatten(0, 1).numpy())
            seen.setdefault((purpose, (1, 2)[which]), set()).update(numbers.tolist())
        return meanings, messages

    monkeypatch.setattr(Draws, "batches", spy)
    split = Split(kind, 0.3)
    ended = outcomes(holding_out("sender/FC2L", [(g, s) for g in ("concat", "hol") for s in (1, 2)], split))
    assert {o.reason for o in ended.values()} <= {"target", "cap"}
    for seed in (1, 2):
        held_out = set(split.held_out(SMALL, seed).tolist())
        assert seen["report", seed] == held_out
        for purpose in ("training", "check", "report on training"):
            assert seen[purpose, seed] == set(range(9)) - held_out


def test_a_pool_of_a_seed_is_drawn_alike_beside_a_larger_one() -> None:
    pools, keys = [np.array([4, 7, 8]), np.array([0, 1, 2, 3, 9])], torch.tensor([stream_key(s, "x") for s in (1, 2)])
    both = Pool(pools, CPU).draw(keys, 2, 3, 1000)
    for i, numbers in enumerate(pools):
        alone = Pool([numbers], CPU).draw(keys[i : i + 1], 2, 3, 1000)
        assert torch.equal(alone[0], both[i])
        counts = torch.bincount(both[i].flatten(), minlength=10)[numbers].double()
        expected = 3000 / len(numbers)
        assert ((counts - expected) ** 2 / expected).sum().item() < 20  # chi square, with at most 4 degrees of freedom
    later = Pool(pools, CPU).draw(keys, 3, 2, 1000)
    assert torch.equal(both[:, 1:], later)


@pytest.mark.parametrize("model", ["sender/FC2L", "receiver/Hier:GRU"])
def test_generalise_reads_the_same_alone_and_in_company(model: str) -> None:
    split, grammars = Split("random", 0.3), ("concat", "rot", "perm")
    together = outcomes(holding_out(model, [(g, s) for g in grammars for s in (1, 2, 3)], split))
    alone = outcomes(holding_out(model, [("concat", 3), ("rot", 3)], split))
    for place, outcome in alone.items():
        other = together[place]
        assert (other.curve, other.accuracy, other.steps) == (outcome.curve, outcome.accuracy, outcome.steps)
        assert other.extra == outcome.extra
    assert all(o.extra["train_accuracy"] > 0.9 for o in together.values() if o.reason == "target")


def test_a_memory_knows_what_it_saw_and_guesses_the_rest() -> None:
    """An unseen meaning scores zero everywhere, and the argmax of that is the symbol 0."""
    split = Split("random", 0.3)
    of = holding_out("sender/Hashtable", [(g, 1) for g in ("concat", "hol")], split)
    for (grammar, _), outcome in outcomes(of).items():
        assert outcome.reason == "target"
        assert outcome.extra["train_accuracy"] == 1
        language = make_language(grammar, SMALL, 4, 2, 1)
        _, messages = Draws([language], [1], CPU, split).batches("report", outcome.steps, 1, SETTINGS.evaluation_size)
        assert outcome.accuracy == pytest.approx((messages == 0).double().mean().item())
        assert outcome.accuracy < 0.7


def test_generalise_stops_at_the_target_or_the_cap_and_reports_both_accuracies(play: Any) -> None:
    script = {("concat", 1): crosses(20), ("rot", 1): crosses(35, 0.995), ("hol", 1): crosses(999)}
    ended, _ = play(script, protocol=replace(GENERALISE, cap=3), split=Split())
    assert told(ended) == {
        ("concat", 1): ("target", 20, 20),
        ("rot", 1): ("target", 40, 20),
        ("hol", 1): ("cap", 60, 20),
    }
    assert [o.extra for o in ended] == [{"train_accuracy": pytest.approx(x)} for x in (1, 0.995, 0.1)]


def test_a_stopping_reading_is_one_of_training_and_what_diverges_has_none(play: Any) -> None:
    script = {("concat", 1): crosses(20), ("rot", 1): crosses(15, math.nan)}
    settings = replace(SETTINGS, fresh_reading=False)
    ended, _ = play(script, protocol=GENERALISE, split=Split(), settings=settings)
    assert {o.replicate.grammar: o.extra for o in ended} == {"concat": {"train_accuracy": 1.0}, "rot": {}}


def test_other_protocols_know_nothing_of_splits() -> None:
    with pytest.raises(InvalidSettingError, match="'generalise' needs a split"):
        job("sender/FC2L", [("concat", 1)], protocol=GENERALISE)
    with pytest.raises(InvalidSettingError, match="'budget' holds out no meanings"):
        job("sender/FC2L", [("concat", 1)], split=Split())
    plain, split = job("sender/FC2L", [("concat", 1)]), holding_out("sender/FC2L", [("concat", 1)], Split())
    assert split.config(Replicate("concat", 1)).keys() - plain.config(Replicate("concat", 1)).keys() == {
        "held_out",
        "split",
    }
    assert outcomes(replace(plain, baselines={1: 10}))["concat", 1].extra == {}


def test_the_target_of_generalise_depends_on_the_representation() -> None:
    assert (GENERALISE.target, get_protocol("generalise", representation="discr").target) == (0.99, 0.95)
    assert get_protocol("generalise", cap=5).cap == 5


# -- when replicates end -----------------------------------------------------------------------------------------------

BUDGET, ACQUIRE = get_protocol("budget"), get_protocol("acquire")


@pytest.mark.parametrize(
    ("protocol", "grammar", "reading", "steps", "baseline", "expected"),
    [
        (BUDGET, "concat", 0.98, 50, None, None),
        (BUDGET, "concat", 0.99, 50, None, "target"),
        (BUDGET, "concat", 0.99, 1000, None, "target"),
        (BUDGET, "concat", 0.98, 1000, None, "max_steps"),
        (BUDGET, "rot", 1.00, 50, None, None),
        (BUDGET, "rot", 1.00, 50, 100, None),
        (BUDGET, "rot", 0.10, 100, 100, "budget"),
        (BUDGET, "rot", 0.10, 150, 100, "budget"),
        (BUDGET, "rot", 1.00, 50, "max_steps", "no_baseline"),
        (BUDGET, "rot", 0.10, 2000, None, None),
        (ACQUIRE, "concat", 0.80, 50, None, "target"),
        (ACQUIRE, "rot", 0.80, 50, None, "target"),
        (ACQUIRE, "rot", 0.79, 1999, 100, None),
        (ACQUIRE, "rot", 0.79, 2000, 100, "cap"),
        (ACQUIRE, "rot", 0.80, 2000, 100, "target"),
        (ACQUIRE, "rot", 0.80, 50, "diverged", "no_baseline"),
        (replace(ACQUIRE, cap=1.5), "rot", 0.1, 75, 50, "cap"),
    ],
)
def test_decisions(
    protocol: Any, grammar: str, reading: float, steps: int, baseline: int | str | None, expected: str | None
) -> None:
    assert decide(protocol, grammar, reading, steps, baseline, max_steps=1000) == expected


Script = Mapping[tuple[str, int], Callable[[int], float]]


def crosses(at: int, then: float = 1.0) -> Callable[[int], float]:
    """Reads 0.1 until so many updates have been made."""
    return lambda updates: then if updates >= at else 0.1


class Scripted:
    """Stands in for a learner and for `accuracy`: replicates read what a script says, and lose what it says."""

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

    def readings(self, *_: Any) -> Tensor:
        return torch.tensor([self.script[r.grammar, r.seed](self.updates) for r in self.active])

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
    return {(o.replicate.grammar, o.replicate.seed): (o.reason, o.steps, o.baseline_steps) for o in ended}


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
    ended, learner = play(script, protocol=get_protocol("acquire", cap=3))
    assert told(ended) == {
        ("concat", 1): ("target", 20, 20),
        ("perm", 1): ("target", 20, 20),
        ("rot", 1): ("target", 40, 20),
        ("hol", 1): ("cap", 60, 20),
    }
    assert learner.sizes == [4] * 20 + [2] * 20 + [1] * 20


def test_a_grammar_learned_before_concat_waits_for_its_baseline(play: Any) -> None:
    script = {("concat", 1): crosses(30), ("perm", 1): crosses(10)}
    ended, _ = play(script, protocol=ACQUIRE)
    assert told(ended) == {("perm", 1): ("target", 10, 30), ("concat", 1): ("target", 30, 30)}
    script = {("concat", 1): crosses(999), ("perm", 1): crosses(10)}
    ended, _ = play(script, protocol=ACQUIRE, settings=replace(SETTINGS, max_steps=40))
    assert told(ended) == {("perm", 1): ("no_baseline", 10, None), ("concat", 1): ("max_steps", 40, None)}
    assert all(o.failed for o in ended)


@pytest.mark.parametrize("protocol", [BUDGET, ACQUIRE])
def test_without_a_baseline_there_is_no_result(play: Any, protocol: Any) -> None:
    script = {
        ("concat", 1): crosses(999),
        ("rot", 1): crosses(999),
        ("concat", 2): crosses(20),
        ("rot", 2): crosses(20),
    }
    ended, _ = play(script, protocol=protocol, settings=replace(SETTINGS, max_steps=30))
    assert told(ended)["concat", 1] == ("max_steps", 30, None)
    assert told(ended)["rot", 1] == ("no_baseline", 30, None)
    assert [o.replicate.seed for o in ended if not o.failed] == [2, 2]


def test_what_diverges_ends_at_once(play: Any) -> None:
    script = {
        ("concat", 1): crosses(30),
        ("rot", 1): crosses(15, math.nan),
        ("concat", 2): crosses(15, math.inf),
        ("rot", 2): crosses(999),
    }
    ended, learner = play(script)
    assert told(ended) == {
        ("rot", 1): ("diverged", 20, None),
        ("concat", 2): ("diverged", 20, None),
        ("rot", 2): ("no_baseline", 20, None),
        ("concat", 1): ("target", 30, 30),
    }
    assert all(math.isnan(o.accuracy) for o in ended if o.reason == "diverged")
    assert learner.sizes == [4] * 20 + [1] * 10


def test_known_baselines_need_no_concat(play: Any) -> None:
    script = {("rot", 1): crosses(999), ("rot", 2): crosses(999)}
    ended, _ = play(script, baselines={1: 20, 2: "max_steps"})
    assert told(ended) == {("rot", 1): ("budget", 20, 20), ("rot", 2): ("no_baseline", 10, None)}
    with pytest.raises(InvalidSettingError, match="Seed 2 has no run of concat"):
        list(train(job("sender/FC2L", [("rot", 1), ("rot", 2)], baselines={1: 20})))


def test_published_steps_count_from_zero(play: Any) -> None:
    script = {("concat", 1): crosses(25), ("rot", 1): crosses(999)}
    ended, learner = play(script, settings=replace(SETTINGS, steps_from_zero=True))
    assert told(ended) == {("concat", 1): ("target", 30, 30), ("rot", 1): ("budget", 30, 30)}
    assert [steps for steps, _ in ended[0].curve] == [0, 10, 20, 30]
    assert learner.updates == 31


@pytest.mark.parametrize("fresh", [True, False])
def test_the_reading_that_stopped_a_run_is_reported_only_if_asked(monkeypatch: pytest.MonkeyPatch, fresh: bool) -> None:
    purposes: list[str] = []
    original = engine.Run._read
    monkeypatch.setattr(engine.Run, "_read", lambda run, purpose: purposes.append(purpose) or original(run, purpose))
    settings = replace(SETTINGS, fresh_reading=fresh)
    outcome = outcomes(job("sender/FC2L", [("rot", 1)], settings=settings, baselines={1: 20}))["rot", 1]
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
    ended = outcomes(job(model, replicates, protocol=get_protocol("budget", target=0.9), settings=settings))
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


class Plain(nn.Module):
    """The sender FC2L as a stranger would write it; `extra` goes between the layers."""

    def __init__(
        self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int, extra: Any = nn.Identity
    ) -> None:
        super().__init__()
        self.values, self.shape = space.values, (message_length, vocab_size + 1)
        self.hidden = nn.Linear(space.attributes * space.values, hidden_size)
        self.extra = extra()
        self.out = nn.Linear(hidden_size, message_length * (vocab_size + 1))

    def forward(self, meanings: Tensor) -> Tensor:
        hidden = self.extra(self.hidden(flat_one_hot(meanings, self.values, torch.float32)).tanh())
        scores: Tensor = self.out(hidden).unflatten(-1, self.shape)
        return scores


def entry(factory: Callable[..., nn.Module], **defaults: Any) -> Entry:
    return Entry("sender", "plug-in", factory, "", "", defaults=defaults)


def dropout() -> nn.Module:
    return nn.Dropout(0.5)


def batch_norm() -> nn.Module:
    return nn.BatchNorm1d(16)


def run_plain(extra: Any, seeds: Sequence[int] = SEEDS[:3], how: str = "auto") -> Learner:
    learner = stacked(task(entry(Plain, extra=extra)), seeds, how=how)
    for update in range(4):
        inputs, targets = batches("sender", 5, update)
        places = [SEEDS.index(seed) for seed in seeds]
        step(learner, inputs[places], targets[places])
    return learner


def test_a_plain_module_is_stacked_by_vmap_and_equals_the_built_in(caplog: pytest.LogCaptureFixture) -> None:
    plain, loop = run_plain(nn.Identity), run_plain(nn.Identity, how="loop")
    built_in = stacked(task("sender/FC2L"), SEEDS[:3])
    for update in range(4):
        step(built_in, *(part[:3] for part in batches("sender", 5, update)))
    inputs, _ = batches("sender", 3, 9)
    assert (plain.engine, loop.engine, built_in.engine) == ("vmap", "loop", "broadcast")
    for learner in (loop, built_in):
        torch.testing.assert_close(plain.scores(inputs), learner.scores(inputs), atol=1e-4, rtol=1e-4)
    assert not caplog.records


@pytest.mark.parametrize(("extra", "why"), [(dropout, "random"), (batch_norm, "buffers")])
def test_what_cannot_be_stacked_trains_one_at_a_time_and_says_so(
    extra: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = torch.random.get_rng_state()
    with caplog.at_level(logging.WARNING):
        learner = run_plain(extra)
    assert learner.engine == "loop"
    (record,) = caplog.records
    assert "Plain" in record.message
    assert why in record.message
    assert "one at a time" in record.message
    assert torch.equal(torch.random.get_rng_state(), before)
    inputs, _ = batches("sender", 3, 9)
    for i, seed in enumerate(SEEDS[:3]):
        alone = run_plain(extra, [seed])
        torch.testing.assert_close(alone.scores(inputs[i : i + 1])[0], learner.scores(inputs)[i], atol=1e-5, rtol=0)


@pytest.mark.parametrize("extra", [dropout, batch_norm])
def test_modules_with_a_state_of_their_own_survive_leaving_one_out(extra: Any) -> None:
    whole, part = run_plain(extra), run_plain(extra)
    part.keep([2, 0])
    inputs, targets = batches("sender", 3, 7)
    step(whole, inputs, targets)
    step(part, inputs[[2, 0]], targets[[2, 0]])
    found, expected = part.scores(inputs[[2, 0]]), whole.scores(inputs)[[2, 0]]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_module_that_vmap_can_run_but_not_differentiate_trains_one_at_a_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class WithIcysCell(Plain):
        """Takes a cell of icy's, whose hand-written backward pass vmap cannot batch, and does not say `broadcasts`."""

        def __init__(self, *sizes: Any) -> None:
            super().__init__(*sizes)
            self.extra = GRUCell(16, 16)

        def forward(self, meanings: Tensor) -> Tensor:
            hidden = self.hidden(flat_one_hot(meanings, self.values, torch.float32))
            (hidden,) = self.extra.step(self.extra.project(hidden), (hidden,))
            scores: Tensor = self.out(hidden).unflatten(-1, self.shape)
            return scores

    learner = stacked(task(entry(WithIcysCell)), SEEDS[:2])
    step(learner, *batches("sender", 2))
    assert learner.engine == "loop"
    assert "one at a time" in caplog.text


def test_frozen_parameters_stay() -> None:
    def half_frozen(*sizes: Any) -> nn.Module:
        model = Plain(*sizes)
        model.hidden.requires_grad_(False)
        return model

    for how in ("vmap", "loop"):
        of = task(entry(half_frozen))
        learner = stacked(of, SEEDS[:2], how=how)
        before = {name: value.clone() for name, value in weights(learner).items()}
        for update in range(3):
            step(learner, *batches("sender", 2, update))
        learner.keep([1])
        step(learner, *batches("sender", 1, 3))
        after = weights(learner)
        assert torch.equal(after["hidden.weight"], before["hidden.weight"][[1]])
        assert not torch.equal(after["out.weight"], before["out.weight"][[1]])


def test_the_model_given_is_not_trained_itself() -> None:
    model = make_model(task("sender/FC2L"), 1, SETTINGS)
    before = copy.deepcopy(model.state_dict())
    learner = make_learner([model], [1], SOFT.sender_loss, SETTINGS, CPU, batches("sender", 1)[0])
    step(learner, *batches("sender", 1))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


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
        list(train(job(entry(Still), [("concat", 1)])))
    with pytest.raises(IncompatibleError, match=r"sender/plug-in puts out scores of shape \(2, 6, 4\).*\(2, 6, 5\)"):
        list(train(job(entry(Narrow), [("concat", 1)])))
    with pytest.raises(UnknownNameError, match="did you mean vmap"):
        list(train(job("sender/FC2L", [("concat", 1)], engine="vmaps")))


def test_accuracy_is_the_share_of_right_tokens_however_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = stacked(task("sender/FC2L"), SEEDS[:2])
    inputs, targets = batches("sender", 2, size=50)
    expected = (learner.scores(inputs).argmax(-1) == targets).double().mean((1, 2))
    torch.testing.assert_close(accuracy(learner, inputs, targets).double(), expected)
    monkeypatch.setitem(learners.ROWS_AT_ONCE, "cpu", 14)
    torch.testing.assert_close(accuracy(learner, inputs, targets).double(), expected)


@pytest.mark.parametrize(
    "model",
    ["sender/FC2L", "sender/HierZero:GRU", "sender/RNNZero2L:RNN", "sender/RNNAutoReg:LSTM", "receiver/Hier:GRU"],
)
def test_weights_do_not_depend_on_the_stack(model: str) -> None:
    """At the papers' size, to the last bit: alone, first of three, last of three."""
    found = registry.get(model)
    task = Task(found, MeaningSpace(5, 10))

    def trained(seeds: tuple[int, ...], place: int) -> Tensor:
        replicates = tuple(Replicate("concat", seed) for seed in seeds)
        run = engine.Run(Job(task, get_protocol("budget"), settings_for("default"), replicates))
        run._update(3)
        stack = run.learner._stack  # type: ignore[attr-defined]
        return torch.cat([p[place].detach().flatten() for p in stack.parameters.values()])

    alone = trained((7,), 0)
    assert torch.equal(alone, trained((7, 8, 9), 0))
    assert torch.equal(alone, trained((8, 9, 7), 2))


def test_a_reading_of_exactly_the_target_is_the_target() -> None:
    """In single precision a mean of means often falls just short."""

    class Learner:
        def scores(self, inputs: Tensor) -> Tensor:
            return torch.nn.functional.one_hot(inputs, 5).float()

    for batch, length in ((128, 20), (128, 5), (1024, 20)):
        targets = torch.zeros(1, batch, length, dtype=torch.long)
        shown = targets.clone().flatten()
        wrong = batch * length // 5
        shown[torch.randperm(batch * length)[:wrong]] = 1
        reading = accuracy(Learner(), shown.view_as(targets), targets).item()  # type: ignore[arg-type]
        assert reading == 1 - wrong / (batch * length)
