"""Plans: errors and warnings before training."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from icy.core.errors import InvalidSettingError
from icy.experiments.plan import make_plan
from icy.experiments.sweep import make_sweep, sweep_request
from icy.training.chain_settings import ChainRequest
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest

PROBE: dict[str, Any] = {"model": "sender/FC1L", "grammar": "perm", "quick": True}
GAME: dict[str, Any] = {"sender": "FC1L", "receiver": "FC2L", "quick": True}
RECEIVER: dict[str, Any] = {"model": "receiver/FC1L", "grammar": "perm", "quick": True}
CHAIN: dict[str, Any] = {"model": "FC1L", "grammar": "perm", "quick": True}


@pytest.mark.parametrize(
    ("spec", "given", "sentence"),
    [
        (
            ProbeRequest,
            {**PROBE, "settings": {"temperature": 2.0}},
            "'temperature' does nothing in a probe under 'soft'",
        ),
        (ProbeRequest, {**PROBE, "settings": {"soft_feedback": True}}, "'soft_feedback' does nothing in a probe"),
        (
            EndToEndRequest,
            {**GAME, "settings": {"entropy_weight": 0.1}},
            "'entropy_weight' does nothing in an end-to-end",
        ),
        (EndToEndRequest, {**GAME, "pretrain": "rot", "steps": 100, "cap": 20}, "cap does nothing with 100 updates"),
        (EndToEndRequest, {**GAME, "pretrain": "rot", "most": 9}, "most does nothing with 400 updates"),  # of quick
        (EndToEndRequest, {**GAME, "target": 0.9}, "target does nothing from scratch"),
        (EndToEndRequest, {**GAME, "settings": {"max_steps": 9}}, "'max_steps' does nothing from scratch"),
        (EndToEndRequest, {**GAME, "settings": {"round_ratio": True}}, "'round_ratio' does nothing in an end-to-end"),
        (ProbeRequest, {**PROBE, "protocol": "budget", "settings": {"round_ratio": True}}, "which gives no ratios"),
        (ProbeRequest, {**PROBE, "representation": "gumb", "settings": {"least_squares": True}}, "nothing in senders"),
        (ProbeRequest, {**PROBE, "settings": {"tf32": True}, "device": "cpu"}, "'tf32' does nothing on a CPU"),
        (
            ProbeRequest,
            {**PROBE, "runner": "ray", "device": "cpu", "per_gpu": 2},
            "per_gpu does nothing on a cluster's",
        ),
        (
            ProbeRequest,
            {**RECEIVER, "representation": "gs", "settings": {"tau": 0.5}},
            "'tau' does nothing in receivers",
        ),
        (
            ProbeRequest,
            {**RECEIVER, "representation": "qt", "settings": {"levels": 3}},
            "'levels' does nothing in receiver",
        ),
        (EndToEndRequest, {**GAME, "representation": "gumb", "settings": {"least_squares": True}}, "nothing in a game"),
        (ChainRequest, {**CHAIN, "settings": {"max_steps": 9}}, "'max_steps' does nothing in a chain"),
        (ChainRequest, {**CHAIN, "settings": {"fresh_reading": False}}, "'fresh_reading' does nothing in a chain"),
        (ChainRequest, {**CHAIN, "settings": {"tau": 0.5}}, "'tau' does nothing in a chain under 'soft'"),
        (ChainRequest, {**CHAIN, "model": "receiver/FC1L", "settings": {"symbols": "V"}}, "nothing in receivers"),
        (ChainRequest, {**CHAIN, "replacement": "gradual"}, "replacement does nothing without a population"),
    ],
)
def test_arguments_without_effect_give_a_warning(
    spec: Any, given: dict[str, Any], sentence: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_plan(spec.asked(**given, out=str(tmp_path)))
    assert sentence in caplog.text


@pytest.mark.parametrize(
    ("spec", "given"),
    [
        (ProbeRequest, {**PROBE, "settings": {"temperature": 2.0}, "representation": "gumb"}),
        (ProbeRequest, {**PROBE, "settings": {"tf32": False, "learning_rate": 0.01}}),
        (EndToEndRequest, {**GAME, "settings": {"soft_feedback": True}}),
        (EndToEndRequest, {**GAME, "steps": 100}),
        (EndToEndRequest, {**GAME, "pretrain": "rot", "steps": None, "cap": 20, "target": 0.9}),
        (ProbeRequest, {**PROBE, "protocol": "generalise", "held_out": 0.2, "cap": 5}),
        (ProbeRequest, {**PROBE, "model": "sender/FC2L", "hidden": [8, 16]}),
        (
            ProbeRequest,
            {**PROBE, "model": "receiver/FC1L", "representation": "gumb", "settings": {"least_squares": True}},
        ),
        (ProbeRequest, {**PROBE, "representation": "gs", "settings": {"tau": 0.5}}),
        (
            EndToEndRequest,
            {**GAME, "pretrain": "rot", "pretrain_representation": "gumb", "settings": {"least_squares": True}},
        ),
        (ChainRequest, {**CHAIN, "settings": {"symbols": "V", "batch_size": 64}}),
        (ChainRequest, {**CHAIN, "receiver": "FC1L", "settings": {"soft_feedback": True}}),
        (ChainRequest, {**CHAIN, "replacement": "gradual,simultaneous", "population": "1,2"}),
        (ChainRequest, {**CHAIN, "scheme": "li19-gradual", "replacement": "simultaneous"}),
    ],
)
def test_arguments_with_effect_give_no_warning(
    spec: Any, given: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_plan(spec.asked(**given, out=str(tmp_path)))
    assert "nothing" not in caplog.text


@pytest.mark.parametrize("given", [{"held_out": 0.2}, {"split": "random"}, {"held_out": 0.3}])
@pytest.mark.parametrize("protocol", ["acquire", "budget"])
def test_held_out_is_refused_without_held_out_meanings(protocol: str, given: dict[str, Any], tmp_path: Path) -> None:
    """Also at its default, as it was asked for."""
    spec = ProbeRequest.asked(**PROBE, protocol=protocol, **given, out=str(tmp_path))
    with pytest.raises(InvalidSettingError, match=f"'{protocol}' holds out no meanings"):
        make_plan(spec)
    with pytest.raises(InvalidSettingError, match=f"'{protocol}' holds out no meanings"):
        make_sweep(sweep_request(**PROBE, parts=({"protocol": protocol, **given},), out=str(tmp_path)))


def test_a_sweep_warns_of_settings_without_effect_in_all_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    some = {**PROBE, "settings": {"temperature": 2.0}, "out": str(tmp_path)}
    assert len(make_sweep(sweep_request(**some, representation="soft,gumb")).rows) == 2
    assert "nothing" not in caplog.text
    make_sweep(sweep_request(**some, representation="soft,discr"))
    assert [r.getMessage() for r in caplog.records] == [
        "The setting 'temperature' does nothing in a probe under 'soft'.",
        "The setting 'temperature' does nothing in a probe under 'discr'.",
    ]


def test_in_a_sweep_each_protocol_takes_its_own_arguments(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = sweep_request(**PROBE, protocol="acquire,budget,generalise", held_out=0.3, cap=5, out=str(tmp_path))
    rows = make_sweep(spec).rows
    configs = {row.job.facts["protocol"]: row.job.config(row.job.replicates[0]) for row in rows}
    assert configs["generalise"]["held_out"] == 0.3
    assert [configs[name]["cap"] for name in ("acquire", "budget", "generalise")] == [5, 1, 5]
    assert "held_out" not in configs["acquire"]
    assert not caplog.records
    plain = make_plan(ProbeRequest.asked(**PROBE, cap=5, out=str(tmp_path)))
    assert plain.rows[0].job.config(plain.rows[0].job.replicates[0]) == configs["acquire"]


def test_retries_of_one_worker_do_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_sweep(sweep_request(**PROBE, retries=2, workers=1, protocol=["acquire", "budget"], out=str(tmp_path)))
    assert "retries does nothing with one worker" in caplog.text


def test_tf32_is_named_only_if_every_row_would_use_it_on_a_cpu(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sentence, about = "'tf32' does nothing on a CPU", {"device": "cpu", "out": str(tmp_path)}
    make_plan(ProbeRequest.asked(**PROBE, settings={"tf32": [True, False]}, **about))
    assert sentence not in caplog.text
    parts = ({"model": "sender/FC1L", "grammar": "perm", "settings": {"tf32": True}},)
    make_sweep(sweep_request(parts=parts, quick=True, **about))
    assert sentence in caplog.text


def test_an_argument_that_is_none_is_not_given(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_plan(EndToEndRequest.asked(**GAME, pretrained=None, out=str(tmp_path)))
    make_plan(ProbeRequest.asked(**PROBE, cap=None, max_updates=None, protocol="budget", out=str(tmp_path)))
    assert not caplog.text


@pytest.mark.parametrize("wrong", [None, True, 3])
def test_settings_that_are_not_a_table_are_refused(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="settings must be names with values"):
        make_plan(ProbeRequest.asked(**PROBE, settings=wrong, out=str(tmp_path)))


def test_tables_of_options_are_copied(tmp_path: Path) -> None:
    options = MappingProxyType({"layers": 2})
    request = ProbeRequest.asked(**{**PROBE, "model": "sender/Transformer"}, options=options, out=str(tmp_path))
    (row,) = make_plan(request).rows
    assert pickle.loads(pickle.dumps(row.job)).settings.options == {"layers": 2}


def test_pairs_are_told_apart_from_probes_by_their_protocol(tmp_path: Path) -> None:
    pair: dict[str, Any] = {"kind": "e2e", "sender": "FC1L", "receiver": "FC1L"}
    probe: dict[str, Any] = {"model": "sender/FC1L", "grammar": "perm", "meanings": "3x4", "word_length": 2}
    plan = make_sweep(sweep_request(parts=(pair, probe), quick=True, out=str(tmp_path)))
    assert {row.facts["protocol"] for row in plan.rows} == {"e2e", "acquire"}
    assert plan.varying == ["protocol"]
