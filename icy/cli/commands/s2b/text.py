"""`icy s2b text`: evaluate text models as listeners or speakers."""

from __future__ import annotations

from typing import Annotated, Any

import click

from icy.cli.options import FilePath, RowsOutput, command, fields_of, plugin_option, together
from icy.cli.output import note, print_records
from icy.core.errors import InvalidSettingError
from icy.core.registry import LISTENER, PLAYERS, SPEAKER
from icy.core.text import counted
from icy.experiments.text_models import HOW, OTHER, draft_requests, evaluate_text_models
from icy.s2b.text.prompt import FORMS
from icy.text.interface import TextSettings, cost_of_reading
from icy.text.models import check_name

from .players import Episodes, Games, RegisteredListener, RegisteredSpeaker, Seeds, settings_of

OF = fields_of(TextSettings)
SAMPLING = together(*(OF[name].option() for name in ("temperature", "top_p", "top_k", "repetition_penalty")))
ASKING = ("constrain", "body", "key_variable", "timeout", "retries", "backoff", "concurrency")
Price = Annotated[float, {"type": click.FloatRange(min=0)}]


@command("text", short_help="Evaluate text models as listeners or speakers.")
@plugin_option
def text_command(
    *,
    model: Annotated[tuple[str, ...], {"metavar": "NAME|URL#MODEL", "completes": "text_models"}],
    role: Annotated[str, {"type": click.Choice(PLAYERS)}] = LISTENER,
    speaker: RegisteredSpeaker = None,
    listener: RegisteredListener = None,
    prompt: Annotated[str, {"type": click.Choice(list(FORMS))}] = "icy",
    episodes: Episodes = 64,
    seeds: Seeds = 5,
    dry_run: bool = False,
    sampling: Annotated[dict[str, Any], SAMPLING],
    max_tokens: int = 1024,
    asking: Annotated[dict[str, Any], together(*(OF[name].option() for name in ASKING))],
    cache: Annotated[str, {"type": FilePath(), "metavar": "FOLDER"}] = "icy-text",
    no_cache: bool = False,
    max_requests: Annotated[int | None, {"minimum": 1}] = None,
    price_prompt: Price = 0.0,
    price_answer: Price = 0.0,
    chosen: Games,
    output: RowsOutput,
) -> None:
    """Evaluate text models as the listener of a speaker (MetaRG24). With --role speaker, they are the speaker.

    There is one row per model and game. A prompt holds the rules and all games of the episode so far. The column
    "query" is the accuracy in the query phase (ZSCT), in percent; "form" is the form of the prompts; "invalid" is how
    often an answer was not one of the choices and was replaced by 0; "cut" is how often --max-tokens cut an answer,
    if the model reports it. A score far below chance can come from inverted or from unreadable answers: "says yes" and
    "invalid" show which. Published rows of the same game are below the measured rows.

    Args:
        model: see `icy list text-models`; repeatable.
        role: role of the models.
        prompt: form of the prompts: icy's, or the structure that MetaRG24 prints, by default with its 10 symbols and
            messages of up to 5.
        dry_run: show prompts and count tokens without asking a model.
        max_tokens: maximum tokens of an answer.
        cache: folder for saved answers.
        no_cache: do not save answers.
        max_requests: maximum requests that each model gets, without saved answers.
        price_prompt: price of a million tokens that the model reads.
        price_answer: price of a million tokens that the model writes.

    Examples:
      icy s2b text --model http://localhost:8000/v1#llama --shots 1,2 --samples 1,4 --dry-run
      icy s2b text --model http://localhost:8000/v1#llama --shots 1,2 --samples 1,4 --concurrency 64
      icy s2b text --model https://api.openai.com/v1#gpt-4o-mini --key-variable OPENAI_API_KEY --price-prompt 0.15
      icy s2b text --model scripted-yes --episodes 8 --seeds 2
      icy s2b text --model http://localhost:8000/v1#llama --prompt metarg24
      icy s2b text --model http://localhost:8000/v1#llama --role speaker --listener nearest

    A model is named by URL#MODEL, for any OpenAI-compatible server; by transformers#FOLDER, for a model on this
    machine; or by the name of a plug-in. The owner of the server can read the prompts. Answers are saved in --cache:
    after an interruption, run the same command again to continue.
    """
    partners = {SPEAKER: speaker, LISTENER: listener}
    if partners[role] is not None:
        raise InvalidSettingError(f"The models are the {role} here; choose their partner by --{OTHER[role]}.")
    settings = TextSettings(**sampling, **asking)
    how: dict[str, Any] = {"role": role, "partner": partners[OTHER[role]], "prompt": prompt, "max_tokens": max_tokens}
    how |= {"episodes": episodes, "seeds": seeds, **settings_of(chosen)}
    if dry_run:
        for name in model:
            check_name(name)
        _draft(how, len(model), price_prompt, output)
        return
    kept: dict[str, Any] = {"cache": None if no_cache else cache, "text_settings": settings, "finished": output.show}
    kept["max_requests"] = max_requests
    evaluate_text_models(model, prices=(price_prompt, price_answer), **kept, **how)


def _draft(how: dict[str, Any], models: int, price: float, output: RowsOutput) -> None:
    """Print a prompt of each phase, and how many tokens all prompts have."""
    draft = draft_requests(**how)
    if output.format_ in ("table", "markdown", "latex"):
        for phase, prompt in draft.prompts.items():
            click.echo(f"--- a prompt of the {phase}\n{prompt}\n")
    print_records(draft.rows, output.format_)
    if not output.quiet:
        requests, total = (sum(row[name] for row in draft.rows) for name in ("requests", "prompt tokens"))
        each = "" if models == 1 else f" for each of {counted(models, 'model')}"
        note(f"Tokens are {HOW}. {requests:,} requests, {total:,} tokens to read{each}. No model was asked.")
        if cost := cost_of_reading(total, price, each):
            note(cost)
