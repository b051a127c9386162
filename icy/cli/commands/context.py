"""`icy context`: measure which grammars a language model learns from examples in its prompt."""

from icy.cli.session import command_of_kind


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
