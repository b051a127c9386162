"""Speakers that do not learn.

Most of them are privileged: they know the meanings, which other players must infer, and express them in a language of
known structure.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int64, Shaped
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError
from icy.core.registry import SPEAKER
from icy.core.text import counted
from icy.s2b.episode_streams import EpisodeStreams, Wholes
from icy.s2b.game import Seen
from icy.s2b.settings import GameSettings

from .interface import Action, Meanings, Player, Seat, Sentences, Stimuli


class LanguageSpeaker(Player):
    """Base class of speakers that express the target's meaning in a language; a subclass implements `say`.

    If a message is too short for a sentence, the message of round r starts at token r of the sentence. For example, N
    rounds with one token each send a sentence of N tokens.
    """

    privileged = True

    def sentence_length(self) -> int:
        """Return the number of tokens in a sentence."""
        return self.seat.settings.dimensions

    def say(self, meanings: Meanings, rows: Shaped[NDArray[Any], " stimulus"]) -> Sentences:
        """Return the sentences for meanings [n, N] in the episodes `rows` [n], [n, sentence length]."""
        raise NotImplementedError

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The messages of a game must have enough tokens for a sentence."""
        super().begin(seat)
        settings, needed = seat.settings, self.sentence_length()
        if settings.reach < needed:
            raise IncompatibleError(
                f"This speaker needs {counted(needed, 'token')} per game: raise length or the number of rounds. "
                f"The game has {counted(settings.rounds, 'round')} of length {settings.length}."
            )

    def acting(self, seen: Seen) -> Action:
        """Send the target's sentence at every step where a message is legal, except at the end of a game."""
        meanings = self.game.latents(SPEAKER)[:, 0]
        sentences = self.say(meanings, np.arange(len(meanings)))
        length = self.seat.settings.length
        if sentences.shape[1] < length:
            sentences = np.pad(sentences, [(0, 0), (0, length - sentences.shape[1])])
        begin = np.minimum(seen.round, sentences.shape[1] - length)[:, None]
        said = np.take_along_axis(sentences, begin + np.arange(length), axis=1)
        speaks = seen.may_speak & (seen.round <= self.seat.settings.rounds)
        return Action(message=said * speaks[:, None])

    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Return the sentences for meanings; see Player."""
        return self.say(meanings, np.full(len(meanings), episode))

    def needs_tokens(self, count: int, why: str) -> None:
        """Check that the vocabulary is large enough.

        Raises:
            IncompatibleError: the vocabulary has fewer than `count` tokens.
        """
        if self.seat.settings.vocab_size < count:
            raise IncompatibleError(
                f"This speaker needs {why}: a vocabulary of {counted(count, 'token')} (vocab_size). The game has "
                f"{self.seat.settings.vocab_size}."
            )


class PosdisSpeaker(LanguageSpeaker):
    """Sends one token per dimension: the token at position i is the value of dimension i."""

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The vocabulary must have a token per value."""
        super().begin(seat)
        self.needs_tokens(seat.settings.most, "a token per value")

    def say(self, meanings: Meanings, rows: Shaped[NDArray[Any], " stimulus"]) -> Sentences:
        """Return token v + 1 for value v."""
        return meanings + 1


