"""Chains of learners: known long-run behavior; equal numbers alone, in stacks and resumed; hand-computed measures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from math import comb, isnan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import icy
from icy.cli import main
from icy.config.settings import SCHEMES
from icy.core.errors import InvalidSettingError
from icy.experiments.iterate import chain_jobs
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.records.kinds import job_kind
from icy.records.store import CHECKPOINTS
from icy.training import chain_training, lockstep
from icy.training.chain_settings import ChainRequest, ChainSettings, bottleneck_share
from icy.training.job import Outcome
from icy.training.lockstep import FORMAT, Lockstep, checkpoint_of
from tests.pages import code, shell_commands, text
from tests.training.resuming import killed, leave_often, resumed

PAGE = "docs/iterated-learning.md"  # its learner knows two languages, with these priors
PRIOR, NOISE = (0.3, 0.7), 0.1  # probability of the wrong token
TINY: dict[str, Any] = {
    "meanings": "2x3",
    "word_length": 2,
    "hidden": 8,
    "chains": 2,
    "generations": 3,
    "updates": 60,
    "workers": 1,
    "progress": False,
}
CURVE = job_kind("chain").curve
NUMBERS = (
    *("accuracy", "curve", "steps", "agreement", "distinct", "seen_accuracy", "unseen_accuracy", "reached"),
    "communication",
)
LEARNERS: dict[str, dict[str, Any]] = {
    "sender": {"model": "FC2L"},
    "receiver": {"model": "receiver/FC2L"},
    "pair": {"model": "FC2L", "receiver": "RNN1L:GRU"},
    "playing pair": {"model": "FC2L", "receiver": "RNN1L:GRU", "interaction": 30},
    "population": {"model": "FC2L", "population": 3},
    "gradual population": {"model": "FC2L", "receiver": "FC2L", "population": 2, "replacement": "gradual"},
}
of_learners = pytest.mark.parametrize(
    "learner",
    [pytest.param(name, marks=() if name == "sender" else pytest.mark.slow) for name in LEARNERS],
)


def numbers(result: icy.ProbeResult) -> dict[tuple[str, int], list[Any]]:
    return {(r["grammar"], r["seed"]): [dict(r)[name] for name in NUMBERS] for r in result.records}


def texts(outcomes: Sequence[Outcome]) -> list[str]:
    """Return all of some outcomes except times, as text, in which NaN equals NaN."""
    return sorted(str(replace(outcome, seconds=0.0)) for outcome in outcomes)


# -- a learner with a known prior --------------------------------------------------------------------------------------


@pytest.fixture
def plug_in(forgetting: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plug-in and the first language of the documentation, as files in the working folder."""
    (block,) = [block for block in code(PAGE) if block.startswith("# bayes.py")]
    (tmp_path / "bayes.py").write_text(block)
    (tmp_path / "first.csv").write_text(next(block for block in code(PAGE, "") if block.startswith("a,b,message")))
    monkeypatch.chdir(tmp_path)


def chosen(choice: str, errors: np.ndarray) -> np.ndarray:
    """Return the probabilities that a learner knows each language, if this number of two tokens is wrong in each."""
    weights = np.array(PRIOR) * NOISE**errors * (1 - NOISE) ** (2 - errors)
    return weights / weights.sum() if choice == "sample" else np.eye(2)[weights.argmax()]


def step_of(choice: str) -> np.ndarray:
    """Return the probabilities [from, to] that the next learner knows each language, as a matrix.

    A learner hears two meanings, and in each of them one token distinguishes the languages.
    """
    step = np.zeros((2, 2))
    for language in (0, 1):
        for wrong in range(3):
            likely = comb(2, wrong) * NOISE**wrong * (1 - NOISE) ** (2 - wrong)
            errors = np.array([wrong, 2 - wrong] if language == 0 else [2 - wrong, wrong])
            step[language] += likely * chosen(choice, errors)
    return step


def test_the_long_run_of_samplers_is_their_prior_and_of_maximizers_their_mode() -> None:
    assert np.linalg.matrix_power(step_of("sample"), 200)[0] == pytest.approx(PRIOR)
    assert np.linalg.matrix_power(step_of("maximum"), 200)[0, 1] > 0.9


def probability_of_second(choice: str, generations: int) -> float:
    """Return the probability that a learner knows the second language. The first teacher makes no errors."""
    first = chosen(choice, np.array([0, 2]))
    return float((first @ np.linalg.matrix_power(step_of(choice), generations - 1))[1])


def expected_survival(choice: str, generations: int) -> float:
    """Return the exact mean share of tokens of the first language after some generations.

    The first token is wrong in one of ten meanings of the first language, and in nine of ten of the second.
    """
    return 1 - NOISE - probability_of_second(choice, generations) * (1 - 2 * NOISE) / 2


