"""Text models: their interface and names, requests to them, and their replies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypedDict

from icy.core.errors import PluginError
from icy.core.registry import TEXT_MODEL, Entry, registry
from icy.s2b.players.interface import Seat
from icy.text.interface import TextSettings as TextSettings
from icy.text.interface import Usage, read_address

# -- requests to text models, and their replies ------------------------------------------------------------------------


class Choices(TypedDict, total=False):
    """The possible answers: texts of decisions, and for each position of a message the texts of tokens.

    A key is missing if its question is not asked.
    """

    decision: list[str]
    message: list[list[str]]


@dataclass(frozen=True)
class TextRequest:
    """One request to a text model. The prompt includes the whole history, because models have no memory.

    Attributes:
        prompt: the text to answer.
        choices: the possible answers.
        role: "speaker" or "listener".
        episode_id: index of the episode in its batch.
        phase: "support" or "query".
        game: number of the game in its phase, from 1.
        round: number of the round in the game, from 0.
        max_tokens: largest number of tokens of the answer.
        seed: seed for a model that samples; it differs between requests.
    """

    prompt: str
    choices: Choices
    role: str = "listener"
    episode_id: int = 0
    phase: str = "support"
    game: int = 1
    round: int = 1
    max_tokens: int = 1024
    seed: int = 0


@dataclass(frozen=True)
class TextReply:
    """The answer of a text model, before the player checks it.

    Attributes:
        decision: the decision in the answer, or None.
        message: the tokens of the message in the answer, or None.
        raw: the text of the answer.
        option_logprobs: log-probabilities of the possible decisions, if the model reports them.
        usage: numbers of tokens of the request and the answer, if the model reports them.
        cached: whether the answer was loaded from disk.
        finish: reason why the text ends, if the model reports it: "stop"; "length" for the largest number of tokens;
            "content_filter" and others.
        model: the model that answered, as a server reports it; None if unknown.
        fingerprint: the server's fingerprint of the model and its settings (`system_fingerprint`); None if unknown.
    """

    decision: int | None
    message: list[int] | None = None
    raw: str = ""
    option_logprobs: list[float] | None = None
    usage: Usage | None = None
    cached: bool = False
    finish: str | None = None
    model: str | None = None
    fingerprint: str | None = None


def valid_decision(request: TextRequest, decision: object) -> bool:
    """Return whether a decision is one of the choices."""
    return type(decision) is int and str(decision) in request.choices.get("decision", [])


def valid_message(request: TextRequest, message: object) -> bool:
    """Return whether a message has at most the requested length, and only possible tokens."""
    known = request.choices.get("message", [])
    if not isinstance(message, list) or len(message) > len(known):
        return False
    return all(type(token) is int and str(token) in known[place] for place, token in enumerate(message))


# -- text models: their interface and their names ----------------------------------------------------------------------


SERVER = "http"  # the text model for URLs


class TextModel:
    """Base class of text models: they map a TextRequest to a TextReply. A subclass implements `reply` or `answer`.

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
        if type(self).answer is TextModel.answer:
            raise NotImplementedError
        ((_, reply),) = self.answer([request])
        return reply

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
    entry, which = _entry(name)
    return made_of(entry, which, settings or TextSettings())


def check_name(name: str) -> None:
    """Raise an error for an unknown name, without creating the model; as for `text_model`."""
    if _entry(name)[0].name == SERVER:
        read_address(name)


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
