"""Native cores for games: the updates and evaluations of PyTorch, the same bits in every stack, and fallbacks."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch

from icy.core.errors import IncompatibleError
from icy.games.game_stack import Games
from icy.games.native_game import NativeGame
from icy.games.worlds.thing import Thing
from tests.cores import needs_native
from tests.helpers import mark_others
from tests.models.native.helpers import assert_close
from tests.models.native.test_wrong_tensors import CHANGES, try_each

from .helpers import FEW, course_of

CASES: dict[str, dict[str, Any]] = {
    "gs": {"representation": "gs"},
    "qt": {"representation": "qt"},
    "cb": {"representation": "cb"},
    "soft": {"representation": "soft"},
    "gumb": {"representation": "gumb"},
    "published sizes": {"world_options": {}, "sender_hidden": 60, "receiver_hidden": 40, "rule_length": 4},
    "hard gs": {"representation": "gs", "representation_options": {"straight_through": True, "tau": 0.7}},
    "digits": {"representation": "qt", "representation_options": {"levels": 5}, "word_size": 3},
    "digits of a batch": {"representation_options": {"normalise": "batch", "levels": 3}, "word_size": 3},
    "codes": {"representation": "cb", "representation_options": {"codes": 37, "commitment": 0.4}, "rule_length": 3},
    "both": {"sender_sees": "both", "distractors": 5, "game": {"same_objects": False}},
    "one target": {"targets": 1, "distractors": 1, "game": {"repeat_target": True}},
    "several chunks": {"settings": {"batch_size": 75}, "targets": 9, "representation": "gs"},
    "clipping": {"settings": {"clip_norm": 0.01}, "representation": "gs"},
    "GRU": {"sender": "HierAutoReg:GRU", "receiver": "Hier:GRU", "representation": "gs"},
    "SRU": {"sender": "RNNZero:SRU", "receiver": "RNN2L:SRU", "representation": "cb"},
    "attention": {"sender": "TransDecSoft", "receiver": "Transformer", "representation": "gs"},
    "reserved end": {"representation": "gs", "settings": {"reserved_end": True}},
    "wide perception": {"perception_options": {"hidden": 50}},
    "formulas": {"game": {"rules": "formulas", "rule_sampling": "type-first"}, "rule_length": 1},
}
USUAL = mark_others("native", CASES, lambda name: name in ("gs", "qt", "cb", "digits of a batch"))


def objects_of(course: Games, purpose: str = "training", count: int = 1) -> torch.Tensor:
    return course._objects(purpose, course.updates, count, course.settings.learning.batch_size)


@needs_native
@pytest.mark.parametrize("name", USUAL)
def test_an_update_equals_pytorchs(name: str) -> None:
    """Gradients, from the first moment after an update of Adam, and the loss, which includes the channel's."""
    native, by_pytorch = (course_of(engine, **CASES[name]) for engine in ("native", "broadcast"))
    assert isinstance(native.learner, NativeGame)
    for course in (native, by_pytorch):
        course.advance(1)
    losses, expected = (course.learner.losses() for course in (native, by_pytorch))
    assert losses is not None
    assert expected is not None
    torch.testing.assert_close(losses.float(), expected, rtol=1e-6, atol=1e-6)
    for place in range(2):
        (found, _), moments = native.learner.state(place)["moments"], by_pytorch.learner.state(place)["moments"]
        whole = torch.cat([g.flatten() for g in moments["exp_avg"].values()]).norm().item()
        assert found.keys() == moments["exp_avg"].keys()
        for part, gradient in moments["exp_avg"].items():
            # Gradients of some parts are far smaller than the rounding of their sums.
            assert_close(found[part], gradient, 1e-5, 0.1 * whole)


