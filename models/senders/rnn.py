"""Recurrent senders RNNZero, RNNAutoReg and RNNSampling, with any cell and depth (Icy22 appendix B.2, B.3)."""

from torch import Tensor

from icy.core.representations import DISCRETE, SOFT, Representation
from icy.models.base import Meanings, MessageScores, Sender, Sizes, time_last
from icy.models.cells import CellFactory, Recurrent, SampledFeedback, SymbolFeedback, apply_folded
from icy.models.layers import Linear, MeaningEmbedding


class RNNZero(Sender):
    """A recurrent net that starts from the meaning and has no input (it is always zero).

    The published total also counts the input weights, which multiply zeros.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes, cell: CellFactory, layers: int = 1) -> None:
        super().__init__(*sizes)
        self.embed = MeaningEmbedding(self.space.attributes, self.space.values, self.hidden_size)
        self.net = Recurrent(cell, self.hidden_size, layers, fed=False)
        self.out = Linear(self.hidden_size, self.symbols)

    def forward(self, meanings: Meanings) -> MessageScores:
        start = self.embed(meanings)
        if self.net.scans:
            return self.out(self.net.scan(None, None, start, self.message_length)).transpose(-3, -2)
        states = self.net.start(start)
        gates = self.net.first.unfed()
        outputs = []
        for _ in range(self.message_length):
            states = self.net.step(gates, states)
            outputs.append(states[-1][0])
        return self.out(time_last(outputs))


class RNNAutoReg(Sender):
    """A recurrent net that starts from the meaning and reads its previous symbol.

    The first input is the symbol V, as in the authors' program (Icy22 B.3 says zero). There is no teacher forcing.
    """

    broadcasts = True

    def __init__(
        self, *sizes: *Sizes, cell: CellFactory, layers: int = 1, representation: Representation = SOFT
    ) -> None:
        super().__init__(*sizes)
        self.embed = MeaningEmbedding(self.space.attributes, self.space.values, self.hidden_size)
        self.feedback: SymbolFeedback | SampledFeedback = SymbolFeedback(self.symbols, self.hidden_size, representation)
        self.net = Recurrent(cell, self.hidden_size, layers)
        self.out = Linear(self.hidden_size, self.symbols)

    def forward(self, meanings: Meanings) -> MessageScores:
        start = self.embed(meanings)
        states = self.net.start(start)
        folded = self.feedback.fold(self.net.first)
        fed_back = self.feedback.first_symbol(start)
        scores: list[Tensor] = []
        for step in range(self.message_length):
            if scores:
                fed_back = self.feedback.seen(scores[-1], step - 1)
            states = self.net.step(apply_folded(fed_back, folded), states)
            scores.append(self.out(states[-1][0]))
        return time_last(scores)


class RNNSampling(RNNAutoReg):
    """Like RNNAutoReg, but it reads the token sampled from the scores. For DISCR only."""

    def __init__(
        self, *sizes: *Sizes, cell: CellFactory, layers: int = 1, representation: Representation = DISCRETE
    ) -> None:
        super().__init__(*sizes, cell=cell, layers=layers)
        self.feedback = SampledFeedback(self.symbols, self.hidden_size, representation)
