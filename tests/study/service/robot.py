"""A simulated player at the pages of the service: it reads HTML, looks at pictures, fills in forms and keeps no secret.

It is a generator that yields what to ask the server and is sent the page that comes back, so that it goes with any
client: the tests' own, or two hundred at once over a network.
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


@dataclass(frozen=True)
class Ask:
    """What a browser asks a server.

    Attributes:
        address: of the page.
        form: fields to send; None to look only.
        thinks: whether a person would take time before.
    """

    address: str
    form: Mapping[str, str] | None = None
    thinks: bool = False


@dataclass(frozen=True)
class Reply:
    """What came back, after redirects.

    Attributes:
        address: of the page.
        text: of the page.
    """

    address: str
    text: str


@dataclass
class Form:
    """A form of a page: where it goes, and its hidden fields."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass
class Page(HTMLParser):
    """What a simulated player sees of a page.

    Attributes:
        forms: by the last part of their action; of several of one action, those of tabs by the tab.
        pictures: addresses of pictures, by class; "" for those without.
        codes: texts that look like codes.
        status: numbers of the status, by their place.
    """

    forms: dict[str, Form] = field(default_factory=dict)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    status: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: Form | None = None
        self._inside = ""

    @classmethod
    def of(cls, text: str) -> Page:
        """Return a page that was read."""
        page = cls()
        page.feed(text)
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in forms, fields and pictures."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = Form(given["action"])
        elif tag == "input" and self._open is not None and given.get("type") == "hidden":
            self._open.fields[given["name"]] = given["value"]
        elif tag == "img":
            self.pictures.append((given.get("class", ""), given["src"]))
        self._inside = "code" if tag == "b" else tag

    def handle_endtag(self, tag: str) -> None:
        """Put a form on the list when it ends."""
        if tag == "form" and self._open is not None:
            name = self._open.action.rpartition("/")[2]
            self.forms[f"{name} {self._open.fields['tab']}" if name == "tab" else name] = self._open
            self._open = None
        self._inside = ""

    def handle_data(self, data: str) -> None:
        """Take in codes and numbers."""
        if self._inside == "code":
            self.codes.append(data)
        elif self._inside == "dd":
            self.status.append(data)

    @property
    def picture(self) -> str:
        """Address of the picture of the game."""
        return next(address for kind, address in self.pictures if kind == "picture")


def seen(svg: str, palette: str = "primary") -> Item:
    """Return the colour and the shape of a picture, by looking at it.

    Example:
        >>> from icy.study.stimuli import Picture, svg
        >>> seen(svg(Picture(colour=3, shape=4, seed=1)))
        (3, 4)
    """
    fill, path = re.findall(r'<path fill="#(\w{6})"[^>]* d="([^"]+)"', svg)[1]
    channels = [int(fill[place : place + 2], 16) for place in (0, 2, 4)]
    colours = PALETTES[palette].colours  # type: ignore[index]
    distances = [sum((a - b) ** 2 for a, b in zip(channels, colour, strict=True)) for colour in colours]
    return distances.index(min(distances)), CORNERS.index(0 if "A" in path else path.count("L") + 1)


Playing = Generator[Ask, Reply, str]


@dataclass
class Robot:
    """A simulated player who takes part in a study by its pages.

    Attributes:
        player: that learns and answers.
        content: the dataset that the player believes to be asked; it learns the real one by its pictures.
        seed: of the player.
        right: places of the right answers to the questions on the instructions.
        looks: cards that it looks at before an item, at most.
    """

    player: StudyPlayer
    content: Dataset
    seed: int
    right: tuple[int, ...] = (0, 1, 2)
    looks: int = 3

    def take_part(self, address: str) -> Playing:
        """Yield what to ask the server, from the page of information to the end; return the address at the end."""
        self.player.begin(StudySeat(self.content, self.seed))
        self._seen: dict[str, Item] = {}
        reply = yield Ask(address)
        for _ in range(MOST_PAGES):
            page = Page.of(reply.text)
            step = self._before(page) or (yield from self._in_game(page))
            if step is None:
                return reply.address
            reply = yield step
        raise RuntimeError("The study does not end.")

    def _before(self, page: Page) -> Ask | None:
        """Return what to do on a page beside the game; None on those of the game, and at the end."""
        answers = {
            "enter": {"agree": "1"},
            "demographics": {"age": "", "languages": "robot", "colour_vision": ""},
            "instructions": {"palette": "primary", "sound": "1", "viewport": "1280x720"},
            "comprehension": {f"question{n}": str(place) for n, place in enumerate(self.right, 1)},
            "colours": {"palette": "primary", "colour1": "red"},
            "game": {},
            "feedback": {"text": "beep"},
        }
        for name, filled in answers.items():
            if name in page.forms:
                return self._sent(page.forms[name], thinks=True, **filled)
        return None

    def _in_game(self, page: Page) -> Generator[Ask, Reply, Ask | None]:
        """Look at the page of the game, and return what to do."""
        if "view" in page.forms:
            self.player.learn((yield from self._look(page)), page.codes[0])
            self._views += 1
            done = self._views >= self.looks
            return self._sent(page.forms["tab test" if done else "view"])
        if "answer" in page.forms:
            return (yield from self._at_test(page))
        if "next" in page.forms:
            if page.codes:
                self.player.learn((yield from self._look(page)), page.codes[0])
            self._looked = False
            return self._sent(page.forms["next"])
        return None

    _looked = False  # whether it has looked at cards before this item
    _views = 0  # cards that it looked at

    def _at_test(self, page: Page) -> Generator[Ask, Reply, Ask]:
        if not self._looked and self.looks:
            self._looked, self._views = True, 0
            return self._sent(page.forms["tab train"])
        text = self.player.answer((yield from self._look(page)))
        return self._sent(page.forms["answer"], thinks=True, answer=text, reaction="1500")

    def _look(self, page: Page) -> Generator[Ask, Reply, Item]:
        """Ask for the picture, unless it was seen."""
        address = page.picture
        if address not in self._seen:
            self._seen = {address: seen((yield Ask(address)).text)}
        return self._seen[address]

    @staticmethod
    def _sent(form: Form, thinks: bool = False, **filled: str) -> Ask:
        return Ask(form.action, {**form.fields, **filled}, thinks)
