"""The rules of a game: answers, cards, and states."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.study.game import (
    MOST_LETTERS,
    Bag,
    Event,
    GameState,
    StudyGame,
    StudyGameSettings,
    fault_of,
    instance_of,
    normalised,
)
from icy.study.game.game import card_order, designed_cards, draw

from .helpers import game_of, perfect, play_out

# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text"), [("redcir", "redcir"), (" RedCir\n", "redcir"), ("ｒｅｄ", "red"), ("RED", "red"), ("ﬁ", "fi")]
)
def test_answers_are_normalized(raw: str, text: str) -> None:
    assert normalised(raw) == text
    assert fault_of(raw) == ""


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("a" * (MOST_LETTERS + 1), "long"),
        ("rêd", "letters"),
        ("red1", "letters"),
        ("<b>", "letters"),
    ],
)
def test_invalid_answers_have_a_fault(raw: str, fault: str) -> None:
    assert fault_of(raw) == fault


@given(st.text(max_size=80))
def test_valid_answers_are_ascii_letters(raw: str) -> None:
    if not fault_of(raw):
        assert normalised(raw).isascii()
        assert normalised(raw).isalpha()
        assert normalised(normalised(raw)) == normalised(raw)


# -- cards -------------------------------------------------------------------------------------------------------------

TESTS = {29: 5, 39: 6, 49: 8}  # number of cards when a held-out item is asked, in the default schedule


@pytest.mark.parametrize("seeds", [range(500), pytest.param(range(10_000), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["synth", "eng"])
def test_every_held_out_value_is_in_two_cards_by_its_test(name: str, seeds: range) -> None:
    settings = StudyGameSettings(dataset=name)
    values, size = settings.content.values, settings.content.space.size
    for seed in seeds:
        instance = instance_of(settings, seed)
        order = card_order(settings, instance, seed)
        assert len(order) == size - 3
        assert {*order, *instance.held_out} == set(range(size))  # held-out items are not cards
        for held_out, cards in zip(instance.held_out, TESTS.values(), strict=True):
            available = order[: min(cards, settings.cap)]
            assert sum(m // values == held_out // values for m in available) >= 2
            assert sum(m % values == held_out % values for m in available) >= 2


def test_the_first_six_cards_are_as_designed() -> None:
    settings = StudyGameSettings(dataset="eng")
    instance = instance_of(settings, 3)
    (c0, s0), (c1, s1), (c2, s2) = (divmod(m, 5) for m in instance.held_out)
    pairs = [(c0, s1), (c1, s0), (c0, s2), (c2, s0), (c1, s2), (c2, s1)]
    assert designed_cards(settings, instance, seed=1) == tuple(5 * c + s for c, s in pairs)


def test_persons_of_an_instance_get_other_cards_after_the_first_six() -> None:
    settings = StudyGameSettings(dataset="eng")
    instance = instance_of(settings, 0)
    orders = {card_order(settings, instance, seed) for seed in range(20)}
    assert len({order[:6] for order in orders}) == 1
    assert len({order[6:] for order in orders}) == 20


def test_fewer_held_out_items_are_joined_with_other_values() -> None:
    settings = StudyGameSettings(dataset="eng", held_out_at=(20,))
    instance = instance_of(settings, 0)
    colour, shape = divmod(instance.held_out[0], 5)
    first = designed_cards(settings, instance, seed=0)
    assert len(set(first)) == 6
    assert sum(m // 5 == colour for m in first[:4]) == sum(m % 5 == shape for m in first[:4]) == 2


def test_published_cards_come_colour_by_colour() -> None:
    assert game_of("published").order == tuple(range(9))


@given(st.integers(2, 8), st.integers(0, 1000))
def test_bags_show_every_card_before_any_again_and_none_twice_in_a_row(cards: int, seed: int) -> None:
    bag, last, shown = Bag(), None, []
    for _ in range(4 * cards):
        last, bag = draw(bag, list(range(10, 10 + cards)), last, seed, "test")
        shown.append(last)
    for start in range(0, len(shown), cards):
        assert set(shown[start : start + cards]) == set(range(10, 10 + cards))
    assert all(a != b for a, b in pairwise(shown))


def test_a_new_card_begins_a_new_bag() -> None:
    card, bag = draw(Bag(), [0, 1, 2], None, 0, "test")
    assert (bag.number, bag.cards, len(bag.left)) == (1, 3, 2)
    _, bag = draw(bag, [0, 1, 2, 3], card, 0, "test")
    assert (bag.number, bag.cards, len(bag.left)) == (2, 4, 3)


def test_published_items_are_drawn_with_replacement() -> None:
    games, repeats, expected = 20, 0, 0.0
    for seed in range(games):
        trials = play_out(game_of("published", seed=seed)).trials
        repeats += sum(a.meaning == b.meaning for a, b in pairwise(trials))
        expected += sum(1 / trial.cards for trial in trials[1:] if trial.held_out is None)
    assert abs(repeats - expected) < 4 * expected**0.5


def test_train_shows_all_cards_before_any_again() -> None:
    game = game_of(dataset="eng", start=7)
    state = game.apply(game.new(), Event("start"))
    shown = []
    for _ in range(21):
        state = game.apply(state, Event("train_view"))
        assert state.train is not None
        shown.append(state.train.meaning)
    assert Counter(shown) == dict.fromkeys(game.order[:7], 3)


# -- rules -------------------------------------------------------------------------------------------------------------

# -- schedules and scores (spycodes-facts 5, 6 and 19) -----------------------------------------------------------------


@pytest.mark.parametrize(("preset", "sizes"), [
    ("published", [2] * 7 + [3] * 8 + [4] * 8 + [5] * 8 + [6] * 8 + [7] * 8 + [8] * 3),
    ("clean", [2] * 8 + [3] * 8 + [4] * 8 + [5] * 8 + [6] * 8 + [7] * 8 + [8] * 2),
])  # fmt: skip
@pytest.mark.parametrize(("dataset", "cap"), [("synth", 6), ("eng", 22)])
def test_cards_by_example(preset: str, sizes: list[int], dataset: str, cap: int) -> None:
    trials = play_out(game_of(preset, dataset=dataset)).trials
    assert [trial.cards for trial in trials] == [min(cap, n) for n in sizes]
    assert [trial.example for trial in trials if trial.held_out is not None] == [29, 39, 49]


@pytest.mark.parametrize(
    ("preset", "dataset", "adds", "score"),
    [
        ("published", "eng", True, 1030),
        ("published", "synth", True, 246),
        ("published", "eng", False, 188),
        ("published", "synth", False, 174),
        ("clean", "eng", True, 1030),
        ("clean", "synth", True, 246),
        ("clean", "eng", False, 182),
        ("clean", "synth", False, 170),
    ],
)
def test_score_of_a_perfect_player(preset: str, dataset: str, adds: bool, score: int) -> None:
    game = game_of(preset, dataset=dataset)
    start = game.apply(game.new(), Event("start"))  # the first item has the two cards of the start
    assert play_out(game, adds=adds, start=start).score == score
    assert not adds or score == game.settings.most_points


@pytest.mark.parametrize(
    ("dataset", "adds", "mean", "sd"),
    [("eng", False, 34.8, 10.5), ("synth", False, 34.6, 10.0), ("synth", True, 38.8, 12.6), ("eng", True, 44.8, 29.8)],
)
def test_score_of_a_constant_answer(dataset: str, adds: bool, mean: float, sd: float) -> None:
    """The score over the 47 ordinary items is within three standard errors of spycodes-facts 6."""
    games, scores = 30, []
    for seed in range(games):
        game = game_of("published", seed=seed, dataset=dataset)
        first = game.codes[0]
        trials = play_out(game, lambda trial, code=first: code, adds).trials  # type: ignore[misc]
        scores.append(sum(trial.points for trial in trials if trial.held_out is None))
    assert abs(statistics.mean(scores) - mean) < 3 * sd / games**0.5


HELD_OUT = [  # spycodes-facts 5, row by row: cards, item, other cards of its colour, of its shape
    ("synth", False, [(5, "green square", 2, 1), (6, "blue triangle", 0, 2), (6, "blue square", 0, 2)]),
    ("eng", False, [(5, "green circle", 0, 1), (7, "green pentagon", 2, 1), (8, "blue circle", 0, 2)]),
    ("eng", True, [(22, "magenta square", 2, 4), (22, "magenta pentagon", 2, 4), (22, "magenta hexagon", 2, 4)]),
    ("synth", True, [(6, "blue circle", 0, 2), (6, "blue triangle", 0, 2), (6, "blue square", 0, 2)]),
]


@pytest.mark.parametrize(("dataset", "adds", "rows"), HELD_OUT)
def test_published_held_out_items(dataset: str, adds: bool, rows: list[tuple[int, str, int, int]]) -> None:
    game = game_of("published", dataset=dataset)
    held_out = [trial for trial in play_out(game, adds=adds).trials if trial.held_out is not None]
    named = game.settings.content.named
    assert [(t.cards, " ".join(named(t.meaning)), *t.among_cards) for t in held_out] == rows


def test_feedback_on_an_earlier_held_out_item_may_show_the_colour() -> None:
    """Only the feedback on the item before showed the colour of synth's last item (spycodes-facts 5)."""
    last = play_out(game_of("published"), lambda trial: "zzzz").trials[49]
    assert last.among_cards == (0, 2)
    assert last.shown[0] == 1
    assert play_out(game_of("published", held_out_feedback="verdict"), lambda t: "zzzz").trials[49].shown[0] == 0


