"""Findings from icy's records, with intervals and limits: `python -m results.findings [--train]`.

Writes findings.md (short, with pictures), findings-in-full.md and claims.md, from the atlas that comes with icy, from
results/reproduced, results/games, results/iterated, results/search and the records of generalise.toml and
generalise-grammars.toml. --train trains missing rows of these two sweeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from icy.analysis.style import plot_style
from results.findings.architectures import BUDGET, cells, families, hierarchy, order, shufdet, sides
from results.findings.chains import transmission
from results.findings.conditions import emergence, protocols, representations, reproduction, size
from results.findings.finding import HERE, Finding
from results.findings.held_out import GRAMMARS_SWEEP, generalisation
from results.findings.searches import people
from results.pages import RecordFolder, describe_packs, fill_template, read_options
from results.search.__main__ import PEOPLE
from results.search.__main__ import RECORDS as SEARCHES

PAGE, FULL, CLAIMS = HERE / "findings.md", HERE / "findings-in-full.md", HERE / "claims.md"
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
    sweeps = [records.sweep(file, rerun="never") for file, records in SWEEPS.items()]
    makers = (families, sides, order, cells, hierarchy, shufdet, protocols, representations, size,
              partial(generalisation, *sweeps), emergence, transmission, people, reproduction)  # fmt: skip
    with plot_style("paper"):  # a column of a page is as wide as a phone
        return {getattr(make, "func", make).__name__: make() for make in makers}


def pages(findings_by_name: Mapping[str, Finding]) -> dict[Path, str]:
    """Return the texts of the short page, of the page with all evidence, and of the claims."""
    joined = {
        name: replace(one, **{part: re.sub(r"\s*\n +", " ", getattr(one, part)) for part in ("numbers", "more")})
        for name, one in findings_by_name.items()
    }
    found = {page: fill_template(page, records=describe_packs(*PACKS), **joined) for page in (PAGE, FULL)}
    found = {page: re.sub(r"\n{3,}", "\n\n", text) for page, text in found.items()}  # some findings have no table
    return {**found, CLAIMS: claims_page(findings_by_name)}


def claims_page(findings_by_name: Mapping[str, Finding]) -> str:
    """Return the text of the page of claims: a row per claim, with link and command of its section of the full page."""
    template = FULL.with_suffix(".template.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)\n\n\*\*\{(\w+)\.sentence\}(?s:.*?)```sh\n(.+)\n", template, re.MULTILINE)
    found = {}
    for heading, name, command in sections:
        anchor = re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))
        found[name] = command, f"../../results/findings/{FULL.name}#{anchor}"
    rows = [claim.row(*found[name]) for name, one in findings_by_name.items() for claim in one.claims]
    heads = ["claim", "verdict", "setting", "n", "number", "interval", "test", "corrected for", "command"]
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
            one.figure.savefig(PAGE.with_name(f"findings-{name}.png"), dpi=220)
    for page, text in pages(found).items():
        page.write_text(text)


if __name__ == "__main__":
    main()
