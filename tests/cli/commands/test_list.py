"""`icy list`."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from icy.analysis.literature.catalogue import published_names
from icy.cli import main
from tests.cli.helpers import run

# -- help and lists ----------------------------------------------------------------------------------------------------


def test_list_in_every_format() -> None:
    assert "sender/HierZero:GRU" in run("list", "models", "hierzero").stdout
    assert "HierAutoReg" not in run("list", "models", "hierzero").stdout
    assert run("list", "cells", "--format", "markdown").stdout.startswith("| cell | description | source |")
    rows = json.loads(run("list", "grammars", "--format", "json").stdout)
    assert {"grammar": "shuf", "for": "receiver"}.items() <= next(r for r in rows if r["grammar"] == "shuf").items()
    table = csv.DictReader(io.StringIO(run("list", "protocols", "--format", "csv").stdout))
    assert [row["protocol"] for row in table] == ["budget", "acquire", "generalise"]


def test_list_presets_gives_every_departure_its_reason() -> None:
    from icy.config.settings import PUBLISHED

    shown = run("list", "presets").stdout
    assert all(name in shown and departure.reason in shown for name, departure in PUBLISHED.items())


def test_list_knows_plugins(plugin: str) -> None:
    assert "sender/CliGood  A sum of embeddings." in run("list", "models", "CliG", "--plugin", plugin).stdout


def test_options_in_names_are_listed_with_their_conditions() -> None:
    rows = list(csv.DictReader(io.StringIO(run("list", "options", "--format", "csv").stdout)))
    assert [row["option"] for row in rows if row["model"] == "receiver/Composed"][:3] == [
        *("encoder", "direction", "boundary")
    ]
    (layers,) = (row for row in rows if (row["model"], row["option"]) == ("receiver/Composed", "layers"))
    assert (layers["values, the default first"], layers["has an effect with"]) == (
        "1, 2 or 3",
        "encoder=recurrent|transformer",
    )
    assert len(run("list", "option", "sender/composed[layers=2]").stdout.splitlines()) == 13
    assert run("list", "senders", "Comp*").stdout.count("sender/Composed ") == 1
    assert "`icy list options sender/Composed` shows its options" in run("list", "senders", "Comp*").stdout


def test_models_without_options_are_refused() -> None:
    result = CliRunner().invoke(main, ["list", "options", "sender/FC2L"])
    assert (result.exit_code, result.output) == (2, "Error: sender/FC2L has no options in its name.\n")


def test_players_are_listed() -> None:
    result = CliRunner().invoke(main, ["list", "players", "--format", "json"])
    names = [row["player"] for row in json.loads(result.stdout)]
    assert {"speaker/posdis", "listener/binding", "listener/oracle", "listener/always-no"} <= set(names)


def test_departures_of_near32_are_listed() -> None:
    result = CliRunner().invoke(main, ["list", "presets", "s2b", "--format", "json"])
    rows = json.loads(result.stdout)
    assert {row["departure"] for row in rows} == {"samples", "schedule", "query", "ratio", "masks", "duplicates"}


# -- icy.analysis, icy list --------------------------------------------------------------------------------------------


def listed(*words: str) -> list[dict[str, str]]:
    result = CliRunner().invoke(main, ["list", "published", *words, "--format", "json"])
    assert result.exit_code == 0
    rows: list[dict[str, str]] = json.loads(result.stdout)
    return rows


def test_the_catalogue_is_listed() -> None:
    assert [row["name"] for row in listed()] == [one.name for one in published_names()]
    assert listed("perkins21/table14") == [
        {
            "name": "perkins21/table14",
            "title": "In perkins21/table13: Senders, accuracy after as many updates as concat takes",
            "numbers": "525",
            "command": "icy reproduce perkins21/table14",
        }
    ]
    assert [row["name"] for row in listed("perkins21/14")] == ["perkins21/table13"]
    assert [row["name"] for row in listed("PERK*8")] == ["perkins21/table8", "perkins21/table18"]
    by = {row["name"]: row["command"] for row in listed("metarg")}
    assert by["metarg24/llm"] == "icy reproduce metarg24/llm --dry-run"
    assert by["metarg22/listener"] == "icy reproduce metarg22/listener"


@pytest.mark.parametrize("kind", ["senders", "receivers", "tables", "Sender", "published"])
def test_kinds_by_other_names(kind: str) -> None:
    assert CliRunner().invoke(main, ["list", kind]).exit_code == 0


def test_a_misspelt_table_is_not_listed() -> None:
    result = CliRunner().invoke(main, ["list", "published", "metarg22/listner"])
    assert result.exit_code == 2
    assert "did you mean metarg22/listener" in result.stderr


# -- icy metrics -------------------------------------------------------------------------------------------------------


def test_list_metrics() -> None:
    result = CliRunner().invoke(main, ["list", "metrics", "*dis"])
    assert result.output.splitlines()[2:] == [] or "bosdis" in result.output
    assert "posdis" in result.output
    assert "topsim" not in result.output


def test_text_models_are_listed() -> None:
    result = CliRunner().invoke(main, ["list", "text-models", "scripted", "--format", "json"])
    rows = json.loads(result.stdout)
    assert [row["text model"] for row in rows] == ["scripted-oracle", "scripted-reader", "scripted-yes"]
    assert rows[1]["description"].startswith("Reads only the prompt")


def test_cores_are_listed() -> None:
    result = CliRunner().invoke(main, ["list", "cores", "ESBN", "--format", "json"])
    (row,) = json.loads(result.stdout)
    assert row["core"] == "ESBN"
    assert row["source"] == "MetaRG22"
    result = CliRunner().invoke(main, ["list", "cores", "lstm*", "--format", "json"])
    assert [row["core"] for row in json.loads(result.stdout)] == ["LSTM", "LSTM-512"]


def test_worlds_are_listed() -> None:
    result = CliRunner().invoke(main, ["list", "worlds", "--format", "json"])
    rows = {row["world"]: row for row in json.loads(result.stdout)}
    assert {"shape", "thing"} <= set(rows)
    assert rows["thing"]["source"].startswith("CBM24")
