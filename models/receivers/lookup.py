"""Receivers that store examples: a hash table, and nearest neighbours (Perkins21 table 15)."""

import torch
from jaxtyping import Bool, Int, Integer, Shaped
from torch import Tensor

from icy.core.representations import one_hot
from icy.languages.meanings import MeaningSpace
from icy.models.base import MeaningScores, MemoryModel, Receiver
from icy.models.layers import Message

Tokens = Integer[Tensor, "batch length"]

QUERIES_AT_ONCE = 2**26  # elements of a query-by-support table of distances, so that 10^5 messages fit in memory


class _Remembering(Receiver, MemoryModel):
    """A store of distinct messages in the order of their first occurrence, each with its first meaning."""

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int = 0) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.known: dict[bytes, int] = {}
        self._messages: list[Tensor] = []
        self._meanings: list[Tensor] = []

    def observe(self, inputs: Message, targets: Integer[Tensor, "batch attr"]) -> None:
        inputs = self.tokens(inputs)
        keys = self._keys(inputs)
        fresh = []
        for i, key in enumerate(keys):
            if key not in self.known:
                self.known[key] = len(self.known)
                fresh.append(i)
        if fresh:
            self._messages.append(inputs[fresh])
            self._meanings.append(targets[fresh].long())

    def stored(self) -> dict[str, Shaped[Tensor, "..."]]:
        return dict(zip(("messages", "meanings"), self.memory(), strict=True)) if self.known else {}

    def restore(self, stored: dict[str, Shaped[Tensor, "..."]]) -> None:
        if stored:
            self.observe(stored["messages"], stored["meanings"])

    def get_extra_state(self) -> dict[str, Shaped[Tensor, "..."]]:
        """Return the store for `state_dict`."""
        return self.stored()

    def set_extra_state(self, state: dict[str, Shaped[Tensor, "..."]]) -> None:
        """Replace the store by the store in a `state_dict`."""
        self.known, self._messages, self._meanings = {}, [], []
        self.restore(state)

    @staticmethod
    def tokens(message: Message) -> Tokens:
        """Return a message as tokens: tokens unchanged, or the symbols with the largest weights."""
        return message.argmax(-1) if message.is_floating_point() else message

    @staticmethod
    def _keys(tokens: Tokens) -> list[bytes]:
        rows = tokens.to("cpu", torch.int32).contiguous().numpy()
        return [row.tobytes() for row in rows]

    def memory(self) -> tuple[Integer[Tensor, "stored length"], Int[Tensor, "stored attr"]]:
        """Return the stored messages [stored, L] and meanings [stored, A]."""
        self._messages, self._meanings = [torch.cat(self._messages)], [torch.cat(self._meanings)]
        return self._messages[0], self._meanings[0]

    def answer(self, stored: Int[Tensor, " batch"], found: Bool[Tensor, " batch"]) -> MeaningScores:
        """Return the scores [batch, attr, value] of stored examples; zero where `found` is False."""
        _, meanings = self.memory()
        return one_hot(meanings[stored], self.space.values) * found[:, None, None]

    def nothing(self, batch: int, device: torch.device) -> MeaningScores:
        """Return the scores before anything is stored."""
        return torch.zeros(batch, self.space.attributes, self.space.values, device=device, dtype=torch.float32)


class Hashtable(_Remembering):
    """A table of the first meaning of each message; a new message has scores of zero."""

    def forward(self, message: Message) -> MeaningScores:
        tokens = self.tokens(message)
        if not self.known:
            return self.nothing(len(tokens), tokens.device)
        places = torch.tensor(
            [self.known.get(key, -1) for key in self._keys(tokens)], dtype=torch.long, device=tokens.device
        )
        return self.answer(places.clamp(min=0), places >= 0)


class KNN(_Remembering):
    """Nearest neighbour: the meaning of the nearest message so far by Hamming distance; the first of several."""

    def forward(self, message: Message) -> MeaningScores:
        tokens = self.tokens(message)
        if not self.known:
            return self.nothing(len(tokens), tokens.device)
        support, _ = self.memory()
        stored = one_hot(support, self.symbols).flatten(1)
        step = max(1, QUERIES_AT_ONCE // len(stored))
        queries = one_hot(tokens, self.symbols).flatten(1).split(step)
        # float32 counts equal tokens exactly, and argmax on the CPU returns the first of equal counts.
        nearest = torch.cat([(query @ stored.T).argmax(1) for query in queries])
        return self.answer(nearest, torch.ones_like(nearest, dtype=torch.bool))
