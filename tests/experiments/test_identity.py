"""Two models of users that differ never share a record; equal ones do."""

from __future__ import annotations

import importlib
import json
import linecache
import random
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import icy
from icy.cli import main
from icy.config.requests import RunRequest
from icy.core.code import digest_of, parts_of, same_code
from icy.core.entry import Entry
from icy.core.errors import StoreError
from icy.core.registry import registry
from icy.experiments import plan
from icy.experiments.plan import make_plan
from icy.experiments.user_models import with_model_names
from icy.games.settings import GamesRequest
from icy.records.record import own_key
from icy.records.store import Store
from icy.s2b.agents.kinds import AgentRequest
from icy.s2b.agents.saved_networks import SavedAgent
from icy.study.study_job import StudyRequest
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest
from icy.training.task_models import same_behavior
from icy.training.weights import code_for_card
from tests.helpers import TINY
from tests.testing import test_cores, test_games, test_players

SIZES: dict[str, Any] = {**TINY, "seeds": 1, "workers": 1}
cells = count()


TEXTS = Path(__file__).with_name("identity")
START, PLUGIN = (TEXTS.joinpath(name).read_text() for name in ("start.txt", "plugin.txt"))


def parts_by_kind(name: str) -> dict[str, list[str]]:
    """Return the parts of each kind in a file: a line "== kind", and parts that lines "--" separate."""
    found = (part.partition("\n") for part in f"\n{TEXTS.joinpath(name).read_text()}".split("\n== ")[1:])
    return {kind: rest.rstrip("\n").split("\n--\n") for kind, _, rest in found}


CHANGES = parts_by_kind("changes.txt")  # two cells of a notebook that define `model`; the second changes the numbers
VALUES = parts_by_kind("values.txt")  # two statements that make a value, and an expression without effect at first
FILES = parts_by_kind("files.txt")  # imports of a plug-in, its width, and files "# name" with {} for a number
MORE = START + "import collections, contextvars, re, unittest.mock\nimport pandas\n"
LATER = "\nmodel = late(lambda: {})"


