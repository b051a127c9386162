"""The web pages of the service, as an ASGI application on Starlette. Only this package needs the extra "study"."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import logging
import re
from collections.abc import AsyncIterator, Callable, Sequence
from urllib.parse import parse_qsl, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from icy.core.errors import StoreError
from icy.study.service.links import progress
from icy.study.service.network import Limit, Serving
from icy.study.service.persons import delete_old_ids
from icy.study.service.studies import Study, readable

from . import pages, views
from .desk import MOST_BODY, MOST_FIELDS, STATIC, Desk, Headers, Hosts, is_same_site

log = logging.getLogger(__name__)
LOOPBACK = ("127.0.0.1", "::1", "localhost")
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-real-ip")  # headers that a proxy adds to a request
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CHARSET = re.compile(r"""charset[*0-9]*\s*=[\s"']*([^\s"';]*)""", re.IGNORECASE)
HOUR = 3600.0  # seconds
ERROR_TEXTS = {400: "hurry", 403: "forbidden", 404: "not_found", 405: "not_found", 413: "large", 429: "often"}

View = Callable[[Desk, Request], Response]
FormAction = Callable[[Desk, Request, views.Form], Response]


def make_app(studies: Sequence[Study], serving: Serving, hosts: Sequence[str] = ()) -> ASGIApp:
    """Create the web application for studies.

    Args:
        studies: the studies to serve; a study's name is part of its address.
        serving: settings of the web service.
        hosts: host names that requests may use; by default those of the settings.
    """
    desks = {study.name: Desk(study, serving) for study in studies}
    for desk in desks.values():
        _ = desk.words, [game.cap for _, game in desk.study.plan.conditions.cells]  # raises errors before the start
    app = Starlette(
        routes=_routes(desks),
        middleware=[
            Middleware(Hosts, names=hosts or serving.hosts),
            Middleware(RequestBodyLimitMiddleware, max_body_size=MOST_BODY),
        ],
        exception_handlers={HTTPException: _error_page, StoreError: _error_page, Exception: _error_page},
        lifespan=_hourly_cleanup(studies),
    )
    app.state.desks = desks
    return Headers(app)


def _routes(desks: dict[str, Desk]) -> list[Route]:
    def of(request: Request) -> Desk:
        """Return the study in the address of a request."""
        if (desk := desks.get(request.path_params["study"])) is None:
            raise HTTPException(404)
        return desk

    def get(address: str, view: View) -> Route:
        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(view, of(request), request)

        return Route(address, endpoint, methods=["GET"])

    def post(address: str, action: FormAction) -> Route:
        async def endpoint(request: Request) -> Response:
            desk = of(request)
            if not is_same_site(request.headers, desk.serving.base_url):
                raise HTTPException(403)
            if request.path_params.get("action", "") not in ("", *views.ACTIONS):
                raise HTTPException(404)
            return await run_in_threadpool(action, desk, request, await _form(request))

        return Route(address, endpoint, methods=["POST"])

    async def front(request: Request) -> Response:
        """Redirect to the only study. With several, answer 404, to hide their names."""
        if len(desks) != 1:
            raise HTTPException(404)
        (desk,) = desks.values()
        return RedirectResponse(desk.address() + (f"?{request.url.query}" if request.url.query else ""), 303)

    return [
        Route("/", front, methods=["GET"]),
        Route("/static/{file}", _static, methods=["GET"]),
        get("/{study}", views.entry),
        get("/{study}/declined", views.declined),
        get("/{study}/researcher", _researcher(Limit(rate=0.2, burst=10.0))),
        post("/{study}/enter", views.enter),
        post("/{study}/link", views.confirm_link),
        get("/{study}/p/{token}", views.show),
        get("/{study}/p/{token}/stop", views.show_stop),
        get("/{study}/p/{token}/picture/{mark}", views.show_picture),
        post("/{study}/p/{token}/{action}", views.do),
    ]


# -- endpoints ---------------------------------------------------------------------------------------------------------


async def _form(request: Request) -> dict[str, str]:
    """Return the text fields of a form, without NUL characters.

    Raises:
        HTTPException: the form is not in UTF-8 or not complete, or it has files or too many fields.
    """
    given = request.headers.get("content-type", "")
    if any(name.lower() not in ("utf-8", "utf8") for name in CHARSET.findall(given)):
        raise HTTPException(400)
    try:
        text = (await request.body()).decode()
        if given.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded":
            items = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
        else:
            async with request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=MOST_BODY) as form:
                items = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    except (ValueError, ClientDisconnect):  # a client that closed the connection gets no reply
        raise HTTPException(400) from None
    return {name: value.replace("\0", "") for name, value in items}


