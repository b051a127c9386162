"""Reads completions of chat servers: from the text of a response to an answer."""

import contextlib
import json
import re
import time
from typing import Any, TypeGuard

from icy.core.checks import LARGEST_NUMBER

from .interface import CUT, Answer, Usage

TEXT_PARTS = (None, "text", "output_text")  # types of content parts that are text, not thoughts, images or tools
REASONS = {  # standard names of finish reasons, by servers' names
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length"), CUT),
}
EVENTS = re.compile(r"\s*(?:data|event|id|retry)?:")  # the start of a stream of server-sent events
TAG = re.compile(r"<(style|script)\b.*?</\1\s*>|<[^<>]*>", re.DOTALL | re.IGNORECASE)
DESCRIBING = ("id", "root", "parent", "canonical_slug", "digest", "sha", "revision", "version", "meta", "created")
NEW = 3600  # seconds for which a model is new
MOST_QUOTED = 300  # number of letters of a server's own words in an error


class NoChoice(ValueError):
    """A completion has an empty list of choices. Some servers send this for a prompt that they block."""


def read_completion(text: str) -> Answer:
    """Read the body of a response: a JSON object, or the events of a stream that was not requested.

    Separate fields for reasoning are not read. `logprobs` has all tokens that the server reports.

    Raises:
        NoChoice: the list of choices is empty.
        ValueError: the body is not a whole completion.
    """
    try:
        data = _assembled(text) if EVENTS.match(text) else json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(data, dict) or data.get("error"):
        raise ValueError("no completion")
    if data.get("choices") == []:
        raise NoChoice
    choice = _choice(data)
    finish = _finish(choice.get("finish_reason"))
    if finish == "error":
        raise ValueError("the server failed while it answered")
    model, fingerprint = (str(data[name]) if data.get(name) else None for name in ("model", "system_fingerprint"))
    return Answer(_content(choice), finish, _usage(data.get("usage")), model, fingerprint, _logprobs(choice))


def _choice(data: dict[str, Any]) -> dict[str, Any]:
    """Return the first choice of a completion or of an event.

    Raises:
        ValueError: a choice is missing.
    """
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        raise ValueError("no choice")
    return first


def _content(choice: dict[str, Any]) -> str:
    """Return the text of a choice, or "". Older servers send `text` in place of a message."""
    message = choice.get("message", choice.get("delta"))
    content = message.get("content") if isinstance(message, dict) else choice.get("text")
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") in TEXT_PARTS else part for part in parts]
    return "".join(str(one) for one in texts if isinstance(one, (str, int, float)) and not isinstance(one, bool))


def _finish(given: object) -> str | None:
    """Return the standard name of the reason why an answer ends; None if the server does not report it."""
    if not isinstance(given, str) or not given:
        return None
    name = given.lower()
    return REASONS.get(name, name if re.fullmatch(r"[\w.-]{1,40}", name, re.ASCII) else "other")


def _logprobs(choice: dict[str, Any]) -> dict[str, float]:
    """Return the log-probability of each alternative to the first token, without blanks; {} if not reported."""
    try:
        first = choice["logprobs"]["content"][0]["top_logprobs"]
        pairs = [(str(one["token"]).strip(), float(one["logprob"])) for one in first]
    except (LookupError, TypeError, ValueError, OverflowError):
        return {}
    return {token: max(value for name, value in pairs if name == token) for token, _ in pairs}


def _assembled(text: str) -> dict[str, Any]:
    """Join the events of a stream into one completion.

    Raises:
        ValueError: an event is not JSON or reports an error, or the stream ends early.
    """
    lines = [line.strip() for line in re.findall("(?m)^data:(.*)", re.sub("\r\n?", "\n", text))]
    ended = "[DONE]" in lines
    pieces: list[str] = []
    whole: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    for line in lines[: lines.index("[DONE]") if ended else None]:
        data = json.loads(line)
        if not isinstance(data, dict) or data.get("error"):
            raise ValueError("an event holds no piece of text")
        whole |= {name: fact for name, fact in data.items() if fact}
        with contextlib.suppress(ValueError):
            piece = _choice(data)
            if piece.get("index", 0) == 0:
                pieces.append(_content(piece))
                choice = {name: fact for name, fact in piece.items() if fact} | choice
    if not pieces or not (ended or choice.get("finish_reason")):
        raise ValueError("the stream ends early")
    return {**whole, "choices": [{**choice, "message": {"content": "".join(pieces)}}]}


def described(text: str, name: str) -> tuple[dict[str, object], list[str]]:
    """Read a server's list of models: the description of a model, {} if unknown, and the names of all models.

    The only model of a list is described whatever its name is, because some servers ignore the requested name.

    Args:
        text: the list, as JSON.
        name: name of the model.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}, []
    known = (data.get("data") or data.get("models")) if isinstance(data, dict) else data
    models = [one for one in known if isinstance(one, dict)] if isinstance(known, list) else []
    ids = [str(one.get("id") or one.get("name") or "") for one in models]
    same = [one for one, id_ in zip(models, ids, strict=True) if id_ in (name, f"{name}:latest")] or models
    facts = {field: same[0].get(field) for field in DESCRIBING} if len(same) == 1 else {}
    made = facts.get("created")
    if not is_count(made) or made > time.time() - NEW:  # some servers report the present time
        facts["created"] = None
    return {field: fact for field, fact in facts.items() if fact and fact != name}, list(filter(None, ids))


def _usage(usage: object) -> Usage | None:
    """Return the server's counts of tokens. Reasoning tokens count as written, even if listed separately."""
    if not isinstance(usage, dict):
        return None
    read, written, total = (usage.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    if not is_count(read) or not is_count(written):
        return None
    details = usage.get("completion_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    if is_count(total):
        written = max(written, total - read)
    if is_count(reasoning) and reasoning > written:
        written += reasoning
    return Usage(read, written)


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is a possible number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_NUMBER


def words_of(text: str) -> str:
    """Return a server's description of an error in one line, without HTML tags."""
    said = text
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(text)
        error = data.get("error", data) if isinstance(data, dict) else data
        said = str(error.get("message", error) if isinstance(error, dict) else error)
    if said.lstrip().startswith("<"):
        said = TAG.sub(" ", said[:10_000])
    line = " ".join(said.split())
    return line if len(line) <= MOST_QUOTED else f"{line[: MOST_QUOTED - 3]}..."
