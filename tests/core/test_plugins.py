"""Plug-in files: registered entries, and rejected files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from icy.core.errors import DuplicateNameError, PluginError
from icy.core.registry import registry

pytestmark = pytest.mark.usefixtures("forgetting")


# -- plug-in files -----------------------------------------------------------------------------------------------------

FILE = """
from icy.core.register import register_grammar
from icy.grammars import Corruption

@register_grammar("mirrored", source="a file")
class Mirrored(Corruption):
    \"\"\"Reads backwards.\"\"\"

    def apply(self, messages, table):
        return messages[:, ::-1]
"""


def test_a_plugin_file_registers_its_models(tmp_path: Path) -> None:
    file = tmp_path / "my own-plugin.py"
    file.write_text(FILE)
    registry.load_file(file)
    registry.load_file(str(file))  # a second import does nothing
    assert registry.plugin_files[-1:] == [str(file.resolve())]
    found = registry.get("mirrored", "grammar")
    assert found.description == "Reads backwards."
    assert found.origin.startswith("icy_plugin_my_own_plugin_")
    from icy.grammars import make_language

    assert (
        make_language("mirrored", "2x3").messages[:, ::-1].tolist() == make_language("concat", "2x3").messages.tolist()
    )


def test_a_plugin_file_without_entries_gives_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "idle.py"
    file.write_text("def sender(): pass\n")
    registry.load_file(file)
    assert f"The plug-in file '{file}' registers nothing" in caplog.text


def test_a_missing_plugin_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"absent\.py' does not exist"):
        registry.load_file(tmp_path / "absent.py")


@pytest.mark.parametrize(
    ("text", "what"),
    [("import no_such_module_xyz", "ModuleNotFoundError"), ("def (", "SyntaxError"), ("1/0", "ZeroDivisionError")],
)
def test_a_broken_plugin_file_is_named_and_can_be_fixed(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "broken_plugin.py"
    file.write_text(text)
    before = set(sys.modules)
    with pytest.raises(PluginError, match=rf"broken_plugin\.py' cannot be loaded: {what}"):
        registry.load_file(file)
    assert not [name for name in set(sys.modules) - before if name.startswith("icy_plugin")]
    file.write_text(FILE + "# mended, and longer than before\n")
    registry.load_file(file)
    assert registry.get("mirrored", "grammar").origin.startswith("icy_plugin_broken_plugin_")


def test_plugin_files_may_have_the_same_name(tmp_path: Path) -> None:
    """Otherwise the second file would silently replace the entries of the first."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(FILE)
    registry.load_file(tmp_path / "a" / "same.py")
    with pytest.raises(DuplicateNameError, match="'mirrored' is already registered"):
        registry.load_file(tmp_path / "b" / "same.py")


def test_a_plugin_file_cannot_use_a_registered_name(tmp_path: Path) -> None:
    file = tmp_path / "greedy.py"
    file.write_text(FILE.replace('"mirrored"', '"rot"'))
    with pytest.raises(DuplicateNameError, match=r"'rot' is already registered by icy\.grammars\.rot"):
        registry.load_file(file)


def test_a_file_that_is_not_python_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not Python")
    with pytest.raises(PluginError, match="is not a Python file"):
        registry.load_file(file)


# -- a name twice in one file ------------------------------------------------------------------------------------------

TWICE = """
import icy

@icy.register_{first}("one", aliases=["uno"])
def first(space, vocab_size, word_length, seed): ...

@icy.register_{second}({name})
def second(space, vocab_size, word_length, seed): ...
"""


@pytest.mark.parametrize("name", ['"one"', '"uno"', '"other", aliases=["one"]'])
def test_a_name_twice_in_one_file_is_an_error(tmp_path: Path, name: str) -> None:
    """Otherwise the later entry would silently replace the earlier one."""
    file = tmp_path / "twice.py"
    text = TWICE.format(first="grammar", second="grammar", name=name)
    file.write_text(text)
    with pytest.raises(
        DuplicateNameError, match=r"twice\.py' registers two grammars called '(one|uno)'; give each its own name"
    ):
        registry.load_file(file)
    with pytest.raises(DuplicateNameError, match="registers two grammars"):  # of another machine
        registry.load_content("/elsewhere/twice.py", text.encode())
    assert registry.find("grammar", "one") is None
    assert str(file) not in registry.plugin_files
    file.write_text(TWICE.format(first="grammar", second="grammar", name='"two"'))  # after a fix, it may register again
    registry.load_file(file)
    assert registry.get("two", "grammar").origin == registry.get("one", "grammar").origin


def test_a_name_may_have_two_kinds(tmp_path: Path) -> None:
    file = tmp_path / "kinds.py"
    file.write_text(TWICE.format(first="grammar", second="metric", name='"one"'))
    registry.load_file(file)
    assert registry.get("one", "metric").origin == registry.get("one", "grammar").origin


def test_a_file_may_be_imported_again(tmp_path: Path) -> None:
    """As in a worker that was started with the content of the file."""
    file = tmp_path / "again.py"
    file.write_text(FILE)
    registry.load_file(file)
    registry.plugin_files.remove(str(file))
    registry.load_file(file)
    registry.plugin_files.remove(str(file))
    registry.load_content(str(file), FILE.encode())
    assert registry.get("mirrored", "grammar").description == "Reads backwards."


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    ("encoding", "head", "word"),
    [
        ("utf-8", "", "größe"),
        ("utf-8-sig", "", "größe"),
        ("latin-1", "# -*- coding: latin-1 -*-\n", "größe"),
        ("cp1252", "#!/usr/bin/env python3\n# vim: set fileencoding=cp1252 :\n", "„größe“"),
        ("koi8-r", "# coding: koi8-r\n", "размер"),
        ("euc_jp", "# coding=euc-jp\n", "大きさ"),
    ],
)
def test_a_file_may_have_any_encoding_that_it_declares(
    tmp_path: Path, encoding: str, head: str, word: str, end: bytes
) -> None:
    """Workers get the bytes of the file, and its version has the same digest there."""
    file = tmp_path / "encoded.py"
    text = f"{head}# {word}\n" + FILE.replace("Reads backwards.", word)
    content = text.encode(encoding).replace(b"\n", end)
    file.write_bytes(content)
    registry.load_file(file)
    entry = registry.get("mirrored", "grammar")
    assert entry.description == word
    version = entry.full_version
    additions = registry.additions()
    assert (str(file), content) in additions.files
    registry.plugin_files.remove(str(file))
    file.unlink()  # as on another machine
    registry.add_all(additions._replace(files=[(str(file), content)], modules=[], entries=[]))
    assert registry.get("mirrored", "grammar").full_version == version
