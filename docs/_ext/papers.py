"""The page of the papers: parts of each paper, with their names in icy, commands, and counts of measured numbers.

Tables and figures come from the catalog of published tables, models, grammars, metrics and players from the registry,
and counts of measured numbers from the csv files in results/reproduced. Nothing here needs Sphinx.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from icy.analysis.literature.catalogue import PublishedName, published_names, published_sources
from icy.core.registry import CORE, PERCEPTION, PLAYERS, SIDES, STUDY_PLAYER, WORLD, Entry, registry
from icy.core.text import listed, markdown_table
from icy.grammars import grammar_sides

ROOT = Path(__file__).parents[2]
REPRODUCED = ROOT / "results" / "reproduced"
HEADINGS = ("in the paper", "content", "name in icy", "command", "measured", "page")
Line = tuple[str, str, str, str, str, str]
KINDS = {  # of the registry: the command that uses an entry, and the page that describes it
    "sender": ("icy probe --model '{}'", "model-equations"),
    "receiver": ("icy probe --model '{}'", "model-equations"),
    "cell": ("icy list cells {}", "model-equations"),
    "grammar": ("icy probe --model HierZero:GRU --grammar {}", "grammars"),
    "metric": ("icy metrics concat --metric {}", "metrics-definitions"),
    "speaker": ("icy s2b eval --speaker {}", "s2b"),
    "listener": ("icy s2b eval --listener {}", "s2b"),
    CORE: ("icy s2b train --core {}", "s2b-cores"),
    WORLD: ("icy games train --world {}", "games-worlds"),
    PERCEPTION: ("icy games train --perception {}", "games-worlds"),
    STUDY_PLAYER: ("icy study simulate --player {}", "study"),
}
# Parts of papers that are not in the catalog or the registry: paper, place, content, name, command, page.
OTHERS = (
    (
        "Perkins21",
        "section 2.8",
        "Training with probabilities (SOFT)",
        "soft",
        "icy probe --model sender/FC2L --representation soft",
        "representations",
    ),
    (
        "Perkins21",
        "section 2.8",
        "Training with Gumbel-softmax samples (GUMB)",
        "gumb",
        "icy probe --model sender/FC2L --representation gumb",
        "representations",
    ),
    (
        "Perkins21",
        "section 2.8",
        "Training with sampled tokens (DISCR)",
        "discr",
        "icy probe --model sender/FC2L --representation discr",
        "representations",
    ),
    (
        "Perkins21",
        "section 3.2, A.1",
        "RMSprop in place of Adam",
        "optimizer",
        "icy probe --model sender/FC2L --representation gumb --set optimizer=rmsprop",
        "published-versus-corrected",
    ),
    (
        "Perkins21",
        "section 6",
        "Tree reconstruction error",
        "tre",
        "icy metrics concat --metric tre --set tre.preset=published",
        "metrics",
    ),
    (
        "Icy22",
        "section 3.1.6",
        "The order of words that the last attribute decides",
        "shufdet",
        "icy probe --model HierZero:GRU --grammar shufdet",
        "grammars",
    ),
    (
        "Icy22",
        "TRE7",
        "Tree reconstruction error",
        "tre",
        "icy metrics concat --metric tre --set tre.preset=published",
        "metrics",
    ),
    (
        "CBM24",
        "section 4",
        "Relaxed Gumbel-softmax words (GS)",
        "gs",
        "icy games train --representation gs",
        "representations",
    ),
    ("CBM24", "section 4", "Quantized words (QT)", "qt", "icy games train --representation qt", "representations"),
)


def papers() -> str:
    """Return a section per paper, with its citation and a table of its parts."""
    names = published_names()
    parts = []
    for key, source in published_sources().items():
        rows = [_published(one) for one in names if one.name.startswith(f"{key}/")]
        rows += [*_registered(source["name"]), *_others(source["name"])]
        parts += [f"### {source['name']}", source["citation"], markdown_table(HEADINGS, rows, markup=True)]
    return "\n\n".join(parts)


def _published(one: PublishedName) -> Line:
    place = re.sub(r"^(table|figure)(\d+)$", r"\1 \2", one.name.partition("/")[2])
    command = f"icy reproduce {one.name}" if one.is_measured else _first_command(one.of.shown_by)
    return (
        place,
        one.title,
        _code(one.name),
        _code(command or f"icy reproduce {one.name} --dry-run"),
        *_count_measured(one),
    )


def _first_command(sentence: str) -> str:
    """Return the first command of icy in a sentence, or ""."""
    found = re.search(r"`(icy [^`]+)`", sentence)
    return found[1] if found else ""


def _count_measured(one: PublishedName) -> tuple[str, str]:
    """Return how many of the numbers of a table are measured, and a link to the page."""
    of = one.of
    stem = re.escape(of.id.replace("/", "-"))
    counts = [_count(path) for path in sorted(REPRODUCED.glob("*.csv")) if re.fullmatch(rf"{stem}(-.*)?", path.stem)]
    if counts:
        path, measured, cells = max(counts, key=lambda found: found[1])
        return f"{measured} of {cells} numbers", _link(f"../results/reproduced/{path.stem}")
    if one.is_measured:
        return "on the page" if of.page else "no", _link(of.page)
    return "no", _link(of.page)


def _link(page: str) -> str:
    return f"[{page.rpartition('/')[2]}]({page}.md)" if page else ""


def _count(path: Path) -> tuple[Path, int, int]:
    with path.open(newline="", encoding="utf-8") as file:
        verdicts = [row["verdict"] for row in csv.DictReader(file)]
    return path, sum(verdict != "missing" for verdict in verdicts), len(verdicts)


def _registered(paper: str) -> Iterator[Line]:
    """Yield a row per model family, grammar, metric or player that comes from a paper."""
    done = set()
    for entry in registry.entries(*SIDES, "cell", "grammar", "metric", *PLAYERS, CORE, WORLD, PERCEPTION, STUDY_PLAYER):
        place = _place(entry.source, paper)
        family = entry.name.partition(":")[0]
        if place is None or (entry.kind, family) in done:
            continue
        done.add((entry.kind, family))
        several = ":" in entry.name
        name = entry.qualified.replace(entry.name, f"{family}:*") if several else _name(entry)
        command, page = KINDS[entry.kind]
        if entry.kind == "grammar" and "sender" not in grammar_sides(entry.name):
            command = command.replace("HierZero:GRU", "Hier:GRU")
        also = [alias.partition(":")[0] for alias in entry.aliases]
        what = _family_description(entry) + (f" Also called {listed(also, 'or')}." if also else "")
        yield place or "-", what, _code(name), _code(command.format(name)), "-", _link(page)


def _name(entry: Entry) -> str:
    return entry.qualified if entry.kind in SIDES else entry.name


def _family_description(entry: Entry) -> str:
    """Return the description of an entry, without its cell."""
    return entry.description.replace(f", with the {entry.cell.name} cell", "") if entry.cell else entry.description


def _place(source: str, paper: str) -> str | None:
    """Return the part of a paper that a source names, "" for all of it; None if it does not name the paper.

    Example:
        >>> _place("Perkins21 section 2.9; Icy22 section 3.3.2", "Icy22"), _place("Perkins21 (ROT), Icy22", "Perkins21")
        ('section 3.3.2', 'ROT')
    """
    found = re.search(rf"\b{paper}\b,? ?(\([^)]*\)|[^;(]*)", source)
    return None if found is None else found[1].strip("() ,")


def _others(paper: str) -> list[Line]:
    return [
        (place, what, _code(name), _code(command), "-", _link(page))
        for of, place, what, name, command, page in OTHERS
        if of == paper
    ]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
