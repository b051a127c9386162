"""Models that a stranger might write, for lowering: each is computed rightly or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from icy.core.representations import largest
from icy.models.attention import attend_by_head, attend_newest, attend_over
from icy.models.base import time_last
from icy.models.cells import GRUCell, LSTMCell, RNNCell, SRUCell, start_symbol
from icy.models.kernels.cell_steps import mix, tanh
from icy.models.layers import (
    Linear,
    MeaningEmbedding,
    SymbolEmbedding,
    as_symbol_weights,
    flat_one_hot,
    linear,
    pool_relu,
)

A, K, L, V, E = 3, 4, 6, 4, 40


class Strange(nn.Module):
    """A sender with layers to choose from, and a forward pass that is given."""

    broadcasts = True

    def __init__(self, run: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(11)
        self.run = run
        self.embed = MeaningEmbedding(A, K, E)
        self.first, self.second = Linear(E, E), Linear(E, E)
        self.out, self.wide = Linear(E, V + 1), Linear(E, L * (V + 1))
        self.feedback = Linear(V + 1, E)
        self.gru, self.lstm, self.sru, self.rnn = GRUCell(E, E), LSTMCell(E, E), SRUCell(E, E), RNNCell(E, E)
        self.row = nn.Parameter(torch.randn(1, E))
        self.table = SymbolEmbedding(A * K, E)
        self.triple, self.halved = Linear(E, 3 * E), Linear(E, E // 2)
        self.h0 = nn.Parameter(torch.zeros(E))

    def forward(self, meanings: Tensor) -> Tensor:
        return self.run(self, meanings)

    def steps(self, hidden: Any) -> Tensor:
        """Return scores of a list of L states."""
        found: Tensor = self.out(time_last(hidden))
        return found


def tied(m: Any, x: Tensor) -> Tensor:
    """One layer at several places."""
    h = m.embed(x)
    hidden = []
    for _ in range(L):
        h = tanh(m.first(h))
        hidden.append(h)
    return m.steps(hidden)


def residual(m: Any, x: Tensor) -> Tensor:
    h = m.embed(x)
    h = h + tanh(m.first(h))
    h = h + m.second(h)
    return m.wide(h).unflatten(-1, (L, V + 1))


def read_everywhere(m: Any, x: Tensor) -> Tensor:
    """Every state is read by the next step, by a layer, and by all that come later."""
    h = m.embed(x)
    hidden: list[Tensor] = []
    for _ in range(L):
        gates = m.gru.project(h)
        (new,) = m.gru.step(gates, (h,))
        h = tanh((new + m.first(h) + sum(hidden, new)) / 8)
        hidden.append(h)
    return m.steps(hidden)


def gates_twice(m: Any, x: Tensor) -> Tensor:
    """The gates of an input are read by two steps."""
    h = m.embed(x)
    gates = m.gru.project(tanh(h))
    hidden = []
    for _ in range(L // 2):
        (a,) = m.gru.step(gates, (h,))
        (b,) = m.gru.step(gates, (a,))
        h = b
        hidden += [a, b]
    return m.steps(hidden)


def state_twice(m: Any, x: Tensor) -> Tensor:
    """Two steps go on from one state, and their gates are each read twice."""
    h = m.embed(x)
    c = torch.zeros_like(h)
    gates = m.lstm.project(m.first(h))
    hidden = []
    for _ in range(L // 2):
        a, c1 = m.lstm.step(gates, (h, c))
        b, c2 = m.lstm.step(gates, (a, c))
        h, c = a + b, c1 + c2
        hidden += [h, b]
    return m.steps(hidden)


def cell_as_output(m: Any, x: Tensor) -> Tensor:
    """The scores read c of an LSTM and never its last h."""
    h = m.embed(x)
    c = torch.zeros_like(h)
    gates = m.lstm.project(h)
    cells = []
    for _ in range(L):
        h, c = m.lstm.step(gates, (h, c))
        cells.append(c)
    return m.steps(cells)


def sru_cell_as_output(m: Any, x: Tensor) -> Tensor:
    h = m.embed(x)
    state = m.sru.start(h)
    cells = []
    for _ in range(L):
        state = m.sru.step(m.sru.project(state[0]), state)
        cells.append(state[-1])
    return m.steps(cells)


def row_added(m: Any, x: Tensor) -> Tensor:
    h = tanh(m.embed(x) + m.row)
    return m.wide(h + m.row).unflatten(-1, (L, V + 1))


def weight_shared_by_embedding(m: Any, x: Tensor) -> Tensor:
    """A table that tokens choose from is also a matrix of a product."""
    h = tanh(m.embed(x))
    scores = linear(h, m.embed.weight)  # one per attribute value
    return m.wide(tanh(linear(scores, m.embed.weight.mT))).unflatten(-1, (L, V + 1))


def hard_attention(m: Any, x: Tensor) -> Tensor:
    """A decision, which has no gradient, fed back."""
    h = m.embed(x)
    hidden = []
    symbol = start_symbol(h, V + 1)
    for _ in range(L):
        h = tanh(m.first(h) + m.feedback(symbol))
        symbol = largest(m.out(h))
        hidden.append(h)
    return m.steps(hidden)


def soft_twice(m: Any, x: Tensor) -> Tensor:
    """What a step emits is read by two later ones."""
    h = m.embed(x)
    hidden, before = [], start_symbol(h, V + 1)
    symbol = before
    for _ in range(L):
        h = tanh(m.first(h) + m.feedback(symbol) + m.feedback(before))
        before, symbol = symbol, m.out(h).softmax(-1)
        hidden.append(h)
    return m.steps(hidden)


def cat_by_name(m: Any, x: Tensor) -> Tensor:
    h = m.embed(x)
    both = torch.cat([m.out(h) for _ in range(L)], dim=-1)
    return both.unflatten(-1, (L, V + 1))


def cat_of_named(m: Any, x: Tensor) -> Tensor:
    h = m.embed(x)
    return torch.cat(tensors=[m.out(h) for _ in range(L)], dim=-1).unflatten(-1, (L, V + 1))


def stack_of_scores(m: Any, x: Tensor) -> Tensor:
    h = m.embed(x)
    return torch.stack([m.out(h), *(m.out(m.first(h)) for _ in range(L - 1))], 1)


def stack_last(m: Any, x: Tensor) -> Tensor:
    """Places and choices the other way round, so that every place holds one choice of all."""
    h = m.embed(x)
    scores = [m.wide(h)[..., :L], *(m.wide(m.first(h))[..., :L] for _ in range(V))]
    return torch.stack(scores, -1)


def places_and_choices_swapped(m: Any, x: Tensor) -> Tensor:
    return m.wide(m.embed(x)).unflatten(-1, (V + 1, L)).transpose(-1, -2)


def some_columns(m: Any, x: Tensor) -> Tensor:
    h = m.embed(x)
    return torch.stack([m.wide(h)[..., i : i + V + 1] for i in range(L)], 1)


def rows_cut(m: Any, x: Tensor) -> Tensor:
    """Rows of other sizes than those that a layer reads."""
    h = m.embed(x).view(len(x), V, E // V)
    return m.steps([torch.cat([h, h, h, h], -1).mean(1) for _ in range(L)])


def rows_cut_for_a_layer(m: Any, x: Tensor) -> Tensor:
    h = m.wide(m.embed(x)).view(len(x), L, V + 1)
    return m.out(m.feedback(h))


def joined_places(m: Any, x: Tensor) -> Tensor:
    """The states of all steps read as one row by a layer, and then as steps again."""
    h = time_last([m.embed(x), m.first(m.embed(x))])
    joined = h.flatten(-2).view(len(x), 2, E)
    return torch.cat([m.out(joined)] * 3, -2)


def places_mixed(m: Any, x: Tensor) -> Tensor:
    """Places and examples read in the wrong order."""
    h, hidden = m.embed(x), []
    for _ in range(L):
        h = tanh(m.first(h))
        hidden.append(h)
    return m.out(torch.stack(hidden).reshape(len(x), L, E))


def reversed_places(m: Any, x: Tensor) -> Tensor:
    h, hidden = m.embed(x), []
    for _ in range(L):
        h = tanh(m.first(h))
        hidden.append(h)
    return m.steps(hidden).flip(-2)


def reversed_list(m: Any, x: Tensor) -> Tensor:
    h, hidden = m.embed(x), []
    for _ in range(L):
        h = tanh(m.first(h))
        hidden.append(h)
    return m.steps(hidden[::-1])


def words(m: Any, x: Tensor) -> Tensor:
    """Attributes one by one, each of which the same layer reads."""
    hot = flat_one_hot(x.unsqueeze(-1), K, torch.float32)
    hidden = linear(hot, m.feedback.weight[:, :K])
    return m.steps([hidden[:, i % A] for i in range(L)])


def reshaped_tokens(m: Any, x: Tensor) -> Tensor:
    """Tokens as of other examples: two for each, of which both are read as one."""
    rows = torch.cat([x, x], 1).reshape(len(x), 2, A)
    hot = flat_one_hot(rows, K, torch.float32)  # [batch, 2, A K]
    hidden = linear(hot, m.embed.weight.mT)  # [batch, 2, E]
    return m.out(torch.cat([hidden, hidden, hidden], 1))


def shifted_tokens(m: Any, x: Tensor) -> Tensor:
    return m.wide(m.embed((x + x) // 2)).unflatten(-1, (L, V + 1))


def in_place(m: Any, x: Tensor) -> Tensor:
    h = m.embed(x)
    g = m.first(h)
    g += h
    return m.wide(g).unflatten(-1, (L, V + 1))


def written_over(m: Any, x: Tensor) -> Tensor:
    h = m.embed(x).clone()
    h[:, 0] = 0
    return m.wide(h).unflatten(-1, (L, V + 1))


def activations_of_pytorch(m: Any, x: Tensor) -> Tensor:
    h = torch.tanh(m.embed(x)) + m.first(m.embed(x)).relu()
    return m.wide(nn.ReLU()(h) + torch.relu(m.second(h)).tanh()).unflatten(-1, (L, V + 1))


def two_chunks(m: Any, x: Tensor) -> Tensor:
    """Gates taken apart by hand, in an order of one's own."""
    a, b = m.lstm.project(m.embed(x)).unflatten(-1, (4, E)).unbind(-2)[1:3]
    return m.wide(tanh(a) + b).unflatten(-1, (L, V + 1))


