"""OpenAI-compatible servers as text models: vLLM, llama.cpp, Ollama, TGI, OpenAI and others.

Requests use Python's own `urllib`, in threads. It uses the proxies and certificates of the system, and posting a few
kilobytes and waiting for seconds needs no more. The client of the package openai brings 13 other packages (46 MB in
all) and does not help with malformed completions: it returns null messages, HTML pages and streams unchanged, retries
wrong addresses, and does not name a proxy that fails.
"""

import contextlib
import email.utils
import http.client
import itertools
import json
import os
import random
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from icy.core.checks import parse_whole
from icy.core.errors import IcyError, InvalidSettingError, quoted
from icy.core.text import duration, listed
from icy.version import __version__

from .address import ROUTE, proxy_to, read_address
from .completion import LARGEST_ANSWER, MOST_QUOTED, NoChoice, decoded, described, read_completion, words_of
from .prompt import parse
from .requests import CUT, Choices, TextReply, TextRequest
from .text_model import TextModel, TextSettings, in_threads

BUSY = (408, 409, 425, 429)  # HTTP statuses to retry, in addition to all from 500
LONGEST_WAIT = 300.0  # largest number of seconds between two tries, even if a server requests more
MOST_ANSWERS = 10_000  # largest number of answers that a request lists
FILTERED = "content_filter"  # the finish reason, and Azure's code for a refusal
LISTING = 5.0  # largest number of seconds to wait for the list of models
MOST_NAMES = 8  # number of models that an error lists
LONG = re.compile(  # words of servers about prompts that exceed the model's context
    r"context.{0,20}(length|size|window|limit|overflow)|max_model_len|reduce the length|"
    r"max_tokens must be at least 1\b|"
    r"(prompt|inputs?|messages?|request|sequence|tokens?( count)?)\b.{0,60}(too (long|large|many)|longer than|exceed|"
    r"less than \d+ tokens|must be <=|at most \d+ \w* ?tokens)|"
    r"too (many|long|large).{0,40}(tokens|prompt|input|context)",
    re.IGNORECASE | re.DOTALL,
)
TOO_LONG = (
    " The prompt and --max-tokens together must fit the model's context: start the server with a longer context, or "
    "choose a lower --max-tokens or smaller games. --dry-run prints the longest prompt."
)
NO_MODEL = re.compile(  # words of servers about models that they do not have
    r"\b(model|deployment)s?\b([^.\n]|\.(?!\s)){0,100}(not (be )?found|not exist|n't exist|not a valid|not loaded|"
    r"not available|not (been )?deployed)|(invalid|unknown|no such) (model|deployment)\b|not a valid model|"
    r"model_?not_?found|deployment_?not_?found|no models? (is |are )?loaded|no endpoints found|unable to access model",
    re.IGNORECASE,
)
CODE = re.compile(r'"(?:code|type)"\s*:\s*"(\w+)"')
MODEL = re.compile(r"(?<![/\w])model\b", re.IGNORECASE)
API_KEY, COMPLETION_TOKENS = "api-key", "max_completion_tokens"  # request fields that some servers require


class ServerError(IcyError):
    """A server cannot be reached, refuses a request, or fails on every try."""


class _Busy(Exception):
    """A try failed and may be repeated after `wait` seconds, if the server states a number."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.wait = wait


class _Empty(_Busy):
    """The server returned a completion without choices."""


class _Filtered(Exception):
    """The server's content filter refuses the prompt, so a retry is useless."""


