"""Models of the papers, against plain loops written from their formulas."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.registry import registry
from icy.core.representations import one_hot
from icy.models import create_receiver
from tests.models.helpers import (
    BATCH,
    LIBRARY,
    SPACE,
    A,
    E,
    K,
    L,
    Plain,
    V,
    assert_same,
    assert_same_everywhere,
    between,
    make,
    plain_sru,
    some_meanings,
    some_messages,
    sru_model,
    summed_embedding,
)

# -- recurrent senders, against plain loops ----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["RNNZero", "RNNAutoReg"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", LIBRARY)
def test_senders_are_plain_loops(kind: str, layers: int, family: str) -> None:
    model, meanings = make("sender", f"{family}{'2L' if layers == 2 else ''}:{kind}"), some_meanings()
    cells = [Plain(layer, kind) for layer in model.net.layers]
    start = [summed_embedding(model, meanings), torch.zeros(BATCH, E)]
    states = [cell.start(h) for cell, h in zip(cells, start, strict=False)]
    fed, scores = F.one_hot(torch.full((BATCH,), V), V + 1).float(), []
    for _ in range(L):
        x = (
            torch.zeros(BATCH, E)
            if family == "RNNZero"
            else F.linear(fed, model.feedback.embed.weight, model.feedback.embed.bias)
        )
        for i, cell in enumerate(cells):
            states[i] = cell(x, states[i])
            x = states[i][0]
        scores.append(model.out(x))
        fed = scores[-1].softmax(-1)
    assert_same(model(meanings), torch.stack(scores, 1), model)


@pytest.mark.usefixtures("scanning")
@pytest.mark.parametrize("name", ["RNNZero:SRU", "RNNZero2L:SRU"])
def test_rnn_zero_of_srus_is_a_plain_loop(name: str) -> None:
    model, meanings = sru_model("sender", name), some_meanings()
    x, c = torch.zeros(BATCH, L, E), summed_embedding(model, meanings)
    for layer in model.net.layers:
        x, _ = plain_sru(layer, x, c, tanh=True)
        c = torch.zeros_like(c)
    assert_same_everywhere(model(meanings), model.out(x), *model.parameters())


@pytest.mark.parametrize("layers", [1, 2])
def test_rnn_autoreg_of_srus_is_a_plain_loop(layers: int) -> None:
    model, meanings = sru_model("sender", f"RNNAutoReg{'2L' if layers == 2 else ''}:SRU"), some_meanings()
    states = [summed_embedding(model, meanings), torch.zeros(BATCH, E)][:layers]
    fed, scores = F.one_hot(torch.full((BATCH,), V), V + 1).float(), []
    for _ in range(L):
        x = F.linear(fed, model.feedback.embed.weight, model.feedback.embed.bias).unsqueeze(1)
        for i, layer in enumerate(model.net.layers):
            x, states[i] = plain_sru(layer, x, states[i])
        scores.append(model.out(x.squeeze(1)))
        fed = scores[-1].softmax(-1)
    assert_same_everywhere(model(meanings), torch.stack(scores, 1), *model.parameters())


# -- hierarchical senders, against their formulas ----------------------------------------------------------------------


@pytest.mark.parametrize("family", ["HierZero", "HierAutoReg"])
@pytest.mark.parametrize("kind", LIBRARY)
def test_senders_are_their_formulas(kind: str, family: str) -> None:
    model = make("sender", f"{family}:{kind}")
    upper_cell, lower_cell = Plain(model.upper, kind), Plain(model.lower, kind)
    meanings, zero = some_meanings(), torch.zeros(BATCH, 1)
    u, low = upper_cell.start(summed_embedding(model, meanings)), lower_cell.start(torch.zeros(BATCH, E))
    s, scores, fed = torch.ones(BATCH, 1), [], F.one_hot(torch.full((BATCH,), V), V + 1).float()
    for _ in range(L):
        u = between(s, upper_cell(zero, u), u)
        embed = None if family == "HierZero" else model.feedback.embed
        x = zero if embed is None else F.linear(fed, embed.weight, embed.bias)
        low = lower_cell(x, between(s, u, low))
        s = torch.sigmoid(model.stop.score(low[0]))
        scores.append(model.out(low[0]))
        fed = scores[-1].softmax(-1)
    assert_same(model(meanings), torch.stack(scores, 1), model)


# -- recurrent receivers, against the library's ------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 2])
def test_rnn_receiver_is_the_librarys(layers: int) -> None:
    model = make("receiver", f"RNN{layers}L:GRU")
    library = nn.GRU(E, E, layers, batch_first=True)
    weights = {f"{n}_l{i}": p for i, layer in enumerate(model.net.layers) for n, p in layer.named_parameters()}
    library.load_state_dict(weights)
    message = some_messages()
    last = library(F.embedding(message, model.embed.weight))[0][:, -1]
    assert_same(model(message), model.out(last).view(BATCH, A, K), model)


@pytest.mark.usefixtures("scanning")
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", ["RNN1L:SRU", "RNN2L:SRU"])
def test_rnn_receiver_of_srus_reads_the_last_state(name: str, soft: bool) -> None:
    model = sru_model("receiver", name)
    message = torch.rand(BATCH, L, V + 1).softmax(-1).requires_grad_() if soft else some_messages()
    x, c = (message if soft else one_hot(message, V + 1)) @ model.embed.weight, torch.zeros(BATCH, E)
    for layer in model.net.layers:
        x, c = plain_sru(layer, x, torch.zeros_like(c))
    expected = model.out(c).view(BATCH, A, K)
    assert_same_everywhere(model(message), expected, *model.parameters(), *([message] if soft else []))


# -- the hierarchical receiver, against its formula, and its published defect ------------------------------------------


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("kind", LIBRARY)
def test_hier_receiver_is_its_formula(kind: str, soft: bool) -> None:
    model = make("receiver", f"Hier:{kind}")
    message = torch.rand(BATCH, L, V + 1).softmax(-1) if soft else some_messages()
    weights = message if soft else one_hot(message, V + 1)
    upper_cell, lower_cell = Plain(model.upper, kind), Plain(model.lower, kind)
    nothing = torch.zeros(BATCH, E)
    low, u, s = lower_cell.start(nothing), upper_cell.start(nothing), torch.ones(BATCH, 1)
    for t in range(L):
        low = lower_cell(weights[:, t] @ model.embed.weight, between(1 - s, low, (low[0] * 0, low[0] * 0)))
        s = torch.sigmoid(model.stop.score(low[0]))
        u = between(s, upper_cell(low[0], u), u)
    assert_same(model(message), model.out(u[0]).view(BATCH, A, K), model)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM", "dgsend", "dgrecv"])
def test_only_the_shared_gate_makes_examples_depend_on_the_first(kind: str) -> None:
    messages = some_messages()
    swapped = messages[[1, 0, *range(2, BATCH)]]
    right, wrong = make("receiver", f"Hier:{kind}"), make("receiver", f"Hier:{kind}", shared_gate=True)
    torch.testing.assert_close(right(swapped)[2:], right(messages)[2:])
    depends = not torch.allclose(wrong(swapped)[2:], wrong(messages)[2:], atol=1e-4)
    assert depends == (kind != "LSTM")
    torch.testing.assert_close(wrong(messages)[0], right(messages)[0])


def test_the_published_preset_shares_the_gate() -> None:
    assert registry.get("Hier:GRU", "receiver").published == {"shared_gate": True}


# -- the convolutional receiver, against the library's -----------------------------------------------------------------


def plain_cnn(model: Any, weights: Tensor) -> Tensor:
    """The receiver by the library's convolution and pooling, channels before positions."""
    x = (weights @ model.embed.weight).mT
    for block in model.blocks:
        kernel = block.weight.permute(2, 1, 0)  # out, in, position
        x = F.relu(F.max_pool1d(F.conv1d(x, kernel, block.bias, padding=1), 2))
    return model.out(x.mT.flatten(1)).view(len(weights), A, K)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("length", "blocks"), [(1, 0), (4, 0), (5, 1), (6, 1), (9, 1), (11, 2), (20, 3)])
