"""The setup of a search, from its request: the space, the objectives, the rungs, and the jobs of each point."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import numpy as np

from icy.analysis.people import PeopleAccuracies, grammars_of, published_accuracies, study_accuracies
from icy.config.requests import RUNNING, RunRequest, names
from icy.config.settings import SamplerName
from icy.core.checks import LARGEST_SEED, hidden_list, parse_whole, real_number, seed_list, whole_number
from icy.core.choices import distinct, split_name, typed_text
from icy.core.entry import Entry
from icy.core.errors import InvalidSettingError, quoted, require_known
from icy.core.registry import SIDES, registry
from icy.core.text import counted, listed, several, words
from icy.core.types import Choices, Fields
from icy.experiments.probe import usable_models
from icy.experiments.requests import SearchRequest
from icy.experiments.sweep_file import by_field
from icy.grammars import canonical_name
from icy.languages.meanings import spaces_in
from icy.models.creation import count_parameters, create
from icy.study.rows import read_rows
from icy.study.study_job import StudyRequest
from icy.training.probe_settings import ProbeRequest

from .objectives import RATIO, Objective, objectives_of

log = logging.getLogger(__name__)

MODEL, HIDDEN = "model", "hidden"  # dimensions other than options
SCALARS = (str, int, float, bool, type(None))  # types of values that Optuna stores
INSTALL = 'A search needs the package optuna: pip install "icy-toolkit[search]". Nothing was trained.'
ICY22 = "icy22"
CONVERGED = "converged"  # protocol of the games for the comparison with people
GAMES = ("instances", "representation", "settings")  # settings of these games
BASELINES = {"sender": ("HierZero:dgsend", "FC2L", "RNNAutoReg:LSTM"), "receiver": ("Hier:GRU", "FC2L")}
IN_A_RUNG = (
    *("meanings", "vocab_size", "word_length", "seeds", "target", "cap", "max_updates", "held_out", "split"),
    *("representation", "symbols", "preset", "settings"),
)
OF_ALL = ("protocol", "frequencies", "draws", "sampler", "sampler_seed", "batch", "instances")  # and not of a rung
NO_TABLES = "rungs needs tables of settings, each under [[rungs]] in TOML, and larger needs one, under [larger]."
WINNERS = "icy search"  # source of the models in winner.py
LATER = 1000  # the list of instances of the games that measure finalists again: other languages


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


@dataclass(frozen=True)
class SearchSetup:
    """A search with its settings checked.

    Attributes:
        request: the request of the user.
        space: the points to choose from.
        objectives: the objectives, first all to minimize.
        people: the people of the objective "people", if it is one.
        baselines: models that are measured with the finalists.
    """

    request: SearchRequest
    space: Space
    objectives: tuple[Objective, ...]
    people: PeopleAccuracies | None
    baselines: tuple[Point, ...]

    @property
    def rungs(self) -> list[Fields]:
        """The settings of each rung, by name."""
        return [by_field(rung) for rung in self.request.rungs] or [{}]

    @property
    def trials(self) -> int:
        """Number of trials: at most one per point of the space."""
        return min(self.request.trials, self.space.size)

    @property
    def grammars(self) -> list[str]:
        """Grammars of a trial's probe: of the objectives, and further ones; none if only people count."""
        own = [term.of for one in self.objectives if not one.of_people for term in one.terms if term.of]
        own += [canonical_name(name) for name in words(self.request.grammar)]
        measures = [term.measure for one in self.objectives for term in one.terms]
        only_people = self.people is not None and "updates" not in measures
        return list(dict.fromkeys(own or ([] if only_people else ["concat"])))

    @property
    def name(self) -> str:
        """The name of this search in its report: it depends on all that determines the trials."""
        space, people = self.space, self.people and self.people.means.tolist()
        settings = {name: str(getattr(self.request, name)) for name in (*IN_A_RUNG, *OF_ALL)}
        what = [list(space.entries), space.values, space.hidden, space.options, space.fixed, self.grammars, people]
        what += [[one.label for one in self.objectives], settings, self.rungs[0]]
        return hashlib.sha256(repr(what).encode()).hexdigest()[:12]

    def again(self, larger: bool = False) -> Choices:
        """Return the settings of the second measurement: of the last rung, or larger ones, with new seeds.

        A number of seeds means seeds above the seeds of all rungs, so that the words are new, too.

        Raises:
            InvalidSettingError: a rung uses one of the seeds, or they are too large.
        """
        changes = {**self.rungs[-1], **(by_field(self.request.larger) if larger else {})}
        given = changes["seeds"] if larger and "seeds" in self.request.larger else self.request.new_seeds
        used = {seed for rung in self.rungs for seed in seed_list(rung.get("seeds", self.request.seeds))}
        seeds = seed_list(given)
        if parse_whole(str(given)) is not None:
            seeds = [max(used) + place for place in range(1, len(seeds) + 1)]
        if max(seeds) > LARGEST_SEED:
            raise InvalidSettingError(f"{given} new seeds above {max(used)} would be too large: choose smaller seeds.")
        if both := used & set(seeds):
            raise InvalidSettingError(
                f"The seed {min(both)} of `larger` was used in the search; give a number of seeds, or others."
            )
        return {**changes, "seeds": seeds, "list_seed": LATER}

    def probe_of(self, point: Point, changes: Fields) -> ProbeRequest:
        """Return the request of a probe of a point; arguments as for `requests_of`."""
        own = {name: getattr(self.request, name) for name in names(ProbeRequest)}
        own |= {name: value for name, value in changes.items() if name in IN_A_RUNG}
        own |= {"model": [point.entry.qualified], "grammar": self.grammars or ["concat"], "hidden": point.hidden}
        own |= {"options": dict(point.options), "quick": False}
        return ProbeRequest(**own).with_given({*self.request.given, *changes} & set(own))

    def requests_of(self, point: Point, changes: Fields) -> list[RunRequest]:
        """Return the requests of the jobs that measure a point.

        Args:
            point: the point.
            changes: settings that replace settings of the search, as of a rung.
        """
        found: list[RunRequest] = [self.probe_of(point, changes)] if self.grammars else []
        if self.people is not None:
            by_dataset = grammars_of(self.people)
            asked = [term.of for one in self.objectives if one.of_people for term in one.terms]
            datasets = list(by_dataset) if "" in asked else list(dict.fromkeys(asked))
            games = {name: getattr(self.request, name) for name in (*RUNNING, *GAMES)}
            games |= {name: value for name, value in changes.items() if name in (*GAMES, "list_seed")}
            games |= {"player": [point.entry.name], "hidden": point.hidden, "options": dict(point.options)}
            games |= {"dataset": datasets, "protocol": CONVERGED, "quick": False, "keep_models": False}
            games["grammar"] = list(dict.fromkeys(name for dataset in datasets for name in by_dataset[dataset]))
            found.append(StudyRequest(**games))
        return found


