"""Requests to text models, and their replies (s2b-facts 11b)."""

from dataclasses import dataclass
from typing import NamedTuple, TypedDict

CUT = "length"  # why a text ends when it reaches the largest number of tokens


class Choices(TypedDict, total=False):
    """The answers to choose from: texts of decisions, and for each token of a message the texts of symbols.

    A question that is not asked is left out.
    """

    decision: list[str]
    message: list[list[str]]


class Usage(NamedTuple):
    """Tokens that a model read and wrote, by its own count."""

    prompt_tokens: int
    answer_tokens: int


@dataclass(frozen=True)
class TextRequest:
    """One question to a text model. The prompt holds the whole history: a model keeps nothing between requests.

    Attributes:
        prompt: the text to answer.
        choices: the answers to choose from.
        role: "speaker" or "listener".
        episode_id: row of the episode in its batch.
        phase: "support" or "query".
        game: number of the game in its phase, from 1.
        round: number of the last message that was heard, from 0.
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
    """An unchecked answer of a text model; the player checks it.

    Attributes:
        decision: the decision that was read in the answer, or None.
        message: the tokens that were read in the answer, or None.
        raw: the text of the answer.
        option_logprobs: log-probabilities of the decisions to choose from, if the model reports them.
        usage: tokens of the request and its answer, if the model reports them.
        cached: whether the answer was saved before, and comes from the disk.
        finish: why the text ends, in the words of servers, if the model reports it: "stop"; "length" at the largest
            number of tokens; "content_filter" and others.
    """

    decision: int | None
    message: list[int] | None = None
    raw: str = ""
    option_logprobs: list[float] | None = None
    usage: Usage | None = None
    cached: bool = False
    finish: str | None = None


def valid_decision(request: TextRequest, decision: object) -> bool:
    """Return whether a decision is one of the choices."""
    return _is_whole(decision) and str(decision) in request.choices.get("decision", [])


def valid_message(request: TextRequest, message: object) -> bool:
    """Return whether a message has at most the requested number of tokens, and each token exists."""
    known = request.choices.get("message", [])
    if not isinstance(message, list) or len(message) > len(known):
        return False
    return all(_is_whole(token) and str(token) in known[place] for place, token in enumerate(message))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