def test_published_held_out_items_depend_on_the_players_cards() -> None:
    game = game_of("published", dataset="eng")
    state = game.apply(game.new(), Event("start"))
    state = game.apply(state, Event("add"))
    trials = play_out(game, start=state).trials
    assert [(t.cards, t.meaning) for t in trials if t.held_out is not None] == [(5, 5), (7, 8), (8, 10)]
    state = game.apply(game.new(), Event("start"))
    for _ in range(6):  # more cards than the schedule reaches, so the schedule adds none
        state = game.apply(state, Event("add"))
    assert [(t.cards, t.meaning) for t in play_out(game, start=state).trials if t.held_out is not None] == [
        (8, 8),
        (8, 9),
        (8, 10),
    ]


def test_the_schedule_adds_one_card_at_a_time() -> None:
    game = game_of("published", dataset="eng")
    state = game.apply(game.new(), Event("start"))
    while state.trial.example < 30:
        state = game.apply(game.apply(state, Event("answer", "x")), Event("next"))
    for _ in range(3):
        state = game.apply(state, Event("remove"))
    assert state.cards == 2
    state = game.apply(game.apply(state, Event("answer", "x")), Event("next"))  # at example 31 the schedule has 6 cards
    assert (state.trial.example, state.trial.cards) == (31, 3)


