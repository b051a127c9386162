"""Players that act step by step with trained attention memories: a listener and a speaker."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from icy.core.errors import IncompatibleError
from icy.s2b.players.interface import Action, Decisions, Meanings, Player, Seat, Sentences, Stimuli
from icy.s2b.players.listeners import Decider
from icy.s2b.turn import Seen

from .attention import MemoryListener
from .speaker import MemorySpeaker, pick

Which = Bool[NDArray[np.bool_], " batch"]


class EpisodeMemory:
    """The earlier games of B episodes, each with a stimulus and a message.

    Args:
        batch: number of episodes.
        width: length of a stimulus.
        tokens: number of tokens in a message.
    """

    def __init__(self, batch: int, width: int, tokens: int) -> None:
        self.stimuli = torch.zeros(batch, 0, width, dtype=torch.float32, device="cpu")
        self.messages = torch.zeros(batch, 0, tokens, dtype=torch.long, device="cpu")
        self.known = torch.zeros(batch, 0, dtype=torch.bool, device="cpu")

    def forget(self, which: Which) -> None:
        """Remove the games of the episodes in the mask `which`."""
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
        """Add a game to the episodes in the mask `which`."""
        if which.any():
            self.stimuli = torch.cat([self.stimuli, stimuli[:, None]], 1)
            self.messages = torch.cat([self.messages, messages[:, None]], 1)
            self.known = torch.cat([self.known, torch.as_tensor(which)[:, None]], 1)


class MemoryPlayer(Decider):
    """Listener that decides with an attention memory of the episode's earlier games.

    It can play games with any number of stimuli, because the memory scores each stimulus in the same way.

    Args:
        model: the attention memory.
        sampled: whether decisions are sampled; otherwise the most likely decisions are taken.
    """

    def __init__(self, model: MemoryListener, sampled: bool = False) -> None:
        self.model, self.sampled = model.eval(), sampled

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The game must have feedback, and the sizes of the memory's game."""
        super().begin(seat)
        settings, model = seat.settings, self.model
        shape = settings.width, settings.rounds * settings.length
        made, words = (model.dimensions, model.tokens), model.embedding.num_embeddings - 1
        if shape != made or settings.vocab_size > words:
            raise IncompatibleError(
                "This memory was created for stimuli of {} numbers, {} tokens per game and a vocabulary of {}; the "
                "game has {} numbers, {} tokens (rounds times length) and a vocabulary of {} (vocab_size).".format(
                    *made, words, *shape, settings.vocab_size
                )
            )
        if not settings.feedback or settings.listener_messages:
            raise IncompatibleError(
                "An attention memory needs games with feedback and without messages of the listener (feedback=True, "
                "listener_messages=False)."
            )
        self.memory = EpisodeMemory(seat.episodes, settings.width, model.tokens)

    @torch.no_grad()
    def decide(self, seen: Seen) -> Decisions:
        """Return the memory's decisions; see Decider."""
        if not seen.may_decide.any():
            return np.zeros(self.seat.episodes, dtype=np.int64)
        logits = self._logits(torch.as_tensor(seen.stimulus))
        if not self.sampled:
            return np.asarray(logits.argmax(-1))
        uniform = torch.as_tensor(self.seat.streams.uniform("decide", (1,), self.steps)[:, 0])
        return np.asarray(pick(logits.softmax(-1), uniform))

    def acting(self, seen: Seen) -> Action:
        """Record the message, decide, and store the target at the end of a game; see Decider."""
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


class TrainedSpeaker(Player):
    """Trained speaker that acts step by step.

    Args:
        network: the speaker.
        sampled: whether tokens and the dimensions of positions are sampled; otherwise the most likely are taken.
    """

    def __init__(self, network: MemorySpeaker, sampled: bool = False) -> None:
        self.network, self.sampled = network, sampled

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The game must have one round, and the speaker's length and vocabulary."""
        super().begin(seat)
        settings, network = seat.settings, self.network
        if (settings.vocab_size, settings.length) != (network.vocab, network.positions) or settings.rounds != 1:
            raise IncompatibleError(
                f"This speaker was trained for one round with {network.positions} tokens from a vocabulary of "
                f"{network.vocab}; the game has rounds={settings.rounds}, length={settings.length} and "
                f"vocab_size={settings.vocab_size}."
            )
        self.memory = EpisodeMemory(seat.episodes, settings.width, settings.length)
        self.dimensions = torch.zeros(seat.episodes, settings.length, dtype=torch.long, device="cpu")

    @torch.no_grad()
    def acting(self, seen: Seen) -> Action:
        """Send a message about the target, and store the target and the message."""
        if seen.fresh.any():
            self.memory.forget(seen.fresh)
            self.dimensions = torch.where(torch.as_tensor(seen.fresh)[:, None], self._dimensions(), self.dimensions)
        speaks = seen.may_speak & (seen.round == 0)
        if not speaks.any():
            return Action()
        target = torch.as_tensor(seen.stimulus[:, 0])
        chances = self._chances(target[:, None], slice(None))[:, :, 0]
        tokens = pick(chances, self._uniform("say")) if self.sampled else chances.argmax(-1)
        self.memory.add(target, tokens, speaks)
        return Action(message=(tokens.numpy() + 1) * speaks[:, None])

    @torch.no_grad()
    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Return the most likely message about each stimulus; see Player."""
        inputs = torch.as_tensor(np.asarray(stimuli, dtype=np.float32))[None]
        tokens = self._chances(inputs, slice(episode, episode + 1))[0].argmax(-1)
        return np.asarray(tokens.T.numpy() + 1)

    def _chances(self, stimuli: Tensor, rows: slice) -> Tensor:
        """Return the probabilities of the next tokens, [b, L, n, V], for stimuli [b, n, W]."""
        network, memory, dimensions = self.network, self.memory, self.dimensions[rows]
        inputs = network.see(stimuli, dimensions)
        there = memory.known[rows, None, :, None]
        said = (F.one_hot(memory.messages[rows].mT, network.vocab) * there).to(inputs.dtype)
        weights = inputs.new_zeros(*inputs.shape[:3], said.shape[2])
        if network.settings.memory:
            stored = network.see(memory.stimuli[rows], dimensions)
            weights = network.attend(inputs, stored, memory.known[rows, None, None, None])
        used = (said.sum(2, keepdim=True) > 0).to(inputs.dtype)
        return network.chances(weights @ said, used, weights.sum(-1), network.guess(inputs))

    def _dimensions(self) -> Tensor:
        if self.sampled:
            return self.network.draw_dimensions(self._uniform("dimensions"))
        return self.network.likeliest_dimensions(self.seat.episodes)

    def _uniform(self, name: str) -> Tensor:
        length = self.network.positions
        return torch.as_tensor(self.seat.streams.uniform(name, (length,), self.steps * length))
