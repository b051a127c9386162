"""Agents that learn S2B. Registers the jobs that train them, and the trained agent that comes with icy."""

from icy.core.entry import JOB, Entry
from icy.core.register import register_listener
from icy.core.registry import registry

# The kinds of jobs are imported on first use, so that commands that train nothing start fast.
for name, kind, description, source in (
    ("s2b", "S2B", "Train agents of meta-referential games.", "MetaRG22; MetaRG24; icy"),
    (
        *("recall", "RECALL", "Train agents of the recall task."),
        "MetaRG22 section 3.3, MetaRG24 appendix E.1; icy",
    ),
):
    registry.add(Entry(JOB, name, f"{__name__}.kinds:{kind}", description, source, 1, origin=__name__))

register_listener(
    "memory",
    f"{__name__}.saved_networks:memory",
    description="An attention memory of dimensions and positions, trained from rewards only.",
    source="icy",
)
