"""HU-RNN senders HierZero, HierAutoReg and HierSampling, with any cell (Perkins21 section 2.9; Icy22 section 3.3.2)."""

from torch import Tensor

from icy.core.representations import DISCRETE, SOFT, Representation
from icy.models.base import Meanings, MessageScores, Sender, Sizes, time_last
from icy.models.cells import (
    CellFactory,
    SampledFeedback,
    State,
    Stop,
    StopGate,
    SymbolFeedback,
    Unfed,
    WordEnds,
    apply_folded,
    mix,
)
from icy.models.layers import Linear, MeaningEmbedding

UNFED_INPUT = 1  # published cells without an input have an input of size 1 that is always zero


class _HierSender(Sender):
    """The upper level, stop gate and mixing of all HU-RNN senders.

    u_t = s u' + (1 - s) u with u' = CELL_u(0, u);  l~ = s u_t + (1 - s) l;  l_t = CELL_l(x, l~);
    s_t = sigmoid(a . l_t + b), with s of the previous step on the right, and s_0 = 1, u_0 = the meaning, l_0 = 0.
    """

    def __init__(self, *sizes: *Sizes, cell: CellFactory) -> None:
        super().__init__(*sizes)
        self.embed = MeaningEmbedding(self.space.attributes, self.space.values, self.hidden_size)
        self.upper = cell(UNFED_INPUT, self.hidden_size, fed=False)
        self.upper.keep_state_only()
        self.stop: StopGate | WordEnds = StopGate(self.hidden_size)
        self.out = Linear(self.hidden_size, self.symbols)

    def before_lower(self, unfed: Unfed, upper: State, lower: State | None, stop: Stop | None) -> tuple[State, State]:
        """Return the new upper state, and the state for the step of the lower cell; at the first step s = 1."""
        if stop is False and lower is not None:
            return upper, lower
        stepped = self.upper.step(unfed, upper)
        if stop is None or lower is None:
            return stepped, stepped
        upper = mix(upper, stepped, stop)
        return upper, mix(lower, upper, stop)


class HierZero(_HierSender):
    """HU-RNN sender with cells that have no input: the meaning is the initial state, and no symbol is fed back.

    So its scores do not depend on sampled symbols. The published total also counts the input weights of both cells,
    which multiply zeros.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes, cell: CellFactory) -> None:
        super().__init__(*sizes, cell=cell)
        self.lower = cell(UNFED_INPUT, self.hidden_size, fed=False)

    def forward(self, meanings: Meanings) -> MessageScores:
        upper, lower, stop = self.upper.start(self.embed(meanings)), None, None
        unfed_upper, unfed_lower = self.upper.unfed(), self.lower.unfed()
        outputs = []
        for step in range(self.message_length):
            upper, mixed = self.before_lower(unfed_upper, upper, lower, stop)
            lower = self.lower.step(unfed_lower, mixed)
            stop = self.stop(lower, step)
            outputs.append(lower[0])
        return self.out(time_last(outputs))


class HierAutoReg(_HierSender):
    """HU-RNN sender with a lower cell that reads the previous symbol.

    The published total also counts the upper cell's input weights, which multiply zeros, and a layer from the one-hot
    meaning to E that is never called.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes, cell: CellFactory, representation: Representation = SOFT) -> None:
        super().__init__(*sizes, cell=cell)
        self.feedback: SymbolFeedback | SampledFeedback = SymbolFeedback(self.symbols, self.hidden_size, representation)
        self.lower = cell(self.hidden_size, self.hidden_size)

    def inert_parameters(self) -> int:
        unused_layer = (self.space.attributes * self.space.values + 1) * self.hidden_size
        return super().inert_parameters() + unused_layer

    def forward(self, meanings: Meanings) -> MessageScores:
        start = self.embed(meanings)
        upper, lower, stop = self.upper.start(start), None, None
        unfed, folded = self.upper.unfed(), self.feedback.fold(self.lower)
        fed_back = self.feedback.first_symbol(start)
        scores: list[Tensor] = []
        for step in range(self.message_length):
            if scores:
                fed_back = self.feedback.seen(scores[-1], step - 1)
            upper, mixed = self.before_lower(unfed, upper, lower, stop)
            lower = self.lower.step(apply_folded(fed_back, folded), mixed)
            stop = self.stop(lower, step)
            scores.append(self.out(lower[0]))
        return time_last(scores)


class HierSampling(HierAutoReg):
    """Like HierAutoReg, but its lower cell reads the token sampled from the scores. For DISCR only."""

    def __init__(self, *sizes: *Sizes, cell: CellFactory, representation: Representation = DISCRETE) -> None:
        super().__init__(*sizes, cell=cell)
        self.feedback = SampledFeedback(self.symbols, self.hidden_size, representation)
