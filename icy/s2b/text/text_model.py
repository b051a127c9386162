"""Text models: their interface, their settings and their names."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, PluginError, require_known
from icy.core.registry import TEXT_MODEL, Entry, registry
from icy.s2b.players.interface import Seat

from .requests import TextReply, TextRequest

Constraint = Literal["json-schema", "structured-outputs", "guided-choice", "grammar", "none"]
CONSTRAINTS: dict[str, str] = {
    "json-schema": "response_format with a JSON schema (most servers)",
    "structured-outputs": "structured_outputs, a list of all answers (vLLM)",
    "guided-choice": "guided_choice, a list of all answers (vLLM before 0.12)",
    "grammar": "grammar, in GBNF (llama.cpp)",
    "none": "unconstrained",
}
SERVER = "http"  # the text model for URLs
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """Settings of a text model: sampling, and requests to a server.

    Attributes:
        temperature: temperature of sampling; 0 takes the likeliest answer.
        top_p: cumulative probability of the tokens to sample from (nucleus sampling).
        top_k: number of tokens to sample from; None for the server's default, as not all servers know this field.
        repetition_penalty: penalty on repeated tokens; None for the server's default.
        constrain: method that constrains answers to the choices, one of `CONSTRAINTS`.
        body: further fields of a request to a server by name; None removes a field.
        key_variable: environment variable with the server's key; None sends no key.
        timeout: seconds to wait for an answer.
        retries: number of retries if a server is busy, fails, or cuts the connection.
        backoff: seconds before the first retry; doubled for each further retry.
        concurrency: number of requests to a server at once.

    Raises:
        InvalidSettingError, UnknownNameError: settings that are not accepted.
    """

    temperature: float = 0.7
    top_p: float = 0.7
    top_k: int | None = None
    repetition_penalty: float | None = None
    constrain: Constraint = "json-schema"
    body: Mapping[str, object] = field(default_factory=dict)
    key_variable: str | None = None
    timeout: float = 120.0
    retries: int = 6
    backoff: float = 1.0
    concurrency: int = 16

    def __post_init__(self) -> None:
        require_known("way to constrain answers", self.constrain, CONSTRAINTS)
        whole_number("number of retries", self.retries, least=0, most=100)
        whole_number("concurrency", self.concurrency, most=1000)
        if self.top_k is not None:
            whole_number("top_k", self.top_k)
        for name, least, most in (("temperature", 0, 10), ("top_p", 0, 1), ("timeout", 0, 86400), ("backoff", 0, 3600)):
            if not least <= getattr(self, name) <= most:
                raise InvalidSettingError(f"{name} must be a number from {least} to {most}, not {getattr(self, name)}.")
        if self.repetition_penalty is not None and not 0 < self.repetition_penalty <= 10:
            raise InvalidSettingError(
                f"repetition_penalty must be above 0 and up to 10, not {self.repetition_penalty}."
            )

    @property
    def sampling(self) -> dict[str, float]:
        """The sampling settings that are set, by the servers' names."""
        chosen = {name: getattr(self, name) for name in ("temperature", "top_p", "top_k", "repetition_penalty")}
        return {name: value for name, value in chosen.items() if value is not None}


class TextModel:
    """Base class of text models: they map a TextRequest to a TextReply. A subclass implements `reply`.

    Attributes:
        name: name in tables.
        privileged: whether the model gets the game and its latents in `begin`; for tests.
        worth_keeping: whether `icy s2b text` saves its answers on the disk.
        retried: number of failed tries that were repeated.
        reads_text: whether `icy.s2b.text.prompt.parse` reads decision and message from the text of an answer; saved
            answers are then parsed again.
        remote: whether a server answers, which may change its model while its address and name remain.
        cuts_prompts: whether the model was seen to read far fewer tokens than a prompt has.
        registration: name, version and settings of a model that user code registered. It is part of the cache's keys.
        note_answers: called after answers, so that values that the code itself changes do not make another model.
    """

    name = ""
    privileged = False
    worth_keeping = True
    retried = 0
    reads_text = False
    remote = False
    cuts_prompts = False
    registration: Mapping[str, object] = MappingProxyType({})
    note_answers: Callable[[], None] = staticmethod(lambda: None)

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. A model that uses only the prompts need not implement it."""

    def reply(self, request: TextRequest) -> TextReply:
        """Answer one request. The answer must not depend on other requests."""
        raise NotImplementedError

    def answer(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TextReply]]:
        """Yield the index of each request with its reply, in any order, as replies arrive."""
        for place, request in enumerate(requests):
            yield place, self.reply(request)

    def identity(self) -> dict[str, object]:
        """Return all that answers depend on except the request, for JSON. It is part of the cache's keys."""
        return {"model": self.name}

    def description(self) -> dict[str, object]:
        """Return the server's present description of a remote model, for JSON. It is part of the cache's keys."""
        return {}