def set_up(request: SearchRequest) -> SearchSetup:
    """Return the setup of a search.

    Raises:
        IcyError: as for `icy.search`.
    """
    if find_spec("optuna") is None:
        raise InvalidSettingError(INSTALL)
    registry.load_files(request.plugin)
    _check_numbers(request)
    (meanings,) = spaces_in(request.meanings)  # the command line gives a tuple
    changed: Any = {"meanings": meanings}
    request = replace(request, **changed).with_given(request.given)
    objectives, space, people = objectives_of(request), space_of(request), None
    if of_people := [one for one in objectives if one.of_people]:
        if space.side != "sender":
            raise InvalidSettingError("The distance to people is for senders, which answer with words as people do.")
        published = str(request.people).lower() == ICY22
        people = published_accuracies() if published else study_accuracies(read_rows(Path(str(request.people))))
        for one in of_people:
            one.people_in(people)  # raises for an unknown dataset
    if (known := registry.find(space.side, request.winner)) is not None and known.source != WINNERS:
        raise InvalidSettingError(
            f"A {space.side} is already called '{request.winner}': choose another name of the winner (--winner)."
        )
    setup = SearchSetup(request, space, tuple(objectives), people, tuple(_baselines(request, space)))
    setup.again(larger=True)  # raises for seeds of the search
    given = [name for name in IN_A_RUNG if name not in GAMES and name in request.given]
    if given and not setup.grammars:
        do = "does" if len(given) == 1 else "do"
        log.warning("%s %s nothing: the games of the study have sizes of their own.", listed(given), do)
    limits = [request.max_updates, *(rung.get("max_updates") for rung in setup.rungs)]
    if any(limits) and any(one.terms[0].measure == RATIO and not one.maximize for one in objectives):
        log.warning(
            "Under max_updates, a training without the target counts as these updates divided by concat's. If concat "
            "is slow, this is small, and the trial may rank before better ones: give a cap in place of max_updates."
        )
    return setup


