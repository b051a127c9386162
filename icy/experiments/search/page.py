"""The report of a search: search.md, its figure as search.png and search.svg, and the best model as winner.py and
winner.png."""

from __future__ import annotations

import html
import io
import logging
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from icy.analysis import style
from icy.core.entry import Entry
from icy.core.escapes import in_a_line
from icy.core.files import write_atomically
from icy.core.text import counted, listed, markdown_table, several
from icy.languages.frequencies import is_meanings_file, read_meanings
from icy.languages.meanings import MeaningSpace
from icy.languages.word_lengths import bounds_of, word_length_of
from icy.training.tasks import Task
from icy.version import __version__

from .objectives import Objective
from .result import SearchResult, SearchTrial
from .sampling import PAGE
from .setup import WINNERS, SearchSetup
from .space import HIDDEN, Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)
FIGURE, HOVER, WINNER, DIAGRAM = "search.png", "search.svg", "winner.py", "winner.png"
LENGTHS = ("vocab_size", "word_length")
HEIGHT = 3.4  # of the figure, in inches
DPI = 200

PLUGIN = """\
# The best model of a search with icy {version}: {name}.
{about}

import icy


@icy.register_{side}("{winner}", source="{source}"{representations})
def winner(space, message_length, vocab_size, hidden_size, **options):
    {description}
    return icy.create_{side}("{model}", space, message_length, vocab_size, hidden_size, {options})
"""


def write_report(result: SearchResult) -> list[Path]:
    """Write the report of a search into its results folder, and return the files.

    The texts come first: if a picture cannot be drawn, they are complete, and a warning has the reason.
    """
    folder, best, text = result.folder or Path(), winner_of(result), page(result)
    paths = _write(folder, {PAGE: text.encode(), **({WINNER: plugin(result.setup, best).encode()} if best else {})})
    try:
        return paths + (_write(folder, _pictures(result, best)) if best else [])
    except Exception as error:  # a picture is never worth a report
        reason = f"The pictures of this search could not be drawn: {in_a_line(str(error)) or type(error).__name__}"
        log.warning("%s. The report is complete without them.", reason.rstrip("."))
        return _write(folder, {PAGE: f"{text}\n{reason}\n".encode()}) + paths[1:]


