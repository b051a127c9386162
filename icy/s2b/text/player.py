"""Text models as players: a step of all episodes becomes a batch of requests. Their evaluation."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from jaxtyping import Int64

from icy.core.checks import seed_list, whole_number
from icy.core.errors import IncompatibleError, require_known
from icy.core.registry import LISTENER, PLAYERS, SPEAKER
from icy.core.surroundings import standard_state
from icy.s2b.channel import END, regular
from icy.s2b.episode_streams import Reals, Wholes
from icy.s2b.evaluation import Evaluation, batches, episode_seeds, evaluate
from icy.s2b.game import SUCCESS, Seen
from icy.s2b.options import GameOptions
from icy.s2b.players.interface import Action, Meanings, Player, Seat, Sentences, Stimuli
from icy.s2b.settings import GameSettings
from icy.s2b.transcript import PHASES, tokens
from icy.text.cache import keeping
from icy.text.interface import CUT, estimated_tokens
from icy.text.models import replies_of

from .prompt import (
    ANSWERED,
    FORMS,
    HEARD,
    PRINTED,
    PRINTED_GAME,
    RIGHT,
    SAID,
    WRONG,
    Script,
    choices_of,
    question,
    rules,
)  # fmt: skip
from .scripted import YesModel
from .text_model import (
    Choices,
    TextModel,
    TextReply,
    TextRequest,
    TextSettings,
    text_model,
    valid_decision,
    valid_message,
)  # fmt: skip

if TYPE_CHECKING:
    import pandas as pd


# -- text models as players: a step of all episodes becomes a batch of requests ----------------------------------------


COUNTED = (
    "requests", "asked", "invalid", "letters", "estimated_tokens", "told", "prompt_tokens", "answer_tokens", "cached",
    "cached_prompt_tokens", "cached_answer_tokens", "ended", "cut",
)  # fmt: skip
FALLBACK = 0  # the decision in place of an invalid one; the empty message replaces an invalid one
LEAST_SHARE = 0.6  # of the expected tokens of a prompt; a server that reads fewer cuts prompts
MOST_TOKENS = 1.6  # tokens per estimated token, for tokenizers with a token per digit
log = logging.getLogger(__name__)
AskedCallback = Callable[[TextRequest], None]  # called with every request
RepliedCallback = Callable[[int], None]  # called with the number of new replies


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts per episode of a batch, each [B].

    Fields: `requests` to the model; answers `asked` for, where a decision and a message count as one each, and the
    `invalid` ones of them; `letters` and `estimated_tokens` of the prompts; `told`, the requests for which the model
    reports tokens, and their `prompt_tokens` and `answer_tokens`; `cached` requests, and their tokens; answers that
    `ended` for a reason that the model reports, and answers that were `cut` at the largest number of tokens.

    Attributes:
        counts: the counts by field.
        finish_reasons: number of answers by finish reason.
    """

    counts: dict[str, Int64[Wholes, " batch"]] = field(default_factory=dict)
    finish_reasons: Counter[str] = field(default_factory=Counter)

    def note(self, request: TextRequest, reply: TextReply, tokens: int, valid: int, asked: int) -> None:
        """Count a request and its reply."""
        told, ended = reply.usage is not None, reply.finish is not None
        read, written = reply.usage or (0, 0)
        more = {
            "requests": 1, "letters": len(request.prompt), "estimated_tokens": tokens,
            "asked": asked, "invalid": asked - valid, "ended": ended, "cut": reply.finish == CUT,
            "told": told, "prompt_tokens": read, "answer_tokens": written, "cached": reply.cached,
            "cached_prompt_tokens": read * reply.cached, "cached_answer_tokens": written * reply.cached,
        }  # fmt: skip
        for name, count in more.items():
            self.counts[name][request.episode_id] += count
        if reply.finish is not None:
            self.finish_reasons[reply.finish] += 1