async def _static(request: Request) -> Response:
    path = STATIC / request.path_params["file"]
    if path.parent != STATIC or path.suffix not in TYPES or not path.is_file():
        raise HTTPException(404)
    headers = {"cache-control": "public, max-age=31536000, immutable"}  # the address changes with the content
    return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers=headers)


# -- the researcher's page ---------------------------------------------------------------------------------------------


def _researcher(attempts: Limit) -> View:
    """Create the view of the researcher's page: the progress of a study, after a password check.

    Args:
        attempts: rate limit on wrong passwords.
    """

    def view(desk: Desk, request: Request) -> Response:
        serving = desk.serving
        if not serving.researcher or not (serving.password or is_local(request)):
            raise HTTPException(404)
        if serving.password and not _has_password(serving.password, request):
            if request.headers.get("authorization") and not attempts.allows(desk.study.name):
                raise HTTPException(429)
            raise HTTPException(401, headers={"www-authenticate": 'Basic realm="researcher", charset="UTF-8"'})
        t, study = desk.words.researcher, desk.study
        found = progress(study)
        fields = {"heading": t.title.format(name=study.name), "found": found}
        fields["last"] = found.last and readable(found.last)
        fields["link_last"] = found.link.last and readable(found.link.last)
        return desk.page("researcher", fields | {"state": getattr(t.states, study.plan.state)})

    return view


def is_local(request: Request) -> bool:
    """Return whether a request comes directly from this machine, not through a proxy."""
    client = request.client.host if request.client else ""
    return (
        client in LOOPBACK
        and (request.url.hostname or "") in LOOPBACK
        and not any(name in request.headers for name in FORWARDED)
    )


def _has_password(password: str, request: Request) -> bool:
    """Return whether the credentials of a request have the right password."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    try:
        text = base64.b64decode(credentials, validate=True).decode()
    except ValueError:  # not base64 or not UTF-8
        return False
    return scheme.lower() == "basic" and hmac.compare_digest(text.partition(":")[2].encode(), password.encode())


# -- errors and cleanup ------------------------------------------------------------------------------------------------


async def _error_page(request: Request, error: Exception) -> Response:
    """Return an error page without technical details."""
    status = error.status_code if isinstance(error, HTTPException) else 503 if isinstance(error, StoreError) else 500
    if status >= 500:
        log.error("A request failed: %s: %s", type(error).__name__, error)
    desks: dict[str, Desk] = request.app.state.desks
    known = desks.get(request.path_params.get("study", ""))
    desk = known or next(iter(desks.values()))
    t = desk.words
    text = getattr(t.error, ERROR_TEXTS.get(status, "failed"))
    back = _back(known, request) if known and status not in (404, 405) else ""
    reply = pages.end_page(desk, t.error.title, [text], back, label=t.error.back, status=status)
    reply.headers.update(dict(getattr(error, "headers", None) or {}))
    if status in (429, 503):
        reply.headers["retry-after"] = "5"
    return reply


def _back(desk: Desk, request: Request) -> str:
    """Return the address of the link "Try again": the requested page, or the page with the form."""
    if request.method == "GET":
        own, query = desk.serving.path(request.url.path.lstrip("/")), request.url.query
        return f"{own}?{query}" if query else own
    try:
        page = urlsplit(request.headers.get("referer", ""))
    except ValueError:  # a bracket that is not closed
        page = urlsplit("")
    if page.path == desk.address() or page.path.startswith(f"{desk.address()}/"):
        return f"{page.path}?{page.query}" if page.query else page.path
    token = request.path_params.get("token")
    return desk.private(token) if token else desk.address()


def _hourly_cleanup(studies: Sequence[Study]) -> Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]:
    """Create a lifespan handler that deletes old ids every hour while the service runs."""

    async def clean_up() -> None:
        while True:
            for study in studies:
                await run_in_threadpool(delete_old_ids, study)
            await asyncio.sleep(HOUR)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(clean_up())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    return lifespan
