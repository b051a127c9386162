"""Thoughts in answers: a decision is read only after the last closed one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.s2b.text.prompt import parse
from icy.s2b.text.thoughts import TAGS, open_thought, without_thoughts

MAYBE = 'maybe {"decision": 1}, or 0'
FINAL = '{"decision": 0}'
MARKERS = [  # of a thought: what opens and what closes it
    ("<think>", "</think>"),
    ("<THINK>", "</Think >"),
    ("<thinking>", "</thinking>"),
    ("< thought >", "</ thought>"),
    ('<think type="long">', "</think>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|think|>", "<|/think|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<think_start>", "<think_end>"),
    ("<|thought_begin|>", "<|thought_end|>"),
    ("<chain-of-thought>", "</chain-of-thought>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<unused94>thought", "<unused95>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    (
        "<|channel|>commentary to=x <|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    ),
    ("analysis", "assistantfinal"),
]
marked = pytest.mark.parametrize(("opens", "closes"), [*MARKERS, *((f"<{tag}>", f"</{tag}>") for tag in TAGS)])


@marked
def test_a_decision_is_read_only_after_the_last_closed_thought(opens: str, closes: str) -> None:
    def decision(text: str) -> int | None:
        return parse(text).decision

    assert decision(f"{opens}{MAYBE}{closes}{FINAL}") == 0
    assert decision(f"{opens}{MAYBE}{closes}0") == 0
    assert decision(f"{MAYBE}{closes}\n{FINAL}") == 0  # of a thought that the prompt opened
    assert decision(f"{MAYBE}{closes}") is None
    assert decision(f"{opens}{MAYBE}") is None  # not closed
    assert decision(f"{opens}{MAYBE}{closes}") is None
    if opens != "analysis":  # which opens a thought only where the text begins
        assert decision(f"{FINAL}{opens}hm") is None
        assert decision(f"{FINAL}{opens}hm{closes}") is None
        assert decision(f"{opens}a{closes}{MAYBE}{opens}b{closes}{FINAL}") == 0
        assert decision(f"{opens}a{closes}{FINAL}{opens}{MAYBE}") is None


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>a</thinking>b", None),  # another kind
        ("<think>a<thinking>b</thinking>c", None),
        ("<think>a[/THINK]</think>b", "b"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<think/>a", "<think/>a"),
        ("</think></think>a", "a"),
        ("Analysis: a", "Analysis: a"),
        ("analysis of a", "analysis of a"),
        ("I think <b>a</b> [1] thinking", "I think <b>a</b> [1] thinking"),
        ("<thinker>a", "<thinker>a"),
        ("", ""),
    ],
)
def test_text_after_thoughts_is_found(text: str, rest: str | None) -> None:
    assert without_thoughts(text) == rest


@given(st.text(), st.sampled_from(MARKERS[:-1]))
def test_open_thoughts_are_not_read(text: str, markers: tuple[str, str]) -> None:
    opens, closes = markers
    if without_thoughts(f"{opens}{text}") is None:
        assert parse(f"{opens}{text}").decision is None
    assert without_thoughts(f"{opens}{text}{closes}rest") in ("rest", None)  # None where the text opens a channel


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        (f"I see. {MAYBE} may be", None),  # a thought that the prompt opened, cut before it was closed
        (f"I see. {MAYBE}", None),
        ('{"decision": 1}', 1),
        ('```json\n{"decision": 1}\n```\n\n\n', 1),
        ('{"decision": 1}<|im_end|>', 1),
        ("1", 1),
        ('{"decision": 1, "message": [', None),
    ],
)
def test_a_cut_text_counts_only_if_its_json_is_last(text: str, decision: int | None) -> None:
    assert parse(text, cut=True).decision == decision


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [
        ("user: 1?\nassistant: <think>\n", "<think>"),
        ("assistant: <think>\n\n</think>\n\n", ""),
        ("assistant: ", ""),
        ("<think> assistant:", ""),
        ("assistant: [THINK]", "[THINK]"),
    ],
)
def test_a_prompt_may_open_a_thought(prompt: str, opens: str) -> None:
    assert open_thought(prompt) == opens
