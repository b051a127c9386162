"""Addresses of servers, and proxies."""

import os
import re
import urllib.request
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from icy.core.errors import InvalidSettingError, quoted

ROUTE = "/chat/completions"
VERSION = r"(?:api-version=[\w.-]+)?"  # the query string that Azure requires
NO_SECRET = "The URL of a server must not hold a password or a query; pass the key's variable with --key-variable."


class Address(NamedTuple):
    """Address of a model on a server.

    Attributes:
        url: the server's URL as the user wrote it, without the route to chat completions.
        model: the server's name for the model.
        target: the URL of requests.
    """

    url: str
    model: str
    target: str


class Proxy(NamedTuple):
    """A proxy from the environment or from the system's settings.

    Attributes:
        url: the proxy's URL, without name and password.
        source: where the proxy is set, such as "HTTP_PROXY".
        auth: name and password, if the proxy has them.
    """

    url: str
    source: str
    auth: tuple[str, str] | None


def read_address(name: str) -> Address:
    """Parse `URL#MODEL`.

    Raises:
        InvalidSettingError: the name is not of the form URL#MODEL, or the URL may include a secret.
    """
    url, _, model = name.partition("#")
    start, _, query = url.partition("?")
    if "@" in start.partition("//")[2].partition("/")[0] or not re.fullmatch(VERSION, query):
        raise InvalidSettingError(NO_SECRET)
    start = start.rstrip("/").removesuffix(ROUTE)
    if fault := _fault(start) or ("" if model else "no model after #"):
        raise InvalidSettingError(
            f"A model behind a server is named by URL#MODEL, as in http://localhost:8000/v1#llama; {quoted(name)} has "
            f"{fault}."
        )
    tail = f"?{query}" if query else ""
    return Address(start + tail, model, start + ROUTE + tail)


def _fault(url: str) -> str:
    """Describe the fault of an http URL; "" if it has none."""
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        return "a blank in its URL"
    if not re.match("https?:(//|$)", url, re.IGNORECASE):
        return "no http:// or https:// at its start"
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
    except ValueError:
        return "a host that no server can have"
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        return "a port that is not a number from 1 to 65535"
    if not host:
        return "no host"
    return "" if "[" in parts.netloc or re.fullmatch(r"[\w.-]+", host, re.ASCII) else "a host that no server can have"


def proxy_to(target: str) -> Proxy | None:
    """Return the proxy for requests to a URL, or None.

    The environment variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY or the system's settings determine it.
    httpx would read them too, but its errors do not name the proxy and the variable.

    Raises:
        InvalidSettingError: the proxy is not an http proxy, or its address is wrong.
    """
    parts, known = urlsplit(target), urllib.request.getproxies()
    named = next((name for name in (parts.scheme, "all") if known.get(name)), None)
    if named is None or urllib.request.proxy_bypass(parts.netloc):
        return None
    variables = (f"{named}_proxy", f"{named}_proxy".upper())
    source = next((one for one in variables if os.environ.get(one) == known[named]), "the settings of the system")
    scheme, _, rest = (known[named] if "://" in known[named] else f"http://{known[named]}").partition("://")
    login, mark, host = rest.rpartition("@")
    url = f"{scheme}://{host}".rstrip("/")
    if fault := _fault(url):
        raise InvalidSettingError(
            f"The proxy {quoted(url)} of {source} has {fault}. Correct {source}, or list {parts.hostname} in NO_PROXY."
        )
    user, _, password = login.partition(":")
    return Proxy(url, source, (unquote(user), unquote(password)) if mark else None)
