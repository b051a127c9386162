"""Feed-forward senders (Perkins21 table 13; Icy22 appendix B)."""

from icy.models.base import Meanings, MessageScores, Sender, Sizes
from icy.models.kernels.cell_steps import tanh
from icy.models.layers import Linear, flat_one_hot


class FC1L(Sender):
    """One linear layer from the one-hot meaning to every score."""

    broadcasts = True

    def __init__(self, *sizes: *Sizes) -> None:
        super().__init__(*sizes)
        self.out = Linear(self.space.attributes * self.space.values, self.message_length * self.symbols)

    def forward(self, meanings: Meanings) -> MessageScores:
        return self.shaped(self.out(flat_one_hot(meanings, self.space.values, self.out.weight.dtype)))


class FC2L(Sender):
    """Two linear layers with a tanh between."""

    broadcasts = True

    def __init__(self, *sizes: *Sizes) -> None:
        super().__init__(*sizes)
        self.hidden = Linear(self.space.attributes * self.space.values, self.hidden_size)
        self.out = Linear(self.hidden_size, self.message_length * self.symbols)

    def forward(self, meanings: Meanings) -> MessageScores:
        one_hot = flat_one_hot(meanings, self.space.values, self.hidden.weight.dtype)
        return self.shaped(self.out(tanh(self.hidden(one_hot))))
