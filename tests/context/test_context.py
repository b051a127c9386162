"""Text models in context: scripted models whose numbers are computed by hand, resuming, budgets, and local models."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import icy
from icy import testing
from icy.context.prompts import FORMS, Shown
from icy.context.settings import ContextJob, ContextRequest, ContextSettings, context_jobs
from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError
from icy.core.register import register_text_model
from icy.core.registry import registry
from icy.records.long_table import to_long
from icy.records.record import value_of
from icy.text.interface import Answer, BudgetError, Question, ServerError
from icy.training.job import Replicate
from tests.cli.helpers import run
from tests.s2b.text.test_local import folder as folder
from tests.s2b.text.test_local import installed
from tests.test_docs import block_of
from tests.text.server import Answer as Reply
from tests.text.server import failed, said, serving

pytestmark = pytest.mark.usefixtures("forgetting")
SMALL: dict[str, Any] = {"meanings": "2x4", "word_length": 2, "held_out": 5, "seeds": 1, "cache": "none"}
Row = Sequence[int]


def _asked(model: Callable[[Shown], Row | str], tmp_path: Path, **options: Any) -> dict[str, Any]:
    """The records by grammar of a scripted model, which answers with numbers or with a text."""

    def reply(question: Question) -> Answer:
        shown: Shown = question.data
        answer = model(shown)
        words = shown.sheet.options
        text = answer if isinstance(answer, str) else " ".join(words[p][n] for p, n in enumerate(answer))
        if question.candidates:
            place = len(shown.begun)
            return Answer(logprobs={one: -float(one != text.split()[place]) for one in question.candidates})
        return Answer(text)

    register_text_model("scripted")(lambda name, settings: reply)
    found: Any = icy.in_context("scripted", out=tmp_path / "results", **{**SMALL, **options})
    return {record["grammar"]: record for record in found.records}


def _job(**options: Any) -> ContextJob:
    (job,) = context_jobs(ContextRequest.asked(**{"model": "scripted-yes", **SMALL, **options}))
    return job


def _first_copy(shown: Shown) -> Row:
    """The answer of the first example that shares most places with the query, by loops."""
    shared = [sum(a == b for a, b in zip(x, shown.queries[0], strict=True)) for x in shown.inputs]
    return list(shown.outputs[shared.index(max(shared))])


def _two_words(shown: Shown) -> Row:
    """The message of words that are known from examples; zeros for values that were not shown."""
    half, (first, second) = shown.sheet.length // 2, shown.queries[0]
    heads = {x[0]: y[:half] for x, y in zip(shown.inputs, shown.outputs, strict=True)}
    tails = {x[1]: y[half:] for x, y in zip(shown.inputs, shown.outputs, strict=True)}
    zeros = np.zeros(half, dtype=int)
    return [*heads.get(first, zeros), *tails.get(second, zeros)]


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grammar", ["concat", "rot", "hol"])
@pytest.mark.parametrize("model", [_first_copy, _two_words, lambda shown: [0] * len(shown.sheet.options)])
def test_accuracies_are_those_counted_by_hand(model: Any, grammar: str, tmp_path: Path) -> None:
    record = _asked(model, tmp_path, grammar=grammar, protocol="generalise")[grammar]
    job = _job(grammar=grammar)
    language, own = job.language(Replicate(grammar, 123)), job.settings
    shown, right = own.shown(123, language)
    assert [point[0] for point in record["curve"]] == [4, 8, 11]
    for count, tokens, words, whole, unreadable, *_ in record["curve"]:
        pairs = []
        for query, answer in zip(shown.queries, right, strict=True):
            given = Shown(own.sheet, shown.inputs[:count], shown.outputs[:count], query[None])
            pairs.append((list(model(given)), answer.tolist()))
        assert tokens == pytest.approx(np.mean([[a == b for a, b in zip(*pair, strict=True)] for pair in pairs]))
        assert words == pytest.approx(np.mean([(x[:2] == y[:2]) + (x[2:] == y[2:]) for x, y in pairs]) / 2)
        assert whole == pytest.approx(np.mean([x == y for x, y in pairs]))
        assert unreadable == 0
    assert value_of(record) == record["accuracy"] == record["curve"][-1][1]
    assert (record["chance"], record["requests"], record["cached"]) == (0.25, 15, 0)


def test_a_composer_learns_concat_and_not_hol(tmp_path: Path) -> None:
    found = _asked(_two_words, tmp_path, grammar="concat,hol")
    concat, hol = found["concat"], found["hol"]
    counts, accuracies = zip(*[(0, 0.25), *[point[:2] for point in concat["curve"]]], strict=True)
    after = next(place for place, accuracy in enumerate(accuracies) if accuracy >= 0.8)
    (low, high), (begin, end) = accuracies[after - 1 : after + 1], counts[after - 1 : after + 1]
    crossing = begin + (end - begin) * (0.8 - low) / (high - low)
    assert concat["crossing"] == pytest.approx(crossing)
    assert (concat["reason"], value_of(concat)) == ("target", 1.0)
    assert (hol["reason"], hol["steps"]) == ("cap", 11)
    assert value_of(hol) == pytest.approx(11 / crossing)
    long = to_long(found.values()).set_index("grammar")
    assert long["censored"].to_dict() == {"concat": False, "hol": True}
    assert long["composer"].tolist() == [1.0, pytest.approx(hol["composer"])]  # all values were shown
    assert hol["composer"] < 0.5


def test_without_concat_there_are_no_ratios(tmp_path: Path) -> None:
    found = _asked(lambda shown: "I do not know.", tmp_path, grammar="perm")
    assert {name: record["reason"] for name, record in found.items()} == {"concat": "max_steps", "perm": "no_baseline"}
    assert found["concat"]["unreadable"] == 1.0
    assert found["concat"]["error"] == "concat did not reach 0.8 within 11 examples"


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_choices_are_the_same_answers(role: str, tmp_path: Path) -> None:
    """Places one after the other, or the whole answer."""
    options = {"grammar": "perm", "protocol": "generalise", "role": role}
    whole = _asked(_first_copy, tmp_path / "a", **options)["perm"]
    places = _asked(_first_copy, tmp_path / "b", answers="choices", **options)["perm"]
    assert [point[:5] for point in whole["curve"]] == [point[:5] for point in places["curve"]]
    assert places["requests"] == whole["requests"] * (4 if role == "sender" else 2)
    assert whole["nearest"] == whole["accuracy"]


def test_batches_are_the_same_answers(tmp_path: Path) -> None:
    def all_lines(shown: Shown) -> str:
        each = [Shown(shown.sheet, shown.inputs, shown.outputs, query[None]) for query in shown.queries]
        lines = [shown.sheet.text("Message", _first_copy(one)) for one in each]
        return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))

    options = {"grammar": "perm", "protocol": "generalise"}
    one, two = (_asked(all_lines, tmp_path / str(n), batch=n, **options)["perm"] for n in (1, 2))
    assert one["curve"] == two["curve"]
    assert (one["requests"], two["requests"]) == (15, 9)


def test_baselines_by_hand() -> None:
    job = _job(grammar="perm", role="receiver")
    from icy.context.prompts import baselines

    language = job.language(Replicate("perm", 123))
    shown, right = job.settings.shown(123, language)
    found = baselines(shown, language)
    for query, copied, bag in zip(shown.queries, found["nearest"], found["bag"], strict=True):
        one = Shown(shown.sheet, shown.inputs, shown.outputs, query[None])
        assert copied.tolist() == _first_copy(one)
        distances = [sum(abs(list(x).count(t) - list(query).count(t)) for t in range(4)) for x in shown.inputs]
        assert bag.tolist() == shown.outputs[distances.index(min(distances))].tolist()
    assert found["composer"].tolist() == right.tolist()
    shown, right = _job(grammar="perm").settings.shown(123, language)
    assert found.keys() == baselines(shown, language).keys()
    assert baselines(shown, language)["lookup"].tolist() == right.tolist()  # each token depends on one value


# -- prompts and answers -----------------------------------------------------------------------------------------------


def test_a_prompt_as_it_is_sent() -> None:
    own = _job(grammar="concat").settings
    language = _job(grammar="concat").language(Replicate("concat", 123))
    shown, _ = own.shown(123, language)
    few = Shown(own.sheet, shown.inputs[:1], shown.outputs[:1], shown.queries[:1])
    x, y, query = (" ".join(map(str, one)) for one in (few.inputs[0], few.outputs[0], few.queries[0]))
    assert own.sheet.prompt(few) == (
        "A language has a message for every meaning. A meaning is 2 numbers from 0 to 3. A message is 4 letters out of "
        "a, b, c, d. Answer with the message of the last meaning alone.\n\n"
        f"Meaning: {x}\nMessage: {y.translate(str.maketrans('0123', 'abcd'))}\n\n"
        f"Meaning: {query}\nMessage:"
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_every_form_reads_what_it_shows(form: str, role: str) -> None:
    sheet = _job(grammar="concat", form=form, role=role, meanings="3x4", word_length=3).settings.sheet
    row = [place % 4 for place in range(len(sheet.options))]
    text = sheet.text("Message" if role == "sender" else "Meaning", row)
    for said_so in (
        text,
        f"So it is\n**{text}**",
        text.upper(),
        text.replace(" ", ", "),
        f"<think>no</think>`{text}`.",
    ):
        assert sheet.read(Answer(said_so)) == [row]
    continued = f"{text}\n\n{'Meaning' if role == 'sender' else 'Message'}: x\n{text[::-1]}"
    assert sheet.read(Answer(continued)) == [row]
    assert sheet.read(Answer(f"1. {text}\n2. {text}"), 2) == [row, row]
    for wrong in ("", text[:-2], f"{text} {text}", f"<think>{text}", text.replace(text[0], "#")):
        assert sheet.read(Answer(wrong)) == [None]
    assert sheet.read(Answer(text), 2) == [None, None]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"form": "named-1", "meanings": "7x2", "held_out": 4}, IncompatibleError),
        ({"vocab_size": 27}, IncompatibleError),
        ({"held_out": 13}, InvalidSettingError),
        ({"model": ""}, InvalidSettingError),
        ({"model": "nobody"}, IcyError),
        ({"model": "http://localhost:1"}, InvalidSettingError),
        ({"grammar": "nogrammar"}, IcyError),
        ({"grammar": "shuf"}, IcyError),  # for receivers only
        ({"form": "poem-1"}, IcyError),
        ({"target": 2}, InvalidSettingError),
    ],
)
def test_what_cannot_be_asked(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        _job(**{"grammar": "concat", **options})


def test_examples_grow_to_all_but_the_held_out() -> None:
    assert _job(grammar="concat", meanings="3x4", held_out=16).settings.examples == [4, 8, 16, 32, 48]
    assert _job(grammar="concat", meanings="3x4", most=10).settings.examples == [4, 8, 10]
    job = _job(grammar="concat,perm", seeds=2)
    assert job.requests() == 4 * 3 * 5
    assert job.conditions_text().startswith("Grammars of a sender: concat, perm. 60 requests, about ")


# -- servers, saved answers, budgets and local models ------------------------------------------------------------------


def test_saved_answers_resume_and_requests_are_limited(tmp_path: Path) -> None:
    with serving(lambda asked: said("a b c d")) as server:
        options = {**SMALL, "grammar": "perm", "protocol": "generalise", "cache": str(tmp_path / "cache")}
        name = f"{server.url}#x"
        with pytest.raises(BudgetError, match=r"got 20 requests.*run the same command again to continue"):
            icy.in_context(name, out=tmp_path / "a", max_requests=20, **options)
        assert len(server.asked) == 20
        found: Any = icy.in_context(name, out=tmp_path / "a", max_requests=20, **options)
        assert [(r["requests"], r["cached"]) for r in found.records] == [(15, 0), (15, 5)]  # the first run kept concat
        assert len(server.asked) == 30 + 1  # a run asks once which model answers
        again = icy.in_context(name, out=tmp_path / "b", **options)
        assert [r["curve"] for r in again.records] == [r["curve"] for r in found.records]
        assert {body["temperature"] for body in (one.body for one in server.asked)} == {0}
        assert all("response_format" not in one.body for one in server.asked)


FAULTS = {
    **{str(n): failed(n) for n in (302, 400, 401, 403, 404, 408, 410, 422, 429, 500, 501, 502, 503, 504)},
    **{text.decode(): Reply(text) for text in (b"", b"<html>hello</html>", b"[]", b"null", b"1", b'{"error": "no"}')},
    "no choices": Reply(b'{"choices": []}'), "half": Reply(b'{"choices": [{"mess'), "cut": said("a b c d", cut=True),
    "slow": said("a b c d", seconds=2.0), "long at once": failed(400, "maximum context length"),
    "html error": Reply(b"<html><b>Down</b></html>", 503), "bytes": Reply(bytes(range(256))),
}  # fmt: skip
UNREADABLE: Any = ("", "no", "a b c", "a b c d e", "a b c z", "<think>a b c d", None, [], "{}", "a b c d e f g h")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_fails_ends_the_run_with_a_sentence(fault: str, tmp_path: Path) -> None:
    options = {**SMALL, "grammar": "perm", "retries": 0, "timeout": 0.5, "out": tmp_path}
    with serving(lambda asked: FAULTS[fault]) as server, pytest.raises(ServerError) as error:
        icy.in_context(f"{server.url}#x", **options)
    assert str(error.value).startswith(server.url)
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "records").glob("**/*.json"))  # the next run asks again


@pytest.mark.parametrize("text", UNREADABLE)
def test_answers_that_cannot_be_read_are_counted(text: Any, tmp_path: Path) -> None:
    with serving(lambda asked: said(text)) as server:
        found = icy.in_context(f"{server.url}#x", "concat", out=tmp_path, protocol="generalise", **SMALL)
    record: Any = found.records[0]
    assert (record["unreadable"], record["accuracy"], record["failed"]) == (1.0, 0.0, False)


def test_prompts_stop_before_the_context_is_full(tmp_path: Path) -> None:
    def answering(asked: Any) -> Any:
        return said("a b c d") if asked.prompt.count("Message:") <= 9 else failed(400, "prompt is too long")

    with serving(answering) as server:
        record: Any = icy.in_context(f"{server.url}#x", "concat", out=tmp_path, protocol="generalise", **SMALL).records[
            0
        ]
    assert [point[0] for point in record["curve"]] == [4, 8]
    assert record["steps"] == 8


def test_log_probabilities_of_a_server(tmp_path: Path) -> None:
    """It reports the likeliest tokens; the likeliest candidate among them counts, or else the text."""

    def answering(asked: Any) -> Any:
        tokens = [{"token": " x", "logprob": -0.1}, {"token": " c", "logprob": -1.0}, {"token": "b", "logprob": -2.0}]
        content = [{"top_logprobs": tokens}] if asked.body["logprobs"] else []
        body = {"choices": [{"message": {"content": "x"}, "logprobs": {"content": content}}]}
        return Reply(json.dumps(body).encode())

    with serving(answering) as server:
        options = {**SMALL, "protocol": "generalise", "answers": "choices"}
        record: Any = icy.in_context(f"{server.url}#x", "concat", out=tmp_path, **options).records[0]
    job = _job(grammar="concat")
    _, right = job.settings.shown(123, job.language(Replicate("concat", 123)))
    assert record["accuracy"] == pytest.approx((right == 2).mean())
    assert record["unreadable"] == 0


@pytest.mark.parametrize(
    ("reply", "what"), [(lambda q: "text", "must return an Answer, not str"), (lambda q: 1 / 0, "division by zero")]
)
def test_a_faulty_plug_in_is_a_failure_of_its_replicates(reply: Any, what: str, tmp_path: Path) -> None:
    register_text_model("faulty")(lambda name, settings: reply)
    found = icy.in_context("faulty", "concat", out=tmp_path, **SMALL)
    assert what in str(found.records[0]["error"])
    (of_s2b,) = icy.in_context("scripted-yes", "concat", out=tmp_path, **SMALL).records
    assert "plays only the games of S2B" in str(of_s2b["error"])


@installed
@pytest.mark.parametrize("answers", ["text", "choices"])
def test_a_local_model_of_random_weights_is_at_chance(folder: Path, answers: str, tmp_path: Path) -> None:
    options = {**SMALL, "cache": str(tmp_path / "cache"), "protocol": "generalise", "held_out": 8, "most": 4}
    found: Any = icy.in_context(
        f"transformers#{folder}", "perm,hol", out=tmp_path, answers=answers, max_tokens=8, **{**options, "seeds": 3}
    )
    accuracies = [record["accuracy"] for record in found.records]
    unreadable = {record["unreadable"] for record in found.records}
    if answers == "text":
        assert unreadable == {1.0}  # random bytes
    else:
        assert unreadable == {0.0}
        mean, error = np.mean(accuracies), math.sqrt(0.25 * 0.75 / (9 * 8 * 4))
        assert abs(mean - 0.25) < 4 * error


def test_settings_are_in_records_and_keys() -> None:
    job = _job(grammar="perm")
    config = job.config(job.replicates[0])
    assert (config["model"], config["max_updates"]) == ("sender/scripted-yes", 11)
    for name, other in {"role": "receiver", "form": "named-1", "answers": "choices", "batch": 2, "target": 0.9,
                        "most": 8, "temperature": 1.0, "max_tokens": 5, "held_out": 4}.items():  # fmt: skip
        assert _job(grammar="perm", **{name: other}).key(job.replicates[0]) != job.key(job.replicates[0])
    for name, other in {"cache": "other", "concurrency": 2, "retries": 1, "timeout": 9.0, "max_requests": 5}.items():
        assert _job(grammar="perm", **{name: other}).key(job.replicates[0]) == job.key(job.replicates[0])
    assert isinstance(job.settings, ContextSettings)


def test_the_model_of_the_page_keeps_the_contract(tmp_path: Path) -> None:
    (tmp_path / "nearest.py").write_text(block_of("docs/context.md", "# nearest.py"))
    registry.load_file(tmp_path / "nearest.py")
    testing.check("nearest-copy", "text-model")
    found = icy.in_context("nearest-copy", "perm", out=tmp_path, protocol="generalise", **SMALL)
    assert [r["accuracy"] for r in to_long(found.records).to_dict("records")] == [
        r["nearest"] for r in to_long(found.records).to_dict("records")
    ]


def test_the_command_counts_requests_and_asks_nothing(tmp_path: Path) -> None:
    sizes = ["--meanings", "2x4", "--word-length", "2", "--held-out", "5", "--out", str(tmp_path / "results")]
    with serving(lambda asked: said("a b c d")) as server:
        of_run = [*sizes, "--seeds", "2", "--cache", str(tmp_path / "cache")]
        words = ["context", "-m", f"{server.url}#x", "-g", "perm", *of_run]
        planned = run(*words, "--dry-run")
        assert "60 requests, about " in planned.output
        assert (planned.exit_code, server.asked) == (0, [])
        result = run(*words, "--protocol", "generalise", "--max-requests", "100")
        assert result.exit_code == 0, result.output
        assert f"sender/{server.url}#x" in result.stdout
        assert len(server.asked) == 60
    failure = run(*words, "--protocol", "generalise", "--form", "story-1", "--retries", "0")
    assert failure.exit_code == 1
    assert "\nError: http://127.0.0.1" in failure.stderr
    assert "Traceback" not in failure.stderr