@pytest.mark.slow
@pytest.mark.usefixtures("plug_in")
@pytest.mark.parametrize("choice", ["sample", "maximum"])
def test_chains_of_bayesian_learners_behave_as_computed(choice: str) -> None:
    (command,) = [line for _, line in shell_commands(PAGE, "sh") if "bayes.py" in line]
    done = CliRunner().invoke(main, [*shlex.split(command)[1:], "--option", f"choice={choice}", "--workers", "1"])
    assert done.exit_code == 0, done.output
    records = icy.ProbeResult.load("icy-results").records
    survival = np.array([[dict(zip(CURVE, row, strict=True))["accuracy"] for row in r["curve"]] for r in records])
    assert survival.shape == (100, 11)
    for generation in (1, 2, 5, 10):
        own = survival[:, generation]
        assert abs(own.mean() - expected_survival(choice, generation)) < 4 * own.std() / sqrt(len(own))
    rows = [line.split("|") for line in text(PAGE).splitlines() if line.startswith(("| draw", "| take"))]
    row = rows[choice == "maximum"]
    assert float(row[2]) == pytest.approx(probability_of_second(choice, 10), abs=0.005)
    assert float(row[3]) == pytest.approx(expected_survival(choice, 10), abs=0.005)
    assert float(row[4].split()[0]) == pytest.approx(survival[:, -1].mean(), abs=0.006)


# -- the same numbers --------------------------------------------------------------------------------------------------


@of_learners
def test_a_chain_has_the_same_numbers_alone_and_in_a_stack(learner: str, tmp_path: Path) -> None:
    options = {**LEARNERS[learner], **TINY}
    together = numbers(icy.iterate(grammar=["rot", "hol"], out=tmp_path / "a", **options))
    for grammar, seed in together:
        alone = icy.iterate(grammar=grammar, out=tmp_path / "b", **{**options, "chains": [seed]})
        assert numbers(alone)[grammar, seed] == together[grammar, seed]


@pytest.mark.slow
@of_learners
def test_a_chain_killed_within_a_generation_resumes_to_the_same_bits(learner: str, tmp_path: Path) -> None:
    options = {name: value for name, value in TINY.items() if name not in ("workers", "progress")}
    (job,) = chain_jobs(ChainRequest.asked(**LEARNERS[learner], grammar="rot", **options))
    whole = list(replace(job, folder=str(tmp_path / "whole")).train())
    moments = 0

    def count(loop: Lockstep) -> None:
        nonlocal moments
        moments += 1

    with pytest.MonkeyPatch.context() as patched:
        leave_often(patched)
        patched.setattr(Lockstep, "save_if_due", count)
        list(replace(job, folder=str(tmp_path / "counted")).train())
    for share in (0.15, 0.6, 0.95):
        of = replace(job, folder=str(tmp_path / f"{share}"))
        ended = killed(of, int(share * moments))
        assert not ended
        assert len(list((tmp_path / f"{share}" / CHECKPOINTS).iterdir())) == 2
        assert texts(resumed(of, ended)) == texts(whole)
        assert not (tmp_path / f"{share}" / CHECKPOINTS).exists()


def test_a_killed_chain_resumes_from_its_last_generation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = {name: value for name, value in TINY.items() if name not in ("workers", "progress")}
    (job,) = chain_jobs(ChainRequest.asked(model="FC2L", grammar="rot", **options))
    whole = list(replace(job, folder=str(tmp_path / "whole")).train())
    trained: list[int] = []
    train = chain_training._next_generation

    def counted(job: Any, chains: Sequence[Any], *rest: Any) -> Any:
        trained.append(chains[0].generation + 1)
        if trained == [1, 2, 3]:
            raise KeyboardInterrupt
        return train(job, chains, *rest)

    monkeypatch.setattr(chain_training, "SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SHARE", np.inf)  # learners end before their first checkpoint
    monkeypatch.setattr(chain_training, "_next_generation", counted)
    of = replace(job, folder=str(tmp_path / "killed"))
    with pytest.raises(KeyboardInterrupt):
        list(of.train())
    assert texts(list(of.train())) == texts(whole)
    assert trained == [1, 2, 3, 3]


