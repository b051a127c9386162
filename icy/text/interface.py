"""Settings of text models, addresses of servers, questions and their answers."""

import os
import re
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeGuard
from urllib.parse import unquote, urlsplit

from icy.core.checks import LARGEST_NUMBER
from icy.core.errors import InvalidSettingError, SurroundingsError, quoted
from icy.core.fields import CheckedFields, setting

# -- settings of text models, questions to them, and their answers -----------------------------------------------------


Constraint = Literal["json-schema", "structured-outputs", "guided-choice", "grammar", "none"]
CUT = "length"  # finish reason of a text that reaches the largest number of tokens


@dataclass(frozen=True, kw_only=True)
class TextSettings(CheckedFields):
    """Settings of a text model: sampling, and requests to a server.

    Attributes:
        temperature: temperature of sampling; 0 takes the likeliest answer.
        top_p: cumulative probability of the tokens to sample from (nucleus sampling).
        top_k: number of tokens to sample from; None for the server's default, as not all servers know this field.
        repetition_penalty: penalty on repeated tokens; None for the server's default.
        constrain: method that constrains answers to the choices.
        body: further fields of a request to a server by name; None removes a field.
        key_variable: environment variable with the server's key; None sends no key.
        timeout: seconds to wait for an answer.
        retries: number of retries if a server is busy, fails, or cuts the connection.
        backoff: seconds before the first retry; doubled for each further retry.
        concurrency: number of requests to a server at once.

    Raises:
        InvalidSettingError, UnknownNameError: settings that are not accepted.
    """

    temperature: float = setting(0.7, "temperature", least=0, most=10, label="")
    top_p: float = setting(0.7, "top_p", least=0, most=1, label="", since="0.3")
    top_k: int | None = setting(None, "top_k", least=1, label="", since="0.3")
    repetition_penalty: float | None = setting(None, "repetition_penalty", above=0, most=10, label="", since="0.3")
    constrain: Constraint = setting("json-schema", "way to constrain answers")
    body: Mapping[str, object] = setting({}, label="", since="0.3")
    key_variable: str | None = setting(None, key="", label="", metavar="NAME")
    timeout: float = setting(120.0, "timeout", least=0, most=86400, key="", label="")
    retries: int = setting(6, "number of retries", least=0, most=100, key="", label="")
    backoff: float = setting(1.0, "backoff", least=0, most=3600, key="", label="")
    concurrency: int = setting(16, "concurrency", most=1000, least=1, key="", label="")

    @property
    def sampling(self) -> dict[str, float]:
        """The sampling settings that are set, by the servers' names."""
        chosen = {name: getattr(self, name) for name in ("temperature", "top_p", "top_k", "repetition_penalty")}
        return {name: value for name, value in chosen.items() if value is not None}


class ServerError(SurroundingsError):
    """A server cannot be reached, refuses a request, or fails on every try."""


class TooLongError(ServerError):
    """A prompt exceeds the model's context."""


class BudgetError(ServerError):
    """A model has got the largest number of requests."""


@dataclass(frozen=True)
class Question:
    """A question to a text model. A subclass may know the possible answers, and read them.

    Attributes:
        prompt: the text to answer, or the messages of a chat, each with "role" and "content".
        max_tokens: largest number of tokens of the answer.
        seed: seed for a model that samples.
        candidates: the possible answers; the answer has their log-probabilities. Servers know only single tokens.
        fields: further fields of the request to a server, by name.
        gap: text between the prompt and the answer, for models that continue a text and know no chat.
        data: the question as data, for models that read no text. It follows from the prompt.
    """

    prompt: str | Sequence[Mapping[str, str]]
    _: KW_ONLY
    max_tokens: int = 1024
    seed: int = 0
    candidates: Sequence[str] = ()
    fields: Mapping[str, object] = field(default_factory=dict)
    gap: str = "\n"
    data: Any = field(default=None, compare=False, repr=False)

    def asked(self) -> dict[str, object]:
        """Return all that an answer depends on except the model, for JSON. It is part of the cache's keys."""
        return {name: getattr(self, name) for name in ("prompt", "candidates", "max_tokens", "seed")}

    def parts(self) -> Sequence[str | Sequence[str]]:
        """Return the form of an answer: texts, and in between lists of options; empty for any text."""
        return [self.candidates] if self.candidates else []

    def constraint(self, how: str) -> Mapping[str, object]:
        """Return the fields of a request that constrain the answer, by one of the ways of `Constraint`."""
        return {}

    def read(self, answer: "Answer", saved: Mapping[str, Any] | None = None) -> Any:
        """Return the reply to this question, as its asker wants it: by default the answer.

        Args:
            answer: the answer of a model.
            saved: the facts of a reply on the disk that was not read from a text; see `CachedModel`.
        """
        return answer


class Usage(NamedTuple):
    """Numbers of tokens that a model read and wrote, by its own count."""

    prompt_tokens: int
    answer_tokens: int


@dataclass(frozen=True)
class Answer:
    """The answer of a text model.

    Attributes:
        text: the text; "" if the message has no text, for example after a refusal or with tool calls.
        finish: the reason why the text ends, if the server reports it: "stop"; "length" for the largest number of
            tokens; "content_filter" and others.
        usage: numbers of tokens read and written, if the server reports them.
        model: name of the model that answered, if the server reports it.
        fingerprint: fingerprint of the model and its settings (`system_fingerprint`), if the server reports it.
        logprobs: log-probabilities of the candidates, if the model reports them.
        cached: whether the answer was loaded from disk.
        marked: the text with special tokens that mark thoughts, if the model has them.
    """

    SAVED: ClassVar[Sequence[str]] = ("raw", "usage", "logprobs", "marked")  # facts on the disk

    text: str = ""
    finish: str | None = None
    usage: Usage | None = None
    model: str | None = None
    fingerprint: str | None = None
    logprobs: Mapping[str, float] = field(default_factory=dict)
    cached: bool = False
    marked: str | None = None

    @property
    def raw(self) -> str:
        """The text."""
        return self.text

    @property
    def cut(self) -> bool:
        """Whether the text was cut at the largest number of tokens."""
        return self.finish == CUT

    @classmethod
    def restored(cls, data: Mapping[str, Any]) -> Self:
        """Return an answer from its facts on the disk.

        Raises:
            ValueError, LookupError, TypeError: the facts do not make an answer.
        """
        usage = None if data["usage"] is None else Usage(*data["usage"])
        if usage is not None and not all(map(is_count, usage)):
            raise ValueError
        logprobs = {str(name): float(value) for name, value in (data.get("logprobs") or {}).items()}
        finish, marked = data.get("finish"), data.get("marked")
        return cls(str(data["raw"]), finish and str(finish), usage, logprobs=logprobs, cached=True, marked=marked)


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is a possible number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_NUMBER


TOKEN = re.compile(r"\d{1,3}|[^\W\d_]+|[^\w\s]|_")


def cost_of_reading(tokens: int, price: float, more: str = "") -> str:
    """Return a sentence on the cost of tokens that a model reads, at the price of a million; "" without a price."""
    return f"Reading them costs about {tokens * price / 1e6:.2f}{more}, in addition to the answers." * bool(price)


def estimated_tokens(text: str) -> int:
    """Estimate the number of tokens in a text: one per word, per group of up to three digits, and per sign.

    Example:
        >>> estimated_tokens("You see: [-0.312 0.540]")
        12
    """
    return sum(1 for _ in TOKEN.finditer(text))


# -- addresses of servers, and proxies ---------------------------------------------------------------------------------


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
