"""The texts of the pages: every language has the same keys and the same placeholders."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from icy.core.errors import UnknownNameError
from icy.study.service.plan import languages
from icy.study.service.web.desk import FOLDER, HERE, block, counted, inline, words


def texts(found: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a language with its name."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from texts(value, f"{name}.{key}")
    elif isinstance(found, list):
        for place, value in enumerate(found):
            yield from texts(value, f"{name}.{place}")
    else:
        yield name, str(found)


def of(language: str) -> dict[str, str]:
    return dict(texts(tomllib.loads((FOLDER / f"{language}.toml").read_text())))


@pytest.mark.parametrize("language", languages())
def test_every_language_has_all_texts_with_the_same_placeholders(language: str) -> None:
    english, found = of("en"), of(language)
    assert list(found) == list(english)
    gaps = {name: sorted(re.findall(r"\{\w+\}", text)) for name, text in found.items()}
    assert gaps == {name: sorted(re.findall(r"\{\w+\}", text)) for name, text in english.items()}
    right = {name: text for name, text in found.items() if name.endswith(".right") and text.isdigit()}
    assert right == {name: english[name] for name in right}
    assert all(found.values())


def test_every_text_is_used() -> None:
    source = "\n".join(path.read_text() for path in (*HERE.glob("*.py"), *HERE.glob("templates/*.html")))
    for name in of("en"):
        parts = [part for part in name.split(".") if part and not part.isdigit()]
        named = parts[-1] if parts[0] not in ("refused", "say") and len(parts) < 3 else parts[0]
        assert re.search(rf"\b{named}\b", source), name


def test_pages_and_documents_are_in_the_same_languages() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == languages()


def test_unknown_languages_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="No language of the pages is called 'fr'"):
        words("fr")


def test_html_in_markdown_is_escaped() -> None:
    assert block("<script>x</script> **b**") == "<p>&lt;script&gt;x&lt;/script&gt; <strong>b</strong></p>\n"
    assert inline("a **b** <i>") == "a <strong>b</strong> &lt;i&gt;"
    assert "href" not in block("[x](javascript:alert(1))")


def test_headings_are_lowered_to_the_top_level() -> None:
    text = "# a\n\n## b\n"
    assert block(text) == "<h1>a</h1>\n<h2>b</h2>\n"
    assert block(text, top=2) == "<h2>a</h2>\n<h3>b</h3>\n"
    assert block("## b", top=2) == "<h2>b</h2>\n"


def test_counts_of_one_are_singular() -> None:
    assert [counted(n, words("en").counts.card) for n in (0, 1, 2)] == ["0 codes", "1 code", "2 codes"]
