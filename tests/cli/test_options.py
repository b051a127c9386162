"""Options that commands share."""

from __future__ import annotations

import dataclasses

import click
import pytest

from icy.cli.commands.e2e import e2e_command
from icy.cli.commands.probe import probe_command
from icy.cli.options import SPREADS
from icy.config.specs import EndToEndSpec, ProbeSpec
from tests.cli.helpers import run


@pytest.mark.parametrize(
    ("command", "spec", "more"),
    [(probe_command, ProbeSpec, {"compare", "plot"}), (e2e_command, EndToEndSpec, {"plot"})],
    ids=["probe", "e2e"],
)
def test_options_are_the_fields_of_the_specification(command: click.Command, spec: type, more: set[str]) -> None:
    options = {str(p.name): p for p in command.params if isinstance(p, click.Option)}
    fields = {f.name: f.default for f in dataclasses.fields(spec)}
    assert set(options) - set(fields) == {"dry_run", "format_", "spread", "quiet", "verbose", *more}
    assert all(options[name].help for name in fields)
    for name in ("meanings", "hidden", "out"):
        assert f"[default: {fields[name]}]" in " ".join(run(str(command.name), "--help").stdout.split())


def test_spreads_are_those_of_the_tables() -> None:
    from icy.analysis import cells

    assert tuple(cells.SPREADS) == SPREADS
