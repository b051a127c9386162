"""Speakers without learning.

Most of them are privileged: they are shown the meanings that learning players have to infer, and say them in a language
of known composition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError
from icy.core.registry import SPEAKER
from icy.s2b.game import Seen
from icy.s2b.stimuli import meaning_numbers
from icy.s2b.streams import Draws, Wholes

from .base import Action, Player, Seat
from .digital import check_digital, digits


class LanguageSpeaker(Player):
    """Says the target's meaning in a language; with fewer tokens than it needs, over several rounds.

    Where a message is too short for a sentence, round r says the tokens from r on, so that N rounds of one token say a
    sentence of N.
    """

    privileged = True

    def sentence_length(self) -> int:
        """Tokens that a meaning needs."""
        return self.seat.settings.dimensions

    def say(self, meanings: Wholes, rows: NDArray[Any]) -> Wholes:
        """The sentences for meanings [n, N] of some episodes [n]: [n, sentence length]."""
        raise NotImplementedError

    def begin(self, seat: Seat) -> None:
        """See Player; the channel must be wide enough for the language."""
        super().begin(seat)
        settings, needed = seat.settings, self.sentence_length()
        if settings.reach < needed:
            raise IncompatibleError(
                f"This speaker needs messages of {needed} tokens (length), or as many rounds; the game has "
                f"{settings.rounds} round{'s' * (settings.rounds > 1)} of {settings.length}."
            )

    def acting(self, seen: Seen) -> Action:
        """The target's sentence, wherever a message is legal, but for the end of a game."""
        meanings = self.game.latents(SPEAKER)[:, 0]
        sentences = self.say(meanings, np.arange(len(meanings)))
        length = self.seat.settings.length
        if sentences.shape[1] < length:
            sentences = np.pad(sentences, [(0, 0), (0, length - sentences.shape[1])])
        begin = np.minimum(seen.round, sentences.shape[1] - length)[:, None]
        said = np.take_along_axis(sentences, begin + np.arange(length), axis=1)
        speaks = seen.may_speak & (seen.round <= self.seat.settings.rounds)
        return Action(message=said * speaks[:, None])

    def utter(self, stimuli: NDArray[Any], meanings: Wholes, episode: int) -> Wholes:
        """See Player: the whole sentences."""
        return self.say(meanings, np.full(len(meanings), episode))

    def needs_tokens(self, count: int, why: str) -> None:
        """Refuse a vocabulary that is too small.

        Raises:
            IncompatibleError: with the size that is needed.
        """
        if self.seat.settings.vocab_size < count:
            raise IncompatibleError(
                f"This speaker needs {why}: a vocabulary of {count} tokens (vocab_size), and the game has "
                f"{self.seat.settings.vocab_size}."
            )


class PosdisSpeaker(LanguageSpeaker):
    """One position per dimension: the token at position i is the value of dimension i."""

    def begin(self, seat: Seat) -> None:
        """See Player; there must be a token per value."""
        super().begin(seat)
        self.needs_tokens(seat.settings.most, "a token per value")

    def say(self, meanings: Wholes, rows: NDArray[Any]) -> Wholes:
        """Value v is token v + 1."""
        return meanings + 1


class BosdisSpeaker(LanguageSpeaker):
    """A bag of symbols: every value of every dimension has a token of its own, in an order that means nothing."""

    def begin(self, seat: Seat) -> None:
        """See Player; there must be a token per value of every dimension."""
        super().begin(seat)
        self.needs_tokens(seat.settings.most * seat.settings.dimensions, "a token per value of every dimension")

    def say(self, meanings: Wholes, rows: NDArray[Any]) -> Wholes:
        """The tokens in an order that hangs on the meaning, the same whenever it is said."""
        settings = self.seat.settings
        tokens = meanings + 1 + settings.most * np.arange(settings.dimensions)
        place = meaning_numbers(meanings, settings.most)
        orders = Draws.of_seeds(np.arange(settings.most**settings.dimensions)).order("bag", settings.dimensions)
        return np.take_along_axis(tokens, orders[place], axis=1)


class HolisticSpeaker(LanguageSpeaker):
    """Every meaning has a sentence of its own, drawn anew for every episode; its parts mean nothing."""

    def sentence_length(self) -> int:
        """As few tokens as tell all meanings apart."""
        settings = self.seat.settings
        length = 1
        while settings.vocab_size**length < settings.most**settings.dimensions:
            length += 1
        return length

    def begin(self, seat: Seat) -> None:
        """See Player; there must be two tokens."""
        self.seat = seat
        self.needs_tokens(2, "at least two tokens")
        super().begin(seat)
        self._played: Wholes | None = None  # which episodes the sentences below are of
        self._drawn: Wholes = np.zeros((0, 0), dtype=np.int64)
        self._tokens = 2  # as few as make enough sentences of that length
        while self._tokens ** self.sentence_length() < seat.settings.most**seat.settings.dimensions:
            self._tokens += 1

    def say(self, meanings: Wholes, rows: NDArray[Any]) -> Wholes:
        """The sentence of each meaning in its episode."""
        settings, length = self.seat.settings, self.sentence_length()
        place = meaning_numbers(meanings, settings.most)
        number: Wholes = self._sentences()[rows, place]
        return number[:, None] // self._tokens ** np.arange(length) % self._tokens + 1

    def _sentences(self) -> Wholes:
        """The number of every meaning's sentence, in the episodes that are played now, [B, M]."""
        played = self.game.cpu(self.game.episode_number)
        if self._played is None or not np.array_equal(played, self._played):
            count = self._tokens ** self.sentence_length()
            self._played, self._drawn = played.copy(), self.seat.draws.nth(played).order("sentences", count)
        return self._drawn


class DigitalSpeaker(Player):
    """Says in which of V equal parts of [-1, 1] each number of its stimulus lies: a code that ignores the episode."""

    def begin(self, seat: Seat) -> None:
        """See Player."""
        super().begin(seat)
        check_digital(seat.settings)

    def acting(self, seen: Seen) -> Action:
        """The parts, one per position."""
        settings = self.seat.settings
        said = np.zeros((self.seat.episodes, settings.length), dtype=np.int64)
        said[:, : settings.dimensions] = digits(seen.stimulus[:, 0], settings.vocab_size)
        return Action(message=said * seen.may_speak[:, None])

    def utter(self, stimuli: NDArray[Any], meanings: Wholes, episode: int) -> Wholes:
        """See Player."""
        return digits(stimuli, self.seat.settings.vocab_size)


class RandomSpeaker(Player):
    """Says random tokens."""

    def acting(self, seen: Seen) -> Action:
        """Uniform in 0..V, so that sentences may end early."""
        settings = self.seat.settings
        said = self.seat.draws.integers(
            "say", settings.vocab_size + 1, (settings.length,), self.steps * settings.length
        )
        return Action(message=said * seen.may_speak[:, None])

    def utter(self, stimuli: NDArray[Any], meanings: Wholes, episode: int) -> Wholes:
        """See Player."""
        settings = self.seat.settings
        draws = self.seat.draws.rows(np.array([episode])).within("utter")
        said: Wholes = draws.integers("say", settings.vocab_size + 1, (len(stimuli), settings.length))[0]
        return said
