"""The authors' draws: printed messages and numbers of Icy22, and the vectors of spycodes-facts 2."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch

from icy.core.errors import IcyError, IncompatibleError
from icy.core.register import register_grammar
from icy.core.streams import DrawsName
from icy.grammars import cached_language, make_language
from icy.grammars.authors import AuthorsGenerator, authors_generator
from icy.grammars.grammar import base_words, digits
from icy.grammars.rot import Rot
from icy.languages.meanings import MeaningSpace
from icy.metrics import bosdis, posdis, residual_entropy, topsim
from icy.study.game import StudyGameSettings, codes_of, dataset


def synth_words(seed: int) -> Any:
    content = dataset("synth")
    return base_words(content.space, content.vocab_size, content.word_length, authors_generator(seed))


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
    assert AuthorsGenerator(0).permutation(6).tolist() == [5, 2, 1, 3, 0, 4]
    assert AuthorsGenerator(123).permutation(6).tolist() == [1, 3, 4, 0, 2, 5]
    orders = AuthorsGenerator(0).permuted(np.tile([0, 1], (5, 1)), axis=1)
    assert np.flatnonzero(orders[:, 0]).tolist() == [0, 3]  # shapes with swapped words
    orders = AuthorsGenerator(123).permuted(np.tile([0, 1], (5, 1)), axis=1)
    assert np.flatnonzero(orders[:, 0]).tolist() == [0, 2, 3, 4]


def test_random_words() -> None:
    letters = np.array(list("abcd"))
    shown = {
        seed: [["".join(letters[word]) for word in of_values] for of_values in synth_words(seed)] for seed in (0, 123)
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


def test_the_generators_leave_the_global_state_unchanged() -> None:
    before, of_torch = np.random.get_state()[1].tolist(), torch.get_rng_state()  # type: ignore[index,union-attr]
    make_language("proj", "2x3", word_length=2, draws="authors")
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index,union-attr]
    assert torch.get_rng_state().equal(of_torch)


# -- languages of the papers -------------------------------------------------------------------------------------------

MESSAGES = {  # Icy22 table 1: 3x10, words of 3 tokens, seed 123
    "concat": "dadacbbba dadacbcca dadcabbba ddbacbbba",
    "perm": "aabdcdabb aacdcdacb acbdadabb aabdcbdbb",
    "rot": "ddccabcdd ddccabdbb ddcaabcdd dcddbcdaa",
    "proj": "dcbcbbaad bdbcabaad dbbcabcad acbcabaad",
    "shufdet": "dadacbbba ccadadacb dadcabbba ddbacbbba",
    "hol": "adbcddadc bcaadacba bcaccaddb daaaacbdc",
}
GREEDY = {  # Icy22 tables 9 and 10: residual entropy by the greedy search, mean of the seeds 123 to 127
    9: (("2x5", 2, 5), {"concat": 0, "perm": 0, "proj": 0.8333, "shufdet": 0.6452, "shuf": 0.5389, "rot": 0.5510,
        "hol": 0.5728}),
    10: (("3x4", 4, 2), {"concat": 0, "perm": 0, "proj": 0.5343, "shufdet": 0.4025, "shuf": 0.4973, "rot": 0.3867,
         "hol": 0.6183}),
}  # fmt: skip


@pytest.mark.parametrize("grammar", MESSAGES)
def test_the_messages_of_table_1(grammar: str) -> None:
    examples = make_language(grammar, "3x10", word_length=3, seed=123, draws="authors").examples()
    assert examples["meaning"].tolist() == ["(0, 0, 0)", "(0, 0, 1)", "(0, 1, 0)", "(1, 0, 0)"]
    assert " ".join(examples["message"].str.replace(" ", "")) == MESSAGES[grammar]


@pytest.mark.parametrize("table", GREEDY)
def test_the_greedy_residual_entropies_have_all_printed_digits(table: int) -> None:
    sizes, printed = GREEDY[table]
    for grammar, value in printed.items():
        languages = [make_language(grammar, *sizes, seed, draws="authors") for seed in range(123, 128)]
        found = [residual_entropy(one, search="greedy", normalised=table == 10).value for one in languages]
        assert round(float(np.mean(found)), 4) == value, grammar


def test_metrics_are_those_of_the_authors_program() -> None:
    """3x4, V = 4, w = 2: means over the seeds 123 to 127 of the released program, which is deterministic for these."""
    program = {
        "concat": (0.859, 1, 0.184), "perm": (0.859, 1, 0.184),
        "rot": (0.306, 0.428, 0.072), "hol": (0.041, 0.025, 0.034),
    }  # fmt: skip
    for grammar, values in program.items():
        languages = [make_language(grammar, "3x4", 4, 2, seed, draws="authors") for seed in range(123, 128)]
        each = [
            (
                topsim(one, message="hamming", pairs="published").value,
                posdis(one, constant="zero").value,
                bosdis(one, constant="zero").value,
            )
            for one in languages
        ]
        assert np.mean(each, 0).round(3).tolist() == list(values), grammar


def test_words_come_first_and_grammars_of_a_chain_continue_the_same_draws() -> None:
    sizes = 3, 5, 4, 2  # attributes, values, V, w
    state = np.random.RandomState(7)
    words = digits(state.choice(4**2, 15, replace=False), 4, 2).reshape(3, 5, 2)
    meanings = MeaningSpace(3, 5).meanings(np.arange(125))
    concat = np.concatenate([words[a][meanings[:, a]] for a in range(3)], 1)
    once, orders = state.choice(6, 6, replace=False), [state.choice(3, 3, replace=False) for _ in range(125)]
    shuffled = np.stack([row[order] for row, order in zip(concat[:, once].reshape(-1, 3, 2), orders, strict=True)])
    made = {name: make_language(name, "3x5", *sizes[2:], 7, draws="authors").messages for name in ("perm", "perm+shuf")}
    assert np.array_equal(made["perm"], concat[:, once])
    assert np.array_equal(made["perm+shuf"], shuffled.reshape(125, 6))


def test_pairsum_and_rot_only_need_the_authors_words() -> None:
    words = base_words(MeaningSpace(2, 3), 4, 2, authors_generator(5))
    for name in ("pairsum", "rot"):
        made = make_language(name, "2x3", word_length=2, seed=5, draws="authors")
        assert np.array_equal(made.messages, make_language(name, "2x3", word_length=2, words=words).messages)


def test_holistic_messages_repeat_if_there_is_room() -> None:
    drawn = np.random.RandomState(3).choice(4**8, 16, replace=True)
    made = make_language("hol", "2x4", 4, 4, 3, draws="authors")
    assert np.array_equal(made.messages, digits(drawn, 4, 8))


def test_the_cache_distinguishes_draws() -> None:
    made = [cached_language("perm", MeaningSpace(2, 3), 4, 2, 1, draws=draws) for draws in get_args(DrawsName)]
    assert made[0] != made[1]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"space": "3,4"}, "does not have attributes with different numbers of values"),
        ({"space": "2x3", "word_length": "1-2"}, "does not have words of different lengths"),
        ({"space": "2x3", "seed": -1}, "seed of the authors' draws must be a whole number, at least 0"),
        ({"space": "9x2", "word_length": 8}, "exceed its 64 bits"),
        ({"space": "2x3", "draws": "author"}, "did you mean authors"),
    ],
)
def test_languages_that_the_program_does_not_have_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(IcyError, match=sentence):
        make_language("hol", **{"draws": "authors", **given})


def test_grammars_of_users_are_refused(forgetting: None) -> None:
    register_grammar("mine")(type("Mine", (Rot,), {"__module__": "mine"}))
    with pytest.raises(IncompatibleError, match="does not have the grammar 'mine'"):
        make_language("mine", "2x3", draws="authors")
