"""The two-level state of the hierarchical-unit network (HU-RNN; Perkins21 2.9; Icy22 3.3.2 and C.5)."""

from jaxtyping import Float
from torch import Tensor, nn

from .cells import State
from .kernels import cell_steps
from .layers import Linear

Stop = Float[Tensor, "*stack batch 1"] | bool  # one number per example, or a fixed boundary


def mix(old: State, new: State, s: Stop) -> State:
    """Return (1 - s) old + s new for every member of the state, such as h and c of an LSTM."""
    if isinstance(s, bool):
        return new if s else old
    return tuple(cell_steps.mix(a, b, s) for a, b in zip(old, new, strict=True))


def damp(state: State, s: Stop) -> State:
    """Return (1 - s) state."""
    if isinstance(s, bool):
        return tuple(x.new_zeros(x.shape) for x in state) if s else state
    return tuple(cell_steps.damp(x, s) for x in state)


class StopGate(nn.Module):
    """Stop gate s = sigmoid(a . h + b), a number per example: the degree to which the lower level finished a word."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.score = Linear(hidden_size, 1)

    def forward(self, lower: State, step: int) -> Stop:
        """Return s for the state of the lower level after a step, counted from 0."""
        return cell_steps.stop_gate(lower[0], self.score.weight, self.score.bias.unsqueeze(-1))


class WordEnds(nn.Module):
    """Fixed boundaries in place of a stop gate: s is True after each word and after the last token, otherwise False.

    Args:
        word_length: tokens per word, w.
        message_length: L.
    """

    def __init__(self, word_length: int, message_length: int) -> None:
        super().__init__()
        self.word_length, self.message_length = word_length, message_length

    def forward(self, lower: State, step: int) -> Stop:
        """Return whether a word ends at a step, counted from 0: the value s of a stop gate."""
        return (step + 1) % self.word_length == 0 or step + 1 == self.message_length