# -- events that change the state --------------------------------------------------------------------------------------


def started(**settings: Any) -> tuple[StudyGame, GameState]:
    game = game_of(**settings)
    return game, game.apply(game.new(), Event("start"))


def test_an_item_keeps_its_points_when_cards_change() -> None:
    game, state = started(dataset="eng")
    more = game.apply(game.apply(state, Event("add")), Event("add"))
    assert (more.cards, game.shown(more).points) == (4, 1)
    done = game.apply(game.apply(more, Event("answer", more.trial.code)), Event("next"))
    assert (done.score, done.trial.cards, game.shown(done).points) == (1, 4, 3)


def test_the_first_answer_counts() -> None:
    game, state = started()
    wrong = game.apply(state, Event("answer", "zzzz", at=0))
    assert game.apply(wrong, Event("answer", state.trial.code, at=0)) is wrong
    assert game.shown(wrong).to_json()["feedback"] == {
        "correct": False,
        "points": 0,
        "code": state.trial.code,
        "answer": "zzzz",
    }


def test_events_of_an_older_page_change_nothing() -> None:
    game, state = started(dataset="eng")
    state = game.apply(game.apply(state, Event("answer", "x", at=0)), Event("next", at=0))
    for event in (Event("answer", "x", at=0), Event("next", at=0), Event("start"), Event("finish"), Event("next")):
        assert game.apply(state, event) is state
    added = game.apply(state, Event("add", at=2))
    assert game.apply(added, Event("add", at=2)) is added  # a double click
    viewed = game.apply(added, Event("train_view", at=0))
    assert game.apply(viewed, Event("train_view", at=0)) is viewed


def test_answers_are_compared_as_they_are_normalised() -> None:
    game, state = started(dataset="eng")
    graded = game.apply(state, Event("answer", f"  {state.trial.code.upper()} "))
    assert graded.trial.correct
    assert (graded.trial.raw, graded.trial.text) == (f"  {state.trial.code.upper()} ", state.trial.code)


def test_cards_stay_within_their_limits() -> None:
    game, state = started()
    assert game.apply(state, Event("remove")) is state
    for _ in range(10):
        state = game.apply(state, Event("add"))
    assert (state.cards, state.added, game.shown(state).may_add) == (6, 4, False)