def _baselines(request: SearchRequest, space: Space) -> Iterator[Point]:
    """Return the baselines; those with a hidden size of their own have it among their dimensions."""
    for text in BASELINES[space.side] if request.baselines is None else words(request.baselines):
        name, of_size, size = text.partition(f" {HIDDEN}=")
        (hidden,) = hidden_list(size) if of_size else [space.hidden]
        for entry in registry.match(name, space.side):
            yield Point(entry, hidden, params={HIDDEN: hidden} if of_size else {})


def _check_numbers(request: SearchRequest) -> None:
    """Raise if a setting of the search is not accepted."""
    require_known("sampler", request.sampler, get_args(SamplerName))
    for name, least in (("trials", 1), ("batch", 1), ("finalists", 0), ("new_seeds", 2), ("instances", 1)):
        whole_number(name, getattr(request, name), least=least)
    whole_number("sampler_seed", request.sampler_seed, least=0)
    seed_list(request.new_seeds)  # raises if they are too many
    if not 0 < real_number("keep", request.keep) <= 1:
        raise InvalidSettingError(
            f"keep is the share of trials that go to the next rung, above 0 to 1, not {request.keep}."
        )
    if not (isinstance(request.winner, str) and request.winner.isidentifier()):
        raise InvalidSettingError(
            f"The name of the winner consists of letters, digits and '_', not '{request.winner}'."
        )
    if not isinstance(request.space, Mapping):
        raise InvalidSettingError(f"`space` needs a table of options with their values, not {quoted(request.space)}.")
    if request.word_seeds is not None:
        raise InvalidSettingError(
            "A search takes no word_seeds: each of its seeds has its own words, so that finalists get new words."
        )
    _check_axes(request.axes, {name: getattr(request, name) for name in request.axes})
    if not isinstance(request.rungs, (list, tuple)):
        raise InvalidSettingError(NO_TABLES)
    for what, table in (*(("rungs", rung) for rung in request.rungs), ("larger", request.larger)):
        if not isinstance(table, Mapping):
            raise InvalidSettingError(NO_TABLES)
        own = by_field(table)
        for name in own:
            require_known(f"setting in {what}", name, (*IN_A_RUNG, "instances"))
        _check_axes(request.axes, own)


def _check_axes(axes: Sequence[str], settings: Fields) -> None:
    """Raise if settings have several values along an axis other than the hidden size."""
    for axis in (name for name in axes if name != "hidden" and name in settings):
        given = settings[axis]
        found = spaces_in(given) if axis == "meanings" else several(given)
        if len(found) != 1 or given == "all":
            raise InvalidSettingError(f"A search has one value of {axis}; only models, their options and hidden vary.")


# -- space -------------------------------------------------------------------------------------------------------------


def space_of(request: SearchRequest) -> Space:
    """Return the space of a search.

    Raises:
        InvalidSettingError: no model, models of two sides, nothing to choose, or a value that cannot be stored.
        UnknownNameError: an unknown model, option or value.
        IncompatibleError: a model does not work with the representation.
    """
    if request.side:
        require_known("side", request.side, SIDES)
    found = usable_models(request.model, str(request.representation), [request.side] if request.side else SIDES)
    if len({entry.kind for entry in found}) > 1:
        raise InvalidSettingError('These models are senders and receivers; choose a side, as in side="sender".')
    names, sizes = [entry.name for entry in found], hidden_list(request.hidden)
    chosen, fixed = _options(request, found)
    values = {**({MODEL: tuple(names)} if len(names) > 1 else {}), **chosen}
    sized = {**values, **({HIDDEN: tuple(sizes)} if len(sizes) > 1 else {})}
    space = Space(sized, dict(zip(names, found, strict=True)), sizes[0], dict(request.options), fixed)
    same = []  # models that are the same network at all hidden sizes
    if len(sizes) > 1 and not chosen:
        points = {name: [space.point({MODEL: name, HIDDEN: size}) for size in sizes] for name in names}
        same = [name for name in names if len({str(space.identity(point)) for point in points[name]}) == 1]
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


def _options(request: SearchRequest, entries: Sequence[Entry]) -> tuple[dict[str, tuple[Any, ...]], Choices]:
    """Return the options to choose with their values, and the options with a single value.

    They are the options in `space`. If all of these have a single value, a single model's other options are chosen too,
    except those in its name.
    """
    given = {name.replace("-", "_"): value for name, value in request.space.items()}
    found = {name: _values(name, value) for name, value in given.items()}
    for entry in (entry for entry in entries if entry.choices):
        for name, value in ((name, value) for name, values in found.items() for value in values):
            entry.with_choices({name: value})  # raises for an option or a value that it does not have
    named = {option.lower() for model in words(request.model) for option in split_name(model)[1] or {}}
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
