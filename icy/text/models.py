"""Text models: their interface, their names, and servers as text models."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from icy.core.errors import PluginError
from icy.core.registry import TEXT_MODEL, Entry, registry
from icy.core.text import counted

from .interface import Answer, Question, TextSettings, read_address

Q = TypeVar("Q", bound=Question)
R = TypeVar("R")

# -- text models: their interface, and servers as text models ----------------------------------------------------------


class TextModel:
    """Base class of text models: they map a Question to an Answer. A subclass implements `reply` or `answer`.

    Each part of icy asks its own kind of Question, such as a TextRequest of S2B. `Question.read` makes the reply that
    the asker wants of an Answer, such as a TextReply.

    Attributes:
        name: name in tables.
        privileged: whether the model gets more than the questions in `begin`, such as the game of S2B; for tests.
        worth_keeping: whether answers are saved on the disk.
        retried: number of failed tries that were repeated.
        reads_text: whether replies are read from the text of an answer; saved answers are then read again.
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

    def begin(self, seat: Any) -> None:
        """Prepare for a batch of questions, such as episodes. Models that use only the questions need not do so."""

    def reply(self, request: Any) -> Any:
        """Answer one question. The answer must not depend on other questions."""
        if type(self).answer is TextModel.answer:
            raise NotImplementedError
        ((_, reply),) = self.answer([request])
        return reply

    def answer(self, requests: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the index of each question with its reply, in any order, as replies arrive."""
        for place, request in enumerate(requests):
            yield place, self.reply(request)

    def identity(self) -> dict[str, object]:
        """Return all that answers depend on except the question, for JSON. It is part of the cache's keys."""
        return {"model": self.name}

    def description(self) -> dict[str, object]:
        """Return the server's present description of a remote model, for JSON. It is part of the cache's keys."""
        return {}


class FunctionModel(TextModel):
    """A text model that calls a function, which maps a question to an Answer or to the reply that the asker wants."""

    def __init__(self, function: Callable[[Any], Any], name: str) -> None:
        self.function, self.name = function, name

    def reply(self, request: Any) -> Any:
        """Call the function."""
        reply = self.function(request)
        return request.read(reply) if isinstance(reply, Answer) else reply


class HttpModel(TextModel):
    """A model behind an OpenAI-compatible server; `icy.text.client` sends the requests.

    Args:
        name: `URL#MODEL`: the server's URL, as in http://localhost:8000/v1, and the model's name there.
        settings: settings of sampling and requests.
    """

    reads_text = True
    remote = True

    def __init__(self, name: str, settings: TextSettings) -> None:
        read_address(name)  # a wrong name is reported before a missing package
        from .client import Client

        self.name, self.client = name, Client(name, settings)

    def identity(self) -> dict[str, object]:
        """Return the server, the model and all settings of its answers."""
        return self.client.identity()

    def description(self) -> dict[str, object]:
        """Return the model's entry in the server's list of models."""
        return self.client.description()

    @property
    def retried(self) -> int:  # type: ignore[override]
        """Number of failed tries that the client repeated."""
        return self.client.retried

    def answer(self, requests: Sequence[Question]) -> Iterator[tuple[int, Any]]:
        """Yield replies as they arrive, with `concurrency` requests at once."""
        how = self.client.settings.constrain
        questions = [replace(one, fields={**one.fields, **one.constraint(how)}) for one in requests]
        for place, answer in self.client.ask_all(questions):
            yield place, requests[place].read(answer)


def replies_of(model: TextModel, requests: Sequence[Q], kind: type[R]) -> Iterator[tuple[Q, R]]:
    """Ask a model; yield each question with its reply, as replies arrive.

    Raises:
        PluginError: the model does not return exactly one reply of the kind per question.
    """
    waiting = set(range(len(requests)))
    for place, reply in model.answer(requests) if requests else ():
        if not isinstance(reply, kind):
            article = "an" if kind.__name__[0] in "AEIOU" else "a"
            raise PluginError(f"{model.name} must return {article} {kind.__name__}, not {type(reply).__name__}.")
        if place not in waiting:
            raise PluginError(
                f"{model.name} answers request {place} of {len(requests)}, which was answered before or does not exist."
            )
        waiting.discard(place)
        yield requests[place], reply
    if waiting:
        raise PluginError(f"{model.name} left {len(waiting)} of {counted(len(requests), 'request')} unanswered.")


# -- names of text models ----------------------------------------------------------------------------------------------


SERVER = "http"  # the text model for URLs


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
    entry, which = _entry(name)
    return made_of(entry, which, settings or TextSettings())


def check_name(name: str) -> None:
    """Raise an error for an unknown name, without creating the model; as for `text_model`."""
    if _entry(name)[0].name == SERVER:
        read_address(name)


def entry_of(name: str) -> Entry:
    """Return the registry entry of a text model. Errors as for `text_model`."""
    return _entry(name)[0]


def _entry(name: str) -> tuple[Entry, str]:
    """Return the entry of a text model, and the argument of its factory."""
    before, _, which = name.partition("#")
    host, slash, _ = before.partition("/")
    is_address = ":" in before or (slash and "." in host)  # right or wrong, not the name of a text model
    return registry.get(SERVER if is_address else before, TEXT_MODEL), name if is_address else which


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
