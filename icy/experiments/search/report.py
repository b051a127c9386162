"""The report of a search: search.md, its figure search.png, and the best model as the plug-in winner.py."""

from __future__ import annotations

import io
import logging
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.analysis import style
from icy.analysis.picture import Panel, Picture, plot
from icy.config.settings import settings_for
from icy.core.checks import FIRST_SEED
from icy.core.errors import InvalidSettingError
from icy.core.files import write_atomically
from icy.core.text import counted, in_a_line, listed, markdown_table, several
from icy.core.types import Fields
from icy.experiments.probe import probe_jobs
from icy.version import __version__

from .result import Measured, SearchResult, SearchTrial
from .setup import HIDDEN, WINNERS, Point, SearchSetup

if TYPE_CHECKING:
    from jaxtyping import Integer
    from matplotlib.axes import Axes
    from torch import Tensor, nn

log = logging.getLogger(__name__)
PAGE, FIGURE, WINNER = "search.md", "search.png", "winner.py"
HEIGHT, DPI = 2.8, 200  # height of the axes, in inches
NAME = "<!-- search "  # the beginning of the last line of a report, before the name of the search


def require_no_other_report(setup: SearchSetup, folder: Path) -> None:
    """Raise if a folder has the report of another search.

    Raises:
        InvalidSettingError: it has one.
    """
    text = (folder / PAGE).read_text(encoding="utf-8", errors="replace") if (folder / PAGE).exists() else ""
    if NAME in text and NAME + setup.name not in text:
        raise InvalidSettingError(
            f"The folder '{folder}' has the report of another search, with other models, objectives or settings: "
            f"give another folder as `out`, and '{folder}' as `start` (--from) to use its records again."
        )


def write_report(result: SearchResult) -> list[Path]:
    """Write the report of a search into its results folder, and return the files.

    If the picture or the parts of the winner cannot be shown, the report has the reason, and a warning, too.
    """
    folder, texts, files = result.folder or Path(), [page(result)], dict[str, bytes]()
    if best := result.winner:
        files[WINNER] = plugin(result.setup, best).encode()
        try:
            texts.append(f"Its parts, in the order in which it first uses them:\n\n{parts_table(result.setup, best)}")
            with style.own_settings():
                picture(result).savefig(png := io.BytesIO(), format="png", dpi=DPI, facecolor="white")
            files[FIGURE] = png.getvalue()
            texts.append(f"## Picture\n\n![The trials]({FIGURE})")
        except Exception as error:  # a picture is never worth a report
            reason = f"The pictures of this search could not be drawn: {in_a_line(str(error)) or type(error).__name__}"
            log.warning("%s. The report is complete without them.", reason.rstrip("."))
            texts.append(reason)
    files = {PAGE: "\n\n".join([*texts, f"{NAME}{result.setup.name} -->"]).encode() + b"\n", **files}
    for name, content in files.items():
        write_atomically(folder / name, content)
    return [folder / name for name in files]


# -- page --------------------------------------------------------------------------------------------------------------


