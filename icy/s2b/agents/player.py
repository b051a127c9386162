"""Trained listeners at the table: an attention memory that plays step by step."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from icy.core.errors import IncompatibleError
from icy.s2b.players.base import Action, Decisions, Seat
from icy.s2b.players.listeners import Decider
from icy.s2b.turn import Seen

from .memory import MemoryListener
from .speaker import pick

Which = Bool[NDArray[np.bool_], " batch"]


class EpisodeMemory:
    """The games of each of B episodes so far: a stimulus and a message each.

    Args:
        batch: number of episodes.
        width: length of a stimulus.
        tokens: number of tokens in a message.
    """

    def __init__(self, batch: int, width: int, tokens: int) -> None:
        self.stimuli = torch.zeros(batch, 0, width)
        self.messages = torch.zeros(batch, 0, tokens, dtype=torch.long)
        self.known = torch.zeros(batch, 0, dtype=torch.bool)

    def forget(self, which: Which) -> None:
        """Forget the games of some episodes, which begin anew."""
        if which.any():
            self.known[torch.as_tensor(which)] = False
            some = self.known.any(0)
            self.stimuli, self.messages, self.known = (
                part[:, some] for part in (self.stimuli, self.messages, self.known)
            )

    def add(
        self,
        stimuli: Float[Tensor, "batch dimension"],
        messages: Int[Tensor, "batch token"],
        which: Which,
    ) -> None:
        """Remember a game of some of the episodes."""
        if which.any():
            self.stimuli = torch.cat([self.stimuli, stimuli[:, None]], 1)
            self.messages = torch.cat([self.messages, messages[:, None]], 1)
            self.known = torch.cat([self.known, torch.as_tensor(which)[:, None]], 1)


class MemoryPlayer(Decider):
    """Decides as an attention memory does that has seen the games of the episode so far.

    It plays games with any number of stimuli, as the memory scores each alike.

    Args:
        model: the memory.
        sampled: whether decisions are drawn; otherwise the likeliest.
    """

    def __init__(self, model: MemoryListener, sampled: bool = False) -> None:
        self.model, self.sampled = model.eval(), sampled

    def begin(self, seat: Seat) -> None:
        """Take a seat; the game must be of the shape that the memory was made for, and end with feedback."""
        super().begin(seat)
        settings, model = seat.settings, self.model
        shape = settings.width, settings.rounds * settings.length
        made, words = (model.dimensions, model.tokens), model.embedding.num_embeddings - 1
        if shape != made or settings.vocab_size > words:
            raise IncompatibleError(
                "This memory was made for stimuli of {} numbers, {} tokens a game and a vocabulary of {}; the game has "
                "{}, {} and {}.".format(*made, words, *shape, settings.vocab_size)
            )
        if not settings.feedback or settings.listener_messages:
            raise IncompatibleError("A memory needs games that end with feedback, and sends no messages.")
        self.memory = EpisodeMemory(seat.episodes, settings.width, model.tokens)

    @torch.no_grad()
    def decide(self, seen: Seen) -> Decisions:
        """Return decisions by what is remembered."""
        if not seen.may_decide.any():
            return np.zeros(self.seat.episodes, dtype=np.int64)
        logits = self._logits(torch.as_tensor(seen.stimulus))
        if not self.sampled:
            return np.asarray(logits.argmax(-1))
        uniform = torch.as_tensor(self.seat.streams.uniform("decide", (1,), self.steps)[:, 0])
        return np.asarray(pick(logits.softmax(-1), uniform))

    def acting(self, seen: Seen) -> Action:
        """Listen, decide, and remember what is shown at the end of a game; see Decider."""
        self.memory.forget(seen.fresh)
        action = super().acting(seen)
        self.memory.add(torch.as_tensor(seen.stimulus[:, 0]), torch.as_tensor(self.words), seen.feedback)
        return action

    def _logits(self, stimuli: Tensor) -> Tensor:
        model, memory, settings = self.model, self.memory, self.seat.settings
        stored = model.entries(memory.stimuli, memory.messages).transpose(1, 2)
        known = memory.known[:, None, None]
        words = torch.as_tensor(self.words)[:, None]
        return model.logits(stimuli[:, None], words, stored, known, settings.descriptive)[:, 0]
