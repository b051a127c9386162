"""What every request must pass, and what every reply must say: same site, form tokens, headers (spycodes-facts 15)."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from datetime import timedelta

from starlette.datastructures import Headers as RequestHeaders
from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icy.study.service.clock import moment, stamp
from icy.study.service.sites import site_of
from icy.study.service.studies import Study

MOST_BODY = 16_384  # bytes of a request
MOST_FIELDS = 40
LONGEST_READ = timedelta(hours=24)  # from the page of information to consent

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
    """Return the content security policy, with some directives of other values.

    Example:
        >>> "frame-ancestors https://x.example" in policy(frame_ancestors="https://x.example")
        True
    """
    directives = POLICY | {name.replace("_", "-"): value for name, value in changes.items()}
    return "; ".join(f"{name} {value}" for name, value in directives.items())


class Headers:
    """Adds headers to every reply that does not bring its own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, "content-security-policy": policy()}.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


class Hosts:
    """Answers only requests to the names of this service.

    Args:
        app: the service.
        names: as `icy.study.service.sites.host_name` returns them; "*" for all.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app = app
        self.names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and "*" not in self.names:
            asked = site_of(f"http://{RequestHeaders(scope=scope).get('host', '')}")
            if asked is None or asked.host not in self.names:
                await PlainTextResponse("This service has another name.", 400)(scope, receive, send)
                return
        await self.app(scope, receive, send)


# -- forms -------------------------------------------------------------------------------------------------------------


def is_same_site(headers: Mapping[str, str], base_url: str = "") -> bool:
    """Return whether a form was sent by a page of this site, by what the browser says of it.

    Args:
        headers: of the request.
        base_url: of the site; by default the host that the request is for.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site != "same-origin":
        return False
    given = site_of(origin or headers.get("referer", ""))
    if given is None:
        return site == "same-origin" and origin is None
    return given == site_of(base_url or f"{given.scheme}://{headers.get('host', '')}")


def form_token(study: Study, person: str) -> str:
    """Return the token of the forms of a person's pages."""
    return study.key.mark("form", study.name, person)


def is_form_token(study: Study, person: str, given: str) -> bool:
    """Return whether a form of a person's pages brought its token."""
    return study.key.matches(given, "form", study.name, person)


def entry_token(study: Study) -> str:
    """Return the token of the page of information, which tells when it was shown."""
    time = study.time
    return f"{time} {study.key.mark('entry', study.name, time)}"


def first_seen(study: Study, given: str) -> str | None:
    """Return when the page of information of a token was shown; None for no token of ours, or one of long ago."""
    time, _, mark = given.partition(" ")
    if not study.key.matches(mark, "entry", study.name, time):
        return None
    return time if study.now() - moment(time) <= LONGEST_READ else None


def seconds_since(study: Study, time: str) -> float:
    """Return the seconds since a time."""
    return (moment(stamp(study.now())) - moment(time)).total_seconds()


def is_password(given: str, wanted: str) -> bool:
    """Return whether a password is right, in a time that tells nothing."""
    return hmac.compare_digest(given.encode(), wanted.encode())
