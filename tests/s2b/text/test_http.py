"""Text models behind servers: constraints of answers, and evaluations against a stand-in for a server."""

from __future__ import annotations

import functools
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from icy.core.errors import InvalidSettingError
from icy.core.register import register_text_model
from icy.core.registry import registry
from icy.s2b import TextModel, TextReply, TextRequest, TextSettings, evaluate_text, text_model
from icy.s2b.text.text_model import Choices, all_answers, grammar, schema
from icy.text.answers import described
from icy.text.cache import CachedModel, keeping
from icy.text.interface import Constraint, ServerError, Usage, estimated_tokens
from icy.text.models import FunctionModel
from tests.text.server import YES, Answer, Asked, StandIn, chosen, failed, said, serving

QUICK: dict[str, Any] = {"backoff": 0.002, "timeout": 5.0, "retries": 4}
DECIDE: Choices = {"decision": ["0", "1"]}
BOTH: Choices = {"decision": ["0", "1"], "message": [["0", "1", "2"]] * 2}


def test_request_and_reply() -> None:
    with serving(lambda asked: said(YES)) as server:
        model = text_model(f"{server.url}#some/model", TextSettings(**QUICK))
        reply = model.reply(TextRequest("Yes or no?", DECIDE, max_tokens=64, seed=7))
    (one,) = server.asked
    assert one.path == "/v1/chat/completions"
    assert one.body.pop("response_format")["json_schema"]["schema"] == schema(DECIDE)
    assert (one.body["messages"][0]["content"], one.body["max_tokens"], one.body["seed"]) == ("Yes or no?", 64, 7)
    assert (reply.decision, reply.raw, reply.usage) == (0, YES, (100, 5))


def test_answers_are_constrained_as_requested() -> None:
    found = {}
    for how in get_args(Constraint):
        with serving(lambda asked: said(YES)) as server:
            text_model(f"{server.url}#m", TextSettings(constrain=how)).reply(TextRequest("?", BOTH))
        found[how] = server.asked[0].body
    assert found["json-schema"]["response_format"]["json_schema"]["schema"]["properties"]["message"] == {
        "type": "array",
        "items": {"type": "integer", "enum": [0, 1, 2]},
        "minItems": 2,
        "maxItems": 2,
    }
    assert found["structured-outputs"]["structured_outputs"] == {"choice": all_answers(BOTH)}
    assert found["guided-choice"]["guided_choice"] == all_answers(BOTH)
    assert found["grammar"]["grammar"] == grammar(BOTH)
    assert {"response_format", "structured_outputs", "guided_choice", "grammar"} & found["none"].keys() == set()


def test_all_answers_are_listed_unless_there_are_too_many() -> None:
    assert all_answers(DECIDE) == ['{"decision": 0}', '{"decision": 1}']
    assert len(all_answers(BOTH)) == 2 * 3**2
    assert '{"decision": 1, "message": [2, 0]}' in all_answers(BOTH)
    with pytest.raises(InvalidSettingError, match="take --constrain json-schema or grammar"):
        all_answers({"message": [[str(n) for n in range(50)]] * 9})


def test_the_grammar_writes_what_the_parser_reads() -> None:
    decision, token = '("0" | "1")', '("0" | "1" | "2")'
    message = rf'"\"message\": [" {token} ", " {token} "]"'
    assert grammar(BOTH) == rf'root ::= "{{" "\"decision\": " {decision} ", " {message} "}}"'


# -- answers that are invalid ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", ['{"decision": 7}', '{"decision": ', "I cannot tell.", '{"decision": true}', "", None, "-1", '{"d": 0}']
)
def test_invalid_answers_are_counted_and_replaced(content: Any) -> None:
    with serving(lambda asked: said(content)) as server:
        found = evaluate_text(f"{server.url}#m", episodes=2, seeds=1, most=2, text_settings=TextSettings(**QUICK))
    (row,) = found.table().to_dict("records")
    assert (row["invalid"], row["yes"]) == (1.0, 1.0)  # decision 0 in their place
    assert row["requests"] == len(server.asked)  # and none was asked for again


