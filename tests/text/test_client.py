"""The client of text servers, against a stand-in that speaks the protocol and misbehaves."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from icy.core.errors import IcyError, InvalidSettingError
from icy.text.client import Client, in_threads
from icy.text.interface import Answer as Reply
from icy.text.interface import Question, ServerError, TextSettings
from tests.text.server import YES, Answer, Answering, Asked, StandIn, chosen, failed, said, serving

KEY = "sk-very-secret-0123456789"
QUICK: dict[str, Any] = {"backoff": 0.002, "timeout": 5.0, "retries": 4}
FIELDS = {"response_format": {"type": "json_schema"}}


def client(server: StandIn, **settings: Any) -> Client:
    return Client(f"{server.url}#some/model", TextSettings(**{**QUICK, **settings}))


def ask(server: StandIn, question: Question | None = None, **settings: Any) -> Reply:
    return client(server, **settings).ask(question or Question("Yes or no?", max_tokens=64, seed=7, fields=FIELDS))


def in_turn(*answers: Answer) -> Answering:
    """The answers one after the other, and then yes."""
    return lambda asked: answers[asked.number] if asked.number < len(answers) else said(YES)


# -- the protocol ------------------------------------------------------------------------------------------------------


def test_request_and_answer() -> None:
    with serving(in_turn()) as server:
        answer = ask(server, temperature=0.5, top_k=50, body={"seed": None, "reasoning_effort": "low"})
    (one,) = server.asked
    assert one.path == "/v1/chat/completions"
    assert one.body == {
        "model": "some/model",
        "messages": [{"role": "user", "content": "Yes or no?"}],
        "max_tokens": 64,
        "temperature": 0.5,
        "top_p": 0.7,
        "top_k": 50,
        **FIELDS,
        "reasoning_effort": "low",
    }
    assert "Authorization" not in one.headers
    assert answer == Reply(YES, usage=(100, 5))  # type: ignore[arg-type]


def test_messages_and_log_probabilities_of_candidates() -> None:
    tokens = [{"token": " A", "logprob": -0.2}, {"token": "A", "logprob": -3.0}, {"token": "C", "logprob": -2.0}]
    choice = {"message": {"content": "A"}, "logprobs": {"content": [{"token": " A", "top_logprobs": tokens}]}}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "A or B?"}]
    with serving(lambda asked: chosen(choice)) as server:
        answer = ask(server, Question(messages, candidates=("A", "B")))
        assert ask(server).logprobs == {}
    assert answer.logprobs == {"A": -0.2}
    assert server.asked[0].body["messages"] == messages
    assert (server.asked[0].body["logprobs"], server.asked[0].body["top_logprobs"]) == (True, 20)
    assert "logprobs" not in server.asked[1].body


def test_a_missing_package_is_reported_only_when_a_server_is_asked() -> None:
    lines = (
        "import sys; sys.modules.update(httpx=None, tenacity=None); import icy.s2b as s2b",
        "s2b.evaluate_text('scripted-yes', episodes=1, seeds=1)",
        "s2b.text_model('http://localhost:9/v1#m')",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith('the extra "text": pip install "icy-toolkit[text]".')
    assert "line 3" in done.stderr


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
        one = client(server)
        assert one.ask(Question("?")).text == YES
    assert len(server.asked) == 3
    assert one.retried == 2
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
    "LM Studio": (400, 'Invalid model identifier "llama9". Please specify a valid downloaded model.'),
    "LM Studio, empty": (404, "No models loaded. Please load a model in the developer page or use 'lms load'."),
    "OpenRouter": (400, "meta/llama-9 is not a valid model ID"),
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
        assert ask(server, timeout=0.25, retries=50).text == YES  # a busy machine answers late more than once
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
            Client(f"{url}#m", TextSettings(timeout=0.3, retries=0)).ask(Question("?"))
        assert time.monotonic() - started < 3


def test_a_server_that_is_not_there_is_said_at_once() -> None:
    one = Client("http://127.0.0.1:9/v1#m", TextSettings(retries=50))
    with pytest.raises(ServerError, match=r"http://127\.0\.0\.1:9/v1 cannot be reached"):
        one.ask(Question("?"))
    assert one.retried == 0


# -- the key -----------------------------------------------------------------------------------------------------------


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
        assert ask(server).text == YES


@pytest.mark.parametrize("value", ["", "two words-secret", "ünknown-secret", "secret\nX-Other: 1"])
def test_an_invalid_key_is_reported_before_the_first_game(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(InvalidSettingError, match=r"SOME_KEY (is not set|does not hold a key)") as raised:
        Client("http://localhost:9/v1#m", TextSettings(key_variable="SOME_KEY"))
    assert "secret" not in str(raised.value)


def test_the_key_is_hidden_however_a_server_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a JSON string with escapes, and cut into the events of a stream."""
    monkeypatch.setenv("SOME_KEY", "sk/very-secret")
    escaped = r'{"choices": [{"message": {"content": "sk\/very-secret 0"}}]}'
    pieces = [{"choices": [{"delta": {"content": one}}]} for one in ("sk/ve", "ry-secret 0")]
    stream = "".join(f"data: {json.dumps(one)}\n\n" for one in pieces) + "data: [DONE]\n\n"
    with serving(lambda asked: Answer((escaped, stream)[asked.number].encode())) as server:
        for _ in range(2):
            assert ask(server, key_variable="SOME_KEY").text == "(the key) 0"
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
        one = client(server, key_variable="SOME_KEY")
        assert [one.ask(Question("?")).text for _ in range(2)] == [YES, YES]
    assert ["Authorization" in asked.headers for asked in server.asked] == [True, False, False]
    assert one.retried == 0
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
        one = client(server, concurrency=concurrency)
        identity = one.identity()
        answers = list(one.ask_all([Question("?", max_tokens=9)] * 8))
    assert [answer.text for _, answer in answers] == [YES] * 8
    assert [asked.body.get("max_completion_tokens") for asked in server.asked].count(9) == 8
    assert 9 <= len(server.asked) <= 8 + concurrency
    assert one.retried == 0
    assert one.identity() == identity  # so that saved answers are found


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
        assert ask(server) == Reply(finish="content_filter")
    assert len(server.asked) == 1


