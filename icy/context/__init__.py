"""Language models in context: text models see examples of a language in a prompt, and answer for other meanings."""

from icy.core.register import register_kind_at, register_text_model

register_kind_at(
    "context",
    f"{__name__}.asking:CONTEXT",
    "Measure which grammars a language model learns from examples in its prompt.",
    "icy",
)
register_text_model(
    "learner",
    f"{__name__}.learner:LearnerModel",
    description="A small network that learns in context, for `icy context` only: learner, or learner#FILE.",
    source="icy",
)