def test_invalid_answers_are_a_share() -> None:
    def answering(asked: Asked) -> Answer:
        return said("Perhaps.") if asked.prompt.count("Your answer") % 2 else said('Sure! {"decision": "1"}')

    with serving(answering) as server:
        found = evaluate_text(f"{server.url}#m", episodes=2, seeds=1, most=2, text_settings=TextSettings(**QUICK))
    (row,) = found.table().to_dict("records")
    assert row["invalid"] == found.counts["invalid"].sum() / found.counts["asked"].sum()
    assert 0.3 < row["invalid"] < 0.6
    assert "Your answer: 0" in server.asked[-1].prompt  # the fallback stands in the history
    assert "Your answer: 1" in server.asked[-1].prompt


# -- many at once ------------------------------------------------------------------------------------------------------


def test_all_episodes_ask_at_once_up_to_the_limit() -> None:
    settings = TextSettings(**QUICK, concurrency=3)
    with serving(lambda asked: said(YES, seconds=0.02)) as server:
        found = evaluate_text(f"{server.url}#m", episodes=4, seeds=2, most=2, text_settings=settings)
    assert server.most_at_once == 3
    assert found.counts["requests"].sum() == len(server.asked)
    (first, second) = found.table().to_dict("records")
    assert first["prompt_tokens"] == second["prompt_tokens"] == 100
    assert found.cost(1.0, 100.0) == pytest.approx((len(server.asked) * 600 / 1e6,) * 2)


@pytest.mark.parametrize(
    ("count", "warns"),
    [
        (lambda estimate: 300, True),
        (lambda estimate: min(estimate, 400), True),
        (lambda estimate: min(int(1.5 * estimate), 500), True),
        (lambda estimate: estimate, False),
        (lambda estimate: int(0.8 * estimate), False),
        (lambda estimate: int(1.6 * estimate), False),
        (lambda estimate: estimate + 900, False),  # a system prompt
        (lambda estimate: 0, False),  # not counted
    ],
    ids=["300", "400", "digits, 500", "all", "few", "digits", "system", "none"],
)
def test_a_server_that_cuts_prompts_is_noticed_once(count: Any, warns: bool, caplog: pytest.LogCaptureFixture) -> None:
    def answering(asked: Asked) -> Answer:
        usage = {"prompt_tokens": count(estimated_tokens(asked.prompt)), "completion_tokens": 5}
        return chosen({"message": {"content": YES}}, usage)

    with serving(answering) as server:
        model = text_model(f"{server.url}#m", TextSettings(**QUICK))
        for _ in range(2):
            evaluate_text(model, episodes=2, seeds=1, most=3)
    assert caplog.text.count("it may cut long prompts") == warns


def test_a_server_is_a_text_model() -> None:
    assert isinstance(text_model("http://localhost:9/v1/chat/completions#m"), TextModel)
    assert text_model("http://localhost:9/v1/chat/completions#m").identity()["server"] == "http://localhost:9/v1"


# -- saved answers are used only for the model that gave them ----------------------------------------------------------


KEY = "sk-very-secret-0123456789"
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


# -- the cache ---------------------------------------------------------------------------------------------------------


def cached(server: StandIn, folder: Path, **settings: Any) -> CachedModel:
    return CachedModel(text_model(f"{server.url}#m", TextSettings(**{**QUICK, **settings})), folder)


def test_a_run_that_failed_goes_on_where_it_ended(tmp_path: Path) -> None:
    game: dict[str, Any] = {"episodes": 3, "seeds": 1, "most": 2}
    with serving(lambda asked: failed(500) if asked.number >= 10 else said('{"decision": 1}')) as server:
        with pytest.raises(ServerError, match="run the same command again to continue"):
            evaluate_text(cached(server, tmp_path, retries=0, concurrency=2), **game)
        answered = len(list(tmp_path.glob("*/*.json")))
        assert answered == 10
    with serving(lambda asked: said('{"decision": 1}')) as second:
        moved = cached(second, tmp_path)
        moved._identity = cached(server, tmp_path)._identity  # which stands at another port now
        rest = evaluate_text(moved, **game)
        again = evaluate_text(moved, **game)
    batches = 2  # each first asks the server for its model
    assert len(second.asked) == rest.counts["requests"].sum() - answered + batches
    assert rest.counts["cached"].sum() == answered
    assert again.counts["cached"].sum() == again.counts["requests"].sum()
    assert again.cost(1, 1) == (again.counts["requests"].sum() * 105 / 1e6, 0.0)
    with serving(lambda asked: said('{"decision": 1}')) as third:
        kept = tmp_path / "third"
        whole = evaluate_text(f"{third.url}#m", text_settings=TextSettings(**QUICK), cache=kept, **game)
        assert len(list(kept.glob("*/*.json"))) == len(third.asked)
    assert rest.table().drop(columns="cached").equals(whole.table().drop(columns="cached"))


