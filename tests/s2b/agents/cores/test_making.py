"""Cores: their parts, their memories, and the numbers that they compute."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

from icy.core.errors import InvalidSettingError, PluginError, UnknownNameError
from icy.core.registry import CORE, Entry, registry
from icy.s2b import BatchedGame, GameSettings
from icy.s2b.agents.cores import Parts, make_core
from icy.s2b.agents.cores.dcem import DCEM, Reader, nearest, weights
from icy.s2b.agents.cores.dnc import DNC, allocation, content, link_after, usage_after
from icy.s2b.agents.cores.entries import appended, remembered, view
from icy.s2b.agents.cores.esbn import ESBN, Binding, StrictESBN
from icy.s2b.agents.cores.lstm import LSTM, LSTM512
from icy.s2b.agents.cores.pairs import PairMemory
from icy.s2b.agents.cores.transformer import Layer, TransformerCore, rotations
from icy.s2b.agents.networks.network import Network, NetworkSettings
from icy.s2b.agents.networks.observations import Actions, observe
from icy.s2b.players.interface import seated

# -- cores are created by name, with their sizes and options. tests/testing/test_contracts.py runs their contract ------


def test_default_sizes_match_the_papers() -> None:
    outputs = {entry.name: make_core(entry.name, 20).output for entry in registry.entries(CORE)}
    assert outputs == {
        "LSTM": 128, "LSTM-512": 512, "DNC": 128, "ESBN": 256, "ESBN-strict": 512, "DCEM": 256, "Transformer": 128,
        "PairMemory": 64,
    }  # fmt: skip
    core: Any = make_core("DCEM", 245, parts=Parts(32, 32, 10))
    assert core.above.layers[0].input_size == 1009  # s2b-facts 10.5
    assert core.latent_width == 512 + 6 * 42


def test_capacity_is_passed_to_cores_with_this_argument() -> None:
    assert [m.shape[1] for m in make_core("ESBN", 6, capacity=9).start(2)[-3:-1]] == [9, 9]
    assert make_core("LSTM", 6, capacity=9).start(2)[0].shape == (2, 256)


@pytest.mark.parametrize(
    ("name", "options", "error", "said"),
    [
        ("LSTMM", {}, UnknownNameError, "did you mean LSTM.*`icy list cores`"),
        ("LSTM", {"sizes": ()}, InvalidSettingError, "at least one layer"),
        ("LSTM", {"size": 3}, PluginError, "core/LSTM cannot be made"),
        ("DNC", {"slots": 0}, InvalidSettingError, "slots"),
        ("DCEM", {"parts": Parts(4, 3)}, InvalidSettingError, "does not fit an input of 6"),
        ("DCEM", {"parts": Parts(0, 3)}, InvalidSettingError, "does not fit an input of 6"),
        ("Transformer", {"heads": 3}, InvalidSettingError, r"must be a multiple of 2 \* 3 \(heads\)"),
        ("ESBN", {"capacity": 0}, InvalidSettingError, "capacity"),
    ],
)
def test_a_core_that_cannot_be_created_raises_a_clear_error(
    name: str, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        make_core(name, 6, **options)


def test_a_factory_must_return_a_core() -> None:
    entry = Entry(CORE, "linear", lambda width: torch.nn.Linear(width, 3), "", "", origin=__name__)
    with registry.holding(entry), pytest.raises(PluginError, match="returns a Linear; derive it from"):
        make_core("linear", 6)


# -- masks of append-only memories equal the result of a loop over episodes --------------------------------------------


CAPACITY, STEPS, EPISODES = 3, 6, 4


def resets() -> torch.Tensor:
    found = torch.zeros(STEPS, EPISODES, dtype=torch.bool)
    found[0, 0] = found[2, 1] = found[3, 1] = found[5, 2] = True
    return found


@pytest.mark.parametrize("begins", [None, resets()])
def test_a_step_reads_the_last_entries_of_its_episode(begins: torch.Tensor | None) -> None:
    count = torch.tensor([2, 0, 9, 1])
    old = torch.arange(EPISODES * CAPACITY).view(EPISODES, CAPACITY).float() + 100
    new = torch.arange(STEPS * EPISODES).view(STEPS, EPISODES).float() + 1
    seen, entries = view(count, begins, STEPS, CAPACITY), appended(old, new)
    for b in range(EPISODES):
        steps = int(count[b])
        held = old[b, CAPACITY - min(steps, CAPACITY) :].tolist()
        for t in range(STEPS):
            if begins is not None and begins[t, b]:
                held, steps = [], 0
            assert entries[b][seen.earlier[b, t]].tolist() == held
            assert seen.ages[b, t] == steps
            held, steps = [*held, float(new[t, b])][-CAPACITY:], steps + 1
        assert seen.count[b] == steps
        assert remembered(entries, seen)[b].tolist() == [0.0] * (CAPACITY - len(held)) + held


# -- LSTM cores equal torch's LSTM cells -------------------------------------------------------------------------------


def test_a_relu_follows_each_of_the_two_layers() -> None:
    torch.manual_seed(0)
    core = LSTM(5)
    cells = [nn.LSTMCell(5, 256), nn.LSTMCell(256, 128)]
    for layer, cell in zip(core.stack.layers, cells, strict=True):
        cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    xs, states = torch.randn(4, 3, 5), [None, None]
    expected = []
    for x in xs:
        h = x
        for i, cell in enumerate(cells):
            states[i] = cell(h, states[i])
            h = states[i][0].relu()
        expected.append(h)
    ys, state = core.unroll(xs, core.start(3))
    torch.testing.assert_close(ys, torch.stack(expected))
    torch.testing.assert_close(state, (*states[0], *states[1]))
    assert (ys >= 0).all()


def test_lstm_512_has_no_relu() -> None:
    core = LSTM512(5)
    ys, (h, _) = core.unroll(torch.randn(4, 3, 5), core.start(3))
    assert (ys < 0).any()
    assert torch.equal(ys[-1], h)


# -- addressing of the DNC equals values computed by hand from the equations of Graves et al. 2016 ---------------------


def row(*numbers: float) -> Tensor:
    return torch.tensor([numbers], dtype=torch.float64)


def test_slots_are_allocated_in_order_of_usage() -> None:
    # slot 1 is free to 0.8; slot 3 gets 0.75 of the remaining 0.2; slot 0 gets half of the rest
    assert_close(allocation(row(0.5, 0.2, 1.0, 0.25)), row(0.025, 0.8, 0.0, 0.15), atol=1e-5, rtol=0)


def test_unused_slots_are_allocated_in_order_despite_rounding_errors() -> None:
    assert allocation(row(1e-9, 0.0, 2e-9))[0].argmax() == 0


def test_writing_raises_usage_and_a_free_gate_lowers_it() -> None:
    found = usage_after(row(0.5, 0.0), row(0.2, 1.0), row(1.0, 0.0)[None], row(0.5))
    assert_close(found, row(0.3, 1.0))  # (0.5 + 0.2 - 0.1) * (1 - 0.5), and 1


def test_links_follow_the_order_of_writing() -> None:
    link, precedence = torch.zeros(1, 3, 3, dtype=torch.float64), row(0, 0, 0)
    for writing in (row(1, 0, 0), row(0, 1, 0), row(0, 0, 1)):
        link = link_after(link, precedence, writing)
        precedence = (1 - writing.sum()) * precedence + writing
    assert link[0].tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    again = link_after(link, precedence, row(0, 1, 0))  # writing to slot 1 again removes its old links
    assert again[0].tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    partly = link_after(link, row(0, 0, 0.8), row(0.5, 0.25, 0))
    expected = [[0, 0, 0.4], [0.25, 0, 0.2], [0, 0.75, 0]]
    assert_close(partly[0], torch.tensor(expected, dtype=torch.float64))


def test_content_weights_depend_on_cosine_and_strength() -> None:
    memory = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]], dtype=torch.float64)
    found = content(memory, row(2.0, 0.0)[None], row(0.0))
    sharp = 1 + math.log(2)  # 1 + log(1 + e^0)
    assert_close(found, row(math.exp(sharp), 1.0)[None] / (math.exp(sharp) + 1))


def test_open_gates_write_slot_after_slot() -> None:
    core = DNC(4, controller=3, slots=5, slot=2, reads=1).double()
    assert core.widths == [2, 1, 2, 1, 2, 2, 1, 1, 1, 3]
    with torch.no_grad():
        core.interface.weight.zero_()
        core.interface.bias.copy_(torch.tensor([0, 0, 0, 0, 0, 0, 0, 0, 7, -3, -60, 60, 60, 0, 0, 0]))
        _, state = core.unroll(torch.randn(3, 1, 4).double(), core.start(1))
    memory, usage, precedence, link, writing, _ = state[-6:]
    assert_close(memory[0], torch.tensor([[7, -3]] * 3 + [[0, 0]] * 2).double(), atol=1e-4, rtol=0)
    assert_close(
        usage[0], torch.tensor([1, 1, 0, 0, 0]).double(), atol=1e-4, rtol=0
    )  # the last write counts from the next step
    assert_close(writing, row(0, 0, 1, 0, 0), atol=1e-4, rtol=0)
    assert_close(precedence, writing)
    expected = torch.zeros(5, 5, dtype=torch.float64)
    expected[1, 0] = expected[2, 1] = 1
    assert_close(link[0], expected, atol=1e-4, rtol=0)


# -- reads of the ESBN equal values computed by hand; both variants equal loops over the equations (s2b-facts 10.5) ----


def test_a_read_equals_hand_computed_values() -> None:
    binding = Binding().double()
    values = torch.tensor([[[1.0, 0.0]], [[0.0, 2.0]]], dtype=torch.float64)
    keys = torch.tensor([[[10.0], [20.0]]], dtype=torch.float64)
    seen = view(torch.tensor([2]), None, 1, 2)
    asked = torch.tensor([[[3.0, 1.0]]], dtype=torch.float64)
    reads = binding(asked, torch.cat([values.transpose(0, 1), asked], 1), keys, seen)
    first = math.exp(3) / (math.exp(3) + math.exp(2))  # the products are 3 and 2

    def sure(product: float) -> float:
        return 1 / (1 + math.exp(-product))

    expected = [10 * first + 20 * (1 - first), sure(3) * first + sure(2) * (1 - first)]
    assert_close(reads.at(0), torch.tensor([expected], dtype=torch.float64))


def read(z: Tensor, keys: list[Tensor], values: list[Tensor], binding: Binding, width: int) -> Tensor:
    """Return sum_n a_n [K_n, c_n], as in s2b-facts; zeros if the memory is empty."""
    if not keys:
        return z.new_zeros(width)
    products = torch.stack([z @ value for value in values])
    weights = products.softmax(0)
    sure = (binding.gain * products + binding.bias).sigmoid()
    found = [torch.cat([key, one[None]]) for key, one in zip(keys, sure, strict=True)]
    return (weights[:, None] * torch.stack(found)).sum(0)


def test_the_strict_variant_equals_the_original_with_its_extra_step() -> None:
    torch.manual_seed(0)
    core = StrictESBN(5, capacity=8, value=3, key=4, controller=6).double()
    torch.nn.init.constant_(core.binding.gain, 1.5)
    xs = torch.randn(4, 1, 5).double()
    ys, _ = core.unroll(xs, core.start(1))
    zs = [core.embed(x[0]) for x in xs]
    for end in range(1, 5):  # the original answers once, at the end of a sequence
        keys: list[Tensor] = []
        key_read, state = torch.zeros(5).double(), None
        for t in range(end + 1):  # one more step than inputs
            h, c = core.controller(key_read[None], state)
            state = h, c
            if t < end:
                key_read = core.gate(h[0]).sigmoid() * read(zs[t], keys, zs[:t], core.binding, 5)
                keys.append(core.to_key(h[0]).relu())
        assert_close(ys[end - 1], h)


def test_the_variant_of_the_papers_equals_its_equations() -> None:
    torch.manual_seed(0)
    core = ESBN(5, capacity=8, key=4, controller=6, hidden=7, output=3).double()
    xs = torch.randn(4, 1, 5).double()
    ys, latents, _ = core.trace(xs, core.start(1))
    keys: list[Tensor] = []
    key_read, state, above = torch.zeros(5).double(), None, core.above.start(xs[0])
    for t, x in enumerate(xs):
        h, c = core.controller(torch.cat([x[0], key_read])[None], state)
        state = h, c
        key_read = core.gate(h[0]).sigmoid() * read(x[0], keys, list(xs[:t, 0]), core.binding, 5)
        keys.append(core.to_key(h[0]))
        latent = torch.cat([h[0], key_read])
        assert_close(latents[t, 0], latent)
        y, _, above = core.above(torch.cat([x[0], latent])[None, None], above)
        assert_close(ys[t], core.answer(y)[0])


def test_the_strict_controller_sees_no_input() -> None:
    core = StrictESBN(5, capacity=8)
    one, _ = core.step(torch.randn(1, 5), core.start(1))
    other, _ = core.step(torch.randn(1, 5), core.start(1))
    assert torch.equal(one, other)  # the memory is empty


# -- memory cores learn to bind stimuli and messages, with new pairs in every episode ----------------------------------


PAIRS, WIDTH, BATCH, UPDATES = 5, 8, 32, 600
SMALL: dict[str, dict[str, Any]] = {
    "DCEM": {"hidden": 64, "output": 64, "query": 64},
    "ESBN": {"key": 64, "controller": 64, "hidden": 64, "output": 64},
    "Transformer": {"size": 64},
}


def episodes(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return stimuli with messages, then messages alone, and whether the first number of their stimulus is positive."""
    seen = torch.randn(PAIRS, BATCH, WIDTH, generator=generator)
    heard = 2 * F.normalize(torch.randn(PAIRS, BATCH, WIDTH, generator=generator), dim=-1)
    which, row = torch.randint(PAIRS, (PAIRS, BATCH), generator=generator), torch.arange(BATCH)
    asked = torch.cat([torch.zeros_like(seen), heard[which, row]], -1)
    return torch.cat([torch.cat([seen, heard], -1), asked]), (seen[which, row][..., 0] > 0).float()


