"""Observations of networks, in particular the previous action at the end of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import UnknownNameError
from icy.s2b import BatchedGame, GameSettings
from icy.s2b.agents.networks.observations import NEVER, Actions, Observation, observe
from tests.s2b.helpers import stacked

# -- actions as numbers: legal options, and their messages and decisions in the game -----------------------------------


GAME = GameSettings(most=2)  # 2 decisions, and 1 + 3 + 9 + 27 sentences of three tokens


def test_numbers_of_options_match_the_authors_program() -> None:
    wide, long = GameSettings(), GameSettings(length=4)
    assert (Actions(wide, "both").width, Actions(long, "both").width) == (519, 3111)
    assert Actions(GameSettings(most=3), "both").width == 171
    assert [Actions.of_role(wide, role).width for role in ("listener", "speaker")] == [3, 260]
    assert Actions.of_role(GameSettings(listener_messages=True), "listener").form == "both"


def test_an_unknown_form_raises_an_error() -> None:
    with pytest.raises(UnknownNameError, match="did you mean sentence"):
        Actions(GAME, "sentences")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["decision", "sentence", "both"])
@pytest.mark.parametrize("role", ["speaker", "listener"])
@pytest.mark.parametrize("game", [{}, {"masks": "near32"}, {"listener_messages": True, "rounds": 2}])
def test_legal_options_are_exactly_those_that_the_game_accepts(form: Any, role: str, game: Any) -> None:
    settings = GameSettings(most=2, **game)
    actions = Actions(settings, form)
    played = BatchedGame(settings, episodes=1)
    turn = played.reset(seed=1)
    for _ in range(settings.rounds + 3):
        seen = turn.seen_by(role)
        legal = actions.legal_where(*(torch.as_tensor(x) for x in (seen.may_speak, seen.may_decide)))[0]
        asked = {"decision": seen.may_decide, "both": seen.may_decide | seen.may_speak}.get(form, seen.may_speak)[0]
        assert bool(legal[-1]) is not bool(asked)
        for option in range(actions.width):
            message, decision = actions.taken(np.array([[option]]))
            wrong = message is not None and message.any() and not seen.may_speak[0]
            wrong |= decision is not None and decision.any() and not seen.may_decide[0]
            if legal[option]:
                assert not wrong
            elif option != actions.width - 1:
                assert wrong or not asked
        turn = played.step()


def test_choices_are_decoded_to_messages_and_decisions() -> None:
    numbers = np.array([[40 + 5], [3], [80]])  # the second decision with sentence 5; sentence 3; none
    message, decision = Actions(GAME, "both").taken(numbers)
    assert message is not None
    assert decision is not None
    assert message.tolist() == [[2, 1, 0], [3, 0, 0], [0, 0, 0]]
    assert decision.tolist() == [1, 0, 0]
    assert Actions(GAME, "decision").taken(np.array([[1], [2]]))[1].tolist() == [1, 0]  # type: ignore[union-attr]


def test_the_best_option_is_legal() -> None:
    actions = Actions(GAME)
    scores, legal = torch.tensor([[0.0, 3.0, 1.0]]), torch.tensor([[True, False, True]])
    assert actions.best(scores, legal).tolist() == [[2]]
    assert actions.one_hot(torch.tensor([[1], [NEVER]])).tolist() == [[0, 1, 0], [0, 0, 0]]


def played(game: BatchedGame, actions: Actions, steps: int) -> tuple[list[Observation], list[torch.Tensor], list[bool]]:
    """Play with a listener that takes random legal decisions."""
    generator = torch.Generator().manual_seed(0)
    turn, previous, earned = game.reset(seed=3), None, None
    seen, chosen, over = [], [], []
    for _ in range(steps):
        now = observe(turn.listener, "listener", actions, previous, earned)
        previous = torch.multinomial(now.legal.float(), 1, generator=generator)
        _, decision = actions.taken(previous.numpy())
        seen.append(now)
        chosen.append(previous)
        over.append(bool(turn.listener.over[0]))
        turn = game.step(decided=decision)
        earned = turn.reward
    return seen, chosen, over


def test_the_previous_action_is_from_the_same_episode() -> None:
    settings = GameSettings(most=2)
    seen, chosen, over = played(BatchedGame(settings, autoreset=True), Actions(settings), 60)
    fresh = [bool(one.fresh[0]) for one in seen]
    assert sum(fresh) >= 2
    for t in range(1, 60):
        if fresh[t]:  # the previous choice came after the end of an episode and was ignored
            assert over[t - 1]
            assert seen[t].previous.tolist() == [[NEVER]]
            assert seen[t].earned.tolist() == [0.0]
        else:
            assert torch.equal(seen[t].previous, chosen[t - 1])
            assert over[t - 1] is False
        if over[t]:  # the feedback comes with the last decision
            assert int(seen[t].previous) in (0, 1)
            assert seen[t].earned.tolist() == seen[t].reward.tolist()
            assert seen[t].legal[0].tolist() == [False, False, True]
    assert seen[0].previous.tolist() == [[NEVER]]


def test_actions_of_an_ended_episode_are_not_observed_in_the_next() -> None:
    settings = GameSettings(most=2)
    actions = Actions(settings)
    game = BatchedGame(settings, episodes=2, autoreset=True)
    turn = game.reset(seed=3)
    while not turn.done.any():
        turn = game.step()
    assert turn.done.tolist() == [True, False] or turn.done.tolist() == [False, True]
    turn = game.step()
    (now, earned) = turn.listener, np.array([1.0, 1.0])
    told = observe(now, "listener", actions, torch.tensor([[1], [1]]), earned, torch.ones(2, 3))
    ended = int(now.fresh.argmax())
    assert told.previous[ended].tolist() == [NEVER]
    assert told.previous[1 - ended].tolist() == [1]
    assert told.extra.sum(1).tolist() == told.earned.mul(3).tolist()
    assert float(told.earned[ended]) == 0.0


def test_a_speaker_with_a_partial_view_sees_zeros_in_other_slots() -> None:
    settings = GameSettings(distractors=2, view="partial")
    game = BatchedGame(settings, episodes=4)
    turn = game.reset(seed=1)
    actions = Actions.of_role(settings, "speaker")
    told = observe(turn.speaker, "speaker", actions)
    assert told.stimulus.shape == (4, 9)
    assert torch.equal(told.stimulus[:, :3], torch.from_numpy(turn.speaker.stimulus[:, 0]).float())
    assert not told.stimulus[:, 3:].any()
    assert told.speaks.all()
    assert observe(turn.listener, "listener", Actions(settings)).stimulus.shape == (4, 9)


def test_observations_can_be_stacked_and_indexed() -> None:
    settings = GameSettings(most=2)
    seen, _, _ = played(BatchedGame(settings, episodes=3), Actions(settings), 5)
    together = stacked(seen)
    assert together.stimulus.shape == (5, 3, 3)
    assert torch.equal(together[2].message, seen[2].message)
    assert together[:, 1:].legal.shape == (5, 2, 3)
    assert together.on("cpu").round[:, 0].tolist() == [0, 1, 2, 0, 1]


def test_a_held_message_is_repeated_at_the_feedback() -> None:
    settings = GameSettings(most=2)
    actions, game = Actions(settings), BatchedGame(settings, episodes=2)
    turn, held = game.reset(seed=3), torch.zeros(2, 3, dtype=torch.long)
    said = np.array([[1, 2, 0], [2, 2, 2]])
    messages = []
    for _ in range(4):
        now = observe(turn.listener, "listener", actions, last_message=held)
        assert torch.equal(observe(turn.listener, "listener", actions).message, torch.as_tensor(turn.listener.message))
        held = now.message
        messages.append(held.tolist())
        turn = game.step(said=said * turn.speaker.may_speak[:, None])
    heard = game.heard_as[np.arange(2)[:, None], said].tolist()
    silence = [[0, 0, 0]] * 2
    assert messages == [silence, heard, heard, silence]  # rounds 0 and 1, feedback, and round 0 of the next game


def test_a_message_at_the_feedback_replaces_the_held_message() -> None:
    settings = GameSettings(most=2, masks="near32")
    actions, game = Actions(settings), BatchedGame(settings, episodes=1)
    game.reset(seed=3)
    game.step(said=np.array([[1, 1, 1]]))
    turn = game.step(said=np.array([[2, 2, 0]]))
    now = observe(turn.listener, "listener", actions, last_message=torch.tensor([[1, 1, 1]]))
    assert turn.listener.feedback.all()
    assert now.message.tolist() == turn.listener.message.tolist() != [[0, 0, 0]]
