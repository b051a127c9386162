"""Parts of the site that are generated from icy itself, as Markdown, so that they are always up to date.

A page includes a part by `{generated} NAME ARGUMENT...`; PARTS has the function of each name. Nothing here needs
Sphinx, so tests can call the functions too.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import itertools
import json
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, get_type_hints

import click
import numpy as np
from papers import papers

import icy
from icy.analysis.order import in_order
from icy.cli.options import described  # the docstring's description of each attribute
from icy.config.settings import Departure
from icy.core.registry import CORE, PERCEPTION, PLAYERS, SIDES, TEXT_MODEL, WORLD, Entry, registry
from icy.core.text import markdown_table
from icy.grammars import grammar_sides
from icy.models.creation import DEFAULTS, count_parameters, create

SPACE = "5x10"  # with icy.models.creation.DEFAULTS the papers' main setting
Part = Callable[..., str]
PARTS: dict[str, Part] = {}


def part(function: Part) -> Part:
    """Register a function as a part, under its name."""
    PARTS[function.__name__.replace("_", "-")] = function
    return function


part(papers)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], numbers: Collection[int] = ()) -> str:
    """Return a Markdown table, with commas in whole numbers; the columns `numbers` are aligned right."""
    shown = ([f"{value:,}" if isinstance(value, int) else value for value in row] for row in rows)
    return markdown_table(headings, shown, numbers, markup=True)


def code(text: object) -> str:
    """Format text as code."""
    return f"`{text}`"


# -- presets and settings ----------------------------------------------------------------------------------------------


@part
def departures() -> str:
    """List the departures of the preset `published`."""
    from icy.config.settings import PUBLISHED

    runs = {("probe", "e2e"): "all", ("probe",): "one side alone", ("e2e",): "pairs (`icy e2e`)"}
    rows = [(name, _settings(d), runs[tuple(d.kinds)], d.reason) for name, d in PUBLISHED.items()]
    return table(("departure", "settings", "runs", "behavior of the program"), rows)


@part
def s2b_departures() -> str:
    """List the departures of `compat="near32"`."""
    from icy.s2b.settings import COMPATS

    rows = [(code(n), name, _settings(d), d.reason) for n, found in COMPATS.items() for name, d in found.items()]
    return table(("compat", "departure", "settings", "behavior of the program"), rows)


@part
def games_departures() -> str:
    """List the departures of the presets of games."""
    from icy.games.settings import PRESETS

    rows = [(code(n), name, _settings(d), d.reason) for n, found in PRESETS.items() for name, d in found.items()]
    return table(("preset", "departure", "settings", "purpose"), rows)


def _settings(departure: Departure) -> str:
    return ", ".join(code(f"{name}={json.dumps(value)}") for name, value in departure.settings.items()) or "-"


@part
def training_settings() -> str:
    """List every training setting with its value under both presets."""
    from icy.config.settings import TrainingSettings, settings_for

    meanings = described(TrainingSettings)
    presets = [vars(settings_for("published", kind)) for kind in ("probe", "e2e")]
    rows = [
        (code(f.name), code(f.default), _under_preset(f.default, *(p[f.name] for p in presets)), meanings[f.name])
        for f in dataclasses.fields(TrainingSettings)
    ]
    return table(("setting", "default", "published", "meaning"), rows)


def _under_preset(default: Any, alone: Any, paired: Any) -> str:
    """Return a setting's value under the preset `published`, or "" if it is the default."""
    if alone == paired:
        return "" if alone == default else code(alone)
    kinds = {"one side alone": alone, "pairs": paired}
    return "; ".join(f"{code(value)} ({kind})" for kind, value in kinds.items() if value != default)


@part
def protocols() -> str:
    """List the protocols."""
    from icy.config.protocols import PROTOCOLS

    rows = []
    for p in PROTOCOLS.values():
        targets = "".join(f", {value:g} under {name.upper()}" for name, value in p.targets.items())
        cap = f"{p.cap:g}" if p.stops_at_target else "-"
        rows.append((code(p.name), f"{p.target:g}{targets}", cap, p.description, p.source))
    return table(("protocol", "target", "cap", "reported number", "source"), rows)


# -- grammars ----------------------------------------------------------------------------------------------------------


def grammars_in_order() -> list[str]:
    """Return the grammars in the order of the papers' tables, and then all others."""
    return in_order(icy.list_grammars())


@part
def grammar(name: str) -> str:
    """Describe a grammar, with some of its messages."""
    entry = registry.get(name, "grammar")
    sides = grammar_sides(name)
    whose = "senders and receivers" if sides == SIDES else f"{sides[0]}s only"
    also = f" Also called {' or '.join(map(code, entry.aliases))}." if entry.aliases else ""
    return f"*For {whose}. {entry.source}.*{also}\n\n{_messages(name)}"


