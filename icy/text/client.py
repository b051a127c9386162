"""Client for OpenAI-compatible servers: vLLM, llama.cpp, Ollama, TGI, OpenAI and others.

`Client.ask` sends a question, a prompt or messages, and returns an answer. httpx sends the requests and tenacity
repeats failed ones. The client of the package openai would bring 13 other packages, and it returns malformed
completions unchanged, retries wrong addresses, and does not name a proxy that fails.
"""

import contextlib
import email.utils
import json
import os
import random
import re
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import replace
from typing import TypeVar

from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import duration, listed
from icy.version import __version__

from .answers import MOST_QUOTED, NoChoice, described, read_completion, words_of
from .interface import ROUTE, Answer, Question, ServerError, TextSettings, TooLongError, proxy_to, read_address

try:
    import httpx
    import tenacity
except ImportError as missing:
    raise InvalidSettingError(
        'Text models behind servers need the packages of the extra "text": pip install "icy-toolkit[text]".'
    ) from missing

BUSY = (408, 409, 425, 429)  # HTTP statuses to retry, in addition to all from 500
LONGEST_WAIT = 300.0  # largest number of seconds between two tries, even if a server requests more
LARGEST_ANSWER = 16_000_000  # bytes
GZIP = 31  # zlib's number of this format
FILTERED = "content_filter"  # the finish reason, and Azure's code for a refusal
LISTING = 5.0  # largest number of seconds to wait for the list of models
MOST_NAMES = 8  # number of models that an error lists
MOST_CANDIDATES = 20  # largest number of log-probabilities that servers report
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
    "choose a lower --max-tokens or shorter prompts. --dry-run prints the longest prompt."
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
T = TypeVar("T")
R = TypeVar("R")


class _Busy(Exception):
    """A try failed and may be repeated, after `wait` seconds if the server states a number."""

    def __init__(self, what: str, wait: float = 0.0) -> None:
        super().__init__(what)
        self.wait = wait


class _Empty(_Busy):
    """The server returned a completion without choices."""