def weighted_symbols(m: Any, x: Tensor) -> Tensor:
    """The attributes as symbols, one step each, twice."""
    steps = m.table(as_symbol_weights(x, A * K, torch.float32))
    return m.out(torch.cat([steps, steps], -2))


def scores_twice(m: Any, x: Tensor) -> Tensor:
    """The scores of a place are also read by the next."""
    h, scores = m.embed(x), []
    for _ in range(L):
        s = m.out(h)
        h = tanh(m.first(h) + m.feedback(s))
        scores.append(s)
    return time_last(scores)


def same_scores_everywhere(m: Any, x: Tensor) -> Tensor:
    s = m.out(m.embed(x))
    return time_last([s] * L)


def sru_cell_read_once(m: Any, x: Tensor) -> Tensor:
    """The new c of an SRU is read by a sum alone, which could write over it, but its gradient is computed from it."""
    h = m.embed(x)
    new, c = m.sru.step(m.sru.project(h), (h, h))
    return m.steps([c + m.row, new] * (L // 2))


def _projected(m: Any, x: Tensor, count: int) -> tuple[list[Tensor], Tensor]:
    """Return queries, keys and values of some states, and the last state."""
    h, found = m.embed(x), []
    for _ in range(count):
        h = tanh(m.first(h))
        found.append(m.triple(h))
    return found, h


def asks_once(m: Any, x: Tensor) -> Tensor:
    """Only the last state asks what the others hold."""
    seen, _ = _projected(m, x, 3)
    return m.wide(attend_newest(seen, 2)).unflatten(-1, (L, V + 1))


def asks_twice(m: Any, x: Tensor) -> Tensor:
    """A state asks twice, and a layer reads in two parts what it reads in one elsewhere."""
    seen, h = _projected(m, x, 3)
    return m.steps([attend_newest(seen, 2), attend_newest(seen[1:], 2), h] * (L // 3))


def asks_later(m: Any, x: Tensor) -> Tensor:
    """Some states ask and some do not, and a projection is read by something else, too."""
    seen, _ = _projected(m, x, 4)
    asked = m.first(attend_newest(seen[:2], 2)) + m.second(attend_newest(seen, 2))
    return m.wide(asked + seen[2][..., :E] + seen[0][..., E : 2 * E]).unflatten(-1, (L, V + 1))


def sees_twice(m: Any, x: Tensor) -> Tensor:
    seen, _ = _projected(m, x, 2)
    return m.wide(attend_newest([seen[0], *seen], 2)).unflatten(-1, (L, V + 1))


def some_positions_unread(m: Any, x: Tensor) -> Tensor:
    h = m.embed(x)
    seen = m.triple(time_last([h, m.first(h), m.second(h)]))
    first, second, _ = attend_by_head(seen, 2, False).unbind(-2)
    return m.steps([first, h, second] * (L // 3))


def query_read_elsewhere(m: Any, x: Tensor) -> Tensor:
    """A residual connection around an attention."""
    h = m.embed(x)
    rows = [h]
    for _ in range(3):
        query = tanh(m.first(h))
        h = query + attend_over(query, list(rows))
        rows.append(h)
    return m.wide(h).unflatten(-1, (L, V + 1))


def query_among_rows(m: Any, x: Tensor) -> Tensor:
    """What asks is also among what is seen."""
    h = m.embed(x)
    rows = [h]
    for _ in range(3):
        h = tanh(m.first(h))
        rows.append(h)
        h = attend_over(h, list(rows))
    return m.wide(h).unflatten(-1, (L, V + 1))


def pooled_read_elsewhere(m: Any, x: Tensor) -> Tensor:
    """What is pooled is also read as it is."""
    h = m.embed(x)
    found = [m.first(h), m.second(h), tanh(h), h]
    return m.steps([*pool_relu(torch.stack(found)).unbind(0), *found])


def learnt_start(m: Any, x: Tensor) -> Tensor:
    """A state to start from that all examples share; it is zero at first."""
    gates, h, hidden = m.gru.project(m.embed(x)), m.h0.expand(len(x), -1), []
    for _ in range(L):
        (h,) = m.gru.step(gates, (h,))
        hidden.append(h)
    return m.steps(hidden)


def state_in_parts(m: Any, x: Tensor) -> Tensor:
    """A state that is two rows side by side."""
    h = m.embed(x)
    state = torch.cat([m.halved(h), m.halved(tanh(h))], -1)
    (h,) = m.gru.step(m.gru.project(h), (state,))
    return m.wide(h).unflatten(-1, (L, V + 1))


def clamped_in_place(m: Any, x: Tensor) -> Tensor:
    """Changes nothing on the examples that are traced, but might on others."""
    h = m.first(m.embed(x))
    h.clamp_(-50, 50)
    return m.wide(h).unflatten(-1, (L, V + 1))


def masked_in_place(m: Any, x: Tensor) -> Tensor:
    h = m.first(m.embed(x))
    h[h > 50] = 0
    return m.wide(h).unflatten(-1, (L, V + 1))


def noise_of_its_own(m: Any, x: Tensor) -> Tensor:
    return m.wide(m.embed(x) + torch.randn(E)).unflatten(-1, (L, V + 1))


# What models do with the embedding of meanings, before a layer gives the scores of all places.
OF_EMBEDDING: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "view": lambda m, h: tanh(h),
    "softmax_by_name": lambda m, h: tanh(m.feedback(m.out(h).softmax(dim=-1))),
    "column": lambda m, h: h + h[..., 0].unsqueeze(-1),
    "examples_turned": lambda m, h: h + torch.cat([h[-1:], h[:-1]]),
    "softmax_over_examples": lambda m, h: tanh(m.feedback(m.out(h).softmax(0))),
    "batch_norm": lambda m, h: h - h.mean(0),
    "first_example": lambda m, h: h + h[:1],
    "constant_per_example": lambda m, h: h + torch.arange(len(h)).unsqueeze(-1) * 0.01,
    "constant_row": lambda m, h: tanh(h + torch.linspace(-1, 1, E)),
    "scaled_and_negated": lambda m, h: -h * 2 / 3,
    "alpha": lambda m, h: torch.add(h, m.first(h), alpha=2),
    "rounded_division": lambda m, h: torch.div(h, 2, rounding_mode="floor"),
    "relu_in_place": lambda m, h: nn.ReLU(inplace=True)(h),
    "mixed_by_scores": lambda m, h: mix(h, m.first(h), torch.sigmoid(m.out(h)[..., :1])),
    "mean_over_columns": lambda m, h: h + h.mean(-1, keepdim=True),
    "mean_of_steps": lambda m, h: torch.stack([m.first(h), m.second(h), h]).mean(0),
    "transposed_weight": lambda m, h: linear(linear(h, m.first.weight.mT), m.first.weight, m.first.bias),
    "product_of_weights": lambda m, h: linear(h, linear(m.second.weight, m.first.weight)),
    "nothing_trained_in_between": lambda m, h: tanh(linear(h, torch.eye(E) * 0.5)),
}


def of_embedding(function: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    return lambda m, x: m.wide(function(m, m.embed(x))).unflatten(-1, (L, V + 1))


ALL = {
    name: function
    for name, function in list(globals().items())
    if getattr(function, "__module__", "") == __name__ and name not in ("Strange", "_projected", "of_embedding")
} | {name: of_embedding(function) for name, function in OF_EMBEDDING.items()}
