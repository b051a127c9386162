"""A browser for tests: it opens pages, sends forms, and follows redirects."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from icy.study.players.player import StudyPlayer
from icy.study.players.simulated import Composer
from icy.study.service import Study
from icy.study.service.network import Limit, Serving
from icy.study.service.web import make_app
from tests.study.service.robot import Ask, Page, Reply, Robot

with warnings.catch_warnings(action="ignore"):  # httpx warns that it has a successor
    from starlette.testclient import TestClient

HOST = "http://study.example"
RIGHT = {"question1": "0", "question2": "1", "question3": "2"}


def without_limits(**given: Any) -> Serving:
    """Settings of the web service without rate limits."""
    return Serving(**{"person": Limit(1e9, 1e9), "newcomers": Limit(1e9, 1e9), **given})


class Browser:
    """A browser without scripts, with one open page.

    Attributes:
        client: HTTP client of the service.
        reply: the open page.
        seen: address and text of all replies.
    """

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.reply: Any = None
        self.seen: list[tuple[str, str]] = []

    def get(self, address: str, **more: Any) -> Any:
        """Open a page."""
        return self._keep(self.client.get(address, **more))

    def post(self, address: str, data: dict[str, str], **more: Any) -> Any:
        """Send a form."""
        return self._keep(self.client.post(address, data=data, **more))

    def send(self, form: str, **fields: str) -> Any:
        """Send a form of the page, with some fields filled in."""
        return self.post(*self.filled(form, **fields))

    @property
    def page(self) -> Page:
        """The page as a simulated player sees it."""
        return Page(self.reply.text)

    @property
    def text(self) -> str:
        """The text of the page."""
        return str(self.reply.text)

    @property
    def address(self) -> str:
        """The address of the page, without its parameters."""
        return str(self.reply.url).partition("?")[0]

    def _keep(self, reply: Any) -> Any:
        self.reply = reply
        self.seen += [(str(one.url), one.text) for one in (*reply.history, reply)]
        return reply

    def enter(self, address: str = "/pilot") -> None:
        """Agree to take part."""
        self.get(address)
        self.send("enter", agree="1")

    def start(self, address: str = "/pilot") -> None:
        """Agree, and go through the pages before the game."""
        self.enter(address)
        self.send("instructions", palette="primary", sound="1", viewport="800x600")
        self.send("comprehension", **RIGHT)
        self.send("colours", palette="primary")
        self.send("game")

    def play(self, text: str = "abc") -> None:
        """Answer all items of the game."""
        while "answer" in self.page.forms:
            self.send("answer", answer=text)
            self.send("next")

    def finish(self, address: str = "/pilot") -> None:
        """Take part to the end."""
        self.start(address)
        self.play()
        self.send("feedback")

    def filled(self, form: str, **fields: str) -> tuple[str, dict[str, str]]:
        """Return the address and the fields of a form of the page, with some filled in."""
        found = self.page.forms[form]
        return found.action, {**found.fields, **fields}

    def let(self, robot: Robot, address: str = "/pilot") -> Any:
        """Let a simulated player take part, and return the last page."""
        return run(robot.take_part(address), self)


def run(playing: Generator[Ask, Reply, str], browser: Browser) -> Any:
    """Send the requests of a simulated player until it reaches the end."""
    ask = next(playing)
    while True:
        reply = browser.get(ask.address) if ask.form is None else browser.post(ask.address, dict(ask.form))
        assert reply.status_code == 200, (ask, reply.text)
        try:
            ask = playing.send(Reply(str(reply.url), reply.text))
        except StopIteration:
            return reply


def robot(of: Study, player: StudyPlayer | None = None, looks: int = 2) -> Robot:
    """A simulated player of the first condition of a study."""
    return Robot(player or Composer(), of.plan.conditions.cells[0][1].content, seed=1, looks=looks)


@contextmanager
def served(of: Sequence[Study] | Study, web: Serving | None = None, **more: Any) -> Iterator[TestClient]:
    """Serve studies to a client that sends requests from pages of the same site."""
    studies = [of] if isinstance(of, Study) else of
    given = {"base_url": HOST, "headers": {"origin": HOST}, **more}
    with TestClient(make_app(studies, web or without_limits(), ("*",)), **given) as client:
        yield client


@contextmanager
def browsing(of: Sequence[Study] | Study, web: Serving | None = None, **more: Any) -> Iterator[Browser]:
    """Serve studies to a browser."""
    with served(of, web, **more) as client:
        yield Browser(client)