@pytest.mark.stress
@pytest.mark.parametrize("name", SMALL)
def test_memory_cores_learn_to_bind(name: str) -> None:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    core = make_core(name, 2 * WIDTH, capacity=16, parts=Parts(WIDTH, WIDTH), **SMALL[name])
    head = nn.Linear(core.output, 1)
    optimizer = torch.optim.Adam([*core.parameters(), *head.parameters()], lr=2e-3)
    right = []
    for _ in range(UPDATES):
        xs, answers = episodes(generator)
        logits = head(core.unroll(xs, core.start(BATCH))[0][PAIRS:])[..., 0]
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(logits, answers).backward()
        nn.utils.clip_grad_norm_(core.parameters(), 1.0)
        optimizer.step()
        right.append(((logits > 0) == (answers > 0.5)).float().mean().item())
    assert sum(right[-50:]) / 50 > 0.9  # an LSTM gets 0.64


# -- addressing of the DCEM equals values computed by hand (s2b-facts 10.5) --------------------------------------------


def test_weights_are_proportional_to_the_inverse_distance() -> None:
    there = torch.tensor([True, True, False])
    assert_close(weights(torch.tensor([0.9, 0.5, 1.0]), there), torch.tensor([10 / 12, 2 / 12, 0.0]))
    assert_close(weights(torch.tensor([1.0, 0.5, 0.5]), there)[0], torch.tensor(1.0))  # exact match: all the weight
    assert weights(torch.tensor([1.0, 0.5]), torch.zeros(2, dtype=torch.bool)).tolist() == [0.0, 0.0]


