"""The draws of the authors' service: the vectors of spycodes-facts 2."""

from __future__ import annotations

import numpy as np
import pytest

from icy.study.game import StudyGameSettings, codes_of, dataset
from icy.study.game.legacy import LegacyGenerator, legacy_words

ENG = [
    (0, "rot", "rvyaiz rvyriq rvyznk mmszda"),
    (123, "rot", "rvyaiz rvyriq rvyznk mmszda"),
    (0, "perm", "rdecri idetrr xdebro xgahme"),
    (123, "perm", "ecirdr etrrdi ebordx ahemgx"),
    (0, "shufdet", "cirred redtri redbox maghex"),
    (123, "shufdet", "cirred redtri boxred hexmag"),
    (0, "proj", "gpgquz qfuifz ccatmk siqbtw"),
    (123, "proj", "uogfof ykgooe xtknzo ezcywd"),
    (0, "concat", "redcir redtri redbox maghex"),
]


@pytest.mark.parametrize(("seed", "grammar", "codes"), ENG)
def test_english_languages(seed: int, grammar: str, codes: str) -> None:
    found = codes_of(StudyGameSettings.of("published", dataset="eng", grammar=grammar), seed)
    assert [found[0], found[1], found[2], found[24]] == codes.split()


def test_english_draws() -> None:
    assert LegacyGenerator(0).permutation(6).tolist() == [5, 2, 1, 3, 0, 4]
    assert LegacyGenerator(123).permutation(6).tolist() == [1, 3, 4, 0, 2, 5]
    orders = LegacyGenerator(0).permuted(np.tile([0, 1], (5, 1)), axis=1)
    assert np.flatnonzero(orders[:, 0]).tolist() == [0, 3]  # shapes with swapped words
    orders = LegacyGenerator(123).permuted(np.tile([0, 1], (5, 1)), axis=1)
    assert np.flatnonzero(orders[:, 0]).tolist() == [0, 2, 3, 4]


def test_random_words() -> None:
    letters = np.array(list("abcd"))
    shown = {
        seed: [["".join(letters[word]) for word in of_values] for of_values in legacy_words(seed, dataset("synth"))]
        for seed in (0, 123)
    }
    assert shown == {0: [["ba", "cb", "ac"], ["bc", "bd", "ab"]], 123: [["db", "cc", "ab"], ["aa", "bb", "bc"]]}
    published = StudyGameSettings.of("published")
    assert codes_of(published, 0)[0] == "babc"
    assert codes_of(StudyGameSettings.of("published", grammar="rot"), 0)[0] == "bbca"


def test_random_words_do_not_depend_on_the_grammar_and_its_draws_are_icys_own() -> None:
    perm = codes_of(StudyGameSettings.of("published", grammar="perm"), 5)
    base = codes_of(StudyGameSettings.of("published"), 5)
    assert sorted(map(sorted, perm)) == sorted(map(sorted, base))
    assert perm == codes_of(StudyGameSettings.of("published", grammar="perm"), 5)


def test_the_generator_leaves_the_global_state_unchanged() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index,union-attr]
    legacy_words(3, dataset("synth"))
    LegacyGenerator(4).random((2, 2))
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index,union-attr]
