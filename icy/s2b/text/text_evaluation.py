"""Evaluate text models as listeners or speakers, and draft prompts without a model."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from jaxtyping import Int64

from icy.core.checks import seed_list
from icy.core.errors import require_known
from icy.core.registry import LISTENER, PLAYERS, SPEAKER
from icy.core.surroundings import standard_state
from icy.s2b.episode_streams import Reals, Wholes
from icy.s2b.evaluation import Evaluation, batches, episode_seeds, evaluate
from icy.s2b.options import GameOptions
from icy.s2b.players.interface import Player, Seat
from icy.s2b.settings import GameSettings

from .cache import keeping
from .player import COUNTED, RepliedCallback, TextListener, TextSpeaker
from .prompt import PRINTED, PRINTED_GAME
from .requests import TextReply, TextRequest
from .scripted import YesModel
from .text_model import TextModel, TextSettings, text_model

if TYPE_CHECKING:
    import pandas as pd

DRAFT_GAME = {"support": 2, "query": 1}  # numbers of the games in a draft: in each phase, the first game with a history


@dataclass(frozen=True, eq=False, repr=False)
class TextEvaluation(Evaluation):
    """Scores of a text model as the listener or the speaker, with counts of requests and answers.

    Attributes:
        counts: counts per episode, seed by seed; see `icy.s2b.text.player.Tally`.
        finish_reasons: number of answers by finish reason ("stop", "length", ...), if the model reports it.
        prompt: format of the prompts, see `evaluate_text`.
    """

    counts: Mapping[str, Int64[Wholes, " episode"]]
    finish_reasons: Mapping[str, int] = field(default_factory=dict)
    prompt: str = "icy"

    def table(self) -> "pd.DataFrame":
        """Return a row per seed, with the columns of `Evaluation.table` and

        - `invalid`, the share of answers that were not among the choices;
        - `cut`, the share of answers cut at the largest number of tokens (NaN if the model does not report it);
        - `letters` and `estimated_tokens`, mean numbers of characters and estimated tokens per prompt;
        - `prompt_tokens` and `answer_tokens`, mean numbers per request, as the model counts them (or NaN);
        - `requests`, the number of requests, and `cached`, the number of those answered from disk;
        - `form`, the format of the prompts.
        """
        rows = super().table()
        total = {name: self.counts[name].reshape(len(self.seeds), self.episodes).sum(1) for name in COUNTED}
        rows["invalid"] = _share(total["invalid"], total["asked"])
        rows["cut"] = _share(total["cut"], total["ended"])
        for name in ("letters", "estimated_tokens"):
            rows[name] = _share(total[name], total["requests"])
        for name in ("prompt_tokens", "answer_tokens"):
            rows[name] = _share(total[name], total["told"])
        return rows.assign(requests=total["requests"], cached=total["cached"], form=self.prompt)

    def cost(self, prompt: float, answer: float) -> tuple[float, float]:
        """Return the cost of all tokens, and the cost without the answers from disk.

        Args:
            prompt: price of a million prompt tokens.
            answer: price of a million answer tokens.
        """
        read, written, read_before, written_before = (
            int(self.counts[name].sum())
            for name in ("prompt_tokens", "answer_tokens", "cached_prompt_tokens", "cached_answer_tokens")
        )
        before = (read_before * prompt + written_before * answer) / 1e6
        whole = (read * prompt + written * answer) / 1e6
        return whole, whole - before


def _share(part: Wholes, whole: Wholes) -> Reals:
    return part / np.where(whole > 0, whole, np.nan)


@standard_state()
def evaluate_text(
    model: str | TextModel,
    settings: GameSettings | None = None,
    *,
    role: str = LISTENER,
    speaker: str | Player = "posdis",
    listener: str | Player = "binding",
    prompt: str = "icy",
    episodes: int = 64,
    seeds: int | str | Iterable[int] = 5,
    text_settings: TextSettings | None = None,
    max_tokens: int = 1024,
    cache: str | Path | None = None,
    progress: RepliedCallback | None = None,
    **given: Unpack[GameOptions],
) -> TextEvaluation:
    """Evaluate a text model as the listener (MetaRG24) or as the speaker, like other players in `icy.s2b.evaluate`.

    Args:
        model: a `TextModel`, or its name; see `icy.s2b.text_model`.
        settings: settings of the game; or give them by name.
        role: "listener" or "speaker", the role of the text model.
        speaker: name of a registered speaker, or a `Player`, for a text model that listens.
        listener: name of a registered listener, or a `Player`, for a text model that speaks.
        prompt: format of the prompts: "icy"; or "metarg24", the structure in the paper, with 10 symbols (vocab_size=9)
            and messages of up to 5 (length=5), unless `settings` or these settings are given.
        episodes: number of episodes per seed; all episodes send their requests at once.
        seeds: number of seeds, starting at 123, or the seeds.
        text_settings: settings of sampling and of requests to a server, for a model given by name.
        max_tokens: largest number of tokens of an answer.
        cache: folder for answers; None: not saved. With saved answers, a repeated call resumes after an interruption.
        progress: callback, called with the number of new replies.
        **given: settings by name, see GameSettings.

    Returns:
        The scores of every episode, as for `icy.s2b.evaluate`, with counts of requests and of answers by finish reason.

    Raises:
        IcyError: unknown names, settings that are not accepted, or a server failure.

    Example:
        >>> from icy.s2b import evaluate_text
        >>> evaluate_text("scripted-yes", episodes=8, seeds=2).table()["yes"].tolist()
        [1.0, 1.0]
    """
    made = keeping(text_model(model, text_settings) if isinstance(model, str) else model, cache)
    require_known("role", role, PLAYERS)
    text = (TextListener if role == LISTENER else TextSpeaker)(made, max_tokens, replied=progress, prompt=prompt)
    game = GameSettings.of(settings, **(game_of_prompt(prompt, given) if settings is None else given))
    players: tuple[str | Player, str | Player] = (speaker, text) if role == LISTENER else (text, listener)
    found = evaluate(*players, game, episodes=episodes, seeds=seeds)
    counts = {name: np.concatenate([tally.counts[name] for tally in text.tallies]) for name in COUNTED}
    whole = {f.name: getattr(found, f.name) for f in fields(Evaluation)} | {role: made.name}
    reasons = sum((tally.finish_reasons for tally in text.tallies), Counter[str]())
    return TextEvaluation(**whole, counts=counts, finish_reasons=reasons, prompt=prompt)


def game_of_prompt(prompt: str, given: Mapping[str, object]) -> dict[str, Any]:
    """Return settings of the game by name, with MetaRG24's defaults for prompts in the format "metarg24"."""
    return {**(PRINTED_GAME if prompt == PRINTED else {}), **given}


