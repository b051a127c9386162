"""Senders of icy as players: trained on the cards shown so far (spycodes-facts 18)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from icy.config.settings import TrainingSettings
from icy.core.noise import counter_hash
from icy.core.registry import Entry
from icy.core.streams import stream_key
from icy.languages.language import LETTERS
from icy.models.creation import count_parameters
from icy.study.game.datasets import Dataset
from icy.training.batches import MeaningPool
from icy.training.engine import make_model, representation_of
from icy.training.learners import Learner, make_learner, supervised_loss
from icy.training.tasks import Task

from .base import Item, Seat, StudyPlayer

CPU = torch.device("cpu")
BETWEEN_CHECKS = 25  # updates, while it is trained to the end


@dataclass(frozen=True)
class ZooSettings:
    """How a sender learns in a game.

    Attributes:
        hidden: hidden size, E.
        representation: "soft", "gumb" or "discr".
        updates: per item that is asked, or per card that is shown.
        per_card: whether it learns as soon as a card is shown, and not before an answer only.
        training: batch size, learning rate and so on.
        options: further arguments of the sender.
    """

    hidden: int = 128
    representation: str = "soft"
    updates: int = 20
    per_card: bool = False
    training: TrainingSettings = field(default_factory=lambda: TrainingSettings(batch_size=16))
    options: Mapping[str, Any] = field(default_factory=dict)


class ZooPlayer(StudyPlayer):
    """A sender, trained on the cards that it was shown; a batch is drawn uniformly from these.

    It is asked for cards too: it has no memory but its weights.

    Args:
        entry: of the sender.
        settings: how it learns.
    """

    def __init__(self, entry: Entry, settings: ZooSettings | None = None) -> None:
        self.entry, self.settings = entry, settings or ZooSettings()

    def begin(self, seat: Seat) -> None:
        """Take a seat, with the initial weights of its seed."""
        super().begin(seat)
        content = seat.content
        self.task = self._task(content)
        self.updates = 0
        self.known: list[int] = []  # meanings, in the order of their first showing
        self._messages = torch.zeros(content.space.size, content.length, dtype=torch.long, device="cpu")
        self._meanings = torch.from_numpy(content.space.meanings(range(content.space.size)))
        self._keys = {
            what: torch.tensor([stream_key(seat.seed, "zoo", what)], dtype=torch.int64, device="cpu")
            for what in ("cards", "noise")
        }
        self._learner = self._new_learner()

    def _new_learner(self) -> Learner:
        training = self.settings.training
        sample = self._meanings[:2][None]
        model = make_model(self.task, self.seat.seed, training)
        loss = supervised_loss(representation_of(self.task, training), "sender")
        return make_learner([model], [self.seat.seed], loss, training, CPU, sample)

    def _task(self, content: Dataset) -> Task:
        chosen = self.settings
        sizes = (content.space, content.vocab_size, content.word_length, chosen.hidden)
        return Task(self.entry, *sizes, chosen.representation, chosen.options)

    def parameters(self, content: Dataset) -> dict[str, int]:
        """Return the numbers of parameters of the sender for a dataset, by convention.

        Raises:
            IcyError: it cannot be made.
        """
        return count_parameters(make_model(self._task(content), 0, self.settings.training))

    def learn(self, item: Item, code: str) -> None:
        """Add a card to those that it learns from."""
        meaning = item[0] * self.seat.content.values + item[1]
        self._messages[meaning] = torch.tensor(
            [LETTERS.index(letter) for letter in code], dtype=torch.int64, device="cpu"
        )
        if meaning not in self.known:
            self.known.append(meaning)
        if self.settings.per_card:
            self.train(self.settings.updates)

    def answer(self, item: Item) -> str:
        """Learn from the cards shown so far, and return what the sender says."""
        if not self.settings.per_card:
            self.train(self.settings.updates)
        return self.says([item[0] * self.seat.content.values + item[1]])[0]

    def train(self, updates: int) -> None:
        """Update the sender on batches of the cards shown so far."""
        if not self.known or not updates:
            return
        pool = MeaningPool([self._meanings.new_tensor(sorted(self.known)).numpy()], CPU)
        drawn = pool.draw(self._keys["cards"], self.updates, updates, self.settings.training.batch_size)[0]
        noise = counter_hash(self._keys["noise"], torch.arange(self.updates, self.updates + updates, device="cpu"))
        self._learner.train(self._meanings[drawn][:, None], self._messages[drawn][:, None], noise[:, None])
        self.updates += updates

    def says(self, meanings: Sequence[int]) -> list[str]:
        """Return the codes of some meanings: at every position the most probable letter, never the start symbol."""
        content = self.seat.content
        scores = self._learner.scores(self._meanings[list(meanings)][None])[0][..., : content.vocab_size]
        return ["".join(content.alphabet[token] for token in message) for message in scores.argmax(-1).tolist()]

    def exact(self) -> bool:
        """Return whether it says the code of every card that it was shown."""
        right = self._learner.right(self._meanings[self.known][None], self._messages[self.known][None])
        return int(right.sum()) == self._messages[self.known].numel()

    def converge(self, most: int) -> bool:
        """Train until all cards are exact, or so many updates were made; return whether they are."""
        while not self.exact() and self.updates < most:
            self.train(min(BETWEEN_CHECKS, most - self.updates))
        return self.exact()
