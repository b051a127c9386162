"""Saved answers are used only for the model that gave them."""

from __future__ import annotations

import functools
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icy.core.register import register_text_model
from icy.core.registry import registry
from icy.s2b import TextModel, TextReply, TextRequest, TextSettings, evaluate_text, text_model
from icy.s2b.text.cache import CachedModel, keeping
from icy.s2b.text.requests import Choices
from icy.s2b.text.text_model import FunctionModel
from icy.text.completion import described
from tests.s2b.text.test_http import QUICK
from tests.text.server import Answer, failed, serving

DECIDE: Choices = {"decision": ["0", "1"]}
REQUESTS = [TextRequest("?", DECIDE, seed=seed) for seed in range(4)]
UNKNOWN = "does not report which model answers"


class Llama:
    """A server whose model can change: it decides as its model does, and reports the model in one of several ways."""

    def __init__(self, decision: int, **reports: Any) -> None:
        self.decision, self.reports = decision, reports
        self.models: Any = None
        self.stream = False

    def answer(self, asked: Any) -> Answer:
        text = json.dumps({"decision": self.decision})
        if self.stream:
            choice = {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}], **self.reports}
            return Answer(f"data: {json.dumps(choice)}\n\ndata: [DONE]\n\n".encode())
        return Answer(json.dumps({"choices": [{"message": {"content": text}}], **self.reports}).encode())

    def list(self) -> Answer:
        return failed(404) if self.models is None else Answer(json.dumps(self.models).encode())


def listing(**facts: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"object": "model", "created": int(time.time()), "owned_by": "me", **facts}]}


Change = Callable[[Llama, int], None]


def by_model(server: Llama, n: int) -> None:
    server.reports = {"model": f"/models/{n}.gguf"}


def by_stream(server: Llama, n: int) -> None:
    server.reports, server.stream = {"model": f"/models/{n}.gguf"}, True


def by_fingerprint(server: Llama, n: int) -> None:
    server.reports = {"model": "any", "system_fingerprint": f"fp_{n}"}


def by_path(server: Llama, n: int) -> None:  # llama.cpp repeats the requested name
    server.reports, server.models = {"model": "any"}, listing(id=f"/models/{n}.gguf")


def by_size(server: Llama, n: int) -> None:
    server.reports, server.models = {"model": "any"}, listing(id="any", meta={"n_params": n + 1, "size": 9})


def by_root(server: Llama, n: int) -> None:  # vLLM with --served-model-name
    server.reports, server.models = {"model": "any"}, listing(id="any", root=f"org/model-{n}")


def by_date(server: Llama, n: int) -> None:  # Ollama, after a pull
    models = listing(id="any:latest") | {}
    models["data"][0]["created"] = 1_700_000_000 + n
    server.reports, server.models = {"model": "any", "system_fingerprint": "fp_ollama"}, models


CHANGES = [by_model, by_stream, by_fingerprint, by_path, by_size, by_root, by_date]


def decisions(model: Any) -> list[tuple[int | None, bool]]:
    return [(reply.decision, reply.cached) for _, reply in sorted(model.answer(REQUESTS), key=lambda one: one[0])]