class _Differently(Exception):
    """The server refused a request that may be repeated with other fields."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that does not follow redirects, because they would send the key to another server."""

    def http_error_302(self, *refused: object) -> None:  # type: ignore[override]
        """Return None, so that the status is an error."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]


class HttpModel(TextModel):
    """A model behind an OpenAI-compatible server.

    Args:
        name: `URL#MODEL`: the server's URL, as in http://localhost:8000/v1, and the model's name there.
        settings: settings of sampling and requests.
    """

    reads_text = True
    remote = True

    def __init__(self, name: str, settings: TextSettings) -> None:
        self.settings = settings
        self.url, self.model, self._target = read_address(name)
        self.name = name
        self._reached = False
        self._required_fields: frozenset[str] = frozenset()  # the fields above that this server requires
        self._counting = threading.Lock()
        self._proxy = proxy_to(self._target)
        proxies = {urlsplit(self._target).scheme: self._proxy.url} if self._proxy else {}
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler(proxies))
        self._key()  # report a missing key before the first game

    def identity(self) -> dict[str, object]:
        """Return the server, the model and all fields of a request except the prompt and the key."""
        chosen = self.settings
        return {
            "model": self.model,
            "server": self.url,
            **chosen.sampling,
            "constrain": chosen.constrain,
            "body": dict(chosen.body),
        }

    def description(self) -> dict[str, object]:
        """Return the model's entry in the server's list of models, without fields that change; {} if unknown."""
        for wait in (0.0, *(min(self.settings.backoff, 1.0),) * min(self.settings.retries, 2)):
            time.sleep(wait)
            with contextlib.suppress(_Busy):  # otherwise the first request reports the failure
                return described(self._listing(), self.model)[0]
        return {}

    def _listing(self) -> str:
        """Return the server's list of models, as JSON; "" if the server does not have one.

        Raises:
            _Busy: the request may be repeated.
        """
        address = "/models".join(self._target.rsplit(ROUTE, 1))
        get = urllib.request.Request(address, headers=self._headers(self._required_fields))
        try:
            status, _, text = self._fetched(get, min(self.settings.timeout, LISTING))
        except ServerError:
            return ""
        if status in BUSY or (status >= 500 and status != 501):  # not implemented
            raise _Busy(f"answers with status {status}")
        return self._without_key(text) if status < 300 else ""

    def answer(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TextReply]]:
        """Yield replies as they arrive, with `concurrency` requests at once."""
        return in_threads(self._persistently, requests, self.settings.concurrency)

    def reply(self, request: TextRequest) -> TextReply:
        """Answer one request."""
        return self._persistently(request, threading.Event())

    def body(self, request: TextRequest) -> dict[str, object]:
        """Return the JSON body of a request."""
        found: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": "user", "content": request.prompt}],
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            **self.settings.sampling,
            **constraint(self.settings.constrain, request.choices),
            **self.settings.body,
        }
        if COMPLETION_TOKENS in self._required_fields:
            found.setdefault(COMPLETION_TOKENS, found.pop("max_tokens", None))
        return {name: value for name, value in found.items() if value is not None}

    # -- one request ---------------------------------------------------------------------------------------------------

    def _persistently(self, request: TextRequest, ending: threading.Event) -> TextReply:
        """Send a request until there is an answer, and wait longer after each failure.

        Raises:
            ServerError: the server fails on every try, or refuses the request.
        """
        chance = random.Random(request.seed)  # spreads the next tries of requests that failed together
        tries = 1
        while True:
            try:
                found = self._once(request)
            except _Differently:
                continue
            except _Filtered:
                return TextReply(None, finish=FILTERED)
            except _Busy as failure:
                if tries > self.settings.retries or ending.is_set():
                    if isinstance(failure, _Empty) and self._reached and not ending.is_set():
                        return TextReply(None)  # only this prompt is blocked
                    raise ServerError(f"{self._subject()} {failure}, {_times(tries)}.") from None
                waits = self.settings.backoff * 2 ** (tries - 1) * (0.5 + chance.random() / 2)
                with self._counting:
                    self.retried += 1
                ending.wait(min(LONGEST_WAIT, max(waits, failure.wait or 0.0)))
                tries += 1
            else:
                self._reached = True
                return found

    def _once(self, request: TextRequest) -> TextReply:
        """Send a request once.

        Raises:
            _Busy: the request may be repeated.
            _Differently: the request may be repeated at once, in another form.
            _Filtered: the server refuses only this prompt.
            ServerError: the request must not be repeated.
        """
        required_fields, body = self._required_fields, self.body(request)
        post = urllib.request.Request(self._target, json.dumps(body).encode(), self._headers(required_fields))
        status, headers, text = self._fetched(post, self.settings.timeout)
        if not 200 <= status < 300:
            raise self._refusal(status, headers, text, required_fields, body)
        try:
            content, finish, usage, *names = read_completion(text)
        except ValueError as fault:
            kind = _Empty if isinstance(fault, NoChoice) else _Busy
            raise kind(
                f"does not answer with a completion but with {quoted(self._without_key(text)[:MOST_QUOTED])}"
            ) from None
        read = parse(self._without_key(content), cut=finish == CUT)
        model, fingerprint = (name and self._without_key(name) for name in names)
        return replace(read, usage=usage, finish=finish, model=model, fingerprint=fingerprint)

    def _headers(self, required_fields: frozenset[str]) -> dict[str, str]:
        """Return the headers of a request."""
        headers = {"Content-Type": "application/json", "User-Agent": f"icy/{__version__}"}
        if key := self._key():
            headers |= {API_KEY: key} if API_KEY in required_fields else {"Authorization": f"Bearer {key}"}
        return headers

    def _fetched(self, request: urllib.request.Request, seconds: float) -> tuple[int, Message, str]:
        """Send a request, and return status, headers and text of the response.

        The limit of time holds for all steps together: the name of the host, connection, proxy, headers and text.

        Raises:
            _Busy: the request may be repeated.
            ServerError: the server cannot be reached.
        """
        deadline = time.monotonic() + seconds

        def fetch(_: None, ending: threading.Event) -> tuple[int, Message, str]:
            try:
                answer = self._opener.open(request, timeout=seconds)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                try:
                    return answer.code, answer.headers, _read(answer, deadline)
                except (OSError, http.client.HTTPException, _Busy):
                    if answer.code < 300 or time.monotonic() > deadline:
                        raise
                    return answer.code, answer.headers, ""

        try:
            ((_, found),) = in_threads(fetch, [None], 1, seconds)
            return found
        except urllib.error.URLError as error:
            raise self._unreached(error.reason) from None
        except TimeoutError:
            raise _Busy(f"gives no answer within {duration(seconds)}") from None
        except (http.client.HTTPException, OSError) as error:
            raise _Busy(f"cuts the connection ({type(error).__name__})") from None

    def _unreached(self, reason: object) -> Exception:
        """Return the error for a server that cannot be reached. A wrong address is not retried."""
        if isinstance(reason, TimeoutError):
            return _Busy(f"gives no answer within {duration(self.settings.timeout)}")
        why = getattr(reason, "strerror", None) or reason
        said, advice = f"cannot be reached ({why})", ""
        if self._proxy is not None:
            said = f"cannot be reached: the proxy fails ({why})"
            advice = f" Correct {self._proxy.source}, or list {urlsplit(self._target).hostname} in NO_PROXY."
        cut = isinstance(reason, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError))
        return _Busy(said) if self._reached or cut else ServerError(f"{self._subject()} {said}.{advice}")

    def _subject(self) -> str:
        """Return the server, and the proxy in front of it, as the subject of a sentence."""
        through = f" (through the proxy {self._proxy.display_url} of {self._proxy.source})" if self._proxy else ""
        return f"{self.url}{through}"

    def _refusal(
        self, status: int, headers: Message, text: str, required_fields: frozenset[str], body: dict[str, object]
    ) -> Exception:
        """Return the error for a status other than success. The request included `required_fields`."""
        wanted = {API_KEY} if status == 401 and self._key() else set()
        if status in (400, 422) and COMPLETION_TOKENS in text:
            wanted = {COMPLETION_TOKENS}
        if status == 400 and f'"{FILTERED}"' in text:
            return _Filtered()
        if wanted - required_fields:
            with self._counting:
                self._required_fields |= wanted
            return _Differently()
        said = self._without_key(words_of(self._without_key(text))).rstrip(".")
        what = f"answers with status {status}{f' ({said})' if said else ''}"
        is_long = status in (400, 413, 422, 500) and LONG.search(said)
        if status in BUSY or (status >= 500 and not is_long):
            return _Busy(what, _retry_after(headers.get("Retry-After")))
        advice = TOO_LONG if is_long else self._advice(status, f"{said} {' '.join(CODE.findall(text))}", body)
        return ServerError(f"{self._subject()} {what}.{advice}")

    def _advice(self, status: int, said: str, body: dict[str, object]) -> str:
        """Return a sentence of advice for a status and the server's own words, or ""."""
        if status == 407 and self._proxy is not None:
            return f" The proxy asks for a password: {self._proxy.source}=http://NAME:PASSWORD@HOST:PORT."
        if status in (401, 403):
            where = self.settings.key_variable
            return f" The key comes from {where}." if where else " Name the variable with its key by --key-variable."
        if 300 <= status < 400:
            return " Use the URL that it redirects to."
        if status in (400, 404, 422) and (NO_MODEL.search(said) or (status == 404 and MODEL.search(said))):
            return self._models()
        if status == 404:
            return " The URL ends before /chat/completions, as in http://localhost:8000/v1#MODEL."
        if status not in (400, 422):
            return ""
        constrain = self.settings.constrain
        own = constraint(constrain, {"decision": ["0"]})
        named = [name for name in body if name not in own and re.search(rf"\b{re.escape(name)}\b", said)]
        if named := [name for name in named if name not in ("model", "messages")]:
            return f" --body {named[0]}=null removes this field, and --body {named[0]}=VALUE changes it."
        if constrain != "none":
            return (
                f" If it does not know answers constrained by {constrain}, choose another --constrain, or none. --body "
                "NAME=null removes another field that it does not know."
            )
        return " --body NAME=null removes a field that it does not know."

    def _models(self) -> str:
        """Return advice on a model that the server does not have."""
        known: list[str] = []
        with contextlib.suppress(_Busy):
            known = described(self._listing(), self.model)[1]
        names = f"The server's models: {listed(known[:MOST_NAMES])}" if known else "Ask the server for its models"
        more = f", and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
        return f" The name after # must be a model of the server, not {quoted(self.model)}. {names}{more}."

    # -- the key -------------------------------------------------------------------------------------------------------

    def _key(self) -> str:
        """Read the key from the environment. It is read each time, so that it is not stored."""
        variable = self.settings.key_variable
        if variable is None:
            return ""
        key = os.environ.get(variable, "").strip()
        if not key:
            raise InvalidSettingError(f"The environment variable {variable} is not set, or is empty.")
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise InvalidSettingError(
                f"The environment variable {variable} does not hold a key: its value has blanks, or characters "
                "that cannot be in a key."
            )
        return key

    def _without_key(self, text: str) -> str:
        """Remove the key from a text, because a server may repeat it."""
        key = self._key()
        return text.replace(key, "(the key)") if key else text


