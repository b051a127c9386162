"""The contract of text models: what passes, and what each check finds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from icy import testing
from icy.s2b import TextReply, TextRequest
from icy.s2b.text.scripted import YesModel, as_json
from tests.testing.mistakes import EVERY, Kind


def function(name: str, settings: Any) -> Callable[[TextRequest], TextReply]:
    """A plain function."""
    return lambda request: as_json(1)


class Texts(YesModel):
    def reply(self, request: TextRequest) -> Any:
        return '{"decision": 0}'


class Bools(YesModel):
    def reply(self, request: TextRequest) -> TextReply:
        return TextReply(True)


class Ending(YesModel):
    def reply(self, request: TextRequest) -> TextReply:
        return TextReply(0, finish=["stop"])  # type: ignore[arg-type]


class Lazy(YesModel):
    def answer(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TextReply]]:
        yield 0, as_json(0)


class Remembering(YesModel):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.seen = 0

    def reply(self, request: TextRequest) -> TextReply:
        self.seen += 1
        return as_json(self.seen % 2)


class Drawing(YesModel):
    def reply(self, request: TextRequest) -> TextReply:
        return as_json(int(2 * random.random()))


class Changing(YesModel):
    count = 0

    def identity(self) -> dict[str, Any]:
        type(self).count += 1
        return {"model": self.count}


class Stubborn(YesModel):
    def answer(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TextReply]]:
        if requests[0].role == "listener" and requests[0].episode_id + len(requests) > 1:
            raise RuntimeError("one at a time")
        return super().answer(requests)


WRONG = {
    "made_by_name": lambda name, settings: 5,
    "answers_every_request": Texts,
    "keeps_nothing": Remembering,
    "identity": Changing,
    "random_state_untouched": Drawing,
    "plays": Stubborn,
}
KIND = Kind(
    "text-model",
    WRONG,
    function,
    {"answers_every_request": "4 of 8 answers are valid"},  # it gives no messages
    also=dict.fromkeys(WRONG, EVERY),
)


def results(model: Any) -> dict[str, Any]:
    return {result.name: result for result in testing.check(model, "text-model", raise_on_failure=False)}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Texts, "return an icy.s2b.TextReply"),
        (Bools, "wrong type: Expected `int | null`, got `bool` - at `$.decision`"),
        (Ending, "wrong type: Expected `str | null`, got `array` - at `$.finish`"),
        (Lazy, "yield each place once"),
    ],
)
def test_answers_of_another_kind_are_found(model: Any, said: str) -> None:
    assert said in results(model)["answers_every_request"].message


@pytest.mark.parametrize("name", ["scripted-yes", "scripted-oracle", "http", "transformers"])
def test_models_of_icy_keep_the_contract(name: str) -> None:
    found = results(name)
    assert {result.passed for result in found.values()} == {True}
    excused = {name for name, result in found.items() if result.excused}
    if name in ("http", "transformers"):
        assert excused == KIND.checks
        assert "is named by" in found["plays"].message
    elif name == "scripted-oracle":
        assert excused == {"answers_every_request", "keeps_nothing", "random_state_untouched"}
    else:
        assert excused == set()
        assert found["plays"].message.startswith("0 of ")