def test_a_server_that_refuses_every_way_is_asked_once_in_each() -> None:
    with serving(lambda asked: failed(400, UNSUPPORTED)) as server, pytest.raises(ServerError, match="max_completion"):
        ask(server)
    assert len(server.asked) == 2


# -- threads -----------------------------------------------------------------------------------------------------------


def test_results_come_as_they_are_ready_each_with_its_place() -> None:
    turns = [threading.Event() for _ in range(3)]

    def wait(thing: int, ending: threading.Event) -> str:
        assert turns[thing].wait(60)
        return f"{thing}"

    results = in_threads(wait, [0, 1, 2], 3)
    for place in (1, 2, 0):
        turns[place].set()
        assert next(results) == (place, f"{place}")
    assert list(results) == []
    assert list(in_threads(wait, [], 3)) == []


def test_after_an_error_nothing_begins_and_nothing_is_lost() -> None:
    begun: list[int] = []
    both = threading.Barrier(2)

    def work(thing: int, ending: threading.Event) -> int:
        begun.append(thing)
        both.wait(60)
        if thing == 0:
            raise ZeroDivisionError
        assert ending.wait(60)  # it is told that nothing is to be tried again
        return thing

    found: list[tuple[int, int]] = []
    with pytest.raises(ZeroDivisionError):
        found.extend(in_threads(work, list(range(20)), 2))
    assert sorted(begun) == [0, 1]
    assert found == [(1, 1)]


def test_threads_end_when_nobody_wants_more() -> None:
    told = threading.Event()

    def work(thing: int, ending: threading.Event) -> int:
        if thing:
            assert ending.wait(60)
            told.set()
        return thing

    results = in_threads(work, [0, 1, 2], 2)
    assert next(results) == (0, 0)
    results.close()  # type: ignore[attr-defined]
    assert told.wait(60)
