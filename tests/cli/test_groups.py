"""Mistyped and misplaced words: the sentence says what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.cli.commands.list import LISTS, kind_to_list
from icy.core.entry import ENTRY_KINDS
from tests.cli.helpers import assert_one_sentence, run

PLUGIN = "import icy\n@icy.register_sender('MyNet')\ndef make(space, length, vocab, hidden):\n    'Mine.'\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("probe rot", "--grammar rot"),
        ("probe FC2L perm", "--model FC2L --grammar perm"),
        ("probe receiver/FC2L", "--model receiver/FC2L"),
        ("probe -m FC2L budget", "--protocol budget"),
        ("probe model=FC2L", "--model FC2L"),
        ("probe word-length=3", "--word-length 3"),
        ("e2e FC2L RNN1L:GRU", "--sender FC2L"),
        ("s2b eval posdis", "--speaker posdis"),
        ("sweep zoo.toml FC1L", "--model FC1L"),
        ("probe foo", "as in --model NAME"),
        ("doctor foo", "as in --out TEXT"),
    ],
)
def test_an_option_is_suggested_for_a_word_without_one(words: str, meant: str) -> None:
    assert_one_sentence(run(*words.split()), "does not accept", meant, code=2)


def test_help_is_printed_whatever_else_is_typed() -> None:
    assert run("probe", "foo", "--help").exit_code == 0


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("senders", "`icy list senders`"),
        ("metric", "`icy list metrics`"),
        ("rot", "is not a command but a grammar; `icy list grammars rot`"),
        ("games trian", "did you mean train"),
        ("s2b evl", "did you mean eval"),
        ("study serv", "did you mean serve"),
        ("list foo", "No kind to list is called 'foo'"),
        ("list senderz", "did you mean senders"),
        ("list FC1L", "did you mean `icy list senders FC1L`"),
        ("probe -m rot", "which is a grammar"),
        ("show FC1L", "which is a sender"),
        ("probe --modle FC1L", "--model"),
    ],
)
def test_similar_names_are_suggested(words: str, meant: str) -> None:
    result = run(*words.split())
    assert result.exit_code == 2
    assert meant in result.stderr


def test_lists_have_names_in_the_singular_and_the_plural() -> None:
    for kind in (*ENTRY_KINDS, *LISTS):
        name = kind_to_list(kind)
        assert name in LISTS
        assert kind_to_list(name) == name
    one, several = run("list", "sender", "FC*"), run("list", "models", "sender/FC*")
    assert one.stdout == several.stdout != ""
    assert run("list", "speaker").stdout.count("speaker/") == run("list", "players").stdout.count("speaker/")


@pytest.mark.parametrize(
    "words",
    [
        "probe -m Mine", "probe -m sender/FC1L -g mine", "probe -m HierZero:Mine", "metrics mine",
        "metrics rot -m mine", "show mine", "check Mine", "list models Mine", "s2b eval --speaker mine",
        "games train --world mine",
        "s2b train --core mine", "study simulate --player mine", "mine",
    ],
)  # fmt: skip
def test_an_unknown_name_may_be_of_a_plug_in(words: str) -> None:
    result = run(*words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--plugin FILE" in result.stderr


def test_the_names_of_a_plug_in_that_was_given_are_shown(tmp_path: Path, forgetting: None) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN)
    sentence = run("probe", "-m", "Min", "--plugin", str(file)).stderr
    assert "The loaded plug-ins register sender/MyNet; load another plug-in with --plugin FILE" in sentence


def test_an_empty_line_prints_the_help() -> None:
    assert "Usage: " in (done := run()).output
    assert "Traceback" not in done.output
    assert done.exit_code == run("s2b").exit_code