def page(result: SearchResult) -> str:
    """Return the tables of search.md with their settings."""
    setup, request = result.setup, result.setup.request
    goals = [f"{'maximize' if one.maximize else 'minimize'} `{one.text}`" for one in setup.objectives]
    space = [f"`{name}`: {listed([*map(str, values)], 'or')}" for name, values in setup.space.values.items()]
    parts = [
        "# Search",
        f"A search with icy {__version__} to {listed(goals)}. Sampler: {request.sampler} of Optuna "
        f"{version('optuna')}, seed {request.sampler_seed}, {counted(len(result.trials), 'trial')} in batches of "
        f"{request.batch}. The space has "
        f"{counted(setup.space.size, 'combination')} of these values: {'; '.join(space)}.",
        "## Trials",
        _about_trials(result),
        markdown_table(*result.trial_table()),
        _problems({f"Trial {trial.number}": trial.last for trial in result.trials}),
    ]
    if any(result.importances):
        about = (
            "Variance of the values at the first rung that an option explains alone, as a share of the sum (fANOVA)."
        )
        parts += ["## Importance of the options", about, markdown_table(*result.importance_table())]
    if result.finalists:
        parts += ["## Finalists, measured again", _about_finalists(setup), markdown_table(*result.finalist_table())]
        both = [*result.finalists, *result.baselines]
        later = {f"`{one.name}` with the settings of `larger`": one.larger for one in both}
        parts += [_problems({f"`{one.name}`": one.again for one in both} | later)]
    for objective in setup.objectives:
        if objective.of_people and setup.people is not None:
            halves = objective.people_in(setup.people).ceiling()
            parts.append(
                f"`{objective.text}` is the distance to people. The distance between two halves of the people is "
                f"{halves.value:.2f} ({halves.low:.2f} to {halves.high:.2f}), which a network may go below."
            )
    if best := result.winner:
        files = [*several(request.plugin), (result.folder or Path()) / WINNER]
        plugins = " ".join(f"--plugin {shlex.quote(str(file))}" for file in files)
        size = f" Its hidden size in the search is {best.hidden}." if HIDDEN in best.params else ""
        where = f"`{best.name}`, is in the plug-in file [{WINNER}]({WINNER}) as `{request.winner}`.{size}"
        check = f"```sh\nicy check {plugins} {request.winner}\n```"
        parts += ["## Winner", f"The first trial of the table, {where}", check]
    return "\n\n".join(filter(None, parts))


def _about_trials(result: SearchResult) -> str:
    said = ["The best first, by rung."]
    for number, changes in enumerate(result.setup.rungs, 1):
        reached = sum(len(trial.rungs) >= number for trial in result.trials)
        said.append(f"Rung {number}: {counted(reached, 'trial')} with {_shown(changes)}.")
    if any(value.bound for trial in result.trials for one in trial.rungs for value in one.values):
        said.append("`>`: a training was cut at its cap, so the true value is larger (`<`: smaller).")
    return " ".join(said)


def _about_finalists(setup: SearchSetup) -> str:
    larger = f" *Larger*: with {_shown(setup.again(larger=True))}." if setup.request.larger else ""
    return (
        f"The value of the best of many trials is partly luck. *Again*: with {_shown(setup.again())}.{larger} "
        "*Shrinkage*: the new value minus the value in the search. Intervals of 95 % are over seeds, of `people` over "
        "games and people."
    )


def _shown(settings: Fields) -> str:
    """Return settings for a sentence."""
    texts = {name: listed([*map(str, several(value))]) for name, value in settings.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items()) or "the settings of the search"


def _problems(measured: Mapping[str, Measured | None]) -> str:
    """Return the reasons of missing values as a list; "" if there are none."""
    problems = {name: one.problem for name, one in measured.items() if one and one.problem}
    return "\n".join(f"- {name} has no value: {problem}" for name, problem in problems.items())


# -- picture -----------------------------------------------------------------------------------------------------------


@plot
def picture(result: SearchResult) -> Picture:
    """Draw the first two objectives with the Pareto front, or the values of one objective by trial."""
    from icy.analysis.plots.panels import place_labels

    labels, front = [one.label for one in result.objectives], sorted(map(_place, result.front))
    avoided = [*([_place(trial)] for trial in result.trials if trial.last.known), *([front] if len(labels) > 1 else [])]
    points = [*map(_place, result.front)]
    names = [f"trial {trial.number}" for trial in result.front]
    x, y = labels[:2] if len(labels) > 1 else ("trial", labels[0])
    finish = partial(place_labels, points=points, texts=names, lines=avoided)
    return Picture([Panel(partial(_draw, result, front), height=HEIGHT, x=x, y=y, grid="both", finish=finish)])


def _draw(result: SearchResult, front: Sequence[tuple[float, float]], axes: Axes) -> None:
    """Draw a mark per trial, and the front of two objectives."""
    from matplotlib.ticker import MaxNLocator

    trials = sorted((trial for trial in result.trials if trial.last.known), key=lambda trial: len(trial.rungs))
    rungs = len(trials[-1].rungs)
    marks: dict[str, Any] = {"marker": "o", "markersize": 4, "linestyle": ""}
    for rung in range(1, rungs + 1):
        color = style.COLORS[0] if rung == rungs else style.GRAY
        axes.plot([], [], color=color, label=f"rung {rung}" if rungs > 1 else "trials", **marks)
        for trial in (trial for trial in trials if len(trial.rungs) == rung):
            axes.plot(*_place(trial), color=color, markerfacecolor="white" if _is_cut(trial) else color, **marks)
    if any(map(_is_cut, trials)):
        axes.plot([], [], color="black", markerfacecolor="white", label="cut at the cap", **marks)
    if len(result.objectives) == 1:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:  # rings, so that a label's point is found among others
        look: dict[str, Any] = {"color": "black", "linewidth": 0.8, "markersize": 7, "markerfacecolor": "none"}
        form, label = ("--o", "Pareto front") if len(front) > 1 else ("o", "best")
        axes.plot(*zip(*front, strict=True), form, label=label, **look)
    axes.legend(fontsize=style.SMALL, frameon=False)


