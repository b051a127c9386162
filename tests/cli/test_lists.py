"""Options with several values: commas, the option repeated, or both; "all" where the names are known."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from icy.cli.options import REPRESENTATIONS
from tests.cli.helpers import run

PROBE = ("probe", "-m", "sender/FC1L", "-g", "perm", "--quick")
PAIR = ("e2e", "-s", "FC1L", "-r", "FC1L", "--quick")


def rows(*words: str) -> list[dict[str, str]]:
    """Return the rows of a plan."""
    done = run(*words, "--dry-run", "-q", "--format", "csv")
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(io.StringIO(done.stdout)))


@pytest.fixture(autouse=True)
def no_estimate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Plans without trial updates, in an empty folder."""
    monkeypatch.setattr("icy.experiments.estimate.estimate", lambda *given, **more: [])
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("before", "option", "several"),
    [
        (PROBE, "representation", ["soft", "discr"]),
        (PROBE, "protocol", ["acquire", "budget"]),
        (PROBE, "meanings", ["2x3", "3x4"]),
        (PROBE, "hidden_size", ["8", "16"]),
        (PAIR, "representation", ["soft", "gumb"]),
        (PAIR, "hidden_size", ["8", "16"]),
    ],
)
def test_commas_and_repeated_options_are_the_same_rows(
    before: tuple[str, ...], option: str, several: list[str]
) -> None:
    flag = {"hidden_size": "--hidden"}.get(option, f"--{option}")
    one, two = several
    expected = [row[option] for row in rows(*before, flag, f"{one},{two}")]
    assert expected == several
    assert [row[option] for row in rows(*before, flag, one, flag, two)] == several
    assert [row[option] for row in rows(*before, f"{flag}= {one} , {two},{one},")] == several


def test_all_is_every_representation_that_a_model_works_with() -> None:
    assert [row["representation"] for row in rows(*PROBE, "--representation", "all")] == list(REPRESENTATIONS)


@pytest.mark.parametrize(
    "words",
    [("-m", "sender/FC1L,receiver/FC1L"), ("-m", "sender/FC1L", "-m", "receiver/FC1L"), ("--model", "*/FC1L")],
)
def test_models_and_grammars_may_be_between_commas(words: tuple[str, ...]) -> None:
    found = rows("probe", *words, "-g", "perm,rot", "--quick")
    assert sorted(row["model"] for row in found) == ["receiver/FC1L", "sender/FC1L"]
    assert {row["to_train"] for row in found} == {"6"}  # with concat, of two seeds


def test_names_are_listed_and_measured_between_commas() -> None:
    both = run("list", "models", "sender/FC1L,sender/FC2L").stdout
    assert both.count("sender/") == 2
    head = run("metrics", "rot,concat", "--meanings", "2x3", "--seeds", "1", "-m", "topsim,posdis", "--format", "csv")
    assert sorted(line.partition(",")[0] for line in head.stdout.splitlines()[1:]) == ["concat", "rot"]
    assert "topsim_mean" in head.stdout
    assert "posdis_mean" in head.stdout
