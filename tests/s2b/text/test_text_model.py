"""Text models: their settings and names, and many requests at once."""

from __future__ import annotations

from typing import Any

import pytest

from icy.core.errors import IcyError, IncompatibleError, PluginError, UnknownNameError
from icy.core.register import register_text_model
from icy.core.registry import registry
from icy.s2b import TextModel, TextReply, TextRequest, TextSettings, text_model
from icy.s2b.text.cache import CachedModel
from icy.s2b.text.scripted import YesModel


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"temperature": -0.1}, "temperature must be a number, at least 0 and at most 10"),
        ({"top_p": 1.1}, "top_p must be a number, at least 0 and at most 1"),
        ({"top_k": 0}, "top_k must be"),
        ({"repetition_penalty": 0}, "repetition_penalty must be"),
        ({"constrain": "json-schemas"}, "did you mean json-schema"),
        ({"timeout": float("nan")}, "timeout must be a number"),
        ({"retries": -1}, "number of retries"),
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
