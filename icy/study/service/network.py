"""Settings of the web service, its rate limits, and normalized addresses, so that spellings compare as equal."""

from __future__ import annotations

import ipaddress
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, quoted

INSTALL = 'The service needs the packages of the extra "study": pip install "icy-toolkit[study]".'
MOST_KEPT = 10_000  # maximum number of buckets of a rate limit
LOCAL = ("localhost", "127.0.0.1", "::1")

# -- addresses ---------------------------------------------------------------------------------------------------------

PORTS = {"http": 80, "https": 443}  # default ports, which browsers omit
LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
NAME = re.compile(rf"{LABEL}(\.{LABEL})*")


@dataclass(frozen=True)
class Site:
    """A site (a browser's origin): scheme, host and port.

    Attributes:
        scheme: "http" or "https".
        host: name of the host, normalized by `host_name`.
        port: port number; the scheme's default port if the address has none.
    """

    scheme: str
    host: str
    port: int


def host_name(host: str) -> str | None:
    """Normalize a host name: lower case, IDNA, without a final dot; None for an invalid name.

    An IPv6 address is returned without brackets, in its shortest form.

    Raises:
        ImportError: the name has letters beyond ASCII, and the package idna is not installed.

    Example:
        >>> host_name("Study.Example."), host_name("müller.example"), host_name("[2001:DB8:0::1]"), host_name("a..b")
        ('study.example', 'xn--mller-kva.example', '2001:db8::1', None)
    """
    text = host.lower().removesuffix(".")
    try:
        return str(ipaddress.ip_address(text.removeprefix("[").removesuffix("]")))
    except ValueError:
        pass
    if not text.isascii():
        import idna

        try:
            text = idna.encode(text, uts46=True).decode().removesuffix(".")  # as browsers do
        except idna.IDNAError:
            return None
    return text if NAME.fullmatch(text) and len(text) <= 253 else None


def site_of(address: str) -> Site | None:
    """Return the site of an address; None if it is not an http or https address.

    Example:
        >>> site_of("https://study.example:443/a") == site_of("HTTPS://STUDY.EXAMPLE./b")
        True
        >>> site_of("null"), site_of("https://study.example:port")
        (None, None)
    """
    try:
        parts = urlsplit(address.strip())
        host, port = host_name(parts.hostname or ""), parts.port
    except ValueError:  # a port that is not a number, or a bracket that is not closed
        return None
    if parts.scheme not in PORTS or host is None or "@" in parts.netloc:
        return None
    return Site(parts.scheme, host, PORTS[parts.scheme] if port is None else port)


# -- settings ----------------------------------------------------------------------------------------------------------


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