@pytest.mark.parametrize("change", CHANGES)
def test_another_model_at_the_same_address_does_not_get_saved_answers(
    change: Change, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = Llama(0)
    with serving(server.answer, server.list) as here:

        def run(decision: int) -> list[tuple[int | None, bool]]:
            server.decision = decision
            change(server, decision)
            return decisions(CachedModel(text_model(f"{here.url}#any", TextSettings(**QUICK)), tmp_path))

        assert run(0) == [(0, False)] * 4
        assert run(0) == [(0, True)] * 4
        assert len(here.asked) == 5  # one request asks for the model
        assert run(1) == [(1, False)] * 4
        assert run(0) == [(0, True)] * 4
        assert run(1) == [(1, True)] * 4
    assert UNKNOWN not in caplog.text


@pytest.mark.parametrize("keep", [False, True], ids=["new object", "same object"])
def test_each_evaluation_asks_which_model_answers(keep: bool, tmp_path: Path) -> None:
    server = Llama(0)
    game: dict[str, Any] = {"episodes": 2, "seeds": 1, "most": 2}
    with serving(server.answer) as here:
        name, settings = f"{here.url}#any", TextSettings(**QUICK)
        kept = keeping(text_model(name, settings), tmp_path)
        tables = []
        for decision in (0, 1, 0):
            by_model(server, decision)
            server.decision = decision
            found = (
                evaluate_text(kept, **game)
                if keep
                else evaluate_text(name, text_settings=settings, cache=tmp_path, **game)
            )
            tables.append(found.table().drop(columns="cached"))
    assert tables[0]["yes"].tolist() == [1.0]
    assert tables[1]["yes"].tolist() == [0.0]
    assert tables[2].equals(tables[0])


def test_a_model_that_changes_during_a_batch_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = Llama(0)

    def answer(asked: Any) -> Answer:
        by_model(server, int(asked.number >= 2))
        return server.answer(asked)

    with serving(answer) as here:
        model = CachedModel(text_model(f"{here.url}#any", TextSettings(**QUICK, concurrency=1)), tmp_path)
        assert len(decisions(model)) == 4
    assert "answered first as the model /models/0.gguf and then as /models/1.gguf" in caplog.text


def test_servers_with_several_fingerprints_share_their_answers(tmp_path: Path) -> None:
    """OpenAI answers from several configurations at once."""
    server = Llama(0)

    def answer(asked: Any) -> Answer:
        server.reports = {"model": "gpt-2026", "system_fingerprint": f"fp_{asked.number % 2}"}
        return server.answer(asked)

    with serving(answer) as here:
        model = CachedModel(text_model(f"{here.url}#gpt", TextSettings(**QUICK)), tmp_path)
        assert decisions(model) == [(0, False)] * 4
        assert decisions(model) == [(0, True)] * 4
        assert len(here.asked) == 4


def test_a_server_that_cannot_report_its_model_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = Llama(0)
    with serving(server.answer) as here:
        model = CachedModel(text_model(f"{here.url}#any", TextSettings(**QUICK)), tmp_path)
        for _ in range(2):
            model.begin(None)  # type: ignore[arg-type]
            decisions(model)
        assert caplog.text.count(UNKNOWN) == 1
        assert "differently now" not in caplog.text
        server.decision = 1
        model.begin(None)  # type: ignore[arg-type]
        decisions(model)
    assert "answers a saved request differently now, so its model may have changed" in caplog.text


@pytest.mark.parametrize(
    ("text", "facts", "names"),
    [
        ("", {}, []),
        ("[[[", {}, []),
        ("null", {}, []),
        ('{"data": 5}', {}, []),
        ('{"data": [5, {"id": "any", "root": "r"}]}', {"root": "r"}, ["any"]),
        ('{"models": [{"name": "x.gguf", "digest": "d"}]}', {"digest": "d"}, ["x.gguf"]),
        ('{"data": [{"id": "a"}, {"id": "b"}]}', {}, ["a", "b"]),
        ('{"data": [{"id": "a"}, {"id": "any", "permission": [{"id": "random"}]}]}', {}, ["a", "any"]),
        ('{"data": [{"id": "a", "created": 4102444800}]}', {"id": "a"}, ["a"]),
        ('{"data": [{"id": "a", "created": 5}]}', {"id": "a", "created": 5}, ["a"]),
    ],
)
def test_lists_of_models_are_read(text: str, facts: dict[str, Any], names: list[str]) -> None:
    assert described(text, "any") == (facts, names)


# -- user code ---------------------------------------------------------------------------------------------------------


def test_models_of_user_code_have_files_per_version_name_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, digest = TextRequest("?", DECIDE), ["a"]

    def path(name: str, **settings: Any) -> Path:
        return CachedModel(text_model(name, TextSettings(**settings)), tmp_path).path(request)

    register_text_model("mine", source="a test")(lambda name, settings: lambda request: TextReply(0))
    try:
        entry = type(registry.get("mine", "text-model"))
        monkeypatch.setattr(entry, "full_version", property(lambda self: f"1-{digest[0]}"))
        paths = [path("mine"), path("mine#x"), path("mine", temperature=0), path("mine", constrain="none")]
        assert path("mine", timeout=1) == paths[0]
        digest[0] = "b"
        assert len({*paths, path("mine")}) == 5
    finally:
        registry._entries.pop(("text-model", "mine"))


def test_a_plain_function_answers_without_being_asked_for_its_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    calls: list[TextRequest] = []
    register_text_model("mine", source="a test")(
        lambda name, settings: lambda request: calls.append(request) or TextReply(1)
    )
    try:
        for _ in range(2):
            decisions(CachedModel(text_model("mine"), tmp_path))
    finally:
        registry._entries.pop(("text-model", "mine"))
    assert len(calls) == 4
    assert caplog.text == ""


class Constant(TextModel):
    """A model of a user that is not registered."""

    def __init__(self, decision: int) -> None:
        self.decision = decision

    def reply(self, request: TextRequest) -> TextReply:
        return TextReply(self.decision)


class Negated(Constant):
    def reply(self, request: TextRequest) -> TextReply:
        return TextReply(1 - self.decision)


def test_models_of_user_code_that_are_not_registered_have_own_files(tmp_path: Path) -> None:
    for _ in range(2):
        found = [decisions(CachedModel(model, tmp_path))[0][0] for model in (Constant(0), Constant(1), Negated(0))]
        assert found == [0, 1, 1]
    assert decisions(CachedModel(Constant(0), tmp_path)) == [(0, True)] * 4


def test_functions_have_own_files(tmp_path: Path) -> None:
    def zero(request: TextRequest) -> TextReply:
        return TextReply(0)

    def one(request: TextRequest) -> TextReply:
        return TextReply(1)

    models = [FunctionModel(function, "f") for function in (zero, one, functools.partial(one))]
    assert [decisions(CachedModel(model, tmp_path))[0][0] for model in models] == [0, 1, 1]