@pytest.mark.parametrize("soft", [False, True])
def test_cnn_is_the_librarys(length: int, blocks: int, soft: bool) -> None:
    torch.manual_seed(5)
    model: Any = create_receiver("CNN", SPACE, length, V, E)
    assert len(model.blocks) == blocks
    tokens = torch.randint(V, (BATCH, length))
    weights = torch.randn(BATCH, length, V + 1).softmax(-1) if soft else one_hot(tokens, V + 1)
    weights.requires_grad_()
    expected = plain_cnn(model, weights)
    found = model(weights if soft else tokens)
    assert_same(found, expected, model)
    if soft:
        (mine,) = torch.autograd.grad(model(weights).square().sum(), weights)
        (plain,) = torch.autograd.grad(plain_cnn(model, weights).square().sum(), weights)
        torch.testing.assert_close(mine, plain, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("length", [11, 20])
def test_a_stack_of_cnns_equals_each(length: int) -> None:
    torch.manual_seed(5)
    models: list[Any] = [create_receiver("CNN", SPACE, length, V, E) for _ in range(3)]
    message = torch.randint(V, (3, BATCH, length))
    names = [name for name, _ in models[0].named_parameters()]
    stacked = {name: torch.stack([model.get_parameter(name).detach() for model in models]) for name in names}
    for parameter in stacked.values():
        parameter.requires_grad_()
    together = torch.func.functional_call(models[0], stacked, (message,))
    together.square().sum().backward()
    for i, model in enumerate(models):
        alone = model(message[i])
        torch.testing.assert_close(together[i], alone, atol=2e-6, rtol=0)
        alone.square().sum().backward()
        for name in names:
            torch.testing.assert_close(stacked[name].grad[i], model.get_parameter(name).grad, atol=2e-5, rtol=1e-4)  # type: ignore[index]


# -- feed-forward models of both sides, against their formulas ---------------------------------------------------------


def test_feed_forward_senders_are_their_formulas() -> None:
    meanings, fc1, fc2 = some_meanings(), make("sender", "FC1L"), make("sender", "FC2L")
    flat = F.one_hot(meanings, K).flatten(1).float()
    assert_same(fc1(meanings), F.linear(flat, fc1.out.weight, fc1.out.bias).view(BATCH, L, V + 1), fc1)
    hidden = torch.tanh(F.linear(flat, fc2.hidden.weight, fc2.hidden.bias))
    assert_same(fc2(meanings), F.linear(hidden, fc2.out.weight, fc2.out.bias).view(BATCH, L, V + 1), fc2)


def test_receivers_are_their_formulas() -> None:
    message = some_messages()
    models = {name: make("receiver", name) for name in ("FC2L", "FC", "FC1L", "FC2Lv2", "MeanEmbeddings")}
    rows = torch.arange(L) * (V + 1) + message

    def embedded(name: str) -> Tensor:
        return torch.tanh(F.embedding(message, models[name].embed.weight)).flatten(1)

    def answers(name: str, hidden: Tensor) -> Tensor:
        return F.linear(hidden, models[name].out.weight, models[name].out.bias)

    layer = models["FC"].hidden
    expected = {
        "FC2L": answers("FC2L", embedded("FC2L")),
        "FC": answers("FC", torch.tanh(F.linear(embedded("FC"), layer.weight, layer.bias))),
        "FC1L": F.embedding(rows, models["FC1L"].table.weight).sum(1),
        "FC2Lv2": answers("FC2Lv2", torch.tanh(F.embedding(rows, models["FC2Lv2"].table.weight).sum(1))),
        "MeanEmbeddings": answers(
            "MeanEmbeddings", torch.tanh(F.embedding(message, models["MeanEmbeddings"].embed.weight).mean(1))
        ),
    }
    for name, scores in expected.items():
        assert_same(models[name](message), scores.view(BATCH, A, K), models[name])


def test_mean_embeddings_ignores_the_start_symbol() -> None:
    model, weights = make("receiver", "MeanEmbeddings"), one_hot(some_messages(), V + 1)
    starts = weights.clone()
    starts[..., V] += 3
    assert torch.equal(model(starts), model(weights))


# -- symbols fed back to a sender --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RNNAutoReg:LSTM", "HierAutoReg:GRU"])
def test_the_first_input_is_the_symbol_v(name: str) -> None:
    model, meanings = make("sender", name), some_meanings()
    before = model(meanings)[:, 0].detach()
    with torch.no_grad():
        model.feedback.embed.weight[:, :V] += 1
        assert torch.equal(model(meanings)[:, 0], before)
        model.feedback.embed.weight[:, V] += 1
        assert not torch.allclose(model(meanings)[:, 0], before)


# -- models that remember ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Hashtable", "kNN"])
def test_receivers_that_remember_keep_the_first(name: str) -> None:
    model = make("receiver", name)
    messages = some_messages(3)
    messages[1] = messages[0]
    assert not model(messages).any()
    model.observe(messages, torch.tensor([[1, 2, 3], [0, 0, 0], [3, 2, 1]]))
    model.observe(messages[:1], torch.tensor([[2, 2, 2]]))
    assert model(messages).argmax(-1).tolist() == [[1, 2, 3], [1, 2, 3], [3, 2, 1]]
    assert torch.equal(model(one_hot(messages, V + 1)), model(messages))


def test_hashtable_receiver_answers_nothing_to_an_unseen_message() -> None:
    model = make("receiver", "Hashtable")
    model.observe(torch.zeros(1, L, dtype=torch.long), torch.tensor([[1, 2, 3]]))
    assert not model(torch.ones(2, L, dtype=torch.long)).any()


def test_knn_is_the_nearest_by_hamming_distance_first_seen_first() -> None:
    model, messages, meanings = make("receiver", "kNN"), some_messages(40), some_meanings(40)
    seen: dict[tuple[int, ...], list[int]] = {}
    for start in range(0, 30, 10):
        model.observe(messages[start : start + 10], meanings[start : start + 10])
    for message, meaning in zip(messages[:30].tolist(), meanings[:30].tolist(), strict=True):
        seen.setdefault(tuple(message), meaning)

    def distance(a: list[int], b: tuple[int, ...]) -> int:
        return sum(x != y for x, y in zip(a, b, strict=True))

    expected = [seen[min(seen, key=lambda known: distance(query, known))] for query in messages.tolist()]
    assert model(messages).argmax(-1).tolist() == expected


def test_hashtable_sender_keeps_the_first_and_knows_nothing_else() -> None:
    model = make("sender", "Hashtable")
    assert not model(some_meanings()).any()
    meanings = torch.tensor([[0, 0, 1], [0, 0, 1], [3, 3, 3]])
    messages = torch.stack([torch.full((L,), v) for v in (2, 1, 3)])
    model.observe(meanings, messages)
    model.observe(meanings[:1], messages[2:])
    scores = model(torch.tensor([[0, 0, 1], [3, 3, 3], [0, 1, 0]]))
    assert scores[0].argmax(-1).tolist() == [2] * L
    assert scores[1].argmax(-1).tolist() == [3] * L
    assert not scores[2].any()
    assert scores[0].sum() == L
