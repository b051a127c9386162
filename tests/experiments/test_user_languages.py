"""Languages in place of grammars: Language objects, files, and names of languages in results."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import icy
from icy.core.errors import InvalidSettingError, StoreError
from icy.experiments.plan import make_plan
from icy.experiments.sweep import make_sweep, sweep_request
from icy.languages.language import Language
from icy.records.load import select
from icy.records.pack import add_to_pack
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest
from tests.cli.helpers import assert_one_sentence, run
from tests.experiments.helpers import Counter
from tests.helpers import all_numbers
from tests.training.resuming import killed, numbers, resumed

SIZES: dict[str, Any] = {"hidden": 8, "seeds": 2, "target": 0.6, "workers": 1, "settings": {"check_every": 20}}
"""Arguments of a probe without the sizes of its language."""
LEARNED = ("steps", "accuracy", "crossing", "baseline_crossing", "baseline_steps", "reason", "curve")


def perm(seed: int = 123, space: str = "2x3") -> Language:
    return icy.make_language("perm", space, word_length=2, seed=seed)


def table_of(language: Language, file: Path) -> Path:
    """Write a language as a table of a user: without its name and its vocabulary."""
    rows = {f"m{a}": column for a, column in enumerate(language.space.all().T)}
    pd.DataFrame({**rows, "message": [" ".join(map(str, m)) for m in language.messages.tolist()]}).to_csv(
        file, index=False
    )
    return file


def keys(grammar: Any, out: Path, **changes: Any) -> dict[tuple[str, int], str]:
    plan = make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=grammar, out=out, **{**SIZES, **changes}))
    return {(r.condition, r.seed): row.job.key(r) for row in plan.rows for r in row.job.replicates}


def of_grammar(result: icy.ProbeResult, grammar: str) -> list[dict[str, Any]]:
    return [{n: r.get(n) for n in LEARNED} for r in result.records if r["grammar"].partition("@")[0] == grammar]


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("model", ["sender/FC2L", "receiver/FC2L", "sender/HierZero:RNN"])
def test_a_language_is_learned_as_its_grammar_is(model: str, tmp_path: Path) -> None:
    given = {**SIZES, "seeds": [123], "word_length": 2}
    language = icy.make_language("perm", "3x4", word_length=2, seed=123)
    ours = icy.probe(model, [language], out=tmp_path / "language", **given)
    theirs = icy.probe(model, "perm", meanings="3x4", out=tmp_path / "grammar", **given)
    assert of_grammar(ours, "perm") == of_grammar(theirs, "perm")
    assert of_grammar(ours, "concat") == of_grammar(theirs, "concat")
    assert len(of_grammar(ours, "perm")) == 1


def test_all_seeds_learn_the_same_language(tmp_path: Path) -> None:
    job = make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=perm(), out=tmp_path, **SIZES)).rows[0].job
    taught = [r for r in job.replicates if r.condition != "concat"]
    assert [r.seed for r in taught] == [123, 124]
    assert all(job.language(r).digest() == perm().digest() for r in taught)  # type: ignore[attr-defined]


def test_a_job_takes_its_language_to_another_process(tmp_path: Path) -> None:
    """Without the file, and without anything that this process has registered."""
    file = table_of(perm(), tmp_path / "emerged.csv")
    job = make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=file, out=tmp_path / "r", **SIZES)).rows[0].job
    file.unlink()
    packed = pickle.loads(pickle.dumps(job.for_travel()))
    assert numbers(list(packed.train())) == numbers(list(job.for_travel().train()))


@pytest.mark.process
def test_workers_learn_the_same(tmp_path: Path) -> None:
    file = table_of(perm(), tmp_path / "emerged.csv")
    for workers in (1, 2):
        icy.probe(
            ["sender/FC2L", "receiver/FC2L"], str(file), out=tmp_path / str(workers), **{**SIZES, "workers": workers}
        )
    assert all_numbers(tmp_path / "1") == all_numbers(tmp_path / "2")


def test_a_killed_training_resumes_to_the_same_bits(tmp_path: Path) -> None:
    job = make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=perm(), out=tmp_path / "r", **SIZES)).rows[0].job
    ended = killed(job, 3)
    whole = make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=perm(), out=tmp_path / "w", **SIZES)).rows[0].job
    assert numbers(resumed(job, ended)) == numbers(list(whole.train()))


def test_more_seeds_train_only_the_missing_replicates(tmp_path: Path) -> None:
    icy.probe("sender/FC2L", perm(), out=tmp_path / "two", **{**SIZES, "seeds": 1})
    icy.probe("sender/FC2L", perm(), out=tmp_path / "two", **SIZES)
    icy.probe("sender/FC2L", perm(), out=tmp_path / "one", **SIZES)
    assert all_numbers(tmp_path / "one") == all_numbers(tmp_path / "two")


# -- keys and names ----------------------------------------------------------------------------------------------------


def test_a_file_and_an_object_have_one_key_whatever_their_names(tmp_path: Path) -> None:
    language = perm()
    of_object = keys(language, tmp_path)
    files = [tmp_path / name for name in ("emerged.csv", "other.csv", "kept.npz", "kept.parquet", "saved.csv")]
    for file in files[:2]:
        table_of(language, file)
    for file in files[2:]:
        language.save(file)
    for file in files:
        found = keys([str(file)], tmp_path)
        assert list(found.values()) == list(of_object.values())
        assert list(found)[-1] == (f"{file.stem}@{language.digest()}", 124)


def test_another_content_under_the_same_name_is_another_language(tmp_path: Path) -> None:
    file = table_of(perm(), tmp_path / "emerged.csv")
    first = icy.probe("sender/FC2L", file, out=tmp_path / "r", **SIZES)
    table_of(perm(124), file)
    second = icy.probe("sender/FC2L", file, out=tmp_path / "r", **SIZES)
    grammars = [sorted({r["grammar"] for r in result.records}) for result in (first, second)]
    assert grammars[0] != grammars[1]
    assert sorted(
        select(icy.ProbeResult.load(tmp_path / "r"), grammars=["emerged"]).to_dataframe()["grammar"]
    ) == sorted(2 * [f"emerged@{perm(seed).digest()}" for seed in (123, 124)])


def test_a_renamed_file_is_found_on_file_and_shown_under_its_name(tmp_path: Path) -> None:
    file = table_of(perm(), tmp_path / "emerged.csv")
    icy.probe("sender/FC2L", file, out=tmp_path / "r", **SIZES)
    counter = Counter()
    result = icy.probe(
        "sender/FC2L", file.rename(tmp_path / "epoch10.csv"), out=tmp_path / "r", watcher=counter, **SIZES
    )
    assert counter.keys == []
    assert f"epoch10@{perm().digest()}" in result.table()
    assert len(icy.ProbeResult.load(tmp_path / "r").records) == 4


def test_the_same_content_twice_is_one_language(tmp_path: Path) -> None:
    first, second = (table_of(perm(), tmp_path / f"{name}.csv") for name in ("a", "b"))
    assert list(keys([first, second, perm()], tmp_path)) == [
        *(("concat", s) for s in (123, 124)),
        *((f"a@{perm().digest()}", s) for s in (123, 124)),
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("rot+perm", "rot-perm"), ("", "language"), ("a b/c:d*[e]@f", "a-b-c-d-e-f"), ("日本.1", "日本.1")],
)
def test_names_have_no_characters_with_a_meaning(name: str, shown: str, tmp_path: Path) -> None:
    language = Language("2x3", perm().messages, 4, name=name)
    assert list(keys(language, tmp_path))[-1] == (f"{shown}@{language.digest()}", 124)


def test_wildcards_are_of_grammars_alone(tmp_path: Path) -> None:
    icy.probe("sender/FC2L", perm(), out=tmp_path, **SIZES)
    assert not [name for name in icy.list_grammars() if "@" in name]
    found = keys(["all", perm()], tmp_path, meanings="2x3", word_length=2)
    assert [name for name, _ in found if "@" in name] == [f"perm@{perm().digest()}"] * 2
    assert ("rot", 123) in found


def test_a_file_called_as_a_grammar_does_not_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table_of(perm(), tmp_path / "rot")
    table_of(perm(), tmp_path / "mine")
    assert [name for name, _ in keys(["rot"], tmp_path, seeds=1)] == ["concat", "rot"]
    assert [name for name, _ in keys(["mine"], tmp_path, seeds=1)] == ["concat", f"mine@{perm().digest()}"]


# -- after the file is gone --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_results_outlive_the_file(tmp_path: Path) -> None:
    file, out = table_of(perm(), tmp_path / "emerged.csv"), tmp_path / "r"
    given = {**SIZES, "keep_models": True}
    first = icy.probe("sender/FC2L", file, out=out, **given)
    file.unlink()
    loaded = icy.ProbeResult.load(out)
    assert loaded.table() == first.table()
    assert sum(p.numel() for p in loaded.model("emerged", 123).parameters()) == loaded.records[0]["parameters"]["true"]
    name = f"emerged@{perm().digest()}"
    counter = Counter()
    icy.probe("sender/FC2L", name, out=out, watcher=counter, **{**given, "seeds": 3})
    assert len(counter.keys) == 2  # of the third seed
    with pytest.raises(StoreError, match="and no file has this name"):
        icy.probe("sender/FC2L", file, out=out, **given)
    with pytest.raises(StoreError, match="give the file of this language"):
        icy.probe("sender/FC2L", name, out=tmp_path / "elsewhere", **given)


def test_a_pack_has_the_language(tmp_path: Path) -> None:
    icy.probe("sender/FC2L", perm(), out=tmp_path / "r", **SIZES)
    add_to_pack(tmp_path / "pack.parquet", tmp_path / "r")
    kept = pyarrow.parquet.read_table(tmp_path / "pack.parquet")["files"].to_pylist()
    assert [name for files in kept for name, _ in files] == [f"grammars/{perm().digest()}.npz"]  # once
    counter = Counter()
    given = {**SIZES, "seeds": 3, "start": tmp_path / "pack.parquet", "watcher": counter}
    icy.probe("sender/FC2L", f"perm@{perm().digest()}", out=tmp_path / "new", **given)
    assert len(counter.keys) == 2
    assert Language.load(tmp_path / "new" / "grammars" / f"{perm().digest()}.npz") == perm()


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_languages_decide_the_sizes(tmp_path: Path) -> None:
    few = Language("2x3", perm().messages, 4, name="few")
    many = Language("2x3", perm(124).messages, 9, name="many")
    for given, sizes in [
        ({}, ("2x3", 9, 2)), ({"quick": True}, ("2x3", 9, 2)), ({"vocab_size": 12}, ("2x3", 12, 2)),
        ({"meanings": (2, 3), "word_length": 2}, ("2x3", 9, 2)),
    ]:  # fmt: skip
        job: Any = (
            make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=[few, many], out=tmp_path, **given)).rows[0].job
        )
        assert (str(job.settings.space), job.settings.vocab_size, job.settings.word_length) == sizes
        for replicate in job.replicates:
            assert job.language(replicate).vocab_size == sizes[1]
    one = make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=few, out=tmp_path)).rows[0].job
    assert one.facts["V"] == "4"


def test_a_vocabulary_that_is_too_small_for_concat(tmp_path: Path) -> None:
    language = Language("2x3", [[a, b] for a in range(3) for b in range(3)], 3, name="reused")
    with pytest.raises(InvalidSettingError, match=r"concat, .* needs 6 words of 1 token, .* 6 or more\. 'reused@"):
        icy.probe("sender/FC2L", language, out=tmp_path)
    assert not icy.probe("sender/FC2L", language, vocab_size=6, out=tmp_path, **SIZES).failures


# -- files that are none -----------------------------------------------------------------------------------------------


# -- meanings that share a message -------------------------------------------------------------------------------------


def best_share(language: Language) -> float:
    """The accuracy of the best receiver, of all that there are."""
    heard = [tuple(m) for m in language.messages.tolist()]
    meanings = language.space.all().tolist()
    right = 0
    for message in set(heard):
        meant = [m for m, h in zip(meanings, heard, strict=True) if h == message]
        right += sum(
            max(sum(m[a] == v for m in meant) for v in range(language.space.values)) for a in range(len(meant[0]))
        )
    return right / np.size(meanings)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_receiver(seed: int) -> None:
    draw = np.random.default_rng(seed)
    language = Language("2x3", draw.integers(2, size=(9, 2)), 2)
    assert language.best_receiver_accuracy == pytest.approx(best_share(language), abs=1e-12)


def test_receivers_are_warned_of_shared_messages(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    language = Language("2x3", np.repeat([[0, 1], [1, 0], [2, 2]], 3, axis=0), 6, name="short")
    with caplog.at_level(logging.WARNING):
        make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=language, out=tmp_path))
    assert not caplog.messages
    with caplog.at_level(logging.WARNING):
        make_plan(ProbeRequest.asked(model=["receiver/FC2L", "receiver/FC1L"], grammar=language, out=tmp_path))
    (message,) = caplog.messages
    assert "9 meanings share 3 messages: a receiver can read at most 66.7%" in message


# -- sweeps and pairs --------------------------------------------------------------------------------------------------


def test_sweeps_take_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table_of(perm(), tmp_path / "one.csv")
    table_of(perm(124), tmp_path / "two.csv")
    (tmp_path / "sweep.toml").write_text(
        'model = "sender/FC2L"\nhidden = 8\nseeds = 1\n'
        '[[sweep]]\ngrammar = ["one.csv", "rot"]\n[[sweep]]\ngrammar = "two.csv"\n'
    )
    result = icy.sweep(file="sweep.toml", out="r", workers=1, target=0.6, settings={"check_every": 20})
    names = [f"{name}@{perm(seed).digest()}" for name, seed in (("one", 123), ("two", 124))]
    assert [r["grammar"] for r in result.records] == ["concat", names[0], "rot", names[1]]
    assert not result.failures
    assert result.table(log=False).count("sender/FC2L") == 1
    spec = sweep_request(model="sender/FC2L", grammar=perm(), meanings=["2x3", "3x4"], out="r")
    with pytest.raises(InvalidSettingError, match="meanings is 3x4"):
        make_sweep(spec)


@pytest.mark.slow
def test_pairs_learn_a_language_first(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "steps": 4, "report_every": 2, "hidden": 16, "seeds": [123], "workers": 1, "target": 0.9,
        "word_length": 2, "meanings": "2x3",
    }  # fmt: skip
    ours = icy.end_to_end("FC1L", "FC1L", perm(), out=tmp_path / "language", **given)
    theirs = icy.end_to_end("FC1L", "FC1L", "perm", out=tmp_path / "grammar", **given)
    assert not ours.failures
    wanted = ("sender_steps", "receiver_steps", "end_to_end_loss", "curve")
    assert [[r.get(n) for n in wanted] for r in ours.records] == [[r.get(n) for n in wanted] for r in theirs.records]
    assert ours.language(f"perm@{perm().digest()}").messages.tolist() == theirs.language("perm").messages.tolist()


def test_pairs_start_from_models_that_a_probe_kept(tmp_path: Path) -> None:
    """Also after the file was renamed."""
    given = {"hidden": 16, "seeds": [123], "workers": 1}
    file = table_of(perm(), tmp_path / "emerged.csv")
    icy.probe(["sender/FC1L", "receiver/FC1L"], file, target=0.9, keep_models=True, out=tmp_path / "probe", **given)
    other = file.rename(tmp_path / "other.csv")
    spec = EndToEndRequest.asked(
        sender="FC1L", receiver="FC1L", pretrain=other, pretrained=tmp_path / "probe", steps=4, out=tmp_path, **given
    )
    job: Any = make_plan(spec).rows[0].job
    assert {r.condition for _, r in job.saved_sides} == {f"other@{perm().digest()}"}


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_takes_files_and_its_tables_and_plots_show_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table_of(perm(), tmp_path / "emerged.csv")
    words = ("probe", "-m", "sender/FC2L", "-g", "emerged.csv", "--hidden", "8", "--seeds", "2", "--workers", "1")
    dry = run(*words, "--dry-run")
    assert f"Grammars of a sender: concat, emerged@{perm().digest()}." in dry.stderr
    done = run(*words)
    assert done.exit_code == 0, done.output
    (tmp_path / "emerged.csv").unlink()
    for shown in (done, run("table"), run("table", "-g", "emerged"), run("table", "--format", "latex")):
        assert f"emerged@{perm().digest()}" in shown.stdout
    assert run("plot", "ratios", "--save", "ratios.svg").exit_code == 0
    assert "emerged<" in (tmp_path / "ratios.svg").read_text().replace(" -->", "<")
    assert "@" not in "".join(line for line in (tmp_path / "ratios.svg").read_text().splitlines() if "<!--" in line)
    assert run("report", "-o", "report.html").exit_code == 0
    assert_one_sentence(run(*words), "No grammar is called 'emerged.csv', and no file has this name", code=1)


@pytest.mark.parametrize(
    ("words", "part"), [(("--meanings", "5x10"), "needs 2x3"), (("-g", "rott"), "No grammar is called 'rott'")]
)
def test_a_mistake_is_answered_in_one_sentence(words: tuple[str, ...], part: str, tmp_path: Path) -> None:
    file = table_of(perm(), tmp_path / "emerged.csv")
    out = str(tmp_path / "r")
    assert_one_sentence(run("probe", "-m", "sender/FC2L", "-g", str(file), "-o", out, *words), part)


def test_grammars_may_be_called_so(tmp_path: Path) -> None:
    language = icy.make_language("perm", "3x4", 4, 2, 5)
    result = icy.probe("sender/FC2L", grammars=[language], quick=True, seeds=1, workers=1, out=tmp_path)
    assert {record["grammar"].partition("@")[0] for record in result.records} == {"concat", "perm"}
