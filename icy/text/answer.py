"""Questions to text models, and their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from icy.core.errors import IcyError

CUT = "length"  # finish reason of a text that reaches the largest number of tokens


class ServerError(IcyError):
    """A server cannot be reached, refuses a request, or fails on every try."""


@dataclass(frozen=True)
class Question:
    """A question to a text model.

    Attributes:
        prompt: the text to answer, or the messages of a chat, each with "role" and "content".
        max_tokens: largest number of tokens of the answer.
        seed: seed for a model that samples.
        candidates: texts of one token; the answer has their log-probabilities as the first token.
        fields: further fields of the request, such as the constraint of the answer.
    """

    prompt: str | Sequence[Mapping[str, str]]
    max_tokens: int = 1024
    seed: int = 0
    candidates: Sequence[str] = ()
    fields: Mapping[str, object] = field(default_factory=dict)


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
        logprobs: log-probabilities of the candidates as the first token, for those that the server reports.
    """

    text: str = ""
    finish: str | None = None
    usage: Usage | None = None
    model: str | None = None
    fingerprint: str | None = None
    logprobs: Mapping[str, float] = field(default_factory=dict)
