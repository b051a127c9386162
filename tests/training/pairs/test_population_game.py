"""The game of populations: equal to a plain loop over pairings, alone, in a stack, and resumed."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from icy.config.protocols import SCRATCH
from icy.core.noise import Noise, drawing_from
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.metrics import topsim
from icy.records.store import CHECKPOINTS
from icy.training.batches import Batches
from icy.training.job import Outcome, Replicate
from icy.training.language_job import PairJob
from icy.training.lockstep import Lockstep
from icy.training.pair_game import FAR, PairGame, new_players
from icy.training.population_learner import PopulationLearner, agreement
from icy.training.populations import Population, member_seed
from icy.training.task_models import link_of as representation_of
from icy.training.task_models import make_pair
from tests.cores import both_engines
from tests.helpers import mark_others
from tests.training.helpers import plug_in
from tests.training.pairs.helpers import SETTINGS, SPACE, pair_job, pair_task
from tests.training.resuming import killed, numbers, resumed, updates_of
from tests.training.test_cuda_graphs import Watch

REPRESENTATIONS = ("soft", "gumb", "discr")
SEEDS = (1, 2)
REPLICATES = tuple(Replicate(SCRATCH, seed) for seed in SEEDS)
UPDATES = 7


def job(
    folder: Path, population: Population, representation: str = "soft", engine: str = "auto", **more: Any
) -> PairJob:
    task = pair_task("FC2L", "RNN1L:GRU", representation, **asdict(population), **more)
    return pair_job(folder, REPLICATES, task, engine=engine)


def advanced(of: PairJob) -> PairGame:
    """Return the game of a job after some updates."""
    game = PairGame(of, [new_players(of, replicate) for replicate in of.replicates])
    Lockstep(game).advance(UPDATES)
    return game


def plain_loop(of: PairJob, seed: int, updates: int) -> dict[str, list[nn.Module]]:
    """Train a population by a loop over updates and pairings, with an optimizer per agent; return the agents."""
    population, task, settings = of.settings.population, of.settings, of.training
    agents: dict[str, list[nn.Module]] = {}
    optimizers: dict[str, list[torch.optim.Optimizer]] = {}

    def enter(side: str, number: int, update: int) -> None:
        agent = getattr(make_pair(task, member_seed(seed, number, update), settings), side)
        agents[side][number] = agent.train()
        optimizers[side][number] = torch.optim.Adam(agent.parameters(), lr=settings.learning_rate)

    for side in ("sender", "receiver"):
        empty: list[Any] = [None] * population.members(side)
        agents[side], optimizers[side] = list(empty), list(empty)
        for number in range(population.members(side)):
            enter(side, number, 0)
    link = make_pair(task, seed, settings).link
    nothing = Language(SPACE, np.zeros((SPACE.size, 4), dtype=np.uint8), 4)
    seeds = [member_seed(seed, number) for number in range(population.size)]
    draws = Batches([nothing] * len(seeds), seeds, torch.device("cpu"))
    for update in range(updates):
        for side, numbers_ in population.replaced(seed, update).items():
            for number in numbers_:
                enter(side, number, update)
        meanings, _ = draws.batches("training", FAR + update, 1, settings.batch_size)
        keys = draws.noise(FAR + update, 1)
        for side in agents:
            for agent in agents[side]:
                agent.zero_grad()
        for place, (s, r) in enumerate(population.partners(seed, update).T.tolist()):
            noise = Noise(keys[0, place])
            with drawing_from(noise):
                sent = agents["sender"][s](meanings[0, place])
                answered = agents["receiver"][r](link.message(sent, noise))
            link.pair_loss(sent, answered, meanings[0, place], noise).backward()
        for side in agents:
            for agent, optimizer in zip(agents[side], optimizers[side], strict=True):
                assert settings.clip_norm is not None
                nn.utils.clip_grad_norm_(agent.parameters(), settings.clip_norm)
                optimizer.step()
    return agents


def members(learned: dict[str, Tensor], number: int, side: str) -> dict[str, Tensor]:
    """Return the weights of an agent, from the weights of its population."""
    beginning = f"{number}.{side}."
    return {n.removeprefix(beginning): value for n, value in learned.items() if n.startswith(beginning)}


@both_engines
@pytest.mark.parametrize(
    ("population", "representation"),
    mark_others(
        "slow",
        itertools.product(
            [
                *(Population(2, 2), Population(3, 2, 3), Population(1, 3), Population(1, 2, 2, "receivers")),
                Population(2, 2, 2, "random"),
            ],
            REPRESENTATIONS,
        ),
        lambda case: case in ((Population(2, 2), "soft"), (Population(3, 2, 3), "discr")),
    ),
)
def test_a_population_equals_a_plain_loop_over_pairings(
    population: Population, representation: str, how: str, tmp_path: Path
) -> None:
    of = job(tmp_path, population, representation, engine=how)
    game = advanced(of)
    assert game.learner.engine == how
    for place, seed in enumerate(SEEDS):
        agents, learned = plain_loop(of, seed, UPDATES), game.learner.weights(place)
        for side, expected in agents.items():
            for number, agent in enumerate(expected):
                found = members(learned, number, side)
                for name, value in agent.named_parameters():
                    torch.testing.assert_close(found[name], value.detach(), atol=2e-4, rtol=2e-3)


class PopulationOfOne(Population):
    """A pair that is trained as a population."""

    is_pair = False  # type: ignore[assignment]


def test_a_population_of_one_pair_equals_the_pair(tmp_path: Path) -> None:
    """To the bit, but for the norm of clipping, which is of each agent."""
    of = job(tmp_path, Population(), engine="broadcast", training=replace(SETTINGS, clip_norm=None))
    pairs, game = advanced(of), PairGame(of, [new_players(of, replicate) for replicate in REPLICATES])
    game.population = PopulationOfOne()
    Lockstep(game).advance(UPDATES)
    for place in range(len(SEEDS)):
        expected, found = pairs.learner.weights(place), game.learner.weights(place)
        assert {name.removeprefix("0."): value.tolist() for name, value in found.items()} == {
            name: value.tolist() for name, value in expected.items()
        }
    assert game._read("check") == [[*row[:4], None, None] for row in pairs._read("check")]


@pytest.mark.parametrize(
    ("population", "representation"),
    mark_others(
        "slow",
        itertools.product([Population(2, 3), Population(2, 2, 4)], REPRESENTATIONS),
        lambda case: case == (Population(2, 2, 4), "gumb"),
    ),
)
def test_populations_together_equal_populations_alone(
    population: Population, representation: str, tmp_path: Path
) -> None:
    of = job(tmp_path, population, representation)
    together = numbers(list(of.train()))
    for replicate in REPLICATES:
        alone = replace(of, replicates=(replicate,))
        assert numbers(list(alone.train()))[replicate.condition, replicate.seed] == together[SCRATCH, replicate.seed]


@pytest.mark.parametrize(
    ("how", "population"),
    mark_others(
        "slow",
        [("broadcast", Population(3, 2, 5)), ("native", Population(2, 2)), ("loop", Population(2, 2, 5, "random"))],
        lambda case: case[0] == "broadcast",
    ),
)
def test_a_killed_population_resumes_to_the_same_bits(population: Population, how: str, tmp_path: Path) -> None:
    of = replace(job(tmp_path, population, "gumb", how, updates=24, report_every=10), keep_models=True)
    whole = numbers(list(of.train()))
    assert killed(of, 3) == []
    assert len(updates_of(tmp_path)) == len(REPLICATES)
    assert numbers(resumed(of, [])) == whole
    assert not (tmp_path / CHECKPOINTS).exists()


class Linear(nn.Module):
    """A plain module of PyTorch: a linear map of one-hot values or of weights over symbols."""

    def __init__(self, inputs: int, size: int, outputs: tuple[int, int]) -> None:
        super().__init__()
        self.size, self.outputs = size, outputs
        self.net = nn.Linear(inputs * size, outputs[0] * outputs[1])

    def forward(self, inputs: Tensor) -> Tensor:
        if not inputs.is_floating_point():
            inputs = (inputs.unsqueeze(-1) == torch.arange(self.size)).float()
        scores: Tensor = self.net(inputs.flatten(-2)).unflatten(-1, self.outputs)
        return scores


def speaker(space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> nn.Module:
    return Linear(space.attributes, space.values, (message_length, vocab_size + 1))


def listener(space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> nn.Module:
    return Linear(message_length, vocab_size + 1, (space.attributes, space.values))


def test_plain_modules_are_a_population_by_vmap_and_one_by_one(tmp_path: Path) -> None:
    plug_in(speaker)
    plug_in(listener, "receiver")
    task, curves = pair_task("plug-in", "plug-in", senders=2, receivers=3, replace_every=5), []
    for how in ("vmap", "loop"):
        (outcome,) = pair_job(tmp_path, REPLICATES[:1], task, engine=how).train()
        assert outcome.engine == how
        curves.append(np.array(outcome.curve, float))
    np.testing.assert_allclose(*curves, atol=2e-3, equal_nan=True)


# -- measurements ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    of = job(tmp_path_factory.mktemp("population"), Population(3, 2))
    (found,) = replace(of, replicates=REPLICATES[:1], keep_models=True).train()
    return found


def test_measures_of_a_population(outcome: Outcome) -> None:
    pairings = np.array(outcome.extra["pairings"])
    assert pairings.shape == (3, 2)
    assert outcome.extra["worst_accuracy"] == pairings.min()
    assert outcome.accuracy == outcome.extra["end_to_end_accuracy"] == pytest.approx(pairings.mean())
    languages = [Language.from_bytes(content) for name, content in outcome.files.items() if "languages" in name]
    assert len(languages) == 3
    meanings = SPACE.all()
    expected = [topsim(meanings, language.messages, message="hamming").value for language in languages]
    assert outcome.extra["sender_topsims"] == pytest.approx(expected, abs=1e-6)  # 64 draws hold all 9 meanings
    assert outcome.extra["topsim"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert [point[0] for point in outcome.extra["population_curve"]] == [row[0] for row in outcome.curve]


def test_agreement_is_the_mean_share_of_equal_tokens_over_pairs_of_senders() -> None:
    words = torch.tensor([[[0, 1], [2, 3]], [[0, 1], [2, 0]], [[1, 1], [0, 0]]])
    assert agreement(words) == pytest.approx((3 / 4 + 1 / 4 + 2 / 4) / 3)
    assert agreement(words[:1]) is None


def test_the_accuracy_of_each_pairing_is_of_this_sender_and_this_receiver(tmp_path: Path) -> None:
    """The matrix of a stack after a few updates equals accuracies of agents in a plain loop."""
    of = job(tmp_path, Population(2, 3))
    game = advanced(replace(of, replicates=REPLICATES[:1]))
    game._read("check")
    drawn, _ = game.draws.batches("check", FAR + UPDATES, 1, SETTINGS.evaluation_size)
    agents, shown = plain_loop(of, SEEDS[0], UPDATES), drawn[0, 0]
    for side in agents.values():
        for agent in side:
            agent.eval()
    for i, sender in enumerate(agents["sender"]):
        for j, receiver in enumerate(agents["receiver"]):
            read = receiver(game.link.message(sender(shown), None)).argmax(-1)
            expected = float((read == shown).double().mean())
            assert game.measured[0]["pairings"][i][j] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("representation", mark_others("slow", REPRESENTATIONS, lambda name: name == "gumb"))
def test_no_update_of_a_population_waits_for_the_host(representation: str) -> None:
    """All of an update stays on its device, as a captured update must; "meta" replaces the GPU."""
    task = pair_task("FC2L", "RNN1L:GRU", representation, senders=2, receivers=3, replace_every=5)
    pairs = [make_pair(task, seed, SETTINGS) for seed in range(3)]
    loss, device = representation_of(task, SETTINGS).pair_loss, torch.device("meta")
    learner = PopulationLearner(
        *(pairs, [0, 1, 2], lambda scores, *rest: loss(*scores, *rest), SETTINGS, device, "broadcast"),
        population=task.population,
    )
    meanings = torch.zeros(3, 8, SPACE.attributes, dtype=torch.long, device=device)
    keys, partners = torch.zeros(3, dtype=torch.long, device=device), torch.zeros(2, 3, dtype=torch.long, device=device)
    with Watch() as watch:
        learner.update(meanings, meanings, keys, partners)
    assert not watch.found
