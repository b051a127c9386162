"""How Sphinx builds the site; `python docs/build.py` runs it.

Everything that can be generated is, at every build, by docs/_ext: tables and parameter counts from the registry,
pictures from the grammars, the command line's pages from its commands, and API pages from docstrings.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]
os.environ.setdefault("OMP_NUM_THREADS", "1")

from icy.version import __version__  # noqa: E402  (it is found only now)

project, author, copyright = "icy", "the icy developers", "the icy developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "icy_site",
]
exclude_patterns = ["_build", "_ext"]
smartquotes = False  # `--model` and "5x10" must not change

moved_pages = {  # old address -> new address, without ".html"; search.html is Sphinx's own page
    "cells": "model-equations#cells",
    "channels": "representations",
    "iterated-learning-prior": "iterated-learning#chains-of-your-own-learners",
    "metrics-weights": "metrics-significance#weights-of-rows",
    "other-training-loops": "plug-ins-pytorch#models-in-your-own-training-loop",
    "papers": "reproducing#the-papers",
    "plug-ins-checks": "plug-ins#checking-a-plug-in",
    "plug-ins-grammars": "plug-ins#grammars-and-metrics",
    "receivers": "model-equations#receivers",
    "results-columns": "results#columns-of-results",
    "s2b-acquisition": "s2b-agents#ease-of-acquisition",
    "s2b-memories": "s2b-agents#attention-memories-and-pairs",
    "s2b-r2d2": "s2b-published-agents#r2d2",
    "s2b-recall": "s2b-published-agents#the-recall-task",
    "s2b-rules": "s2b#published-rules",
    "s2b-scores": "s2b#judge-a-score",
    "s2b-text-servers": "s2b-text#servers-for-text-models",
    "senders": "model-equations#senders",
    "statistics": "comparing-results#statistics-over-models",
    "study-prepare": "study-run#prepare-a-study",
    "study-report": "study#report-a-study",
    "study-serve": "study-run#let-people-in",
    "tracking": "sweeps#trackers-and-progress",
}

# -- Markdown ----------------------------------------------------------------------------------------------------------
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist", "tasklist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

# -- API pages ---------------------------------------------------------------------------------------------------------
default_role = "py:obj"  # `names` in docstrings are links if they name something public
nitpick_ignore_regex = [
    (r"py:obj", r".*"),  # `x` in a docstring may also be code
    (r"py:.*", r"(?!icy\.).*"),  # types of other libraries, which would need their inventories
]
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False  # they are in the signature
maximum_signature_line_length = 110

# -- HTML --------------------------------------------------------------------------------------------------------------
html_theme = "furo"
html_title = f"icy {__version__}"
html_static_path = ["_static"]
html_css_files = ["icy.css"]
html_math_renderer = "mathml"  # of docs/_ext/mathml.py: no script, nothing to fetch
html_copy_source = False
highlight_language = "text"  # of blocks that name none
html_show_sphinx = False
copybutton_exclude = ".linenos, .gp, .go"
pygments_style, pygments_dark_style = "tango", "monokai"
toc_object_entries_show_parents = "hide"
