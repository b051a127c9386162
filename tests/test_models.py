"""Models: published parameter totals, plain loops written from the papers' formulas, and the models that remember."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.registry import registry
from icy.core.representations import one_hot
from icy.languages.meanings import MeaningSpace
from icy.models import create_receiver, create_sender
from icy.models.cells import SRUCell
from icy.models.convolution import Convolution
from icy.models.factory import create

torch.set_num_threads(1)

# Totals of the authors' program (E = 128, V = 4, w = 4) at 5x10 and at 3x10; the papers' tables agree where they print
# one. Rows of models that icy does not have (yet) stand here too.
SENDER_TOTALS = {
    "FC1L": (5_100, 1_860),
    "FC2L": (19_428, 11_708),
    "RNNZero:RNN": (40_069, 37_509),
    "RNNZero:GRU": (106_117, 103_557),
    "RNNZero:LSTM": (139_141, 136_581),
    "RNNZero:SRU": (56_709, 54_149),
    "RNNZero:dgsend": (105_349, 102_789),
    "RNNZero2L:RNN": (73_093, 70_533),
    "RNNZero2L:GRU": (205_189, 202_629),
    "RNNZero2L:LSTM": (271_237, 268_677),
    "RNNZero2L:SRU": (106_373, 103_813),
    "RNNZero2L:dgsend": (203_653, 201_093),
    "RNNAutoReg2L:RNN": (73_861, 71_301),
    "RNNAutoReg2L:GRU": (205_957, 203_397),
    "RNNAutoReg2L:LSTM": (272_005, 269_445),
    "RNNAutoReg2L:SRU": (107_141, 104_581),
    "RNNAutoReg2L:dgsend": (204_421, 201_861),
    "RNNAutoReg:dgrecv": (204_421, 201_861),
    "TransDecSoft": (272_389, 269_829),
    "TransDecSoft2L": (536_965, 534_405),
    "TransDecSampling": (272_261, 269_701),
    "HierZero:RNN": (40_710, 38_150),
    "HierZero:GRU": (107_782, 105_222),
    "HierZero:LSTM": (141_318, 138_758),
    "HierZero:dgsend": (138_758, 136_198),
    "HierAutoReg:RNN": (64_262, 59_142),
    "HierAutoReg:GRU": (163_846, 158_726),
    "HierAutoReg:LSTM": (213_638, 208_518),
    "HierAutoReg:dgsend": (178_566, 173_446),
    "RNNAutoReg:RNN": (40_837, 38_277),
    "RNNAutoReg:GRU": (106_885, 104_325),
    "RNNAutoReg:LSTM": (139_909, 137_349),
    "RNNAutoReg:SRU": (57_477, 54_917),
    "RNNAutoReg:dgsend": (106_117, 103_557),
    "RNNSampling:RNN": (40_709, 38_149),
    "RNNSampling:GRU": (106_757, 104_197),
    "RNNSampling:LSTM": (139_781, 137_221),
    "RNNSampling2L:GRU": (205_829, 203_269),
    "HierSampling:RNN": (64_134, 59_014),
    "HierSampling:GRU": (163_718, 158_598),
    "HierSampling:dgsend": (178_438, 173_318),
    "TransDecSampling2L": (536_837, 534_277),
    "Hashtable": (0, 0),
}
RECEIVER_TOTALS = {
    "FC1L": (5_000, 1_800),
    "FC2Lv2": (19_250, 11_550),
    "FC2L": (129_330, 47_390),
    "FC": (335_538, 201_886),
    "CNN": (161_970, 111_390),
    "RNN:RNN": (42_044, 38_948),
    "RNN:GRU": (108_092, 104_996),
    "RNN:LSTM": (141_116, 138_020),
    "RNN:SRU": (58_684, 55_588),
    "RNN:dgsend": (107_324, 104_228),
    "RNN:dgrecv": (205_628, 202_532),
    "RNN2L:RNN": (75_068, 71_972),
    "RNN2L:GRU": (207_164, 204_068),
    "RNN2L:LSTM": (273_212, 270_116),
    "RNN2L:SRU": (108_348, 105_252),
    "RNN2L:dgrecv": (402_236, 399_140),
    "Hier:RNN": (73_907, 71_327),
    "Hier:GRU": (206_003, 203_423),
    "Hier:LSTM": (272_051, 269_471),
    "Hier:dgsend": (204_467, 201_887),
    "Hier:dgrecv": (401_075, 398_495),
    "MeanEmbeddings": (7_474, 4_894),
    "Hashtable": (0, 0),
    "kNN": (0, 0),
}
CREATE: dict[str, Callable[..., Any]] = {"sender": create_sender, "receiver": create_receiver}


def known(side: str, name: str) -> bool:
    try:
        registry.get(name, side)
    except UnknownNameError:
        return False
    return True


TOTALS = [
    pytest.param(side, name, space, total, id=f"{side}/{name}-{space}")
    for side, table in (("sender", SENDER_TOTALS), ("receiver", RECEIVER_TOTALS))
    for name, totals in table.items()
    for space, total in zip(("5x10", "3x10"), totals, strict=True)
    if known(side, name)
]


# Of the papers' models, those that a later issue adds; a name that vanishes otherwise would take its test along.
NOT_YET: set[str] = set()


def test_every_other_published_model_is_here() -> None:
    tables = (("sender", SENDER_TOTALS), ("receiver", RECEIVER_TOTALS))
    missing = {f"{side}/{name}" for side, table in tables for name in table if not known(side, name)}
    assert missing == NOT_YET


@pytest.mark.parametrize(("side", "name", "space", "total"), TOTALS)
def test_published_totals(side: str, name: str, space: str, total: int) -> None:
    length = 4 * MeaningSpace.parse(space).attributes
    model = CREATE[side](name, space, message_length=length)
    assert model.parameter_count("published") == total
    assert 0 <= model.parameter_count("true") <= total


def test_published_totals_of_large_embeddings() -> None:
    with torch.device("meta"):  # nothing is allocated
        assert create_sender("RNNAutoReg:LSTM", "5x10", hidden_size=1280).parameter_count("published") == 13_195_525
        assert create_sender("FC2L", "5x10", hidden_size=1280).parameter_count("published") == 193_380


def test_most_rows_of_the_tables_are_in_the_registry() -> None:
    assert len(TOTALS) >= 2 * 43


def test_the_true_count_is_of_what_is_there() -> None:
    model = create_sender("HierZero:GRU", "3x4", 6, 4, 16)
    assert model.parameter_count() == sum(p.numel() for p in model.parameters())
    assert model.parameter_count("published") - model.parameter_count() == 2 * 3 * 16  # input weights of both cells
    with pytest.raises(InvalidSettingError, match="'true' or 'published'"):
        model.parameter_count("both")


# -- plain loops written from the formulas -----------------------------------------------------------------------------

A, K, L, V, E, BATCH = 3, 4, 6, 4, 16, 5
SPACE = MeaningSpace(A, K)
LIBRARY: dict[str, Callable[..., nn.Module]] = {"RNN": nn.RNNCell, "GRU": nn.GRUCell, "LSTM": nn.LSTMCell}
Pair = tuple[Tensor, Tensor | None]


def make(side: str, name: str, **options: Any) -> Any:
    torch.manual_seed(5)
    return CREATE[side](name, SPACE, L, V, E, **options)


def some_meanings(count: int = BATCH) -> Tensor:
    return torch.randint(K, (count, A), generator=torch.Generator().manual_seed(1))


def some_messages(count: int = BATCH) -> Tensor:
    return torch.randint(V, (count, L), generator=torch.Generator().manual_seed(2))


class Plain:
    """A library cell with the weights of one of icy's, on states (h, c) where c is None but for the LSTM."""

    def __init__(self, cell: Any, kind: str) -> None:
        self.cell = LIBRARY[kind](cell.input_size, E)
        self.has_c = kind == "LSTM"
        weights = cell.state_dict()
        weights.setdefault("weight_ih", torch.randn_like(self.cell.weight_ih))  # multiplies zeros
        self.cell.load_state_dict(weights)

    def __call__(self, x: Tensor, state: Pair) -> Pair:
        h, c = state
        if self.has_c:
            assert c is not None
            h, c = self.cell(x, (h, c))
            return h, c
        return self.cell(x, h), None

    def start(self, h: Tensor) -> Pair:
        return h, torch.zeros_like(h) if self.has_c else None


