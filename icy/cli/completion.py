"""Completion of names in the shell. Nothing here imports torch: a completion is wanted at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import TypeAlias

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from icy.core.errors import IcyError
from icy.core.registry import SIDES, Entry, registry

Items: TypeAlias = "list[CompletionItem[str]]"


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Names of senders and receivers; with their side where that was begun, or where both sides have the name."""
    return _matching(_model_names(_entries(ctx, *SIDES), "/" in incomplete), incomplete)


def grammars(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Names of grammars, at every link of a chain (`rot+pe`)."""
    begun, plus, _ = incomplete.rpartition("+")
    names = [(f"{begun}{plus}{entry.name}", entry.description) for entry in _entries(ctx, "grammar")]
    return _matching(names if plus else [*names, ("all", "every grammar")], incomplete)


def metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Names of metrics."""
    return _matching(((entry.name, entry.description) for entry in _entries(ctx, "metric")), incomplete)


def plots(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Kinds of plots."""
    from icy.analysis.plots import KINDS

    return _matching(((name, shows) for name, (_, shows) in KINDS.items()), incomplete)


def speakers(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Names of speakers of S2B."""
    return _matching(((entry.name, entry.description) for entry in _entries(ctx, "speaker")), incomplete)


def listeners(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Names of listeners of S2B."""
    return _matching(((entry.name, entry.description) for entry in _entries(ctx, "listener")), incomplete)


def files_and_grammars(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Names of grammars, and files by the shell's own completion."""
    return [*grammars(ctx, param, incomplete), CompletionItem(incomplete, type="file")]


def models_and_grammars(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Everything that has a contract to check."""
    return models(ctx, param, incomplete) + grammars(ctx, param, incomplete)


def protocols(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Names of protocols."""
    from icy.config.protocols import PROTOCOLS

    return _matching(((p.name, p.description) for p in PROTOCOLS.values()), incomplete)


def _entries(ctx: click.Context, *kinds: str) -> list[Entry]:
    """Entries of these kinds, plug-ins that were named so far among them; none if something cannot be loaded."""
    with contextlib.suppress(IcyError):
        for file in ctx.params.get("plugin") or ():
            registry.load_file(file)
        return registry.entries(*kinds)
    return []


def _model_names(entries: list[Entry], qualified: bool) -> list[tuple[str, str]]:
    names = [entry.name for entry in entries]
    return [(e.qualified if qualified or names.count(e.name) > 1 else e.name, e.description) for e in entries]


def _matching(names: Iterable[tuple[str, str]], incomplete: str) -> Items:
    begun = incomplete.lower()
    return [CompletionItem(name, help=text) for name, text in names if name.lower().startswith(begun)]


class ColonBashComplete(BashComplete):
    """Completion for bash that understands names with a colon.

    Bash takes ':' for the end of a word, so that `HierZero:GR` reaches a completion as three words, and only the last
    is replaced. Here the words are read from the whole line, and what stands before the last colon is left out of the
    answers, which is what `__ltrim_colon_completions` of the package bash-completion does.
    """

    name = "bash"
    source_template = BashComplete.source_template.replace(
        'COMP_WORDS="', 'COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_BREAKS="$COMP_WORDBREAKS" COMP_WORDS="'
    )
    _typed = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the one at the cursor."""
        if "COMP_LINE" not in os.environ:  # set up by a script of click's own
            return super().get_completion_args()
        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode(errors="ignore")
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1].isspace() else ""
        if ":" in os.environ.get("COMP_BREAKS", ":"):
            value = incomplete.partition("=")[2] if incomplete.startswith("--") else incomplete
            self._typed = value[: value.rfind(":") + 1]
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Type and value, less what bash has already behind it."""
        return f"{item.type},{item.value[len(self._typed) :]}"


def register() -> None:
    """Let click use the completion above for bash."""
    add_completion_class(ColonBashComplete)
