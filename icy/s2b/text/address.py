"""Addresses of servers, and proxies."""

import ipaddress
import os
import re
import urllib.request
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from icy.core.errors import InvalidSettingError, quoted

ROUTE = "/chat/completions"
VERSION = r"(?:api-version=[\w.-]+)?"  # the query string that Azure requires
NO_SECRET = "The URL of a server must not hold a password or a query; pass the key's variable with --key-variable."


class Address(NamedTuple):
    """Address of a model on a server.

    Attributes:
        url: the server's URL as the user wrote it, without the route to chat completions.
        model: the server's name for the model.
        target: the URL of requests, in ASCII.
    """

    url: str
    model: str
    target: str


class Proxy(NamedTuple):
    """A proxy from the environment or from the system's settings.

    Attributes:
        url: the proxy's URL, which may include a password.
        display_url: the URL without a password.
        source: where the proxy is set, such as "HTTP_PROXY".
    """

    url: str
    display_url: str
    source: str


def read_address(name: str) -> Address:
    """Parse `URL#MODEL`.

    Raises:
        InvalidSettingError: the name is not of the form URL#MODEL, or the URL may include a secret.
    """
    url, _, model = name.partition("#")
    if "@" in url.partition("//")[2].partition("/")[0]:
        raise InvalidSettingError(NO_SECRET)
    url, mark, query = url.partition("?")
    if not re.fullmatch(VERSION, query):
        raise InvalidSettingError(NO_SECRET)
    url = url.rstrip("/").removesuffix(ROUTE)
    try:
        parts = _split(url)
        if not model:
            raise ValueError("no model after #")
    except ValueError as fault:
        raise InvalidSettingError(
            "A model behind a server is named by URL#MODEL, as in http://localhost:8000/v1#llama; "
            f"{quoted(name)} has {fault}."
        ) from None
    tail = f"{mark}{query}" if query else ""
    path = quote(parts.path, safe="/%:@!$&'()*+,;=~")
    return Address(url + tail, model, f"{parts.scheme}://{_ascii_netloc(parts)}{path}{ROUTE}{tail}")


def _split(url: str) -> SplitResult:
    """Split an http URL.

    Raises:
        ValueError: the URL is wrong; the message describes the fault.
    """
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        raise ValueError("a blank in its URL")
    if not re.match("https?:(//|$)", url, re.IGNORECASE):
        raise ValueError("no http:// or https:// at its start")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("a host that no server can have") from None
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError("a port that is not a number from 1 to 65535")
    if not parts.hostname:
        raise ValueError("no host")
    _ascii_netloc(parts)
    return parts


def _ascii_netloc(parts: SplitResult) -> str:
    """Convert host and port to ASCII.

    Raises:
        ValueError: the host is not a possible host name.
    """
    host = parts.hostname or ""
    try:
        if "[" in parts.netloc:
            ipaddress.IPv6Address(host)
            return parts.netloc
        plain = host.encode("idna").decode()
    except ValueError:
        plain = ""
    if not re.fullmatch(r"[\w.-]+", plain, re.ASCII):
        raise ValueError("a host that no server can have")
    return plain if parts.port is None else f"{plain}:{parts.port}"


def proxy_to(target: str) -> Proxy | None:
    """Return the proxy for requests to a URL, or None.

    The environment variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY or the system's settings determine it.

    Raises:
        InvalidSettingError: the proxy is not an http proxy, or its address is wrong.
    """
    parts, known = urlsplit(target), urllib.request.getproxies()
    named = next((name for name in (parts.scheme, "all") if known.get(name)), None)
    if named is None or urllib.request.proxy_bypass(parts.netloc):
        return None
    variables = (f"{named}_proxy", f"{named}_proxy".upper())
    source = next((one for one in variables if os.environ.get(one) == known[named]), "the settings of the system")
    url = known[named] if "://" in known[named] else f"http://{known[named]}"
    scheme, _, rest = url.partition("://")
    display_url = f"{scheme}://{rest.rpartition('@')[2]}"
    try:
        _split(display_url)
    except ValueError as fault:
        raise InvalidSettingError(
            f"The proxy {quoted(display_url)} of {source} has {fault}. "
            f"Correct {source}, or list {parts.hostname} in NO_PROXY."
        ) from None
    return Proxy(url, display_url.rstrip("/"), source)
