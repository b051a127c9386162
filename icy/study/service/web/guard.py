"""Checks of requests (site, form tokens, hosts), and security headers of replies."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from datetime import timedelta

from starlette.datastructures import Headers as RequestHeaders
from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icy.study.service.network import site_of
from icy.study.service.studies import Study, moment, stamp

MOST_BODY = 16_384  # maximum size of a request in bytes
MOST_FIELDS = 40  # maximum number of fields of a form
LONGEST_READ = timedelta(hours=24)  # longest time from the information page to consent

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
    """Return the time in a token of the information page; None if the token is invalid or too old."""
    time, _, mark = token.partition(" ")
    if not study.key.matches(mark, "entry", study.name, time):
        return None
    return time if study.now() - moment(time) <= LONGEST_READ else None


def seconds_since(study: Study, time: str) -> float:
    """Return the seconds since a timestamp."""
    return (moment(stamp(study.now())) - moment(time)).total_seconds()


def is_password(password: str, expected: str) -> bool:
    """Return whether a password is right, in constant time."""
    return hmac.compare_digest(password.encode(), expected.encode())
