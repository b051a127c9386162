"""Text models behind servers, against a stand-in that speaks the protocol and misbehaves."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any, get_args

import pytest

from icy.core.errors import IcyError, InvalidSettingError
from icy.s2b import TextModel, TextReply, TextRequest, TextSettings, evaluate_text, text_model
from icy.s2b.text.cache import CachedModel
from icy.s2b.text.http import all_answers, grammar, schema
from icy.s2b.text.prompt import estimated_tokens
from icy.s2b.text.requests import Choices
from icy.text.answer import ServerError, Usage
from icy.text.settings import Constraint
from tests.text.server import YES, Answer, Answering, Asked, StandIn, chosen, failed, said, serving

KEY = "sk-very-secret-0123456789"
QUICK: dict[str, Any] = {"backoff": 0.002, "timeout": 5.0, "retries": 4}
DECIDE: Choices = {"decision": ["0", "1"]}
BOTH: Choices = {"decision": ["0", "1"], "message": [["0", "1", "2"]] * 2}


def ask(server: StandIn, request: TextRequest | None = None, **settings: Any) -> TextReply:
    model = text_model(f"{server.url}#some/model", TextSettings(**{**QUICK, **settings}))
    return model.reply(request or TextRequest("Yes or no?", DECIDE, max_tokens=64, seed=7))


def in_turn(*answers: Answer) -> Answering:
    """The answers one after the other, and then yes."""
    return lambda asked: answers[asked.number] if asked.number < len(answers) else said(YES)


# -- the protocol ------------------------------------------------------------------------------------------------------


def test_request_and_reply() -> None:
    with serving(in_turn()) as server:
        reply = ask(server, temperature=0.5, top_k=50, body={"seed": None, "reasoning_effort": "low"})
    (one,) = server.asked
    assert one.path == "/v1/chat/completions"
    assert one.body.pop("response_format")["json_schema"]["schema"] == schema(DECIDE)
    assert one.body == {
        "model": "some/model",
        "messages": [{"role": "user", "content": "Yes or no?"}],
        "max_tokens": 64,
        "temperature": 0.5,
        "top_p": 0.7,
        "top_k": 50,
        "reasoning_effort": "low",
    }
    assert "Authorization" not in one.headers
    assert (reply.decision, reply.raw, reply.usage) == (0, YES, (100, 5))


def test_answers_are_constrained_as_requested() -> None:
    found = {}
    for how in get_args(Constraint):
        with serving(in_turn()) as server:
            ask(server, TextRequest("?", BOTH), constrain=how)
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


# -- servers that are busy or break ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        failed(408),
        failed(409),
        failed(425),
        failed(429),
        failed(500),
        failed(503),
        Answer(b"{ this is no JSON"),
        Answer(b'{"choices": []}'),
        Answer(b'{"error": "overloaded"}'),
        said(YES, cut=True),
        Answer(b"", cut=True),
    ],
    ids=["408", "409", "425", "429", "500", "503", "broken", "empty", "error", "cut", "cut at once"],
)
def test_a_server_in_trouble_is_asked_again(trouble: Answer) -> None:
    with serving(in_turn(trouble, trouble)) as server:
        model = text_model(f"{server.url}#m", TextSettings(**QUICK))
        assert model.reply(TextRequest("?", DECIDE)).decision == 0
    assert len(server.asked) == 3
    assert model.retried == 2  # type: ignore[attr-defined]
    assert server.asked[0].body == server.asked[2].body


def test_a_server_that_stays_in_trouble_is_given_up() -> None:
    with serving(lambda asked: failed(500, "no memory")) as server, pytest.raises(ServerError) as raised:
        ask(server)
    assert len(server.asked) == 5
    assert str(raised.value) == f"{server.url} answers with status 500 (no memory), 5 times."


@pytest.mark.parametrize(
    ("status", "said_of_it"),
    [
        (400, "choose another --constrain, or none. --body NAME=null"),
        (401, "Name the variable with its key by --key-variable"),
        (404, "The URL ends before /chat/completions"),
        (307, "Use the URL that it redirects to"),
    ],
)
def test_a_refusal_is_not_repeated(status: int, said_of_it: str) -> None:
    elsewhere = {"Location": "http://127.0.0.1:9/v1/chat/completions"} if status == 307 else {}
    refusal = failed(status, "json_schema is unknown", **elsewhere)
    with serving(lambda asked: refusal) as server, pytest.raises(ServerError) as raised:
        ask(server)
    assert len(server.asked) == 1
    assert "json_schema is unknown" in str(raised.value)
    assert said_of_it in str(raised.value)


NOT_FOUND = {  # words of servers that do not have a model
    "OpenAI": (404, "The model `gpt-9` does not exist or you do not have access to it."),
    "vLLM": (404, "The model `llama-3.1-9b` does not exist."),
    "Ollama": (404, 'model "llama9" not found, try pulling it first'),
    "Ollama, newer": (404, "model 'llama9' not found"),
    "LM Studio": (400, 'Invalid model identifier "llama9". Please specify a valid downloaded model.'),
    "LM Studio, empty": (404, "No models loaded. Please load a model in the developer page or use 'lms load'."),
    "OpenRouter": (400, "meta/llama-9 is not a valid model ID"),
    "OpenRouter, provider": (404, "No endpoints found for meta/llama-9."),
    "Mistral": (400, "Invalid model: mistral-9"),
    "Anthropic": (404, "model: claude-9"),
    "Azure": (404, "The API deployment for this resource does not exist."),
    "LiteLLM": (400, "/chat/completions: Invalid model name passed in model=llama9"),
    "Gemini": (404, "models/gemini-9 is not found for API version v1main"),
    "Together": (404, "Unable to access model llama9."),
    "llama.cpp": (400, "model not found"),
}
TOO_LONG = {  # words of servers about the length of prompts
    "vLLM": (
        400,
        "This model's maximum context length is 2048 tokens. However, you requested 3000 tokens (2000 in the messages, "
        "1000 in the completion). Please reduce the length of the messages or completion.",
    ),
    "vLLM, newer": (400, "The decoder prompt (length 5000) is longer than the maximum model length of 2048."),
    "vLLM, nothing left": (400, "max_tokens must be at least 1, got -200."),
    "OpenAI": (400, "max_tokens is too large: 99999. This model supports at most 16384 completion tokens."),
    "llama.cpp": (400, "the request exceeds the available context size, try increasing it"),
    "llama.cpp, older": (500, "the request exceeds the available context size. try increasing the context size"),
    "TGI": (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
    "TGI, inputs": (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000"),
    "LM Studio": (400, "The model is loaded with context length of only 4096 tokens, which is not enough."),
    "Anthropic": (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "OpenRouter": (400, "This endpoint's maximum context length is 8192 tokens."),
    "SGLang": (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
    "Mistral": (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    "Gemini": (400, "The input token count (40000) exceeds the maximum number of tokens allowed (32768)."),
    "Cohere": (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081"),
    "Bedrock": (400, "Input is too long for requested model."),
    "Groq": (413, "Please reduce the length of the messages or completion."),
}
OTHERS = {  # other refusals: advice on the field that the server names
    "wrong URL, Ollama": (404, "404 page not found", "The URL ends before /chat/completions"),
    "wrong URL, FastAPI": (404, "Not Found", "The URL ends before /chat/completions"),
    "wrong URL, OpenAI": (404, "Invalid URL (POST /v1/x/chat/completions)", "The URL ends before"),
    "wrong URL, Express": (404, "Cannot POST /models/chat/completions", "The URL ends before"),
    "temperature": (
        400,
        "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) is supported.",
        "--body temperature=null removes this field",
    ),
    "top_p": (422, "body.top_p: Input should be less than or equal to 1", "--body top_p=null removes this field"),
    "seed": (400, "Unrecognized request argument supplied: seed", "--body seed=null removes this field"),
    "format": (400, "'response_format' of type json_schema is not supported with this model", "another --constrain"),
    "grammar": (400, "failed to parse grammar", "another --constrain"),
    "schema": (400, "Invalid schema for response_format 'answer': the schema exceeds 500 values.", "--constrain"),
}
ADVICE = {
    **{
        f"model, {name}": (*said_, "The name after # must be a model of the server")
        for name, said_ in NOT_FOUND.items()
    },
    **{f"long, {name}": (*said_, "must fit the model's context") for name, said_ in TOO_LONG.items()},
    **OTHERS,
}


@pytest.mark.parametrize(("status", "words", "advice"), ADVICE.values(), ids=ADVICE)
def test_advice_follows_the_words_of_the_server(status: int, words: str, advice: str) -> None:
    with serving(lambda asked: failed(status, words)) as server, pytest.raises(ServerError) as raised:
        ask(server, retries=0)
    assert advice in str(raised.value)
    every = (
        "The name after #",
        "must fit the model",
        "The URL ends",
        "=null removes this field",
        "another --constrain",
    )
    assert sum(one in str(raised.value) for one in every) == 1


def test_a_missing_model_is_reported_with_the_models_of_the_server() -> None:
    models = Answer(json.dumps({"data": [{"id": f"m{n}"} for n in range(10)]}).encode())
    refusal = failed(404, "model not found")
    with serving(lambda asked: refusal, lambda: models) as server, pytest.raises(ServerError) as raised:
        ask(server)
    assert "not 'some/model'. The server's models: m0, m1, m2, m3, m4, m5, m6, m7 and 2 more." in str(raised.value)


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


@pytest.mark.parametrize("form", ["seconds", pytest.param("date", marks=pytest.mark.slow)])
def test_the_server_says_how_long_to_wait(form: str) -> None:
    def answering(asked: Asked) -> Answer:
        wait = "0.3" if form == "seconds" else formatdate(time.time() + 2, usegmt=True)
        return failed(429, Retry_After=wait) if asked.number == 0 else said(YES)

    with serving(answering) as server:
        started = time.monotonic()
        ask(server)
    assert time.monotonic() - started >= 0.3


SLOW = {
    "silent": said(YES, seconds=0.6),
    "byte by byte": said(YES, drip=0.02),
    "headers": said(YES, slow_headers=0.05),
    "headers of a refusal": replace(failed(404), slow_headers=0.05),
    "body of a refusal": replace(failed(404), drip=0.05),
}


@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
def test_an_answer_that_takes_too_long_is_asked_for_again(slow: Answer) -> None:
    with serving(in_turn(slow)) as server:
        assert ask(server, timeout=0.25, retries=50).decision == 0  # a busy machine answers late more than once
    assert len(server.asked) >= 2


@pytest.mark.parametrize("slow", ["host name", "headers", "proxy", "redirect"])
def test_the_timeout_holds_for_the_whole_request(slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drip = {"slow_headers": 0.05}
    moved = replace(failed(302), headers={"Location": "/v1/other"}, **drip)
    with serving(lambda asked: moved if slow == "redirect" else said(YES, **drip)) as server:
        url = server.url
        if slow == "host name":
            monkeypatch.setattr("socket.getaddrinfo", lambda *given, **more: time.sleep(5))
        if slow == "proxy":
            monkeypatch.delenv("no_proxy")
            monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
            url = "http://nowhere.example/v1"
        started = time.monotonic()
        with pytest.raises(ServerError, match=r"gives no answer within 0\.3 s"):
            text_model(f"{url}#m", TextSettings(timeout=0.3, retries=0)).reply(TextRequest("?", DECIDE))
        assert time.monotonic() - started < 3


def test_a_server_that_is_not_there_is_said_at_once() -> None:
    model = text_model("http://127.0.0.1:9/v1#m", TextSettings(retries=50))
    with pytest.raises(ServerError, match=r"http://127\.0\.0\.1:9/v1 cannot be reached"):
        model.reply(TextRequest("?", DECIDE))
    assert model.retried == 0


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
    with serving(in_turn()) as server:
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
    with serving(in_turn()) as server:
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
    with serving(in_turn()) as server:
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


# -- the key -----------------------------------------------------------------------------------------------------------


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_the_key_goes_to_the_server_and_nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_KEY", f"{KEY}\n")
    with serving(lambda asked: said(f'{KEY} {{"decision": 1}}')) as server:  # one that repeats it
        model = cached(server, tmp_path, key_variable="SOME_KEY")
        reply = model.reply(TextRequest("?", DECIDE))
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert reply.decision == 1
    assert KEY not in repr(reply) + repr(vars(model)) + repr(vars(model.model)) + json.dumps(model.identity())
    assert KEY.encode() not in everything_in(tmp_path)


@pytest.mark.parametrize("status", [400, 401, 500, 302])
def test_the_key_is_in_no_error(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with serving(lambda asked: failed(status, f"Incorrect key: {KEY}")) as server, pytest.raises(IcyError) as raised:
        ask(server, key_variable="SOME_KEY", retries=1)
    assert "Incorrect key: (the key)" in str(raised.value)
    assert KEY not in f"{raised.value!r} {raised.value.__cause__!r} {raised.value.__context__!r}"


def test_no_redirect_takes_the_key_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with serving(in_turn()) as thief:
        there = {"Location": f"{thief.url}/chat/completions"}
        with serving(lambda asked: failed(302, **there)) as server, pytest.raises(ServerError):
            ask(server, key_variable="SOME_KEY")
    assert thief.asked == []


@pytest.mark.parametrize("place", ["ftp://a", "", "\u00e9"])
def test_a_redirect_to_nowhere_is_a_refusal(place: str) -> None:
    redirect = failed(302, "moved", Location=place)
    with serving(lambda asked: redirect) as server, pytest.raises(ServerError, match=r"status 302 \(moved\)"):
        ask(server)


def test_a_length_beside_chunks_does_not_count() -> None:
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(said(YES).body), said(YES).body)
    with serving(lambda asked: Answer(chunks, headers={"Transfer_Encoding": "chunked"})) as server:
        assert ask(server).decision == 0


@pytest.mark.parametrize("value", ["", "two words-secret", "ünknown-secret", "secret\nX-Other: 1"])
def test_an_invalid_key_is_reported_before_the_first_game(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(InvalidSettingError, match=r"SOME_KEY (is not set|does not hold a key)") as raised:
        text_model("http://localhost:9/v1#m", TextSettings(key_variable="SOME_KEY"))
    assert "secret" not in str(raised.value)


def test_the_key_is_hidden_however_a_server_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a JSON string with escapes, and cut into the events of a stream."""
    monkeypatch.setenv("SOME_KEY", "sk/very-secret")
    escaped = r'{"choices": [{"message": {"content": "sk\/very-secret 0"}}]}'
    pieces = [{"choices": [{"delta": {"content": one}}]} for one in ("sk/ve", "ry-secret 0")]
    stream = "".join(f"data: {json.dumps(one)}\n\n" for one in pieces) + "data: [DONE]\n\n"
    with serving(lambda asked: Answer((escaped, stream)[asked.number].encode())) as server:
        for _ in range(2):
            assert ask(server, key_variable="SOME_KEY").raw == "(the key) 0"
    refusal = Answer(rb'{"error": {"message": "Wrong: sk\/very-secret"}}', 403)
    with serving(lambda asked: refusal) as server, pytest.raises(ServerError, match=r"Wrong: \(the key\)"):
        ask(server, key_variable="SOME_KEY")


