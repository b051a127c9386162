"""Measure the training cost of the zoo at 5x10 with and without native cores: `python -m benchmarks.zoo`.

For every model of results/atlas/main.toml that learns by gradient, it measures the updates per second of one core, by
the engine that icy chooses and by PyTorch (the engine `broadcast`), in turn, in processor time, which other work on the
machine hardly changes. Hours are for one core and the largest number of updates that the caps allow if concat takes
ASSUMED_STEPS. Takes a quarter of an hour. Writes zoo.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import geometric_mean

from benchmarks.courses import GRAMMARS
from benchmarks.harness import Where, in_turn
from benchmarks.speed import processor
from benchmarks.steady import ICY, Crew
from icy.config.protocols import PROTOCOLS
from icy.core.text import markdown_table
from results.pages import describe_versions, fill_template, read_options

HERE = Path(__file__).parent
PAGE = HERE / "zoo.md"
SEEDS = 3  # seeds of the atlas
ASSUMED_STEPS = 500  # of concat
ENGINES = {"native": "auto", "PyTorch": "broadcast"}


def models() -> list[str]:
    """Return the models of the atlas that learn by gradient."""
    sweep = tomllib.loads((HERE.parent / "results" / "atlas" / "main.toml").read_text())
    named = [model for part in sweep["sweep"] for model in part["model"]]
    return [model for model in named if not model.endswith(("Hashtable", "kNN"))]


def updates() -> float:
    """Return the total updates of a row's replicates, if every grammar except concat is trained up to its limit."""
    return ASSUMED_STEPS * SEEDS * (1 + PROTOCOLS["acquire"].cap * (len(GRAMMARS) - 1))


def rates(model: str, seconds: float, rounds: int) -> tuple[dict[str, float], str]:
    """Return the updates per second of processor time by each engine (best of several rounds), and icy's choice."""
    crews = {way: Crew(ICY, model, 1, 1, Where(engine=engine, clock="process_time")) for way, engine in ENGINES.items()}
    try:
        chosen = {way: crew.ready() for way, crew in crews.items()}["native"]
        measured = in_turn({way: partial(crew.rate, seconds) for way, crew in crews.items()}, rounds)
    finally:
        for crew in crews.values():
            crew.end()
    return {way: max(found) for way, found in measured.items()}, chosen


def page(found: dict[str, dict[str, float]]) -> str:
    """Return the text of the page."""
    hours = {model: {way: updates() / rate / 3600 for way, rate in of.items()} for model, of in found.items()}
    head = ["model", *(f"{way}, updates/s" for way in ENGINES), "ratio", *(f"{way}, hours" for way in ENGINES)]
    return fill_template(
        PAGE,
        where=processor("cpu"),
        versions=describe_versions(),
        grammars=len(GRAMMARS) - 1,
        steps=ASSUMED_STEPS,
        seeds=SEEDS,
        models=len(found),
        mean=geometric_mean(of["native"] / of["PyTorch"] for of in found.values()),
        before=sum(of["PyTorch"] for of in hours.values()),
        after=sum(of["native"] for of in hours.values()),
        table=markdown_table(head, list(lines(found, hours)), numbers=range(1, len(head))),
    )


def lines(found: dict[str, dict[str, float]], hours: dict[str, dict[str, float]]) -> Iterator[list[str]]:
    """Return the lines of the table."""
    for model, of in found.items():
        shown = [f"{of[way]:,.0f}" if of[way] >= 10 else f"{of[way]:.2f}" for way in ENGINES]
        yield [model, *shown, f"{of['native'] / of['PyTorch']:.1f}", *(f"{hours[model][way]:.2f}" for way in ENGINES)]


def main() -> None:
    """Measure, and write the page after each model."""
    given = read_options(
        __doc__,
        seconds=(3.0, "seconds of each engine in a round"),
        rounds=2,
        quick=(False, "a trial with two models; nothing is written"),
    )
    if given.quick:
        given.seconds, given.rounds = 0.1, 1
    found: dict[str, dict[str, float]] = {}
    for model in models()[: 2 if given.quick else None]:
        found[model], chosen = rates(model, given.seconds, given.rounds)
        print(model, chosen, {way: round(rate, 1) for way, rate in found[model].items()}, flush=True)
        if not given.quick:
            PAGE.write_text(page(found))
    if given.quick:
        print(page(found))


if __name__ == "__main__":
    main()
