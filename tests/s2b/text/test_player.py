"""Text players keep the contract of players, with a model that minds every letter of its prompts."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from icy import testing
from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, PluginError, UnknownNameError
from icy.core.register import register_text_model
from icy.core.registry import registry
from icy.s2b import (
    GameSettings,
    TextListener,
    TextModel,
    TextReply,
    TextRequest,
    TextSettings,
    TextSpeaker,
    evaluate,
    evaluate_text,
    probe_language,
    text_model,
)
from icy.s2b.players.speakers import DigitalSpeaker
from icy.s2b.text.prompt import FORMS, rounded
from icy.s2b.text.scripted import YesModel
from icy.text.cache import CachedModel
from icy.text.models import FunctionModel
from tests.s2b.helpers import GAMES
from tests.s2b.text.helpers import RoundedNearest, decisions


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


# -- text models: their settings and names, and many requests at once --------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"temperature": -0.1}, "temperature must be a number, at least 0 and at most 10"),
        ({"top_k": 0}, "top_k must be"),
        ({"constrain": "json-schemas"}, "did you mean json-schema"),
        ({"timeout": float("nan")}, "timeout must be a number"),
        ({"concurrency": 0}, "concurrency must be"),
    ],
)
def test_settings_that_are_not_accepted(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IcyError, match=said):
        TextSettings(**given)


def test_default_settings_are_not_sent() -> None:
    assert TextSettings().sampling == {"temperature": 0.7, "top_p": 0.7}
    assert TextSettings(top_k=50, repetition_penalty=1.1).sampling == {
        "temperature": 0.7,
        "top_p": 0.7,
        "top_k": 50,
        "repetition_penalty": 1.1,
    }


def test_names() -> None:
    with pytest.raises(
        UnknownNameError, match=r"No text-model is called 'scripted-yess'; did you mean scripted-yes.*list text-models"
    ):
        text_model("scripted-yess")
    assert text_model("scripted-reader#binding").name == "scripted-reader#binding"
    assert text_model("scripted-yes").name == "scripted-yes"


@pytest.mark.parametrize("made", [5, None, "text"], ids=str)
def test_a_factory_that_makes_no_text_model(made: Any) -> None:
    register_text_model("made-wrongly", source="a test")(lambda name, settings: made)
    try:
        with pytest.raises(PluginError, match=r"derive it from icy\.s2b\.TextModel"):
            text_model("made-wrongly")
    finally:
        registry._entries.pop(("text-model", "made-wrongly"))


def test_answers_of_privileged_models_are_not_kept(tmp_path: Any) -> None:
    with pytest.raises(IncompatibleError, match="cannot be saved"):
        CachedModel(text_model("scripted-oracle"), tmp_path)


def test_a_kept_model_answers_and_tells_as_the_model(tmp_path: Any) -> None:
    class Seated(YesModel):
        retried = 3
        began = 0

        def begin(self, seat: Any) -> None:
            self.began += 1

    model = Seated()
    kept: TextModel = CachedModel(model, tmp_path)
    kept.begin(None)  # type: ignore[arg-type]
    assert (model.began, kept.retried, kept.identity()) == (1, 3, model.identity())
    request = TextRequest("?", {"decision": ["0"]})
    assert [kept.reply(request).cached for _ in range(2)] == [False, True]
    assert kept.reply(request) == TextReply(0, [], '{"decision": 0, "message": []}', cached=True)


# -- scripted text models ----------------------------------------------------------------------------------------------


WITH_NUMBERS: dict[str, dict[str, Any]] = {
    "S = O = 1": {},
    "O = 4": {"samples": 4, "most": 3},
    "S = 2": {"shots": 2, "most": 3},
    "K = 2": {"distractors": 2, "samples": 2},
    "partial": {"distractors": 2, "view": "partial"},
    "several rounds": {"rounds": 3, "length": 1, "shots": 2},
    "not descriptive": {"descriptive": False, "distractors": 1},
    "near32": {"compat": "near32", "samples": 4},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_the_oracle_is_always_right(name: str) -> None:
    rows = evaluate_text("scripted-oracle", episodes=6, seeds=2, **GAMES[name]).table()
    assert set(rows["support"]) == {1.0}
    assert set(rows["zsct"].dropna()) <= {1.0}  # a common game of one split has no query
    assert set(rows["invalid"]) == {0.0}


def test_always_yes_is_right_as_often_as_yes_is() -> None:
    rows = evaluate_text("scripted-yes", episodes=20, seeds=3).table()
    assert (rows["yes"] == 1).all()
    assert rows["zsct"].tolist() == rows["kept"].tolist()
    assert 0.4 < rows["zsct"].mean() < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_a_reader_of_the_prompt_equals_nearest_game_by_game(name: str) -> None:
    """`nearest` is shown three decimals here, as a prompt shows them, so that nothing is left to tell the two apart."""
    settings = GameSettings.of(**WITH_NUMBERS[name])
    seeds = range(40, 46)
    read = decisions(TextListener(text_model("scripted-reader#nearest")), settings, seeds)
    assert len(read) > 40
    assert read == decisions(RoundedNearest(), settings, seeds)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_the_printed_form_holds_all_that_is_needed(name: str) -> None:
    settings = GameSettings.of(**WITH_NUMBERS[name])
    read = decisions(TextListener(text_model("scripted-reader"), prompt="metarg24"), settings, range(40, 43))
    assert read == decisions(RoundedNearest(), settings, range(40, 43))


def test_a_reader_of_the_printed_form_plays_as_nearest() -> None:
    settings = GameSettings.of(most=2, vocab_size=9, length=5)
    read = decisions(TextListener(text_model("scripted-reader"), prompt="metarg24"), settings, range(2))
    assert read == decisions(RoundedNearest(), settings, range(2))


def test_three_decimals_are_as_good_as_all() -> None:
    seeds = range(300)
    settings = GameSettings(most=3)
    exact, short = (decisions(player, settings, seeds) for player in ("nearest", RoundedNearest()))
    differ = sum(one != other for one, other in zip(exact, short, strict=True))
    assert differ <= len(exact) // 1000


class RoundedDigital(DigitalSpeaker):
    """The digital speaker, shown three decimals."""

    def acting(self, seen: Any) -> Any:
        return super().acting(type(seen)(**{**vars(seen), "stimulus": rounded(seen.stimulus)}))


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"distractors": 2}, {"feedback": False}, {"masks": "near32"}], ids=str)
def test_a_speaker_that_reads_its_prompt_says_what_the_player_says(given: dict[str, Any]) -> None:
    settings = {"permutation": False, "vocab_size": 9, **given}
    usual = evaluate(RoundedDigital(), "digital", episodes=6, seeds=2, **settings)
    for form in FORMS:
        reader = TextSpeaker(text_model("scripted-reader"), prompt=form)
        found = evaluate(reader, "digital", episodes=6, seeds=2, **settings)
        assert np.array_equal(found.scores.zsct, usual.scores.zsct)
        assert np.array_equal(found.scores.support, usual.scores.support)
    assert found.scores.zsct.mean() > (0.6 if "distractors" not in given else 0.4)


def test_a_privileged_player_cannot_be_read() -> None:
    with pytest.raises(InvalidSettingError, match="oracle needs facts that a prompt does not contain"):
        evaluate_text("scripted-reader#oracle", episodes=1, seeds=1)
