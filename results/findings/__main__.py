"""Findings from icy's records, with intervals and limits: `python -m results.findings [--train]`.

Writes findings.md and claims.md, pages of the documentation, and pictures, from the atlas that comes with icy, from
results/reproduced, results/games, results/iterated, results/search and the records of generalise.toml and
generalise-grammars.toml. --train trains missing rows of these two sweeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from results.findings.architectures import BUDGET, cells, families, hierarchy, order, shufdet, sides
from results.findings.chains import transmission
from results.findings.conditions import emergence, protocols, representations, reproduction, size
from results.findings.finding import HERE, Finding
from results.findings.held_out import GRAMMARS_SWEEP, generalisation
from results.findings.searches import people
from results.pages import RecordFolder, describe_packs, fill_template, read_options
from results.search.__main__ import PEOPLE
from results.search.__main__ import RECORDS as SEARCHES

PAGE, CLAIMS = HERE / "findings.md", HERE / "claims.md"
RECORDS = RecordFolder(HERE)
SWEEPS = {GRAMMARS_SWEEP: RecordFolder(HERE, "generalise-grammars.parquet", "runs/grammars"),
          HERE / "generalise.toml": RECORDS}  # fmt: skip
PACKS = (
    *(records.pack for records in SWEEPS.values()),
    BUDGET,
    *(HERE.parent / name / "records.parquet" for name in ("atlas", "reproduced", "games", "iterated")),
    SEARCHES[PEOPLE].pack,
)


def findings() -> dict[str, Finding]:
    """Return all findings by name."""
    makers = (families, sides, order, cells, hierarchy, shufdet, protocols, representations, size)
    found = {make.__name__: make() for make in makers}
    held_out = generalisation(*(records.sweep(file, rerun="never") for file, records in SWEEPS.items()))
    found |= {"generalisation": held_out, "emergence": emergence(), "transmission": transmission(), "people": people()}
    return {**found, "reproduction": reproduction()}


def page(findings_by_name: Mapping[str, Finding]) -> str:
    """Return the text of the page."""
    in_a_line = {name: replace(one, more=" ".join(one.more.split())) for name, one in findings_by_name.items()}
    return fill_template(PAGE, records=describe_packs(*PACKS), **in_a_line)


def claims_page(findings_by_name: Mapping[str, Finding]) -> str:
    """Return the text of the page of claims: a row per claim, with the command of its section of findings.md."""
    template = PAGE.with_suffix(".template.md").read_text(encoding="utf-8")
    commands = dict(re.findall(r"\{(\w+)\.result\}.*?```sh\n(.+?)\n```", template, re.DOTALL))
    rows = [claim.row(commands[name]) for name, one in findings_by_name.items() for claim in one.claims]
    heads = ["claim", "setting", "n", "number", "interval", "test", "corrected for", "command", "verdict"]
    lines = [heads, ["---"] * len(heads), *rows]  # cells have Markdown, so they are not escaped
    return fill_template(
        CLAIMS, records=describe_packs(*PACKS), table="\n".join(f"| {' | '.join(line)} |" for line in lines)
    )


def main(words: Sequence[str] | None = None) -> None:
    options = read_options(
        __doc__,
        words,
        train=(False, "train missing rows of the sweeps of held-out meanings"),
        workers=(int, "processes at once"),
    )
    for file, records in SWEEPS.items():
        if options.train:
            records.sweep(file, workers=options.workers)
        records.update_pack()
    found = findings()
    for name, one in found.items():
        if one.figure is not None:
            one.figure.savefig(PAGE.with_name(f"findings-{name}.png"), dpi=160)
    PAGE.write_text(page(found))
    CLAIMS.write_text(claims_page(found))


if __name__ == "__main__":
    main()