def test_whatever_an_answer_depends_on_has_a_file_of_its_own(tmp_path: Path) -> None:
    request = TextRequest("?", DECIDE, seed=1)
    with serving(lambda asked: said(YES)) as server:
        model = cached(server, tmp_path)
        paths = {
            model.path(request),
            model.path(TextRequest("??", DECIDE, seed=1)),
            model.path(TextRequest("?", BOTH, seed=1)),
            model.path(TextRequest("?", DECIDE, seed=2)),
            model.path(TextRequest("?", DECIDE, seed=1, max_tokens=1)),
            cached(server, tmp_path, temperature=0.1).path(request),
            cached(server, tmp_path, constrain="none").path(request),
            cached(server, tmp_path, body={"x": 1}).path(request),
            CachedModel(text_model(f"{server.url}#other"), tmp_path).path(request),
        }
        assert len(paths) == 9
        assert cached(server, tmp_path, retries=9, timeout=1, concurrency=1).path(request) in paths
        assert model.path(TextRequest("?", DECIDE, seed=1, game=9, episode_id=3)) in paths


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    request, before = TextRequest("?", DECIDE), {"raw": "1", "decision": 1, "message": None, "usage": [100, 5]}
    with serving(lambda asked: said(YES)) as server:
        model = cached(server, tmp_path)
        model.path(request).parent.mkdir()
        model.path(request).write_text(json.dumps(before))
        assert model.reply(request) == TextReply(1, None, "1", usage=Usage(100, 5), cached=True)
        thought = '<think>maybe {"decision": 1} or'
        model.path(request).write_text(json.dumps(before | {"raw": thought}))
        assert model.reply(request) == TextReply(None, None, thought, usage=Usage(100, 5), cached=True)
    assert len(server.asked) == 1  # which asks for the model


def test_the_name_of_a_file_is_that_of_earlier_versions(tmp_path: Path) -> None:
    model = CachedModel(text_model("http://localhost:9/v1#m"), tmp_path)
    assert model.path(TextRequest("?", DECIDE, max_tokens=64, seed=7)).stem == "4d7037fd1fcdbe6e1eec1499615284ec"


def test_finish_reasons_are_saved(tmp_path: Path) -> None:
    request = TextRequest("?", DECIDE)
    with serving(lambda asked: chosen({"message": {"content": YES}, "finish_reason": "length"})) as server:
        first, second = (cached(server, tmp_path).reply(request) for _ in range(2))
    assert (first.finish, second.finish, second.cached) == ("length", "length", True)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"raw": 1}',
        b'{"raw":"","decision":0,"message":null,"usage":5}',
        b'{"raw":"","decision":0,"message":null,"usage":[1e400,1]}',
        b'{"raw":"","decision":0,"message":null,"usage":[-1,1]}',
    ],
)
def test_a_damaged_file_is_asked_for_again(tmp_path: Path, content: bytes) -> None:
    request = TextRequest("?", DECIDE)
    with serving(lambda asked: said(YES)) as server:
        model = cached(server, tmp_path)
        model.path(request).parent.mkdir()
        model.path(request).write_bytes(content)
        assert not model.reply(request).cached
        assert model.reply(request).cached
    assert len(server.asked) == 1


def test_answers_that_are_invalid_are_kept_as_they_are(tmp_path: Path) -> None:
    with serving(lambda asked: said("Perhaps.")) as server:
        model = cached(server, tmp_path)
        first, second = (model.reply(TextRequest("?", DECIDE)) for _ in range(2))
    assert len(server.asked) == 1
    assert (first.raw, first.decision) == (second.raw, second.decision) == ("Perhaps.", None)


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_the_key_goes_to_the_server_and_nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_KEY", f"{KEY}\n")
    with serving(lambda asked: said(f'{KEY} {{"decision": 1}}')) as server:  # one that repeats it
        model = cached(server, tmp_path, key_variable="SOME_KEY")
        reply = model.reply(TextRequest("?", DECIDE))
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert reply.decision == 1
    client: Any = model.model.client  # type: ignore[attr-defined]
    assert KEY not in repr([reply, vars(model), vars(model.model), vars(client), vars(client._http), model.identity()])
    assert KEY.encode() not in everything_in(tmp_path)
