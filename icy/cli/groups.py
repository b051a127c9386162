"""Groups and commands that suggest a correction for mistyped and misplaced words."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from icy.core.errors import InvalidSettingError, UnknownNameError, unknown


class Command(click.Command):
    """A command that suggests an option for a word that is not an argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command.

        Raises:
            InvalidSettingError: more arguments than the command takes.
        """
        if not ctx.resilient_parsing and (extra := self._extra(ctx, args)):
            raise self._misplaced(ctx, extra)
        return super().parse_args(ctx, args)

    def _extra(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        """Return the words beyond the arguments of the command; no words if the command only prints help."""
        return [] if {*args} & {*ctx.help_option_names} else list(self.make_parser(ctx).parse_args(args=list(args))[1])

    def _misplaced(self, ctx: click.Context, extra: Sequence[str]) -> InvalidSettingError:
        words = " ".join(extra)
        suggestion = " ".join(found for word in extra if (found := self._option_of(ctx, word)))
        example = next(p for p in self.params if isinstance(p, click.Option) and not p.is_flag)
        usual = f"give the option before it, as in {example.opts[0]} {example.make_metavar(ctx)}."
        advice = f"did you mean {suggestion}?" if suggestion else usual
        return InvalidSettingError(f"`{_path(ctx)}` does not accept '{words}' here; {advice} {_help(ctx)}")

    def _option_of(self, ctx: click.Context, word: str) -> str:
        """Return an option that accepts a word: the option has the word as its name or among its completions."""
        name, equals, value = word.partition("=")
        options = [p for p in self.params if isinstance(p, click.Option)]
        for option in options:
            if equals and f"--{name.replace('_', '-')}" in option.opts:
                return f"{option.opts[0]} {value}"
        for option in options:
            items = [] if option.is_flag else option.shell_complete(ctx, "")
            names = {item.value for item in items if item.type == "plain"}
            if word in {*names, *(name.rpartition("/")[2] for name in names)}:
                return f"{option.opts[0]} {word}"
        return ""


def command(name: str, **how: Any) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a Command; arguments as for `click.command`."""
    return click.command(name, cls=Command, **how)


class SuggestingGroup(click.Group):
    """A group that suggests a command for a mistyped name."""

    command_class = Command

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
        what = "command" if ctx.parent is None else f"command of `{_path(ctx)}`"
        return unknown(what, name, self.list_commands(ctx), _help(ctx))


class LazyGroup(SuggestingGroup):
    """A group that knows the names and help lines of its commands, and imports a command when it runs.

    Args:
        commands: module and help line by command name.
        package: package of the modules; each module has a command `NAME_command`.
        **how: arguments of `click.Group`.
    """

    def __init__(self, commands: Mapping[str, tuple[str, str]], package: str, **how: Any) -> None:
        super().__init__(**how)
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


def _help(ctx: click.Context) -> str:
    return f"`{_path(ctx)} --help` lists {'them' if isinstance(ctx.command, click.Group) else 'its options'}."


def _path(ctx: click.Context) -> str:
    """Return a command as users type it, even if the program has another name in this process."""
    return " ".join(["icy", *ctx.command_path.split()[len(ctx.find_root().command_path.split()) :]])


def words_after(args: Sequence[str], option: str) -> Iterator[str | None]:
    """Yield the values of an option on a line before parsing; None where the line ends."""
    for word, following in zip(args, [*args[1:], None], strict=False):  # an empty line yields nothing
        name, equals, value = word.partition("=")
        if name == option:
            yield value if equals else following
