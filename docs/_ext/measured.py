"""Pages of measurements in benchmarks/, results/ and tests/stress/: each has a page in docs/benchmarks/ on the site.

Links in the documentation name the file in the repository, so that they also work where the site is not built.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = ("benchmarks/*.md", "results/*/*.md", "tests/stress/*.md")
LINK = re.compile(r"\]\(((?:\.\./)*(?:benchmarks|results/\w+|tests/stress)/[\w-]+\.md)")


def measured_pages() -> dict[Path, str]:
    """Return the name in docs/benchmarks/ of each page of measurements, except pages of results/findings (in docs/)."""
    paths = [path for place in PLACES for path in sorted(ROOT.glob(place)) if not path.name.endswith(".template.md")]
    names = {path: path.parent.name if path.name == "README.md" else path.stem for path in paths}
    found = {path: f"{name}.md" for path, name in names.items() if path.parent.name != "findings"}
    if len(set(found.values())) < len(found):
        twice = [name for name in found.values() if list(found.values()).count(name) > 1]
        raise ValueError(f"two pages of measurements have the name {twice[0]}: rename one of them")
    return found


def write_pages(docs: Path) -> None:
    """Write a page into `docs`/benchmarks/ for each page of measurements, which includes it."""
    for path, name in measured_pages().items():
        page = docs / "benchmarks" / name
        text = f"```{{include}} {os.path.relpath(path, page.parent)}\n:relative-images:\n```\n"
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def link_pages(text: str, docs: Path, page: str) -> str:
    """Return a page's text with links to the pages of the site in place of links to pages of measurements.

    Args:
        text: text of the page, in Markdown.
        docs: folder of the documentation.
        page: name of the page relative to `docs`.
    """
    names, folder = measured_pages(), (docs / page).parent

    def target(match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        return f"]({os.path.relpath(docs / 'benchmarks' / names[path], folder)}" if path in names else match[0]

    return LINK.sub(target, text)