class BosdisSpeaker(LanguageSpeaker):
    """Sends a bag of symbols: every value of every dimension has its own token, and their order is arbitrary."""

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The vocabulary must have a token per value of every dimension."""
        super().begin(seat)
        self.needs_tokens(seat.settings.most * seat.settings.dimensions, "a token per value of every dimension")

    def say(self, meanings: Meanings, rows: Shaped[NDArray[Any], " stimulus"]) -> Sentences:
        """Return the tokens in an arbitrary order that is fixed for each meaning."""
        settings = self.seat.settings
        tokens = meanings + 1 + settings.most * np.arange(settings.dimensions)
        place = settings.space.index(meanings)
        streams = EpisodeStreams.of_seeds(np.arange(settings.space.size))
        return np.take_along_axis(tokens, streams.order("bag", settings.dimensions)[place], axis=1)


class HolisticSpeaker(LanguageSpeaker):
    """Sends a different random sentence for every meaning in every episode. Parts of a sentence have no meaning."""

    def sentence_length(self) -> int:
        """Return the smallest length with enough sentences for all meanings."""
        settings = self.seat.settings
        length = 1
        while settings.vocab_size**length < settings.space.size:
            length += 1
        return length

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The vocabulary must have at least two tokens."""
        self.seat = seat
        self.needs_tokens(2, "at least two tokens")
        super().begin(seat)
        self._episode: Wholes | None = None  # numbers of the episodes that the sentences below are for
        self._numbers: Wholes = np.zeros((0, 0), dtype=np.int64)
        self._tokens = 2  # the smallest number of different tokens that gives enough sentences of this length
        while self._tokens ** self.sentence_length() < seat.settings.space.size:
            self._tokens += 1

    def say(self, meanings: Meanings, rows: Shaped[NDArray[Any], " stimulus"]) -> Sentences:
        """Return the sentence of each meaning in its episode."""
        settings, length = self.seat.settings, self.sentence_length()
        place = settings.space.index(meanings)
        number: Wholes = self._sentences()[rows, place]
        return number[:, None] // self._tokens ** np.arange(length) % self._tokens + 1

    def _sentences(self) -> Wholes:
        """Return the number of every meaning's sentence in the current episodes, [B, M]."""
        episode = self.game.cpu(self.game.episode_number)
        if self._episode is None or not np.array_equal(episode, self._episode):
            count = self._tokens ** self.sentence_length()
            self._episode, self._numbers = episode.copy(), self.seat.streams.nth(episode).order("sentences", count)
        return self._numbers


class DigitalSpeaker(Player):
    """Sends, for each number of the target, the index of its bin among V equal bins of [-1, 1] (the digital code)."""

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. `check_digital` lists the requirements."""
        super().begin(seat)
        check_digital(seat.settings)

    def acting(self, seen: Seen) -> Action:
        """Send the indices of the bins, one per position."""
        settings = self.seat.settings
        said = np.zeros((self.seat.episodes, settings.length), dtype=np.int64)
        said[:, : settings.dimensions] = digits(seen.stimulus[:, 0], settings.vocab_size)
        return Action(message=said * seen.may_speak[:, None])

    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Return the indices of the bins for each stimulus; see Player."""
        return digits(stimuli, self.seat.settings.vocab_size)


def check_digital(settings: GameSettings) -> None:
    """Check that the digital players can play a game.

    Raises:
        IncompatibleError: stimuli are not continuous, or messages have fewer tokens than dimensions.
    """
    if settings.representation != "scs" or settings.length < settings.dimensions:
        raise IncompatibleError(
            "The digital players need continuous stimuli (scs) and one token per dimension (length)."
        )


def digits(stimuli: Float[NDArray[Any], "*lead dimension"], vocab_size: int) -> Int64[Wholes, "*lead dimension"]:
    """Return the index of each number's bin among V equal bins of [-1, 1], counted from 1."""
    return np.asarray(np.clip(np.floor((stimuli + 1) / 2 * vocab_size), 0, vocab_size - 1).astype(np.int64) + 1)


class RandomSpeaker(Player):
    """Sends random tokens."""

    def acting(self, seen: Seen) -> Action:
        """Send tokens drawn uniformly from 0..V, so sentences may end early."""
        settings = self.seat.settings
        said = self.seat.streams.integers(
            "say", settings.vocab_size + 1, (settings.length,), self.steps * settings.length
        )
        return Action(message=said * seen.may_speak[:, None])

    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Return random tokens, independent of the tokens of `acting`."""
        settings = self.seat.settings
        streams = self.seat.streams.rows(np.array([episode])).within("utter")
        return np.asarray(streams.integers("say", settings.vocab_size + 1, (len(stimuli), settings.length))[0])
