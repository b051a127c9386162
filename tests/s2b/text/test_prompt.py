"""Prompts and answers: what a prompt says, and what is read in an answer."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.registry import LISTENER, SPEAKER
from icy.s2b import (
    BatchedGame,
    GameSettings,
    TextListener,
    TextReply,
    TextRequest,
    TextSpeaker,
    evaluate,
    evaluate_text,
)
from icy.s2b.text.player import DraftModel, count_requests
from icy.s2b.text.prompt import (
    ANSWERED,
    HEARD,
    PRINTED_GAME,
    WRONG,
    Script,
    choices_of,
    rounded,
)
from icy.s2b.text.scripted import as_json
from icy.s2b.text.text_model import parse, valid_decision, valid_message
from icy.text.interface import estimated_tokens
from icy.text.models import FunctionModel
from tests.s2b.helpers import GAMES


def requests(role: str = LISTENER, episodes: int = 1, **settings: Any) -> list[TextRequest]:
    """The requests of an episode, all answered by 0."""
    found: list[TextRequest] = []
    if role == LISTENER:
        evaluate("posdis", TextListener(DraftModel(), asked=found.append), episodes=episodes, seeds=[7], **settings)
    else:
        evaluate(TextSpeaker(DraftModel(), asked=found.append), "random", episodes=episodes, seeds=[7], **settings)
    return found


# -- what a prompt says ------------------------------------------------------------------------------------------------


def test_a_whole_prompt() -> None:
    settings = GameSettings(vocab_size=6)
    script = Script(settings, LISTENER)
    script.begin_game(False, np.array([[-0.4839, 0.549, 0.5641]]))
    script.add(HEARD + "2 2 1")
    script.add(ANSWERED + "1")
    script.add(WRONG)
    script.partner_saw(np.array([[0.39, 0.549, 0.5641]]))
    script.begin_game(True, np.array([[0.39, -0.5812, -0.59]]))
    script.add(HEARD + "1 1 0")
    assert script.prompt(choices_of(settings, LISTENER, decides=True, speaks=False)) == (
        "You play a sequence of referential games with a partner, who cannot see what you see. "
        "You are the listener, and your partner is the speaker.\n"
        "- A stimulus is 3 numbers from -1 to 1, in brackets. It stands for a hidden meaning. "
        "The same meaning may be shown as different stimuli.\n"
        "- In each game the speaker sees 1 stimulus, and the listener sees 1 stimulus.\n"
        "- The speaker sends 1 message per game. A message has at most 3 symbols out of 7, 0 to 6. Symbol 0 ends a "
        "message: whatever follows it is ignored. What the other symbols mean has to be worked out; it stays the same "
        "in all games.\n"
        "- Your common goal is that the listener tells whether both of you see the same meaning.\n"
        "- At the end of a game you are told whether the answer was right, and shown what the speaker saw.\n"
        "- Phase 1 shows the atomic components of meanings. In phase 2 the numbers of games begin anew, and new "
        "stimuli combine the same components in new ways.\n"
        "\n"
        "The games so far, and the present one last:\n"
        "\n"
        "Phase 1, game 1\n"
        "You see: [-0.484 0.549 0.564]\n"
        "Message from your partner: 2 2 1\n"
        "Your answer: 1\n"
        "That was wrong.\n"
        "Your partner saw: [0.390 0.549 0.564]\n"
        "\n"
        "Phase 2, game 1\n"
        "You see: [0.390 -0.581 -0.590]\n"
        "Message from your partner: 1 1 0\n"
        "\n"
        "Answer as an expert at this game.\n"
        "Question 1: is your stimulus of the same hidden meaning as your partner's? 0 = Yes, 1 = No\n"
        'Answer with JSON alone: {"decision": D}'
    )


def test_a_whole_prompt_in_the_printed_form() -> None:
    """MetaRG24, appendix B: 10 symbols, messages of 5, a history by step, and both questions at every step."""
    found: list[TextRequest] = []
    model = FunctionModel(lambda request: TextReply(1, [3, 0, 9, 9, 9]), "some")
    listener = TextListener(model, asked=found.append, prompt="metarg24")
    evaluate("posdis", listener, seeds=[7], episodes=1, **PRINTED_GAME)
    prompt = found[4].prompt  # step 2 of game 2
    history = re.sub(r"-?\d\.\d{3}", "x", prompt.partition("the present one last:\n\n")[2])
    history = re.sub(r"partner: [1-9] [1-9] [1-9] 0 0", "partner: m", history)
    assert history == (
        "Phase 1, game 1\nStep 1\nYou see: [x x x]\nMessage from your partner: 0 0 0 0 0\n"
        "Step 2\nYou see: [x x x]\nMessage from your partner: m\nYour answer: 1\nThat was right.\n"
        "Step 3\nYour partner saw: [x x x]\n"
        "\n"
        "Phase 1, game 2\nStep 1\nYou see: [x x x]\nMessage from your partner: 0 0 0 0 0\n"
        "Step 2\nYou see: [x x x]\nMessage from your partner: m\n"
        "\n"
        "Answer as an expert at this game.\n"
        "Question 1: is your stimulus of the same hidden meaning as your partner's? 0 = Yes, 1 = No\n"
        "Question 2: what is your message? 5 symbols, each from 0 to 9.\n"
        'Answer with JSON alone: {"decision": D, "message": [M, M, M, M, M]}'
    )


@pytest.mark.parametrize("role", [LISTENER, SPEAKER])
@pytest.mark.parametrize("masks", ["paper", "near32"])
def test_the_printed_form_asks_everything_at_every_step_and_takes_what_counts(masks: str, role: str) -> None:
    settings: dict[str, Any] = {"masks": masks, "most": 2}
    found: list[TextRequest] = []

    def reply(request: TextRequest) -> TextReply:
        found.append(request)
        return TextReply(1, [2, 0, 3, 3, 3]) if request.round == (role == LISTENER) else TextReply(77, [99])

    scores = evaluate_text(FunctionModel(reply, "some"), role=role, prompt="metarg24", episodes=2, seeds=1, **settings)
    assert {len(request.choices["message"]) for request in found} == {5}
    assert {len(request.choices["message"][0]) for request in found} == {10}
    assert {tuple(request.choices["decision"]) for request in found} == {("0", "1")}
    assert {request.round for request in found} == {0, 1, 2}
    assert (scores.table()["invalid"] == 0).all()  # wrong answers came only where none is needed
    assert len(found) == count_requests(scores.settings, 2, 1, role, "metarg24")
    assert scores.table()["form"].tolist() == ["metarg24"]
    assert (scores.settings.vocab_size, scores.settings.length) == (9, 5)
    if role == SPEAKER:
        assert "does your partner understand you? 0 = Yes, 1 = No" in found[-1].prompt
        assert "Step 1\nYou see: " in found[-1].prompt
        assert "Your message: 2 0 0 0 0\n" in found[-1].prompt  # read as 0 after the first 0
        assert "Your partner saw" not in found[-1].prompt


@pytest.mark.parametrize("role", [LISTENER, SPEAKER])
@pytest.mark.parametrize("name", GAMES)
def test_requests_are_counted_before_they_are_sent(name: str, role: str) -> None:
    settings = GameSettings.of(**GAMES[name])
    assert len(requests(role, **GAMES[name])) == count_requests(settings, 1, [7], role)


def test_the_whole_history_is_told_and_the_numbers_of_games_begin_anew() -> None:
    found = requests()
    game = BatchedGame()
    game.reset(seed=7_000_000)
    assert len(found) == int(game.games[0])
    for number, request in enumerate(found, 1):
        assert request.prompt.count("You see: ") == number
        assert request.prompt.count("Your answer: 0\nThat was ") == number - 1
        assert request.prompt.count("Your partner saw: ") == number - 1
    phases = [(request.phase, request.game) for request in found]
    support = sum(phase == "support" for phase, _ in phases)
    rest = len(phases) - support
    expected = [("support", n + 1) for n in range(support)] + [("query", n + 1) for n in range(rest)]
    assert phases == expected
    assert "Phase 2, game 1\n" in found[support].prompt
    assert "Phase 2, game 1\n" not in found[support - 1].prompt


def test_earlier_prompts_are_the_beginnings_of_later_ones() -> None:
    """So that a server may keep what it has read."""
    found = requests()
    for before, after in itertools.pairwise(found):
        common = before.prompt.partition("\n\nAnswer as an expert")[0]
        assert after.prompt.startswith(common)


@pytest.mark.parametrize("role", [LISTENER, SPEAKER])
@pytest.mark.parametrize("name", GAMES)
def test_requests_ask_for_legal_actions(name: str, role: str) -> None:
    settings = GameSettings.of(**GAMES[name])
    found = requests(role, **GAMES[name])
    decided = [request for request in found if role == LISTENER and "decision" in request.choices]
    assert {request.round for request in decided} == ({settings.rounds} if decided else set())
    messages = {request.round for request in found if "message" in request.choices}
    speaks = role == SPEAKER or settings.listener_messages
    assert messages == (set(range(settings.rounds)) if speaks else set())


def test_a_speaker_is_not_told_what_only_the_listener_sees() -> None:
    prompt = requests(SPEAKER)[-1].prompt
    assert "Your message: 0 0 0\nThat was " in prompt
    assert "Your partner saw" not in prompt
    assert "Message from your partner" not in prompt
    assert "Your answer" not in prompt


def test_a_partial_view_shows_the_target_alone() -> None:
    prompt = requests(distractors=2, view="partial")[1].prompt
    (shown,) = [line for line in prompt.splitlines() if line.startswith("Your partner saw")]
    assert shown.count("[") == 1
    assert "You see: 0: [" in prompt


def test_bits_are_shown_as_bits() -> None:
    prompt = requests(representation="ohe")[-1].prompt
    assert "A stimulus is 3 blocks of 5 bits" in prompt
    assert re.search(r"You see: \[[01]{5} [01]{5} [01]{5}\]\n", prompt)


def test_counts_are_those_of_the_prompt() -> None:
    found: list[TextRequest] = []
    listener = TextListener(DraftModel(), asked=found.append)
    evaluate("posdis", listener, episodes=3, seeds=1)
    counts = listener.tallies[0].counts
    for row in range(3):
        mine = [request.prompt for request in found if request.episode_id == row]
        assert counts["requests"][row] == len(mine)
        assert counts["letters"][row] == sum(map(len, mine))
        assert counts["estimated_tokens"][row] == sum(map(estimated_tokens, mine))


def test_numbers_are_rounded_for_display() -> None:
    shown = np.array([[0.12345, -0.0004, 0.9996]], dtype=np.float32)
    assert rounded(shown).tolist() == [[0.123, -0.0, 1.0]]


# -- what is read in an answer -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "decision", "message"),
    [
        ('{"decision": 1}', 1, None),
        ('{"decision": "1"}', 1, None),
        ('```json\n{"decision": 0, "message": [1, 2, 3]}\n```', 0, [1, 2, 3]),
        ('{"decision": 0} or rather {"decision": 1}', 1, None),
        ('<think>{"decision": 0}</think>{"decision": 1}', 1, None),
        ('{"note": {"decision": 0}, "decision": 1}', 1, None),
        ('{"decision": 1} {"other": 2}', 1, None),
        ("1", 1, None),
        (" 0\n", 0, None),
        ("12", 12, None),
        ('{"decision": 1', None, None),
        ('{"decision": true}', None, None),
        ('{"decision": 1.0}', None, None),
        ('{"decision": null, "message": [1, "x"]}', None, None),
        ('{"message": [true]}', None, None),
        ('{"message": []}', None, []),
        ("[0]", None, None),
        ("-1", None, None),
        ("Yes", None, None),
        ("", None, None),
        ('{"decision": ' + "9" * 5000 + "}", None, None),
        ('{"a":' * 3000, None, None),
    ],
)
def test_what_is_read(raw: str, decision: int | None, message: list[int] | None) -> None:
    found = parse(raw)
    assert (found.decision, found.message, found.raw) == (decision, message, raw)


@given(st.text())
def test_no_text_upsets_the_parser(raw: str) -> None:
    assert parse(raw).raw == raw


@given(st.integers(0, 9), st.lists(st.integers(0, 30), max_size=6), st.text(alphabet="abc {}[]:,0", max_size=9))
def test_what_is_written_is_read(decision: int, message: list[int], before: str) -> None:
    reply = as_json(decision, message)
    assert (reply.decision, reply.message) == (decision, message)
    again = parse(f"{before.replace('{', '')} {reply.raw}")
    assert (again.decision, again.message) == (decision, message)


def test_what_is_valid() -> None:
    request = TextRequest("", {"decision": ["0", "1"], "message": [["0", "1", "2"]] * 2})
    assert [valid_decision(request, d) for d in (0, 1, 2, -1, True, None, "0", 0.0)] == [True, True] + [False] * 6
    assert [valid_message(request, m) for m in ([], [2], [0, 2], [2, 3], [0, 0, 0], [True], None, (0, 0))] == (
        [True] * 3 + [False] * 5
    )
    assert not valid_decision(TextRequest("", {}), 0)
    assert not valid_message(TextRequest("", {}), [0])


# -- players -----------------------------------------------------------------------------------------------------------


def test_a_message_that_is_invalid_is_empty_and_a_decision_is_zero() -> None:
    settings: dict[str, Any] = {"listener_messages": True, "most": 2}
    listener = TextListener(FunctionModel(lambda request: TextReply(5, [99]), "wrong"))
    found = evaluate("posdis", listener, episodes=3, seeds=1, **settings)
    counts = listener.tallies[0].counts
    assert counts["invalid"].tolist() == counts["asked"].tolist()
    assert set(found.scores.yes) == {1.0}
    assert found.scores.illegal.sum() == 0
    assert "Your message: 0 0 0\n" in listener.scripts[0].prompt({})


def test_an_answer_that_is_not_needed_is_ignored() -> None:
    speaker = TextSpeaker(FunctionModel(lambda request: TextReply(77, [1, 2, 3]), "mute"))
    evaluate(speaker, "random", episodes=2, seeds=1)
    assert speaker.tallies[0].counts["invalid"].sum() == 0
    assert "Your message: 1 2 3\n" in speaker.scripts[0].prompt({})


def test_every_request_has_a_seed_of_its_own_that_its_episode_gives() -> None:
    def seeds(episodes: int) -> dict[tuple[int, str, int], int]:
        return {(r.episode_id, r.phase, r.game): r.seed for r in requests(episodes=episodes)}

    alone, together = seeds(1), seeds(4)
    assert len(set(together.values())) == len(together)
    assert alone.items() <= together.items()
