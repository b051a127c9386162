"""Checks of text models of S2B."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import msgspec

from icy.core.errors import InvalidSettingError
from icy.s2b.evaluation import evaluate
from icy.s2b.settings import GameSettings
from icy.s2b.text.player import DraftModel, TextListener
from icy.s2b.text.text_model import (
    TextModel,
    TextReply,
    TextRequest,
    TextSettings,
    made_of,
    valid_decision,
    valid_message,
)

from .cases import Case, CheckFailure, NotApplicable, first_line, require

SMALL = GameSettings(dimensions=2, least=2, most=2, listener_messages=True)
SEED = 3


@dataclass(frozen=True)
class TextModelCase(Case):
    """A text model under test."""

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

    def use(self) -> None:
        """Answer requests."""
        answers(self.reading(), requests_of_a_game())

    def check_answers_every_request(self) -> str:
        """Every request of a batch gets one TextReply, with the answer's text and its parsed parts."""
        requests = requests_of_a_game()
        replies = answers(self.reading(), requests)
        for reply in replies:
            try:
                msgspec.convert(asdict(reply), TextReply)
            except msgspec.ValidationError as error:
                raise CheckFailure(f"A TextReply has a value of the wrong type: {error}.") from error
        return f"{sum(map(_valid, requests, replies))} of {len(requests)} answers are valid"

    def check_keeps_nothing(self) -> None:
        """A request gets the same answer alone, in a batch, and after others: answers can be cached."""
        requests = requests_of_a_game()
        model = self.reading()
        together = answers(model, requests)
        if answers(self.make(), requests) != together:
            raise NotApplicable("two models with the same settings answer differently, so answers cannot be compared")
        for place in (0, len(requests) // 2, len(requests) - 1):
            (alone,) = answers(self.make(), [requests[place]])
            (after,) = answers(model, [requests[place]])
            require(alone == together[place], f"Request {place} is answered differently alone and in a batch.")
            require(after == together[place], f"Request {place} is answered differently after others.")

    def check_identity(self) -> None:
        """`identity` is JSON, and equal for two models with the same settings."""
        found = [json.dumps(self.make().identity(), sort_keys=True) for _ in range(2)]
        require(found[0] == found[1], f"`identity` is first {found[0]} and then {found[1]}.")

    def check_plays(self) -> str:
        """As a listener, the model plays episodes to the end."""
        listener = TextListener(self.make())
        found = evaluate("posdis", listener, SMALL, episodes=2, seeds=[SEED])
        require(not found.scores.illegal[:, 1].any(), "Some actions are illegal.")
        counts = listener.tallies[0].counts
        return f"{counts['invalid'].sum()} of {counts['asked'].sum()} answers are invalid"


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


def _valid(request: TextRequest, reply: TextReply) -> bool:
    decides = "decision" not in request.choices or valid_decision(request, reply.decision)
    return decides and ("message" not in request.choices or valid_message(request, reply.message))