@pytest.mark.parametrize(
    "state", [{"curve": [], "messages": []}, {"format": FORMAT}, {"format": FORMAT, "chain": {"rows": []}}]
)
def test_the_checkpoint_of_another_version_is_not_used(
    state: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (job,) = chain_jobs(ChainRequest.asked(model="FC2L", grammar="rot", quick=True, chains=1, generations=1, updates=5))
    job = replace(job, folder=str(tmp_path))
    checkpoint_of(job, job.replicates[0]).save(state)
    (outcome,) = job.train()
    assert len(outcome.curve) == 2
    assert "another version of icy saved it" in caplog.text


@pytest.mark.parametrize("representation", ["soft", "gumb", "discr"])
@pytest.mark.parametrize(
    "learner",
    [{}, pytest.param({"receiver": "RNN1L:GRU", "interaction": 5}, marks=pytest.mark.slow)],
    ids=["sender", "pair"],
)
def test_every_representation_makes_chains(representation: str, learner: dict[str, Any], tmp_path: Path) -> None:
    result = icy.iterate("RNNAutoReg:GRU", "perm", representation=representation, out=tmp_path, **learner, **TINY)
    assert len(result.records) == 2
    assert not result.failures


# -- measures ----------------------------------------------------------------------------------------------------------


def test_without_a_bottleneck_a_hash_table_passes_a_language_on_unchanged(tmp_path: Path) -> None:
    result = icy.iterate("Hashtable", "hol", bottleneck=1, target="none", out=tmp_path, **TINY)
    for record in result.records:
        last = dict(zip(CURVE, record["curve"][-1], strict=True))
        assert (record["accuracy"], last["agreement"], last["seen_accuracy"], last["distinct"]) == (1, 1, 1, 1)
        assert last["unseen_accuracy"] is None


def test_a_hash_table_says_the_first_token_for_each_unseen_meaning(tmp_path: Path) -> None:
    (record,) = icy.iterate("Hashtable", "hol", target="none", out=tmp_path, **{**TINY, "chains": 1}).records
    languages = [Language.load(tmp_path / "languages" / f"{record['key']}-{n:02d}.npz") for n in range(4)]
    for before, now, row in zip(languages, languages[1:], record["curve"][1:], strict=False):
        kept = (now.messages == before.messages).all(1)
        assert np.all(now.messages[~kept] == 0)
        point = dict(zip(CURVE, row, strict=True))
        assert point["agreement"] == pytest.approx((now.messages == before.messages).mean())
        assert point["accuracy"] == pytest.approx((now.messages == languages[0].messages).mean())
        assert point["distinct"] == now.distinct_messages / 9
        topsim = icy.metrics.topsim(now).value
        assert point["topsim"] == (None if isnan(topsim) else pytest.approx(topsim))
    assert record["curve"][0][:4] == [0, 1.0, None, 1.0]


def test_a_learner_stops_at_the_target_or_after_the_most_updates(tmp_path: Path) -> None:
    result = icy.iterate("FC2L", "concat", out=tmp_path, **{**TINY, "updates": 500}, target=0.9)
    for record in result.records:
        for row in record["curve"][1:]:
            point = dict(zip(CURVE, row, strict=True))
            assert point["seen_accuracy"] >= 0.9 or point["updates"] == 500
        assert record["steps"] == sum(row[CURVE.index("updates")] for row in record["curve"])


def test_a_receiver_sends_the_message_of_its_teacher_that_it_most_probably_reads_as_the_meaning(tmp_path: Path) -> None:
    (record,) = icy.iterate("receiver/Hashtable", "hol", target="none", out=tmp_path, **{**TINY, "chains": 1}).records
    languages = [Language.load(tmp_path / "languages" / f"{record['key']}-{n:02d}.npz") for n in range(4)]
    for before, now, row in zip(languages, languages[1:], record["curve"][1:], strict=False):
        assert {*map(tuple, now.messages.tolist())} <= {*map(tuple, before.messages.tolist())}
        point = dict(zip(CURVE, row, strict=True))
        assert point["agreement"] == pytest.approx((now.messages == before.messages).mean())
        assert point["seen_accuracy"] <= 1
    assert dict(zip(CURVE, record["curve"][1], strict=True))["seen_accuracy"] == 1


def test_without_a_bottleneck_a_receiver_that_is_a_hash_table_passes_a_language_on_unchanged(tmp_path: Path) -> None:
    (record,) = icy.iterate(
        "receiver/Hashtable", "perm", bottleneck=1, target="none", out=tmp_path, **{**TINY, "chains": 1}
    ).records
    assert (record["accuracy"], record["communication"], record["distinct"]) == (1, 1, 1)


def test_before_they_interact_pairs_speak_as_their_senders_do_and_receivers_read_this(tmp_path: Path) -> None:
    record = icy.iterate("FC2L", "concat", receiver="FC2L", bottleneck=1, out=tmp_path, **TINY).records[0]
    assert record["model"] == "FC2L+FC2L"
    assert record["curve"][0][CURVE.index("communication")] is None
    assert 0 < record["communication"] <= 1


@pytest.mark.slow
def test_pairs_that_interact_understand_each_other_better(tmp_path: Path) -> None:
    options = {**TINY, "model": "FC2L", "grammar": "hol", "receiver": "FC2L", "generations": 1, "updates": 200}
    result = icy.iterate(interaction=[0, 300], out=tmp_path, **options)
    silent, playing = ([r for r in result.records if r.get("interaction", 0) == n] for n in (0, 300))
    for one, other in zip(silent, playing, strict=True):
        assert "interaction" not in one
        assert other["communication"] > one["communication"]
        assert other["steps"] == one["steps"] + 300


@pytest.mark.parametrize("replacement", ["simultaneous", "gradual"])
def test_each_learner_learns_from_a_member_of_the_last_generation(replacement: str, tmp_path: Path) -> None:
    (record,) = icy.iterate(
        *("Hashtable", "hol"),
        **{**TINY, "chains": 1, "generations": 4, "meanings": "2x4"},
        bottleneck=0.75,
        target="none",
        population=3,
        replacement=replacement,
        out=tmp_path,
    ).records

    def language(name: str) -> np.ndarray:
        return Language.load(tmp_path / "languages" / f"{record['key']}-{name}.npz").messages

    first = language("00")
    members, teachers = [first] * 3, set()
    for generation in range(1, 5):
        replaced = [0, 1, 2] if replacement == "simultaneous" else [(generation - 1) % 3]
        now = {
            member: language(f"{generation:02d}" + (f".{member:02d}" if replaced[0] != member else ""))
            for member in replaced
        }
        for said in now.values():  # a hash table says the first token for unseen meanings
            seen = said.any(1)
            taught = [teacher for teacher, known in enumerate(members) if (known[seen] == said[seen]).all()]
            assert taught
            teachers |= set(taught)
        members = [now.get(member, known) for member, known in enumerate(members)]
        point = dict(zip(CURVE, record["curve"][generation], strict=True))
        assert point["accuracy"] == pytest.approx(np.mean([(one == first).mean() for one in members]))
        assert point["updates"] == TINY["updates"] * len(replaced)
    assert len(teachers) > 1
    assert len(record["files"]) == 1 + 4 * len(replaced)


def test_a_scheme_sets_options_that_are_not_given(tmp_path: Path) -> None:
    options = {**TINY, "chains": 1, "generations": 1, "grammar": "perm", "model": "FC2L", "out": tmp_path}
    (record,) = icy.iterate(scheme="li19-gradual", population=2, **options).records
    assert (record["population"], record["replacement"]) == (2, "gradual")


@pytest.mark.parametrize(
    ("scheme", "given", "expected"),
    [
        ("ren20", {"receiver": "FC2L"}, {"interaction": 4000}),
        ("elberg25", {"receiver": "FC2L", "interaction": 7}, {"interaction": 7}),
        ("elberg25", {"receiver": "FC2L"}, {"interaction": 4000}),
        ("cheng23", {}, {"generations": 1, "interaction": 0, "population": 1}),
        ("li19-simultaneous", {}, {"population": 5, "replacement": "simultaneous"}),
    ],
)
def test_schemes_have_the_options_of_their_papers(scheme: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    for quick in (False, True):
        spec = ChainRequest.asked(model="FC2L", grammar="perm", scheme=scheme, quick=quick, **given)
        (job,) = chain_jobs(spec)
        assert {name: getattr(job.settings, name) for name in expected} == expected


def test_every_scheme_is_in_the_help_and_the_docs() -> None:
    page = text("docs/iterated-learning.md")
    for name in SCHEMES:
        assert f'"{name}"' in (ChainRequest.__doc__ or "")
        assert f"| `{name}` |" in page


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_a_bottleneck_is_a_share_or_a_number_of_meanings() -> None:
    space = MeaningSpace(2, 3)
    assert bottleneck_share(0.5, space) == 0.5
    assert bottleneck_share("6", space) == pytest.approx(6 / 9)
    split = ChainSettings(model="sender/FC2L", meanings="2x3", bottleneck=bottleneck_share(6, space)).split()
    assert split is not None
    assert len(split.held_out(space, 1)) == 3
    with pytest.raises(InvalidSettingError):
        bottleneck_share(10, space)


def test_a_pair_in_chains_is_made_once() -> None:
    (job,) = chain_jobs(ChainRequest.asked(model="FC2L", receiver="FC2L", grammar="perm", quick=True))
    assert job.settings.pair is job.settings.pair  # its models are part of the key of every replicate


def test_the_help_of_chains_promises_no_table_of_meanings() -> None:
    shown = " ".join(CliRunner().invoke(main, ["iterate", "--help"]).output.split())
    assert "file of the meanings" not in shown  # which chains refuse
    assert "each a separate row: 64,128." in shown
