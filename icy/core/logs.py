"""Change the level of loggers temporarily."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def log_level(level: int, *names: str) -> Iterator[None]:
    """Set the level of loggers within a `with` block.

    Args:
        level: a level of `logging`, such as `logging.ERROR`.
        names: names of the loggers.
    """
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, level_before in zip(loggers, before, strict=True):
            logger.setLevel(level_before)
