"""`icy context`: which grammars a language model learns from its prompt; `icy learner`: one of our own."""

from typing import Annotated, Any

from icy.cli.options import OUT, FilePath, command, fields_of, plugin_option, together
from icy.cli.output import note
from icy.cli.session import command_of_kind
from icy.context.learner_settings import LearnerSettings
from icy.experiments.in_context import train_context_learner


@command_of_kind("context", "context")
def context_command() -> None:
    """
    A prompt shows examples of a language, and asks for meanings that are not among them. The table has the number of
    examples to the target, as a ratio to concat's; with --protocol generalise, the accuracy after the most examples. No
    weights change.

    Examples:
      icy context -m http://localhost:8000/v1#llama -g concat,perm,rot,shufdet,proj,hol --dry-run
      icy context -m http://localhost:8000/v1#llama -g concat,perm,rot --meanings 3x4 --concurrency 64
      icy context -m https://api.openai.com/v1#gpt-4o-mini --key-variable OPENAI_API_KEY --max-requests 2000
      icy context -m transformers#models/mine --answers choices --role receiver
      icy context -m http://localhost:8000/v1#llama --form plain-1,story-1 --protocol all

    A model is named by URL#MODEL, for any OpenAI-compatible server; by transformers#FOLDER, for a model on this
    machine; or by the name of a plug-in. The owner of the server can read the prompts. Answers are saved in --cache:
    after an interruption, run the same command again to continue.
    """


OPTIONS = together(*(field.option() for field in fields_of(LearnerSettings).values()))


@command("learner", short_help="Train a small network that learns languages in context.")
@plugin_option
def learner_command(
    *,
    chosen: Annotated[dict[str, Any], OPTIONS],
    out: Annotated[str, {**OUT, "type": FilePath()}] = "learner.safetensors",
) -> None:
    """
    The network reads examples of a language and answers for other meanings, without changes of its weights: a
    demonstration for `icy context` that needs no server. It trains on languages that are new in every update, of 2x4
    and 3x4 meanings, 4 tokens, and words of 2 and 4 tokens, in both directions. The default settings take about three
    minutes of one core. After an interruption, run the same command again to continue.

    Args:
        out: file to write.

    Examples:
      icy learner
      icy learner --cell GRU --seed 1 -o gru.safetensors
      icy context -m learner#gru.safetensors -g concat,perm,rot,shufdet,proj,hol

    The text model `learner` without a file is the one that comes with icy.
    """
    file = train_context_learner(out, **chosen)
    note(f"{file} is a text model: icy context -m learner#{file}")
