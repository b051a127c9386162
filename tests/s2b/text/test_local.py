"""Local text models: a tiny one of random weights where transformers is installed, and a sentence where it is not."""

from __future__ import annotations

import importlib.util
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from icy.core.errors import InvalidSettingError, PluginError
from icy.s2b import TextRequest, TextSettings, evaluate_text, text_model
from icy.s2b.text.text_model import Choices

BOTH: Choices = {"decision": ["0", "1"], "message": [["0", "1", "2", "10", "11"]] * 2}
installed = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="needs pip install '.[transformers]'"
)


def test_a_missing_library_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(PluginError, match=r"need the library transformers: pip install 'icy-toolkit\[transformers\]'"):
        text_model(f"transformers#{tmp_path}")


@pytest.mark.parametrize("name", ["transformers", "transformers#", "transformers#nowhere/at-all"])
def test_a_local_model_is_a_folder(name: str) -> None:
    with pytest.raises(InvalidSettingError, match="named by its folder, as in transformers#FOLDER"):
        text_model(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of random weights that reads and writes bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("tiny")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {letter: place for place, letter in enumerate([*alphabet, "<end>"])}
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(path)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(words), n_positions=4096, n_embd=16, n_layer=1, n_head=2, bos_token_id=256, eos_token_id=256
    )
    GPT2LMHeadModel(config).save_pretrained(path)
    return path


@installed
def test_constrained_answers_are_among_the_choices(folder: Path) -> None:
    model = text_model(f"transformers#{folder}", TextSettings(temperature=1.0))
    replies = [model.reply(TextRequest("Say it.", BOTH, seed=seed)) for seed in range(20)]
    assert {reply.decision for reply in replies} == {0, 1}
    assert {token for reply in replies for token in reply.message or []} >= {0, 1, 2}
    assert all(set(reply.message or []) <= {0, 1, 2, 10, 11} for reply in replies)
    assert replies[3].raw == f'{{"decision": {replies[3].decision}, "message": {replies[3].message}}}'
    logprobs = torch.tensor(replies[0].option_logprobs)
    assert float(logprobs.exp().sum()) == pytest.approx(1.0, abs=1e-5)
    assert replies == [model.reply(TextRequest("Say it.", BOTH, seed=seed)) for seed in range(20)]


@installed
def test_without_temperature_the_likeliest_is_taken(folder: Path) -> None:
    model: Any = text_model(f"transformers#{folder}", TextSettings(temperature=0))
    reply = model.reply(TextRequest("Say it.", {"decision": ["0", "1"]}))
    ids = model.tokenizer("Say it.\n" + '{"decision": ')["input_ids"]
    scores = torch.log_softmax(model.model(torch.tensor([ids])).logits[0, -1].detach(), -1)
    both = [float(scores[model.tokenizer(one)["input_ids"][0]]) for one in "01"]
    assert reply.decision == both.index(max(both))
    assert reply.option_logprobs[0] - reply.option_logprobs[1] == pytest.approx(both[0] - both[1], abs=1e-4)


@installed
def test_a_number_is_not_likelier_for_being_the_start_of_another(folder: Path) -> None:
    model: Any = text_model(f"transformers#{folder}", TextSettings(temperature=0))
    ends = model._likelihoods("Say it: ", ["1", "10"])
    whole = [model._ids("Say it: " + one) for one in ("1,", "10,")]
    steps = [[float(model._scores(ids[:n])[-1][ids[n]]) for n in range(9, len(ids))] for ids in whole]
    assert ends == pytest.approx([sum(one) for one in steps], abs=1e-4)
    assert len(steps[1]) == len(steps[0]) + 1


@installed
def test_free_answers_are_written_and_counted(folder: Path) -> None:
    before = torch.random.get_rng_state(), random.getstate()
    model = text_model(f"transformers#{folder}", TextSettings(constrain="none"))
    first, again = (model.reply(TextRequest("Say it.", BOTH, seed=4, max_tokens=9)) for _ in range(2))
    other = model.reply(TextRequest("Say it.", BOTH, seed=5, max_tokens=9))
    assert first == again
    assert first.raw != other.raw
    assert first.usage is not None
    assert first.usage[0] == len("Say it.\n")
    assert first.usage[1] <= 9
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert random.getstate() == before[1]


THINKS = "{{ messages[0].content }}<think>\n"  # a template that opens a thought


@installed
@pytest.mark.parametrize(
    ("template", "written", "decision", "finish"),
    [
        (None, '{"decision": 1}<end>', 1, "stop"),
        (None, "1<end>", 1, "stop"),
        (None, '{"decision": 1}', 1, "length"),
        (None, '{"decision": 1} or', None, "length"),
        (None, '<think>{"decision": 1}</think>0<end>', 0, "stop"),
        (None, '[THINK]{"decision": 1}[/THINK]0<end>', 0, "stop"),  # special tokens, which the raw text lacks
        (None, '[THINK]{"decision": 1}<end>', None, "stop"),
        (THINKS, 'maybe {"decision": 1}</think>{"decision": 0}<end>', 0, "stop"),
        (THINKS, 'maybe {"decision": 1}<end>', None, "stop"),
        (THINKS, 'maybe {"decision": 1}', None, "length"),
    ],
)
def test_free_answers_are_read_after_their_thoughts(
    folder: Path, template: str | None, written: str, decision: int | None, finish: str
) -> None:
    model: Any = text_model(f"transformers#{folder}", TextSettings(constrain="none"))
    model.tokenizer.chat_template = template
    model.tokenizer.add_special_tokens({"additional_special_tokens": ["[THINK]", "[/THINK]"]})
    ids = model.tokenizer(written, return_tensors="pt")["input_ids"]
    model.model.generate = lambda input_ids, **more: torch.cat([input_ids, ids], 1)
    reply = model.reply(TextRequest("?", BOTH, max_tokens=ids.shape[1]))
    assert (reply.decision, reply.finish, reply.usage[1]) == (decision, finish, ids.shape[1])


@installed
def test_a_local_model_plays(folder: Path) -> None:
    rows = evaluate_text(f"transformers#{folder}", episodes=2, seeds=1, dimensions=2, most=2).table()
    assert rows["invalid"].tolist() == [0.0]
    assert rows["prompt_tokens"][0] > 500


@installed
@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "generation_config.json"])
def test_files_of_the_folder_are_part_of_the_identity(folder: Path, tmp_path: Path, file: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    before = text_model(f"transformers#{copy}").identity()
    (copy / file).touch()
    assert text_model(f"transformers#{copy}").identity() == before
    content = (copy / file).read_bytes()
    changed = content[:-1] + bytes([content[-1] ^ 1]) if file == "model.safetensors" else content + b" "
    (copy / file).write_bytes(changed)
    assert text_model(f"transformers#{copy}").identity() != before


@installed
def test_a_folder_without_a_model_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="holds no language model as safetensors"):
        text_model(f"transformers#{tmp_path}")