class FunctionModel(TextModel):
    """A text model that calls a function, which maps a TextRequest to a TextReply."""

    def __init__(self, function: Callable[[TextRequest], TextReply], name: str) -> None:
        self.function, self.name = function, name

    def reply(self, request: TextRequest) -> TextReply:
        """Call the function."""
        return self.function(request)


def text_model(name: str, settings: TextSettings | None = None) -> TextModel:
    """Create a text model by name.

    Args:
        name: `URL#MODEL` for an OpenAI-compatible server, as in "http://localhost:8000/v1#llama"; or the name of a
            registered text model (`icy list text-models`), with its argument after `#`, as in "transformers#FOLDER".
        settings: settings of sampling, and of requests to a server.

    Returns:
        The text model. Its method `reply` answers one TextRequest.

    Raises:
        UnknownNameError: no text model has this name.
        InvalidSettingError: the URL or the name is wrong.
        PluginError: the model's factory does not return a TextModel or a function.

    Example:
        >>> from icy.s2b import TextRequest, text_model
        >>> text_model("scripted-yes").reply(TextRequest("Yes or no?", {"decision": ["0", "1"]})).decision
        0
    """
    chosen = settings or TextSettings()
    called, _, which = name.partition("#")
    if is_address(name):
        called, which = SERVER, name
    return made_of(registry.get(called, TEXT_MODEL), which, chosen)


def is_address(name: str) -> bool:
    """Return whether a name looks like a URL, right or wrong, not like the name of a text model."""
    before = name.partition("#")[0]
    host, slash, _ = before.partition("/")
    return ":" in before or bool(slash and "." in host)


def made_of(entry: Entry, which: str, settings: TextSettings) -> TextModel:
    """Create the text model of a registry entry.

    Args:
        entry: the registry entry.
        which: the text after # in the model's name.
        settings: settings of sampling, and of requests to a server.

    Raises:
        PluginError: the factory does not return a TextModel or a function.
    """
    name = f"{entry.name}#{which}" if which else entry.name
    made = entry.create(which, settings)
    if not isinstance(made, TextModel) and callable(made):
        made = FunctionModel(made, name)
    if not isinstance(made, TextModel):
        raise PluginError(f"{entry.qualified} is a {type(made).__name__}; derive it from icy.s2b.TextModel.")
    made.name = made.name or name
    if entry.origin.partition(".")[0] != "icy":  # icy's own models have a complete identity
        made.registration = {
            "name": name,
            "version": entry.full_version,
            **settings.sampling,
            "constrain": settings.constrain,
            "body": dict(settings.body),
        }
        made.note_answers = partial(entry.note_changes, entry.parts)
    return made


# -- many at once ------------------------------------------------------------------------------------------------------


def in_threads(
    function: Callable[[T, threading.Event], R], things: Sequence[T], threads: int, seconds: float | None = None
) -> Iterator[tuple[int, R]]:
    """Call a function on things in several threads; yield each thing's index and result as they arrive.

    After the first error, no new calls begin. Results of running calls are yielded, and then the error is raised. The
    threads end with the process, so Ctrl-C does not wait for a server.

    Args:
        function: called with a thing and an event, which is set when failed tries should not be repeated.
        things: the arguments of the calls.
        threads: number of calls at once.
        seconds: largest time between two results; None for no limit.

    Raises:
        TimeoutError: no result arrived in time. Running calls are not waited for.
    """
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, R | None, BaseException | None]] = queue.SimpleQueue()
    ending = threading.Event()
    for place in range(len(things)):
        todo.put(place)

    def work() -> None:
        while not ending.is_set():
            try:
                place = todo.get_nowait()
            except queue.Empty:
                break
            try:
                done.put((place, function(things[place], ending), None))
            except BaseException as error:
                ending.set()
                done.put((place, None, error))
        done.put((-1, None, None))

    workers = min(threads, len(things))
    for _ in range(workers):
        threading.Thread(target=work, daemon=True).start()
    try:
        yield from _until_all_end(done, workers, seconds)
    finally:
        ending.set()


def _until_all_end(
    done: queue.SimpleQueue[tuple[int, Any, BaseException | None]], workers: int, seconds: float | None
) -> Iterator[tuple[int, Any]]:
    """Yield results until all workers have ended, and then raise the first error, if any."""
    first: BaseException | None = None
    while workers:
        try:
            place, result, error = done.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None
        if error is not None:
            first = first or error
        elif place < 0:
            workers -= 1
        else:
            yield place, result
    if first is not None:
        raise first
