"""`icy list`: list registered names, with descriptions and sources."""

from __future__ import annotations

import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial

import click

from icy.cli.groups import command
from icy.cli.options import plugin_option
from icy.cli.output import format_option, print_rows
from icy.core.choices import as_text
from icy.core.code import digest_of
from icy.core.errors import UnknownNameError, unknown
from icy.core.register import LISTED, kind_in
from icy.core.registry import PLAYERS, SIDES, Entry, registry
from icy.core.text import listed

Lines = tuple[list[str], list[list[str]]]

LIST_KINDS = (
    "models", "options", "grammars", "metrics", "players", "text-models", "cores", "worlds", "perceptions",
    "study-players", "readers", "protocols", "cells",
    "presets", "jobs", "published",
)  # fmt: skip
PARTS = {"senders": "models", "receivers": "models", "speakers": "players", "listeners": "players"}
OTHER_NAMES = {"published-tables": "published", "tables": "published", "job-kinds": "jobs", "kinds": "jobs"}
EPILOG = """\b
Examples:
  icy list models
  icy list models 'receiver/*'
  icy list grammars --format markdown
  icy list presets
  icy list published perkins21
  icy list models --plugin mine.py
"""


def kind_to_list(name: str) -> str | None:
    """Return the argument of `icy list` for a kind in singular or plural; None for other names.

    Example:
        >>> kind_to_list("Sender"), kind_to_list("text_model"), kind_to_list("tables"), kind_to_list("rot")
        ('senders', 'text-models', 'published', None)
    """
    found = kind_in((*LIST_KINDS, *PARTS, *OTHER_NAMES), name)
    return None if found is None else OTHER_NAMES.get(found, found)


class ListKind(click.Choice[str]):
    """A kind of entries that `icy list` lists, in singular or plural."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of the kind.

        Raises:
            UnknownNameError: no kind has this name; the error suggests lists with an entry of this name.
        """
        if (kind := kind_to_list(value)) is not None:
            return kind
        if found := registry.find_all(value):
            lists = [f"`icy list {kind_to_list(entry.kind)} {value}`" for entry in found]
            raise UnknownNameError(f"'{value}' is not a kind to list; did you mean {listed(lists, 'or')}?")
        raise unknown("kind to list", value, [*LIST_KINDS, *PARTS])


@command("list", epilog=EPILOG)
@click.argument("kind", type=ListKind(LIST_KINDS))
@click.argument("pattern", required=False)
@plugin_option
@format_option
def list_command(kind: str, pattern: str | None, format_: str) -> None:
    """List models, options in names of models, grammars, metrics, players, text models, cores, worlds, perceptions,
    players of the study, readers of files, protocols, recurrent cells, changes of presets, kinds of jobs, or published
    tables.

    PATTERN is a name, a part of a name, or a shell pattern such as '*GRU' or 'sender/RNN*'.
    """
    headings, rows = LISTS[kind](pattern)
    print_rows(headings, rows, format_)


def _described(entry: Entry) -> str:
    also = f" Also called {' or '.join(entry.aliases)}." if entry.aliases else ""
    options = f" `icy list options {entry.qualified.partition('[')[0]}` shows its options." if entry.choices else ""
    code = f" Its code has the digest {digest_of(parts)}." if (parts := entry.parts) else ""
    return entry.description + also + options + code


def _parts(pattern: str | None, kind: str) -> Lines:
    """Return names, descriptions and sources of a kind of `icy.core.register.LISTED`."""
    qualified = LISTED[kind][0] in (*SIDES, *PLAYERS)
    rows = [[e.qualified if qualified else e.name, _described(e), e.source] for e in _entries(pattern, *LISTED[kind])]
    heading = PARTS.get(kind, kind).removeprefix("study-").removesuffix("s").replace("-", " ")
    return [heading, "description", "source"], rows


def _options(pattern: str | None) -> Lines:
    entries = _entries(pattern, *SIDES)
    rows = [
        [entry.qualified.partition("[")[0], option, listed([*map(as_text, values)], "or"), _condition(entry, option)]
        for entry in entries
        for option, values in entry.choices.items()
    ]
    if not rows:
        raise UnknownNameError(f"{entries[0].qualified} has no options in its name.")
    return ["model", "option", "values, the default first", "has an effect with"], rows


