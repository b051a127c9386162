"""Agents that learn S2B. Registers the jobs that train them, and the trained agent that comes with icy."""

from icy.core.register import register_kind_at, register_listener

register_kind_at("s2b", f"{__name__}.kinds:S2B", "Train agents of meta-referential games.", "MetaRG22; MetaRG24; icy")
register_kind_at(
    "recall",
    f"{__name__}.kinds:RECALL",
    "Train agents of the recall task.",
    "MetaRG22 section 3.3, MetaRG24 appendix E.1; icy",
)
register_listener(
    "memory",
    f"{__name__}.saved_networks:memory",
    description="An attention memory of dimensions and positions, trained from rewards only.",
    source="icy",
)
