"""Settings of S2B by name; type checkers read options.pyi, which `python -m tests.stubs` writes."""

from typing import TypedDict

GameOptions, ParallelOptions, RecallOptions, RecallEnvOptions = (
    TypedDict(name, {}) for name in ("GameOptions", "ParallelOptions", "RecallOptions", "RecallEnvOptions")
)
