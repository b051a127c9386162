"""The nearest grammar of languages of known origin, with errors, and of special languages."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from icy.analysis.chains import with_noise
from icy.core.errors import InvalidSettingError
from icy.grammars import make_language
from icy.grammars.grammar import WordTable
from icy.grammars.pairsum import PairSum
from icy.grammars.rot import Rot
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.metrics import nearest, nearest_grammar
from icy.metrics.nearest import GRAMMARS, draw_concat

EXACT = ("concat", "rot", "pairsum", "perm", "shufdet")


def with_rule(language: Language, kind: str) -> Language:
    """Return a language with systematic errors: rules on values add 1 to two tokens, or a position is constant."""
    messages, meanings = np.array(language.messages), language.meanings
    if kind == "position":
        messages[:, 4] = 0
    else:
        applies = (meanings[:, 0] == 0) if kind == "value" else (meanings[:, 0] < 2) & (meanings[:, 1] == 2)
        cells = np.ix_(applies, (5, 8))
        messages[cells] = (messages[cells] + 1) % language.vocab_size
    return replace(language, messages=messages)


@pytest.mark.parametrize("space", ["4x5", pytest.param("8,7,6,2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("grammar", GRAMMARS)
def test_a_language_is_nearest_to_its_own_grammar(grammar: str, space: str) -> None:
    for seed in (1, 2, 3):
        language = make_language(grammar, space, 4, 3, seed)
        found = nearest_grammar(language)
        assert found.grammar == grammar
        if grammar in EXACT:
            assert (found.agreement[grammar], found.floor[grammar], found.errors) == (1, 1, "none")
        noisy = nearest_grammar(with_noise(language, 0.3, seed))
        assert (noisy.grammar, noisy.errors) == (grammar, "none" if grammar == "hol" else "random")
        if grammar in EXACT:  # 0.3 of the tokens are replaced, a quarter by the same
            assert noisy.agreement[grammar] == pytest.approx(1 - 0.3 * 3 / 4, abs=0.02)
        if grammar != "hol":
            assert noisy.floor[grammar] == pytest.approx(noisy.agreement[grammar], abs=1e-9)


@pytest.mark.parametrize("kind", ["value", "pair", "position"])
@pytest.mark.parametrize("grammar", GRAMMARS)
def test_the_origin_of_a_language_with_systematic_errors_is_found(grammar: str, kind: str) -> None:
    exact = make_language(grammar, "4x5", 4, 3, 1)
    language = with_rule(exact, kind)
    found = nearest_grammar(language)
    assert found.grammar == grammar
    constant = kind == "position" and grammar in ("concat", "perm", "proj")  # words may have a constant token
    assert (found.errors == "systematic") == (grammar != "hol" and not constant)
    if grammar in EXACT and kind == "pair":
        assert found.agreement[grammar] == pytest.approx((language.messages == exact.messages).mean(), abs=1e-9)
    noisy = nearest_grammar(with_noise(language, 0.1, 1))
    assert noisy.grammar == grammar
    if grammar != "proj":  # the errors of its estimate hide other errors
        assert (noisy.errors == "systematic") == (grammar != "hol" and not constant)


def test_proj_may_predict_more_than_the_origin() -> None:
    found = nearest_grammar(with_rule(make_language("concat", "4x5", 4, 3, 1), "value"))
    assert found.agreement["proj"] > found.agreement["concat"] + 0.01
    assert (found.grammar, found.errors) == ("concat", "systematic")


def test_languages_of_proj_agree_with_other_grammars_by_chance() -> None:
    for seed in (1, 2, 3):
        for share in (0, 0.2):
            found = nearest_grammar(with_noise(make_language("proj", "4x5", 4, 3, seed), share, seed))
            for name in EXACT:
                assert found.agreement[name] == pytest.approx(found.chance[name], abs=0.12)
            assert found.agreement["proj"] > found.chance["proj"] + 0.15


def test_a_constant_position_leaves_the_chance_of_other_grammars_as_it_is() -> None:
    """Errors are a share of the tokens, so a constant position scales them all."""
    language = make_language("proj", "4x5", 4, 3, 1)
    constant = np.array(language.messages)
    constant[:, :6] = 0
    found = nearest_grammar(Language(language.space, constant, 4))
    assert found.grammar == "proj"
    assert found.chance["hol"] == found.agreement["hol"] > 0.7
    assert 1 > found.chance["perm"] > found.chance["concat"] > found.agreement["hol"]


@pytest.mark.parametrize(("name", "corruption"), [("rot", Rot()), ("pairsum", PairSum())])
@pytest.mark.parametrize("attributes", [2, 3, 4])
def test_sums_are_those_of_the_grammar(name: str, corruption: Rot | PairSum, attributes: int) -> None:
    space, generator = MeaningSpace(attributes, 3), np.random.default_rng(0)
    rows = draw_concat(space.all().astype(np.int64), 2 * attributes, (3, 4), generator)
    table = WordTable(space, vocab_size=4, word_length=2, rng=generator)
    drawn = GRAMMARS[name].draw(rows, generator)
    assert drawn.tolist() == corruption.apply(rows.tokens, table).tolist()
    assert GRAMMARS[name].predict(rows.with_tokens(drawn), rows.values).tolist() == drawn.tolist()


@pytest.mark.parametrize("name", ["rot", "pairsum"])
def test_words_are_estimated_around_a_position_with_errors(name: str) -> None:
    """Differences of neighboring tokens alone would be wrong at all later positions."""
    space, generator = MeaningSpace(3, 4), np.random.default_rng(0)
    rows = draw_concat(space.all().astype(np.int64), 6, (4, 4), generator)
    drawn = GRAMMARS[name].draw(rows, generator)
    drawn[:, 3] = generator.integers(4, size=len(drawn))
    right = GRAMMARS[name].predict(rows.with_tokens(drawn), rows.values) == drawn
    assert np.delete(right, 3, axis=1).all()


def test_draws_depend_on_the_seed_alone() -> None:
    space, agreement = MeaningSpace(2, 3), dict.fromkeys(GRAMMARS, 0.4)
    one, again, other = (nearest._draws.__wrapped__(space, None, (3, 4), 4, seed) for seed in (4, 4, 5))
    assert one.chance(agreement) == again.chance(agreement) != other.chance(agreement)
    assert one.floor(0.2) == again.floor(0.2) != other.floor(0.2)


def test_draws_have_a_part_of_many_meanings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "ROWS", 70)
    monkeypatch.setattr(nearest, "ROWS_PER_VALUE", 10)
    draws = nearest._draws.__wrapped__(MeaningSpace(3, 5), None, (5, 4), 3, 0)
    assert draws.concat[0].values.shape == (70, 3)
    assert sorted(np.concatenate(draws.halves).tolist()) == list(range(70))


def test_errors_are_concentrated_if_they_are_frequent_in_a_cell() -> None:
    """Ten errors in a cell of 25 meanings: the p-value is binomial, times the number of cells."""
    space = MeaningSpace(4, 5)
    rows = draw_concat(space.all().astype(np.int64), 4, (5, 4), np.random.default_rng(0))
    assert not nearest._concentration("concat", rows)[1]
    tokens = rows.tokens.copy()
    cell = np.flatnonzero((rows.values[:, 0] == 1) & (rows.values[:, 1] == 2))[:10]
    tokens[cell, 3] = (tokens[cell, 3] + 1) % 4
    rare, wrong = nearest._concentration("concat", rows.with_tokens(tokens))
    rate = 10 / (625 * 4)
    exact = sum(math.comb(25, k) * rate**k * (1 - rate) ** (25 - k) for k in range(10, 26))
    cells = 4 * (1 + 4 * 5 + 6 * 25)
    assert rare == pytest.approx(-math.log10(exact * cells))
    assert wrong


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