def _write(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    for name, content in files.items():
        write_atomically(folder / name, content)
    return [folder / name for name in files]


def _pictures(result: SearchResult, best: Point) -> dict[str, bytes]:
    style.load_matplotlib()
    from .diagram import diagram

    known = [trial for trial in result.trials if trial.last.known]
    figure = picture(result.objectives, known, result.front)
    return {
        FIGURE: _saved(figure, "png"),
        HOVER: with_tooltips(_saved(figure, "svg"), result.objectives, known),
        DIAGRAM: _saved(diagram(_task_of(result.setup, best)), "png"),
    }


def winner_of(result: SearchResult) -> Point | None:
    """Return the best model: the first finalist, or without finalists the first trial; None if all trials failed."""
    return next((trial.last.point for trial in result.ranked if trial.last.known), None)


# -- page --------------------------------------------------------------------------------------------------------------


def page(result: SearchResult) -> str:
    """Return the text of search.md."""
    parts = ["# Search", _about(result), "## Trials", _about_trials(result), _markdown(result.trial_table())]
    parts += _problems(result)
    if any(result.importances):
        parts += ["## Importance of the options", ABOUT_IMPORTANCE, _markdown(result.importance_table())]
    if any(trial.last.known for trial in result.trials):
        parts += ["## Picture", f"![{_caption(result.objectives)}]({FIGURE})", HOVERS, _front_text(result)]
    if result.finalists:
        parts += ["## Finalists, measured again", _about_finalists(result), _markdown(result.finalist_table())]
        parts += _problems_again(result)
    if result.setup.people is not None:
        parts.append(_about_people(result))
    if best := winner_of(result):
        parts += ["## Winner", _about_winner(result, best)]
    return "\n\n".join(part for part in parts if part) + "\n"


HOVERS = f"In a browser, [{HOVER}]({HOVER}) shows the model and the values of a trial under the mouse."
ABOUT_IMPORTANCE = (
    "Variance of the values at the first rung that an option explains alone, as a share of the sum over the options "
    "(fANOVA; Hutter, Hoos and Leyton-Brown 2014). A random forest, fitted to all trials with a value, estimates it. "
    "Few trials give rough shares."
)


def _markdown(table: tuple[list[str], list[list[str]]]) -> str:
    return markdown_table(*table)


def _about(result: SearchResult) -> str:
    setup = result.setup
    parts = [
        f"{verb} {listed([f'`{one.text}`' for one in setup.objectives if one.maximize == high])}"
        for verb, high in (("minimizes", False), ("maximizes", True))
        if any(one.maximize == high for one in setup.objectives)
    ]
    space = "; ".join(
        f"`{name}`: {listed([str(v) for v in values], 'or')}" for name, values in setup.space.values.items()
    )
    return (
        f"This search with icy {__version__} {listed(parts)}. Sampler: {setup.spec.sampler} of Optuna "
        f"{version('optuna')}, seed {setup.spec.sampler_seed}, {counted(len(result.trials), 'trial')} in batches of "
        f"{setup.spec.batch}. The space has {counted(setup.space.size, 'combination')} of these values: {space}."
    )


def _about_trials(result: SearchResult) -> str:
    setup, rungs = result.setup, []
    for number, changes in enumerate(setup.rungs, 1):
        reached = sum(len(trial.rungs) >= number for trial in result.trials)
        shown = ", ".join(f"{name} {value}" for name, value in changes.items()) or "the settings of the search"
        rungs.append(f"rung {number}: {counted(reached, 'trial')} with {shown}")
    said = [f"The best first. {'. '.join(one[0].upper() + one[1:] for one in rungs)}."]
    if any(value.bound for trial in result.trials for one in trial.rungs for value in one.values):
        said.append(
            "`>`: a training did not reach the target within its cap, so the true value is larger (`<`: smaller)."
        )
    return " ".join(said)


def _problems(result: SearchResult) -> list[str]:
    return _listed_problems({f"Trial {trial.number}": trial.last.problem for trial in result.trials})


def _problems_again(result: SearchResult) -> list[str]:
    """Return the reasons of missing values in the table of finalists and baselines."""
    measured = {
        f"`{one.name}`{where}": found
        for one in (*result.finalists, *result.baselines)
        for found, where in ((one.again, ""), (one.larger, " with the settings of `larger`"))
        if found is not None
    }
    return _listed_problems({name: found.problem for name, found in measured.items()})


def _listed_problems(problems: dict[str, str]) -> list[str]:
    lines = [f"- {name} has no value: {problem}" for name, problem in problems.items() if problem]
    return ["\n".join(lines)] if lines else []


def _front_text(result: SearchResult) -> str:
    if len(result.objectives) == 1:
        return ""
    names = listed([f"trial {trial.number} (`{trial.name}`)" for trial in result.front])
    return f"No other trial of the last rung is better in one objective and as good in the others than {names}."


def _about_finalists(result: SearchResult) -> str:
    setup = result.setup
    seeds = setup.again()["seeds"]
    new = [f"new seeds, {seeds[0]} to {seeds[-1]}, which give new words"] if setup.grammars else []
    new += ["games with new languages"] if setup.people is not None else []
    said = (
        "The best of many trials owes a part of its value to luck. So the finalists and the baselines were measured "
        f"again with the settings of the last rung and {listed(new)}. "
        "*Shrinkage*: the new value minus the value in the search. Intervals of 95 % are over seeds, of `people` over "
        "games and people."
    )
    if setup.spec.larger:
        shown = ", ".join(f"{name} {value}" for name, value in setup.spec.larger.items() if name != "seeds")
        count = f" and {len(setup.again(larger=True)['seeds'])} new seeds" if setup.grammars else ""
        said += f" *Larger*: with {shown or 'the same settings'}{count}."
    return said


def _about_people(result: SearchResult) -> str:
    assert result.setup.people is not None
    lines = []
    for objective in result.objectives:
        if objective.of_people:
            of = objective.terms[0].of
            own = result.setup.people.part(of) if of else result.setup.people
            found = own.ceiling()
            lines.append(
                f"`{objective.text}` is the root mean square difference between the accuracies of a network and of "
                f"people on held-out items, over {counted(len(own.conditions), 'combination')} of dataset and grammar. "
                f"The distance between two halves of the people is {found.value:.2f} ({found.low:.2f} to "
                f"{found.high:.2f}). Halves vary more than all people, so a network may be nearer. Distances from few "
                "games are too large on average, as chance adds to them."
            )
    return "\n\n".join(lines)


def _about_winner(result: SearchResult, best: Point) -> str:
    spec = result.setup.spec
    files = [*several(spec.plugin), (result.folder or Path()) / WINNER]
    plugins = " ".join(f"--plugin {shlex.quote(str(file))}" for file in files)
    sizes = f" Its hidden size in the search is {best.hidden}." if HIDDEN in best.params else ""
    return (
        f"The first trial of the table, `{best.name}`, is in the plug-in file [{WINNER}]({WINNER}) as `{spec.winner}`."
        f"{sizes}\n\n```sh\nicy check {plugins} {spec.winner}\n```\n\n![The parts of the winner]({DIAGRAM})\n\n"
        "Its parts with their numbers of parameters, in the order in which the model first uses them."
    )


def _plugin_names(setup: SearchSetup) -> list[str]:
    """Return the names of the plug-in files of a search, without their folders."""
    return [Path(str(file)).name for file in several(setup.spec.plugin)]


# -- picture -----------------------------------------------------------------------------------------------------------


def _caption(objectives: Sequence[Objective]) -> str:
    names = [one.text for one in objectives]
    return f"{names[0]} of each trial" if len(names) == 1 else f"{names[1]} against {names[0]}"


@style.with_own_settings
def picture(objectives: Sequence[Objective], trials: Sequence[SearchTrial], front: Sequence[SearchTrial]) -> Figure:
    """Draw the first two objectives with the Pareto front, or the values of one objective by trial."""
    from matplotlib.ticker import MaxNLocator

    from icy.analysis.plots.labels import place_labels

    figure = style.figure(None, HEIGHT)
    axes = figure.add_subplot()
    rungs = max(len(trial.rungs) for trial in trials)
    for rung in range(1, rungs + 1):
        color = style.COLORS[0] if rung == rungs else style.GRAY
        axes.plot([], [], "o", color=color, markersize=4, label=f"rung {rung}" if rungs > 1 else "trials")
        for trial in (trial for trial in trials if len(trial.rungs) == rung):
            x, y = _place(trial)
            face = "white" if _is_bound(trial) else color
            axes.plot([x], [y], "o", color=color, markerfacecolor=face, markersize=4, gid=_mark(trial))
    if any(map(_is_bound, trials)):
        axes.plot([], [], "o", color="black", markerfacecolor="white", markersize=4, label="cut at the cap")
    avoided = [[_place(trial)] for trial in trials]
    if len(objectives) == 1:
        axes.set(xlabel="trial", ylabel=objectives[0].label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        best = sorted(map(_place, front))
        axes.plot(*zip(*best, strict=True), "--", color="black", linewidth=0.8, label="Pareto front")
        avoided.append(best)
        axes.set(xlabel=objectives[0].label, ylabel=objectives[1].label)
    style.tidy(axes, "both")
    axes.legend(fontsize=style.SMALL, frameon=False)
    place_labels(axes, [*map(_place, front)], [f"trial {trial.number}" for trial in front], avoided)
    return figure


def _mark(trial: SearchTrial) -> str:
    return f"trial-{trial.number}"


def _is_bound(trial: SearchTrial) -> bool:
    """Return whether a drawn value of a trial is only a bound of its true value."""
    return any(value.bound for value in trial.last.values[:2])


def _saved(figure: Figure, format_: str) -> bytes:
    file = io.BytesIO()
    about = {"Date": None} if format_ == "svg" else None
    with style.own_settings():
        figure.savefig(file, format=format_, dpi=DPI, facecolor="white", metadata=about)
    return file.getvalue()


def with_tooltips(svg: bytes, objectives: Sequence[Objective], trials: Sequence[SearchTrial]) -> bytes:
    """Return an SVG of `picture` with a title for the mark of each trial, which browsers show under the mouse."""
    text = svg.decode()
    for trial in trials:
        pairs = zip(objectives, trial.last.values, strict=True)
        said = "; ".join([trial.name, *(f"{objective.text} {value.text()}" for objective, value in pairs)])
        text = text.replace(f'<g id="{_mark(trial)}">', f'<g id="{_mark(trial)}"><title>{html.escape(said)}</title>')
    return text.encode()


def _place(trial: SearchTrial) -> tuple[float, float]:
    values = [value.value for value in trial.last.values]
    return (float(trial.number), values[0]) if len(values) == 1 else (values[0], values[1])


def _task_of(setup: SearchSetup, best: Point) -> Task:
    """Return the task of a point with the sizes of the last rung."""
    last = {name: setup.rungs[-1].get(name, getattr(setup.spec, name)) for name in ("meanings", *LENGTHS)}
    given = last.pop("meanings")
    space = read_meanings(given)[0] if is_meanings_file(given) else MeaningSpace.of(given)
    representation = str(setup.spec.representation).lower()
    lengths = word_length_of(last.pop("word_length"))
    task = Task(best.entry, space, word_length=bounds_of(lengths)[1], **last, representation=representation)
    lengths = lengths if isinstance(lengths, str) else ""
    return replace(task, hidden_size=best.hidden, options=best.options, word_lengths=lengths)


# -- winner ------------------------------------------------------------------------------------------------------------


def _needs(setup: SearchSetup, entry: Entry) -> str:
    """Return the files that register a model, for a sentence."""
    if files := _plugin_names(setup):
        return listed(files)
    return "only icy" if entry.origin.startswith("icy.") else f"the code that registers {entry.qualified}"


def plugin(setup: SearchSetup, best: Point) -> str:
    """Return the source of a plug-in file that registers a point of the space as a model of its own."""
    entry, name = best.entry, setup.spec.winner
    about = f"The hidden size in the search was {best.hidden}. It needs {_needs(setup, entry)}."
    limited = f", representations={tuple(entry.representations)!r}" if entry.representations else ""
    return PLUGIN.format(
        version=__version__,
        name=in_a_line(best.name),
        about=textwrap.fill(about, 100, initial_indent="# ", subsequent_indent="# "),
        side=entry.kind,
        winner=name,
        source=WINNERS,
        representations=limited,
        description=repr(f"The {entry.kind} {in_a_line(best.name)}."),
        options=f"**({dict(best.options)!r} | options)" if best.options else "**options",
        model=entry.name,
    )
