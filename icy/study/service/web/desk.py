"""The context of a study's pages: texts, addresses and templates."""

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
    """Settings of the web service.

    Attributes:
        base_url: public address, as in "https://study.example"; "" for the host of each request.
        root_path: path before the names of studies, as in "/spy", if a proxy adds one.
        researcher: whether to serve a page for the researcher.
        password: password of this page; without one, only this machine can open it.
        person: rate limit on the requests of one person.
        newcomers: rate limit on the consents of all new people together.
    """

    base_url: str = ""
    root_path: str = ""
    researcher: bool = False
    password: str = ""
    person: Limit = field(default_factory=Limit)
    newcomers: Limit = field(default_factory=lambda: Limit(rate=10.0, burst=100.0))

    def address(self, *parts: str) -> str:
        """Return the path of a URL on this server."""
        return "/".join([self.root_path.rstrip("/"), *parts])

    def static(self, file: str) -> str:
        """Return the path of the URL of a static file, which changes with the file's content."""
        return f"{self.address('static', file)}?v={digest_of(file)}"


@cache
def digest_of(file: str) -> str:
    """Return a hash of a static file."""
    return hashlib.sha256((STATIC / file).read_bytes()).hexdigest()[:12]


@cache
def environment() -> Environment:
    """Create the Jinja environment of the templates."""
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
    """A study, with the context of its pages.

    Attributes:
        study: the open study.
        web: settings of the web service.
    """

    study: Study
    web: Web

    @cached_property
    def words(self) -> SimpleNamespace:
        """The texts in the language of the study."""
        return words.words(self.study.plan.language)

    def address(self, *parts: str) -> str:
        """Return the path of the URL of a page of the study."""
        return self.web.address(self.study.name, *parts)

    def private(self, token: str, *parts: str) -> str:
        """Return the path of the URL of a participant's private page."""
        return self.address("p", token, *parts)

    def money(self, cents: int) -> str:
        """Format an amount in the currency of the study."""
        return money(cents, self.study.plan.people.currency)

    def page(self, template: str, fields: Mapping[str, object], status: int = 200, **directives: str) -> HTMLResponse:
        """Render a page of the study.

        Args:
            template: name of the template file, without suffix.
            fields: variables of the template.
            status: HTTP status of the reply.
            **directives: directives of the content security policy that replace the defaults.
        """
        plan = self.study.plan
        text = render(
            template, self.web, self.words, plan.language, plan.title, {"pilot": self.study.is_pilot, **fields}
        )
        frames = {"frame_ancestors": " ".join(plan.platform.frames)} if plan.platform.frames else {}
        return HTMLResponse(text, status, {"content-security-policy": policy(**frames, **directives)})


def render(template: str, web: Web, t: SimpleNamespace, language: str, name: str, fields: Mapping[str, object]) -> str:
    """Render the HTML of a page."""
    page = environment().get_template(f"{template}.html")
    return page.render({"t": t, "language": language, "name": name, "static": web.static, "pilot": False, **fields})
