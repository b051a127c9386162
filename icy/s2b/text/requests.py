"""Requests to text models, and their replies."""

from dataclasses import dataclass
from typing import TypedDict

from icy.text.interface import Usage


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
