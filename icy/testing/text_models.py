"""Checks of text models of S2B. The first line of each check says what it proves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from icy.core.errors import InvalidSettingError
from icy.core.registry import Entry
from icy.s2b.evaluation import evaluate
from icy.s2b.settings import GameSettings
from icy.s2b.text.player import TextListener
from icy.s2b.text.requests import TextReply, TextRequest, valid_decision, valid_message
from icy.s2b.text.text_evaluation import DraftModel
from icy.s2b.text.text_model import TextModel, TextSettings, made_of

from .cases import NotApplicable, first_line, named, require, require_registered, same_random_state

SMALL = GameSettings(dimensions=2, least=2, most=2, listener_messages=True)
SEED = 3


@dataclass(frozen=True)
class TextModelCase:
    """A text model under test.

    Attributes:
        entry: the model's registry entry.
        registered: whether the registry knows the model.
    """

    entry: Entry
    registered: bool = True

    def make(self) -> TextModel:
        """Make the model.

        Raises:
            NotApplicable: it must be told more than its name, such as a server.
        """
        try:
            return made_of(self.entry, "", TextSettings())
        except InvalidSettingError as refusal:
            raise NotApplicable(f"the model needs more than its name: {first_line(refusal)}") from refusal

    def reading(self) -> TextModel:
        """Make the model, if it reads prompts alone.

        Raises:
            NotApplicable: it is given the game.
        """
        made = self.make()
        if made.privileged:
            raise NotApplicable("the model is privileged: it is shown the game")
        return made


def requests_of_a_game() -> list[TextRequest]:
    """Return the requests of one episode, for decisions and for messages."""
    found: list[TextRequest] = []
    evaluate("posdis", TextListener(DraftModel(), asked=found.append), SMALL, episodes=1, seeds=[SEED])
    return found


def answers(model: TextModel, requests: Sequence[TextRequest]) -> list[TextReply]:
    """Return the reply to each request; fail unless there is one for each."""
    found = list(model.answer(requests))
    places = sorted(place for place, _ in found)
    require(
        places == list(range(len(requests))),
        f"{len(requests)} requests are answered at the places {places}; yield each place once.",
    )
    wrong = {type(reply).__name__ for _, reply in found if not isinstance(reply, TextReply)}
    require(not wrong, f"The model answers with {', '.join(sorted(wrong))}; answer with an icy.s2b.TextReply.")
    return [reply for _, reply in sorted(found, key=lambda one: one[0])]


def check_made_by_name(case: TextModelCase) -> None:
    """The registry knows the model by its name and its aliases, and its factory makes an icy.s2b.TextModel."""
    case.make()
    require_registered(case.entry, case.registered)


def check_answers_every_request(case: TextModelCase) -> str:
    """Every request of a batch gets one TextReply, with the text of the answer and what was read in it."""
    requests = requests_of_a_game()
    replies = answers(case.reading(), requests)
    for reply in replies:
        require(isinstance(reply.raw, str), f"`raw` is the text of the answer, not a {type(reply.raw).__name__}.")
        require(
            reply.decision is None or type(reply.decision) is int,
            f"A decision is a whole number, or None; not {reply.decision!r}.",
        )
        require(
            reply.message is None or (isinstance(reply.message, list) and all(type(t) is int for t in reply.message)),
            f"A message is a list of whole numbers, or None; not {reply.message!r}.",
        )
        require(
            reply.finish is None or isinstance(reply.finish, str),
            f"`finish` is a text such as 'stop' or 'length', or None; not {reply.finish!r}.",
        )
    return f"{sum(map(_valid, requests, replies))} of {len(requests)} answers are valid"


def _valid(request: TextRequest, reply: TextReply) -> bool:
    decides = "decision" not in request.choices or valid_decision(request, reply.decision)
    return decides and ("message" not in request.choices or valid_message(request, reply.message))


def check_keeps_nothing(case: TextModelCase) -> None:
    """A request is answered the same alone, in a batch, and after others: answers can be cached."""
    requests = requests_of_a_game()
    model = case.reading()
    together = answers(model, requests)
    if answers(case.make(), requests) != together:
        raise NotApplicable("two models of the same settings answer differently, so nothing can be compared")
    for place in (0, len(requests) // 2, len(requests) - 1):
        (alone,) = answers(case.make(), [requests[place]])
        (after,) = answers(model, [requests[place]])
        require(alone == together[place], f"Request {place} is answered differently alone and in a batch.")
        require(after == together[place], f"Request {place} is answered differently after others.")


def check_identity(case: TextModelCase) -> None:
    """What answers depend on is JSON, and the same for two models of the same settings."""
    found = [json.dumps(case.make().identity(), sort_keys=True) for _ in range(2)]
    require(found[0] == found[1], f"`identity` is {found[0]} once and {found[1]} the other time.")


def check_random_state_untouched(case: TextModelCase) -> None:
    """Answering leaves the global random state of torch, NumPy and Python as it was."""
    model, requests = case.reading(), requests_of_a_game()
    with same_random_state("The model"):
        answers(model, requests)


def check_plays(case: TextModelCase) -> str:
    """As a listener, the model plays episodes to their end."""
    listener = TextListener(case.make())
    found = evaluate("posdis", listener, SMALL, episodes=2, seeds=[SEED])
    require(not found.scores.illegal[:, 1].any(), "Some actions are illegal.")
    counts = listener.tallies[0].counts
    return f"{counts['invalid'].sum()} of {counts['asked'].sum()} answers are invalid"


TEXT_MODEL_CHECKS = named(
    check_made_by_name,
    check_answers_every_request,
    check_keeps_nothing,
    check_identity,
    check_random_state_untouched,
    check_plays,
)
