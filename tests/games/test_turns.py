"""Turns: rules are obeyed, frequencies, and dependence only on seed, purpose and index."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.games import TurnBatch, Turns, TurnSettings, World, make_world
from icy.games.turns import can_draw
from icy.testing.modules import MadeTensors
from tests.cores import needs_native

THING, SHAPE = make_world("thing"), make_world("shape")
SMALL = TurnSettings(rule_length=2, targets=3, distractors=4)


def obeyed(turns: Turns, batch: TurnBatch, targets: int) -> tuple[bool, bool]:
    """Return whether all targets obey, and whether any distractor does."""
    obey = turns.rules.obeys(batch.numbers, batch.objects)
    return bool(obey[..., :targets].all()), bool(obey[..., targets:].any())


def same(one: TurnBatch, other: TurnBatch) -> bool:
    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return all(a is b if a is None else torch.equal(a, b) for a, b in pairs)


@given(st.integers(1, 4), st.integers(2, 5), st.integers(1, 6), st.integers(1, 6), st.data())
def test_targets_obey_and_distractors_do_not(
    attributes: int, values: int, targets: int, distractors: int, data: st.DataObject
) -> None:
    settings = TurnSettings(
        data.draw(st.integers(1, attributes)),
        targets,
        distractors,
        data.draw(st.sampled_from(["near", "nearest", "uniform", "groups"])),
        data.draw(st.sampled_from(["attribute-first", "uniform"])),
    )
    turns = Turns(make_world("thing", attributes=attributes, values=values), settings, [data.draw(st.integers(0, 99))])
    batch = turns.batch(data.draw(st.sampled_from(["training", "validation", "test", "test-seen"])), 1, 2, 30)
    assert batch.objects.shape == (2, 1, 30, targets + distractors, attributes)
    assert batch.keys.shape == (2, 1, 30, targets + distractors)
    assert obeyed(turns, batch, targets) == (True, False)
    assert torch.equal(batch.rules, turns.rules.table[batch.numbers])
    assert ((batch.rules >= 0).sum(-1) == settings.rule_length).all()
    assert batch.objects.min() >= 0
    assert batch.objects.max() < values


def test_frequencies_of_concepts_depend_on_their_attributes() -> None:
    turns = Turns(SHAPE, TurnSettings(targets=1, distractors=1), [0])
    count = 200_000
    found = torch.bincount(turns.batch("training", 0, 1, count).numbers.flatten(), minlength=17) / count
    expected = torch.tensor([1 / 20] * 5 + [1 / 24] * 6 + [1 / 12] * 6)
    assert ((found - expected).abs() < 4 * (expected / count).sqrt()).all()


@pytest.mark.parametrize(("kind", "accuracy"), [("uniform", 0.95), ("near", 0.8125), ("nearest", 0.625)])
def test_a_receiver_that_knows_one_concept_of_four(kind: str, accuracy: float) -> None:
    turns = Turns(THING, TurnSettings(4, 20, 20, kind), [3])
    batch = turns.batch("training", 0, 1, 5000)
    first = (batch.rules >= 0).long().argmax(-1, keepdim=True)
    has = batch.objects.gather(-1, first[..., None, :].expand(*batch.objects.shape[:-1], 1))[..., 0]
    said = has == batch.rules.gather(-1, first)
    right = (said[..., :20].float().mean() + (~said[..., 20:]).float().mean()) / 2
    assert right.item() == pytest.approx(accuracy, abs=0.004)


def test_targets_are_uniform_over_objects_that_obey() -> None:
    """With one free attribute there are ten targets, each as frequent as any other."""
    turns = Turns(THING, TurnSettings(4, 20, 1), [3])
    batch = turns.batch("training", 0, 1, 2000)
    free = (batch.rules < 0).long().argmax(-1)[..., None, None].expand(1, 1, 2000, 20, 1)
    found = torch.bincount(batch.objects[..., :20, :].gather(-1, free).flatten(), minlength=10) / 40_000
    assert ((found - 0.1).abs() < 4 * 0.0015).all()


# -- a turn depends only on its seed, purpose and index ----------------------------------------------------------------


def test_same_seed_same_turns() -> None:
    one, other = Turns(THING, SMALL, [1, 2, 1]), Turns(THING, SMALL, [1, 2, 1])
    batch = one.batch("training", 4, 3, 5)
    assert same(batch, other.batch("training", 4, 3, 5))
    assert torch.equal(batch.objects[:, 0], batch.objects[:, 2])
    assert not torch.equal(batch.objects[:, 0], batch.objects[:, 1])


def test_turns_of_a_replicate_do_not_depend_on_its_stack() -> None:
    together = Turns(THING, SMALL, [1, 2, 3]).batch("training", 7, 2, 5)
    alone = Turns(THING, SMALL, [2]).batch("training", 7, 2, 5)
    assert torch.equal(together.objects[:, 1], alone.objects[:, 0])
    assert torch.equal(together.keys[:, 1], alone.keys[:, 0])


def test_steps_do_not_depend_on_earlier_steps() -> None:
    turns = Turns(THING, SMALL, [1, 2])
    whole = turns.batch("training", 0, 9, 4)
    assert torch.equal(whole.objects[5:8], turns.batch("training", 5, 3, 4).objects)


def test_targets_do_not_depend_on_the_number_of_candidates() -> None:
    few, many = (
        Turns(THING, replace(SMALL, targets=t, distractors=d), [1]).batch("training", 0, 2, 5)
        for t, d in ((3, 4), (6, 9))
    )
    assert torch.equal(few.objects[..., :3, :], many.objects[..., :3, :])
    assert torch.equal(few.objects[..., 3:, :], many.objects[..., 6:10, :])


def test_evaluations_are_the_same_for_every_seed_of_training() -> None:
    one, other = Turns(SHAPE, replace(SMALL, rule_length=4), [1, 2]), Turns(SHAPE, replace(SMALL, rule_length=4), [9])
    for purpose in ("validation", "test", "test-seen"):
        batch = one.batch(purpose, 0, 1, 50)
        assert torch.equal(batch.objects[:, 0], batch.objects[:, 1])
        assert torch.equal(batch.objects[:, :1], other.batch(purpose, 0, 1, 50).objects)
    assert one.split.held_out.tolist() == other.split.held_out.tolist()


def test_purposes_have_their_own_streams_and_rules() -> None:
    turns = Turns(SHAPE, replace(SMALL, rule_length=4), [1])
    batches = {p: turns.batch(p, 0, 1, 1000) for p in ("training", "validation", "test", "test-seen")}
    held_out = set(turns.split.held_out.tolist())
    for purpose, batch in batches.items():
        numbers = set(batch.numbers.flatten().tolist())
        assert numbers <= held_out if purpose == "test" else not numbers & held_out
    assert len({str(batch.numbers.flatten().tolist()[:20]) for batch in batches.values()}) == 4


def test_a_thousand_test_turns_have_the_number_of_phrases_of_the_paper() -> None:
    """CBM24 prints 901 for Thing and 34 for Shape at l = 4; for 5,000 rules, 906 +- 8 are expected."""
    for world, low, high in ((THING, 882, 930), (SHAPE, 34, 34)):
        numbers = Turns(world, TurnSettings(4, 1, 1), [1]).batch("test", 0, 1, 1000).numbers
        assert low <= len(numbers.unique()) <= high


def test_tests_show_all_rules_if_none_are_held_out() -> None:
    turns = Turns(SHAPE, TurnSettings(1, 1, 1), [1])
    assert len(turns.batch("test", 0, 1, 1000).numbers.unique()) == 17


# -- stacks ------------------------------------------------------------------------------------------------------------


def test_turns_do_not_depend_on_settings_of_other_replicates() -> None:
    near, uniform = replace(SMALL, distractor_kind="near"), replace(SMALL, distractor_kind="uniform")
    turns = Turns(THING, [near, uniform, near], [1, 1, 2])
    together = turns.batch("training", 2, 3, 4)
    for place, (settings, seed) in enumerate(((near, 1), (uniform, 1), (near, 2))):
        alone = Turns(THING, settings, [seed]).batch("training", 2, 3, 4)
        assert torch.equal(together.objects[:, place], alone.objects[:, 0])
    assert torch.equal(together.numbers[:, 0], together.numbers[:, 1])  # the same rules, so the two are comparable
    with pytest.raises(InvalidSettingError, match="2 settings of turns for 3 replicates"):
        Turns(THING, [near, uniform], [1, 2, 3])


def test_some_replicates_can_be_chosen_and_kept() -> None:
    turns = Turns(THING, SMALL, [1, 2, 3])
    whole = turns.batch("training", 0, 2, 4)
    assert torch.equal(turns.batch("training", 0, 2, 4, which=[2, 0]).objects, whole.objects[:, [2, 0]])
    turns.keep([1, 2])
    assert torch.equal(turns.batch("training", 0, 2, 4).objects, whole.objects[:, 1:])
    assert torch.equal(turns.batch("training", 0, 2, 4, which=[1]).objects, whole.objects[:, 2:])


# -- looks, and objects of the sender ----------------------------------------------------------------------------------


def test_looks_of_evaluations_are_marked() -> None:
    turns = Turns(THING, SMALL, [1])
    assert not (turns.batch("training", 0, 5, 20).keys & 1).any()
    assert (turns.batch("validation", 0, 5, 20).keys & 1).all()
    keys = turns.batch("training", 0, 5, 200).keys
    assert len(keys.unique()) == keys.numel()


def test_the_sender_may_see_other_objects_of_the_same_rule() -> None:
    turns = Turns(THING, replace(SMALL, same_objects=False), [1, 2])
    batch = turns.batch("training", 0, 4, 25)
    assert batch.sender_objects is not None
    assert batch.sender_keys is not None
    seen = replace(batch, objects=batch.sender_objects)
    assert obeyed(turns, seen, 3) == (True, False)
    assert (batch.sender_keys != batch.keys).all()
    assert not torch.equal(batch.sender_objects, batch.objects)
    shared = Turns(THING, SMALL, [1, 2]).batch("training", 0, 4, 25)
    assert shared.sender_objects is None
    assert torch.equal(shared.objects, batch.objects)


def test_one_target_can_replace_all_targets() -> None:
    turns = Turns(THING, replace(SMALL, repeat_target=True), [1])
    batch = turns.batch("training", 0, 2, 20)
    assert (batch.objects[..., :3, :] == batch.objects[..., :1, :]).all()
    assert (batch.keys[..., :3] == batch.keys[..., :1]).all()
    assert obeyed(turns, batch, 3) == (True, False)
    assert (batch.keys[..., 3:] != batch.keys[..., :1]).all()


# -- rejected values ---------------------------------------------------------------------------------------------------


def test_turns_are_drawn_on_the_device() -> None:
    turns = Turns(SHAPE, replace(SMALL, same_objects=False), [1, 2])
    with MadeTensors() as made:
        turns.batch("training", 0, 2, 3)
        turns.batch("test", 0, 2, 3, which=[1])
    assert not made.by


COMPILED = [
    TurnSettings(rule_length=1),
    TurnSettings(rule_length=2, targets=3, distractors=5, distractor_kind="near"),
    TurnSettings(rule_length=3, distractor_kind="groups", repeat_target=True, rule_sampling="uniform"),
    TurnSettings(rule_length=5, distractor_kind="uniform", same_objects=False),
]


@needs_native
@pytest.mark.parametrize("world", [THING, SHAPE], ids=["thing", "shape"])
@pytest.mark.parametrize("settings", COMPILED, ids=lambda s: s.rule_length)
def test_compiled_code_draws_the_same_turns(
    settings: TurnSettings, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(settings, rule_length=min(settings.rule_length, len(world.sizes)))
    kinds = [settings, replace(settings, distractor_kind="uniform")]
    compiled = Turns(world, kinds, [1, 2])
    monkeypatch.setattr("icy.games.turns.can_draw", lambda rules: False)
    by_pytorch = Turns(world, kinds, [1, 2])
    for purpose in ("training", "test"):
        assert same(*(turns.batch(purpose, 3, 2, 7) for turns in (compiled, by_pytorch)))


def test_formulas_are_drawn_by_pytorch() -> None:
    turns = Turns(SHAPE, TurnSettings(rules="formulas", rule_sampling="type-first"), [1])
    assert not can_draw(turns.rules)
