"""A simulated player that uses the pages of the service: it reads HTML, looks at pictures and fills in forms.

It is a generator that yields requests and receives pages. So it works with any client: the client of the tests, or two
hundred clients over a network.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser

from icy.study.game import Dataset
from icy.study.players.player import Item, StudyPlayer, StudySeat
from icy.study.stimuli import CORNERS, PALETTES

MOST_PAGES = 20_000
BEFORE: Mapping[str, Mapping[str, str]] = {  # the game: fields by form
    "enter": {"agree": "1"},
    "demographics": {"age": "", "languages": "robot", "colour_vision": ""},
    "instructions": {"palette": "primary", "sound": "1", "viewport": "1280x720"},
    "comprehension": {"question1": "0", "question2": "1", "question3": "2"},
    "colours": {"palette": "primary", "colour1": "red"},
    "game": {},
    "feedback": {"text": "beep"},
}


@dataclass(frozen=True)
class Ask:
    """A request: an address, the fields of a form (None for GET), and whether a person would think before it."""

    address: str
    form: Mapping[str, str] | None = None
    thinks: bool = False


@dataclass(frozen=True)
class Reply:
    """The address and the text of the page after redirects."""

    address: str
    text: str


@dataclass
class Form:
    """A form of a page: its address, and its hidden fields."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """The parts of a page that a simulated player sees.

    Attributes:
        forms: by the last part of their action; of several forms "tab", by the tab.
        codes: texts that look like codes.
        picture: address of the picture of the game; "" without one.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: dict[str, Form] = {}
        self.codes: list[str] = []
        self.picture, self._inside = "", ""
        self._open: Form | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read forms, fields and the picture."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = Form(given["action"])
        elif tag == "input" and self._open is not None and given.get("type") == "hidden":
            self._open.fields[given["name"]] = given["value"]
        elif tag == "img" and given.get("class") == "picture":
            self.picture = self.picture or given["src"]
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        """Store a form when it ends."""
        if tag == "form" and self._open is not None:
            name = self._open.action.rpartition("/")[2]
            self.forms[f"{name} {self._open.fields['tab']}" if name == "tab" else name] = self._open
            self._open = None
        self._inside = ""

    def handle_data(self, data: str) -> None:
        """Read codes."""
        if self._inside == "b":
            self.codes.append(data)


def seen(svg: str, palette: str = "primary") -> Item:
    """Return the colour and the shape of a picture, by looking at it."""
    fill, path = re.findall(r'<path fill="#(\w{6})"[^>]* d="([^"]+)"', svg)[1]
    channels = [int(fill[place : place + 2], 16) for place in (0, 2, 4)]
    colours = PALETTES[palette].colours
    distances = [sum((a - b) ** 2 for a, b in zip(channels, colour, strict=True)) for colour in colours]
    return distances.index(min(distances)), CORNERS.index(0 if "A" in path else path.count("L") + 1)


Playing = Generator[Ask, Reply, str]


@dataclass
class Robot:
    """A simulated player that takes part in a study through its pages.

    Attributes:
        player: the player that learns and answers.
        content: the dataset that the player expects; it learns the real dataset from the pictures.
        seed: seed of the player.
        looks: most cards that the player looks at before an item.
    """

    player: StudyPlayer
    content: Dataset
    seed: int
    looks: int = 3

    def take_part(self, address: str) -> Playing:
        """Yield requests from the information page to the end; return the last address."""
        self.player.begin(StudySeat(self.content, self.seed))
        self._seen: dict[str, Item] = {}
        self._looked, self._views = False, 0  # whether and how often it looked at cards before this item
        reply = yield Ask(address)
        for _ in range(MOST_PAGES):
            page = Page(reply.text)
            before = next((name for name in BEFORE if name in page.forms), None)
            if before:
                step: Ask | None = self._sent(page.forms[before], thinks=True, **BEFORE[before])
            else:
                step = yield from self._in_game(page)
            if step is None:
                return reply.address
            reply = yield step
        raise RuntimeError("The study does not end.")

    def _in_game(self, page: Page) -> Generator[Ask, Reply, Ask | None]:
        """Look at a page of the game, and return the next request; None at the end."""
        if "view" in page.forms:
            self.player.learn((yield from self._look(page)), page.codes[0])
            self._views += 1
            return self._sent(page.forms["tab test" if self._views >= self.looks else "view"])
        if "answer" in page.forms and not self._looked and self.looks:
            self._looked, self._views = True, 0
            return self._sent(page.forms["tab train"])
        if "answer" in page.forms:
            text = self.player.answer((yield from self._look(page)))
            return self._sent(page.forms["answer"], thinks=True, answer=text, reaction="1500")
        if "next" in page.forms:
            if page.codes:
                self.player.learn((yield from self._look(page)), page.codes[0])
            self._looked = False
            return self._sent(page.forms["next"])
        return None

    def _look(self, page: Page) -> Generator[Ask, Reply, Item]:
        """Request the picture, unless it was requested before."""
        if page.picture not in self._seen:
            self._seen = {page.picture: seen((yield Ask(page.picture)).text)}
        return self._seen[page.picture]

    @staticmethod
    def _sent(form: Form, thinks: bool = False, **filled: str) -> Ask:
        return Ask(form.action, {**form.fields, **filled}, thinks)
