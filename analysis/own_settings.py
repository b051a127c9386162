"""Settings of matplotlib that new figures have, in place of the user's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from icy.core.errors import InvalidSettingError

# The same svg each time; text in a pdf stays text, in a font type that publishers accept; text without hinting, which
# makes it up to a tenth wider at the resolution of screens, so that lines end outside the figure.
FILES: dict[Any, Any] = {"svg.hashsalt": "icy", "pdf.fonttype": 42, "text.hinting": "none"}
RC: dict[Any, Any] = {}  # settings that differ from matplotlib's defaults, as of a style


def load_matplotlib() -> None:
    """Import matplotlib; without MPLBACKEND if that is not valid, since icy opens no windows.

    Raises:
        InvalidSettingError: matplotlib cannot read the user's settings.
    """
    backend = os.environ.get("MPLBACKEND")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise
    except Exception as error:  # of any kind, from its file, its variables or the locale
        if os.environ.pop("MPLBACKEND", None) is None:
            raise InvalidSettingError(
                f"matplotlib cannot read its settings ({error}): correct or remove the file matplotlibrc."
            ) from error
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            del sys.modules[name]  # parts that were imported before the error
        load_matplotlib()
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend


@contextmanager
def own_settings() -> Iterator[None]:
    """Draw with matplotlib's defaults and the style, without the user's settings (LaTeX, fonts, colors, formats).

    It is for a `with` block, and also a decorator of functions that draw.
    """
    from matplotlib import rc_context, rcdefaults, rcParams

    with rc_context():
        rcdefaults()
        rcParams.update(FILES | RC)
        yield
