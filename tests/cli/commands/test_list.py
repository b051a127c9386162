"""`icy list`."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from icy.cli import main
from tests.cli.helpers import run

# -- help and lists ----------------------------------------------------------------------------------------------------


def test_list_presets_gives_every_departure_its_reason() -> None:
    from icy.config.settings import PUBLISHED

    shown = run("list", "presets").stdout
    assert all(name in shown and departure.reason in shown for name, departure in PUBLISHED.items())


def test_list_knows_plugins(plugin: str) -> None:
    assert "sender/CliGood  A sum of embeddings." in run("list", "models", "CliG", "--plugin", plugin).stdout


# -- icy.analysis, icy list --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["senders", "receivers", "tables", "Sender", "published"])
def test_kinds_by_other_names(kind: str) -> None:
    assert CliRunner().invoke(main, ["list", kind]).exit_code == 0


# -- icy metrics -------------------------------------------------------------------------------------------------------
