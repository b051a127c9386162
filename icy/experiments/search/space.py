"""The space of a search: the models, hidden sizes and options to choose from."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from icy.config.search_spec import SearchSpec
from icy.core.checks import hidden_list
from icy.core.choices import distinct, split_name, typed_text
from icy.core.entry import Entry
from icy.core.errors import InvalidSettingError, quoted, require_known
from icy.core.registry import SIDES
from icy.core.text import counted, listed, several, words
from icy.core.types import Choices, Fields
from icy.experiments.probe import usable_models
from icy.models.creation import count_parameters, create

log = logging.getLogger(__name__)
MODEL, HIDDEN = "model", "hidden"  # dimensions other than options
SCALARS = (str, int, float, bool, type(None))  # types of values that Optuna stores


@dataclass(frozen=True)
class Point:
    """A point of the space: a model with its hidden size and options.

    Attributes:
        entry: entry of the model, with the options that it declares.
        hidden: hidden size.
        options: other arguments of the model.
        params: the value of each dimension.
    """

    entry: Entry
    hidden: int
    options: Fields = field(default_factory=dict)
    params: Fields = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the model, with its options, and its hidden size if that is a dimension."""
        shown = {**self.options, **({HIDDEN: self.hidden} if HIDDEN in self.params else {})}
        return " ".join([self.entry.name, *(f"{name}={typed_text(value)}" for name, value in shown.items())])


@dataclass(frozen=True)
class Space:
    """The space of a search.

    Attributes:
        values: values of each dimension.
        entries: models by name.
        hidden: hidden size, unless it is a dimension.
        options: arguments that all models get.
        fixed: options with a single value.
    """

    values: Mapping[str, tuple[Any, ...]]
    entries: Mapping[str, Entry]
    hidden: int
    options: Fields
    fixed: Fields = field(default_factory=dict)
    _networks: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(map(len, self.values.values()))

    @property
    def side(self) -> str:
        """The side that the models play: "sender" or "receiver"."""
        return next(iter(self.entries.values())).kind

    def point(self, params: Fields) -> Point:
        """Return the point with these values of the dimensions."""
        entry = self.entries[params.get(MODEL, next(iter(self.entries)))]
        own = {**self.fixed, **{name: value for name, value in params.items() if name not in (MODEL, HIDDEN)}}
        if entry.choices:
            entry, own = entry.with_choices({**entry.chosen, **own}), {}
        return Point(entry, params.get(HIDDEN, self.hidden), {**self.options, **own}, params)

    def nth(self, place: int) -> Point:
        """Return the point with this number; the last dimension varies fastest."""
        places = np.unravel_index(place, [*map(len, self.values.values())])
        return self.point({name: own[at] for (name, own), at in zip(self.values.items(), places, strict=True)})

    def identity(self, point: Point) -> Choices:
        """Return facts that are equal for equal models: options and hidden sizes without effect are left out."""
        network = self._network(point) if HIDDEN in point.params else point.hidden
        return {MODEL: point.entry.qualified, HIDDEN: network, **point.options}

    def _network(self, point: Point) -> int:
        """Return the number of trained parameters for small messages: equal at hidden sizes without an effect."""
        import torch

        name = f"{point.entry.qualified} {point.name}"
        if name not in self._networks:
            try:
                with torch.random.fork_rng(devices=[]), torch.device("meta"):
                    model = create(point.entry, "3x4", 4, 4, point.hidden, **point.options)
                self._networks[name] = count_parameters(model)["true"]
            except Exception:  # the model needs other sizes, or computes with its weights
                self._networks[name] = -point.hidden
        return self._networks[name]


def space_of(spec: SearchSpec) -> Space:
    """Return the space of a search.

    Raises:
        InvalidSettingError: no model, models of two sides, nothing to choose, or a value that cannot be stored.
        UnknownNameError: an unknown model, option or value.
        IncompatibleError: a model does not work with the representation.
    """
    if not words(spec.model):
        raise InvalidSettingError("No model was given; `icy list models` shows all.")
    if spec.side:
        require_known("side", spec.side, SIDES)
    found = usable_models(spec.model, str(spec.representation), [spec.side] if spec.side else SIDES)
    if len({entry.kind for entry in found}) > 1:
        raise InvalidSettingError('These models are senders and receivers; choose a side, as in side="sender".')
    names, sizes = [entry.name for entry in found], hidden_list(spec.hidden)
    chosen, fixed = _options(spec, found)
    values = {**({MODEL: tuple(names)} if len(names) > 1 else {}), **chosen}
    sized = {**values, **({HIDDEN: tuple(sizes)} if len(sizes) > 1 else {})}
    space = Space(sized, dict(zip(names, found, strict=True)), sizes[0], dict(spec.options), fixed)
    same = [] if chosen or len(sizes) == 1 else [name for name in names if _is_same_at(sizes, name, space)]
    if len(same) == len(names):
        space = replace(space, values=values)
    if space.size < 2:
        why = f"has no hidden layer, so {len(sizes)} hidden sizes are one model" if same else "is a single model"
        raise InvalidSettingError(
            f"There is nothing to choose: {names[0]} {why}. Give several models or hidden sizes, or several "
            "values of its options in `space`."
        )
    if same:
        are = "is" if len(same) == 1 else "are"
        log.warning("%s %s the same at %s, and tried at one.", listed(same), are, counted(len(sizes), "hidden size"))
    return space


def _is_same_at(sizes: Sequence[int], name: str, space: Space) -> bool:
    """Return whether a model is the same network at all hidden sizes."""
    return len({str(space.identity(space.point({MODEL: name, HIDDEN: size}))) for size in sizes}) == 1


def _options(spec: SearchSpec, entries: Sequence[Entry]) -> tuple[dict[str, tuple[Any, ...]], Choices]:
    """Return the options to choose with their values, and the options with a single value.

    They are the options in `space`. If all of these have a single value, a single model's other options are chosen too,
    except those in its name.
    """
    given = {name.replace("-", "_"): value for name, value in spec.space.items()}
    found = {name: _values(name, value) for name, value in given.items()}
    for entry in (entry for entry in entries if entry.choices):
        for name, value in ((name, value) for name, values in found.items() for value in values):
            entry.with_choices({name: value})  # raises for an option or a value that it does not have
    named = {option.lower() for model in words(spec.model) for option in split_name(model)[1] or {}}
    if both := [name for name in found if name.lower() in named]:
        raise InvalidSettingError(f"The option {both[0]} is in the name of a model and in `space`; keep one.")
    if len(entries) == 1 and all(len(values) == 1 for values in found.values()):
        free = {name: tuple(values) for name, values in entries[0].choices.items() if name.lower() not in named}
        found = {**free, **found}
    fixed = {name: values[0] for name, values in found.items() if len(values) == 1}
    return {name: values for name, values in found.items() if name not in fixed}, fixed


def _values(name: str, value: object) -> tuple[Any, ...]:
    if name in (MODEL, HIDDEN):
        raise InvalidSettingError(f"`{name}` is not an option of a model: give its values in `{name}`, not in `space`.")
    found = several(value) if isinstance(value, (str, int, float, list, tuple)) else []
    if not found or not all(
        isinstance(one, SCALARS) and math.isfinite(one if isinstance(one, float) else 0) for one in found
    ):
        raise InvalidSettingError(
            f"`space` needs a list of texts, finite numbers or true and false for {name}, not {quoted(value)}."
        )
    return tuple(distinct(f"`space`: {name}", found))