# -- requests ----------------------------------------------------------------------------------------------------------


def constraint(how: str, choices: Choices) -> dict[str, object]:
    """Return the request fields that constrain the answer to the choices.

    Raises:
        InvalidSettingError: there are too many answers to list.
    """
    if how == "json-schema":
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema(choices)},
            }
        }
    if how == "structured-outputs":
        return {"structured_outputs": {"choice": all_answers(choices)}}
    if how == "guided-choice":
        return {"guided_choice": all_answers(choices)}
    return {"grammar": grammar(choices)} if how == "grammar" else {}


def schema(choices: Choices) -> dict[str, object]:
    """Return the JSON schema of an answer."""
    parts: dict[str, object] = {}
    if "decision" in choices:
        parts["decision"] = {"type": "integer", "enum": [int(one) for one in choices["decision"]]}
    if "message" in choices:
        tokens, length = choices["message"][0], len(choices["message"])
        items = {"type": "integer", "enum": [int(one) for one in tokens]}
        parts["message"] = {"type": "array", "items": items, "minItems": length, "maxItems": length}
    return {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}


def all_answers(choices: Choices) -> list[str]:
    """Return every possible answer, as JSON.

    Raises:
        InvalidSettingError: there are too many answers.
    """
    options: dict[str, Sequence[object]] = {}
    if "decision" in choices:
        options["decision"] = [int(one) for one in choices["decision"]]
    if "message" in choices:
        each = [[int(one) for one in tokens] for tokens in choices["message"]]
        count = len(options.get("decision", [0]))
        for tokens in each:
            count *= len(tokens)
        if count > MOST_ANSWERS:
            raise InvalidSettingError(
                f"A list of all {count:,} answers is too long (the limit is {MOST_ANSWERS:,}); take "
                "--constrain json-schema or grammar."
            )
        options["message"] = [list(one) for one in itertools.product(*each)]
    return [json.dumps(dict(zip(options, one, strict=True))) for one in itertools.product(*options.values())]


