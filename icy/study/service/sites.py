"""Normalized names of sites, so that different spellings of an address compare as equal."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

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