def _messages(name: str) -> str:
    """Show a few messages at 3x10, next to the messages of concat."""
    shown = icy.make_language(name, "3x10", seed=123).examples()
    columns = {"meaning": shown["meaning"]}
    if name != "concat":
        columns["concat"] = icy.make_language("concat", "3x10", seed=123).examples()["message"]
    columns[name] = shown["message"]
    return table(list(columns), zip(*([code(v) for v in column] for column in columns.values()), strict=True))


@part
def grammar_measures(space: str = "3x10", seeds: str = "5") -> str:
    """Compare the languages of all grammars by metrics."""
    metrics = ("topsim", "posdis", "bosdis", "hce")
    rows = []
    for name in grammars_in_order():
        languages = [icy.make_language(name, space, seed=123 + i) for i in range(int(seeds))]
        found = [[getattr(icy.metrics, metric)(one).value for one in languages] for metric in metrics]
        distinct = np.mean([one.distinct_messages / one.space.size for one in languages])
        rows.append((code(name), f"{distinct:.1%}", *(f"{np.mean(v):.3f} ± {np.std(v, ddof=1):.3f}" for v in found)))
    return table(("grammar", "distinct messages", *metrics), rows, numbers=range(1, 6))


# -- models ------------------------------------------------------------------------------------------------------------


def families(*patterns: str) -> dict[str, list[Entry]]:
    """Return the registered models that match patterns, by family: the models that differ only in their cell."""
    found: dict[str, list[Entry]] = {}
    for entry in registry.match(patterns, *SIDES):
        found.setdefault(entry.name.partition(":")[0], []).append(entry)
    return found


@part
def models(*patterns: str) -> str:
    """Describe models, with their numbers of parameters at the main setting, counted both ways."""
    found = families(*patterns)
    cards = "\n".join(_card(name, entries[0]) for name, entries in found.items())
    celled = all(entry.cell and not entry.choices for entries in found.values() for entry in entries)
    return f"{cards}\n\n{_by_cell(found) if celled else _one_by_one(found)}"


def _card(name: str, entry: Entry) -> str:
    works = f"; {' and '.join(entry.representations)} only" if entry.representations else ""
    also = f"; also called {', '.join(code(a.partition(':')[0]) for a in entry.aliases)}" if entry.aliases else ""
    shown = entry.description.replace(f", with the {entry.cell.name} cell", "") if entry.cell else entry.description
    return f"- {code(name)}: {shown} *{entry.source}{works}{also}.*"


def _one_by_one(found: Mapping[str, list[Entry]]) -> str:
    rows = [(code(e.qualified), *_parameters(e.qualified)) for entries in found.values() for e in entries]
    return table(("model", "parameters", "published"), rows, numbers=(1, 2))


def _by_cell(found: Mapping[str, list[Entry]]) -> str:
    """Make a table with a row per cell and two columns per family."""
    headings = ["cell", *(text for name in found for text in (code(name), "published"))]
    rows = []
    for entries in zip(*found.values(), strict=True):
        counts = [count for entry in entries for count in _parameters(entry.qualified)]
        rows.append((code(entries[0].cell.name if entries[0].cell else ""), *counts))
    return table(headings, rows, numbers=range(1, len(headings)))


@functools.cache
def _parameters(name: str) -> tuple[int, int]:
    counts = count_parameters(create(registry.get(name, *SIDES), SPACE, *DEFAULTS.values()))
    return counts["true"], counts["published"]


@part
def cell_card(name: str) -> str:
    """Describe a cell, with its number of parameters for an input and a state of size E."""
    entry = registry.get(name, "cell")
    size = DEFAULTS["hidden_size"]
    count = sum(p.numel() for p in entry.create(size, size).parameters())
    return f"*{entry.source}.* {entry.description} {count:,} parameters with an input and a state of size {size}."


# -- metrics -----------------------------------------------------------------------------------------------------------

NO_CONVENTIONS = ("device", "workers", "progress")  # arguments that do not change the value


@part
def metric(name: str) -> str:
    """Describe a metric, with its conventions."""
    entry = registry.get(name, "metric")
    arguments = list(inspect.signature(entry.load()).parameters.values())[2:]
    conventions = ", ".join(code(f"{p.name}={p.default!r}") for p in arguments if p.name not in NO_CONVENTIONS)
    return f"*{entry.source}.* {entry.description}\n\nConventions and their defaults: {conventions}."


# -- results -----------------------------------------------------------------------------------------------------------


