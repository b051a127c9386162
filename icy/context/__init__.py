"""Language models in context: text models see examples of a language in a prompt, and answer for other meanings."""

from icy.core.register import register_kind_at

register_kind_at(
    "context",
    f"{__name__}.asking:CONTEXT",
    "Measure which grammars a language model learns from examples in its prompt.",
    "icy",
)
