"""`icy s2b text`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli.commands.s2b.helpers import QUICK, run
from tests.text.server import YES, chosen, failed, said, serving

SMALL = ("--episodes", "2", "--seeds", "2", "--values", "2")
ROOT = Path(__file__).parents[4]
KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, and reach the stand-in directly."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_a_row_per_model_and_game_and_the_published_ones_below(tmp_path: Path) -> None:
    models = ["--model", "scripted-oracle", "--model", "scripted-yes", "--shots", "1,2", "--format", "json"]
    rows = json.loads(run("text", *QUICK, *models, "--out", "rows.csv").stdout)
    assert [(row["model"], row["S"], row["O"]) for row in rows[:4]] == [
        ("scripted-oracle", 1, 1), ("scripted-oracle", 2, 1), ("scripted-yes", 1, 1), ("scripted-yes", 2, 1),
    ]  # fmt: skip
    assert rows[0]["query"]["mean"] == 100
    assert rows[2]["query"] == rows[2]["is yes"]
    assert rows[2]["says yes"]["mean"] == 100
    assert {row["invalid"]["mean"] for row in rows[:4]} == {0}
    published = {(row["model"], row["S"]): row["query"]["mean"] for row in rows[4:]}
    assert published == {
        ("Mixtral-8x7B-Instruct-v0.1 (MetaRG24)", 1): 45.6,
        ("Mixtral-8x7B-Instruct-v0.1 (MetaRG24)", 2): 49.3,
        ("GPT-4o-mini (MetaRG24)", 1): 33.1,
        ("GPT-4o-mini (MetaRG24)", 2): 36.8,
    }
    assert len(pd.read_csv("rows.csv")) == 8
    assert list(tmp_path.iterdir()) == [tmp_path / "rows.csv"]  # scripts are not worth keeping


@pytest.mark.parametrize("words", [["--values", "2-3"], ["--distractors", "1"], ["--speaker", "bosdis"]], ids=str)
def test_published_rows_are_shown_for_the_same_game_only(words: list[str]) -> None:
    vocabulary = ["--vocab-size", "20"] if "--speaker" in words else []
    result = run("text", *QUICK, "--model", "scripted-yes", *words, *vocabulary)
    assert result.exit_code == 0, result.output
    assert "MetaRG24" not in result.stdout
    assert "cut" not in result.stdout  # which the model does not report


def test_rows_name_the_form_of_the_prompt_and_a_speaker_its_listener() -> None:
    words = ["--model", "scripted-reader#digital", "--role", "speaker", "--listener", "digital", "--no-permutation"]
    result = run("text", *SMALL, *words, "--prompt", "metarg24", "--format", "json", "--out", "rows.csv")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert (row["model"], row["listener"], row["form"]) == ("scripted-reader#digital", "digital", "metarg24")
    assert row["query"]["mean"] > 80
    rows = pd.read_csv("rows.csv")
    assert rows[["role", "listener", "form"]].drop_duplicates().to_numpy().tolist() == [
        ["speaker", "digital", "metarg24"]
    ]


def test_a_dry_run_shows_prompts_and_asks_nobody(tmp_path: Path) -> None:
    with serving(lambda asked: said(YES)) as server:
        words = ["--model", f"{server.url}#m", "--dry-run", "--key-variable", "NOT_SET", "--price-prompt", "10"]
        result = run("text", *QUICK, "--shots", "1,2", *words)
    assert result.exit_code == 0, result.output
    assert server.asked == []
    assert list(tmp_path.iterdir()) == []
    support, query = result.stdout.split("--- a prompt of the ")[1:]
    assert support.startswith("support\nYou play a sequence")
    assert "Phase 1, game 2\n" in support
    assert "Phase 2" not in support.partition("present one last")[2]
    assert "Phase 2, game 1\n" in query
    table = query.splitlines()[-2:]
    assert [line.split()[:4] for line in table] == [["1", "1", "0", "8"], ["2", "1", "0", "8"]]
    assert "one token per word, per group of up to three digits, and per sign" in result.stderr
    assert "Reading them costs about" in result.stderr


def test_counts_of_a_dry_run_are_those_of_the_run() -> None:
    words = ["--model", "scripted-yes", "--format", "json", "--quiet"]
    (draft,) = json.loads(run("text", *QUICK, *words, "--dry-run").stdout)
    run("text", *QUICK, *words, "--out", "rows.parquet")
    rows = pd.read_parquet("rows.parquet")
    assert draft["requests"] == rows["requests"].sum()
    assert draft["prompt tokens"] == round((rows["requests"] * rows["estimated_tokens"]).sum())


@pytest.mark.slow
def test_a_server_is_asked_once_and_costs_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with serving(lambda asked: said(YES)) as server:
        words = ["--model", f"{server.url}#m", "--key-variable", "SOME_KEY", "--price-prompt", "10000"]
        first = run("text", *SMALL, *words, "--out", "first.csv")
        count = len(server.asked)
        second = run("text", *SMALL, *words, "--out", "second.csv")
    assert len(server.asked) == count + 1  # which asks for the model
    assert first.exit_code == second.exit_code == 0, first.output
    assert f"{count} requests, 0 of them answered before; {100 * count:,} tokens read" in first.stdout
    assert f"cost: {count:.4f} for all tokens, {count:.4f} of it in this run" in first.stdout
    assert f"{count} requests, {count} of them answered before" in second.stdout
    assert f"cost: {count:.4f} for all tokens, 0.0000 of it in this run" in second.stdout
    assert {one.headers["Authorization"] for one in server.asked} == {f"Bearer {KEY}"}
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) == count + 2
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
    assert KEY not in first.output + second.output


def test_a_server_that_fails_leaves_what_is_measured_and_the_way_on() -> None:
    def answering(asked: Any) -> Any:
        return failed(500, "melted") if asked.body["model"] == "bad" else said(YES)

    with serving(answering) as server:
        models = ["--model", f"{server.url}#good", "--model", f"{server.url}#bad", "--retries", "0"]
        result = run("text", *SMALL, *models, "--out", "rows.csv")
    assert result.exit_code == 1
    assert "melted" in result.stderr
    assert "saved in icy-text: run the same command again to continue" in result.stderr
    assert f"{server.url}#good" in result.stdout
    assert len(pd.read_csv("rows.csv")) == 2


def test_answers_that_are_cut_are_shown() -> None:
    def answering(asked: Any) -> Any:
        finish = ("stop", "length", "length", "length", "content_filter")[asked.number % 5]
        return chosen({"message": {"content": YES}, "finish_reason": finish})

    with serving(answering) as server:
        words = ["--model", f"{server.url}#m", "--concurrency", "1"]
        result = run("text", *SMALL, *words, "--out", "rows.csv")
        count = len(server.asked)
        again = run("text", *SMALL, *words, "--format", "json")
    cut, filtered = (sum(number % 5 in which for number in range(count)) for which in ((1, 2, 3), (4,)))
    shares = f"cut by --max-tokens: {100 * cut / count:.3g} %, content_filter: {100 * filtered / count:.3g} %"
    assert f"answers {shares}" in " ".join(result.stdout.split())
    rows = pd.read_csv("rows.csv")
    assert (rows["cut"] * rows["requests"]).sum() == pytest.approx(cut)
    assert json.loads(again.stdout)[0]["cut"]["mean"] == pytest.approx(100 * rows["cut"].mean(), abs=0.05)


def test_a_model_that_raises_leaves_what_is_measured(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from icy import register_text_model\n"
        "@register_text_model('mine-raises')\n"
        "def mine(name, settings):\n"
        "    'Raises.'\n"
        "    return lambda request: 1 / 0\n"
    )
    models = ["--model", "scripted-yes", "--model", "mine-raises", "--plugin", "mine.py"]
    result = run("text", *QUICK, *models, "--out", "rows.csv")
    assert isinstance(result.exception, ZeroDivisionError)
    assert "scripted-yes" in result.stdout
    assert set(pd.read_csv("rows.csv")["model"]) == {"scripted-yes"}


@pytest.mark.process
def test_a_run_that_is_interrupted_ends_at_once_and_goes_on(tmp_path: Path) -> None:
    """In a process of its own, which is sent Ctrl-C while it waits for answers."""
    begun = threading.Event()
    slow = [True]

    def answering(asked: Any) -> Any:
        if slow[0] and asked.number >= 6:
            begun.set()
            return said(YES, seconds=1000)
        return said(YES)

    with serving(answering) as server:
        words = ["s2b", "text", *SMALL, "--model", f"{server.url}#m", "--concurrency", "2", "--format", "json"]
        whole = [sys.executable, "-m", "icy", *words]
        place = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(whole, cwd=tmp_path, env=place, stdout=-1, stderr=-1, text=True) as process:
            assert begun.wait(900)
            while len(list(tmp_path.glob("icy-text/*/*.json"))) < 6:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=900)  # does not wait for the server
        assert process.returncode == 130
        assert "0 of 1 row measured; run the same command again to continue from the answers in icy-text" in errors
        kept = len(list(tmp_path.glob("icy-text/*/*.json")))
        assert kept == 6
        slow[0] = False
        before = len(server.asked)
        rest = run(*words[1:])
    assert rest.exit_code == 0
    (row,) = [row for row in json.loads(rest.stdout) if "MetaRG24" not in row["model"]]
    assert row["says yes"]["mean"] == 100
    files = len(list(tmp_path.glob("icy-text/*/*.json")))
    assert len(server.asked) - before == files - kept + 1  # which asks for the model


def test_a_plug_in_is_a_text_model(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from icy import register_text_model\n"
        "from icy.s2b import TextReply\n"
        "@register_text_model('mine-says')\n"
        "def mine(name, settings):\n"
        "    'Says what follows its name.'\n"
        "    return lambda request: TextReply(int(name), None, name)\n"
    )
    result = run("text", *QUICK, "--model", "mine-says#1", "--plugin", "mine.py", "--format", "json")
    row = json.loads(result.stdout)[0]
    assert (row["model"], row["says yes"]["mean"]) == ("mine-says#1", 0)


@pytest.mark.parametrize(
    ("words", "said_of_it"),
    [
        (["--model", "scripted-yess"], "did you mean scripted-yes"),
        (["--model", "scripted-yess", "--dry-run"], "did you mean scripted-yes"),
        (["--model", "http://localhost:1/v1"], "URL#MODEL"),
        (["--model", "http://localhost:abc/v1#m"], "has a port that is not a number"),
        (["--model", "http://a..b/v1#m", "--dry-run"], "has a host that no server can have"),
        (["--model", "localhost:8000/v1#m", "--dry-run"], "has no http:// or https:// at its start"),
        (["--model", "http://localhost:1/v1#m", "--key-variable", "NOT_SET"], "NOT_SET is not set"),
        (["--model", "transformers#nowhere"], "named by its folder"),
        (["--model", "scripted-yes", "--temperature", "-1"], "temperature must be a number, at least 0"),
        (["--model", "scripted-yes", "--price-prompt", "-1"], "'--price-prompt': -1.0 is not in the range x>=0."),
        (["--model", "scripted-yes", "--concurrency", "0"], "concurrency must be"),
        (["--model", "scripted-yes", "--max-tokens", "0"], "max_tokens must be"),
        (["--model", "scripted-yes", "--body", "x"], "name=value"),
        (["--model", "scripted-yes", "--prompt", "metarg"], "metarg24"),
        (["--model", "scripted-yes", "--listener", "nearest"], "The models are the listener here"),
        (["--model", "scripted-yes", "--role", "speaker", "--speaker", "posdis"], "choose their partner by --listener"),
        (["--model", "scripted-yes", "--role", "speaker", "--listener", "nearst"], "did you mean nearest"),
        (["--model", "scripted-yes", "--prompt", "metarg24", "--length", "2"], "needs 3 tokens per game"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(words: list[str], said_of_it: str) -> None:
    result = run("text", *QUICK, *words)
    assert result.exit_code == 2, result.output
    assert said_of_it in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    result = run("text", *QUICK, "--model", "http://localhost:1/v1#m", "--cache", "taken")
    assert result.exit_code == 1
    assert "taken" in result.stderr
    assert "--cache" in result.stderr


def test_requests_are_limited(tmp_path: Path) -> None:
    words = ("text", "--episodes", "2", "--seeds", "1", "--model", "scripted-yes", "--max-requests")
    assert run(*words, "1000").exit_code == 0
    result = run(*words, "3")
    assert result.exit_code == 1
    assert "scripted-yes got 3 requests, the largest number (max_requests)." in result.stderr