@part
def record_fields() -> str:
    """List every field of a record, with an example."""
    from icy.records.record import Record

    example = example_record()
    rows = [
        (code(name), code(_short(example[name])) if name in example else "", meaning)
        for name, meaning in described(Record).items()
    ]
    return table(("field", "example", "meaning"), rows)


def example_record() -> dict[str, Any]:
    """Return a record as the store has it, made without training."""
    from icy.training.job import Outcome, Replicate
    from icy.training.language_job import LanguageJob
    from icy.training.probe_settings import ProbeSettings

    replicate, settings = Replicate("rot", 123), ProbeSettings(model="sender/HierZero:GRU")
    true, published = _parameters(settings.model)
    counts = {"true": true, "published": published}
    job = LanguageJob(settings=settings, replicates=(replicate,), parameters=counts)
    curve = [(50, 0.31), (100, 0.36), (1650, 0.81)]
    return job.record(Outcome(replicate, "target", 1650, 0.806, curve, "broadcast", 61.3, baseline_steps=350))


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:56]} ..."


@part
def long_columns() -> str:
    """List every column of the long table."""
    from fields import LONG_TABLE

    from icy.records.long_table import LONG

    check_same("long table", LONG_TABLE, LONG)
    return table(("column", "meaning"), [(code(name), LONG_TABLE[name]) for name in LONG])


def check_same(what: str, described_names: Iterable[str], names: Iterable[str]) -> None:
    """Raise an error unless the described names are exactly `names`.

    Raises:
        LookupError: a description is missing, or describes an unknown name.
    """
    one, other = set(described_names), set(names)
    if one != other:
        raise LookupError(f"docs/_ext/fields.py, {what}: missing {other - one}, unknown {one - other}")


@part
def study_codebook() -> str:
    """Return the codebook of the export of a study, as tables under headings of the fourth level."""
    from icy.study.service.export import codebook

    text = codebook()
    return text[text.index("## ") :].replace("## ", "#### ")


@part
def study_settings() -> str:
    """Describe every setting of a study."""
    from icy.study.service import StudyPlan

    hints = get_type_hints(StudyPlan)
    parts = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    tables = {"": StudyPlan, **parts}
    rows = [
        (f"[{name}]" if name else "", code(f.name), _short_default(f), described(kind)[f.name])
        for name, kind in tables.items()
        for f in dataclasses.fields(kind)
        if f.name not in ("path", *parts)
    ]
    return table(("table", "setting", "default", "meaning"), rows)


def _short_default(setting: dataclasses.Field[Any]) -> str:
    """Return the default of a setting as code; "" if there is no default, or if it is empty."""
    made = setting.default_factory() if setting.default_factory is not dataclasses.MISSING else setting.default
    return code(json.dumps(made)) if made not in ("", None, [], {}) else ""


@part
def published_tables() -> str:
    """List the papers' tables that icy has as data."""
    from icy.analysis import published_tables as catalogue

    rows = [(code(t.id), t.title, t.measured, t.rows, t.runs or "-") for t in catalogue()]
    return table(("table", "title", "numbers are", "numbers", "runs each"), rows, numbers=(3, 4))


@part
def plots() -> str:
    """Describe every kind of plot, with a picture and the command that made it."""
    from gallery import PLOTS

    from icy.analysis.plots import KINDS

    shown = []
    for kind, (_, shows) in KINDS.items():
        card = PLOTS.get(kind)
        picture = f"\n\n![{card.caption}]({card.picture})" if card else ""
        shown.append(f"### {kind}\n\n{shows}\n\n```sh\n{card.command if card else f'icy plot {kind}'}\n```{picture}")
    return "\n\n".join(shown)


@part
def gallery() -> str:
    """Show a card per kind of plot and per task."""
    from gallery import PLOTS, TASKS, markdown

    parts = {"Tasks": TASKS, "Plots": PLOTS.values()}
    grids = (
        f"## {title}\n\n:::::{{container}} cards\n{chr(10).join(map(markdown, cards))}\n:::::"
        for title, cards in parts.items()
    )
    return "\n\n".join(grids)


@part
def atlas() -> str:
    """List the contents of the atlas, and how it was made."""
    found = icy.atlas()
    names = ["role", "representation", "protocol", "target", "meanings", "vocab_size", "word_length"]
    counts = ["models", "grammars", "seeds", "runs"]
    rows = found.settings()[[*names, *counts]].itertuples(index=False)
    about = found.about
    made = (
        f"{about['runs']} runs, {about['hours']} hours of one core, made {' to '.join(dict.fromkeys(about['made']))} "
        f"with {'; '.join(about['versions'])} on {', '.join(about['devices'])}. "
        "`icy atlas --models` says which models and grammars are missing."
    )
    headings = [{"vocab_size": "V", "word_length": "w"}.get(name, name) for name in (*names, *counts)]
    return table(headings, [list(row) for row in rows], numbers=range(5, 11)) + "\n\n" + made