def test_opening_train_draws_a_card_and_a_second_look_does_not() -> None:
    game, state = started()
    train = game.apply(state, Event("tab", "train"))
    assert (train.tab, train.views) == ("train", 1)
    assert game.apply(train, Event("tab", "train")) is train
    test = game.apply(train, Event("tab", "test"))
    assert (test.tab, test.views, game.apply(test, Event("tab", "train")).views) == ("test", 1, 2)
    assert game.apply(state, Event("tab", "codes")) is state


def test_a_held_out_item_leaks_nothing_into_train() -> None:
    game, state = started(dataset="synth")
    held_out = set(game.instance.held_out)
    while state.phase == "open":
        for _ in range(4):
            state = game.apply(state, Event("train_view"))
            assert state.train is not None
            assert state.train.meaning not in held_out
        assert (state.trial.meaning in held_out) == (state.trial.held_out is not None)
        state = game.apply(game.apply(state, Event("add")), Event("answer", "x"))
        state = game.apply(state, Event("next"))


@pytest.mark.parametrize(
    ("feedback", "right", "wrong"),
    [
        ("full", (True, True), (False, True)),
        ("verdict", (True, False), (False, False)),
        ("none", (None, False), (None, False)),
    ],
)
def test_feedback_on_held_out_items(
    feedback: str, right: tuple[bool | None, bool], wrong: tuple[bool | None, bool]
) -> None:
    for answer, (correct, tells) in ((perfect, right), (lambda t: "zzzz", wrong)):
        game = game_of(held_out_feedback=feedback)
        state = game.apply(game.new(), Event("start"))
        while state.trial.held_out is None:
            state = game.apply(game.apply(state, Event("answer", state.trial.code)), Event("next"))
        before = game.shown(state).score
        state = game.apply(state, Event("answer", answer(state.trial)))
        shown = game.shown(state).feedback
        assert shown is not None
        assert shown.correct is correct
        assert (shown.code is not None) == (tells and correct is False)
        assert (game.shown(state).score > before) == bool(correct)  # the score reveals no more than the feedback


def test_the_final_score_has_all_points() -> None:
    game = game_of(held_out_feedback="none")
    state = play_out(game)
    assert (game.shown(state).score, game.shown(state).phase) == (170, "closed")


def test_exposures_count_items_shown_with_their_code() -> None:
    game, state = started(dataset="eng")
    first = state.trial
    assert (first.shown, first.exposures, first.own_exposures) == ((0, 0), (0, 0), 0)
    assert not first.answerable()
    for _ in range(2):  # both cards
        state = game.apply(state, Event("train_view"))
    state = game.apply(game.apply(state, Event("answer", "x")), Event("next"))
    assert state.exposures[first.meaning] == 2  # once in Train, once in the feedback
    assert sum(state.exposures) == 3


def test_finish_closes_a_game_after_the_last_answer() -> None:
    game = game_of(examples=3, held_out_at=(2,))
    state = game.apply(game.new(), Event("start"))
    for _ in range(2):
        assert game.apply(state, Event("finish")) is state
        state = game.apply(game.apply(state, Event("answer", "x")), Event("next"))
    assert game.apply(state, Event("finish")) is state
    done = game.apply(game.apply(state, Event("answer", "x")), Event("finish"))
    assert (done.phase, len(done.trials)) == ("closed", 3)


# -- determinism and JSON ----------------------------------------------------------------------------------------------


def test_persons_draw_from_their_own_streams() -> None:
    one, same, other = (play_out(game_of(seed=seed)).trials for seed in (1, 1, 2))
    assert one == same
    assert {t.image for t in one}.isdisjoint(t.image for t in other)
    assert [t.meaning for t in one] != [t.meaning for t in other]


def test_looking_into_train_does_not_move_the_test_items() -> None:
    game, state = started(dataset="eng")
    looked = game.apply(game.apply(state, Event("train_view")), Event("train_view"))
    ours, theirs = (play_out(game, start=one).trials for one in (state, looked))
    assert [t.meaning for t in ours] == [t.meaning for t in theirs]


def test_unknown_events_and_states() -> None:
    with pytest.raises(UnknownNameError, match="did you mean answer"):
        Event("anser")  # type: ignore[arg-type]
    with pytest.raises(InvalidSettingError, match="not the state of a game"):
        GameState.of_json({"phase": "open"})
    with pytest.raises(InvalidSettingError, match="seed of a person"):
        StudyGame(StudyGameSettings(), instance_of(StudyGameSettings(), 0), -1)