# -- servers that want to be asked in another way ----------------------------------------------------------------------


def test_the_key_is_sent_as_azure_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def answering(asked: Asked) -> Answer:
        names = {name.lower(): value for name, value in asked.headers.items()}
        return said(YES) if names.get("api-key") == KEY else failed(401)

    monkeypatch.setenv("SOME_KEY", KEY)
    with serving(answering) as server:
        model = text_model(f"{server.url}#m", TextSettings(**QUICK, key_variable="SOME_KEY"))
        assert [model.reply(TextRequest("?", DECIDE)).decision for _ in range(2)] == [0, 0]
    assert ["Authorization" in one.headers for one in server.asked] == [True, False, False]
    assert model.retried == 0
    with serving(lambda asked: failed(401)) as server, pytest.raises(ServerError, match="The key comes from SOME_KEY"):
        ask(server, key_variable="SOME_KEY")
    assert len(server.asked) == 2
    with serving(lambda asked: failed(401)) as server, pytest.raises(ServerError, match="by --key-variable"):
        ask(server)
    assert len(server.asked) == 1


UNSUPPORTED = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."


@pytest.mark.parametrize("concurrency", [1, 8])
def test_max_completion_tokens_are_sent_where_a_server_asks_for_them(concurrency: int) -> None:
    def answering(asked: Asked) -> Answer:
        return failed(400, UNSUPPORTED) if "max_tokens" in asked.body else said(YES)

    with serving(answering) as server:
        model = text_model(f"{server.url}#m", TextSettings(**QUICK, concurrency=concurrency))
        identity = model.identity()
        replies = list(model.answer([TextRequest("?", DECIDE, max_tokens=9)] * 8))
    assert [reply.decision for _, reply in replies] == [0] * 8
    assert [one.body.get("max_completion_tokens") for one in server.asked].count(9) == 8
    assert 9 <= len(server.asked) <= 8 + concurrency
    assert model.retried == 0
    assert model.identity() == identity  # so that kept answers are found


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ({"max_tokens": 5}, {"max_completion_tokens": 5}),
        ({"max_completion_tokens": 7}, {"max_completion_tokens": 7}),
        ({"max_tokens": None}, {}),
    ],
    ids=str,
)
def test_user_limits_are_kept(body: dict[str, Any], sent: dict[str, Any]) -> None:
    with serving(in_turn(failed(422, UNSUPPORTED))) as server:
        ask(server, body=body)
    assert {name: value for name, value in server.asked[1].body.items() if name.startswith("max_")} == sent


def test_a_prompt_that_a_filter_refuses_is_an_invalid_answer() -> None:
    refusal = Answer(b'{"error": {"message": "The prompt is filtered.", "code": "content_filter"}}', 400)
    with serving(lambda asked: refusal) as server:
        assert ask(server) == TextReply(None, finish="content_filter")
    assert len(server.asked) == 1


def test_a_server_that_refuses_every_way_is_asked_once_in_each() -> None:
    with serving(lambda asked: failed(400, UNSUPPORTED)) as server, pytest.raises(ServerError, match="max_completion"):
        ask(server)
    assert len(server.asked) == 2


def test_a_server_is_a_text_model() -> None:
    assert isinstance(text_model("http://localhost:9/v1/chat/completions#m"), TextModel)
    assert text_model("http://localhost:9/v1/chat/completions#m").identity()["server"] == "http://localhost:9/v1"