def count_requests(
    settings: GameSettings,
    episodes: int,
    seeds: int | str | Iterable[int],
    role: str = LISTENER,
    prompt: str = "icy",
) -> int:
    """Count the requests of an evaluation; see `evaluate_text`."""
    todo = np.concatenate([episode_seeds(seed, episodes) for seed in seed_list(seeds)])
    games, rounds = 0, settings.rounds
    for game, batch in batches(settings, todo):
        game.reset(seeds=batch)
        games += int(game.games.sum())
    if prompt == PRINTED:  # every step of an episode except the last, after which nothing is played
        return games * (rounds + 1 + settings.feedback) - settings.feedback * len(todo)
    if role == SPEAKER:
        return games * rounds
    early = settings.listener_messages and settings.masks == "paper"  # messages that are requested before the decision
    return games * (1 + early * rounds)


class DraftModel(YesModel):
    """Text model that always answers 0 with empty messages, and stores one prompt of each phase.

    Attributes:
        prompts: a prompt from the first episode, by phase.
        longest: the longest prompt.
    """

    name = "draft"

    def __init__(self) -> None:
        self.prompts: dict[str, str] = {}
        self.longest = ""
        self._stores_prompts = True

    def begin(self, seat: Seat) -> None:
        """Store prompts of the first batch only."""
        self._stores_prompts = not self.prompts

    def reply(self, request: TextRequest) -> TextReply:
        """Store the prompt if it is part of the draft, and answer 0."""
        self.longest = max(self.longest, request.prompt, key=len)
        if self._stores_prompts and request.episode_id == 0 and request.game <= DRAFT_GAME[request.phase]:
            self.prompts[request.phase] = request.prompt
        return super().reply(request)
