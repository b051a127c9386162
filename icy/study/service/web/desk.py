"""What the pages of one study need at hand: the study, its words, addresses and templates."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from icy.study.service.pay import money
from icy.study.service.studies import Study

from . import words
from .guard import policy
from .limits import Limit

HERE = Path(__file__).parent
STATIC = HERE / "static"


@dataclass(frozen=True)
class Web:
    """How the service is reached.

    Attributes:
        base_url: address that people use, as in "https://study.example"; "" for whatever they used.
        root_path: part of the address before the names of studies, as in "/spy", if a proxy has one.
        researcher: whether there is a page for the researcher.
        password: of that page; without one it is for this machine alone.
        person: how often one person may ask.
        newcomers: how often newcomers may agree to take part, together.
    """

    base_url: str = ""
    root_path: str = ""
    researcher: bool = False
    password: str = ""
    person: Limit = field(default_factory=Limit)
    newcomers: Limit = field(default_factory=lambda: Limit(rate=10.0, burst=100.0))

    def address(self, *parts: str) -> str:
        """Return an address on this server."""
        return "/".join([self.root_path.rstrip("/"), *parts])

    def static(self, file: str) -> str:
        """Return the address of a file of ours, which changes with its content."""
        return f"{self.address('static', file)}?v={digest_of(file)}"


@cache
def digest_of(file: str) -> str:
    """Return a hash of a file of ours."""
    return hashlib.sha256((STATIC / file).read_bytes()).hexdigest()[:12]


@cache
def environment() -> Environment:
    """Return the templates."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters |= {
        "fill": words.fill,
        "counted": words.counted,
        "md": words.inline,
        "numbered": words.numbered,
        "zipped": words.zipped,
    }
    return found


@dataclass(frozen=True)
class Desk:
    """A study with all that its pages need.

    Attributes:
        study: that is open.
        web: how it is reached.
    """

    study: Study
    web: Web

    @cached_property
    def words(self) -> SimpleNamespace:
        """The words of its language."""
        return words.words(self.study.plan.language)

    def address(self, *parts: str) -> str:
        """Return an address of the study."""
        return self.web.address(self.study.name, *parts)

    def private(self, token: str, *parts: str) -> str:
        """Return an address of a person's pages."""
        return self.address("p", token, *parts)

    def money(self, cents: int) -> str:
        """Return an amount in the currency of the study."""
        return money(cents, self.study.plan.people.currency)

    def page(self, template: str, given: Mapping[str, object], status: int = 200, **directives: str) -> HTMLResponse:
        """Return a page.

        Args:
            template: its file, without suffix.
            given: what the template needs.
            status: of the reply.
            **directives: of the content security policy, where they are not the usual ones.
        """
        plan = self.study.plan
        text = render(
            template, self.web, self.words, plan.language, plan.title, {"pilot": self.study.is_pilot, **given}
        )
        frames = {"frame_ancestors": " ".join(plan.platform.frames)} if plan.platform.frames else {}
        return HTMLResponse(text, status, {"content-security-policy": policy(**frames, **directives)})


def render(template: str, web: Web, t: SimpleNamespace, language: str, name: str, given: Mapping[str, object]) -> str:
    """Return the text of a page."""
    found = environment().get_template(f"{template}.html")
    return found.render({"t": t, "language": language, "name": name, "static": web.static, "pilot": False, **given})