@needs_native
@pytest.mark.parametrize("name", USUAL)
def test_some_updates_and_an_evaluation_equal_pytorchs(name: str) -> None:
    """The evaluation is compared with the same weights."""
    native, by_pytorch = (course_of(engine, **CASES[name]) for engine in ("native", "broadcast"))
    before = by_pytorch.learner.weights(1)
    for course in (native, by_pytorch):
        course.advance(5)
    for part, expected in by_pytorch.learner.weights(1).items():
        assert_close(native.learner.weights(1)[part] - before[part], expected - before[part], 1e-3, 1e-4)
    for place in range(2):
        by_pytorch.learner._stack.load(place, native.learner.weights(place))  # type: ignore[union-attr]
    objects = objects_of(native, "validation")[0]
    both = (course.learner.run(objects) for course in (native, by_pytorch))
    for one, other in zip(*both, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@needs_native
@pytest.mark.parametrize("name", mark_others("native", CASES, lambda name: name == "gs"))
def test_stacks_cuts_and_resuming_change_nothing(name: str) -> None:
    """A replicate has the same bits alone, in a stack that loses the others, and after resuming."""
    stack, alone = course_of(seeds=[3, 5], **CASES[name]), course_of(seeds=[5], **CASES[name])
    stack.advance(4)
    resumed = course_of(seeds=[5], **CASES[name])
    resumed.learner.resume([stack.learner.state(1)])
    resumed.updates = 4
    stack.learner.keep([1])
    stack.turns.keep([1])
    stack.keys, stack.active = stack.keys[[1]], stack.active[1:]
    for course in (stack, resumed, alone):
        course.advance(7)
    weights = [course.learner.weights(0) for course in (stack, resumed, alone)]
    for one in weights[1:]:
        assert all(torch.equal(value, one[part]) for part, value in weights[0].items())


@needs_native
def test_turns_of_an_evaluation_do_not_depend_on_their_batch() -> None:
    course = course_of("native", representation="gs", settings={**FEW, "turns": 300})
    course.advance(3)
    several = course._objects("validation", 0, 9, 10).transpose(0, 1)
    together = course.learner.run(several.flatten(1, 2))[:3]
    for step in range(9):
        alone = course.learner.run(several[:, step])[:3]
        assert all(torch.equal(one[:, step * 10 :][:, :10], own) for one, own in zip(together, alone, strict=True))


@needs_native
@pytest.mark.native
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        course = course_of("native", representation="gs", seeds=[1, 2, 3])
        course.advance(3)
    finally:
        torch.set_num_threads(before)
    expected = course_of("native", representation="gs", seeds=[3])
    expected.advance(3)
    weights = course.learner.weights(2)
    assert all(torch.equal(value, weights[part]) for part, value in expected.learner.weights(0).items())


class Other(Thing):
    """A world whose objects do not look as its blocks say."""

    def observe(self, objects: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        return super().observe(objects, keys) * 2


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"sender": "FC2L"}, "it splits something other than a sequence"),
    ({"world": "shape", "world_options": {"canvas": 16}}, "objects of the world shape are not rows of concepts"),
    ({"world_options": {"bank": 2, "attributes": 3}}, "objects of the world thing are not rows of concepts"),
]


@needs_native
@pytest.mark.parametrize(
    ("given", "why"), [REFUSED[0], *(pytest.param(*one, marks=pytest.mark.native) for one in REFUSED[1:])]
)
def test_other_games_train_by_pytorch_and_the_log_says_why(
    given: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(IncompatibleError, match=rf"^The engine 'native' cannot run \S+ \({why}\); choose another"):
        course_of("native", **given)
    with caplog.at_level(logging.INFO, "icy.training.learners"):
        assert course_of(**given).learner.engine == "broadcast"
    assert "the engine 'native' is not used" in caplog.text


@needs_native
def test_a_world_that_does_not_look_as_it_says_is_refused() -> None:
    course = course_of("native")
    with pytest.raises(IncompatibleError, match="objects of the world thing differ from rows of concepts"):
        NativeGame([course.learner._model], course.learner._settings, course.device, Other(3, 4))  # type: ignore[union-attr]


@needs_native
@pytest.mark.parametrize("change", mark_others("native", CHANGES, lambda change: change == "fewer"))
def test_wrong_tensors_are_refused_or_converted(change: str) -> None:
    course = course_of("native", representation="cb")
    objects, keys = objects_of(course, count=3), torch.zeros(3, 2, dtype=torch.long)
    try_each(lambda *given: course.learner.train(given[0], None, given[1]), [objects, keys], CHANGES[change])  # type: ignore[arg-type]
    try_each(course.learner.run, [objects[0]], CHANGES[change])