class TextPlayer(Player):
    """Base class of players that ask a text model.

    A request includes the whole episode so far, so the model needs no memory. All episodes send requests at once.
    Answers that are not among the choices are counted, and replaced: a decision by 0, a message by an empty message.

    Args:
        model: the model.
        max_tokens: largest number of tokens of an answer.
        asked: callback, called with every request.
        replied: callback, called with the number of new replies.
        prompt: format of the prompts, one of `icy.s2b.text.prompt.FORMS`.

    Raises:
        UnknownNameError: an unknown format of prompts.

    Attributes:
        tallies: counts of each batch of episodes so far.
    """

    role = ""

    def __init__(
        self,
        model: TextModel,
        max_tokens: int = 1024,
        asked: AskedCallback | None = None,
        replied: RepliedCallback | None = None,
        prompt: str = "icy",
    ) -> None:
        require_known("form of prompts", prompt, FORMS)
        self.prompt = prompt
        self.model, self.privileged = model, model.privileged
        self.max_tokens = whole_number("max_tokens", max_tokens)
        self.asked, self.replied = asked, replied
        self.tallies: list[Tally] = []
        self._most_tokens = 1.0  # largest number of tokens of a prompt so far, relative to the estimate

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes; see Player."""
        super().begin(seat)
        self.scripts = [Script(seat.settings, self.role, self.prompt) for _ in range(seat.episodes)]
        self.waiting = np.zeros(seat.episodes, dtype=bool)  # whether the outcome of a game is not known yet
        self.tallies.append(Tally({name: np.zeros(seat.episodes, dtype=np.int64) for name in COUNTED}))
        self._asides: dict[tuple[bool, bool], tuple[Choices, int]] = {}
        self.model.begin(seat)

    def acting(self, seen: Seen) -> Action:
        """Record the observations, request the necessary answers, and record the answers."""
        settings = self.seat.settings
        decisions: Wholes = np.zeros(self.seat.episodes, dtype=np.int64)
        messages: Wholes = np.full((self.seat.episodes, settings.length), END, dtype=np.int64)
        seeds = self.seat.streams.integers("text", 2**31, (1,), self.steps)[:, 0].tolist()
        all_questions = self.prompt == PRINTED  # are asked at every step
        requests = []
        for row in np.flatnonzero(~seen.over).tolist():
            self._take_down(seen, row)
            decides, speaks = (all_questions or one for one in (bool(seen.may_decide[row]), self._speaks(seen, row)))
            if decides or speaks:
                requests.append(self._request(seen, row, decides, speaks, seeds[row]))
        for request, reply in self._replies(requests):
            self._take(request, reply, seen, decisions, messages)
        return Action(messages if self._may_send else None, decisions if self.role == LISTENER else None)

    def _replies(self, requests: Sequence[TextRequest]) -> Iterator[tuple[TextRequest, TextReply]]:
        """Yield each request with its reply, as replies arrive. Errors as for `replies_of`."""
        for request, reply in replies_of(self.model, requests, TextReply):
            yield request, reply
            if self.replied is not None:
                self.replied(1)

    @property
    def _may_send(self) -> bool:
        return self.role == SPEAKER or self.seat.settings.listener_messages

    def _speaks(self, seen: Seen, row: int) -> bool:
        """Return whether to request a message. After the decision nobody would hear it, so it is not requested."""
        rounds = self.seat.settings.rounds
        latest = rounds if self.role == LISTENER else rounds - 1
        return self._may_send and bool(seen.may_speak[row]) and int(seen.round[row]) <= latest

    def _take_down(self, seen: Seen, row: int) -> None:
        """Add an observation to the script of an episode."""
        script, settings, round_ = self.scripts[row], self.seat.settings, int(seen.round[row])
        if seen.fresh[row]:
            script.clear()
            self.waiting[row] = False
        if self.waiting[row]:
            script.add(RIGHT if int(seen.result[row]) == SUCCESS else WRONG)
            self.waiting[row] = False
        here = self.role == LISTENER
        if round_ == 0:
            script.begin_game(bool(seen.query[row]), seen.stimulus[row])
        elif round_ > settings.rounds and here:
            script.partner_saw(seen.stimulus[row][: settings.speaker_slots])
        elif script.printed:
            script.sees(seen.stimulus[row])
        first = 0 if script.printed and here else 1  # the round from which messages are shown
        if first <= round_ <= settings.rounds and (here or settings.listener_messages):
            script.add(HEARD + tokens(seen.message[row]))
        if round_ == settings.rounds:
            self.waiting[row] = True

    def _request(self, seen: Seen, row: int, decides: bool, speaks: bool, seed: int) -> TextRequest:
        script = self.scripts[row]
        choices, _ = self._aside(decides, speaks)
        phase = PHASES[int(seen.query[row])]
        request = TextRequest(
            script.prompt(choices), choices, self.role, row, phase, script.game, int(seen.round[row]),
            max_tokens=self.max_tokens, seed=seed,
        )  # fmt: skip
        if self.asked is not None:
            self.asked(request)
        return request

    def _aside(self, decides: bool, speaks: bool) -> tuple[Choices, int]:
        """Return the choices of a request, and the estimated number of tokens of its rules and questions."""
        if (decides, speaks) not in self._asides:
            settings = self.seat.settings
            choices = choices_of(settings, self.role, decides, speaks)
            text = rules(settings, self.role, self.prompt) + question(settings, self.role, choices)
            self._asides[decides, speaks] = choices, estimated_tokens(text)
        return self._asides[decides, speaks]

    def _take(self, request: TextRequest, reply: TextReply, seen: Seen, decisions: Wholes, messages: Wholes) -> None:
        """Check a reply, and use its valid parts, and fallbacks for the others."""
        row, script = request.episode_id, self.scripts[request.episode_id]
        decides, speaks = bool(seen.may_decide[row]), self._speaks(seen, row)
        estimate, valid = script.tokens + self._aside(decides, speaks)[1], 0
        if decides:
            good = valid_decision(request, reply.decision)
            decisions[row] = reply.decision if good and reply.decision is not None else FALLBACK
            valid += good
            script.add(f"{ANSWERED}{decisions[row]}")
        self._watch_prompts(reply, estimate)
        if speaks:
            good = valid_message(request, reply.message)
            valid += good
            messages[row] = self._message(reply.message if good else [])
            script.add(SAID + tokens(messages[row]))
        self.tallies[-1].note(request, reply, estimate, valid, asked=decides + speaks)

    def _message(self, tokens: Sequence[int] | None) -> Wholes:
        """Return the message of some tokens, padded to the length of messages."""
        padded: Wholes = np.full((1, self.seat.settings.length), END, dtype=np.int64)
        padded[0, : len(tokens or [])] = tokens or []
        return np.asarray(regular(padded)[0])

    def _watch_prompts(self, reply: TextReply, estimate: int) -> None:
        """Warn, once per model, if a server reads far fewer tokens than a prompt has."""
        if reply.usage is None or not reply.usage.prompt_tokens or self.model.cuts_prompts:
            return
        ratio = reply.usage.prompt_tokens / estimate
        self._most_tokens = min(MOST_TOKENS, max(self._most_tokens, ratio))
        if ratio < LEAST_SHARE * self._most_tokens:
            self.model.cuts_prompts = True
            log.warning(
                "%s counts %d tokens in a prompt for which icy estimates %d, so it may cut long prompts: give it a "
                "longer context (for Ollama, num_ctx). --dry-run prints the longest prompt.",
                self.model.name,
                reply.usage.prompt_tokens,
                estimate,
            )


class TextListener(TextPlayer):
    """A text model as the listener of S2B's games."""

    role = LISTENER


