"""Settings of text models, questions to them, and their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from icy.core.errors import IcyError
from icy.core.fields import CheckedFields, setting

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

    temperature: float = setting(0.7, "temperature", least=0, most=10)
    top_p: float = setting(0.7, "top_p", least=0, most=1)
    top_k: int | None = setting(None, "top_k", least=1)
    repetition_penalty: float | None = setting(None, "repetition_penalty", above=0, most=10)
    constrain: Constraint = setting("json-schema", "way to constrain answers")
    body: Mapping[str, object] = setting({})
    key_variable: str | None = setting(None, metadata={"metavar": "NAME"})
    timeout: float = setting(120.0, "timeout", least=0, most=86400)
    retries: int = setting(6, "number of retries", least=0, most=100)
    backoff: float = setting(1.0, "backoff", least=0, most=3600)
    concurrency: int = setting(16, "concurrency", most=1000, least=1)

    @property
    def sampling(self) -> dict[str, float]:
        """The sampling settings that are set, by the servers' names."""
        chosen = {name: getattr(self, name) for name in ("temperature", "top_p", "top_k", "repetition_penalty")}
        return {name: value for name, value in chosen.items() if value is not None}


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
        logprobs: log-probabilities of the candidates as the first token, if the server reports them.
    """

    text: str = ""
    finish: str | None = None
    usage: Usage | None = None
    model: str | None = None
    fingerprint: str | None = None
    logprobs: Mapping[str, float] = field(default_factory=dict)
