"""The context of a study's pages: texts, addresses and templates; and checks of requests."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.datastructures import Headers as RequestHeaders
from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icy.core.errors import require_known
from icy.study.service.network import Serving, site_of
from icy.study.service.plan import languages
from icy.study.service.review import money
from icy.study.service.studies import Study, before

# -- checks of requests (site, form tokens, hosts), and security headers of replies ------------------------------------


MOST_BODY = 16_384  # maximum size of a request in bytes
MOST_FIELDS = 40  # maximum number of fields of a form

POLICY = {
    "default-src": "'none'",
    "style-src": "'self'",
    "script-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-robots-tag": "noindex",
}


def policy(**changes: str) -> str:
    """Return the content security policy, with changes to directives.

    Example:
        >>> "frame-ancestors https://x.example" in policy(frame_ancestors="https://x.example")
        True
    """
    directives = POLICY | {name.replace("_", "-"): value for name, value in changes.items()}
    return "; ".join(f"{name} {value}" for name, value in directives.items())


class Headers:
    """Middleware that adds default headers to every reply, without replacing existing headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, and add the headers to its reply."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, "content-security-policy": policy()}.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


class Hosts:
    """Middleware that refuses requests to host names that do not belong to the service.

    Args:
        app: the web application.
        names: host names, normalized by `icy.study.service.network.host_name`; "*" for all.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app = app
        self.names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or refuse it with status 400."""
        if scope["type"] == "http" and "*" not in self.names:
            site = site_of(f"http://{RequestHeaders(scope=scope).get('host', '')}")
            if site is None or site.host not in self.names:
                await PlainTextResponse("This service has another name.", 400)(scope, receive, send)
                return
        await self.app(scope, receive, send)


# -- forms -------------------------------------------------------------------------------------------------------------


def is_same_site(headers: Mapping[str, str], base_url: str = "") -> bool:
    """Return whether a form was sent from a page of this site, by the browser's headers.

    Args:
        headers: headers of the request.
        base_url: address of the site; by default the host of the request.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site != "same-origin":
        return False
    source = site_of(origin or headers.get("referer", ""))
    if source is None:
        return site == "same-origin" and origin is None
    return source == site_of(base_url or f"{source.scheme}://{headers.get('host', '')}")


def form_token(study: Study, person: str) -> str:
    """Return the token of the forms on a person's pages."""
    return study.key.mark("form", study.name, person)


def is_form_token(study: Study, person: str, token: str) -> bool:
    """Return whether `token` is the token of the forms on a person's pages."""
    return study.key.matches(token, "form", study.name, person)


def entry_token(study: Study) -> str:
    """Return the token of the information page, which includes the current time."""
    time = study.time
    return f"{time} {study.key.mark('entry', study.name, time)}"


def first_seen(study: Study, token: str) -> str | None:
    """Return the time in a token of the information page; None if the token is invalid or older than a day."""
    time, _, mark = token.partition(" ")
    if not study.key.matches(mark, "entry", study.name, time):
        return None
    return time if time >= before(study.now(), days=1) else None


# -- the context of a study's pages: texts, addresses and templates ----------------------------------------------------


# -- texts -------------------------------------------------------------------------------------------------------------

FOLDER = Path(__file__).with_name("texts")
MARKDOWN = MarkdownIt("commonmark", {"html": False})  # HTML tags are escaped


@cache
def words(language: str) -> SimpleNamespace:
    """Return the texts of a language, by nested names, as in `words("en").game.send`.

    Raises:
        UnknownNameError: there are no texts in this language.
    """
    require_known("language of the pages", language, languages())
    found = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    texts: SimpleNamespace = json.loads(json.dumps(found), object_hook=lambda table: SimpleNamespace(**table))
    return texts


def counted(number: int, forms: Sequence[str]) -> str:
    """Return a number with its noun.

    Example:
        >>> counted(1, ["{n} point", "{n} points"]), counted(2, ["{n} point", "{n} points"])
        ('1 point', '2 points')
    """
    return forms[number != 1].format(n=number)


def inline(text: str) -> Markup:
    """Convert a line of Markdown to HTML."""
    return Markup(MARKDOWN.renderInline(text))  # icy's own texts, and escaped


def block(text: str, top: int = 1) -> Markup:
    """Convert Markdown to HTML. HTML tags in the text are escaped.

    Args:
        text: Markdown text.
        top: highest level of a heading; headings above it are lowered, all by the same number of levels.
    """
    tokens = MARKDOWN.parse(text)
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    lower = max(0, top - min((int(token.tag[1]) for token in headings), default=top))
    for token in headings:
        token.tag = f"h{min(6, int(token.tag[1]) + lower)}"
    return Markup(MARKDOWN.renderer.render(tokens, MARKDOWN.options, {}))


# -- templates and addresses -------------------------------------------------------------------------------------------

HERE = Path(__file__).parent
STATIC = HERE / "static"


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
        "fill": lambda text, **values: text.format(**values),
        "counted": counted,
        "md": inline,
        "numbered": enumerate,  # options of a form field, with their positions as values
        "zipped": lambda options: zip(options, options, strict=True),  # with their texts as values
    }
    return found


@dataclass(frozen=True)
class Desk:
    """A study, with the context of its pages.

    Attributes:
        study: the open study.
        serving: settings of the web service.
    """

    study: Study
    serving: Serving

    @cached_property
    def words(self) -> SimpleNamespace:
        """The texts in the language of the study."""
        return words(self.study.plan.language)

    def address(self, *parts: str) -> str:
        """Return the path of the URL of a page of the study."""
        return self.serving.path(self.study.name, *parts)

    def private(self, token: str, *parts: str) -> str:
        """Return the path of the URL of a participant's private page."""
        return self.address("p", token, *parts)

    def static(self, file: str) -> str:
        """Return the path of the URL of a static file, which changes with the file's content."""
        return f"{self.serving.path('static', file)}?v={digest_of(file)}"

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
        usual = {"t": self.words, "language": plan.language, "name": plan.title, "static": self.static}
        found = environment().get_template(f"{template}.html")
        text = found.render({**usual, "pilot": self.study.is_pilot, **fields})
        sites = " ".join(plan.platform.known.frames)
        frames = {"frame_ancestors": sites} if sites else {}
        return HTMLResponse(text, status, {"content-security-policy": policy(**frames, **directives)})
