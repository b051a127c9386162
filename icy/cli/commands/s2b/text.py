"""`icy s2b text`: evaluate text models as listeners or speakers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import click

from icy.cli.exit_codes import Interrupted
from icy.cli.options import OutFile, Quiet, TableFormat, command, fields_of, plugin_option, together
from icy.cli.output import checked_rows_file, joined, note, print_rows, print_table, write_rows
from icy.core.checks import seed_list
from icy.core.errors import InvalidSettingError
from icy.core.registry import LISTENER, PLAYERS, SPEAKER, registry
from icy.core.text import counted
from icy.s2b.settings import GameSettings
from icy.s2b.text.prompt import FORMS
from icy.s2b.text.text_model import TextModel, TextSettings, check_name, text_model
from icy.text.interface import CUT

from .players import (
    PARTNERS,
    SWEPT,
    Episodes,
    Games,
    RegisteredListener,
    RegisteredSpeaker,
    Seeds,
    SpreadOfEpisodes,
    as_published,
    chance_text,
    floors,
    games_of,
    progress,
    settings_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from icy.s2b.text.player import TextEvaluation

OF = fields_of(TextSettings)
OTHER = {SPEAKER: LISTENER, LISTENER: SPEAKER}
ENDS = ("stop", CUT)  # finish reasons; the others are shown by their names
GAME_LABELS = {"shots": "S", "samples": "O", "distractors": "K", "form": "form"}
FORM_OF_PAPER = "printed"  # in published rows
DRAFT = ["S", "O", "K", "episodes", "requests", "prompt tokens", "on average", "longest prompt"]
HOW = "estimated: one token per word, per group of up to three digits, and per sign"
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
    out: OutFile = None,
    dry_run: bool = False,
    sampling: Annotated[dict[str, Any], SAMPLING],
    max_tokens: int = 1024,
    asking: Annotated[dict[str, Any], together(*(OF[name].option() for name in ASKING))],
    cache: Annotated[str, {"type": click.Path(), "metavar": "FOLDER"}] = "icy-text",
    no_cache: bool = False,
    price_prompt: Price = 0.0,
    price_answer: Price = 0.0,
    chosen: Games,
    format_: TableFormat = "table",
    spread: SpreadOfEpisodes = "sd",
    quiet: Quiet = False,
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
        price_prompt: price of a million tokens that the model reads.
        price_answer: price of a million tokens that the model writes.
        out: write a row per seed, as csv or parquet.

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
    from icy.s2b.text.cache import keeping
    from icy.s2b.text.player import game_of_prompt

    target = checked_rows_file(out)
    seed_numbers = seed_list(seeds)
    settings = TextSettings(**sampling, **asking)
    partners = {SPEAKER: speaker, LISTENER: listener}
    if partners[role] is not None:
        raise InvalidSettingError(f"The models are the {role} here; choose their partner by --{OTHER[role]}.")
    partner = registry.get(partners[OTHER[role]] or PARTNERS[OTHER[role]], OTHER[role]).name
    games = games_of(game_of_prompt(prompt, settings_of(chosen)))
    options = {"prompt": prompt, "episodes": episodes, "seeds": seed_numbers, "max_tokens": max_tokens}
    run = _Run(role, partner, options, games, (price_prompt, price_answer))
    if dry_run:
        for name in model:
            check_name(name)
        _draft(run, len(model), format_, quiet)
        return
    run.models = [keeping(text_model(name, settings), None if no_cache else cache) for name in model]
    try:
        run.all(quiet)
    except KeyboardInterrupt:
        done = f"{len(run.rows)} of {counted(len(model) * len(games), 'row')} measured"
        kept = "." if no_cache else f"; run the same command again to continue from the answers in {cache}."
        raise Interrupted(done + kept) from None
    finally:  # also after an error, which a plug-in's model may raise
        if run.rows:
            _print(run, spread, format_)
            write_rows(joined(run.rows), target, quiet)


@dataclass
class _Run:
    """The rows measured so far, and their costs; `options` are those of `evaluate_text`."""

    role: str
    partner: str
    options: dict[str, Any]
    games: Sequence[GameSettings]
    prices: tuple[float, float]
    models: Sequence[TextModel] = ()
    rows: list[pd.DataFrame] = field(default_factory=list)
    found: list[TextEvaluation] = field(default_factory=list)

    def all(self, quiet: bool) -> None:
        """Evaluate every model in every game."""
        from icy.analysis.tables.s2b import with_deaf
        from icy.s2b.text.player import count_requests

        episodes, seeds, prompt = (self.options[name] for name in ("episodes", "seeds", "prompt"))
        each = (count_requests(game, episodes, seeds, self.role, prompt) for game in self.games)
        with progress(len(self.models) * sum(each), quiet) as advance:
            for model, game in product(self.models, self.games):
                found = self.evaluated(model, game, advance)
                facts = {"model": model.name, **{name: getattr(game, name) for name in SWEPT}}
                rows = found.table().assign(**facts, decisions=game.decisions, episodes=episodes)
                self.found.append(found)
                with_floor = with_deaf(rows, floors(game, episodes, tuple(seeds)))
                self.rows.append(with_floor.assign(role=self.role, **{OTHER[self.role]: self.partner}))

    def evaluated(
        self, model: TextModel, game: GameSettings, advance: Callable[[int], None] | None = None
    ) -> TextEvaluation:
        """Evaluate a model in a game."""
        from icy.s2b import evaluate_text

        partner: dict[str, Any] = {OTHER[self.role]: self.partner}
        return evaluate_text(model, game, role=self.role, progress=advance, **partner, **self.options)

    def notes(self) -> list[str]:
        """Return sentences on tokens, costs and failures."""
        known = all(rows["prompt_tokens"].notna().all() for rows in self.rows)
        total = {name: sum(int(one.counts[name].sum()) for one in self.found) for name in self.found[0].counts}
        spent = f"{total['requests']:,} requests, {total['cached']:,} of them answered before"
        if known:
            spent += (
                f"; {total['prompt_tokens']:,} tokens read and {total['answer_tokens']:,} written, as the model counts"
            )
        notes = [f"prompt: tokens of a request, {'as the model counts' if known else HOW}; letters: its length", spent]
        if any(self.prices) and known:
            whole, now = (sum(costs) for costs in zip(*(one.cost(*self.prices) for one in self.found), strict=True))
            notes.append(f"cost: {whole:.4f} for all tokens, {now:.4f} of it in this run")
        reasons = sum((Counter(one.finish_reasons) for one in self.found), Counter[str]())
        names = ({CUT: "cut by --max-tokens"} if CUT in reasons else {}) | {
            name: name for name, _ in reasons.most_common(6) if name not in ENDS
        }
        if shares := [f"{said}: {100 * reasons[name] / total['ended']:.3g} %" for name, said in names.items()]:
            notes.append(f"answers {', '.join(shares)}")
        if retried := sum(model.retried for model in self.models):
            notes.append(f"failed tries that were repeated: {retried}")
        return notes


def _print(run: _Run, spread: str, format_: str) -> None:
    """Print the table, with the published rows of the same games below."""
    from icy.analysis.tables.s2b import HEADINGS, evaluation_table, published_text_models

    rows = joined(run.rows)
    rows["prompt"] = rows["prompt_tokens"].fillna(rows["estimated_tokens"])
    same = run.role == LISTENER and run.partner == "posdis"
    there = published_text_models(as_published(run.games), FORM_OF_PAPER) if same else []
    notes = [chance_text(rows), *run.notes()]
    if there:
        notes.append(
            "MetaRG24: published, ± standard deviation over 5 seeds of 64 episodes; it prints no other columns"
        )
    means = {"prompt": "prompt", "letters": "letters"}
    shares = {**HEADINGS, "invalid": "invalid"} | ({"cut": "cut"} if rows["cut"].notna().any() else {})
    labels = {"model": "model"} | ({LISTENER: LISTENER} if run.role == SPEAKER else {}) | GAME_LABELS
    print_table(evaluation_table(rows, labels, spread, notes, shares, means, there), format_)


def _draft(run: _Run, models: int, format_: str, quiet: bool) -> None:
    """Print a prompt of each phase, and how many tokens all prompts have."""
    from icy.s2b.text.player import DraftModel
    from icy.s2b.text.prompt import estimated_tokens

    lines: list[list[int]] = []
    with progress(len(run.games), quiet) as advance:
        for game in run.games:
            draft = DraftModel()
            counts = run.evaluated(draft, game).counts
            asked, tokens = int(counts["requests"].sum()), int(counts["estimated_tokens"].sum())
            episodes = run.options["episodes"] * len(run.options["seeds"])
            longest = estimated_tokens(draft.longest)
            sizes = [getattr(game, name) for name in SWEPT]
            if not lines and format_ in ("table", "markdown", "latex"):
                for phase, prompt in draft.prompts.items():
                    click.echo(f"--- a prompt of the {phase}\n{prompt}\n")
            lines.append([*sizes, episodes, asked, tokens, round(tokens / asked), longest])
            advance(1)
    print_rows(DRAFT, lines, format_)
    if not quiet:
        requests, total = (sum(line[DRAFT.index(name)] for line in lines) for name in ("requests", "prompt tokens"))
        each = "" if models == 1 else f" for each of {counted(models, 'model')}"
        note(f"Tokens are {HOW}. {requests:,} requests, {total:,} tokens to read{each}. No model was asked.")
        if run.prices[0]:
            note(f"Reading them costs about {total * run.prices[0] / 1e6:.2f}{each}, in addition to the answers.")