def _condition(entry: Entry, option: str) -> str:
    """Return when an option has an effect, as text; "" for always."""
    alternatives = [
        " and ".join(f"{other}={'|'.join(map(as_text, values))}" for other, values in one.items())
        for one in entry.conditions.get(option, ())
    ]
    return " or ".join(alternatives)


def _grammars(pattern: str | None) -> Lines:
    from icy.grammars import grammar_sides

    rows = []
    for entry in _entries(pattern, "grammar"):
        sides = grammar_sides(entry.name)
        rows.append([entry.name, "both" if sides == SIDES else " ".join(sides), _described(entry), entry.source])
    return ["grammar", "for", "description", "source"], rows


def _entries(pattern: str | None, *kinds: str) -> list[Entry]:
    """Return entries by name or pattern, otherwise by a part of the name."""
    try:
        return registry.match(pattern, *kinds)
    except UnknownNameError as error:
        try:
            return registry.match(f"*{pattern}*", *kinds)
        except UnknownNameError:
            raise error from None


def _protocols(pattern: str | None) -> Lines:
    from icy.config.protocols import PROTOCOLS

    headings = ["protocol", "target", "cap", "description", "source"]
    rows = [[p.name, f"{p.target:g}", f"{p.cap:g}", p.description, p.source] for p in PROTOCOLS.values()]
    return headings, _containing("protocol", pattern, rows)


def _presets(pattern: str | None) -> Lines:
    from icy.config.settings import PRESETS, PUBLISHED
    from icy.games.settings import PRESETS as GAMES
    from icy.s2b.settings import COMPATS
    from icy.study.game.settings import PUBLISHED as STUDY

    rows = [["default", "", "", "the papers' description, with known errors corrected"]]
    for name, departure in PUBLISHED.items():
        changes = ", ".join(f"{key}={json.dumps(value)}" for key, value in departure.settings.items())
        rows.append(["published", name, changes, departure.reason])
    assert {row[0] for row in rows} == set(PRESETS)
    others = {f"s2b {name}": found for name, found in COMPATS.items()} | {f"games {n}": d for n, d in GAMES.items()}
    others |= {"study published": STUDY}
    for preset, departures in others.items():
        for name, departure in departures.items():
            changes = ", ".join(f"{key}={json.dumps(value)}" for key, value in departure.settings.items())
            rows.append([preset, name, changes, departure.reason])
    return ["preset", "departure", "settings", "reason"], _containing("preset", pattern, rows)


def _jobs(pattern: str | None) -> Lines:
    rows = [[e.name, e.description, f"icy {e.load().command or e.name}", e.source] for e in _entries(pattern, "job")]
    return ["job", "description", "command", "source"], rows


def _published(pattern: str | None) -> Lines:
    from icy.analysis.literature.catalogue import PublishedTable, find_published, published_names

    part = f"*{pattern or ''}*".lower()
    names = published_names()
    found = [one for one in names if fnmatchcase(one.name, part)]
    if not found:
        of = find_published(str(pattern)).of
        found = [one for one in names if one.name == of.id]
    rows = []
    for one in found:
        numbers = str(one.of.rows) if isinstance(one.of, PublishedTable) else "-"
        rows.append(
            [one.name, one.title, numbers, f"icy reproduce {one.name}{'' if one.is_measured else ' --dry-run'}"]
        )
    return ["name", "title", "numbers", "command"], rows


def _containing(what: str, pattern: str | None, rows: list[list[str]]) -> list[list[str]]:
    found = [row for row in rows if (pattern or "").strip("*").lower() in row[0]]
    if not found:
        raise unknown(what, str(pattern), list(dict.fromkeys(row[0] for row in rows)))
    return found


LISTS: dict[str, Callable[[str | None], Lines]] = {
    "options": _options,
    **{kind: partial(_parts, kind=kind) for kind in LISTED},
    "grammars": _grammars,
    "protocols": _protocols,
    "presets": _presets,
    "jobs": _jobs,
    "published": _published,
}
