"""Sphinx extension that keeps the addresses of the site: old addresses redirect, and every link opens something.

`moved_pages` in conf.py has the new address of each page that was renamed or merged. A build warns, and so fails, if
two pages have one address, or if a link or a redirect leads to a file or a heading that does not exist. Sphinx itself
warns of pages that are in no menu.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sphinx.application import Sphinx
from sphinx.util import logging

REDIRECT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>This page moved</title><meta name="robots" content="noindex">
<script>location.replace("{page}" + (location.hash || "{anchor}"))</script>
<meta http-equiv="refresh" content="1; url={address}"></head>
<body><p>This page moved: <a href="{address}">{address}</a></p></body></html>
"""
SCRIPT = re.compile(r"(<(script|style)\b[^>]*>).*?</\2>", re.DOTALL)  # its text, which may contain templates of links
LINK = re.compile(r'<(?:a|img|link|source|script)\b[^>]*?\s(?:href|src)="([^"]*)"')
ID = re.compile(r'\sid="([^"]+)"')
ELSEWHERE = re.compile(r"[a-z]+:|//")
log = logging.getLogger(__name__)


def refuse_second_page(written: set[str], app: Sphinx, page: str, *rest: Any) -> None:
    """Warn if a page has the address of another page, as `search.md` has that of Sphinx's own search page.

    Args:
        written: names of the pages that are already written; this function adds the page.
        app: the running build.
        page: name of the page.
        rest: template, context and tree of the page, which are not used.
    """
    name = page.lower()  # because some file systems do not distinguish upper case
    if name in written:
        log.warning("two pages have the address %s: rename one of them", app.builder.get_target_uri(page))
    written.add(name)


def write_redirects(out: Path, moved: dict[str, str], pages: Collection[str]) -> None:
    """Write a page at each old address, which opens the new one; it keeps the anchor of the request, if it has one.

    Args:
        out: folder of the built site.
        moved: new addresses by old ones, without ".html", such as {"cells": "model-equations#cells"}.
        pages: names of the pages of the site.
    """
    for old, new in moved.items():
        if old in pages:
            log.warning("two pages have the address %s.html: a page, and a redirect to %s", old, new)
            continue
        page, mark, anchor = new.partition("#")
        text = REDIRECT.format(page=f"{page}.html", anchor=mark + anchor, address=f"{page}.html{mark}{anchor}")
        (out / f"{old}.html").write_text(text, encoding="utf-8")


def broken_links(out: Path) -> Iterator[tuple[str, str]]:
    """Yield the page and the target of each link inside a site that opens no file, or no element of its page."""
    pages = {file: SCRIPT.sub(r"\1", file.read_text(encoding="utf-8")) for file in sorted(out.rglob("*.html"))}
    ids = {file: set(ID.findall(text)) for file, text in pages.items()}
    for file, text in pages.items():
        for link in dict.fromkeys(map(html.unescape, LINK.findall(text))):
            path, _, anchor = link.partition("#")
            target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
            opens = target.exists() and (not anchor or target not in ids or unquote(anchor) in ids[target])
            if not opens and not ELSEWHERE.match(link):
                yield file.relative_to(out).as_posix(), link


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write the redirects, then check the links of all pages."""
    if error is None and app.builder.format == "html":
        out = Path(app.outdir).resolve()
        write_redirects(out, app.config.moved_pages, app.env.found_docs)
        for page, link in broken_links(out):
            log.warning("%s: this link opens nothing: %s", page, link)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_config_value("moved_pages", {}, "html")
    app.connect("html-page-context", functools.partial(refuse_second_page, set()))
    app.connect("build-finished", finish, priority=900)  # after extensions that write pages
    return {"parallel_read_safe": True, "parallel_write_safe": False}