class Client:
    """A model behind an OpenAI-compatible server.

    Args:
        name: `URL#MODEL`: the server's URL, as in http://localhost:8000/v1, and the model's name there.
        settings: settings of sampling and requests.

    Raises:
        InvalidSettingError: the name, the key or the proxy is wrong.

    Attributes:
        url: the server's URL.
        model: the model's name.
        retried: number of failed tries that were repeated.
    """

    def __init__(self, name: str, settings: TextSettings | None = None) -> None:
        self.settings = settings or TextSettings()
        self.url, self.model, target = read_address(name)
        self.retried = 0
        try:
            self._target = httpx.URL(target)
            self._proxy = proxy_to(str(self._target))
            proxy = httpx.Proxy(self._proxy.url, auth=self._proxy.auth) if self._proxy else None
        except httpx.InvalidURL as fault:
            raise InvalidSettingError(f"{quoted(self.url)} or its proxy is not a possible address: {fault}.") from None
        certificates = ssl.create_default_context()  # of the system
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=self.settings.concurrency)
        self._http = httpx.Client(
            verify=certificates, proxy=proxy, trust_env=False, timeout=self.settings.timeout, limits=limits
        )
        self._reached = False
        self._required_fields: frozenset[str] = frozenset()  # the fields above that this server requires
        self._lock = threading.Lock()
        self._key()  # report a missing key before the first request

    def identity(self) -> dict[str, object]:
        """Return the server, the model and all fields of a request that are settings, except the key."""
        known = {"model": self.model, "server": self.url, **self.settings.sampling}
        return {**known, "constrain": self.settings.constrain, "body": dict(self.settings.body)}

    def description(self) -> dict[str, object]:
        """Return the model's entry in the server's list of models, without fields that change; {} if unknown."""
        return described(self._listing(retries=min(self.settings.retries, 2)), self.model)[0]

    def ask(self, question: Question) -> Answer:
        """Answer one question.

        Raises:
            ServerError: the server fails on every try, or refuses the question.
        """
        ((_, answer),) = self.ask_all([question])
        return answer

    def ask_all(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        """Yield the index of each question with its answer as answers arrive, with `concurrency` requests at once.

        Raises:
            ServerError: as for `ask`. Answers to running requests are yielded first.
        """
        return in_threads(self._persistently, questions, self.settings.concurrency)

    # -- one request ---------------------------------------------------------------------------------------------------

    def _persistently(self, question: Question, ending: threading.Event) -> Answer:
        """Send a question until there is an answer, and wait longer after each failure.

        Raises:
            ServerError: the server fails on every try, or refuses the question.
        """
        spread = 0.5 + random.Random(question.seed).random() / 2  # of the next tries of requests that failed together
        usual = tenacity.wait_exponential(self.settings.backoff * spread)

        def wait(state: tenacity.RetryCallState) -> float:
            failure = state.outcome and state.outcome.exception()
            return min(LONGEST_WAIT, max(usual(state), getattr(failure, "wait", 0.0)))

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Busy),
            stop=tenacity.stop_after_attempt(self.settings.retries + 1) | tenacity.stop_when_event_set(ending),
            wait=wait,
            sleep=tenacity.sleep_using_event(ending),
            before_sleep=self._count_retry,
            reraise=True,
        )
        try:
            answer = retrying(self._once, question)
        except _Busy as failure:
            if isinstance(failure, _Empty) and self._reached and not ending.is_set():
                return Answer()  # only this prompt is blocked
            tries = retrying.statistics["attempt_number"]
            raise ServerError(f"{self._subject()} {failure}, {'once' if tries == 1 else f'{tries} times'}.") from None
        self._reached = True
        return answer

    def _count_retry(self, state: tenacity.RetryCallState) -> None:
        with self._lock:
            self.retried += 1

    def _once(self, question: Question) -> Answer:
        """Send a question once; again at once if the server requires other fields.

        Raises:
            _Busy: the request may be repeated.
            ServerError: the request must not be repeated.
        """
        required_fields, body = self._required_fields, self._body(question)
        status, headers, text = self._fetched(self._target, self.settings.timeout, body)
        if status == 400 and f'"{FILTERED}"' in text:  # which refuses only this prompt
            return Answer(finish=FILTERED)
        if status >= 300:
            wanted = {API_KEY} if status == 401 and self._key() else set()
            if status in (400, 422) and COMPLETION_TOKENS in text:
                wanted = {COMPLETION_TOKENS}
            if wanted - required_fields:
                self._required_fields |= wanted
                return self._once(question)
            raise self._refusal(status, headers, text, question, body)
        try:
            answer = read_completion(text)
        except ValueError as fault:
            kind = _Empty if isinstance(fault, NoChoice) else _Busy
            said = quoted(self._without_key(text)[:MOST_QUOTED])
            raise kind(f"does not answer with a completion but with {said}") from None
        clean = self._without_key
        return replace(
            answer,
            text=clean(answer.text),
            model=answer.model and clean(answer.model),
            fingerprint=answer.fingerprint and clean(answer.fingerprint),
            logprobs={name: value for name, value in answer.logprobs.items() if name in question.candidates},
        )

    def _body(self, question: Question) -> dict[str, object]:
        """Return the JSON body of a request."""
        prompt = question.prompt
        found: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt),
            "max_tokens": question.max_tokens,
            "seed": question.seed,
            **self.settings.sampling,
            **question.fields,
            **({"logprobs": True, "top_logprobs": MOST_CANDIDATES} if question.candidates else {}),
            **self.settings.body,
        }
        if COMPLETION_TOKENS in self._required_fields:
            found.setdefault(COMPLETION_TOKENS, found.pop("max_tokens", None))
        return {name: value for name, value in found.items() if value is not None}

    def _fetched(
        self, url: httpx.URL, seconds: float, body: dict[str, object] | None = None
    ) -> tuple[int, httpx.Headers, str]:
        """Post a body, or get a page, and return status, headers and text of the response.

        The limit of time holds for all steps together: the name of the host, connection, proxy, headers and text.

        Raises:
            _Busy: the request may be repeated.
            ServerError: the server cannot be reached.
        """

        def fetch(method: str, ending: threading.Event) -> tuple[int, httpx.Headers, str]:
            content, sent = bytearray(), None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": "application/json", "User-Agent": f"icy/{__version__}"}
            if key := self._key():
                headers |= {API_KEY: key} if API_KEY in self._required_fields else {"Authorization": f"Bearer {key}"}
            with self._http.stream(method, url, content=sent, headers=headers) as response:
                for part in response.iter_bytes():
                    content += part
                    if len(content) > LARGEST_ANSWER:
                        raise _Busy(f"answers with more than {LARGEST_ANSWER:,} bytes")
                    if ending.is_set():
                        break
            with contextlib.suppress(zlib.error):  # compressed, although the headers do not say so
                content = bytearray(zlib.decompressobj(GZIP).decompress(content, LARGEST_ANSWER))
            encoding = json.detect_encoding(content)  # UTF-16, or UTF-8 after a byte order mark, for example
            return response.status_code, response.headers, content.decode(encoding, errors="replace")

        try:
            ((_, found),) = in_threads(fetch, ["GET" if body is None else "POST"], 1, seconds)
            return found
        except (TimeoutError, httpx.TimeoutException):
            raise _Busy(f"gives no answer within {duration(seconds)}") from None
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise self._unreached(error) from None
        except httpx.DecodingError:
            raise _Busy("answers with a compressed text that is damaged") from None
        except httpx.RequestError as error:
            raise _Busy(f"cuts the connection ({type(error).__name__})") from None

    # -- errors --------------------------------------------------------------------------------------------------------

    def _subject(self) -> str:
        """Return the server, and the proxy in front of it, as the subject of a sentence."""
        through = f" (through the proxy {self._proxy.url} of {self._proxy.source})" if self._proxy else ""
        return f"{self.url}{through}"

    def _unreached(self, error: httpx.TransportError) -> Exception:
        """Return the error for a server that cannot be reached. A wrong address is not retried."""
        said, advice = f"cannot be reached ({error})", ""
        if self._proxy is not None:
            said = f"cannot be reached: the proxy fails ({error})"
            advice = f" Correct {self._proxy.source}, or list {self._target.host} in NO_PROXY."
        return _Busy(said) if self._reached else ServerError(f"{self._subject()} {said}.{advice}")

    def _refusal(
        self, status: int, headers: httpx.Headers, text: str, question: Question, body: Mapping[str, object]
    ) -> Exception:
        """Return the error for a status other than success."""
        said = self._without_key(words_of(self._without_key(text))).rstrip(".")
        what = f"answers with status {status}{f' ({said})' if said else ''}"
        is_long = status in (400, 413, 422, 500) and LONG.search(said)
        if status in BUSY or (status >= 500 and not is_long):
            return _Busy(what, _retry_after(headers.get("Retry-After", "")))
        if is_long:
            return TooLongError(f"{self._subject()} {what}.{TOO_LONG}")
        advice = self._advice(status, f"{said} {' '.join(CODE.findall(text))}", question, body)
        return ServerError(f"{self._subject()} {what}.{advice}")

    def _advice(self, status: int, said: str, question: Question, body: Mapping[str, object]) -> str:
        """Return a sentence of advice for a status and the server's own words, or ""."""
        if status == 407 and self._proxy is not None:
            return f" The proxy asks for a password: {self._proxy.source}=http://NAME:PASSWORD@HOST:PORT."
        if status in (401, 403):
            where = self.settings.key_variable
            return f" The key comes from {where}." if where else " Name the variable with its key by --key-variable."
        if status < 400:
            return " Use the URL that it redirects to."
        if status in (400, 404, 422) and (NO_MODEL.search(said) or (status == 404 and MODEL.search(said))):
            known = described(self._listing(), self.model)[1]
            names = (
                f"The server's models: {listed(known, most=MOST_NAMES)}." if known else "Ask the server for its models."
            )
            return f" The name after # must be a model of the server, not {quoted(self.model)}. {names}"
        if status == 404:
            return " The URL ends before /chat/completions, as in http://localhost:8000/v1#MODEL."
        if status not in (400, 422):
            return ""
        others = [name for name in body if name not in ("model", "messages", *question.fields)]
        if named := [name for name in others if re.search(rf"\b{re.escape(name)}\b", said)]:
            return f" --body {named[0]}=null removes this field, and --body {named[0]}=VALUE changes it."
        if question.fields:
            return (
                f" If it does not know answers constrained by {self.settings.constrain}, choose another --constrain, "
                "or none. --body NAME=null removes another field that it does not know."
            )
        return " --body NAME=null removes a field that it does not know."

    def _listing(self, retries: int = 0) -> str:
        """Return the server's list of models, as JSON; "" if the server does not have one, or fails."""
        address = self._target.copy_with(path="/models".join(self._target.path.rsplit(ROUTE, 1)))
        seconds = min(self.settings.timeout, LISTING)
        for wait in (0.0, *(min(self.settings.backoff, 1.0),) * retries):
            time.sleep(wait)
            with contextlib.suppress(_Busy, ServerError):  # the first question reports the failure
                status, _, text = self._fetched(address, seconds)
                if status not in BUSY and (status < 500 or status == 501):  # not implemented
                    return self._without_key(text) if status < 300 else ""
        return ""

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