# -- the command line --------------------------------------------------------------------------------------------------


@part
def commands() -> str:
    """Describe every command as its help does: arguments, options and examples."""
    from icy.cli import COMMANDS, main

    top = click.Context(main, info_name="icy")
    return "\n\n".join(_command(_loaded(main, top, name), name, top, depth=2) for name in COMMANDS)


def _loaded(group: click.Group, ctx: click.Context, name: str) -> click.Command:
    found = group.get_command(ctx, name)
    if found is None:
        raise LookupError(f"no command is called {name}")
    return found


def _command(command: click.Command, name: str, parent: click.Context, depth: int) -> str:
    """Return a section for a command, followed by a section for each subcommand."""
    ctx = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    parts = [f"{'#' * depth} {ctx.command_path}", _plain(inspect.cleandoc(command.help or ""))]
    parts += [f"```text\n{usage}\n```", f"```{{program}} {ctx.command_path}\n```"]
    parts += [_option(p, ctx) for p in command.params if isinstance(p, click.Option)]
    parts += [_below(paragraph) for paragraph in (command.epilog or "").split("\n\n")]
    if isinstance(command, click.Group):
        names = command.list_commands(ctx)
        parts += [_command(_loaded(command, ctx, one), one, ctx, depth + 1) for one in names]
    return "\n\n".join(part for part in parts if part)


def _option(option: click.Option, ctx: click.Context) -> str:
    record = option.get_help_record(ctx)
    if record is None:  # hidden
        return ""
    return f"````{{option}} {record[0].replace(' / ', ', ')}\n{_plain(record[1])}\n````"


def _below(paragraph: str) -> str:
    """Format a paragraph below the options of a command; indented lines become code."""
    lines = paragraph.replace("\b", "").strip("\n").split("\n")
    groups = [(is_code, list(found)) for is_code, found in itertools.groupby(lines, lambda one: one.startswith("  "))]
    return "\n\n".join(_fenced(found) if is_code else _plain("\n".join(found)) for is_code, found in groups)


def _fenced(lines: Sequence[str]) -> str:
    language = "toml" if any("[[" in line for line in lines) else "sh"
    return "\n".join([f"```{language}", *(line[2:] for line in lines), "```"])


def _plain(text: str) -> str:
    """Convert help to Markdown: escape stars and other special characters outside of `code`."""
    parts = text.split("`")
    return "`".join(one if i % 2 else re.sub(r"([*_<\[])", r"\\\1", one) for i, one in enumerate(parts))


@part
def checks(kind: str) -> str:
    """List the contract checks of a kind of plug-in, such as "sender", "grammar" or "speaker"."""
    from icy import testing

    found = testing.checks_of(testing.CONTRACTS[kind])
    return table(("check", "tested property"), [(code(name), first_line(check)) for name, check in found.items()])


def entries_table(heading: str, *kinds: str) -> str:
    """Return a table of registered names with descriptions and sources."""
    entries = registry.entries(*kinds)
    names = [code(entry.qualified if kinds == PLAYERS else entry.name) for entry in entries]
    rows = [(name, e.description, e.source) for name, e in zip(names, entries, strict=True)]
    return table((heading, "description", "source"), rows)


PARTS |= {
    "players": functools.partial(entries_table, "player", *PLAYERS),
    "cores": functools.partial(entries_table, "core", CORE),
    "worlds": functools.partial(entries_table, "world", WORLD),
    "perceptions": functools.partial(entries_table, "perception", PERCEPTION),
}


@part
def text_models() -> str:
    """List the text models of S2B."""
    entries = registry.entries(TEXT_MODEL)
    return table(("text model", "description"), [(code(e.name), e.description) for e in entries])


@part
def representations() -> str:
    """List the representations of messages."""
    from icy.core.representations import REPRESENTATIONS

    return table(
        ("representation", "description"), [(code(name), r.description) for name, r in REPRESENTATIONS.items()]
    )


@part
def modules(package: str) -> str:
    """List the modules of a package, one per line."""
    paths = importlib.import_module(package).__path__
    names = sorted(m.name for m in pkgutil.iter_modules(paths, f"{package}.") if not m.name.endswith("__main__"))
    return table(("module", "contents"), [(code(n), first_line(importlib.import_module(n))) for n in names])


@part
def docstring(name: str) -> str:
    """Return the docstring of a module or a class ("module:class"), written in Markdown, as a section of a page."""
    return re.sub("^# ", "## ", inspect.getdoc(pkgutil.resolve_name(name)) or "")


def first_line(documented: object) -> str:
    """Return the first paragraph of a docstring, as one line."""
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())
