"""Text models as players of S2B, in one or several games."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.checks import seed_list
from icy.core.errors import require_known
from icy.core.progress import progress
from icy.core.registry import LISTENER, PLAYERS, SPEAKER, registry
from icy.core.surroundings import standard_state
from icy.core.text import words
from icy.core.types import Fields
from icy.s2b.settings import GameSettings
from icy.s2b.text.player import DraftModel, TextEvaluation, count_requests, evaluate_text, game_of_prompt
from icy.s2b.text.text_model import TextModel, TextSettings, text_model
from icy.text.cache import keeping
from icy.text.interface import CUT, estimated_tokens

from .measuring import Finished, Measurement
from .players import LABELS, SWEPT, as_published, chance_text, floors, games_of

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.tables.printed_table import BiasTable

PARTNERS = {SPEAKER: "posdis", LISTENER: "binding"}  # of text models, by default
OTHER = {SPEAKER: LISTENER, LISTENER: SPEAKER}
ENDS = ("stop", CUT)  # finish reasons; the others are shown by their names
FORM_OF_PAPER = "printed"  # in published rows
HOW = "estimated: one token per word, per group of up to three digits, and per sign"


@dataclass(frozen=True)
class TextGames:
    """Games of text models with a partner.

    Attributes:
        role: role of the models.
        partner: name of the player in the other role.
        games: the games.
        options: further arguments of `icy.s2b.evaluate_text`.
    """

    role: str
    partner: str
    games: Sequence[GameSettings]
    options: dict[str, Any]

    @classmethod
    def of(cls, role: str, partner: str | None, game: Fields, *, seeds: Any, prompt: str, **options: Any) -> TextGames:
        """Check a role, a partner and settings of the game, which may have several values."""
        require_known("role", role, PLAYERS)
        found = registry.get(partner or PARTNERS[OTHER[role]], OTHER[role]).name
        games = games_of(game_of_prompt(prompt, game))
        return cls(role, found, games, {"seeds": seed_list(seeds), "prompt": prompt, **options})

    def evaluate(self, model: TextModel, game: GameSettings) -> TextEvaluation:
        """Evaluate a model in a game."""
        asked = {name: self.options[name] for name in ("episodes", "seeds", "prompt")}
        total, done = count_requests(game, role=self.role, **asked), 0
        with progress("requests") as report:

            def count(more: int) -> None:
                nonlocal done
                done += more
                report(done, total)

            partner: dict[str, Any] = {OTHER[self.role]: self.partner}
            return evaluate_text(model, game, role=self.role, progress=count, **partner, **self.options)


@dataclass(eq=False, repr=False)
class TextModelScores(Measurement):
    """Scores of text models in games with a partner; `parts` has the model and the game of each row.

    Attributes:
        setup: role, partner and games.
        resume: end of the sentence after an interruption.
        prices: prices of a million tokens that a model reads, and that it writes.
        evaluations: the evaluation of each measured part.
    """

    parts: Sequence[tuple[TextModel, GameSettings]]
    setup: TextGames
    resume: str = ""
    prices: tuple[float, float] = (0.0, 0.0)
    evaluations: list[TextEvaluation] = field(default_factory=list, init=False)

    def measure_part(self, part: tuple[TextModel, GameSettings]) -> pd.DataFrame:
        """Return a row per seed."""
        from icy.analysis.tables.s2b import with_deaf

        model, game = part
        found, setup = self.setup.evaluate(model, game), self.setup
        self.evaluations.append(found)
        episodes, seeds = setup.options["episodes"], tuple(setup.options["seeds"])
        settings = {name: getattr(game, name) for name in SWEPT}
        rows = found.table().assign(model=model.name, **settings, decisions=game.decisions, episodes=episodes)
        roles = {"role": setup.role, OTHER[setup.role]: setup.partner}
        return with_deaf(rows, floors(game, episodes=episodes, seeds=seeds)).assign(**roles)

    def bias_table(self, spread: str = "sd") -> BiasTable:
        """Return a table with a row per model and game, with the published rows of the same games below."""
        from icy.analysis.tables.s2b import HEADINGS, evaluation_table, published_text_models

        rows = self.rows
        rows["prompt"] = rows["prompt_tokens"].fillna(rows["estimated_tokens"])
        speaks, same = self.setup.role == SPEAKER, self.setup.partner == "posdis"
        there = [] if speaks or not same else published_text_models(as_published(self.setup.games), FORM_OF_PAPER)
        notes = [chance_text(rows), *self._notes(bool(rows["prompt_tokens"].notna().all()))]
        if there:
            notes.append(
                "MetaRG24: published, ± standard deviation over 5 seeds of 64 episodes; it prints no other columns"
            )
        shares = {**HEADINGS, "invalid": "invalid"} | ({"cut": "cut"} if rows["cut"].notna().any() else {})
        labels = {"model": "model"} | ({LISTENER: LISTENER} if speaks else {}) | LABELS
        means = {"prompt": "prompt", "letters": "letters"}
        return evaluation_table(rows, {**labels, "form": "form"}, spread, notes, shares, means, there)

    def _notes(self, known: bool) -> Iterator[str]:
        """Yield sentences on tokens, costs and failures; `known` is whether all models count their tokens."""
        found = self.evaluations
        total = {name: sum(int(one.counts[name].sum()) for one in found) for name in found[0].counts}
        yield f"prompt: tokens of a request, {'as the model counts' if known else HOW}; letters: its length"
        spent = f"{total['requests']:,} requests, {total['cached']:,} of them answered before"
        read, written = total["prompt_tokens"], total["answer_tokens"]
        yield spent + (f"; {read:,} tokens read and {written:,} written, as the model counts" if known else "")
        if any(self.prices) and known:
            whole, now = (sum(costs) for costs in zip(*(one.cost(*self.prices) for one in found), strict=True))
            yield f"cost: {whole:.4f} for all tokens, {now:.4f} of it in this run"
        reasons = sum((Counter(one.finish_reasons) for one in found), Counter[str]())
        names = {CUT: "cut by --max-tokens"} if CUT in reasons else {}
        names |= {name: name for name, _ in reasons.most_common(6) if name not in ENDS}
        if shares := [f"{said}: {100 * reasons[name] / total['ended']:.3g} %" for name, said in names.items()]:
            yield f"answers {', '.join(shares)}"
        if retried := sum(model.retried for model in dict.fromkeys(model for model, _ in self.parts)):
            yield f"failed tries that were repeated: {retried}"


@standard_state()
def evaluate_text_models(
    model: str | TextModel | Iterable[str | TextModel],
    *,
    role: str = LISTENER,
    partner: str | None = None,
    prompt: str = "icy",
    episodes: int = 64,
    seeds: int | str | Iterable[int] = 5,
    max_tokens: int = 1024,
    text_settings: TextSettings | None = None,
    cache: str | Path | None = None,
    max_requests: int | None = None,
    prices: tuple[float, float] = (0.0, 0.0),
    finished: Finished | None = None,
    **game: Any,
) -> TextModelScores:
    """Evaluate text models as listeners or speakers of S2B, in one or several games (MetaRG24).

    `icy.s2b.evaluate_text` evaluates one model in one game.

    Args:
        model: names of models, see `icy.s2b.text_model`; or text models.
        role: "listener" or "speaker", the role of the models.
        partner: registered player in the other role; by default the speaker posdis or the listener binding.
        prompt: format of the prompts, "icy" or "metarg24".
        episodes: number of episodes per seed.
        seeds: number of seeds, from 123, or the seeds.
        max_tokens: largest number of tokens of an answer.
        text_settings: settings of sampling and of requests, for models given by name.
        cache: folder for answers; None: not saved. With saved answers, the same call resumes after an interruption.
        max_requests: largest number of requests that each model gets, without saved answers; None for any number.
        prices: prices of a million tokens that a model reads, and that it writes, for the notes of the table.
        finished: callback, called with the rows at the end, also after an interruption or an error.
        **game: settings of the game, see icy.s2b.GameSettings; shots, samples and distractors may have several values.

    Returns:
        The scores. `rows` has a row per model, game and seed, with the columns of `icy.s2b.evaluate_text(...).table()`
        and of `icy.s2b.never_listening`; `table()` has a row per model and game, in percent.

    Raises:
        IcyError: unknown names, settings that are not accepted, or a server failure.

    Example:
        >>> import icy
        >>> icy.evaluate_text_models("scripted-yes", shots=[1, 2], episodes=4, seeds=1).rows["yes"].tolist()
        [1.0, 1.0]
    """
    setup = TextGames.of(role, partner, game, prompt=prompt, episodes=episodes, seeds=seeds, max_tokens=max_tokens)
    given = [model] if isinstance(model, TextModel) else words(model) if isinstance(model, str) else list(model)
    made = [text_model(one, text_settings) if isinstance(one, str) else one for one in given]
    models = [keeping(one, cache, max_requests) for one in made]
    resume = "" if cache is None else f"; run the same command again to continue from the answers in {cache}"
    return TextModelScores(list(product(models, setup.games)), setup, resume, prices).measure(finished)


@dataclass(frozen=True)
class RequestDraft:
    """The requests of an evaluation of text models, without the answers of a model.

    Attributes:
        prompts: a prompt of the first game, by phase.
        rows: for each game its shots S, samples O and distractors K, and the numbers of episodes, requests and tokens.
    """

    prompts: Mapping[str, str]
    rows: Sequence[Mapping[str, int]]


@standard_state()
def draft_requests(
    *,
    role: str = LISTENER,
    partner: str | None = None,
    prompt: str = "icy",
    episodes: int = 64,
    seeds: int | str | Iterable[int] = 5,
    max_tokens: int = 1024,
    **game: Any,
) -> RequestDraft:
    """Count the requests and tokens of `evaluate_text_models` for one model, without asking a model.

    Args:
        role: as for `evaluate_text_models`, like the other arguments.
        partner: registered player in the other role.
        prompt: format of the prompts.
        episodes: number of episodes per seed.
        seeds: number of seeds, from 123, or the seeds.
        max_tokens: largest number of tokens of an answer.
        **game: settings of the game.

    Returns:
        Prompts, and the numbers of requests and of estimated tokens per game.

    Raises:
        IcyError: unknown names, or settings that are not accepted.

    Example:
        >>> import icy
        >>> icy.draft_requests(episodes=2, seeds=1).rows[0]["requests"]
        48
    """
    setup = TextGames.of(role, partner, game, prompt=prompt, episodes=episodes, seeds=seeds, max_tokens=max_tokens)
    prompts: dict[str, str] = {}
    rows = []
    for one in setup.games:
        draft = DraftModel()
        counts = setup.evaluate(draft, one).counts
        asked, tokens = int(counts["requests"].sum()), int(counts["estimated_tokens"].sum())
        prompts = prompts or draft.prompts
        sizes = {heading: getattr(one, name) for name, heading in LABELS.items()}
        counted = {"episodes": episodes * len(setup.options["seeds"]), "requests": asked, "prompt tokens": tokens}
        longest = {"on average": round(tokens / asked), "longest prompt": estimated_tokens(draft.longest)}
        rows.append({**sizes, **counted, **longest})
    return RequestDraft(prompts, rows)
