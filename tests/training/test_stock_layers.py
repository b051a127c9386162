"""PyTorch's own layers in plug-ins: stacked, with the numbers of replicates that train one at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from icy.models.stock import StockLayers
from icy.training.learners import Learner
from icy.training.probe_settings import ProbeSettings
from tests.cores import needs_native
from tests.training.helpers import SEEDS, Plain, assert_same_bits, batches, plug_in, stacked, step, task
from tests.training.test_stack import run_plain

# Scores after four updates, which change them by about 0.5. Adam makes more of the rounding of small gradients.
CLOSE = {"atol": 5e-5, "rtol": 0}
Make = Callable[[int], Any]


class StockSender(Plain):
    """Embeds the meaning, gives it to a recurrent net at every step, and starts the net from it."""

    def __init__(self, space: Any, message_length: int, vocab_size: int, hidden_size: int, make: Make) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.length, self.net = message_length, make(hidden_size)
        self.out = nn.Linear(_width(self.net), vocab_size + 1)

    def forward(self, meanings: Tensor) -> Tensor:
        one_hot = F.one_hot(meanings, self.values).flatten(-2).float()
        start = self.hidden(one_hot).tanh()
        x = start.unsqueeze(1).expand(-1, self.length, -1)
        y, _ = self.net(x if self.net.batch_first else x.transpose(0, 1), _states(self.net, start))
        scores: Tensor = self.out(y if self.net.batch_first else y.transpose(0, 1))
        return scores


class StockReceiver(nn.Module):
    """Reads a message by a recurrent net, which starts from zero, and answers by its final state."""

    def __init__(self, space: Any, message_length: int, vocab_size: int, hidden_size: int, make: Make) -> None:
        super().__init__()
        self.shape, self.net = (space.attributes, space.values), make(hidden_size)
        self.embed = nn.Embedding(vocab_size + 1, hidden_size)
        self.out = nn.Linear(_width(self.net), space.attributes * space.values)

    def forward(self, message: Tensor) -> Tensor:
        x = self.embed(message) if not message.is_floating_point() else message @ self.embed.weight
        _, final = self.net(x if self.net.batch_first else x.transpose(0, 1))
        h = final[0] if isinstance(final, tuple) else final
        nets = 2 if self.net.bidirectional else 1
        scores: Tensor = self.out(torch.cat(list(h[-nets:]), -1)).unflatten(-1, self.shape)
        return scores


class CellSender(Plain):
    """Feeds its symbols back to a cell."""

    def __init__(self, space: Any, message_length: int, vocab_size: int, hidden_size: int, make: Make) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.length, self.cell = message_length, make(hidden_size)
        self.out, self.back = nn.Linear(hidden_size, vocab_size + 1), nn.Linear(vocab_size + 1, hidden_size)

    def forward(self, meanings: Tensor) -> Tensor:
        h = self.hidden(F.one_hot(meanings, self.values).flatten(-2).float()).tanh()
        state = (h, torch.zeros_like(h)) if isinstance(self.cell, nn.LSTMCell) else h
        x, scores = torch.zeros_like(h), list[Tensor]()
        for _ in range(self.length):
            state = self.cell(x, state)
            scores.append(self.out(state[0] if isinstance(state, tuple) else state))
            x = self.back(scores[-1].softmax(-1))
        return torch.stack(scores, 1)


class StepSender(StockSender):
    """Has an embedding for each attribute, and calls a net for one step after another."""

    def __init__(self, space: Any, message_length: int, vocab_size: int, hidden_size: int, make: Make) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size, make)
        self.hidden = nn.ModuleList(nn.Embedding(space.values, hidden_size) for _ in range(space.attributes))
        self.first, self.back = nn.Parameter(torch.ones(hidden_size)), nn.Linear(vocab_size + 1, hidden_size)

    def forward(self, meanings: Tensor) -> Tensor:
        h = sum(embed(meanings[:, i]) for i, embed in enumerate(self.hidden)).unsqueeze(0)  # type: ignore[attr-defined, arg-type]
        x, scores = self.first.expand(len(meanings), 1, -1), list[Tensor]()
        for _ in range(self.length):
            y, h = self.net(x, h)
            scores.append(self.out(y))
            x = self.back(F.softmax(scores[-1], dim=-1))
        return torch.cat(scores, dim=1)


def _width(net: Any) -> int:
    return int(net.proj_size or net.hidden_size) * (1 + net.bidirectional)


def _states(net: Any, h: Tensor) -> Any:
    nets = net.num_layers * (1 + net.bidirectional)
    start = h[None, :, : net.proj_size or net.hidden_size].repeat(nets, 1, 1)
    return (start, h[None].repeat(nets, 1, 1)) if isinstance(net, nn.LSTM) else start


NETS: dict[str, Make] = {
    "GRU": lambda size: nn.GRU(size, size, batch_first=True),
    "LSTM": lambda size: nn.LSTM(size, size, batch_first=True),
    "GRU of two layers, both ways, dropout": lambda size: nn.GRU(size, size, 2, dropout=0.3, bidirectional=True),
    "LSTM of two layers, projected, no bias": lambda size: nn.LSTM(size, size, 2, bias=False, proj_size=5),
    "RNN with ReLU, both ways": lambda size: nn.RNN(size, size, nonlinearity="relu", bidirectional=True),
    "RNN of two layers": lambda size: nn.RNN(size, size, 2, batch_first=True),
}
CELLS: dict[str, Make] = {
    "GRUCell": lambda size: nn.GRUCell(size, size),
    "LSTMCell": lambda size: nn.LSTMCell(size, size, bias=False),
    "RNNCell": lambda size: nn.RNNCell(size, size, nonlinearity="relu"),
}
MODELS: list[tuple[str, Any, Make]] = [
    *((f"{side}: {name}", kind, make) for name, make in NETS.items() for side, kind in
      (("sender", StockSender), ("receiver", StockReceiver))),
    *((f"sender: {name}", CellSender, make) for name, make in CELLS.items()),
    ("sender: GRU, step by step", StepSender, NETS["GRU"]),
]  # fmt: skip

NOT_NATIVE = ("dropout", "sender: LSTM of two layers, projected")  # random numbers; a part of the columns of a state
NATIVE = [case for case in MODELS if not any(part in case[0] for part in NOT_NATIVE)]
IN_DEFAULT = {"sender: GRU", "sender: LSTM", "receiver: GRU", "receiver: LSTM", "sender: LSTMCell"}


def of_models(cases: list[tuple[str, Any, Make]]) -> pytest.MarkDecorator:
    marked = [
        pytest.param(kind, make, id=name, marks=[] if name in IN_DEFAULT else pytest.mark.slow)
        for name, kind, make in cases
    ]
    return pytest.mark.parametrize(("kind", "make"), marked)


def task_of(kind: Any, make: Make) -> ProbeSettings:
    return task(plug_in(kind, "receiver" if kind is StockReceiver else "sender", make=make))


def trained(of: ProbeSettings, how: str, places: list[int]) -> Learner:
    learner = stacked(of, [SEEDS[i] for i in places], how=how)
    for update in range(4):
        inputs, targets = batches(of.side, 5, update)
        step(learner, inputs[places], targets[places])
    return learner


@of_models(MODELS)
def test_stock_recurrent_layers_train_stacked_with_the_numbers_of_the_loop(
    kind: Any, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    of, places = task_of(kind, make), [0, 1, 2]
    stack, loop = trained(of, "vmap", places), trained(of, "loop", places)
    assert (stack.engine, loop.engine) == ("vmap+layers", "loop")
    assert_same_numbers(of, stack, loop)
    assert not caplog.records


@needs_native
@of_models(NATIVE)
def test_stock_recurrent_layers_train_natively_with_the_numbers_of_the_loop(kind: Any, make: Make) -> None:
    of, places = task_of(kind, make), [0, 1, 2]
    native, loop = trained(of, "auto", places), trained(of, "loop", places)
    assert native.engine == "native"
    assert_same_numbers(of, native, loop)


def assert_same_numbers(of: ProbeSettings, one: Learner, other: Learner) -> None:
    inputs = batches(of.side, 3, 9)[0]
    torch.testing.assert_close(one.scores(inputs), other.scores(inputs), **CLOSE)
    losses = one.losses(), other.losses()
    assert losses[0] is not None
    assert losses[1] is not None
    torch.testing.assert_close(losses[0].float(), losses[1], **CLOSE)


def test_a_replicate_with_stock_layers_has_the_same_bits_in_any_stack() -> None:
    of = task_of(StockSender, NETS["GRU of two layers, both ways, dropout"])
    whole, part = trained(of, "vmap", [0, 1, 2]), trained(of, "vmap", [2, 0])
    assert_same_bits(whole, 2, part, 0)
    inputs, targets = batches("sender", 3, 7)
    step(whole, inputs, targets)
    part.keep([1])  # the masks continue from their state
    step(part, inputs[:1], targets[:1])
    assert_same_bits(whole, 0, part, 0)


def test_layers_leave_stacked_weights_where_they_are() -> None:
    """On a GPU they would move weights with different addresses; all stacked weights have the same address."""
    with StockLayers([]):
        assert torch.ones(1).data_ptr() == torch.zeros(3).data_ptr()


# -- buffers, dropout and what else people bring -----------------------------------------------------------------------


class Of(nn.Module):
    """A module of a function, with a buffer."""

    def __init__(self, function: Callable[[Any, Tensor], Tensor], **parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("mean", torch.zeros(16))
        self.register_buffer("same", self.mean)
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def running_mean(self: Any, x: Tensor) -> Tensor:
    if self.training:
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
    return x - self.same


def encoder() -> nn.Module:
    return nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)


def embeds(self: Any, x: Tensor) -> Tensor:
    return x + self.net((x[:, :3] > 0).long()).sum(1)  # type: ignore[no-any-return]


def fills_its_own(self: Any, x: Tensor) -> Tensor:
    made = x.new_zeros(len(x), 16)
    made[:, :8] = x[:, :8]
    return made


def attends(self: Any, x: Tensor) -> Tensor:
    q, k, v = self.net(x).view(len(x), 2, 4, 6).split(2, -1)
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.4 if self.training else 0.0, is_causal=True).flatten(1)


STACKED = {
    "BatchNorm": (lambda: nn.BatchNorm1d(16), "vmap"),
    "a buffer": (lambda: Of(lambda self, x: x + self.mean), "vmap"),
    "a running mean under two names": (lambda: Of(running_mean), "vmap"),
    "nn.Dropout": (lambda: nn.Dropout(0.5), "vmap+layers"),
    "F.dropout, always": (lambda: Of(lambda self, x: F.dropout(x, 0.2)), "vmap+layers"),
    "padded embedding": (lambda: Of(embeds, net=nn.Embedding(2, 16, padding_idx=1)), "vmap+layers"),
    "new_zeros": (lambda: Of(fills_its_own), "vmap"),
    "attention with dropout": (lambda: Of(attends, net=nn.Linear(16, 48)), "vmap+layers"),
    "an encoder layer": (encoder, "vmap"),
}


@pytest.mark.filterwarnings("error:There is a performance drop")
@pytest.mark.parametrize("case", STACKED)
def test_buffers_and_dropout_are_stacked_with_the_numbers_of_the_loop(case: str) -> None:
    make, engine = STACKED[case]
    stack, loop = run_plain(make), run_plain(make, how="loop")
    assert stack.engine == engine
    inputs = batches("sender", 3, 9)[0]
    torch.testing.assert_close(stack.scores(inputs), loop.scores(inputs), **CLOSE)
    for place in range(3):
        of_stack, of_loop = stack.weights(place), loop.weights(place)
        for name in ("extra.mean", "extra.running_var", "extra.num_batches_tracked"):
            if name in of_loop:
                torch.testing.assert_close(of_stack[name], of_loop[name], **CLOSE)


def packs(self: Any, x: Tensor) -> Tensor:
    x = x.unsqueeze(1).expand(-1, 3, -1)
    lengths = torch.full((len(x),), 3)
    return self.net(pack_padded_sequence(x, lengths, batch_first=True))[1][0]  # type: ignore[no-any-return]


def packed(self: Any, x: Tensor) -> Tensor:
    return self.net(PackedSequence(x.repeat(2, 1), torch.tensor([len(x)] * 2)))[1][0]  # type: ignore[no-any-return]


def replaces_buffer(self: Any, x: Tensor) -> Tensor:
    if self.training:
        self.mean = 0.9 * self.mean + x.detach().mean(0)
    return x - self.mean


def fills(self: Any, x: Tensor) -> Tensor:
    made = torch.zeros(len(x), 16)
    made[:, :8] = x[:, :8]
    return made


def unregistered() -> nn.Module:
    made = Of(lambda self, x: x + self.shift)
    made.shift = torch.randn(16)  # type: ignore[assignment]
    return made


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "noise": (lambda: Of(lambda self, x: x + torch.randn_like(x)), "draws random numbers"),
    "dropout of attention": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), "dropout=0"),
    "item": (lambda: Of(lambda self, x: x * x.mean().item()), "compute with the tensor"),
    "if": (lambda: Of(lambda self, x: x if x.mean() > 0 else -x), "torch.where"),
    "mask": (lambda: Of(lambda self, x: x + x[x > 0].mean()), "torch.where"),
    "numpy": (lambda: Of(lambda self, x: x + torch.from_numpy(x.detach().numpy())), "compute with tensors"),
    "filled": (lambda: Of(fills), "new_zeros"),
    "replaced buffer": (lambda: Of(replaces_buffer), "'extra.mean'"),
    "packs": (lambda: Of(packs, net=nn.GRU(16, 16, batch_first=True)), "pack"),
    "packed": (lambda: Of(packed, net=nn.GRU(16, 16)), "padded tensor"),
    "plain tensor": (unregistered, "register_buffer"),
    "no rule": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(16, 16)), "other operations"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_models_that_cannot_be_stacked_get_a_remedy(case: str, caplog: pytest.LogCaptureFixture) -> None:
    make, remedy = REFUSED[case]
    with caplog.at_level(logging.WARNING, "icy.training"):
        learner = stacked(task(plug_in(Plain, extra=make)), SEEDS[:2])
    step(learner, *batches("sender", 2))
    assert learner.engine == "loop"
    (message,) = (record.message for record in caplog.records)
    assert remedy in message.partition(": ")[2]
    assert "one at a time" in message
    assert not {"vmap: ", "aten", "github"} & set(message.split()), message
