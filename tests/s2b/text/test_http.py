"""Text models behind servers: constraints of answers, and evaluations against a stand-in for a server."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from icy.core.errors import InvalidSettingError
from icy.s2b import TextModel, TextRequest, TextSettings, evaluate_text, text_model
from icy.s2b.text.http import all_answers, grammar, schema
from icy.s2b.text.prompt import estimated_tokens
from icy.s2b.text.text_model import Choices
from icy.text.interface import Constraint
from tests.text.server import YES, Answer, Asked, chosen, said, serving

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
