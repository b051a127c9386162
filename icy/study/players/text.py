"""Text models as players: they see the screens of the game as text."""

import re
import tomllib
from pathlib import Path
from typing import Any

from icy.core.fields import checked
from icy.text.answers import without_thoughts
from icy.text.cache import shared_model
from icy.text.interface import Answer, Question, TextSettings
from icy.text.models import replies_of

from ..game.settings import COLOURS, SHAPES
from .player import Item, StudyPlayer, StudySeat

PAGES = Path(__file__).parents[1] / "service" / "web" / "texts" / "en.toml"  # the texts that people read
RULES = ("story", "train", "test", "feedback", "new")  # their instructions, without those about buttons and pay
EXAMPLES = 50  # shapes of a game
WRONG = "a"  # in place of an answer that cannot be read; no code has one letter


class TextPlayer(StudyPlayer):
    """A text model that plays the game. A request has all screens so far, so the model needs no memory.

    Args:
        model: name of the text model, as in `icy list text-models`.
        cache: folder for saved answers; "none" does not save them.
        max_tokens: largest number of tokens of an answer.
        max_requests: largest number of requests that the model gets; None for any number.
        **settings: settings of the model, see `icy.s2b.TextSettings`; the temperature is 0 by default.

    Attributes:
        unreadable: number of answers without a code.
    """

    def __init__(
        self,
        model: str,
        cache: str = "icy-text",
        max_tokens: int = 1024,
        max_requests: int | None = None,
        **settings: Any,
    ) -> None:
        how = TextSettings(**checked(TextSettings, {"temperature": 0.0, **settings}, "option of a text model"))
        self.model = shared_model(model, how, cache, max_requests, f"{how} {cache} {max_requests}")
        self.max_tokens, self.unreadable = max_tokens, 0

    def begin(self, seat: StudySeat) -> None:
        """Show the instructions."""
        super().begin(seat)
        self.model.begin(seat)
        pages = tomllib.loads(PAGES.read_text(encoding="utf-8"))
        self.words: dict[str, str] = pages["game"]
        rules = [pages["instructions"][name].replace("**", "") for name in RULES]
        shown = "\n".join(rules).format(letters=seat.content.length, examples=EXAMPLES)
        self.screens = [self.words["title"], shown, ""]
        self.typed: tuple[Item, str] | None = None  # the last answer, until its feedback

    def learn(self, item: Item, code: str) -> None:
        """Show a card of Train, or the feedback on an answer."""
        if self.typed is None or self.typed[0] != item:
            self.screens.append(f"{self.words['train']}: {self._shape(item)}. {self.words['code']}: {code}")
        else:
            right = "Yes!" if self.typed[1] == code else f"{self.words['wrong']} {code}."
            self.screens[-1] += f" {right}"
        self.typed = None

    def answer(self, item: Item) -> str:
        """Return the code that the model types; WRONG for an answer without one."""
        asked = f"{self.words['test']}: {self._shape(item)}. {self.words['question']}"
        prompt = "\n".join([*self.screens, asked, "Answer with the code alone."])
        seed = int(self.seat.rng.integers(2**31))
        ((_, answer),) = replies_of(self.model, [Question(prompt, max_tokens=self.max_tokens, seed=seed)], Answer)
        text = self._code(answer)
        self.unreadable += not text
        self.typed = item, text or WRONG
        self.screens.append(f"{asked} {self.words['yours']}: {self.typed[1]}.")
        return self.typed[1]

    def _shape(self, item: Item) -> str:
        return f"{COLOURS[item[0]]} {SHAPES[item[1]]}"

    def _code(self, answer: Answer) -> str:
        """Return the last word of the length of codes in the last line of an answer; "" without one."""
        said = without_thoughts(answer.text if answer.marked is None else answer.marked) or ""
        lines = [line for line in said.lower().splitlines() if line.strip()]
        words = re.findall(r"(?<![a-z])[a-z]+(?![a-z])", lines[-1]) if lines else []
        return next((word for word in words[::-1] if len(word) == self.seat.content.length), "")
