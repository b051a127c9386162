"""`icy list`, `show` and `generate`: registered names, and the languages of grammars."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from icy.cli.options import (
    OUT,
    Draws,
    FilePath,
    Grammar,
    ListFormat,
    MeaningsText,
    VocabSize,
    WordLength,
    command,
    plugin_option,
)
from icy.cli.output import note, print_rows, stdout
from icy.config.specs import option
from icy.core.choices import as_text
from icy.core.code import digest_of
from icy.core.errors import IncompatibleError, StoreError, UnknownNameError, unknown
from icy.core.register import LISTED, kind_in
from icy.core.registry import PLAYERS, SIDES, Entry, registry
from icy.core.text import counted, listed
from icy.grammars import check_side, expand_grammars, grammar_sides, make_language

if TYPE_CHECKING:
    from icy.languages.language import Language

Lines = tuple[list[str], list[list[str]]]


# -- list --------------------------------------------------------------------------------------------------------------

LIST_KINDS = (
    "models", "options", "grammars", "metrics", "players", "text-models", "cores", "worlds", "perceptions",
    "study-players", "readers", "protocols", "cells",
    "presets", "jobs", "published",
)  # fmt: skip
PARTS = {"senders": "models", "receivers": "models", "speakers": "players", "listeners": "players"}
OTHER_NAMES = {"published-tables": "published", "tables": "published", "job-kinds": "jobs", "kinds": "jobs"}


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


@command("list")
@plugin_option
def list_command(
    kind: Annotated[str, {"type": ListKind(LIST_KINDS)}], pattern: str | None = None, *, format_: ListFormat = "table"
) -> None:
    """List models, options in names of models, grammars, metrics, players, text models, cores, worlds, perceptions,
    players of the study, readers of files, protocols, recurrent cells, changes of presets, kinds of jobs, or published
    tables.

    PATTERN is a name, a part of a name, or a shell pattern such as '*GRU' or 'sender/RNN*'.

    Examples:
      icy list models
      icy list models 'receiver/*'
      icy list grammars --format markdown
      icy list presets
      icy list published perkins21
      icy list models --plugin mine.py
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


# -- show --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """How a language is made.

    Attributes:
        frequencies: frequent values get the short words.
        seed: seed of the words and all random draws.
    """

    meanings: MeaningsText = "3x10"
    vocab_size: VocabSize = 4
    word_length: WordLength = "4"
    frequencies: str | None = option(None, metavar="zipf:S")
    seed: int = 0
    draws: Draws = "icy"

    def language(self, name: str) -> Language:
        """Make the language of a grammar."""
        sizes = self.meanings, self.vocab_size, self.word_length, self.seed
        return make_language(name, *sizes, frequencies=self.frequencies, draws=self.draws)


@dataclass(frozen=True)
class DrawnToWrite(Drawn):
    """How a language is made that is written to a file."""

    meanings: MeaningsText = "5x10"


@command("show", context_settings={"show_default": True})
@plugin_option
def show_command(
    grammar: Grammar,
    *,
    drawn: Drawn,
    side: Literal["sender", "receiver"] | None = None,
    format_: ListFormat = "table",
) -> None:
    """Show example messages of a grammar or chain, and facts about the language.

    GRAMMAR is a name, a chain of corruptions such as rot+perm, or a pattern. Patterns, and 'all', show one column per
    grammar.

    Args:
        side: only grammars for this side; others are an error.

    Examples:
      icy show rot
      icy show rot+perm --meanings 5x10 --seed 123
      icy show concat --word-length 1-4
      icy show all --side receiver
    """
    if grammar == "all" or any(c in grammar for c in "*?["):
        _print_side_by_side([drawn.language(name) for name in _usable(grammar, side)], format_)
        return
    if side is not None:
        check_side(grammar, side)
    _print_one(drawn.language(grammar), format_)


def _usable(pattern: str, side: str | None) -> list[str]:
    """Return grammars by pattern that the side can use; None means any side."""
    sides = [side] if side else list(SIDES)
    found: dict[str, None] = {}
    refused: IncompatibleError | None = None
    for one in sides:
        try:
            found.update(dict.fromkeys(expand_grammars(pattern, one)))
        except IncompatibleError as error:
            refused = error
    if refused is not None and not found:
        raise refused
    return [entry.name for entry in registry.match(pattern, "grammar") if entry.name in found]


def _print_one(language: Language, format_: str) -> None:
    if format_ == "table":
        _print_facts(language)
    examples = language.examples()
    print_rows(list(examples.columns), examples.to_numpy().tolist(), format_)


def _print_facts(language: Language) -> None:
    console, facts = stdout(), language.facts()
    about = " ".join(registry.get(part, "grammar").description for part in language.name.split("+"))
    console.print(f"[bold cyan]{language.name}[/]  {about}")
    console.print(
        f"{facts['space']} meanings ({facts['meanings']}), messages of {_lengths(language)}, seed {facts['seed']}; "
        f"{counted(facts['distinct_messages'], 'distinct message')} "
        f"({facts['fraction_distinct']:.1%}); for {' and '.join(f'{s}s' for s in grammar_sides(language.name))}."
    )
    console.print()


def _lengths(language: Language) -> str:
    """Return the lengths of the messages and the vocabulary size, as text."""
    if language.eos is None:
        return f"{counted(language.message_length, 'token')}, vocabulary {language.vocab_size}"
    few, many = language.lengths.min(), language.lengths.max()
    return f"{few} to {counted(int(many), 'token')}, vocabulary {language.token_count} and the end token"


def _print_side_by_side(languages: list[Language], format_: str) -> None:
    """Print one column per grammar, on a terminal in blocks of columns that fit."""
    columns = {language.name: list(language.examples()["message"]) for language in languages}
    meanings = list(languages[0].examples()["meaning"])
    if format_ != "table":
        _print_block(meanings, columns, list(columns), format_)
        return
    note(
        f"{languages[0].space} meanings, vocabulary {languages[0].token_count}, seed {languages[0].seed}; "
        "`icy show GRAMMAR` says more about one."
    )
    console = stdout()
    room = console.width if console.is_terminal else 10_000
    per_block = max(1, (room - len(meanings[0]) - 4) // (max(len(c[0]) for c in columns.values()) + 3))
    names = list(columns)
    for first in range(0, len(names), per_block):
        _print_block(meanings, columns, names[first : first + per_block], format_)


def _print_block(meanings: list[str], columns: dict[str, list[str]], names: list[str], format_: str) -> None:
    rows = [[meaning, *(columns[name][i] for name in names)] for i, meaning in enumerate(meanings)]
    print_rows(["meaning", *names], rows, format_)


# -- generate ----------------------------------------------------------------------------------------------------------


@command("generate", context_settings={"show_default": True})
@plugin_option
def generate_command(
    grammar: Grammar,
    *,
    drawn: DrawnToWrite,
    out: Annotated[Path, {**OUT, "type": FilePath(path_type=Path)}],
    force: bool = False,
) -> None:
    """Write the language of a grammar or chain to a file, with one message per meaning.

    Args:
        out: file to write: .parquet, .csv or .npz.
        force: overwrite the file if it exists.

    Examples:
      icy generate rot -o rot.parquet
      icy generate shufdet --meanings 4x8 --word-length 3 --seed 7 -o shufdet.csv

    In Python, icy.Language.load reads the file.
    """
    if out.exists() and not force:
        raise StoreError(f"{out} already exists: choose another name, or overwrite it with --force.")
    language = drawn.language(grammar)
    note(f"Wrote {language.save(out)}: {language!r}")
