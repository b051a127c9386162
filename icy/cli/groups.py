"""Groups and commands that suggest a correction for mistyped and misplaced words."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from icy.core.errors import IcyError, UnknownNameError, unknown
from icy.core.registry import CORE, PERCEPTION, PLAYERS, SIDES, STUDY_PLAYER, TEXT_MODEL, WORLD, Entry, registry

# -- shell completion of names. Nothing here imports torch, because completion has to be instant -----------------------


Items: TypeAlias = "list[CompletionItem[str]]"


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete senders and receivers; add the side if the user typed a side or if both sides have the name."""
    entries, sides = _entries(ctx, *SIDES), "/" in incomplete
    names = [entry.name for entry in entries]
    shown = [(e.qualified if sides or names.count(e.name) > 1 else e.name, e.description) for e in entries]
    return _matching(shown, incomplete)


def grammars(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete grammars, also within a chain (`rot+pe`)."""
    begun, plus, _ = incomplete.rpartition("+")
    names = [(f"{begun}{plus}{entry.name}", entry.description) for entry in _entries(ctx, "grammar")]
    return _matching(names if plus else [*names, ("all", "every grammar")], incomplete)


def plots(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete kinds of plots."""
    from icy.analysis.plots import KINDS

    return _matching(((name, shows) for name, (_, shows) in KINDS.items()), incomplete)


def _names_of(kind: str) -> Callable[[click.Context, click.Parameter, str], Items]:
    """Return a function that completes the names of a kind."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        return _matching(((entry.name, entry.description) for entry in _entries(ctx, kind)), incomplete)

    return complete


metrics, speakers, listeners, text_models = map(_names_of, ("metric", *PLAYERS, TEXT_MODEL))


def files_and_grammars(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete grammars; if no grammar begins like the word, complete files by the shell's own completion."""
    # Not both: bash would drop the names before a file.
    return grammars(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def checkable(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the names of everything that `icy check` checks, with the kind if two kinds share a name."""
    first = [name for entry in _entries(ctx, *SIDES, "grammar") for name in (entry.name, *entry.aliases)]
    others = _entries(ctx, "cell", "metric", *PLAYERS, TEXT_MODEL, CORE, WORLD, PERCEPTION, STUDY_PLAYER)
    names = [*first, *(entry.name for entry in others)]
    shown = [(e.qualified if "/" in incomplete or names.count(e.name) > 1 else e.name, e.description) for e in others]
    return models(ctx, param, incomplete) + grammars(ctx, param, incomplete) + _matching(shown, incomplete)


def protocols(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete protocols."""
    from icy.config.protocols import PROTOCOLS

    return _matching(((p.name, p.description) for p in PROTOCOLS.values()), incomplete)


def _entries(ctx: click.Context, *kinds: str) -> list[Entry]:
    """Return entries of these kinds, including plug-ins named earlier on the line; none if one fails to load."""
    with contextlib.suppress(IcyError):
        registry.load_files(ctx.params.get("plugin") or ())
        return registry.entries(*kinds)
    return []


def _matching(names: Iterable[tuple[str, str]], incomplete: str) -> Items:
    begun = incomplete.lower()
    return [CompletionItem(name, help=text) for name, text in names if name.lower().startswith(begun)]


class ColonBashComplete(BashComplete):
    """Completion for bash that supports names with a colon.

    Bash breaks words at ':', so a completion function gets `HierZero:GR` as three words, and only the last is replaced.
    This class splits the whole line itself and drops everything up to the last colon from its answers, as
    `__ltrim_colon_completions` of the package bash-completion does.
    """

    name = "bash"
    source_template = BashComplete.source_template.replace(
        'COMP_WORDS="', 'COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_BREAKS="$COMP_WORDBREAKS" COMP_WORDS="'
    )
    _typed = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the incomplete word at the cursor."""
        if "COMP_LINE" not in os.environ:  # the shell uses click's own script
            return super().get_completion_args()
        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode(errors="ignore")
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1].isspace() else ""
        if ":" in os.environ.get("COMP_BREAKS", ":"):
            value = incomplete.partition("=")[2] if incomplete.startswith("--") else incomplete
            self._typed = value[: value.rfind(":") + 1]
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return type and value, without the part that bash keeps."""
        return f"{item.type},{item.value[len(self._typed) :]}"


add_completion_class(ColonBashComplete)

ENTRIES = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)  # under "Args:"


def parts_of(whole: str) -> tuple[str, dict[str, str], str]:
    """Split a docstring: the help of a command, the text of each option, and the end of the help, with its lines."""
    text, arguments, rest = whole.partition("\n\nArgs:\n")
    texts = {name: " ".join(said.split()) for name, said in ENTRIES.findall(rest)}
    if arguments:
        rest = re.split(r"\n\n(?=\S)", rest + "\n\n", maxsplit=1)[1]
    else:
        text, begins, rest = whole.partition("\n\nExamples:\n")
        rest = begins.lstrip() + rest
    return text, texts, "\n\n".join(f"\b\n{part}" for part in rest.strip("\n").split("\n\n") if part)


class SuggestingGroup(click.Group):
    """A group that suggests a command for a mistyped name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a line.

        Raises:
            UnknownNameError: no command has that name; the sentence suggests others.
        """
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise self.unknown_command(ctx, name)
        return super().resolve_command(ctx, args)

    def unknown_command(self, ctx: click.Context, name: str) -> UnknownNameError:
        """Return the error for an unknown command."""
        # Not the name of the program, which is another one in this process.
        path = " ".join(["icy", *ctx.command_path.split()[len(ctx.find_root().command_path.split()) :]])
        what = "command" if ctx.parent is None else f"command of `{path}`"
        return unknown(what, name, self.list_commands(ctx), f"`{path} --help` lists them.")


class LazyGroup(SuggestingGroup):
    """A group that knows the names and help lines of its commands, and imports a command when it runs.

    Args:
        commands: module and help line by command name.
        package: package of the modules; each module has a command `NAME_command`.
        help: its help, with examples at the end.
        **how: further arguments of `click.Group`.
    """

    def __init__(self, commands: Mapping[str, tuple[str, str]], package: str, help: str = "", **how: Any) -> None:
        text, _, end = parts_of(inspect.cleandoc(help or ""))
        super().__init__(help=text, epilog=end, **how)
        self._lines, self._package = commands, package

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in their order."""
        return list(self._lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in self._lines:
            return None
        module = importlib.import_module(f"{self._package}.{self._lines[cmd_name][0]}")
        found: click.Command = getattr(module, f"{cmd_name}_command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands in the help, without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._lines.items()])


def words_after(args: Sequence[str], option: str) -> Iterator[str | None]:
    """Yield the values of an option on a line before parsing; None where the line ends."""
    for word, following in zip(args, [*args[1:], None], strict=False):  # an empty line yields nothing
        name, equals, value = word.partition("=")
        if name == option:
            yield value if equals else following