def grammar(choices: Choices) -> str:
    """Return the grammar of an answer, in llama.cpp's GBNF.

    Example:
        >>> print(grammar({"decision": ["0", "1"]}))
        root ::= "{" "\\"decision\\": " ("0" | "1") "}"
    """
    parts = []
    if "decision" in choices:
        parts.append(rf'"\"decision\": " {_either(choices["decision"])}')
    if "message" in choices:
        tokens = ' ", " '.join(_either(one) for one in choices["message"])
        parts.append(rf'"\"message\": [" {tokens} "]"')
    inner = ' ", " '.join(parts)
    return f'root ::= "{{" {inner} "}}"'


def _either(options: Sequence[str]) -> str:
    quotes = [f'"{one}"' for one in options]
    return f"({' | '.join(quotes)})"


# -- responses ---------------------------------------------------------------------------------------------------------


def _read(answer: Any, deadline: float) -> str:
    """Read a response to its end, and return its text.

    Raises:
        TimeoutError: reading takes longer than the deadline, although data arrives.
        _Busy: the response is too large or damaged, or ends early.
    """
    parts, size = [], 0
    chunked = answer.headers.get("Transfer-Encoding") is not None  # this header has precedence over the length
    length = None if chunked else parse_whole(answer.headers.get("Content-Length") or "")
    while part := answer.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > LARGEST_ANSWER:
            raise _Busy(f"answers with more than {LARGEST_ANSWER:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    if length is not None and size < length:
        raise http.client.IncompleteRead(b"")
    try:
        return decoded(b"".join(parts), answer.headers.get("Content-Encoding") or "")
    except ValueError as fault:
        raise _Busy(f"answers with a compressed text that {fault}") from None


def _retry_after(given: str | None) -> float | None:
    """Parse the header Retry-After, a number or a date, to seconds."""
    if given is None:
        return None
    try:
        return max(0.0, float(given))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(given).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None


def _times(tries: int) -> str:
    return "once" if tries == 1 else f"{tries} times"
