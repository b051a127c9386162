"""Running the service: one process, on this machine alone unless told otherwise."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, StoreError, quoted

from .sites import Site, host_name, site_of
from .studies import Study

if TYPE_CHECKING:
    from starlette.types import ASGIApp

INSTALL = 'The service needs the packages of the extra "study": pip install "icy-toolkit[study]".'
BACKLOG = 2048  # connections that wait to be taken
LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Where the service listens.

    Attributes:
        host: address of this machine to listen at.
        port: likewise.
        base_url: address that people use.
        root_path: part of it before the names of studies.
        behind_proxy: whether a proxy on this machine tells who asks, and by what scheme.
        researcher: whether there is a page for the researcher.
        password: of that page.

    Raises:
        InvalidSettingError: values that are not accepted, or a page for the researcher that others could see.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    base_url: str = ""
    root_path: str = ""
    behind_proxy: bool = False
    researcher: bool = False
    password: str = ""

    def __post_init__(self) -> None:
        whole_number("port", self.port, 1, 65_535)
        after = urlsplit(self.base_url.strip()) if self.site else None
        if self.base_url and (after is None or after.path.strip("/") or after.query or after.fragment):
            raise InvalidSettingError(
                f"The address that people use is like https://study.example, not {quoted(self.base_url)}; "
                "what follows the name is --root-path."
            )
        if self.root_path and not self.root_path.startswith("/"):
            raise InvalidSettingError(f"The root path begins with a slash, as in /spy, not {quoted(self.root_path)}.")
        if self.researcher and not self.password and not self.is_local:
            raise InvalidSettingError(
                "Others can reach this service, so the page for the researcher needs a password: set the variable "
                "ICY_STUDY_PASSWORD."
            )

    @cached_property
    def site(self) -> Site | None:
        """The site that people use; None without `base_url`, and for an invalid one.

        Raises:
            InvalidSettingError: its name has letters beyond ASCII, and the extra "study" is not installed.
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
        return f"{base}{self.root_path.rstrip('/')}/{study}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names under which it may be reached."""
        if self.site:
            return (self.site.host, *LOCAL)
        return (*LOCAL, host_name(self.host) or "") if self.is_local else ("*",)


def is_loopback(host: str) -> bool:
    """Return whether an address is one that only this machine can reach.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def app_of(studies: Sequence[Study], serving: Serving) -> ASGIApp:
    """Return the application of some studies.

    Raises:
        InvalidSettingError: the extra "study" is not installed, or two studies have one name.
    """
    names = [study.name for study in studies]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidSettingError(
            f"Two studies are called '{twice[0]}', which is part of their addresses: serve one of them."
        )
    try:
        from .web.app import make_app
        from .web.desk import Web
    except ImportError as error:
        raise InvalidSettingError(INSTALL) from error
    web = Web(
        base_url=serving.base_url,
        root_path=serving.root_path,
        researcher=serving.researcher,
        password=serving.password,
    )
    return make_app(studies, web, serving.hosts)


def listening(serving: Serving) -> socket.socket:
    """Return a socket that listens where the service is to be.

    Raises:
        StoreError: something else listens there, or this machine has no such address.
    """
    family = socket.AF_INET6 if ":" in serving.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio leaves TCP_NODELAY off
    try:
        if os.name == "posix":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # for a start right after an end
        found.bind((serving.host, serving.port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            help_ = "something else listens there; end it, or choose another --port"
        else:
            help_ = f"{(error.strerror or str(error)).lower()}; choose another --host or --port"
        raise StoreError(f"The service cannot listen at {serving.host}, port {serving.port}: {help_}.") from error
    return found


def serve(app: ASGIApp, serving: Serving, at: socket.socket) -> None:
    """Serve an application until the process is told to end.

    No addresses of people are logged; those of pages would let others into their games.

    Args:
        app: of `app_of`.
        serving: how it is reached.
        at: what listens, of `listening`; it is closed at the end.
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
    with contextlib.suppress(KeyboardInterrupt):  # which is how a service ends
        uvicorn.Server(config).run(sockets=[at])
