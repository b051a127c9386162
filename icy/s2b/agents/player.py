"""Trained listeners at the table: an attention memory that plays step by step."""

from typing import Any

import numpy as np
import torch

from icy.core.errors import IncompatibleError
from icy.s2b.players.base import Decisions, Seat
from icy.s2b.players.listeners import Decider
from icy.s2b.turn import Seen

from .memory import MemoryListener


class MemoryPlayer(Decider):
    """Decides as an attention memory does that has seen the games of the episode so far.

    Args:
        model: the memory; in evaluation, its likeliest decision is taken.
    """

    def __init__(self, model: MemoryListener) -> None:
        self.model = model.eval()

    def begin(self, seat: Seat) -> None:
        """Take a seat; the game must be of the shape that the memory was made for, and end with feedback."""
        super().begin(seat)
        settings, model = seat.settings, self.model
        shape = settings.width, settings.rounds * settings.length, settings.slots, settings.descriptive
        made = model.dimensions, model.tokens, model.slots, model.descriptive
        if shape != made or settings.vocab_size >= model.embedding.num_embeddings:
            raise IncompatibleError(
                "This memory was made for stimuli of {} numbers, {} tokens a game, {} slots{}, and a vocabulary of {}; "
                "the game has {}, {}, {}{} and {}.".format(
                    *_spelt(made), model.embedding.num_embeddings - 1, *_spelt(shape), settings.vocab_size
                )
            )
        if not settings.feedback or settings.listener_messages:
            raise IncompatibleError("A memory needs games that end with feedback, and sends no messages.")
        self.shown = torch.zeros(seat.episodes, 0, settings.width)
        self.heard = torch.zeros(seat.episodes, 0, model.tokens, dtype=torch.long)
        self.there = torch.zeros(seat.episodes, 0, dtype=torch.bool)

    @torch.no_grad()
    def decide(self, seen: Seen) -> Decisions:
        """Remember what is shown at the end of a game, and return the likeliest decision."""
        if not seen.may_decide.any():
            return np.zeros(self.seat.episodes, dtype=np.int64)
        stored = self.model.entries(self.shown, self.heard).transpose(1, 2)
        stimuli, words = torch.as_tensor(seen.stimulus).unsqueeze(1), torch.as_tensor(self.words).unsqueeze(1)
        logits = self.model.logits(stimuli, words, stored, self.there[:, None, None])
        found: Decisions = logits[:, 0].argmax(-1).numpy()
        return found

    def acting(self, seen: Seen) -> Any:
        """Listen, decide, and remember; see Decider."""
        if seen.fresh.any():
            self.there[torch.as_tensor(seen.fresh)] = False
            used = self.there.any(0)
            self.shown, self.heard, self.there = (x[:, used] for x in (self.shown, self.heard, self.there))
        action = super().acting(seen)
        if seen.feedback.any():
            self.shown = torch.cat([self.shown, torch.as_tensor(seen.stimulus[:, :1])], 1)
            self.heard = torch.cat([self.heard, torch.as_tensor(self.words).unsqueeze(1)], 1)
            self.there = torch.cat([self.there, torch.as_tensor(seen.feedback).unsqueeze(1)], 1)
        return action


def _spelt(shape: tuple[int, int, int, bool]) -> tuple[int, int, int, str]:
    return *shape[:3], ' and "none"' if shape[3] else ""
