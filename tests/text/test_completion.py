"""Completions of servers in every shape: an answer, an invalid answer or a retry, never a traceback."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.s2b import TextRequest, TextSettings, evaluate_text, text_model
from icy.s2b.text.text_model import parse
from icy.text.answers import read_completion, words_of
from icy.text.interface import Answer as Completion
from icy.text.interface import ServerError
from tests.text.server import YES, Answer, chosen, said, serving

QUICK: dict[str, Any] = {"backoff": 0.002, "timeout": 5.0, "retries": 1}
PART = {"type": "text", "text": YES}
CALL = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": YES}}
THINKING = {"type": "thinking", "thinking": [PART]}
NO = '{"decision": 1}'


def body(choice: Any, **more: Any) -> str:
    return json.dumps({"choices": [choice], **more})


def message(**fields: Any) -> str:
    return body({"message": {"role": "assistant", **fields}})


def events(*pieces: Any, end: str = "\n\n") -> str:
    return "".join(f"data: {one if isinstance(one, str) else json.dumps(one)}{end}" for one in pieces)


def piece(content: Any = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content}, **more}]}


READ = {  # shapes in which there is an answer, here YES
    "content": message(content=YES),
    "parts": message(content=[PART]),
    "parts in pieces": message(content=[{"type": "text", "text": YES[:5]}, {"type": "output_text", "text": YES[5:]}]),
    "one part": message(content=PART),
    "texts": message(content=[YES[:5], YES[5:]]),
    "thinking part": message(content=[{"type": "thinking", "thinking": NO, "text": NO}, PART]),
    "reasoning_content": message(content=YES, reasoning_content=NO),
    "reasoning": message(content=YES, reasoning=NO),
    "thinking": message(content=YES, thinking=NO),
    "reasoning_details": message(content=YES, reasoning_details=[{"type": "reasoning.text", "text": NO}]),
    "text": body({"text": YES}),
    "text and no message": body({"text": YES, "message": None}),
    "space before": f"\n\n  {message(content=YES)}\n",
    "no role": body({"message": {"content": YES}}),
    "further choices": json.dumps({"choices": [{"message": {"content": YES}}, None, {"message": {"content": NO}}]}),
    "stream": events(piece(""), piece(YES[:5]), piece(YES[5:]), piece(finish_reason="stop"), "[DONE]"),
    "stream without end": events(piece(YES), piece(finish_reason="stop")),
    "stream of two": events(piece(YES), {"choices": [{"index": 1, "delta": {"content": NO}}]}, "[DONE]"),
    "stream with usage": events(piece(YES), {"choices": [], "usage": {}}, "[DONE]"),
    "stream of reasoning": events({"choices": [{"delta": {"reasoning_content": NO}}]}, piece(YES), "[DONE]"),
    "stream of one": events({"choices": [{"message": {"content": YES}}]}, "[DONE]"),
    "stream with comments": f": wait\r\n\r\nevent: x\r\n{events(piece(YES), '[DONE]', end=chr(13) + chr(10))}",
    "stream with separators": events(json.dumps(piece(f"\u2028{YES}"), ensure_ascii=False), "[DONE]"),
}
INVALID = {  # completions without an answer
    "message null": body({"message": None}),
    "message a text": body({"message": YES}),
    "no message": body({"finish_reason": "stop"}),
    "content null": message(content=None),
    "no content": message(),
    "content an object": message(content={"decision": 0}),
    "content a fraction": message(content=0.5),
    "content of nulls": message(content=[None, {"type": "text", "text": None}, {"type": "image_url"}]),
    "content nested": message(content=[[PART]]),
    "refusal": message(content=None, refusal="I cannot."),
    "refusal part": message(content=[{"type": "refusal", "refusal": YES}]),
    "tool calls": body({"message": {"content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}),
    "function call": message(content=None, function_call=CALL["function"]),
    "reasoning alone": message(content=None, reasoning_content=YES),
    "thinking alone": message(content=[{"type": "thinking", "thinking": YES, "text": YES}]),
    "reasoning and empty": message(content="", reasoning=YES, thinking=YES),
    "text null": body({"text": None}),
    "deep content": message(content="[" * 50_000),
    "stream of reasoning alone": events({"choices": [{"delta": {"reasoning": YES}}]}, "[DONE]"),
}
RETRIED = {  # no completion
    "nothing": "",
    "page": "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
    "null": "null",
    "true": "true",
    "text": json.dumps(YES),
    "list": json.dumps([{"message": {"content": YES}}]),
    "no choices": '{"id": "1"}',
    "choices empty": '{"choices": []}',
    "choices an object": json.dumps({"choices": {"0": {"message": {"content": YES}}}}),
    "choice null": '{"choices": [null]}',
    "choice a text": json.dumps({"choices": [YES]}),
    "error": '{"error": "overloaded"}',
    "error and choices": json.dumps({"error": {"message": "no"}, "choices": [{"message": {"content": YES}}]}),
    "failed choice": body({"message": {"content": YES}, "finish_reason": "error"}),
    "cut": message(content=YES)[:-1],
    "deep": "[" * 100_000,
    "deep choices": '{"choices": ' + "[" * 100_000,
    "large number": '{"choices": ' + "9" * 5000 + "}",
    "stream that ends early": events(piece(YES)),
    "stream of nothing": events("[DONE]"),
    "stream without choices": events({"usage": {}}, "[DONE]"),
    "stream that fails": events(piece(YES), {"error": {"message": "no"}}, "[DONE]"),
    "stream of other things": events("hello", "[DONE]"),
    "deep stream": f"data: {'[' * 100_000}\n\n",
}


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_a_completion_with_an_answer(text: str) -> None:
    assert read_completion(text).text.strip() == YES


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_a_completion_without_an_answer_is_invalid(text: str) -> None:
    assert parse(read_completion(text).text).decision is None


@pytest.mark.parametrize("text", RETRIED.values(), ids=RETRIED)
def test_a_response_that_is_no_completion_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_completion(text)


@pytest.mark.parametrize("name", ["page", "deep", "no choices"])
def test_a_server_without_completions_is_given_up_in_a_sentence(name: str) -> None:
    with serving(lambda asked: Answer(RETRIED[name].encode())) as server, pytest.raises(ServerError) as raised:
        text_model(f"{server.url}#m", TextSettings(**QUICK)).reply(TextRequest("?", {}))
    assert "does not answer with a completion but with" in str(raised.value)
    assert len(str(raised.value)) < 200


def test_an_empty_list_of_choices_is_invalid_where_the_server_answers_other_prompts() -> None:
    def answering(asked: Any) -> Answer:
        return said(YES) if "Your answer" not in asked.prompt else Answer(b'{"choices": []}')

    with serving(answering) as server:
        settings = TextSettings(**QUICK, concurrency=1)
        found = evaluate_text(f"{server.url}#m", episodes=2, seeds=1, most=2, text_settings=settings)
    (row,) = found.table().to_dict("records")
    assert row["invalid"] == 1 - 2 / row["requests"]  # all but the first game of each episode
    assert len(server.asked) == 2 + 2 * (row["requests"] - 2)
    with serving(answering) as server, pytest.raises(ServerError, match=r"a completion but .*choices.*2 times"):
        text_model(f"{server.url}#m", settings).reply(TextRequest("Your answer: 0", {}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<!DOCTYPE html><style>a {}</style>\n<h1>502\nBad Gateway</h1>", "502 Bad Gateway"),
        ('{"error": {"message": "no  memory"}}', "no memory"),
        ('{"error": "no memory"}', "no memory"),
        ('{"detail": [1]}', "{'detail': [1]}"),
        ("[" * 100_000, "[" * 297 + "..."),
        ("1 < 2", "1 < 2"),
        ("", ""),
    ],
)
def test_server_errors_are_one_line(text: str, words: str) -> None:
    assert words_of(text) == words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(YES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "delta", "content", "text", "type", "usage", "finish_reason", "index", "error",
                 "prompt_tokens", "completion_tokens", "total_tokens", "completion_tokens_details", "reasoning_tokens"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(JSON, st.booleans())
def test_no_shape_upsets_the_reader(data: Any, streamed: bool) -> None:
    for one in (data, {"choices": data}, {"choices": [data]}, {"choices": [{"message": data}], "usage": data}):
        text = json.dumps(one)
        try:
            found = read_completion(f"data: {text}\n\ndata: [DONE]\n\n" if streamed else text)
        except ValueError:
            continue
        assert isinstance(found, Completion)
        assert isinstance(found.text, str)
        assert found.usage is None or min(found.usage) >= 0


# -- why an answer ends, and its tokens --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("eos_token", "stop"),
        ("x" * 41, "other"),
        ("a\x1b[2J", "other"),
        ("\ud800", "other"),
        ("", None),
        (None, None),
        (5, None),
        (["stop"], None),
    ],
)
def test_why_an_answer_ends(given_: Any, finish: str | None) -> None:
    assert read_completion(body({"message": {"content": YES}, "finish_reason": given_})).finish == finish
    assert read_completion(events(piece(YES, finish_reason=given_), piece(), "[DONE]")).finish == finish


COUNTS = {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (COUNTS, (10, 5)),
        (COUNTS | {"completion_tokens_details": {"reasoning_tokens": 3}}, (10, 5)),
        (COUNTS | {"completion_tokens_details": {"reasoning_tokens": 30}}, (10, 35)),
        (COUNTS | {"total_tokens": 45}, (10, 35)),
        (COUNTS | {"total_tokens": 15}, (10, 5)),
        (COUNTS | {"total_tokens": "many"}, (10, 5)),
        (COUNTS | {"completion_tokens_details": 3}, (10, 5)),
        ({"prompt_tokens": 10, "completion_tokens": -5}, None),
        ({"prompt_tokens": True, "completion_tokens": 5}, None),
        ({"prompt_tokens": 10**30, "completion_tokens": 5}, None),
        ({"prompt_tokens": 10.5, "completion_tokens": 5}, None),
        ({"completion_tokens": 5}, None),
        ([10, 5], None),
        ("many", None),
        (None, None),
    ],
    ids=str,
)
def test_tokens_of_reasoning_count_as_written(usage: Any, tokens: tuple[int, int] | None) -> None:
    assert read_completion(body({"message": {"content": YES}}, usage=usage)).usage == tokens


def test_the_share_of_answers_that_are_cut_is_counted() -> None:
    """Of all but the first of every five answers, which are thoughts that never end."""

    def answering(asked: Any) -> Answer:
        choice = {"message": {"content": YES}, "finish_reason": "stop"}
        return chosen(choice if asked.number % 5 == 0 else {**cut_thought, "finish_reason": "length"})

    cut_thought = {"message": {"content": f"<think>maybe {YES} or {NO}, I am not"}}
    with serving(answering) as server:
        found = evaluate_text(
            f"{server.url}#m", episodes=2, seeds=1, most=2, text_settings=TextSettings(**QUICK, concurrency=1)
        )
    (row,) = found.table().to_dict("records")
    count = len(server.asked)
    kept = (count + 4) // 5
    assert found.finish_reasons == {"stop": kept, "length": count - kept}
    assert row["cut"] == row["invalid"] == (count - kept) / count


# -- bytes -------------------------------------------------------------------------------------------------------------

WHOLE = message(content=f"ü {YES}")


COMPRESSED: dict[str, tuple[str, bytes]] = {
    "gzip": ("gzip", gzip.compress(WHOLE.encode())),
    "x-gzip": ("X-GZIP", gzip.compress(WHOLE.encode())),
    "gzip unsaid": ("", gzip.compress(WHOLE.encode())),
    "deflate": ("deflate", zlib.compress(WHOLE.encode())),
    "raw deflate": ("deflate", zlib.compress(WHOLE.encode())[2:-4]),
    "BOM": ("", WHOLE.encode("utf-8-sig")),
    "UTF-16": ("", WHOLE.encode("utf-16")),
    "no encoding": ("utf-8", WHOLE.encode()),
    "gzip and BOM": ("gzip", gzip.compress(WHOLE.encode("utf-8-sig"))),
}
DAMAGED = {
    "br": ("br", b"\x0b\x02\x80", "does not answer with a completion"),
    "no gzip": ("gzip", b"\x1f\x8bno gzip", "answers with a compressed text that is damaged"),
    "cut gzip": ("gzip", gzip.compress(WHOLE.encode())[:-20], "does not answer with a completion"),
    "no deflate": ("deflate", b"no deflate", "answers with a compressed text that is damaged"),
    "cut deflate": ("deflate", zlib.compress(WHOLE.encode())[:-20], "does not answer with a completion"),
    "large gzip": ("gzip", gzip.compress(b" " * 16_000_001), "answers with more than 16,000,000 bytes"),
    "large unsaid": ("", gzip.compress(b" " * 17_000_001), "does not answer with a completion"),
}


@pytest.mark.parametrize(("encoding", "sent"), COMPRESSED.values(), ids=COMPRESSED)
def test_compressed_answers_and_byte_order_marks_are_read(encoding: str, sent: bytes) -> None:
    with serving(lambda asked: Answer(sent, headers={"Content_Encoding": encoding} if encoding else {})) as server:
        reply = text_model(f"{server.url}#m", TextSettings(**QUICK)).reply(TextRequest("?", {}))
    assert (reply.raw, reply.decision, len(server.asked)) == (f"ü {YES}", 0, 1)


@pytest.mark.parametrize(("encoding", "sent", "fault"), DAMAGED.values(), ids=DAMAGED)
def test_compressed_answers_that_cannot_be_read(encoding: str, sent: bytes, fault: str) -> None:
    answer = Answer(sent, headers={"Content_Encoding": encoding})
    with serving(lambda asked: answer) as server, pytest.raises(ServerError, match=f"{fault}.*, 2 times"):
        text_model(f"{server.url}#m", TextSettings(**QUICK)).reply(TextRequest("?", {}))


def test_a_compressed_refusal_is_read() -> None:
    sent = gzip.compress(b'{"error": {"message": "no such model"}}')
    answer = Answer(sent, 404, {"Content_Encoding": "gzip"})
    with serving(lambda asked: answer) as server, pytest.raises(ServerError, match=r"status 404 \(no such model\)"):
        text_model(f"{server.url}#m").reply(TextRequest("?", {}))
