"""The context of a study's pages: texts, addresses and templates."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.responses import HTMLResponse

from icy.core.errors import unknown
from icy.study.service.network import Serving
from icy.study.service.review import money
from icy.study.service.studies import Study

from .guard import policy

# -- texts -------------------------------------------------------------------------------------------------------------

FOLDER = Path(__file__).with_name("texts")
MARKDOWN = MarkdownIt("commonmark", {"html": False})  # HTML tags are escaped


def languages() -> list[str]:
    """Return the languages of the pages."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@cache
def words(language: str) -> SimpleNamespace:
    """Return the texts of a language, by nested names, as in `words("en").game.send`.

    Raises:
        UnknownNameError: there are no texts in this language.
    """
    if language not in languages():
        raise unknown("language of the pages", language, languages())
    found = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    return SimpleNamespace(**{name: _namespaces(value) for name, value in found.items()})


def _namespaces(found: object) -> object:
    if isinstance(found, dict):
        return SimpleNamespace(**{name: _namespaces(value) for name, value in found.items()})
    return [_namespaces(one) for one in found] if isinstance(found, list) else found


def fill(text: str, **values: object) -> str:
    """Replace {names} in a text by values."""
    return text.format(**values)


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


def numbered(options: Sequence[str]) -> list[tuple[str, str]]:
    """Return options of a form field, with their positions as values."""
    return [(str(place), option) for place, option in enumerate(options)]


def zipped(options: Sequence[str]) -> list[tuple[str, str]]:
    """Return options of a form field, with their texts as values."""
    return [(option, option) for option in options]


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
    found.filters |= {"fill": fill, "counted": counted, "md": inline, "numbered": numbered, "zipped": zipped}
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
