"""The in-context learner: seeds, resuming, causality, answers, and files that are no learners."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import icy
from icy import testing
from icy.context.learner import FILE, Learner, LearnerModel, Steps, languages_of, load_learner
from icy.context.learner_settings import LearnerSettings
from icy.context.settings import ContextRequest, context_jobs
from icy.core.errors import IcyError, InvalidSettingError, PluginError, StoreError, UnknownNameError
from icy.text.interface import Question, TextSettings
from icy.training.job import Replicate

SMALL: dict[str, Any] = {"hidden": 12, "layers": 1, "updates": 4}
CELLS = ("Transformer", "GRU", "LSTM")
RECORDED = {"concat": 85 / 96, "perm": 80 / 96, "hol": 29 / 96}


def _learner(**options: Any) -> Learner:
    torch.manual_seed(0)
    return Learner(LearnerSettings(**{**SMALL, **options})).eval()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_later_examples_do_not_change_earlier_answers(cell: str, role: str) -> None:
    update = next(n for n in range(99) if languages_of(LearnerSettings(), n)[0] == role)
    _, inputs, outputs = languages_of(LearnerSettings(), update)
    learner, length = _learner(cell=cell, layers=2), outputs.shape[2] + 1
    whole, _ = learner(role, Steps.of(inputs, outputs))
    assert whole.shape == (len(inputs), inputs.shape[1] * length, 4)
    other = torch.cat([outputs[:, :5], 3 - outputs[:, 5:]], 1)
    changed, _ = learner(role, Steps.of(inputs, other))
    first = slice(5 * length + 1)  # the first answer of the sixth example is not known at its first place
    torch.testing.assert_close(whole[:, first], changed[:, first])
    assert not torch.allclose(whole[:, first.stop :], changed[:, first.stop :])


@pytest.mark.parametrize("cell", CELLS)
def test_a_state_continues_as_the_whole(cell: str) -> None:
    role, inputs, outputs = languages_of(LearnerSettings(), 0)
    learner = _learner(cell=cell, layers=2)
    whole, _ = learner(role, Steps.of(inputs, outputs))
    before, past = learner(role, Steps.of(inputs[:, :6], outputs[:, :6]))
    after, _ = learner(role, Steps.of(inputs[:, 6:], outputs[:, 6:], 6), past)
    torch.testing.assert_close(torch.cat([before, after], 1), whole)


def test_languages_are_new_in_each_update_and_those_of_no_user() -> None:
    settings = LearnerSettings(seed=3)
    drawn = [languages_of(settings, update) for update in range(30)]
    shapes = {(role, *inputs.shape[1:], outputs.shape[2]) for role, inputs, outputs in drawn}
    sizes = {(16, 2, 4), (16, 2, 8), (16, 3, 6), (16, 3, 12)}  # examples, attributes, tokens
    assert shapes == {("sender", *size) for size in sizes} | {("receiver", n, t, a) for n, a, t in sizes}
    again, other = languages_of(settings, 0), languages_of(settings, 0)
    assert torch.equal(again[1], other[1])
    assert not torch.equal(languages_of(settings, 1)[1][:, :4, :2], again[1][:, :4, :2])


@pytest.mark.parametrize("cell", CELLS)
def test_resuming_is_the_same_as_no_interruption(cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from icy.context import learner

    monkeypatch.setattr(learner, "SAVE_EVERY", 2)
    whole = icy.train_context_learner(tmp_path / "whole", cell=cell, **SMALL).read_bytes()
    drawn = learner.languages_of

    def interrupted(settings: LearnerSettings, update: int) -> Any:
        if update == 3:
            raise KeyboardInterrupt
        return drawn(settings, update)

    with monkeypatch.context() as patch:
        patch.setattr(learner, "languages_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            icy.train_context_learner(tmp_path / "half", cell=cell, **SMALL)
    assert load_learner(tmp_path / "half")[1] == 2
    assert icy.train_context_learner(tmp_path / "half", cell=cell, **SMALL).read_bytes() == whole
    assert icy.train_context_learner(tmp_path / "other", cell=cell, seed=1, **SMALL).read_bytes() != whole
    with pytest.raises(StoreError, match="has a learner with other settings"):
        icy.train_context_learner(tmp_path / "half", cell=cell, seed=1, **SMALL)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"cell": "nothing"}, UnknownNameError),
        ({"grammar": "nothing"}, IcyError),
        ({"hidden": 20}, InvalidSettingError),
        ({"updates": 0}, InvalidSettingError),
        ({"lr": 0}, InvalidSettingError),
    ],
)
def test_settings_that_are_not_accepted(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        LearnerSettings(**options)


@pytest.mark.parametrize("content", [b"", b"no", "cut", "other", None])
def test_a_file_that_is_no_learner_is_an_error_of_one_sentence(content: Any, tmp_path: Path) -> None:
    file = tmp_path / "file"
    if content == "cut":
        file.write_bytes(icy.train_context_learner(tmp_path / "whole", **SMALL).read_bytes()[:-9])
    elif content == "other":
        from icy.training.weights import pack_weights

        file.write_bytes(pack_weights({"x": torch.zeros(2)}, {"setup": {}}))
    elif content is not None:
        file.write_bytes(content)
    with pytest.raises(StoreError, match=r"no learner of `icy learner`, or is damaged\.$|cannot be read: .*\.$"):
        icy.in_context(f"learner#{file}", "concat", quick=True, out=tmp_path / "results")


def test_questions_that_it_cannot_answer(tmp_path: Path) -> None:
    model = LearnerModel(str(icy.train_context_learner(tmp_path / "file", **SMALL)), TextSettings())
    with pytest.raises(PluginError, match="answers only the questions of `icy context`"):
        model.reply(Question("Hello?"))
    found = icy.in_context("learner", "concat", meanings="3x5", seeds=1, out=tmp_path / "results")
    assert "reads at most 3 attributes of 4 values" in str(found.records[0]["error"])


@pytest.mark.parametrize("cell", CELLS)
def test_texts_and_choices_are_the_same_answers(cell: str, tmp_path: Path) -> None:
    file = icy.train_context_learner(tmp_path / "file", cell=cell, **SMALL)
    curves = []
    small: dict[str, Any] = {"meanings": "2x4", "word_length": 2, "held_out": 5, "seeds": 1, "protocol": "generalise"}
    ways: list[dict[str, Any]] = [{}, {"batch": 5}, {"answers": "choices"}]
    for number, options in enumerate(ways):
        found: Any = icy.in_context(f"learner#{file}", "perm", out=tmp_path / str(number), **small, **options)
        curves.append([record["curve"] for record in found.records])
    assert curves[0] == curves[1] == curves[2]


def test_answers_are_those_of_the_whole_sequence(tmp_path: Path) -> None:
    """Greedy answers from one call for all steps, without a kept state."""
    model = LearnerModel(str(icy.train_context_learner(tmp_path / "file", **SMALL)), TextSettings(temperature=0))
    (job,) = context_jobs(
        ContextRequest.asked(model="learner", grammar="perm", meanings="2x4", word_length=2, held_out=5)
    )
    shown, _ = job.settings.shown(123, job.language(Replicate("perm", 123)))
    (answer,) = job.settings.sheet.read(model.reply(Question("", data=shown)))[-1:]
    known: list[int] = []
    for _ in range(4):
        inputs = torch.tensor(np.vstack([shown.inputs, shown.queries[-1:]]).astype(np.int64))[None]
        rows = np.vstack([shown.outputs, [*known, *[0] * (4 - len(known))]])
        scores, _ = model.learner("sender", Steps.of(inputs, torch.tensor(rows.astype(np.int64))[None]))
        known.append(int(scores[0, len(known) - 5].argmax()))
    assert answer == known


def test_the_prompt_of_the_page_is_the_one_that_is_sent() -> None:
    (job,) = context_jobs(ContextRequest.asked(model="learner", grammar="rot", most=4))
    shown, _ = job.settings.shown(123, job.language(Replicate("rot", 123)))
    prompt = shown.sheet.prompt(replace(shown, queries=shown.queries[:1]))
    assert f"```\n{prompt}\n```" in Path("docs/context.md").read_text(encoding="utf-8")


def test_the_learner_that_comes_with_icy_answers_as_recorded(tmp_path: Path) -> None:
    found: Any = icy.in_context(
        "learner", "perm,hol", word_length=2, seeds=1, protocol="generalise", most=16, out=tmp_path
    )
    accuracies = {record["grammar"]: record["accuracy"] for record in found.records}
    assert accuracies == pytest.approx(RECORDED, abs=1 / 96)  # a token, as machines round differently
    assert load_learner(FILE)[0].settings == LearnerSettings()
    testing.check("learner", "text-model")