def test_events_as_json() -> None:
    for event in (Event("start"), Event("answer", "abcd", at=0), Event("tab", "train"), Event("add", at=3)):
        assert Event.of_json({**event.to_json(), "time": "later"}) == event
    assert Event("start").to_json() == {"kind": "start"}


# -- random sequences of events ----------------------------------------------------------------------------------------


class AnyGame(RuleBasedStateMachine):
    """A player who does anything in any order, also of older pages."""

    @initialize(
        preset=st.sampled_from(["clean", "published"]),
        dataset=st.sampled_from(["synth", "eng"]),
        grammar=st.sampled_from(["concat", "perm", "rot"]),
        feedback=st.sampled_from(["full", "verdict", "none"]),
        seed=st.integers(0, 2**63 - 1),
    )
    def begin(self, preset: str, dataset: str, grammar: str, feedback: str, seed: int) -> None:
        short = {"examples": 8, "held_out_at": (3, 5, 7), "interval": 2}
        self.game = game_of(preset, seed, dataset=dataset, grammar=grammar, held_out_feedback=feedback, **short)
        self.state = self.game.new()
        self.events: list[Event] = []
        self.shown_score = 0

    def do(self, event: Event) -> None:
        before = self.state
        self.events.append(event)
        self.state = self.game.apply(before, event)
        assert self.state.score >= before.score
        if before.phase == "closed":
            assert self.state is before
        assert self.state.trials[: len(before.trials) - 1] == before.trials[:-1]  # graded items never change
        assert all(t.graded for t in self.state.trials[:-1])

    @rule(kind=st.sampled_from(["start", "next", "finish", "add", "remove", "train_view", "blur", "paste"]),
          at=st.none() | st.integers(0, 9))  # fmt: skip
    def press(self, kind: Any, at: int | None) -> None:
        self.do(Event(kind, at=at))

    @rule(tab=st.sampled_from(["test", "train"]))
    def open(self, tab: str) -> None:
        self.do(Event("tab", tab))

    @rule(text=st.text(max_size=70), at=st.none() | st.integers(0, 9))
    def type_anything(self, text: str, at: int | None) -> None:
        self.do(Event("answer", text, at))

    @precondition(lambda self: self.state.trials)
    @rule(right=st.booleans())
    def go_on(self, right: bool) -> None:
        example = self.state.trial.example
        self.do(Event("answer", self.state.trial.code if right else "zzz", example))
        self.do(Event("next", at=example))

    @invariant()
    def score_is_within_its_bound(self) -> None:
        assert 0 <= self.state.score <= self.game.settings.most_points
        assert 2 <= self.state.cards <= self.game.settings.cap

    @invariant()
    def nothing_is_revealed_before_it_is_graded(self) -> None:
        shown = self.game.shown(self.state).to_json()
        if not self.state.trials:
            return
        trial = self.state.trial
        visible = json.dumps({name: value for name, value in shown.items() if name != "card"})
        assert trial.graded or trial.code not in visible
        assert str(trial.image) not in json.dumps(shown)
        assert set(shown) == {"phase", "example", "examples", "score", "cards", "points", "may_add", "may_remove",
                              "tab", "feedback", "card", "last"}  # fmt: skip
        if self.state.train is not None:
            assert self.state.train.meaning not in self.game.instance.held_out

    @invariant()
    def held_out_items_stay_apart(self) -> None:
        for trial in self.state.trials:
            if self.game.instance.held_out:
                assert (trial.meaning in self.game.instance.held_out) == (trial.held_out is not None)
            assert trial.points == ((trial.cards - 1) if trial.correct else 0)
            assert trial.correct == (trial.text == trial.code)
            assert trial.raw is None or trial.text == normalised(trial.raw)

    @invariant()
    def it_survives_json_and_replay(self) -> None:
        read = GameState.of_json(json.loads(json.dumps(self.state.to_json())))
        assert read == self.state
        events = [Event.of_json(json.loads(json.dumps(event.to_json()))) for event in self.events]
        game = StudyGame.of_json(json.loads(json.dumps(self.game.to_json())))
        assert game.replay(events) == self.state


TestAnyGame = AnyGame.TestCase
TestAnyGame.settings = hypothesis_settings(max_examples=15, stateful_step_count=25, deadline=None)
