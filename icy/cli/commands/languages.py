"""`icy show` and `icy generate`: show a grammar's language, or write it to a file."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from icy.cli import groups
from icy.cli.groups import command
from icy.cli.options import DRAWS, MEANINGS, WORD_LENGTH, Decorator, file_option, plugin_option, together
from icy.cli.output import format_option, note, print_rows, stdout
from icy.core.errors import IncompatibleError, StoreError
from icy.core.registry import SIDES, registry
from icy.core.streams import DrawsName
from icy.core.text import counted
from icy.grammars import check_side, expand_grammars, grammar_sides, make_language

if TYPE_CHECKING:
    from icy.languages.language import Language


Row = list[object]
DEFAULTS = {name: p.default for name, p in inspect.signature(make_language).parameters.items()}

SHOW_EPILOG = """\b
Examples:
  icy show rot
  icy show rot+perm --meanings 5x10 --seed 123
  icy show concat --word-length 1-4
  icy show all --side receiver
"""
GENERATE_EPILOG = """\b
Examples:
  icy generate rot -o rot.parquet
  icy generate shufdet --meanings 4x8 --word-length 3 --seed 7 -o shufdet.csv

In Python, icy.Language.load reads the file.
"""


def _language_options(meanings: str) -> Decorator:
    """Return a decorator that adds the arguments of make_language as options, with its defaults."""
    return together(
        click.option("--meanings", default=meanings, **MEANINGS),
        click.option("--vocab-size", type=int, default=DEFAULTS["vocab_size"], help="Number of tokens, V."),
        click.option("--word-length", metavar="w|w-w", default=str(DEFAULTS["word_length"]), help=WORD_LENGTH),
        click.option("--frequencies", metavar="zipf:S", help="Frequent values get the short words."),
        click.option("--seed", type=int, default=DEFAULTS["seed"], help="Seed of the words and all random draws."),
        click.option("--draws", type=click.Choice(get_args(DrawsName)), default=DEFAULTS["draws"], help=DRAWS),
        plugin_option,
    )


@command("show", epilog=SHOW_EPILOG, context_settings={"show_default": True})
@click.argument("grammar", shell_complete=groups.grammars)
@_language_options(meanings="3x10")
@click.option("--side", type=click.Choice(SIDES), help="Only grammars for this side; others are an error.")
@format_option
def show_command(grammar: str, side: str | None, format_: str, meanings: str, **sizes: Any) -> None:
    """Show example messages of a grammar or chain, and facts about the language.

    GRAMMAR is a name, a chain of corruptions such as rot+perm, or a pattern. Patterns, and 'all', show one column per
    grammar.
    """
    if grammar == "all" or any(c in grammar for c in "*?["):
        names = _usable(grammar, side)
        _print_side_by_side([make_language(name, meanings, **sizes) for name in names], format_)
        return
    if side is not None:
        check_side(grammar, side)
    _print_one(make_language(grammar, meanings, **sizes), format_)


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
    console.print(f"[bold cyan]{language.name}[/]  {_about(language.name)}")
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


def _about(name: str) -> str:
    """Return the descriptions of a chain's grammars."""
    return " ".join(registry.get(part, "grammar").description for part in name.split("+"))


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


@command("generate", epilog=GENERATE_EPILOG, context_settings={"show_default": True})
@click.argument("grammar", shell_complete=groups.grammars)
@_language_options(meanings="5x10")
@file_option("File to write: .parquet, .csv or .npz.", type=click.Path(path_type=Path), required=True)
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def generate_command(grammar: str, out: Path, force: bool, meanings: str, **sizes: Any) -> None:
    """Write the language of a grammar or chain to a file, with one message per meaning."""
    if out.exists() and not force:
        raise StoreError(f"{out} already exists: choose another name, or overwrite it with --force.")
    language = make_language(grammar, meanings, **sizes)
    note(f"Wrote {language.save(out)}: {language!r}")
