"""A diagram of a model: its parts as boxes, from its input to its output."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Integer
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from icy.analysis import style
from icy.config.settings import settings_for
from icy.core.checks import FIRST_SEED
from icy.core.types import AnyFunction
from icy.training.engine import make_model
from icy.training.tasks import Task

ENDS = {"sender": ("meaning", "message"), "receiver": ("message", "meaning")}
HEIGHT, GAP = 0.5, 0.15  # of a box and between boxes, in inches
WIDTH = 5.0  # of the figure, in inches
LONGEST = 55  # characters of a line of the title


class _FirstUses(TorchFunctionMode):
    """Records the parts of a model in the order in which a forward pass first uses their parameters."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.found: dict[str, None] = {}
        self._part_of = {id(p): name.partition(".")[0] for name, p in model.named_parameters() if "." in name}

    def __torch_function__(
        self, function: AnyFunction, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for given in tree_leaves((args, kwargs)):
            if (part := self._part_of.get(id(given))) is not None:
                self.found.setdefault(part)
        return function(*args, **(kwargs or {}))


def parts_of(model: nn.Module, inputs: Integer[Tensor, "batch place"]) -> list[tuple[str, str, int]]:
    """Return name, class and number of parameters of each part of a model, in the order of their first use.

    Args:
        model: the model. Its own parameters, outside of its parts, are a part called "own". Parts without parameters
            are left out, and a parameter of several parts is counted at the first.
        inputs: meanings or messages.
    """
    with torch.no_grad(), _FirstUses(model) as uses:
        model(inputs)
    parts = dict(model.named_children())
    found, seen = [("own", "parameters", _count(model.parameters(recurse=False), set()))], set[int]()
    found += [(name, _class(parts[name]), _count(parts[name].parameters(), seen)) for name in uses.found]
    return [part for part in found if part[2]]


def _count(parameters: Iterable[nn.Parameter], seen: set[int]) -> int:
    """Return the number of trainable parameters that are not in `seen`, and add them to it."""
    fresh = [p for p in parameters if p.requires_grad and id(p) not in seen]
    seen.update(map(id, fresh))
    return sum(p.numel() for p in fresh)


def _class(part: nn.Module) -> str:
    """Return the class of a part, for a container with the classes that it holds."""
    inner = list(dict.fromkeys(type(one).__name__ for one in part.children()))
    return f"{type(part).__name__} of {', '.join(inner)}" if inner else type(part).__name__


@style.with_own_settings
def diagram(task: Task) -> Figure:
    """Draw the parts of a model from its input to its output, each with its class and its number of parameters."""
    model = make_model(task, FIRST_SEED, settings_for("default")).eval()
    before, after = ENDS[task.side]
    places = task.space.attributes if task.side == "sender" else task.message_length
    parts = parts_of(model, torch.zeros(2, places, dtype=torch.int64, device="cpu"))
    boxes = [f"{part}: {kind}\n{count:,} parameters" for part, kind, count in parts]
    texts, step = [before, *boxes, after], HEIGHT + GAP
    title = _lines(f"{task.entry.qualified}, E={task.hidden_size}")
    figure = style.figure(WIDTH, (len(texts) * step + 0.5 + 0.2 * title.count("\n")) / style.STRETCH)
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(-(len(texts) - 1) * step - HEIGHT / 2, HEIGHT / 2))
    axes.axis("off")
    drawn = []
    for place, text in enumerate(texts):
        end = place in (0, len(texts) - 1)
        look = {"boxstyle": "round,pad=0.5", "facecolor": "white" if end else "#e8f0fa", "edgecolor": "#666666"}
        drawn.append(axes.text(0.5, -place * step, text, ha="center", va="center", fontsize=style.SMALL, bbox=look))
    for upper, lower in pairwise(drawn):
        ends = {"patchA": upper.get_bbox_patch(), "patchB": lower.get_bbox_patch(), "shrinkA": 1, "shrinkB": 1}
        arrow = {"arrowstyle": "->", "color": "#666666", **ends}
        axes.annotate("", lower.get_position(), upper.get_position(), arrowprops=arrow)
    axes.set_title(title, fontsize=style.MEDIUM)
    return figure


def _lines(name: str) -> str:
    """Return the name of a model in lines, which end at commas.

    Example:
        >>> _lines("Composed[" + ",".join(6 * ["layers=2"]) + "]")
        'Composed[layers=2,layers=2,layers=2,layers=2,layers=2,\\nlayers=2]'
    """
    lines = [""]
    for part in re.split("(?<=,)", name):
        if lines[-1] and len(lines[-1] + part) > LONGEST:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)