class TextSpeaker(TextPlayer):
    """A text model as the speaker of S2B's games."""

    role = SPEAKER

    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Request a message about each stimulus, as at the first step of a new query game; see Player.

        Raises:
            IncompatibleError: a game has several rounds, and a request asks for one message.
        """
        settings = self.seat.settings
        if settings.rounds > 1:
            raise IncompatibleError("The language of a text model can only be probed in games of one round.")
        streams = self.seat.streams.rows(np.array([episode])).within("utter")
        seeds = streams.integers("text", 2**31, (len(stimuli),))[0].tolist()
        choices, _ = self._aside(self.prompt == PRINTED, True)
        requests = []
        for stimulus, seed in zip(stimuli, seeds, strict=True):
            script = self.scripts[episode].copy()
            script.begin_game(True, stimulus[None])
            place = PHASES[1], script.game, 0
            asked = script.prompt(choices), choices, self.role, episode, *place
            requests.append(TextRequest(*asked, max_tokens=self.max_tokens, seed=seed))
        said: Wholes = np.full((len(stimuli), settings.length), END, dtype=np.int64)
        places = {id(request): place for place, request in enumerate(requests)}
        for request, reply in self._replies(requests):
            if valid_message(request, reply.message):
                said[places[id(request)]] = self._message(reply.message)
        return said


# -- evaluate text models as listeners or speakers, and draft prompts without a model ----------------------------------


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
