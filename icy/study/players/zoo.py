"""Senders as players, which are trained on the cards shown so far."""

from collections.abc import Sequence
from typing import Any

import torch

from icy.config.settings import TrainingSettings
from icy.core.noise import counter_hash
from icy.core.registry import Entry
from icy.core.streams import stream_key
from icy.languages.language import LETTERS
from icy.models.creation import count_parameters
from icy.study.game.settings import Dataset
from icy.training.batches import MeaningPool
from icy.training.learners import Learner, make_learner, supervised_loss
from icy.training.probe_settings import ProbeSettings
from icy.training.task_models import make_model, representation_of

from .player import Item, StudyPlayer, StudySeat

CPU = torch.device("cpu")
BETWEEN_CHECKS = 25  # number of updates between checks for convergence


class ZooPlayer(StudyPlayer):
    """Player with a sender that is trained on the cards shown so far, in batches drawn uniformly from them.

    Its answers depend only on the sender's weights, also for cards that were shown.

    Args:
        entry: registry entry of the sender.
        pace: number of updates before each answer; with `per_card`, after each card.
        training: batch size, learning rate and other settings.
        per_card: whether the sender is trained after each card instead of before each answer.
        **model: hidden size, representation and options of the sender, as for `ProbeSettings.of_model`.
    """

    def __init__(
        self, entry: Entry, pace: int, training: TrainingSettings, per_card: bool = False, **model: Any
    ) -> None:
        self.entry, self.pace, self.training, self.per_card, self.model = entry, pace, training, per_card, model

    def begin(self, seat: StudySeat) -> None:
        """Initialize the sender's weights from the seed."""
        super().begin(seat)
        content = seat.content
        self.probe = self.model_settings(content)
        self.updates = 0
        self.known: list[int] = []  # meanings shown so far, in the order of first appearance
        self._messages = torch.zeros(content.space.size, content.length, dtype=torch.long, device="cpu")
        self._meanings = torch.from_numpy(content.space.meanings(range(content.space.size)))
        self._keys = {
            what: torch.tensor([stream_key(seat.seed, "zoo", what)], dtype=torch.int64, device="cpu")
            for what in ("cards", "noise")
        }
        sample = self._meanings[:2][None]
        model = make_model(self.probe, self.seat.seed, self.training)
        loss = supervised_loss(representation_of(self.probe, self.training), "sender")
        self._learner: Learner = make_learner([model], [self.seat.seed], loss, self.training, CPU, sample)

    def model_settings(self, content: Dataset) -> ProbeSettings:
        """Return the settings of the sender for a dataset."""
        return ProbeSettings.of_model(self.entry, content.space, content.vocab_size, content.word_length, **self.model)

    def parameters(self, content: Dataset) -> dict[str, int]:
        """Return the sender's number of parameters for a dataset, under each counting convention.

        Raises:
            IcyError: the sender cannot be created.
        """
        return count_parameters(make_model(self.model_settings(content), 0, self.training))

    def learn(self, item: Item, code: str) -> None:
        """Add a card to the training set."""
        meaning = item[0] * self.seat.content.values + item[1]
        self._messages[meaning] = torch.tensor(
            [LETTERS.index(letter) for letter in code], dtype=torch.int64, device="cpu"
        )
        if meaning not in self.known:
            self.known.append(meaning)
        if self.per_card:
            self.train(self.pace)

    def answer(self, item: Item) -> str:
        """Train on the cards shown so far, and return the sender's code for an item."""
        if not self.per_card:
            self.train(self.pace)
        return self.predict_codes([item[0] * self.seat.content.values + item[1]])[0]

    def train(self, updates: int) -> None:
        """Make updates of the sender on batches of the cards shown so far."""
        if not self.known or not updates:
            return
        pool = MeaningPool([self._meanings.new_tensor(sorted(self.known)).numpy()], CPU)
        batches = pool.draw(self._keys["cards"], self.updates, updates, self.training.batch_size)[0]
        noise = counter_hash(self._keys["noise"], torch.arange(self.updates, self.updates + updates, device="cpu"))
        self._learner.train(self._meanings[batches][:, None], self._messages[batches][:, None], noise[:, None])
        self.updates += updates

    def predict_codes(self, meanings: Sequence[int]) -> list[str]:
        """Return the sender's codes: the most probable letter at every position, except the start symbol."""
        content = self.seat.content
        scores = self._learner.scores(self._meanings[list(meanings)][None])[0][..., : content.vocab_size]
        return ["".join(content.alphabet[token] for token in message) for message in scores.argmax(-1).tolist()]

    def exact(self) -> bool:
        """Return whether the sender predicts the code of every card correctly."""
        right = self._learner.right(self._meanings[self.known][None], self._messages[self.known][None])
        return int(right.sum()) == self._messages[self.known].numel()

    def converge(self, most: int) -> bool:
        """Train until the sender predicts all codes, or has made `most` updates; return whether it predicts all."""
        while not self.exact() and self.updates < most:
            self.train(min(BETWEEN_CHECKS, most - self.updates))
        return self.exact()
