"""Formulas as MathML, which browsers show without scripts, so that pages work offline."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

log = logging.getLogger(__name__)


def mathml(node: nodes.math | nodes.math_block, block: bool) -> str:
    """Return the formula of a node as MathML; warn of LaTeX that cannot be converted, which fails the build."""
    text = node.astext()
    try:
        return str(latex2mathml.tex2mathml(text, as_block=block))
    except Exception as error:  # of several kinds
        log.warning("this formula is not LaTeX that can be shown: %s (%s)", text, error, location=node)
        return f"<code>{nodes.unescape(text)}</code>"


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def visit_displaymath(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula."""
    self.body.append(f'<div class="formula">{mathml(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
