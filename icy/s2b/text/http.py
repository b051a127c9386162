"""OpenAI-compatible servers as text models; `icy.text.client` sends the requests."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from icy.core.errors import InvalidSettingError
from icy.text.interface import CUT, Question, TextSettings, read_address

from .prompt import parse
from .text_model import Choices, TextModel, TextReply, TextRequest

MOST_ANSWERS = 10_000  # largest number of answers that a request lists


class HttpModel(TextModel):
    """A model behind an OpenAI-compatible server.

    Args:
        name: `URL#MODEL`: the server's URL, as in http://localhost:8000/v1, and the model's name there.
        settings: settings of sampling and requests.
    """

    reads_text = True
    remote = True

    def __init__(self, name: str, settings: TextSettings) -> None:
        read_address(name)  # a wrong name is reported before a missing package
        from icy.text.client import Client

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

    def answer(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TextReply]]:
        """Yield replies as they arrive, with `concurrency` requests at once."""
        how = self.client.settings.constrain
        questions = [
            Question(one.prompt, one.max_tokens, one.seed, fields=constraint(how, one.choices)) for one in requests
        ]
        for place, answer in self.client.ask_all(questions):
            names = {name: getattr(answer, name) for name in ("usage", "finish", "model", "fingerprint")}
            yield place, replace(parse(answer.text, cut=answer.finish == CUT), **names)


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
