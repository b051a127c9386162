"""Checks of text models of S2B. The first line of each docstring is the claim that the check tests."""

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

from .cases import NotApplicable, check_made_by_name, first_line, named, require, same_random_state

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
        """Create the model.

        Raises:
            NotApplicable: the model needs more than its name, for example a server.
        """
        try:
            return made_of(self.entry, "", TextSettings())
        except InvalidSettingError as refusal:
            raise NotApplicable(f"the model needs more than its name: {first_line(refusal)}") from refusal

    def reading(self) -> TextModel:
        """Create the model, if it only reads prompts.

        Raises:
            NotApplicable: the model gets the game.
        """
        made = self.make()
        if made.privileged:
            raise NotApplicable("the model is privileged: it gets the game")
        return made


def requests_of_a_game() -> list[TextRequest]:
    """Return the requests of one episode, for decisions and for messages."""
    found: list[TextRequest] = []
    evaluate("posdis", TextListener(DraftModel(), asked=found.append), SMALL, episodes=1, seeds=[SEED])
    return found


def answers(model: TextModel, requests: Sequence[TextRequest]) -> list[TextReply]:
    """Return the reply to each request; fail unless each request has a reply."""
    found = list(model.answer(requests))
    places = sorted(place for place, _ in found)
    require(
        places == list(range(len(requests))),
        f"{len(requests)} requests are answered at places {places}; yield each place once.",
    )
    wrong = {type(reply).__name__ for _, reply in found if not isinstance(reply, TextReply)}
    require(not wrong, f"The model returns {', '.join(sorted(wrong))}; return an icy.s2b.TextReply.")
    return [reply for _, reply in sorted(found, key=lambda one: one[0])]


def check_answers_every_request(case: TextModelCase) -> str:
    """Every request of a batch gets one TextReply, with the answer's text and its parsed parts."""
    requests = requests_of_a_game()
    replies = answers(case.reading(), requests)
    for reply in replies:
        require(isinstance(reply.raw, str), f"`raw` must be the text of the answer, not a {type(reply.raw).__name__}.")
        require(
            reply.decision is None or type(reply.decision) is int,
            f"A decision must be a whole number or None, not {reply.decision!r}.",
        )
        require(
            reply.message is None or (isinstance(reply.message, list) and all(type(t) is int for t in reply.message)),
            f"A message must be a list of whole numbers or None, not {reply.message!r}.",
        )
        require(
            reply.finish is None or isinstance(reply.finish, str),
            f"`finish` must be a text such as 'stop' or 'length', or None, not {reply.finish!r}.",
        )
    return f"{sum(map(_valid, requests, replies))} of {len(requests)} answers are valid"


def _valid(request: TextRequest, reply: TextReply) -> bool:
    decides = "decision" not in request.choices or valid_decision(request, reply.decision)
    return decides and ("message" not in request.choices or valid_message(request, reply.message))


def check_keeps_nothing(case: TextModelCase) -> None:
    """A request gets the same answer alone, in a batch, and after others: answers can be cached."""
    requests = requests_of_a_game()
    model = case.reading()
    together = answers(model, requests)
    if answers(case.make(), requests) != together:
        raise NotApplicable("two models with the same settings answer differently, so answers cannot be compared")
    for place in (0, len(requests) // 2, len(requests) - 1):
        (alone,) = answers(case.make(), [requests[place]])
        (after,) = answers(model, [requests[place]])
        require(alone == together[place], f"Request {place} is answered differently alone and in a batch.")
        require(after == together[place], f"Request {place} is answered differently after others.")


def check_identity(case: TextModelCase) -> None:
    """`identity` is JSON, and equal for two models with the same settings."""
    found = [json.dumps(case.make().identity(), sort_keys=True) for _ in range(2)]
    require(found[0] == found[1], f"`identity` is first {found[0]} and then {found[1]}.")


def check_random_state_untouched(case: TextModelCase) -> None:
    """Answering does not change the global random state of torch, NumPy and Python."""
    model, requests = case.reading(), requests_of_a_game()
    with same_random_state("The model"):
        answers(model, requests)


def check_plays(case: TextModelCase) -> str:
    """As a listener, the model plays episodes to the end."""
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
