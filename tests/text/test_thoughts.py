"""Thoughts in answers: a decision is read only after the last closed one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.s2b.text.text_model import parse
from icy.text.answers import open_thought, without_thoughts

MAYBE = 'maybe {"decision": 1}, or 0'
FINAL = '{"decision": 0}'
MARKERS = [  # of a thought: what opens and what closes it
    ("<think>", "</think>"),
    ("<THINK>", "</Think >"),
    ("< thought >", "</ thought>"),
    ('<think type="long">', "</think>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|think|>", "<|/think|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
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
    ("<longcat_think>", "</longcat_think>"),
    ("<antThinking>", "</antThinking>"),
    ("<thinking>", "</thinking>"),
    ("\u2039\uff5cbegin\u2581of\u2581thinking\uff5c>", "\u2039\uff5cend\u2581of\u2581thinking\uff5c>"),
    ("<\uff5cbegin\u2581of\u2581thinking\uff5c>", "<\uff5cend\u2581of\u2581thinking\uff5c>"),
    ("\uff1cthink\uff1e", "\uff1c/think\uff1e"),
    ("&lt;think&gt;", "&lt;/think&gt;"),
    ("&#60;think&#62;", "&#60;/think&#62;"),
    ("&amp;lt;think&amp;gt;", "&amp;lt;/think&amp;gt;"),
    ("\\u003cthink\\u003e", "\\u003c/think\\u003e"),
    ("&lt;think&gt;", "</think>"),
    ("<think>", "<\\/think>"),
    ("\u3010think\u3011", "\u3010/think\u3011"),
    ("\u27e8think\u27e9", "\u27e8/think\u27e9"),
    ("{thinking}", "{/thinking}"),
    ("[[think]]", "[[/think]]"),
    ("<<think>>", "<</think>>"),
    ("<self_reflection>", "</self_reflection>"),
    ("<deepThought>", "</deepThought>"),
    ("<ThinkingProcess>", "</ThinkingProcess>"),
    ("<reasoning_trace id='1'>", "</reasoning_trace>"),
    ("<| begin of thought |>", "<| end of thought |>"),
    ("<|think_open|>", "<|think_close|>"),
    ("<!-- thinking -->", "<!-- /thinking -->"),
    ("\u300athink\u300b", "\u300a/think\u300b"),
    ("[BEGIN THOUGHT]", "[END THOUGHT]"),
    ("<\u601d\u8003>", "</\u601d\u8003>"),
    ('<details type="reasoning">', "</details>"),
    ('<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>', "</details>"),
    ("<details>\n<summary>Thinking process</summary>\n", "</details>"),
    ('<div class="thinking-block">', "</div>"),
    ("<section role=analysis>", "</section>"),
    ("```thinking\n", "\n```\n"),
    (r"\begin{thinking}", r"\end{thinking}"),
    ("<|im_start|>think\n", "<|im_end|>\n<|im_start|>assistant\n"),
    ("<|start_header_id|>thinking<|end_header_id|>", "<|eot_id|><|start_header_id|>assistant<|end_header_id|>"),
    ("analysis", "assistantfinal"),
]
HEADINGS = (  # of a first line
    *(
        "Thinking...\n",
        "Thinking\u2026\n",
        "## Thinking\n",
        "**Thinking**\n",
        "### Thought Process:\n",
        "*Reasoning*\n",
    ),
    *("Thinking Process:\n\n", "# Analysis\n", "> Thought for 12 seconds\n", "__Chain of thought__\n"),
    *("My reasoning:\n", "\U0001f4ad Thinking...\n", "(thinking)\n", "Reasoning\n---------\n"),
)
WEAK = ("</details>", "</div>", "</section>", "\n```\n")  # which close other things too
TAGS = (
    *("think", "thinking", "thinking_process", "thought", "thoughts", "thought_process", "reason", "reasoning"),
    *("reflect", "reflection", "analysis", "scratchpad", "rationale", "chain_of_thought", "cot", "inner_monologue"),
    *("inner_thoughts", "monologue", "seed:think", "seed:cot_budget_reflect", "planning", "pondering", "re-analysis"),
)
marked = pytest.mark.parametrize(("opens", "closes"), [*MARKERS, *((f"<{tag}>", f"</{tag}>") for tag in TAGS)])


@marked
def test_a_decision_is_read_only_after_the_last_closed_thought(opens: str, closes: str) -> None:
    def decision(text: str) -> int | None:
        return parse(text).decision

    assert decision(f"{opens}{MAYBE}{closes}{FINAL}") == 0
    assert decision(f"{opens}{MAYBE}{closes}0") == 0
    if closes not in WEAK:  # of a thought that the prompt opened
        assert decision(f"{MAYBE}{closes}\n{FINAL}") == 0
        assert decision(f"{MAYBE}{closes}") is None
    assert decision(f"{opens}{MAYBE}") is None  # not closed
    assert decision(f"{opens}{MAYBE}{closes}") is None
    if opens not in ("analysis", "```thinking\n"):  # which open a thought only where the text begins
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


@pytest.mark.parametrize(
    "heading", ["**Thinking:** ", "(Thinking) ", "Thought: ", "Thinking: ", "\u601d\u8003\uff1a", "*thinks* "]
)
def test_a_heading_in_a_line_opens_a_thought(heading: str) -> None:
    assert parse(f"{heading}{MAYBE}").decision is None
    assert parse(f"{heading}{MAYBE}\nAnswer: {FINAL}").decision == 0
    assert parse(f"{heading}they match. {FINAL}").decision == 0


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_heading_opens_a_thought(heading: str) -> None:
    def decision(text: str) -> int | None:
        return parse(text).decision

    assert decision(f"{heading}{MAYBE}") is None
    assert decision(f'{heading}maybe {{"decision": 1}}') is None
    assert decision(f"{heading}{MAYBE}\n...done thinking.\n\n{FINAL}") == 0
    assert decision(f"{heading}{MAYBE}\n\n**Final answer:**\n{FINAL}\nI hope this helps.") == 0
    assert decision(f"{heading}{MAYBE}\nAnswer: {FINAL}") == 0
    assert decision(f"{heading}{MAYBE}</think>{FINAL}") == 0
    if "..." not in heading and "\u2026" not in heading:  # a heading of a whole answer
        assert decision(f"{heading}{MAYBE}\n\n{FINAL}\n") == 0
        assert decision(f"{heading}{MAYBE}\n\n```json\n{FINAL}\n```\n") == 0


@pytest.mark.parametrize(
    "text",
    [
        'I think so: {"decision": 0}',
        'I think it is yes.\n{"decision": 0}\nThanks for the game!',
        'Reasoning: they match. {"decision": 0}',
        '**Reasoning:** they match. {"decision": 0}',
        '**Analysis**: they match.\n\n{"decision": 0}',
        'Analysis: they match. {"decision": 0} is right.',
        '{"reasoning": "maybe 1", "decision": 0}',
        '{reasoning: 1} {"decision": 0}',
        '{"thinking":\n "maybe 1",\n "decision": 0}\nDone.',
        'Reasoning: they match. {"decision": 0} is right.',
        '{"thought": "<b>", "decision": 0, "message": [1, 2]}',
        'The thinker <b>says</b> [1] {"decision": 0}',
        'They see <details>numbers</details> {"decision": 0}',
        '<div>yes</div> {"decision": 0}',
        '<answer>{"decision": 0}</answer>',
        '```json\n{"decision": 0}\n```',
        'Since 0.3 < 0.5 and thinking > 0, {"decision": 0}',
        'a <b class="big">yes</b> {"decision": 0}',
        'Thinking about it, yes.\n{"decision": 0}\nBye.',
        'Thoughtful players agree.\n{"decision": 0}\nBye.',
        '<treasonable> {"decision": 0}',
        '[apricot] {"decision": 0}',
    ],
)
def test_other_answers_are_read(text: str) -> None:
    assert parse(text).decision == 0


def test_long_texts_are_read_in_linear_time() -> None:
    for piece in ("<", "[think", "<a ", "&lt;", "{", "<|", "\n```", "think ", "\n**", "done "):
        assert parse(f"{piece * 4_000}0").decision is None


@given(st.text(), st.sampled_from([one for one in MARKERS[:-1] if one[1] not in WEAK]))
def test_open_thoughts_are_not_read(text: str, markers: tuple[str, str]) -> None:
    opens, closes = markers
    if without_thoughts(f"{opens}{text}") is None:
        assert parse(f"{opens}{text}").decision is None
    rest = without_thoughts(f"{opens}{text}{closes}rest")  # None where the text opens a channel
    assert rest is None or rest.strip() == "rest"  # some markers leave their line break


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
