"""Requests of S2B to text models, their constraints, and how answers are read as decisions and messages."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, TypedDict

from icy.core.checks import parse_whole
from icy.core.errors import InvalidSettingError
from icy.text.answers import without_thoughts
from icy.text.interface import Answer, Question, Usage
from icy.text.interface import TextSettings as TextSettings
from icy.text.models import TextModel as TextModel
from icy.text.models import text_model as text_model

MOST_ANSWERS = 10_000  # largest number of answers that a request lists
SPECIAL = re.compile(r"<\|[^<>|]*\|>")  # special tokens that a server left in the text
MOST_OBJECTS = 1000  # number of opening braces in an answer that are tried, from the end

# -- requests to text models, and their replies ------------------------------------------------------------------------


class Choices(TypedDict, total=False):
    """The possible answers: texts of decisions, and for each position of a message the texts of tokens.

    A key is missing if its question is not asked.
    """

    decision: list[str]
    message: list[list[str]]


@dataclass(frozen=True)
class TextRequest(Question):
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

    def asked(self) -> dict[str, object]:
        """Return all that an answer depends on except the model; see Question."""
        return {name: getattr(self, name) for name in ("prompt", "choices", "max_tokens", "seed")}

    def parts(self) -> list[str | Sequence[str]]:
        """Return the JSON of an answer: texts, and in between the choices at each place."""
        found: list[str | Sequence[str]] = ["{"]
        if "decision" in self.choices:
            found += ['"decision": ', self.choices["decision"]]
        if "message" in self.choices:
            found.append(", " * (len(found) > 1) + '"message": [')
            for place, tokens in enumerate(self.choices["message"]):
                found += [", " * bool(place), tokens]
            found.append("]")
        return [*found, "}"]

    def constraint(self, how: str) -> dict[str, object]:
        """Return the fields of a request that constrain the answer to the choices; see `constraint`."""
        return constraint(how, self.choices)

    def read(self, answer: Answer, saved: Mapping[str, Any] | None = None) -> "TextReply":
        """Return the decision and the message in an answer, or those saved; see Question."""
        names = {name: getattr(answer, name) for name in ("usage", "cached", "finish", "model", "fingerprint")}
        if saved is not None:
            return TextReply(saved["decision"], saved["message"], answer.text, **names)
        read = parse(answer.text if answer.marked is None else answer.marked, answer.cut)
        options = self.choices.get("decision", []) if answer.logprobs else []
        logprobs = [answer.logprobs[one] for one in options if one in answer.logprobs] or None
        return TextReply(read.decision, read.message, answer.text, logprobs, **names)


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

    SAVED: ClassVar[Sequence[str]] = ("raw", "decision", "message", "usage")  # facts on the disk

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


# -- constraints -------------------------------------------------------------------------------------------------------


def constraint(how: str, choices: Choices) -> dict[str, object]:
    """Return the request fields that constrain the answer to the choices.

    Raises:
        InvalidSettingError: there are too many answers to list.
    """
    if how == "json-schema":
        form = {"name": "answer", "strict": True, "schema": schema(choices)}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if how == "structured-outputs":
        return {"structured_outputs": {"choice": all_answers(choices)}}
    if how == "guided-choice":
        return {"guided_choice": all_answers(choices)}
    return {"grammar": grammar(choices)} if how == "grammar" else {}


def schema(choices: Choices) -> dict[str, object]:
    """Return the JSON schema of an answer."""
    parts: dict[str, object] = {}
    if "decision" in choices:
        parts["decision"] = _one_of(choices["decision"])
    if "message" in choices:
        length = len(choices["message"])
        parts["message"] = {
            "type": "array", "items": _one_of(choices["message"][0]), "minItems": length, "maxItems": length,
        }  # fmt: skip
    return {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}


def _one_of(numbers: Sequence[str]) -> dict[str, object]:
    return {"type": "integer", "enum": [int(one) for one in numbers]}


def all_answers(choices: Choices) -> list[str]:
    """Return every possible answer, as JSON.

    Raises:
        InvalidSettingError: there are too many answers.
    """
    decisions, tokens = choices.get("decision", [""]), choices.get("message", [])
    count = len(decisions) * prod(map(len, tokens))
    if count > MOST_ANSWERS:
        raise InvalidSettingError(
            f"A list of all {count:,} answers is too long (the limit is {MOST_ANSWERS:,}); take "
            "--constrain json-schema or grammar."
        )
    found = []
    for decision, *message in itertools.product(decisions, *tokens):
        answer: dict[str, Any] = {"decision": int(decision)} if "decision" in choices else {}
        found.append(json.dumps(answer | ({"message": [int(one) for one in message]} if tokens else {})))
    return found


def grammar(choices: Choices) -> str:
    """Return the grammar of an answer, in llama.cpp's GBNF.

    Example:
        >>> print(grammar({"decision": ["0", "1"]}))
        root ::= "{" "\\"decision\\": " ("0" | "1") "}"
    """
    parts = []
    if "decision" in choices:
        parts.append(rf'"\"decision\": " {_either(choices["decision"])}')
    if "message" in choices:
        tokens = ' ", " '.join(_either(one) for one in choices["message"])
        parts.append(rf'"\"message\": [" {tokens} "]"')
    inner = ' ", " '.join(parts)
    return f'root ::= "{{" {inner} "}}"'


def _either(options: Sequence[str]) -> str:
    quotes = [f'"{one}"' for one in options]
    return f"({' | '.join(quotes)})"


# -- answers -----------------------------------------------------------------------------------------------------------


def parse(raw: str, cut: bool = False) -> TextReply:
    """Parse an answer: its last JSON object with a decision or a message, or a lone number as the decision.

    Decision and message are not checked. They are read only from the text after the last thought
    (`icy.text.answers`). An answer with a thought that does not end is not read.

    Args:
        raw: the text of the answer.
        cut: whether the text was cut at the largest number of tokens. It may then be a thought without markers, so a
            JSON object counts only at the end of the text.

    Example:
        >>> parse('I think so: {"decision": 0}').decision, parse("1").decision, parse("Yes, they are.").decision
        (0, 1, None)
        >>> parse('{"decision": "1", "message": [3, "1", 2]}').message
        [3, 1, 2]
        >>> parse('<think>Is it {"decision": 0}?').decision is None
        True
    """
    text = without_thoughts(raw)
    if text is None:
        return TextReply(None, None, raw)
    found, end = next((one for one in _objects(text) if {"decision", "message"} & one[0].keys()), (None, 0))
    if found is None:
        return TextReply(parse_whole(SPECIAL.sub("", text).strip()), None, raw)
    if cut and re.search(r"\w", SPECIAL.sub("", text[end:])):
        return TextReply(None, None, raw)
    return TextReply(_whole(found.get("decision")), _wholes(found.get("message")), raw)


def _objects(text: str) -> list[tuple[dict[str, object], int]]:
    """Return the JSON objects in a text with the position of their ends, the last object first."""
    decoder, found, end = json.JSONDecoder(), [], 0
    for place in [match.start() for match in re.finditer(r"\{", text)][-MOST_OBJECTS:]:
        if place < end:  # inside an object that was read
            continue
        try:
            one, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            continue
        found.append((one, end))
    return found[::-1]


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        return parse_whole(value.strip())
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _wholes(value: object) -> list[int] | None:
    found = [_whole(one) for one in value] if isinstance(value, list) else [None]
    numbers = [one for one in found if one is not None]
    return numbers if len(numbers) == len(found) else None
