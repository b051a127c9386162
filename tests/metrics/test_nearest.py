"""The nearest grammar of languages of known origin, and of special languages."""

from __future__ import annotations

import numpy as np
import pytest

from icy.analysis.chains import with_noise
from icy.core.errors import InvalidSettingError
from icy.grammars import make_language
from icy.languages.language import Language
from icy.metrics import nearest_grammar
from icy.metrics.estimated_grammars import GRAMMARS

EXACT = ("concat", "rot", "pairsum", "perm", "shufdet")


@pytest.mark.parametrize("space", ["4x5", "8,7,6,2"])
@pytest.mark.parametrize("grammar", GRAMMARS)
def test_a_language_is_nearest_to_its_own_grammar(grammar: str, space: str) -> None:
    for seed in (1, 2, 3):
        language = make_language(grammar, space, 4, 3, seed)
        found = nearest_grammar(language)
        assert found.grammar == grammar
        if grammar in EXACT:
            assert found.agreement[grammar] == 1
        noisy = nearest_grammar(with_noise(language, 0.3, seed))
        assert noisy.grammar == grammar
        if grammar in ("concat", "rot", "perm", "shufdet"):  # 0.3 of the tokens are replaced, a quarter by the same
            assert noisy.agreement[grammar] == pytest.approx(1 - 0.3 * 3 / 4, abs=0.02)


def test_messages_of_meanings_that_do_not_exist_have_no_effect() -> None:
    language = make_language("shufdet", "6,5,4", 4, 3, 1)
    existing = np.sort(np.random.default_rng(0).permutation(120)[:80])
    words = np.random.default_rng(1).integers(4, size=language.messages.shape)
    words[existing] = language.messages[existing]
    changed = Language(language.space, words, 4)
    assert nearest_grammar(changed, existing=existing) == nearest_grammar(language, existing=existing)
    assert nearest_grammar(changed, existing=existing).grammar == "shufdet"
    assert nearest_grammar(changed).agreement["shufdet"] < 1
    with pytest.raises(InvalidSettingError, match="1 meaning cannot be split into two halves"):
        nearest_grammar(language, existing=existing[:1])


def test_agreements_of_a_holistic_language_are_at_chance() -> None:
    found = nearest_grammar(make_language("hol", "4x5", 4, 3, 5))
    assert all(share == pytest.approx(1 / 4, abs=0.02) for share in found.agreement.values())


def test_special_cases_of_other_grammars_are_predicted_too() -> None:
    agreement = nearest_grammar(make_language("concat", "4x5", 4, 3, 1)).agreement
    assert agreement["concat"] == agreement["perm"] == agreement["shufdet"] == agreement["proj"] == 1


def test_the_predicted_words_come_from_the_other_half() -> None:
    """A language in which each message occurs once per half is not predicted better than by chance."""
    language = make_language("concat", "2x4", 4, 2, 1)
    swapped = Language(language.space, np.random.default_rng(0).permutation(language.messages), 4)
    assert nearest_grammar(swapped).agreement["concat"] < 0.6
    assert nearest_grammar(language, seed=1) == nearest_grammar(language, seed=1)


def test_a_language_with_one_message_has_no_words() -> None:
    found = nearest_grammar(Language("2x3", np.zeros((9, 4), int), 4))
    assert found.grammar == "hol"
    assert set(found.agreement.values()) == {1.0}


def test_words_need_equal_lengths_and_meanings_two_attributes() -> None:
    with pytest.raises(InvalidSettingError, match="3 tokens do not divide into 2 words"):
        nearest_grammar(Language("2x3", np.zeros((9, 3), int), 4))
    with pytest.raises(InvalidSettingError, match="1x5 has one attribute"):
        nearest_grammar(Language("1x5", np.zeros((5, 3), int), 4))


def test_noise_replaces_a_share_of_the_tokens() -> None:
    language = make_language("hol", "4x5", 4, 3, 5)
    assert with_noise(language, 0, 1) == language
    changed = (with_noise(language, 1, 1).messages != language.messages).mean()
    assert changed == pytest.approx(3 / 4, abs=0.02)


@pytest.mark.parametrize("eos", [0, 2, 4])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_an_end_at_the_same_place_in_all_messages_is_left_out(eos: int, padding: int) -> None:
    plain = make_language("rot", "3x5", word_length=3, seed=1)
    tokens = np.pad(plain.messages + (plain.messages >= eos), ((0, 0), (0, padding)), constant_values=eos)
    ended = Language(plain.space, tokens, plain.vocab_size + 1, eos=eos)
    assert nearest_grammar(ended) == nearest_grammar(plain)


def test_ends_at_several_places_are_named() -> None:
    tokens = [[0, 1, 4, 4], [0, 4, 4, 4], [1, 1, 4, 4], [1, 2, 3, 4]]
    with pytest.raises(InvalidSettingError, match="these messages have 1 to 3 tokens before the end token 4"):
        nearest_grammar(Language("2x2", tokens, 5, eos=4))
