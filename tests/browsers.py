"""A real browser for slow tests: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
)
VARIABLE = "ICY_CHROMIUM"
NO_CHROMIUM = f"there is no Chromium here; name one in {VARIABLE}"


def chromium() -> str | None:
    """The path of a Chromium on this machine: that of the variable ICY_CHROMIUM, or one in the usual places."""
    named = [os.environ.get(VARIABLE), *map(shutil.which, NAMES), *PLACES]
    return next((path for path in named if path and Path(path).is_file()), None)


def why_not() -> str:
    """Why no browser can be driven here; "" if one can."""
    try:
        import axe_playwright_python  # noqa: F401
        import playwright  # noqa: F401
    except ImportError:
        return 'the extra "browser" is not installed'
    return "" if chromium() else NO_CHROMIUM


@contextmanager
def driven(**options: Any) -> Iterator[Any]:
    """Start a browser, and yield a context of it."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
        context = browser.new_context(**options)
        context.set_default_timeout(30_000)
        yield context
        browser.close()