def between(s: Tensor, new: Pair, old: Pair) -> Pair:
    """s new + (1 - s) old, for h and c."""
    h = s * new[0] + (1 - s) * old[0]
    return h, None if new[1] is None or old[1] is None else s * new[1] + (1 - s) * old[1]


def summed_embedding(model: Any, meanings: Tensor) -> Tensor:
    """Row a*K + m_a for every attribute, summed."""
    rows = [model.embed.weight[a * K + meanings[:, a]] for a in range(A)]
    return torch.stack(rows).sum(0)


def assert_same(found: Tensor, expected: Tensor, model: nn.Module) -> None:
    """Equal scores, and equal gradients for some loss of them."""
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=0)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    shared = {n: p for n, p in model.named_parameters() if not any(part in n for part in CELL_PARTS)}
    mine = torch.autograd.grad((weight * found).sum(), list(shared.values()), retain_graph=True)
    plain = torch.autograd.grad((weight * expected).sum(), list(shared.values()))
    for a, b in zip(mine, plain, strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


CELL_PARTS = ("upper.", "lower.", "net.")  # the reference holds copies of their weights


@pytest.mark.parametrize("kind", LIBRARY)
def test_hier_zero_is_its_formula(kind: str) -> None:
    model = make("sender", f"HierZero:{kind}")
    upper_cell, lower_cell = Plain(model.upper, kind), Plain(model.lower, kind)
    meanings, zero = some_meanings(), torch.zeros(BATCH, 1)
    u, low = upper_cell.start(summed_embedding(model, meanings)), lower_cell.start(torch.zeros(BATCH, E))
    s, scores = torch.ones(BATCH, 1), []
    for _ in range(L):
        u = between(s, upper_cell(zero, u), u)
        low = lower_cell(zero, between(s, u, low))
        s = torch.sigmoid(model.stop.score(low[0]))
        scores.append(model.out(low[0]))
    assert_same(model(meanings), torch.stack(scores, 1), model)


@pytest.mark.parametrize("kind", LIBRARY)
def test_hier_autoreg_is_its_formula(kind: str) -> None:
    model = make("sender", f"HierAutoReg:{kind}")
    upper_cell, lower_cell = Plain(model.upper, kind), Plain(model.lower, kind)
    meanings, zero = some_meanings(), torch.zeros(BATCH, 1)
    u, low = upper_cell.start(summed_embedding(model, meanings)), lower_cell.start(torch.zeros(BATCH, E))
    s, scores, fed = torch.ones(BATCH, 1), [], F.one_hot(torch.full((BATCH,), V), V + 1).float()
    for _ in range(L):
        u = between(s, upper_cell(zero, u), u)
        low = lower_cell(F.linear(fed, model.feedback.embed.weight, model.feedback.embed.bias), between(s, u, low))
        s = torch.sigmoid(model.stop.score(low[0]))
        scores.append(model.out(low[0]))
        fed = scores[-1].softmax(-1)
    assert_same(model(meanings), torch.stack(scores, 1), model)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", LIBRARY)
def test_rnn_autoreg_is_a_plain_loop(kind: str, layers: int) -> None:
    model = make("sender", f"RNNAutoReg{'2L' if layers == 2 else ''}:{kind}")
    cells = [Plain(layer, kind) for layer in model.net.layers]
    meanings = some_meanings()
    start = [summed_embedding(model, meanings), torch.zeros(BATCH, E)]
    states = [cell.start(h) for cell, h in zip(cells, start, strict=False)]
    fed, scores = F.one_hot(torch.full((BATCH,), V), V + 1).float(), []
    for _ in range(L):
        x = F.linear(fed, model.feedback.embed.weight, model.feedback.embed.bias)
        for i, cell in enumerate(cells):
            states[i] = cell(x, states[i])
            x = states[i][0]
        scores.append(model.out(x))
        fed = scores[-1].softmax(-1)
    assert_same(model(meanings), torch.stack(scores, 1), model)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", LIBRARY)
def test_rnn_zero_is_a_plain_loop(kind: str, layers: int) -> None:
    model = make("sender", f"RNNZero{'2L' if layers == 2 else ''}:{kind}")
    cells = [Plain(layer, kind) for layer in model.net.layers]
    meanings = some_meanings()
    start = [summed_embedding(model, meanings), torch.zeros(BATCH, E)]
    states = [cell.start(h) for cell, h in zip(cells, start, strict=False)]
    scores = []
    for _ in range(L):
        x = torch.zeros(BATCH, E)
        for i, cell in enumerate(cells):
            states[i] = cell(x, states[i])
            x = states[i][0]
        scores.append(model.out(x))
    assert_same(model(meanings), torch.stack(scores, 1), model)


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


@pytest.mark.parametrize("layers", [1, 2])
def test_rnn_receiver_is_the_librarys(layers: int) -> None:
    model = make("receiver", f"RNN{layers}L:GRU")
    library = nn.GRU(E, E, layers, batch_first=True)
    weights = {f"{n}_l{i}": p for i, layer in enumerate(model.net.layers) for n, p in layer.named_parameters()}
    library.load_state_dict(weights)
    message = some_messages()
    last = library(F.embedding(message, model.embed.weight))[0][:, -1]
    assert_same(model(message), model.out(last).view(BATCH, A, K), model)


def plain_sru(layer: Any, x: Tensor, c: Tensor, tanh: bool = False) -> tuple[Tensor, Tensor]:
    """The formulas as they stand: h of every step [batch, step, E] and the last c. What a layer leaves out is zero."""
    full: dict[str, Tensor] = {"weight": torch.zeros(3 * E, E), "state_weight": torch.zeros(2, E)}
    full["bias"] = full["state_weight"]
    for name, p in layer.named_parameters():
        full[name] = torch.cat([p, torch.zeros(len(full[name]) - len(p), E)])
    (v_f, v_r), (b_f, b_r), outputs = full["state_weight"], full["bias"], []
    for x_t in x.unbind(1):
        candidate, f, r = (x_t @ full["weight"].T).split(E, 1)
        f, r = torch.sigmoid(f + v_f * c + b_f), torch.sigmoid(r + v_r * c + b_r)
        c = f * c + (1 - f) * candidate
        outputs.append(r * (torch.tanh(c) if tanh else c) + (1 - r) * x_t)
    return torch.stack(outputs, 1), c


def sru_model(side: str, name: str) -> Any:
    """With biases that are not zero, as they are after some training."""
    model = make(side, name)
    for layer in model.net.layers:
        nn.init.normal_(layer.bias)
    return model


def assert_same_everywhere(found: Tensor, expected: Tensor, *of: Tensor) -> None:
    """Equal scores, and equal gradients of everything for some loss of them."""
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=0)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    mine = torch.autograd.grad((weight * found).sum(), of)
    for a, b in zip(mine, torch.autograd.grad((weight * expected).sum(), of), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


@pytest.fixture(params=[True, False], ids=["scan", "step"])
def scanning(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nets of SRUs over the whole sequence at once, and step by step."""
    assert SRUCell.scans
    monkeypatch.setattr(SRUCell, "scans", request.param)


@pytest.mark.usefixtures("scanning")
@pytest.mark.parametrize("name", ["RNNZero:SRU", "RNNZero2L:SRU"])
def test_rnn_zero_of_srus_is_a_plain_loop(name: str) -> None:
    model, meanings = sru_model("sender", name), some_meanings()
    x, c = torch.zeros(BATCH, L, E), summed_embedding(model, meanings)
    for layer in model.net.layers:
        x, _ = plain_sru(layer, x, c, tanh=True)
        c = torch.zeros_like(c)
    assert_same_everywhere(model(meanings), model.out(x), *model.parameters())


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


def test_feed_forward_models_are_their_formulas() -> None:
    meanings, message = some_meanings(), some_messages()
    flat = F.one_hot(meanings, K).flatten(1).float()
    fc1, fc2 = make("sender", "FC1L"), make("sender", "FC2L")
    assert_same(fc1(meanings), F.linear(flat, fc1.out.weight, fc1.out.bias).view(BATCH, L, V + 1), fc1)
    hidden = torch.tanh(F.linear(flat, fc2.hidden.weight, fc2.hidden.bias))
    assert_same(fc2(meanings), F.linear(hidden, fc2.out.weight, fc2.out.bias).view(BATCH, L, V + 1), fc2)
    for name in ("FC2L", "FC"):
        model = make("receiver", name)
        hidden = torch.tanh(F.embedding(message, model.embed.weight)).flatten(1)
        if name == "FC":
            hidden = torch.tanh(F.linear(hidden, model.hidden.weight, model.hidden.bias))
        assert_same(model(message), F.linear(hidden, model.out.weight, model.out.bias).view(BATCH, A, K), model)


def test_receivers_of_the_program_are_their_formulas() -> None:
    message, positions = some_messages(), torch.arange(L)
    fc1, fc2, mean = (make("receiver", name) for name in ("FC1L", "FC2Lv2", "MeanEmbeddings"))
    rows = positions * (V + 1) + message
    assert_same(fc1(message), F.embedding(rows, fc1.table.weight).sum(1).view(BATCH, A, K), fc1)
    hidden = torch.tanh(F.embedding(rows, fc2.table.weight).sum(1))
    assert_same(fc2(message), fc2.out(hidden).view(BATCH, A, K), fc2)
    hidden = torch.tanh(F.embedding(message, mean.embed.weight).mean(1))
    assert_same(mean(message), mean.out(hidden).view(BATCH, A, K), mean)


def test_mean_embeddings_ignores_the_start_symbol() -> None:
    model = make("receiver", "MeanEmbeddings")
    weights = one_hot(some_messages(), V + 1)
    starts = weights.clone()
    starts[..., V] += 3
    assert torch.equal(model(starts), model(weights))


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


def test_convolutions_are_initialised_as_the_librarys() -> None:
    torch.manual_seed(5)
    block, library = Convolution(60, 80), nn.Conv1d(60, 80, 3)
    bound = (3 * 60) ** -0.5
    for mine, theirs in ((block.weight, library.weight), (block.bias, library.bias)):
        assert mine.numel() == theirs.numel()
        assert 0.9 * bound < mine.abs().max() <= bound
        assert mine.std().item() == pytest.approx(theirs.std().item(), rel=0.2)


@pytest.mark.parametrize("name", ["RNNAutoReg:LSTM", "HierAutoReg:GRU"])
def test_the_first_input_is_the_symbol_v(name: str) -> None:
    model, meanings = make("sender", name), some_meanings()
    before = model(meanings)[:, 0].detach()
    with torch.no_grad():
        model.feedback.embed.weight[:, :V] += 1
        assert torch.equal(model(meanings)[:, 0], before)
        model.feedback.embed.weight[:, V] += 1
        assert not torch.allclose(model(meanings)[:, 0], before)


# -- the published defect of the Hier receiver -----------------------------------------------------------------------


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


# -- models that remember ----------------------------------------------------------------------------------------------


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


# -- making them -------------------------------------------------------------------------------------------------------


def test_mistakes_are_answered_in_a_sentence() -> None:
    with pytest.raises(UnknownNameError, match="did you mean HierZero:GRU"):
        create_sender("HierZero:GRUU", "3x4")
    with pytest.raises(InvalidSettingError, match="hidden_size must be a whole number of at least 1, not 0"):
        create_sender("FC2L", "3x4", hidden_size=0)
    with pytest.raises(InvalidSettingError, match=r"has no option 'gate'; its options: .*shared_gate"):
        create_receiver("Hier:GRU", "3x4", gate=True)
    with pytest.raises(UnknownNameError, match="representation"):
        create_sender("RNNAutoReg:GRU", "3x4", representation="sofd")


def test_a_model_without_feedback_takes_any_representation() -> None:
    create_sender("FC2L", "3x4", 6, 4, 8, representation="soft")
    with pytest.raises(UnknownNameError):
        create_sender("FC2L", "3x4", 6, 4, 8, representation="none such")


def test_a_factory_that_takes_anything_is_told_the_representation() -> None:
    told: list[Any] = []

    def factory(space: MeaningSpace, length: int, vocab: int, hidden: int, **more: Any) -> nn.Module:
        told.append(more["representation"].name)
        return nn.Linear(1, 1)

    entry = replace(registry.get("FC1L", "sender"), factory=factory)
    create(entry, "3x4", 6, 4, 8, representation="gumb")
    assert told == ["gumb"]