def _place(trial: SearchTrial) -> tuple[float, float]:
    values = [value.value for value in trial.last.values]
    return (float(trial.number), values[0]) if len(values) == 1 else (values[0], values[1])


def _is_cut(trial: SearchTrial) -> bool:
    """Return whether a drawn value of a trial is only a bound of its true value."""
    return any(value.bound for value in trial.last.values[:2])


# -- winner ------------------------------------------------------------------------------------------------------------


def plugin(setup: SearchSetup, best: Point) -> str:
    """Return the source of a plug-in file that registers a point of the space as a model of its own."""
    entry, side, name = best.entry, best.entry.kind, in_a_line(best.name)
    code = "only icy" if entry.origin.startswith("icy.") else f"the code that registers {entry.qualified}"
    needs = listed([Path(str(file)).name for file in several(setup.request.plugin)]) or code
    limited = f", representations={tuple(entry.representations)!r}" if entry.representations else ""
    options = f"**({dict(best.options)!r} | options)" if best.options else "**options"
    return f"""\
# The best model of a search with icy {__version__}: {name}.
# The hidden size in the search was {best.hidden}. It needs {needs}.

import icy


@icy.register_{side}("{setup.request.winner}", source="{WINNERS}"{limited})
def winner(space, message_length, vocab_size, hidden_size, **options):
    {f"The {side} {name}."!r}
    return icy.create_{side}("{entry.name}", space, message_length, vocab_size, hidden_size, {options})
"""


def parts_table(setup: SearchSetup, best: Point) -> str:
    """Return the parts of a model with the sizes of the last rung as a table, in the order of their first use."""
    import torch

    from icy.training.task_models import make_model

    (job,) = probe_jobs(setup.probe_of(best, setup.rungs[-1]))
    model = make_model(job.settings, FIRST_SEED, settings_for("default")).eval()
    places = job.settings.space.attributes if job.settings.side == "sender" else job.settings.message_length
    inputs = torch.zeros(2, places, dtype=torch.int64, device="cpu")
    return markdown_table(["part", "class", "parameters"], parts_of(model, inputs), numbers=[2])


def parts_of(model: nn.Module, inputs: Integer[Tensor, "batch place"]) -> list[tuple[str, str, int]]:
    """Return name, class and number of parameters of each part of a model, in the order of their first use.

    Args:
        model: the model. Its own parameters, outside of its parts, are a part called "own". Parts without parameters
            are left out, and a parameter of several parts is counted at the first.
        inputs: meanings or messages.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_leaves

    part_of = {id(p): name.partition(".")[0] for name, p in model.named_parameters() if "." in name}
    used: dict[str, None] = {}

    class FirstUses(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            used.update(dict.fromkeys(part_of[id(one)] for one in tree_leaves((args, kwargs)) if id(one) in part_of))
            return function(*args, **(kwargs or {}))

    with torch.no_grad(), FirstUses():
        model(inputs)
    parts, found, counted = {"": model, **dict(model.named_children())}, [], set[int]()
    for name in ("", *used):
        parameters = parts[name].parameters(recurse=bool(name))
        fresh = {id(p): p.numel() for p in parameters if p.requires_grad and id(p) not in counted}
        counted |= fresh.keys()
        inner = ", ".join(dict.fromkeys(type(one).__name__ for one in parts[name].children()))
        kind = type(parts[name]).__name__ + (f" of {inner}" if inner else "")
        if fresh:
            found.append((name or "own", kind if name else "parameters", sum(fresh.values())))
    return found