def _retry_after(given: str) -> float:
    """Parse the header Retry-After, a number or a date, to seconds; 0 if it is neither."""
    with contextlib.suppress(ValueError):
        return max(0.0, float(given))
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return max(0.0, email.utils.parsedate_to_datetime(given).timestamp() - time.time())
    return 0.0


def in_threads(
    function: Callable[[T, threading.Event], R], things: Sequence[T], threads: int, seconds: float | None = None
) -> Iterator[tuple[int, R]]:
    """Call a function on things in several threads; yield each thing's index and result as they arrive.

    After the first error, no new calls begin. Results of running calls are yielded, and then the error is raised. The
    threads end with the process, so Ctrl-C does not wait for a server, as it would with an executor.

    Args:
        function: called with a thing and an event, which is set when failed tries should not be repeated.
        things: the arguments of the calls.
        threads: number of calls at once.
        seconds: largest time for all calls; None for no limit.

    Raises:
        TimeoutError: the calls take too long. Running calls are not waited for.
    """
    futures: dict[Future[R], int] = {Future(): place for place in range(len(things))}
    todo, ending = iter(list(futures.items())), threading.Event()

    def work() -> None:
        for future, place in todo:
            if ending.is_set():
                future.cancel()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(things[place], ending))
                except BaseException as error:
                    ending.set()
                    future.set_exception(error)

    for _ in range(min(threads, len(things))):
        threading.Thread(target=work, daemon=True).start()
    errors = []
    try:
        for future in as_completed(futures, seconds):
            if future.cancelled():
                continue
            if error := future.exception():
                errors.append(error)
            else:
                yield futures[future], future.result()
    finally:
        ending.set()
    if errors:
        raise errors[0]
