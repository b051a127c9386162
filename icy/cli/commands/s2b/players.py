"""Options of players and of their games."""

from __future__ import annotations

from typing import Annotated, Any

import click

from icy.cli.options import Decorator, Several, agents_where, fields_of, together
from icy.core.checks import parse_whole
from icy.core.errors import quoted
from icy.core.registry import LISTENER, SPEAKER
from icy.core.types import Fields
from icy.experiments.players import SWEPT
from icy.experiments.text_models import PARTNERS
from icy.s2b.settings import COMPATS, GameSettings

OF = fields_of(GameSettings)
TRAINED = "; or a results folder or a file of trained agents, which sets the default game."


class Values(click.ParamType):  # type: ignore[type-arg]
    """A number of values or a range, as in 5 or 2-5."""

    name = "values"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return the smallest and the largest number."""
        if isinstance(value, tuple):
            return value
        text, dash, end = str(value).partition("-")
        least, most = parse_whole(text), parse_whole(end if dash else text)
        if least is None or most is None:
            self.fail(f"{quoted(str(value))} is not a number of values (5) or a range (2-5).", param, ctx)
        return least, most


class Ratio(click.ParamType):  # type: ignore[type-arg]
    """A share from 0 to 1, or "even" for 1 / (number of decisions)."""

    name = "ratio"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """Return the share; None for "even"."""
        if value == "even":
            return None
        try:
            return float(str(value))
        except ValueError:
            self.fail(f"'{value}' is not a share (0.5) or 'even'.", param, ctx)


def _game_options(several: bool) -> Decorator:
    """Add an option per setting of the game; with `several`, the options in SWEPT take lists."""
    swept: dict[str, Any] = {"cls": Several} if several else {"type": click.IntRange(min=0)}
    also = " Several values: 1,2,4." if several else ""
    usual = (
        *("dimensions", "rounds", "vocab_size", "length", "query", "query_order", "query_of", "view"),
        *("representation", "truncate", "masks"),
    )
    return together(
        *(OF[name].option(help=OF[name].text + also, metavar="N", **swept) for name in SWEPT),
        click.option("--values", type=Values(), metavar="N|N-M", default="2-5", show_default=True,
                     help="Numbers of values of a dimension, V_min-V_max."),
        click.option("--ratio", type=Ratio(), metavar="SHARE|even", default=0.5, show_default=True,
                     help="How often the listener of a descriptive game sees the target's meaning; even: 1 in K + 2."),
        *(OF[name].option() for name in usual),
        *(
            OF[name].option(f"--{name.replace('_', '-')}/--no-{name.replace('_', '-')}", show_default=True)
            for name in ("descriptive", "feedback", "permutation", "distinct", "listener_messages")
        ),
        *(OF[name].option() for name in ("threshold", "kind", "games", "split", "space_seed")),
        click.option("--compat", type=click.Choice(list(COMPATS)), help="Play as the authors' program does."),
    )  # fmt: skip


Game = Annotated[dict[str, Any], _game_options(several=False)]
Games = Annotated[dict[str, Any], _game_options(several=True)]


def settings_of(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the game from those on the command line."""
    if "values" not in chosen:
        return chosen
    least, most = chosen["values"]
    return {**{name: value for name, value in chosen.items() if name != "values"}, "least": least, "most": most}


def _named(role: str, more: str) -> dict[str, Any]:
    """Return the metadata of the option for the player in a role."""
    return {
        "flags": (f"--{role}",),
        "metavar": "NAME",
        "completes": f"{role}s",
        "help": f"See `icy list players`{more}",
    }


Speaker = Annotated[str, _named(SPEAKER, TRAINED)]
Listener = Annotated[str, _named(LISTENER, TRAINED)]
Speakers = Annotated[tuple[str, ...], _named(SPEAKER, f"{TRAINED[:-1]}; repeatable.")]
Listeners = Annotated[tuple[str, ...], _named(LISTENER, f"{TRAINED[:-1]}; repeatable.")]
RegisteredSpeaker = Annotated[str | None, _named(SPEAKER, f".  [default: {PARTNERS[SPEAKER]}]")]
RegisteredListener = Annotated[str | None, _named(LISTENER, f".  [default: {PARTNERS[LISTENER]}]")]
Where = Annotated[Fields | None, agents_where("model=pairs+ppo")]
Seeds = Annotated[int | str, {"cls": Several, "help": "Number of seeds, from 123, or a list."}]
Episodes = Annotated[int, {"help": "Number of episodes per seed."}]
