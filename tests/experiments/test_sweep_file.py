"""Files of sweeps: the types of their values, and the line of a wrong value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from icy.config.specs import EndToEndSpec, RunSpec, SweepSpec, names
from icy.core.errors import InvalidSettingError
from icy.experiments.sweep_file import InFile, _types_of, read_sweep

TOML = """\
# a comment
seeds = 5
word-length = 2

[set]
check_every = 20

[[sweep]]
model = "sender/*"
hidden = [64, 128]

[[sweep]]
kind = "e2e"
"hidden" = 8
sender = "FC1L"
"""


def write(folder: Path, text: str | bytes, suffix: str = ".toml") -> Path:
    file = folder / f"zoo{suffix}"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seeds = 5", "seeds = true", "line 2: seeds must be a whole number, text or a list of whole numbers, not"),
        ("word-length = 2", "word-length = 2.5", "line 3: word-length must be a whole number, text or a list of whole"),
        ("[set]\ncheck_every = 20", "set = 20", "line 5: set must be a table, as in set = {learning_rate = [0.001"),
        ('model = "sender/*"', "model = {a = 1}", "line 9: model must be text or a list of texts, not {'a': 1}."),
        ('model = "sender/*"', 'model = ["a", 1]', "line 9: model must be text or a list of texts, not ['a', 1]."),
        ("hidden = [64, 128]", "hidden = [64, true]", "line 10: hidden must be a whole number, text or a list of"),
        ('"hidden" = 8', '"hidden" = false', "line 14: hidden must be a whole number, text or a list of whole numbers"),
        ('sender = "FC1L"', "steps = 1.5", "line 15: steps must be a whole number, not 1.5."),
        ('sender = "FC1L"', 'most = "few"', "line 15: most must be a whole number, not 'few'."),
        ("seeds = 5", "seeds = 5\nquick = 'yes please'", "line 3: quick must be true or false, not 'yes please'."),
        ("seeds = 5", "seeds = 5\nretries = 'x'", "line 3: retries must be a whole number, not 'x'."),
        ("seeds = 5", "seeds = 5\ntarget = 'high'", "line 3: target must be a number, not 'high'."),
        ("seeds = 5", "seeds = 5\nplugin = [5]", "line 3: plugin must be text or a list of texts, not [5]."),
        ("word-length = 2", "word-length = 2\nword_length = 3", "line 4: word_length and word-length are the same"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_raises_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TOML
    read_sweep(write(tmp_path, TOML))
    with pytest.raises(InvalidSettingError) as told:
        read_sweep(write(tmp_path, TOML.replace(old, new)))
    assert str(told.value).startswith(f"{tmp_path / 'zoo.toml'}, {said}")


def test_lines_of_yaml(tmp_path: Path) -> None:
    text = "seeds: 5\n\nsweep:\n  - model: a\n  - {model: b,\n     hidden: yes}\n"
    with pytest.raises(InvalidSettingError, match=r"zoo.yaml, line 6: hidden must be a whole number, .*, not True"):
        read_sweep(write(tmp_path, text, ".yaml"))
    with pytest.raises(InvalidSettingError, match=r"is not valid (TOML|YAML): .* in line 3\.$"):
        read_sweep(write(tmp_path, "seeds: 5\nmodel: [a\n", ".yaml"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "suffix", "said"),
    [
        (b'model = "\xff"', ".toml", "is not text in UTF-8: byte 9 is invalid"),
        (f"model = {'[' * 50_000}", ".toml", "is not valid"),
        (f"model: {'[' * 50_000}", ".yaml", "is not valid"),
        (f"seeds = {'9' * 5000}", ".toml", "is not valid"),
        ("- a\n- b\n", ".yaml", "must hold names and values of options"),
        ("5: a\n", ".yaml", "must hold names and values of options"),
        ("", ".yaml", "must hold names and values of options"),
        ("sweep: [5]\n", ".yaml", "each under"),
        ("parts: 5\n", ".yaml", "each under"),
        ("a: &a [1, 2]\nseeds: {b: *a}\n", ".yaml", "line 2: seeds must be"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str | bytes, suffix: str, said: str) -> None:
    with pytest.raises(InvalidSettingError, match=said):
        read_sweep(write(tmp_path, text, suffix))


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """Some editors write the mark at the start of a file in UTF-8."""
    assert read_sweep(write(tmp_path, b'\xef\xbb\xbfmodel = "a"\n')) == {"model": "a"}


def test_a_file_of_another_kind_is_not_even_opened() -> None:
    with pytest.raises(InvalidSettingError, match=r"A sweep is a \.toml, \.yaml or \.yml file"):
        read_sweep("/dev/zero")


def test_every_option_has_a_type_in_a_file() -> None:
    """Options of whole sweeps, and of end-to-end runs as parts, also by their old names."""
    assert set(_types_of(SweepSpec)) == {*names(SweepSpec), "start"} - {"parts"}
    assert set(_types_of(EndToEndSpec)) == {*names(EndToEndSpec), "start", "steps"}


def test_values_of_a_sweep_in_python_have_the_type_that_files_have(tmp_path: Path) -> None:
    whole = {
        "model": ["sender/FC1L"], "grammar": "perm", "protocol": ["acquire", "budget"], "meanings": "2x3,3x4",
        "vocab_size": [4, 5], "word_length": "2,3", "seeds": "1-3", "target": 1, "cap": 2.5, "held_out": 0.2,
        "hidden": 8, "workers": 2, "out": "o", "track": ["mlflow"], "shard": "1/2", "settings": {}, "quick": True,
    }  # fmt: skip
    types = _types_of(SweepSpec)
    assert [name for name, value in whole.items() if not types[name].accepts(value)] == []


@dataclass(frozen=True)
class OwnSpec(RunSpec):
    """Options of a kind of job that a plug-in registers."""

    axes = ("rate",)

    rate: float = 0.5
    names: list[str] | None = None
    whatever: Any = None
    odd: list[dict[str, int]] = ()  # type: ignore[assignment]


def test_types_of_a_plugin() -> None:
    types = _types_of(OwnSpec)
    assert str(types["rate"]) == "a number, text or a list of numbers"
    assert types["rate"].accepts([0.1, 1])
    assert not types["rate"].accepts([True])
    assert types["names"] == InFile(frozenset({type(None)}), frozenset({str}))
    assert "whatever" not in types
    assert "odd" not in types
