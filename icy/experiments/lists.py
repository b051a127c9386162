"""What icy has, with descriptions: registered parts such as models, protocols, presets, published tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial

from icy.core.choices import as_text
from icy.core.code import digest_of
from icy.core.errors import UnknownNameError, unknown
from icy.core.register import LISTED, kind_in
from icy.core.registry import PLAYERS, SIDES, Entry, registry
from icy.core.text import listed
from icy.grammars import grammar_sides

LIST_KINDS = (
    *("models", "options", "grammars", "metrics", "players", "text-models", "cores", "worlds", "perceptions"),
    *("study-players", "readers", "protocols", "cells", "presets", "jobs", "published"),
)
PARTS = {"senders": "models", "receivers": "models", "speakers": "players", "listeners": "players"}
OTHER_NAMES = {"published-tables": "published", "tables": "published", "job-kinds": "jobs", "kinds": "jobs"}
Rows = list[dict[str, str]]


def describe(kind: str, pattern: str | None = None) -> Rows:
    """Return the names and descriptions of a kind, as `icy list` prints them.

    Args:
        kind: "models", "options" (in names of models), "grammars", "metrics", "players", "text-models", "cores",
            "worlds", "perceptions", "study-players", "readers", "protocols", "cells", "presets", "jobs", "published"
            (tables), or a part of these such as "senders"; also in the singular.
        pattern: a name, a part of a name, or a shell pattern; by default all.

    Returns:
        A row per name, with texts by heading; `pandas.DataFrame` makes a table of them.

    Raises:
        UnknownNameError: the kind is unknown, or no name matches.

    Example:
        >>> import icy
        >>> [row["grammar"] for row in icy.describe("grammars", "shuf*")]
        ['shuf', 'shufdet']
    """
    found = kind_in((*LIST_KINDS, *PARTS, *OTHER_NAMES), kind)
    if found is None:
        if entries := registry.find_all(kind):
            lists = [f"`icy list {kind_in(LISTED, entry.kind)} {kind}`" for entry in entries]
            raise UnknownNameError(f"'{kind}' is not a kind to list; did you mean {listed(lists, 'or')}?")
        raise unknown("kind to list", kind, [*LIST_KINDS, *PARTS])
    return LISTS[OTHER_NAMES.get(found, found)](pattern)


def _described(entry: Entry) -> str:
    also = f" Also called {' or '.join(entry.aliases)}." if entry.aliases else ""
    options = f" `icy list options {entry.qualified.partition('[')[0]}` shows its options." if entry.choices else ""
    code = f" Its code has the digest {digest_of(parts)}." if (parts := entry.parts) else ""
    return entry.description + also + options + code


def _parts(pattern: str | None, kind: str) -> Rows:
    """Return names, descriptions and sources of a kind of `icy.core.register.LISTED`."""
    qualified = LISTED[kind][0] in (*SIDES, *PLAYERS)
    heading = PARTS.get(kind, kind).removeprefix("study-").removesuffix("s").replace("-", " ")
    return [
        {heading: e.qualified if qualified else e.name, "description": _described(e), "source": e.source}
        for e in _entries(pattern, *LISTED[kind])
    ]


def _options(pattern: str | None) -> Rows:
    entries = _entries(pattern, *SIDES)
    rows = [
        {
            "model": entry.qualified.partition("[")[0],
            "option": option,
            "values, the default first": listed([*map(as_text, values)], "or"),
            "has an effect with": _condition(entry, option),
        }
        for entry in entries
        for option, values in entry.choices.items()
    ]
    if not rows:
        raise UnknownNameError(f"{entries[0].qualified} has no options in its name.")
    return rows


def _condition(entry: Entry, option: str) -> str:
    """Return when an option has an effect, as text; "" for always."""
    alternatives = [
        " and ".join(f"{other}={'|'.join(map(as_text, values))}" for other, values in one.items())
        for one in entry.conditions.get(option, ())
    ]
    return " or ".join(alternatives)


def _grammars(pattern: str | None) -> Rows:
    rows = []
    for entry in _entries(pattern, "grammar"):
        sides = grammar_sides(entry.name)
        used = "both" if sides == SIDES else " ".join(sides)
        rows.append({"grammar": entry.name, "for": used, "description": _described(entry), "source": entry.source})
    return rows


def _entries(pattern: str | None, *kinds: str) -> list[Entry]:
    """Return entries by name or pattern, otherwise by a part of the name."""
    try:
        return registry.match(pattern, *kinds)
    except UnknownNameError as error:
        try:
            return registry.match(f"*{pattern}*", *kinds)
        except UnknownNameError:
            raise error from None


def _protocols(pattern: str | None) -> Rows:
    from icy.config.protocols import PROTOCOLS

    return _containing("protocol", pattern, [
        {"protocol": p.name, "target": f"{p.target:g}", "cap": f"{p.cap:g}", "description": p.description,
         "source": p.source}
        for p in PROTOCOLS.values()
    ])  # fmt: skip


def _presets(pattern: str | None) -> Rows:
    from icy.config.settings import PUBLISHED, Departure
    from icy.games.settings import PRESETS as GAMES
    from icy.s2b.settings import COMPATS
    from icy.study.game.settings import PUBLISHED as STUDY

    presets: dict[str, Mapping[str, Departure]] = {"published": PUBLISHED}
    presets |= {f"s2b {name}": found for name, found in COMPATS.items()}
    presets |= {f"games {name}": found for name, found in GAMES.items()} | {"study published": STUDY}
    usual = "the papers' description, with known errors corrected"
    rows = [{"preset": "default", "departure": "", "settings": "", "reason": usual}]
    for preset, departures in presets.items():
        for name, departure in departures.items():
            changes = ", ".join(f"{key}={json.dumps(value)}" for key, value in departure.settings.items())
            rows.append({"preset": preset, "departure": name, "settings": changes, "reason": departure.reason})
    return _containing("preset", pattern, rows)


def _jobs(pattern: str | None) -> Rows:
    return [
        {
            "job": e.name,
            "description": e.description,
            "command": f"icy {e.load().command or e.name}",
            "source": e.source,
        }
        for e in _entries(pattern, "job")
    ]


def _published(pattern: str | None) -> Rows:
    from icy.analysis.literature.catalogue import PublishedTable, find_published, published_names

    names = published_names()
    found = [one for one in names if fnmatchcase(one.name, f"*{pattern or ''}*".lower())]
    if not found:
        of = find_published(str(pattern)).of
        found = [one for one in names if one.name == of.id]
    rows = []
    for one in found:
        numbers = str(one.of.rows) if isinstance(one.of, PublishedTable) else "-"
        command = f"icy reproduce {one.name}{'' if one.is_measured else ' --dry-run'}"
        rows.append({"name": one.name, "title": one.title, "numbers": numbers, "command": command})
    return rows


def _containing(what: str, pattern: str | None, rows: Rows) -> Rows:
    found = [row for row in rows if (pattern or "").strip("*").lower() in row[what]]
    if not found:
        raise unknown(what, str(pattern), list(dict.fromkeys(row[what] for row in rows)))
    return found


LISTS: dict[str, Callable[[str | None], Rows]] = {
    "options": _options,
    **{kind: partial(_parts, kind=kind) for kind in LISTED},
    "grammars": _grammars,
    "protocols": _protocols,
    "presets": _presets,
    "jobs": _jobs,
    "published": _published,
}