@pytest.fixture(autouse=True)
def _alone(forgetting: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has a folder of its own, and leaves PyTorch and the modules as they were."""
    from torch import nn

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WIDTH", "")
    monkeypatch.setattr(nn.Flatten, "forward", nn.Flatten.forward)
    monkeypatch.setattr(plan, "_warned", set())
    monkeypatch.syspath_prepend(tmp_path)
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if name.startswith(("helper", "inner", "package_of_mine")):
            del sys.modules[name]


class Notebook:
    """A notebook: its cells share their names, and `linecache` knows their source."""

    def __init__(self, start: str = START) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.run(start)

    def run(self, source: str) -> Any:
        """Run a cell and return `model`."""
        name = f"<cell {next(cells)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec", dont_inherit=True), self.names)
        return self.names.get("model")


def keys(model: Any, **given: Any) -> set[str]:
    """Return the keys of a plan."""
    spec = with_model_names(ProbeRequest.asked(model=model, **{"grammar": "perm", **SIZES, **given}), "model")
    return {row.job.key(replicate) for row in make_plan(spec).rows for replicate in row.job.replicates}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_in_a_notebook_makes_another_model(kind: str) -> None:
    notebook, (first, second) = Notebook(), CHANGES[kind]
    one = keys(notebook.run(first))
    assert keys(notebook.names["model"]) == one
    other = keys(notebook.run(second))
    assert len(one) == len(other) == 2
    assert not one & other


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in CHANGES if "late" not in kind])
def test_the_same_cells_in_another_session_make_the_same_model(kind: str) -> None:
    first = CHANGES[kind][0]
    assert keys(Notebook().run(first)) == keys(Notebook().run(first))


def test_globals_with_the_names_of_attributes_do_not_matter() -> None:
    notebook = Notebook()
    before = keys(notebook.run("scale = 1\nmodel = Net"))
    assert keys(notebook.run("scale = layer = forward = 2")) == before


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_counts_although_the_first_outputs_do_not_depend_on_it(kind: str) -> None:
    first, second, expression = VALUES[kind]
    notebook = Notebook(MORE)
    one = keys(notebook.run(first + LATER.format(expression)))
    assert keys(Notebook(MORE).run(first + LATER.format(expression))) == one
    assert not keys(notebook.run(second)) & one


@pytest.mark.parametrize(
    ("before", "after", "equal"),
    [
        ("return 4", "return 4  # neurons", True),
        ("return 4", "# neurons\n\n        return (4)", False),
        ("return 4", "# neurons\n\n        return 4 ", True),
        ("return len('# a') + 1", "return len('# b') + 1", False),
        ("return len('''a\n\n''')", "return len('''a\n''')", False),
    ],
)
def test_comments_do_not_count(before: str, after: str, equal: bool) -> None:
    source = "class model(Base):\n    def width(self):\n        {}\n"
    one, other = (keys(Notebook().run(source.format(text))) for text in (before, after))
    assert (one == other) == equal
    plugin = write("the plug-in", 4)
    one = keys("Filed", plugin=plugin)
    plugin.write_text(plugin.read_text() + "\n# A comment\n")
    assert keys("Filed", plugin=plugin) == one


def test_another_object_does_not_count_as_a_cache_of_the_same_name() -> None:
    notebook = Notebook()
    remembering = "class model(Late):\n    def forward(self, meanings):\n" \
        "        known[len(known)] = 0\n        return super().forward(meanings)"  # fmt: skip
    one = keys(notebook.run("known = {}\n" + remembering))
    assert not keys(notebook.run("known = {'factor': 2}")) & one
    assert keys(notebook.run("known = {}")) == one


def test_new_random_weights_and_a_cache_do_not_make_another_model() -> None:
    notebook = Notebook()
    assert keys(notebook.run("model = of_module()")) == keys(notebook.run("model = of_module()"))
    remembering = "known = {}\nclass model(Base):\n    def forward(self, meanings):\n" \
        "        known[len(known)] = meanings\n        return self.layers(meanings)"  # fmt: skip
    assert keys(notebook.run(remembering)) == keys(notebook.names["model"])


# -- plug-in files and packages ----------------------------------------------------------------------------------------


# Files by name, with {} for the number that changes; how the plug-in imports them, and its width.


def write(kind: str, width: int) -> Path:
    """Write the files of a kind, and return the plug-in."""
    imports, expression, *files = FILES[kind]
    for name, _, text in (file.removeprefix("# ").partition("\n") for file in files):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text.format(width) + f"\n# {width}\n")
    Path("mine.py").write_text(PLUGIN.format(imports=imports.format(width), width=expression))
    return Path("mine.py").absolute()


@pytest.mark.parametrize("kind", FILES)
def test_an_edited_file_makes_another_model_in_the_same_process(kind: str) -> None:
    """The plug-in and the files that it imports are imported again."""
    one = keys("Filed", plugin=write(kind, 4))
    assert keys("Filed", plugin=write(kind, 4)) == one
    other = keys("Filed", plugin=write(kind, 64))
    assert not one & other
    assert registry.get("Filed").create(icy.MeaningSpace(2, 3), 4, 4, 8)[0].embedding_dim == 64


def test_a_plug_in_has_the_same_keys_in_another_folder(tmp_path: Path) -> None:
    here = keys("Filed", plugin=write("the plug-in", 4))
    there = tmp_path / "elsewhere" / "mine.py"
    there.parent.mkdir()
    there.write_bytes(Path("mine.py").read_bytes())
    registry._entries.pop(("sender", "Filed"))
    assert keys("Filed", plugin=there) == here


PATHS = {
    "Path": ('DATA = pathlib.Path(__file__).with_name("data.txt")', "DATA"),
    "text": ('DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data.txt")', "DATA"),
    "in the function": ("", 'pathlib.Path(__file__).parent / "data.txt"'),
    "folder": ("HERE = pathlib.Path(__file__).parent", 'HERE / "data.txt"'),
}


@pytest.mark.parametrize("kind", PATHS)
def test_files_beside_a_plug_in_count_by_content_not_by_folder(kind: str, tmp_path: Path) -> None:
    before, path = PATHS[kind]
    source = PLUGIN.format(imports=f"import os, pathlib\n{before}", width=f"int(pathlib.Path({path}).read_text())")
    found = []
    for folder, content in (("one", "4"), ("two", "4"), ("three", "6")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.txt").write_text(content)
        (tmp_path / folder / "mine.py").write_text(source)
        registry._entries.pop(("sender", "Filed"), None)
        found.append(keys("Filed", plugin=tmp_path / folder / "mine.py"))
    assert found[0] == found[1]
    assert not found[0] & found[2]


def test_a_file_counts_by_content_even_if_it_has_no_effect_yet(tmp_path: Path) -> None:
    path, digests = tmp_path / "data.txt", []
    for content in ("4", "6", "4"):
        path.write_text(content)
        digests.append(digest_of(parts_of(lambda: path)))
    assert digests[0] == digests[2] != digests[1]


def test_a_renamed_model_of_an_edited_plug_in_is_forgotten() -> None:
    keys("Filed", plugin=write("the plug-in", 4))
    text = Path("mine.py").read_text()
    Path("mine.py").write_text(text.replace('"Filed"', '"Other"'))
    keys("Other", plugin="mine.py")
    assert registry.find("sender", "Filed") is None


@pytest.mark.parametrize("place", ["site-packages", "packages"])
def test_a_class_of_a_package_is_followed_even_if_the_package_is_installed(place: str) -> None:
    keys_of = []
    for factor in (1, 2, 1):
        package = Path(place, "package_of_mine")
        package.mkdir(parents=True, exist_ok=True)
        Path(package, "__init__.py").write_text(
            START + f"FACTOR = {factor}  # {'same' * factor}\nmodel = late(lambda: FACTOR)\n"
        )
        sys.path.insert(0, place)
        sys.modules.pop("package_of_mine", None)
        importlib.invalidate_caches()
        keys_of.append(keys(importlib.import_module("package_of_mine").model))
        sys.path.remove(place)
    assert keys_of[0] == keys_of[2]
    assert not keys_of[0] & keys_of[1]


def test_an_edit_of_a_loaded_file_does_not_change_the_running_code() -> None:
    Path("helper.py").write_text("def width():\n    return 4\n")
    notebook = Notebook()
    one = keys(notebook.run("import helper\ndef model(*sizes):\n    return plain(*sizes, width=helper.width())"))
    Path("helper.py").write_text("def width():\n    return 4 + 60\n")
    assert keys(notebook.names["model"]) == one
    importlib.reload(notebook.names["helper"])
    assert not keys(notebook.names["model"]) & one


def test_planning_leaves_the_generators_of_the_user_as_they_are() -> None:
    notebook = Notebook()
    state = random.getstate(), repr(np.random.get_state())
    keys(
        notebook.run(
            "import random\ndef model(*sizes):\n    random.random(), np.random.rand()\n    return plain(*sizes)"
        )
    )
    assert (random.getstate(), repr(np.random.get_state())) == state


def test_a_module_of_the_users_program_is_not_imported_again(caplog: pytest.LogCaptureFixture) -> None:
    plugin = write("imported file", 4)
    import helper  # type: ignore[import-not-found]

    one = keys("Filed", plugin=plugin)
    write("imported file", 64)
    assert keys("Filed", plugin=plugin) == one
    assert sys.modules["helper"] is helper
    assert "helper was edited after it was imported; the imported code is used" in caplog.text


def test_a_users_registration_of_a_built_in_model_depends_on_its_defaults() -> None:
    def version(**defaults: object) -> str:
        icy.register_sender("Again", "icy.models.senders.fc:FC2L", defaults=defaults)
        return registry.get("Again").full_version

    assert version(bias=True) != version(bias=False)
    assert registry.get("sender/FC2L").full_version.isdigit()


def test_a_grammar_and_a_cell_depend_on_what_they_capture() -> None:
    notebook = Notebook(
        START + "import icy\nSHIFT = 1\n@icy.register_grammar('mine')\ndef mine(space, vocab, w, seed):\n"
        "    return icy.make_language('rot', space, vocab, w, seed + SHIFT).messages\n"
        "from icy.models.cells import GRUCell\n@icy.register_cell('own')\nclass Own(GRUCell):\n    gain = SHIFT\n"
    )
    one = keys("sender/FC1L", grammar="mine"), keys("HierZero:own")
    notebook.run("SHIFT = 2\nOwn.gain = 2")
    other = keys("sender/FC1L", grammar="mine"), keys("HierZero:own")
    assert len(one[0] & other[0]) == 1  # of concat
    assert not one[1] & other[1]


@pytest.mark.parametrize(
    ("kind", "of_kind", "spec"),
    [
        ("core", test_cores.Plain, lambda: AgentRequest(core="mine", quick=True, out="r")),
        ("speaker", "posdis", lambda: AgentRequest(speaker="mine", quick=True, out="r")),
        ("world", test_games.PlainWorld, lambda: GamesRequest(world="mine", quick=True, out="r")),
        ("perception", test_games.PlainPerception, lambda: GamesRequest(perception="mine", quick=True, out="r")),
        ("study-player", test_players.Plain, lambda: StudyRequest(player="mine", quick=True, out="r")),
    ],
)
def test_other_parts_of_users_are_followed_too(kind: str, of_kind: Any, spec: Callable[[], RunRequest]) -> None:
    plain = registry.get(of_kind, kind).load() if isinstance(of_kind, str) else of_kind

    def plan(number: int) -> tuple[set[str], set[bool]]:
        entry = Entry(kind, "mine", type("Mine", (plain,), {"number": number}), "", "", origin="__main__")
        with registry.holding(entry):
            jobs = [row.job for row in make_plan(spec()).rows]
        keys = {job.key(replicate) for job in jobs for replicate in job.replicates}
        return keys, {"behavior" in job.made_by[f"{kind}/mine"] for job in jobs}

    keys, described = plan(1)
    assert plan(1)[0] == keys
    assert not plan(2)[0] & keys
    assert described == {True}


def test_one_factory_with_several_defaults_is_several_models() -> None:
    """Also within a plan, which computes each digest once."""
    net = Notebook().run("model = Net")
    narrow, wide = (Entry("sender", f"Net{n}", net, "", "", defaults={"n": n}, origin="__main__") for n in (4, 64))
    with same_code():
        assert narrow.full_version == narrow.full_version != wide.full_version


def test_an_error_of_a_world_is_left_to_the_training() -> None:
    def observe(*_: object) -> None:
        raise ValueError

    plain: Any = test_games.PlainWorld
    entry = Entry("world", "mine", type("Mine", (plain,), {"observe": observe}), "", "", origin="m")
    with registry.holding(entry):
        made_by = [
            row.job.made_by["world/mine"]
            for row in make_plan(GamesRequest.asked(world="mine", quick=True, out="r")).rows
        ]
    assert {*map(tuple, made_by)} == {("code",)}


# -- records -----------------------------------------------------------------------------------------------------------


def probe(model: Any, **given: Any) -> icy.ProbeResult:
    return icy.probe(model, "perm", **{**SIZES, "out": "r", "progress": False, **given})


def test_the_second_model_trains_and_both_are_in_the_table(caplog: pytest.LogCaptureFixture) -> None:
    make: Callable[[int], Any] = Notebook().names["make"]
    small, large, again = probe(make(4)), probe(make(64)), probe(make(4))
    assert {r["parameters"]["true"] for r in small.records} != {r["parameters"]["true"] for r in large.records}
    assert [r["finished"] for r in again.records] == [r["finished"] for r in small.records]
    assert all(own_key(r) == r["key"] for r in (*small.records, *large.records))
    changed = "sender/Net counts as another model than the one of earlier results in r, since its code has changed ("
    assert [m for m in caplog.messages if m.startswith(changed)] == [f"{changed}width of make.<locals>.Net.width)."]
    both = icy.ProbeResult.load("r")
    codes = [r["versions"]["model"].partition("-")[2] for r in (small.records[0], large.records[0])]
    assert sorted(both.to_dataframe("long")["options"].unique()) == sorted(f"code={code}" for code in codes)
    assert small.to_dataframe("long")["options"].unique().tolist() == [""]
    shown = CliRunner().invoke(main, ["table", "r"]).output
    assert all(f"code={code}" in shown for code in codes)


def test_the_same_code_with_another_behavior_trains_again(caplog: pytest.LogCaptureFixture) -> None:
    notebook, (first, second) = Notebook(), CHANGES["file that the model reads"]
    one = probe(notebook.run(first)).records
    other = probe(notebook.run(second)).records
    assert one[0]["versions"]["model"] == other[0]["versions"]["model"]
    assert one[0]["parameters"] != other[0]["parameters"]
    assert "although its code is the same, since it behaves differently for a fixed input." in caplog.text
    options = icy.ProbeResult.load("r").to_dataframe("long")["options"].unique()
    assert sorted(options) == sorted(f"behavior={r[0]['versions']['behavior']}" for r in (one, other))


def test_a_behavior_has_a_tolerance() -> None:
    """The numbers of another processor differ in their last digits."""
    model = Notebook().run("model = Net")
    (record, *_) = records = probe(model).records
    for one in records:
        behavior = one["made_by"]["sender/Net"]["behavior"]
        behavior["numbers"] = [x * (1 + 1e-5) for x in behavior["numbers"]]
        one["versions"] |= {"behavior": "00000000"}
        Store("r").put({**one, "key": own_key(one)})  # type: ignore[typeddict-item]
    for path in Path("r/records").glob("*.json"):
        if json.loads(path.read_text())["versions"]["behavior"] != "00000000":
            path.unlink()
    assert keys(model, out="r") == {own_key(one) for one in records}
    numbers = [1.0, 2.0, 3.0, 4000.0, 4000.0, 4000.0]
    for other in ([1.0, 2.01, *numbers[2:]], [*numbers[:5], 4010.0]):
        behaviors = ({"": {"tensors": "", "numbers": one}} for one in (numbers, other))
        assert not same_behavior(*behaviors)
    assert record["versions"]["behavior"] == "00000000"


def test_records_from_before_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    """Their version has the hash of the file of the plug-in, which does not cover all of the code."""
    plugin = write("the plug-in", 4)
    records = probe("Filed", plugin=plugin).records
    for one in records:
        Path(f"r/records/{one['key']}.json").unlink()
        one["versions"] = {n: v for n, v in one["versions"].items() if n != "behavior"} | {"model": "1-01234567"}
        one.pop("made_by")
        one["key"] = own_key(one)
        Store("r").put(one)
    assert not keys("Filed", plugin=plugin, out="r") & {r["key"] for r in records}
    assert "since an older version of icy recorded less of its code." in caplog.text


def test_a_saved_model_is_loaded_only_into_the_same_model() -> None:
    notebook = Notebook()
    result = probe(notebook.run(CHANGES["environment"][0]), keep_models=True)
    assert result.model("perm") is not None
    notebook.run("os.environ['WIDTH'] = '5'")
    with pytest.raises(StoreError, match="sender/model behaves differently than the model that was trained"):
        result.model("perm")


def test_a_saved_agent_is_loaded_only_with_the_same_code() -> None:
    def version(number: int) -> str:
        plain: Any = test_cores.Plain
        registry.add(Entry("core", "mine", type("Mine", (plain,), {"number": number}), "", "", origin="__main__"))
        return registry.get("mine", "core").full_version

    card = {"model": "mine", "seed": 1, "setup": {"core": "mine"}, **code_for_card({"s2b": "1", "core": version(1)})}
    saved = SavedAgent(card, (Path("missing.safetensors"), ""))
    with pytest.raises(FileNotFoundError):
        saved.weights()
    version(2)
    with pytest.raises(StoreError, match="mine, seed 1 was trained with other code of the core 'mine'"):
        saved.weights()
    assert code_for_card({"s2b": "1", "core": "1"}) == {}
    Notebook(
        "import icy\nfrom icy.models.cells import GRUCell\n@icy.register_cell('own')\nclass Own(GRUCell):\n    pass\n"
    )
    code = code_for_card({"sender": registry.get("HierZero:own", "sender").full_version})
    with pytest.raises(FileNotFoundError):
        SavedAgent({**card, "setup": {"sender": "HierZero:own"}, **code}, saved.source).weights()


def test_a_pair_starts_from_the_saved_model_with_the_same_code() -> None:
    make: Callable[[int], Any] = Notebook().names["make"]
    rows = set()
    for model in ("receiver/FC1L", make(4), make(64)):
        probe(model, keep_models=True)
        if not isinstance(model, str):
            (row,) = make_plan(EndToEndRequest("sender/Net", "FC1L", "perm", pretrained="r", **SIZES)).rows
            rows.add(row.job.row)
    assert len(rows) == 2


def test_icy_list_shows_the_digest_of_the_code() -> None:
    plugin = write("the plug-in", 4)
    shown = CliRunner().invoke(main, ["list", "models", "Filed", "--plugin", str(plugin), "--format", "csv"]).output
    assert f"Its code has the digest {registry.get('Filed').full_version.partition('-')[2]}." in shown


def test_values_that_refer_to_themselves_and_odd_values_have_a_digest() -> None:
    notebook = Notebook()
    notebook.run(
        "import logging, threading, re\nodd = [threading.Lock(), logging.getLogger('x'), re.compile('a'), open,"
        " print, (i for i in 'ab'), np.random.default_rng(1), object(), {1, 2}, np.array([{}]), slice(3), range(4)]\n"
        "odd.append(odd)\ndef model():\n    return odd"
    )
    first = parts_of(notebook.names["model"])
    assert first == parts_of(notebook.names["model"])
    notebook.run("odd[8].add(3)")
    assert digest_of(first) != digest_of(parts_of(notebook.names["model"]))
