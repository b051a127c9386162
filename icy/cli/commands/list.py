"""`icy list`, `show` and `generate`: registered names, and the languages of grammars."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from icy.cli import options
from icy.cli.output import fitting, note, print_records, print_rows, stdout
from icy.config.requests import option
from icy.core.errors import IncompatibleError, StoreError
from icy.core.registry import SIDES, registry
from icy.core.text import counted
from icy.experiments.lists import LIST_KINDS, describe
from icy.grammars import check_side, expand_grammars, grammar_sides, make_language

if TYPE_CHECKING:
    from icy.languages.language import Language


# -- list --------------------------------------------------------------------------------------------------------------


KIND = {"metavar": f"{{{'|'.join(LIST_KINDS)}}}", "shell_complete": partial(options.completed, LIST_KINDS)}


@options.command("list")
@options.plugin_option
def list_command(
    kind: Annotated[str, KIND], pattern: str | None = None, *, format_: options.ListFormat = "table"
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
    print_records(describe(kind, pattern), format_)


# -- show --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn(options.LanguageSizes):
    """How a language is made.

    Attributes:
        frequencies: frequent values get the short words.
        seed: seed of the words and all random draws.
    """

    frequencies: str | None = option(None, metavar="zipf:S")
    seed: int = 0

    def language(self, name: str) -> Language:
        """Make the language of a grammar."""
        sizes = self.meanings, self.vocab_size, self.word_length, self.seed
        return make_language(name, *sizes, frequencies=self.frequencies, draws=self.draws)


@dataclass(frozen=True)
class DrawnToShow(Drawn):
    """How a language is made that is shown."""

    meanings: str = option("3x10", metavar="AxK|K,K,...")


@options.command("show", context_settings={"show_default": True})
@options.plugin_option
def show_command(
    grammar: options.Grammar,
    *,
    drawn: DrawnToShow,
    side: Literal["sender", "receiver"] | None = None,
    format_: options.ListFormat = "table",
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
    first, examples = languages[0], [language.examples() for language in languages]
    whole = [["meaning", *(language.name for language in languages)]]
    whole += map(list, zip(examples[0]["meaning"], *(example["message"] for example in examples), strict=True))
    console = stdout()
    if format_ == "table":
        note(
            f"{first.space} meanings, vocabulary {first.token_count}, seed {first.seed}; "
            "`icy show GRAMMAR` says more about one."
        )
    for head, *rows in fitting(whole, console.width) if format_ == "table" and console.is_terminal else [whole]:
        print_rows(head, rows, format_)


# -- generate ----------------------------------------------------------------------------------------------------------


@options.command("generate", context_settings={"show_default": True})
@options.plugin_option
def generate_command(
    grammar: options.Grammar,
    *,
    drawn: Drawn,
    out: Annotated[Path, {**options.OUT, "type": options.FilePath(path_type=Path)}],
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
