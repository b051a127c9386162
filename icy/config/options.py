"""Arguments of the public functions by name; type checkers read options.pyi, which `python -m tests.stubs` writes."""

from typing import TypedDict

ProbeOptions, SweepOptions, SearchOptions, EndToEndOptions, ChainOptions, ReproduceOptions = (
    TypedDict(name, {})
    for name in ("ProbeOptions", "SweepOptions", "SearchOptions", "EndToEndOptions", "ChainOptions", "ReproduceOptions")
)
