"""Runs the service, in one process that by default only this machine can reach."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import logging
import os
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, StoreError, quoted

from .platforms import Site, host_name, site_of
from .studies import Study

if TYPE_CHECKING:
    from starlette.types import ASGIApp

INSTALL = 'The service needs the packages of the extra "study": pip install "icy-toolkit[study]".'
MOST_KEPT = 10_000  # maximum number of buckets of a rate limit
BACKLOG = 2048  # maximum number of waiting connections
LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass
class Limit:
    """A token-bucket rate limit: a request takes a token, and tokens are added at a constant rate.

    Attributes:
        rate: tokens added per second.
        burst: maximum number of tokens in a bucket.
        clock: function that returns the time in seconds.
    """

    rate: float = 10.0
    burst: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def allows(self, name: str) -> bool:
        """Take a token from the bucket of a name, and return whether the bucket had one.

        Example:
            >>> limit = Limit(rate=1, burst=2, clock=lambda: 0.0)
            >>> [limit.allows("a"), limit.allows("a"), limit.allows("a"), limit.allows("b")]
            [True, True, False, True]
        """
        now = self.clock()
        with self._lock:
            left, then = self._buckets.pop(name, (self.burst, now))
            left = min(self.burst, left + (now - then) * self.rate)
            self._buckets[name] = (left - 1 if left >= 1 else left, now)
            if len(self._buckets) > MOST_KEPT:
                self._buckets.popitem(last=False)
        return left >= 1


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Settings of the web service.

    Attributes:
        host: address of this machine at which the service listens.
        port: port at which the service listens.
        base_url: public address, which people use; "" for the host and port.
        root_path: path in addresses before the names of studies.
        behind_proxy: whether to trust a proxy on this machine to report the client's address and scheme.
        researcher: whether to serve a page for the researcher.
        password: password of the page for the researcher; without one, only this machine can open it.
        person: rate limit on the requests of one person.
        newcomers: rate limit on the consents of all new people together.

    Raises:
        InvalidSettingError: a value is not accepted, or the page for the researcher would be public.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    base_url: str = ""
    root_path: str = ""
    behind_proxy: bool = False
    researcher: bool = False
    password: str = ""
    person: Limit = field(default_factory=Limit)
    newcomers: Limit = field(default_factory=lambda: Limit(rate=10.0, burst=100.0))

    def __post_init__(self) -> None:
        whole_number("port", self.port, 1, 65_535)
        parts = urlsplit(self.base_url.strip()) if self.site else None
        if self.base_url and (parts is None or parts.path.strip("/") or parts.query or parts.fragment):
            raise InvalidSettingError(
                "The address that people use (--base-url) must be like https://study.example, not "
                f"{quoted(self.base_url)}; set a path with --root-path."
            )
        if self.root_path and not self.root_path.startswith("/"):
            raise InvalidSettingError(
                f"The root path must begin with a slash, as in /spy, not {quoted(self.root_path)}."
            )
        if self.researcher and not self.password and not self.is_local:
            raise InvalidSettingError(
                "Other machines can reach this service, so the page for the researcher needs a password: set the "
                "environment variable ICY_STUDY_PASSWORD."
            )

    @cached_property
    def site(self) -> Site | None:
        """The public site; None if `base_url` is empty or invalid.

        Raises:
            InvalidSettingError: the name has letters beyond ASCII, and the extra "study" is not installed.
        """
        try:
            return site_of(self.base_url)
        except ImportError as error:
            raise InvalidSettingError(INSTALL) from error

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host) and not self.base_url and not self.behind_proxy

    def address(self, study: str) -> str:
        """Return the address of a study."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        base = self.base_url.strip().rstrip("/") or f"http://{host}:{self.port}"
        return f"{base}{self.path(study)}"

    def path(self, *parts: str) -> str:
        """Return the path of a URL on this server."""
        return "/".join([self.root_path.rstrip("/"), *parts])

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names that requests may use."""
        if self.site:
            return (self.site.host, *LOCAL)
        return (*LOCAL, host_name(self.host) or "") if self.is_local else ("*",)


def is_loopback(host: str) -> bool:
    """Return whether an address is a loopback address, which only this machine can reach.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def app_of(studies: Sequence[Study], serving: Serving) -> ASGIApp:
    """Create the web application for studies.

    Raises:
        InvalidSettingError: the extra "study" is not installed, or two studies have the same name.
    """
    names = [study.name for study in studies]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidSettingError(
            f"Two studies are called '{twice[0]}', but the name is part of the address: serve only one of them."
        )
    try:
        from .web.app import make_app
    except ImportError as error:
        raise InvalidSettingError(INSTALL) from error
    return make_app(studies, serving)


def listening(serving: Serving) -> socket.socket:
    """Open a socket that listens at the host and port of the service.

    Raises:
        StoreError: the port is in use, or this machine does not have the address.
    """
    family = socket.AF_INET6 if ":" in serving.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # allows a restart right after an exit
        found.bind((serving.host, serving.port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            help_ = "another program listens there; stop it, or choose another --port"
        else:
            help_ = f"{(error.strerror or str(error)).lower()}; choose another --host or --port"
        raise StoreError(f"The service cannot listen at {serving.host}, port {serving.port}: {help_}.") from error
    return found


def serve(app: ASGIApp, serving: Serving, at: socket.socket) -> None:
    """Serve an application until the process is interrupted.

    Requests are not logged: people's addresses are private, and page addresses give access to games.

    Args:
        app: web application from `app_of`.
        serving: network settings.
        at: socket from `listening`; it is closed at the end.
    """
    import uvicorn

    logging.getLogger("icy").setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        proxy_headers=serving.behind_proxy,
        access_log=False,
        server_header=False,
        log_level="warning",
        timeout_graceful_shutdown=5,
    )
    with contextlib.suppress(KeyboardInterrupt):  # the usual way to stop a service
        uvicorn.Server(config).run(sockets=[at])
