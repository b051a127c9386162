"""The arguments of sweeps and searches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from icy.config.requests import MODELS, RETRIES, option
from icy.config.settings import Grammars, OrderName, SamplerName, SideName
from icy.training.probe_settings import ProbeRequest


@dataclass(frozen=True)
class SweepRequest(ProbeRequest):
    """The arguments of `icy.sweep`.

    Takes every argument of `icy.probe`. With `parts`, each part is a separate sweep; it takes the arguments that it
    does not set from the whole sweep.

    Attributes:
        model: names or wildcards of senders and receivers.
        side: "sender" or "receiver" for only this side; by default both.
        kind: kind of job of the sweep, or of a part: "probe", "e2e", or a kind that a plug-in registers.
        parts: arguments of parts of the sweep, by name.
        shard: "i/n": the i-th of n shares of the rows, for n machines that write into one folder.
        retries: how often icy restarts a stack after a worker was killed, before it records a failure.
        order: "longest" first, so that no long row remains at the end, or as "given".
    """

    function = "icy.sweep"

    model: str | Iterable[str] = option((), **MODELS)
    side: SideName | None = None
    kind: str = "probe"
    parts: Sequence[Mapping[str, Any]] = ()
    shard: str | None = option(None, metavar="i/n")
    retries: int = option(RETRIES, minimum=0)
    order: OrderName = "longest"


@dataclass(frozen=True)
class SearchRequest(ProbeRequest):
    """The arguments of `icy.search`: the models to choose from, the objectives, and the settings of every trial.

    Takes every argument of `icy.probe`. Except for `hidden`, each has one value. A trial is a point of the space of
    models: a name, a hidden size and options.

    Attributes:
        model: names or wildcards of models: the search chooses one. Or a single model: the search chooses its options
            in `space`, or all that it declares.
        side: "sender" or "receiver" for only this side.
        space: values of each option to choose from, as in {"cell": ["GRU", "LSTM"]}. A single value is fixed.
        minimize: what should be small: "ratio:shufdet", a difference such as "ratio:rot - ratio:shufdet", "people",
            "parameters", "updates" or "seconds"; several give the Pareto front. See icy.experiments.search.objectives.
        maximize: what should be large, in the same words.
        grammar: grammars to train in addition to the grammars of the objectives.
        trials: number of trials; less if the space has fewer points.
        sampler: how points are chosen: "tpe", by a model of the results so far (Bergstra et al. 2011), or "random".
        sampler_seed: seed of the choice.
        batch: trials that are chosen together, from the results of earlier batches, and trained at the same time.
        rungs: tables of settings that replace settings of the search. All trials run at the first rung, and the best
            share of each rung (`keep`) at the next.
        keep: share of the trials of a rung that go to the next.
        finalists: number of the best trials that are measured again with new seeds and words.
        new_seeds: number of seeds of these measurements.
        larger: settings of a second measurement of finalists and baselines, as in {"meanings": "5x10"}.
        baselines: names of models that are measured with the finalists; by default HierZero:dgsend, FC2L and
            RNNAutoReg:LSTM among senders, and Hier:GRU and FC2L among receivers. Their hidden size is that of the best
            trial, unless they have their own, as in "FC2L hidden=128".
        people: the people of the objective "people": "icy22", or a file with the rows of an exported study (.csv or
            .parquet).
        instances: games per dataset and grammar in the distance to people.
        winner: name of the best model in the plug-in file winner.py.
        quick: a small space, few seeds, few trials and a small hidden size if these are not given, to try things out.
    """

    function = "icy.search"
    small = MappingProxyType({**ProbeRequest.small, "trials": 6, "finalists": 1, "new_seeds": 2, "instances": 2})

    model: str | Iterable[str] = option((), **MODELS)
    side: SideName | None = None
    space: Mapping[str, Any] = option(
        {}, help='values of an option to choose from, as in cell=["GRU","LSTM"]; repeatable.'
    )
    minimize: str | Iterable[str] = option((), metavar="OBJECTIVE")
    maximize: str | Iterable[str] = option((), metavar="OBJECTIVE")
    grammar: Grammars = option((), flags=("--grammar", "-g"), metavar="NAME", completes="files_and_grammars")
    trials: int = option(20, minimum=1)
    sampler: SamplerName = option("tpe", brackets=False)
    sampler_seed: int = 0
    batch: int = option(4, minimum=1)
    rungs: Sequence[Mapping[str, Any]] = ()
    keep: float = 1 / 3
    finalists: int = option(3, minimum=0)
    new_seeds: int = option(5, minimum=2)
    larger: Mapping[str, Any] = option(
        {}, help="a setting of a second measurement of finalists and baselines, as in meanings=5x10; repeatable."
    )
    baselines: str | Iterable[str] | None = option(None, metavar="NAME", completes="models")
    people: str | Path = option("icy22", metavar="icy22|ROWS")
    instances: int = option(20, minimum=1)
    winner: str = option("Winner", metavar="NAME")
