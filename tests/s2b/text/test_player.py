"""Text players keep the contract of players, with a model that minds every letter of its prompts."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from icy import testing
from icy.core.errors import IncompatibleError, PluginError, UnknownNameError
from icy.s2b import (
    TextListener,
    TextModel,
    TextReply,
    TextRequest,
    TextSpeaker,
    evaluate,
    evaluate_text,
    probe_language,
    text_model,
)
from icy.s2b.text.text_model import FunctionModel


def fickle(request: TextRequest) -> TextReply:
    """An answer that depends on everything in the prompt, and on the seed; a third of them are invalid."""
    found = list(hashlib.blake2b(f"{request.prompt}{request.seed}".encode()).digest())
    options = request.choices.get("decision", [])
    message = [int(one[found[n + 1] % len(one)]) for n, one in enumerate(request.choices.get("message", []))]
    return TextReply(found[0] % (len(options) + 1), message)


def listener() -> TextListener:
    """A listener of the fickle model."""
    return TextListener(FunctionModel(fickle, "fickle"))


def speaker() -> TextSpeaker:
    """A speaker of the fickle model."""
    return TextSpeaker(FunctionModel(fickle, "fickle"))


@pytest.mark.slow
@pytest.mark.parametrize(("role", "make"), [("listener", listener), ("speaker", speaker)])
def test_text_players_keep_the_contract(role: str, make: Any) -> None:
    results = {result.name: result for result in testing.check(make, role)}
    assert results["plays_every_game"].message == "plays all"
    assert not results["deterministic"].excused
    assert not results["alone_and_in_a_batch"].excused
    assert not results["forgets_between_episodes"].excused


@pytest.mark.parametrize("prompt", ["icy", "metarg24"])
def test_the_language_of_a_speaker_that_reads_digits_is_that_of_the_digital_speaker(prompt: str) -> None:
    settings: dict[str, Any] = {"most": 2, "vocab_size": 9}
    reader = TextSpeaker(text_model("scripted-reader#digital"), prompt=prompt)
    rows, usual = (probe_language(one, metrics=["posdis"], episodes=2, **settings) for one in (reader, "digital"))
    assert rows.equals(usual)


def test_the_language_of_a_text_model_is_of_games_of_one_round() -> None:
    with pytest.raises(IncompatibleError, match="of one round"):
        probe_language(speaker(), metrics=["posdis"], episodes=1, most=2, rounds=2)


def test_an_unknown_form_or_role_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="did you mean metarg24"):
        evaluate_text("scripted-yes", prompt="metarg22", episodes=1, seeds=1)
    with pytest.raises(UnknownNameError, match="role"):
        evaluate_text("scripted-yes", role="talker", episodes=1, seeds=1)


def test_a_model_is_told_of_every_batch() -> None:
    class Seated(FunctionModel):
        began = 0

        def begin(self, seat: Any) -> None:
            self.began += 1

    model: TextModel = Seated(fickle, "fickle")
    player = TextListener(model)
    for _ in range(2):
        evaluate("posdis", player, episodes=2, seeds=1)
    assert model.began == len(player.tallies) == 2  # type: ignore[attr-defined]


class Answering(TextModel):
    """Answers a batch as it is told to."""

    name = "mine"

    def __init__(self, answers: Any) -> None:
        self.answers = answers

    def answer(self, requests: Any) -> Any:
        return iter(self.answers)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([], "mine left 2 of 2 requests unanswered"),
        ([(0, TextReply(0)), (0, TextReply(0))], "mine answers request 0 of 2, which was answered before"),
        ([(2, TextReply(0))], "mine answers request 2 of 2"),
        ([(0, "0")], "mine must return a TextReply, not str"),
    ],
)
def test_missing_or_repeated_replies_are_reported(answers: Any, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        evaluate("posdis", TextListener(Answering(answers)), episodes=2, seeds=1)
