"""Transcripts: text that describes an episode step by step."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8
from numpy.typing import ArrayLike, NDArray

from icy.core.registry import LISTENER, PLAYERS, SPEAKER
from icy.core.text import counted
from icy.languages.meanings import MeaningSpace

from .channel import regular
from .game import BatchedGame, Turn
from .settings import GameSettings

PHASES = ("support", "query")
SIZE, LINES = (800, 360), 14  # width and height of a picture, and the number of lines that fit


class Transcript:
    """A transcript of a game's first episode: the stimuli, messages and decisions of the players.

    Args:
        game: the game.
        views: the players to follow.
        latents: whether to show the meanings of stimuli, which no player sees.
    """

    def __init__(self, game: BatchedGame, views: Sequence[str] = PLAYERS, latents: bool = True) -> None:
        self.game, self.views, self.latents = game, views, latents
        self.lines: list[str] = []  # lines of the last step
        self.episode_lines: list[str] = []  # lines of the episode
        self.new_game = False

    def begin(self, turn: Turn) -> None:
        """Write the first lines of an episode."""
        sizes = MeaningSpace.of_sizes(self.game.sizes[0].tolist())
        seed, games = int(self.game.seeds[0]), int(self.game.games[0])
        space = f" in the space {sizes}" if self.latents else ""
        self.lines = [f"Episode of seed {seed}: {counted(games, 'game')}{space}."]
        self._game(turn)
        self.episode_lines = list(self.lines)

    def add(self, before: Turn, turn: Turn, said: ArrayLike | None, decided: ArrayLike | None) -> None:
        """Write the lines of a step: the players' actions, and their outcome."""
        if bool(turn.speaker.fresh[0]):
            self.begin(turn)
            return
        self.lines, self.new_game = [], False
        if SPEAKER in self.views and said is not None and bool(before.speaker.may_speak[0]):
            self.lines.append(f"  the speaker says       {tokens(regular(np.asarray(said))[0])}")
        if bool(turn.decided[0]):
            self._decided(turn, 0 if decided is None else int(np.asarray(decided)[0]))
        elif LISTENER in self.views and 0 < int(turn.listener.round[0]) <= self.game.settings.rounds:
            self.lines.append(f"  the listener hears     {tokens(turn.listener.message[0])}")
        if bool(turn.done[0]):
            scores = self.game.scores()
            self.lines.append(
                f"The episode is over: {100 * scores.support[0]:.0f} % right in the support, "
                f"{100 * scores.zsct[0]:.0f} % in the query."
            )
        elif int(turn.listener.round[0]) == 0 and int(before.listener.round[0]) != 0:
            self._game(turn)
        self.episode_lines += self.lines

    def text(self) -> str:
        """Return the lines of the last step."""
        return "\n".join(self.lines)

    def _game(self, turn: Turn) -> None:
        self.new_game = True
        number, games = int(self.game.game_number[0]) + 1, int(self.game.games[0])
        self.lines.append(f"Game {number} of {games}, {PHASES[int(turn.speaker.query[0])]}")
        for player, seen in ((SPEAKER, turn.speaker), (LISTENER, turn.listener)):
            if player not in self.views:
                continue
            shown = stimuli(seen.stimulus[0], self.game.settings)
            meanings = self.game.latents(player)[0, : len(seen.stimulus[0])]
            means = "   meaning " + " ".join(f"({','.join(map(str, m))})" for m in meanings.tolist())
            self.lines.append(f"  {f'the {player} sees':<22} {shown}{means if self.latents else ''}")

    def _decided(self, turn: Turn, decision: int) -> None:
        right = "right" if bool(turn.correct[0]) else "wrong"
        # Without feedback the next game has begun, except at the end of the episode, so the right answer is unknown
        # here.
        if right == "wrong" and (self.game.settings.feedback or bool(turn.done[0])):
            right = f"wrong, it was {answer(int(self.game.answer[0]), self.game.settings)}"
        said = answer(decision, self.game.settings)
        self.lines.append(f"  the listener decides   {said}: {right}, reward {float(turn.reward[0]):+g}")
        if self.game.settings.feedback and LISTENER in self.views:
            self.lines.append(f"  the listener is shown  {stimuli(turn.listener.stimulus[0], self.game.settings)}")


def stimuli(shown: ArrayLike, settings: GameSettings, form: str = "+.2f") -> str:
    """Format stimuli [slots, W]: numbers in brackets, with the format `form`, or the bits of one-hot blocks."""
    if settings.representation == "ohe":
        blocks = np.asarray(shown).reshape(-1, settings.dimensions, settings.most).astype(int)
        return " ".join("[" + " ".join("".join(map(str, b)) for b in one.tolist()) + "]" for one in blocks)
    return " ".join("[" + " ".join(format(x, form) for x in one) + "]" for one in np.asarray(shown).tolist())


def tokens(message: ArrayLike) -> str:
    """Format a message as tokens separated by spaces."""
    return " ".join(map(str, np.asarray(message).tolist()))


def answer(decision: int, settings: GameSettings) -> str:
    """Describe a decision of the listener in words."""
    if settings.descriptive and settings.slots == 1:
        return ("the same meaning", "another meaning")[decision] if decision in (0, 1) else str(decision)
    return "none of them" if decision == settings.slots else f"stimulus {decision}"


def picture(lines: Sequence[str]) -> UInt8[NDArray[np.uint8], "height width colour=3"]:
    """Draw the last lines as a picture of a fixed size, [height, width, 3]."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", SIZE, "white")
    ImageDraw.Draw(image).multiline_text(
        (12, 12), "\n".join(lines[-LINES:]), "black", ImageFont.load_default(14), spacing=8
    )
    return np.asarray(image)