def test_the_nearest_entries_are_read_and_ties_go_to_the_newest() -> None:
    cosines = torch.tensor([0.1, 0.7, 0.7000001, 0.9, 0.7, 1.0]).view(1, 1, 1, -1)
    earlier = torch.tensor([True, True, True, True, True, False]).view(1, 1, 1, -1)
    near, which, there = nearest(cosines, earlier, 3)
    assert which.flatten().tolist() == [3, 4, 2]
    assert_close(near.flatten(), torch.tensor([0.9, 0.7, 0.7]))
    assert there.all()
    _, which, there = nearest(cosines, earlier & (torch.arange(6) < 2), 3)
    assert which.flatten()[:2].tolist() == [1, 0]
    assert there.flatten().tolist() == [True, True, False]


def test_a_message_retrieves_the_stimuli_of_similar_messages() -> None:
    reader = Reader(2, 1, heads=1, nearest=2, hidden=2)
    with torch.no_grad():  # the query is the input; attention averages the values of equal scores
        for layer in (reader.query[0], reader.query[2]):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
        reader.attend.weight.copy_(torch.tensor([[0.0], [0.0], [1.0]]))
        reader.attend.bias.zero_()
        reader.out.weight.fill_(1.0)
        reader.out.bias.zero_()
    keys = torch.tensor([[[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [9.0, 9.0]]])
    values = torch.tensor([[[5.0], [7.0], [100.0], [0.0]]])
    asked = torch.tensor([[[1.0, 0.0]]])
    found = reader(asked, keys, values, view(torch.tensor([3]), None, 1, 3))
    assert_close(found, torch.tensor([[[5.0]]]), atol=1e-3, rtol=0)  # the match is exact, so its weight is nearly 1
    asked = torch.tensor([[[2.0, 1.0]]])  # cosines 0.8944 and 0.8944 with the first two, as both are 26.6 degrees away
    found = reader(asked, keys, values, view(torch.tensor([3]), None, 1, 3))
    assert_close(found, torch.tensor([[[6.0]]]), atol=1e-3, rtol=0)


def test_reading_an_empty_memory_returns_zeros() -> None:
    core = DCEM(7, Parts(2, 3, 1), capacity=4)
    _, state = core.step(torch.randn(2, 7), core.start(2))
    assert not state[4].any()
    _, state = core.step(torch.randn(2, 7), state)
    assert state[4].any()


def test_entries_of_both_memories_include_the_flags() -> None:
    seen, heard = DCEM(7, Parts(2, 3, 1)).split(torch.arange(7.0))
    assert seen.tolist() == [0, 1, 5]
    assert heard.tolist() == [2, 3, 4, 5]


# -- the memory of pairs with the interface of cores -------------------------------------------------------------------


def test_an_entry_joins_a_stimulus_with_the_message_of_the_step_before() -> None:
    core = PairMemory(8, Parts(4, 2, 1, stimuli=2), capacity=3)
    xs = torch.arange(16.0).view(2, 1, 8)
    _, (memory, count, heard, _) = core.unroll(xs, core.start(1))
    assert memory[0].tolist() == [[0] * 5, [0, 1, 0, 0, 6], [8, 9, 4, 5, 14]]  # first stimulus, words before, flag
    assert count.tolist() == [2]
    assert heard.tolist() == [[12, 13]]


def test_at_the_end_of_a_game_the_target_is_stored_with_its_message() -> None:
    settings = GameSettings()
    game, actions = BatchedGame(settings, episodes=3), Actions.of_role(settings, "listener")
    network = Network(actions, NetworkSettings.preset("pairs"))
    turn, state = game.reset(seed=1), network.start(3)
    speaker = seated("posdis", "speaker", game)
    said = []
    for _ in range(3):  # silence, the message, the end
        said.append(torch.as_tensor(turn.listener.message))
        target = torch.as_tensor(turn.listener.stimulus[:, 0])
        _, state = network.step(observe(turn.listener, "listener", actions), state)
        turn = game.step(speaker.act(turn.speaker).message)
    width, tokens = settings.width, settings.length * (settings.vocab_size + 1)
    numbers, words = state[0][:, -1, :width], state[0][:, -1, width : width + tokens]
    torch.testing.assert_close(numbers, target)
    assert (words.unflatten(-1, (settings.length, -1)).argmax(-1) == said[1]).all()
    assert said[1].any()


@pytest.mark.parametrize("parts", [Parts(3, 2, stimuli=2), Parts(4, 3, tokens=2), Parts(6, 4)])
def test_parts_must_fit_the_input(parts: Parts) -> None:
    with pytest.raises(InvalidSettingError, match="does not fit an input of 8 numbers"):
        PairMemory(8, parts)


# -- the window and the position encoding of the Transformer core ------------------------------------------------------


def test_a_layer_attends_to_its_window_only() -> None:
    torch.manual_seed(0)
    core = TransformerCore(5, capacity=2, size=8, layers=1, heads=2)
    xs = torch.randn(6, 1, 5, requires_grad=True)
    ys, _ = core.unroll(xs, core.start(1))
    (gradient,) = torch.autograd.grad(ys[4, 0, 0], xs)
    assert [bool(g.any()) for g in gradient] == [False, False, True, True, True, False]


def test_only_distances_between_steps_matter() -> None:
    torch.manual_seed(0)
    core = TransformerCore(5, capacity=2, size=8, layers=1, heads=2).double()
    xs = torch.randn(9, 1, 5).double()
    once, _ = core.unroll(xs[3:], core.start(1))
    later, _ = core.unroll(xs, core.start(1))
    assert_close(later[5:], once[2:])  # the same three steps are in the window, at other places of the episode


def test_a_layer_equals_masked_attention_over_the_episode() -> None:
    torch.manual_seed(0)
    core = TransformerCore(4, capacity=9, size=8, layers=1, heads=1).double()
    layer = core.layers[0]
    assert isinstance(layer, Layer)
    xs = torch.randn(3, 1, 4).double()
    ys, _ = core.unroll(xs, core.start(1))
    x = core.embed(xs)[:, 0]
    q, k, v = layer.project(layer.before(x)).chunk(3, -1)
    angle = rotations(torch.arange(3), 8)
    turned = [
        torch.view_as_complex(torch.stack(p.chunk(2, -1), -1)) * torch.polar(angle * 0 + 1, angle) for p in (q, k)
    ]
    scores = (turned[0] @ turned[1].conj().mT).real / 8**0.5
    weights = scores.masked_fill(torch.ones(3, 3).triu(1) > 0, -torch.inf).softmax(-1)
    x = x + layer.out(weights @ v)
    x = x + layer.neurons(layer.between(x))
    assert_close(ys[:, 0], core.last(x))
