"""Reads completions of chat servers: from the bytes of a response to the text of an answer."""

import contextlib
import gzip
import io
import json
import re
import time
import zlib
from typing import NamedTuple, TypeGuard

from icy.core.checks import LARGEST_NUMBER

from .requests import CUT, Usage

LARGEST_ANSWER = 16_000_000  # bytes, before and after decompression
TEXT_PARTS = (None, "text", "output_text")  # types of content parts that are text, not thoughts, images or tools
UNREAD = frozenset({"br", "zstd", "compress"})  # compressions that Python cannot read
REASONS = {  # standard names of finish reasons, by servers' names
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length"), CUT),
}
EVENTS = re.compile(r"\s*(?:data|event|id|retry)?:")  # the start of a stream of server-sent events
TAG = re.compile(r"<(style|script)\b.*?</\1\s*>|<[^<>]*>", re.DOTALL | re.IGNORECASE)
REPORTED = ("model", "system_fingerprint")  # fields of a completion that identify the model
DESCRIBING = ("id", "root", "parent", "canonical_slug", "digest", "sha", "revision", "version", "meta", "created")
NEW = 3600  # seconds for which a model is new
MOST_QUOTED = 300  # number of letters of a server's own words in an error


class NoChoice(ValueError):
    """A completion has an empty list of choices. Some servers send this for a prompt that they block."""


class Completion(NamedTuple):
    """A server's answer.

    Attributes:
        content: the text; "" if the message has no text, for example after a refusal or with tool calls.
        finish: the reason why the text ends ("stop", "length", ...), if the server reports it.
        usage: numbers of tokens read and written, if the server reports them.
        model: name of the model that answered, if the server reports it.
        fingerprint: fingerprint of the model and its settings, if the server reports it.
    """

    content: str
    finish: str | None = None
    usage: Usage | None = None
    model: str | None = None
    fingerprint: str | None = None


def read_completion(text: str) -> Completion:
    """Read the body of a response: a JSON object, or the events of a stream that was not requested.

    Separate fields for reasoning are not read.

    Raises:
        NoChoice: the list of choices is empty.
        ValueError: the body is not a whole completion.
    """
    try:
        data = _assembled(text) if EVENTS.match(text) else json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    choice = _choice(data)
    if choice is None:
        empty = isinstance(data, dict) and data.get("choices") == [] and not data.get("error")
        raise NoChoice if empty else ValueError
    finish = _finish(choice.get("finish_reason"))
    if finish == "error":
        raise ValueError("the server failed while it answered")
    names = [str(data[name]) if data.get(name) else None for name in REPORTED]
    return Completion(_content(choice), finish, _usage(data.get("usage")), *names)


def _choice(data: object) -> dict[str, object] | None:
    """Return the first choice of a completion or of an event; None if there is none."""
    if not isinstance(data, dict) or data.get("error"):
        return None
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _content(choice: dict[str, object]) -> str:
    """Return the text of a choice, or "". Older servers send `text` in place of a message."""
    message = choice.get("message", choice.get("delta"))
    return _text(message.get("content") if isinstance(message, dict) else choice.get("text"))


def _text(content: object) -> str:
    """Convert a content, which may have several parts, to text."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") in TEXT_PARTS else part for part in parts]
    return "".join(str(one) for one in texts if isinstance(one, (str, int, float)) and not isinstance(one, bool))


def _finish(given: object) -> str | None:
    """Return the standard name of the reason why an answer ends; None if the server does not report it."""
    if not isinstance(given, str) or not given:
        return None
    name = given.lower()
    return REASONS.get(name, name if re.fullmatch(r"[\w.-]{1,40}", name, re.ASCII) else "other")


def _assembled(text: str) -> dict[str, object]:
    """Join the events of a stream into one completion.

    Raises:
        ValueError: an event is not JSON or reports an error, or the stream ends early.
    """
    pieces, finish, usage, whole = [], None, None, False
    names: dict[str, object] = {}
    for line in re.split(r"\r\n|\r|\n", text):
        field, _, value = line.partition(":")
        if field != "data":
            continue
        if value.strip() == "[DONE]":
            whole = True
            break
        data = json.loads(value)
        if not isinstance(data, dict) or data.get("error"):
            raise ValueError("an event holds no piece of text")
        usage = data.get("usage") or usage
        names |= {name: data[name] for name in REPORTED if data.get(name)}
        choice = _choice(data)
        if choice is not None and choice.get("index", 0) == 0:
            pieces.append(_content(choice))
            finish = choice.get("finish_reason") or finish
    if not pieces or not (whole or finish):
        raise ValueError("the stream ends early")
    return {"choices": [{"message": {"content": "".join(pieces)}, "finish_reason": finish}], "usage": usage, **names}


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


# -- bytes and sentences -----------------------------------------------------------------------------------------------


def decoded(body: bytes, encoding: str) -> str:
    """Decode a response body, which may be compressed or begin with a byte order mark.

    Args:
        body: the bytes of the body.
        encoding: the header Content-Encoding.

    Raises:
        ValueError: the body is damaged, too large, or compressed with a method other than gzip and deflate.
    """
    how = re.findall(r"[\w-]+", encoding.lower())
    if unknown := UNREAD.intersection(how):
        raise ValueError(f"is {min(unknown)}, not gzip or deflate")
    try:
        if body.startswith(b"\x1f\x8b"):  # whatever the header is
            with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
                body = file.read(LARGEST_ANSWER + 1)
        elif "deflate" in how and body:
            zlib_header = body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
            reader = zlib.decompressobj(zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)
            body = reader.decompress(body, LARGEST_ANSWER + 1)
            if len(body) <= LARGEST_ANSWER and not reader.eof:
                raise EOFError
    except (OSError, EOFError, zlib.error):
        raise ValueError("is damaged") from None
    if len(body) > LARGEST_ANSWER:
        raise ValueError("is too large")
    return body.decode(json.detect_encoding(body), errors="replace")


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
